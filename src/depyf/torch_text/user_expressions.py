"""Torch's source expressions as the user would write them.

Torch names each value by how it reads it from a frame (``torch/_guards.py``, ``Source.name``)::

    L['self']._modules['layers']._modules['0'].self_attn._parameters['weight']    torch
    self.layers[0].self_attn.weight                                               the user

These are words only: whether ``self.layers`` really is ``self._modules['layers']`` is checked on the live modules where
that matters (transformed code; not a label).
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Mapping
from functools import lru_cache

from ..decompiler.dynamo.global_names import BUILTINS_PREFIX, IMPORT_PREFIXES, MODULE_DICTIONARIES, module_of_import
from .parsed import parsed_expression


def user_expression(source: str) -> str:
    """Return a source expression of torch's, ``L['self']._modules['norm']``, in the user's words.

    A longer one (a condition) may contain such expressions. Where it is no Python expression, it is returned as it is,
    or with its simple parts rewritten.
    """
    if ".__dict__[" in source:
        source = _MEMBER_OF_DICTIONARY.sub(r".\1", source)
    source = source.replace(FROM_NUMPY, "torch.as_tensor(")
    if not _PARSED.search(source):
        text = FRAME_PATH.sub(lambda path: _path_in_words(path[0]), source)
        if not _OTHER_MEMBER.search(text):
            return text
    return _rewritten(source)


#: The call of torch's helper of guards by which it takes an array of numpy's for a tensor.
FROM_NUMPY = "___from_numpy("
#: By which torch reads members of a module whose attributes are set while it is traced.
_MEMBER_OF_DICTIONARY = re.compile(r"\.__dict__\['(_modules|_parameters|_buffers)'\](?=\[')")
_KEYWORDS = "|".join(keyword.kwlist)
#: A path of torch's from a frame to a value: ``L['self']._modules['norm'].weight``. It is one Python expression.
FRAME_PATH = re.compile(
    rf"(?<![\w'])[LG]\['[^'\\\n]*'\](?:\.(?!(?:{_KEYWORDS})\b)[A-Za-z_]\w*|\[(?:'[^'\\\n]*'|0|[1-9]\d*)\])*")
_ROOTS = re.compile(r"\b[LG]\['([^'\\]*)'\]")
_LOCAL = re.compile(rf"L\['(?!(?:{_KEYWORDS})')([A-Za-z_]\w*)'\]")
_MEMBER = re.compile(
    rf"\._(?:modules|parameters|buffers)\['(?:(?!(?:{_KEYWORDS})')(?P<member>[A-Za-z_]\w*)|(?P<index>0|[1-9]\d*))'\]")
#: Forms that have to be parsed as a whole.
_PARSED = re.compile(r'["\\\n]|dict\(type\(|(?:dict|list)\.__getitem__\(|dict\.keys\(')
#: Members of modules that are not read by their names, or not from a path.
_OTHER_MEMBER = re.compile(r"\._(?:modules|parameters|buffers)\[")


@lru_cache(maxsize=16384)
def _path_in_words(path: str) -> str:
    """Return the same for a path: of a local variable without parsing it, as a large model has thousands of them."""
    local = _LOCAL.match(path)
    text = "" if local is None else local[1] + _MEMBER.sub(
        lambda step: f".{step['member']}" if step["member"] else f"[{step['index']}]", path[local.end() :])
    return text if text and not _OTHER_MEMBER.search(text) else _rewritten(path)


@lru_cache(maxsize=65536)
def _rewritten(source: str) -> str:
    tree = parsed_expression(source.strip())
    if tree is None:
        return source
    return ast.unparse(_UserWords().visit(tree))


def frame_roots(expression: str) -> frozenset[str]:
    """Return the names of the locals and globals that a condition reads."""
    return frozenset(_ROOTS.findall(expression))


def is_global(source: str) -> bool:
    """Return whether a value is read from a global name."""
    return source.startswith("G[")


class _UserWords(ast.NodeTransformer):
    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        key = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if not isinstance(key, str):
            self.generic_visit(node)
            return node
        match node.value:
            case ast.Name("L"):
                return _name(key) or node
            case ast.Name("G"):
                return _global(key)
            case ast.Name(root) | ast.Subscript(ast.Name("G"), ast.Constant(str(root))) \
                    if root.startswith(BUILTINS_PREFIX):
                return _name(key) or node
        self.generic_visit(node)
        match node.value:
            case ast.Attribute(ast.Call(ast.Name("type"), [_])  # what a class, or a base of it, defines
                               | ast.Subscript(ast.Attribute(_, "__mro__")) as owner, "__dict__") if key.isidentifier():
                return ast.Attribute(owner, key, ast.Load())
            case ast.Attribute(owner, name) if name in MODULE_DICTIONARIES:
                return _member(owner, key) or node
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Name("dict"), [ast.Attribute(_, "__dict__") as owner], []):
                return owner  # what a class itself defines
            case ast.Call(ast.Name("list") as function, [
                    ast.Call(ast.Attribute(ast.Name("dict"), "keys"), [owner], [])], []):
                return ast.Call(function, [owner], [])
            case ast.Call(ast.Attribute(ast.Name("dict" | "list"), "__getitem__"), [owner, key], []):
                match key:
                    case ast.Subscript(ast.Call(ast.Name("list") as of, [same], []), ast.Constant(int()) as index) \
                            if ast.unparse(same) == ast.unparse(owner):  # the n-th value
                        values = ast.Call(ast.Attribute(owner, "values", ast.Load()), [], [])
                        return ast.Subscript(ast.Call(of, [values], []), index, ast.Load())
                return ast.Subscript(owner, key, ast.Load())
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return _global(node.id) if node.id.startswith(IMPORT_PREFIXES) else node


def _global(name: str) -> ast.expr:
    return parsed_expression(module_of_import(name) or name) or ast.Name(name, ast.Load())


def _member(owner: ast.expr, key: str) -> ast.expr | None:
    """Return ``owner.key``, or ``owner[3]`` in a list of modules; ``None`` where there is no such form."""
    if key.isidentifier() and not keyword.iskeyword(key):
        return ast.Attribute(owner, key, ast.Load())
    if re.fullmatch(r"0|[1-9]\d*", key):
        return ast.Subscript(owner, ast.Constant(int(key)), ast.Load())
    return None


def _name(key: str) -> ast.expr | None:
    return ast.Name(key, ast.Load()) if key.isidentifier() and not keyword.iskeyword(key) else None


# --- sizes, keyword arguments, values of the stack ----------------------------------------------------
_SIZE = re.compile(r"\.(?P<method>size|stride)\(\)\[(?P<index>\d+)\]")
_STACK_VALUE = re.compile(r"___stack\d+")
_STACK = re.compile(r"\b(?P<place>___stack\d+)\b(?:\[(?P<index>\d+)\])?")
#: The text around an expression that is part of no larger one than a call, or of a row in words.
_OPENED, _CLOSED = re.compile(r"(?:^|[(\[{,:]|->)\s*$"), re.compile(r"\s*(?:$|[)\]},:]|->)")
#: The arguments of a wrapper of the user's function, by name.
_KEYWORD = re.compile(r"(?<![\w.\])])kwargs\['(?P<name>[A-Za-z_]\w*)'\]")


def in_words(expression: str, names: Mapping[str, str]) -> str:
    """Return an expression of torch's in the user's words, sizes and values of the stack (``names``) included."""
    text = _KEYWORD.sub(r"\g<name>", user_expression(expression))
    text = with_stack_names(with_sizes(text), names)
    for known in names.values():
        if f"{known}.__self__" in text and isinstance(parsed_expression(known), ast.Attribute):
            text = text.replace(f"{known}.__self__", known.rpartition(".")[0])  # (what a bound method is of)
    return text


def with_sizes(expression: str) -> str:
    """Return an expression with ``x.shape[0]`` for ``x.size()[0]``, and ``x.stride(0)`` for ``x.stride()[0]``."""
    return _SIZE.sub(
        lambda m: f".shape[{m['index']}]" if m["method"] == "size" else f".stride({m['index']})", expression)


def sources_of(sources: str) -> list[str]:
    """Return the values that a symbol of torch's is; ``sources`` lists them (one may be ``list.__getitem__(x, 0)``)."""
    tree = parsed_expression(f"[{sources}]") if ", " in sources else None
    return [ast.unparse(each) for each in tree.elts] if isinstance(tree, ast.List) else [
        each for each in sources.split(", ") if each]


def sources_in_words(sources: str, names: Mapping[str, str]) -> list[str]:
    """Return the same in the user's words."""
    return [in_words(each, names) for each in sources_of(sources)]


def stack_value(source: str) -> str:
    """Return the name of a value of the stack at a graph break, ``___stack0``, if a source is one; else ``""``."""
    text = user_expression(source)
    return text if _STACK_VALUE.fullmatch(text) else ""


@lru_cache(maxsize=1024)
def known_on_stack(stack: tuple[str, ...]) -> Mapping[str, str]:
    """Return the known values of the stack at a graph break, by torch's names: ``{"___stack1": "y.sum()"}``."""
    return {f"___stack{number}": expression for number, expression in enumerate(stack) if expression}


def stack_values_in(text: str) -> list[str]:
    """Return the values of the stack that a text names, as often as it does: ``["___stack0", "___stack0"]``."""
    return [match["place"] for match in _STACK.finditer(text)]


def reads_stack(expression: str) -> bool:
    """Return whether an expression reads a value of the stack at a graph break."""
    return _STACK.search(expression) is not None


def with_stack_names(text: str, names: Mapping[str, str]) -> str:
    """Return a text with the user's expressions in place of ``___stack0``, in parentheses where Python wants them.

    ``___stack0[1]`` of a tuple or list that the user's line makes is its element.
    """
    def named(match: re.Match[str]) -> str:
        known, before, after = names.get(match["place"], ""), text[: match.start()], text[match.end():]
        if not known or match["index"] is None:
            return _as_part(known, before, after) if known else match[0]
        node, index = parsed_expression(known), int(match["index"])
        if isinstance(node, (ast.Tuple, ast.List)) and index < len(node.elts) and not any(
                isinstance(each, ast.Starred) for each in node.elts) and (
                element := ast.get_source_segment(known, node.elts[index])):
            return _as_part(element, before, after)
        return f"{_as_part(known, before, f'[{index}]')}[{match['index']}]"

    return _STACK.sub(named, text)


def _as_part(expression: str, before: str, after: str) -> str:
    """Return an expression as it is written between two texts: in parentheses where it would read otherwise."""
    node, longer = parsed_expression(expression), parsed_expression(f"{expression}.part")
    if node is not None and isinstance(longer, ast.Attribute) and ast.dump(longer.value) == ast.dump(node):
        return expression  # it is whole in front of a dot
    alone = _OPENED.search(before) is not None and _CLOSED.match(after) is not None
    return expression if alone and not isinstance(node, (ast.Tuple, ast.NamedExpr)) else f"({expression})"


# --- steps -------------------------------------------------------------------------------------------
_STEP = re.compile(r"\._(?:modules|parameters|buffers)(?=\[)|\[(?P<index>[^\[\]]*)\]|\.(?P<name>\w+)(?P<call>\(\))?")


@lru_cache(maxsize=4096)
def path_steps(source: str) -> list[str]:
    """Return the steps of the path to a guarded object.

    ``L['self']._modules['layers']._modules[i].x`` is L, self, layers, [i], x.
    """
    begin = re.match(r"\w+(?=[.\[]|$)", source)
    if begin is None:
        return [source] if source else []
    steps, at = [begin[0]], begin.end()
    while at < len(source):
        step = _STEP.match(source, at)
        if step is None:
            return [*steps, source[at:]]
        at, text = step.end(), step["index"]
        if step["name"]:
            steps.append(step["name"] + (step["call"] or ""))
        elif text is not None:
            steps.append(text[1:-1] if text[:1] == text[-1:] == "'" and len(text) > 2 else f"[{text}]")
    return steps
