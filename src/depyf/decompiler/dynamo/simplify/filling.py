"""Loops that fill a dictionary, as one call while the code around them is simplified.

Dynamo fills an object that is a dictionary by code made of a template (``_manual_dict_setitem`` in
``torch/_dynamo/side_effects.py``)::

    dict_class = type(dict_to).__mro__[2]
    dict_class.clear(dict_to)
    for k, v in dict_from.items():
        dict_class.__setitem__(dict_to, k, v)

The loop becomes ``dict_class.<update>(dict_to, dict_from)``, which is no Python: :mod:`.objects` carries it out where
this code makes the dictionary, and makes the entries one by one where it knows them. Elsewhere it becomes a loop again.
"""

from __future__ import annotations

import ast

from ....bytecode import operations as o
from ....bytecode.operations import Op
from ....cfg import graph as g
from ....cfg.graph import Block, Cfg
from ...nodes import Transformer, free_name, nodes_of
from ..folding import Substitution
from ..global_names import UPDATE

_BODY = (o.UNPACK, o.STORE_FAST, o.STORE_FAST, o.LOAD_FAST, o.LOAD_ATTR, o.LOAD_FAST, o.LOAD_FAST, o.LOAD_FAST, o.CALL,
         o.POP)
_BEFORE = (o.LOAD_FAST, o.LOAD_ATTR, o.CALL, o.GET_ITER)


def as_calls(graph: Cfg) -> Cfg:
    """Return the graph with loops that fill a dictionary as calls; the given one if it has none."""
    given, graph = graph, graph.copy()
    blocks = graph.blocks
    for head in list(blocks.values()):
        if head.end != g.FOR_ITER or head.ops:
            continue
        inside, after = head.successors
        body = blocks.get(inside)
        before = [block for block in blocks.values() if head.id in block.successors and block.id != inside]
        if body is None or len(before) != 1 or body.successors != [head.id] or not _fills(before[0], body):
            continue
        start, place = before[0], body.ops[8]
        start.ops = [
            *start.ops[:-4], body.ops[3], Op(o.LOAD_ATTR, UPDATE, place.offset, place.line, -1, place.handler),
            body.ops[5], start.ops[-4], Op(o.CALL, (2, ()), place.offset, place.line, -1, place.handler), body.ops[9]]
        start.end, start.successors, start.end_op = g.JUMP, [after], None
        del blocks[head.id], blocks[inside]
    return graph if len(blocks) < len(given.blocks) else given


def _fills(start: Block, body: Block) -> bool:
    """Return whether two blocks are what torch's template compiles to: the part before the loop, and its body."""
    if tuple(op.kind for op in body.ops) != _BODY or tuple(op.kind for op in start.ops[-4:]) != _BEFORE:
        return False
    unpack, key, value, _, setitem, _, first, second, call, _ = body.ops
    _, items, no_arguments, _ = start.ops[-4:]
    return (unpack.arg == 2 and setitem.arg == "__setitem__" and call.arg == (3, ()) and items.arg == "items"
            and no_arguments.arg == (0, ()) and (first.arg, second.arg) == (key.arg, value.arg))


class Loops(Transformer):
    """A rewriting of the calls as loops again, in place; their variables have other names than those taken."""

    def __init__(self, tree: ast.Module) -> None:
        self.taken = {node.id for node in nodes_of(tree) if isinstance(node, ast.Name)}

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Return the loop for a call."""
        match node.value:
            case ast.Call(ast.Attribute(cls, attr), [target, entries]) if attr == UPDATE:
                key, value = free_name("key", self.taken), free_name("value", self.taken)
                self.taken |= {key, value}
                text = f"for {key}, {value} in entries.items(): cls.__setitem__(target, {key}, {value})"
                loop: ast.AST = ast.parse(text).body[0]
                Substitution({"entries": entries, "cls": cls, "target": target}).visit(loop)
                return loop
        return node
