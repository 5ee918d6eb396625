"""Constants of torch's whose text is their meaning, as a program writes them.

device(type='cuda', index=1)           ->  torch.device('cuda', 1)
(device(type='cpu'), torch.float32)    ->  (torch.device('cpu'), torch.float32)
torch.Size([2, 3])                     ->  torch.Size([2, 3])
"""

from __future__ import annotations

import ast


def in_words(meaning: str) -> ast.expr | None:
    """Return the expression for a constant; ``None`` where its meaning is none.

    Args:
        meaning: what a constant is: its ``repr``, or other words.
    """
    try:
        node = ast.parse(meaning, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    return None if isinstance(node, ast.Constant) else _said(node)


def _said(node: ast.expr) -> ast.expr | None:
    match node:
        case ast.Constant() | ast.UnaryOp(ast.USub(), ast.Constant(int() | float())) | ast.Attribute(ast.Name("torch")):
            return node
        case ast.Call(ast.Name("device"), [], [ast.keyword("type", ast.Constant(str())), *index]) if all(
                each.arg == "index" and isinstance(each.value, ast.Constant) for each in index):
            device = ast.Attribute(ast.Name("torch", ast.Load()), "device", ast.Load())
            return ast.Call(device, [each.value for each in node.keywords], [])
        case ast.Call(ast.Attribute(ast.Name("torch"), "Size"), [ast.List(sizes)], []) if all(
                isinstance(each, ast.Constant) for each in sizes):
            return node
        case ast.Tuple(items):
            said = [_said(each) for each in items]
            return ast.Tuple([each for each in said if each is not None], ast.Load()) if None not in said else None
    return None
