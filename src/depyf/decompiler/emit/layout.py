"""Text of a syntax tree with lines that fit a screen, a longer one broken into one for each of its parts; blank lines.

``ast.unparse`` writes each statement on one line, however long. A statement that is too long is broken at its outermost
bracket, one item a line with a comma after each; an item that is still too long is broken in the same way.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ...bytecode.linetable import positions
from ..dynamo.global_names import NEW, SIDE_BY_SIDE
from ..nodes import SCOPES
from .text import parameters, unparse

if TYPE_CHECKING:
    from ..result import Decompiled

#: Columns of a line, as in the code of this project.
WIDTH = 120


def laid_out(tree: ast.Module, width: int = WIDTH) -> str:
    """Return the text of a module in lines of no more columns than that; a long name is not broken."""
    return _broken_lines(unparse(tree) + "\n", width)


def _broken_lines(text: str, width: int) -> str:
    lines = text.removesuffix("\n").split("\n")
    if max(map(len, lines)) <= width:
        return text
    try:
        statements = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # (it is too deep, or of a later Python)
        return text
    for statement in sorted(statements, key=lambda each: -each.lineno):  # (those before it keep their lines)
        at, indent = statement.lineno - 1, statement.col_offset
        head = lines[at]
        if isinstance(statement, SCOPES):
            if len(head) > width and head.endswith(":") and not getattr(statement, "type_params", None):
                lines[at : at + 1] = _head_of_definition(statement, width)
            for decorator in reversed(statement.decorator_list):
                _break(decorator, indent, width, lines)
        elif (expression := _breakable(statement, width)) is not None:
            _break(expression, indent, width, lines)
        elif isinstance(statement, ast.ImportFrom) and len(head) > width:
            start, _, names = head.partition(" import ")
            names_broken = _filled(names.split(", "), indent + 4, width)
            lines[at : at + 1] = [f"{start} import (", *names_broken, f"{' ' * indent})"]
    return "\n".join(lines) + "\n"


def with_short_lines(decompiled: Decompiled) -> Decompiled:
    """Return a decompilation with its text in lines that fit a screen (nothing is linked to these lines)."""
    text = _broken_lines(decompiled.text, WIDTH)
    same = text != decompiled.text and ast.dump(ast.parse(text)) == ast.dump(decompiled.tree)
    return replace(decompiled, text=text) if same else decompiled


def _breakable(statement: ast.stmt, width: int) -> ast.expr | None:
    """Return the expression of a statement, or of its head, that is broken where a line is too long."""
    match statement:
        case ast.Expr(ast.JoinedStr() | ast.Constant(str())):  # (the lines of a docstring are its content)
            return None
        case ast.Assert(ast.expr(end_col_offset=int(end)), ast.expr() as message) if end + len(", (") <= width:
            return message
        case ast.With(items=[ast.withitem(value)]) | ast.AsyncWith(items=[ast.withitem(value)]):
            return value
        case ast.Assign(value=value) | ast.AugAssign(value=value) | ast.AnnAssign(value=value) | ast.Return(value) \
                | ast.Expr(value) | ast.Raise(value) | ast.Assert(value) | ast.If(value) | ast.While(value) \
                | ast.For(iter=value) | ast.AsyncFor(iter=value):
            return value
    return None


def _break(node: ast.expr, indent: int, width: int, lines: list[str]) -> None:
    """Break the lines of an expression, in place, if one of them is too long."""
    assert node.end_lineno is not None and node.end_col_offset is not None
    first, last = node.lineno - 1, node.end_lineno - 1
    if max(map(len, lines[first : last + 1])) > width:
        head = lines[first].encode()[: node.col_offset].decode()
        tail = lines[last].encode()[node.end_col_offset :].decode()
        lines[first : last + 1] = _broken(node, head, tail, indent, width)


def _head_of_definition(
    statement: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, width: int,
) -> list[str]:
    """Return the lines of the head of a function or class that does not fit on one."""
    indent = statement.col_offset
    margin = " " * indent
    if isinstance(statement, ast.ClassDef):
        called = ast.Call(ast.Name(statement.name), statement.bases, statement.keywords)
        return _broken(called, f"{margin}class ", ":", indent, width)
    returns = f" -> {unparse(statement.returns)}" if statement.returns is not None else ""
    word = "async def" if isinstance(statement, ast.AsyncFunctionDef) else "def"
    return [f"{margin}{word} {statement.name}(", *_filled(parameters(statement.args), indent + 4, width),
            f"{margin}){returns}:"]


def _filled(items: list[str], indent: int, width: int) -> list[str]:
    """Return lines of items, as many as fit on each."""
    margin = " " * indent
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + len(item) + 3 <= width:
            lines[-1] += f" {item},"
        else:
            lines.append(f"{margin}{item},")
    return lines


def _broken(node: ast.expr, head: str, tail: str, indent: int, width: int, fits: bool = True) -> list[str]:
    """Return the lines of an expression after ``head`` and before ``tail``; if it ``fits``, it may be on one line."""
    text = unparse(node)
    if fits and "\n" not in text and len(head) + len(text) + len(tail) <= width:
        return [head + text + tail]
    parts = _parts(node)
    if isinstance(node, (ast.Constant, ast.JoinedStr)):
        alone = bool(head.strip())  # else it is in brackets, on a line of its own
        start = " " * (indent + 4) if alone else head
        pieces = [start + piece for piece in _pieces(node, width - len(start) - len(tail))]
        if len(pieces) > (0 if alone else 1):
            return [f"{head}(", *pieces, f"{' ' * indent}){tail}"] if alone else [*pieces[:-1], pieces[-1] + tail]
    if parts is None:
        return [head + text + tail]
    if isinstance(node, ast.GeneratorExp) and len(head) + len(parts[0]) > width:
        parts = _Parts("(", _comprehension(node), ")", "")
    opening, items, closing, comma = parts
    lines = [head + opening]
    if len(lines[0]) > width and isinstance(node, ast.Call):
        called: Any = node.func
        end = "("
        while isinstance(called, ast.Attribute):
            called, end = called.value, f".{called.attr}{end}"
        lines = _broken(called, head, end, indent, width)
        arguments = unparse(ast.Call(ast.Name("f"), node.args, node.keywords)).removeprefix("f(")
        if len(lines[-1]) + len(arguments) + len(tail) <= width:
            return [*lines[:-1], lines[-1] + arguments + tail]
    margin = " " * (indent + 4)
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    groups = _together(node)
    last = ""
    for at, item in enumerate(items):
        written = item.lines(margin, comma, indent + 4, width)
        group = groups[at] if at < len(groups) else ""
        if group and group == last and len(written) == 1 and len(lines[-1]) + len(written[0]) - len(margin) < width:
            lines[-1] += " " + written[0].lstrip()
        else:
            lines += written
        last = group if len(written) == 1 else ""
    return [*lines, " " * indent + closing + tail]


def _pieces(node: ast.Constant | ast.JoinedStr, room: int) -> list[str]:
    """Return the texts of the literals that a string is broken into, after spaces where that is possible."""
    parts: list[tuple[int, str | bytes | ast.FormattedValue]] = []
    for part in node.values if isinstance(node, ast.JoinedStr) else [node]:
        if not isinstance(part, ast.Constant):
            assert isinstance(part, ast.FormattedValue)
            parts.append((len(unparse(ast.JoinedStr([part]))) - 3, part))
        elif isinstance(part.value, (str, bytes)):
            words: Any = r"\S*[^\S\n]*\n?"  # (each with the spaces after it)
            words = re.findall(words if isinstance(part.value, str) else words.encode(), part.value)
            for word in words:
                step = max(room // 10, 1) if _columns(word) + 3 > room else len(word) or 1
                parts += [(_columns(word[at : at + step]), word[at : at + step]) for at in range(0, len(word), step)]
    groups: list[list[str | bytes | ast.FormattedValue]] = []
    used, ends_line = 0, True
    for columns, value in parts:
        if ends_line or used + columns + 3 > room:  # (two quotes and a prefix)
            groups.append([])
            used = 0
        groups[-1].append(value)
        used += columns
        ends_line = isinstance(value, str) and value.endswith("\n")
    return list(map(_piece, groups))


def _columns(part: str | bytes) -> int:
    """Return the most columns that a part of a string can take, with quotes escaped and braces doubled."""
    text = repr(part)
    return len(text) - 2 + sum(map(text.count, "'\"{}"))


def _piece(group: list[Any]) -> str:
    if any(isinstance(each, ast.FormattedValue) for each in group):
        return unparse(ast.JoinedStr([each if isinstance(each, ast.FormattedValue) else ast.Constant(each)
                                          for each in group]))
    return repr(group[0][:0].join(group))


def _together(node: ast.expr) -> list[str]:
    """Return for each item of a broken call or tuple the key of its group: neighbours with an equal key share a line.

    Parameters of one module are grouped (``norm.weight, norm.bias,``), a tensor and its sizes (``x.size(0), x,``), and
    simple values (``hidden_states=None, attentions=None,``). An empty key is no group.
    """
    match node:
        case ast.GeneratorExp():
            return _together(node.generators[-1].iter)
        case ast.Tuple() | ast.List():
            return list(map(_owner, node.elts))
        case ast.Dict():
            return ["simple" if _is_simple(value) else "" for value in node.values]
        case ast.Call(ast.Name(id=name)) if name == SIDE_BY_SIDE:
            return ["simple"] * len(node.args)
        case ast.Call(ast.Name(id=name)) if name == NEW:  # (the class, and the attributes of an object of it)
            keys = ["class"] * len(node.args)
        case ast.Call(args=[only], keywords=[]):
            return _together(only)
        case ast.Call():
            keys = list(map(_owner, node.args))
        case _:
            return []
    return [*keys, *("simple" if _is_simple(keyword.value) else "" for keyword in node.keywords)]


def _is_simple(node: ast.expr) -> bool:
    """Return whether a value says so little that others may be on its line."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    if isinstance(node, ast.Call):
        return not node.keywords and all(isinstance(argument, ast.Constant) for argument in node.args)
    return isinstance(node, (ast.Constant, ast.Name))


def _owner(node: ast.expr) -> str:
    """Return the object of an item: ``self.norm`` for ``self.norm.weight``, ``x`` for ``x.size(1)`` and ``x``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_simple(node):
        node = node.func
    if isinstance(node, ast.Attribute):
        return unparse(node.value)
    return unparse(node) if isinstance(node, (ast.Name, ast.Subscript)) else ""


class _Item(NamedTuple):
    """One of the parts that an expression is broken into: an expression, or a ``for`` of a comprehension.

    ``word`` comes before it; ``enclosed``: it is in parentheses, which are the brackets around it where it is broken.
    """

    node: ast.expr | ast.comprehension
    word: str = ""
    enclosed: bool = False

    def lines(self, head: str, tail: str, indent: int, width: int) -> list[str]:
        """Return its lines after ``head`` and before ``tail``."""
        node = self.node
        if isinstance(node, ast.comprehension):
            conditions = " ".join(f"if {unparse(test)}" for test in node.ifs)
            target = unparse(node.target)
            if isinstance(node.target, ast.Tuple) and len(node.target.elts) > 1:
                target = target[1:-1]
            start = f"{head}{'async ' if node.is_async else ''}for {target} in "
            written = _broken(node.iter, start, "" if conditions else tail, indent, width)
            if not conditions:
                return written
            if len(written[-1]) + 1 + len(conditions) + len(tail) <= width:
                return [*written[:-1], f"{written[-1]} {conditions}{tail}"]
            return [*written, f"{head}    {conditions}{tail}"]
        if not self.enclosed:
            return _broken(node, head + self.word, tail, indent, width)
        line = f"{head}{self.word}({unparse(node)}){tail}"
        if len(line) <= width or not isinstance(node, (ast.BoolOp, ast.BinOp, ast.Compare, ast.IfExp)):
            return [line]
        return _broken(node, head + self.word, tail, indent, width, fits=False)


class _Parts(NamedTuple):
    """The parts that an expression is broken into: its opening and closing text, its items, the text after each."""

    opening: str
    items: list[_Item]
    closing: str
    comma: str


def _parts(node: ast.expr) -> _Parts | None:
    """Return the parts that an expression is broken into; ``None`` where it cannot be broken."""
    match node:
        case ast.Call(args=[ast.GeneratorExp() as only], keywords=[]):
            return _Parts(f"{_called(node.func)}(", _comprehension(only), ")", "")
        case ast.Call(args=[ast.Dict() | ast.List() | ast.Tuple() as only], keywords=[]) if (hugged := _parts(only)):
            return _inside(f"{_called(node.func)}(", hugged, ")")
        case ast.Call(args=[], keywords=[]):
            return _inside("", _parts(node.func), "()")
        case ast.Call():
            named = [_Item(each.value, "**" if each.arg is None else f"{each.arg}=") for each in node.keywords]
            return _Parts(f"{_called(node.func)}(", _items(node.args) + named, ")", ",")
        case ast.List(elements) | ast.Set(elements) | ast.Tuple(elements) if elements:
            brackets = {ast.List: "[]", ast.Set: "{}", ast.Tuple: "()"}[type(node)]
            return _Parts(brackets[0], _items(elements), brackets[1], ",")
        case ast.Dict() if node.keys:
            return _Parts("{", list(map(_entry, node.keys, node.values)), "}", ",")
        case ast.GeneratorExp(generators=[*around, ast.comprehension(iter=ast.Tuple() as items, ifs=[]) as last]) \
                if items.elts:
            # ``(value for layer in self.layers for value in (`` on one line, each item on a line
            loops = [*around, ast.comprehension(last.target, ast.Name("_"), [], 0)]
            head = unparse(ast.GeneratorExp(node.elt, loops))[:-2]
            return _Parts(f"{head}(", _items(items.elts), "))", ",")
        case ast.GeneratorExp() | ast.ListComp() | ast.SetComp():
            brackets = {ast.GeneratorExp: "()", ast.ListComp: "[]", ast.SetComp: "{}"}[type(node)]
            return _Parts(brackets[0], _comprehension(node), brackets[1], "")
        case ast.DictComp():
            return _Parts("{", [_entry(node.key, node.value), *map(_Item, node.generators)], "}", "")
        case ast.Attribute():
            return _inside("", _parts(node.value), f".{node.attr}")
        case ast.Subscript(slice=ast.Constant()):
            return _inside("", _parts(node.value), f"[{unparse(node.slice)}]")
        case ast.Subscript():
            is_tuple = isinstance(node.slice, ast.Tuple)
            elements = node.slice.elts if isinstance(node.slice, ast.Tuple) and node.slice.elts else [node.slice]
            return _Parts(f"{_called(node.value)}[", _items(elements), "]", "," if is_tuple else "")
        case ast.BinOp():
            return _Parts("(", _chain(node), ")", "")
        case ast.BoolOp(values=[first, *rest]):
            word = "and " if isinstance(node.op, ast.And) else "or "
            return _Parts("(", [_operand(first), *(_operand(each, word) for each in rest)], ")", "")
        case ast.Compare():
            words = [unparse(ast.Compare(ast.Name("a"), [each], [ast.Name("b")]))[2:-1] for each in node.ops]
            return _Parts("(", [_operand(node.left), *map(_operand, node.comparators, words)], ")", "")
        case ast.IfExp(test, body, orelse):
            return _Parts("(", [_operand(body), _operand(test, "if "), _operand(orelse, "else ")], ")", "")
        case ast.UnaryOp(op=ast.Not()):
            return _inside("not ", _parts(node.operand), "")
    return None


def _inside(head: str, parts: _Parts | None, tail: str) -> _Parts | None:
    """Return parts with ``head`` before the opening text and ``tail`` after the closing text."""
    return None if parts is None else parts._replace(opening=head + parts.opening, closing=parts.closing + tail)


def _called(function: ast.expr) -> str:
    return unparse(ast.Call(function, [], []))[:-2]


def _items(nodes: Iterable[ast.expr]) -> list[_Item]:
    return [_operand(node.value, "*") if isinstance(node, ast.Starred) else _Item(node) for node in nodes]


def _entry(key: ast.expr | None, value: ast.expr) -> _Item:
    return _Item(value, "**" if key is None else f"{unparse(key)}: ")


#: The operators of each precedence that has more than one.
_SUMS, _PRODUCTS = (ast.Add, ast.Sub), (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.MatMult)


def _chain(node: ast.BinOp) -> list[_Item]:
    """Return the items of ``a + b - c``: each operand, with the operator before it."""
    level = next((level for level in (_SUMS, _PRODUCTS) if isinstance(node.op, level)), type(node.op))
    word = unparse(ast.BinOp(ast.Name("a"), node.op, ast.Name("b"))).split()[1]
    left = node.left
    is_longer = isinstance(left, ast.BinOp) and isinstance(left.op, level) and level is not ast.Pow
    before = _chain(left) if is_longer and isinstance(left, ast.BinOp) else [_grouped(node, left, "")]
    return [*before, _grouped(node, node.right, f"{word} ")]


def _grouped(outer: ast.BinOp, node: ast.expr, word: str) -> _Item:
    """Return the item of an operand of ``outer``, in parentheses where the operator requires them."""
    other = ast.Name("_", ast.Load())
    pair = unparse(ast.BinOp(node, outer.op, other) if node is outer.left else ast.BinOp(other, outer.op, node))
    alone = unparse(node)
    return _Item(node, word, alone not in pair or f"({alone})" in pair)


def _operand(node: ast.expr, word: str = "") -> _Item:
    return _Item(node, word, isinstance(node, (ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.NamedExpr))
                 or isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def _comprehension(node: ast.GeneratorExp | ast.ListComp | ast.SetComp) -> list[_Item]:
    """Return the items of a comprehension: the element, and each ``for`` on a line."""
    return [*_items([node.elt]), *map(_Item, node.generators)]


# --- blank lines between statements, where the line table shows lines without code -------------------
# Their text is lost: an empty line, or a comment. The proof says which line of the text each instruction became, and
# the line table where that was in the source; so the lines between two statements are known.
#
# Example: ``a = 1`` on line 3 and ``b = 2`` on line 5 have a blank line between them in the text.
def with_blank_lines(result: Decompiled) -> str:
    """Return the text, if it is proven, with a blank line where the source had lines that left nothing.

    Two at most beside the functions and classes of a module.
    """
    spans: dict[int, tuple[int, int]] = {}  # of each line of the text the first and last of the source
    for part in result.parts:
        places = positions(part.code) if part.code is not None else []
        for offset, line in part.line_map.items():
            place = places[offset // 2]
            if place is not None:
                first, last = spans.get(line, (place.line, 0))
                spans[line] = min(first, place.line), max(last, place.end_line)
    if not spans:
        return result.text
    ends_known = all(part.code is None or part.code.version >= (3, 11) for part in result.parts)
    blank: dict[int, int] = {}
    for node in ast.walk(ast.parse(result.text)):
        for suite in (getattr(node, field, None) for field in ("body", "orelse", "finalbody")):
            for one, other in zip(suite, suite[1:]) if isinstance(suite, list) else ():
                beside = isinstance(node, ast.Module) and (isinstance(one, SCOPES) or isinstance(other, SCOPES))
                blank[_first_text_line(other)] = min(_room(spans, one, other, ends_known), 2 if beside else 1)
    text: list[str] = []
    for number, line_text in enumerate(result.text.split("\n"), 1):
        there = 0
        while there < len(text) and not text[-1 - there]:
            there += 1
        text += [""] * (blank.get(number, 0) - there)
        text.append(line_text)
    return "\n".join(text)


def _first_text_line(stmt: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(stmt, "decorator_list", [])
    return min([stmt.lineno, *(each.lineno for each in decorators)])


def _room(spans: dict[int, tuple[int, int]], one: ast.stmt, other: ast.stmt, ends_known: bool) -> int:
    """Return how many lines of the source are between two statements; 0 where that is not known."""
    before, following = ([spans[line] for line in range(_first_text_line(stmt), (stmt.end_lineno or 0) + 1)
                          if line in spans] for stmt in (one, other))
    ends, begins = [last for _, last in before], [first for first, _ in following]
    if not ends or not begins:
        return 0
    # (Where only lines are known, a statement of several may go on after its last instruction: to a parenthesis.)
    beyond = not ends_known and not hasattr(one, "body") and max(ends) > min(first for first, _ in before)
    return max(min(begins) - max(ends) - 1 - beyond, 0)
