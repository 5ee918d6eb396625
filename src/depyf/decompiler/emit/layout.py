"""Text of a syntax tree with lines that fit a screen: a longer line is broken into one for each of its parts.

``ast.unparse`` writes each statement on one line, however long. A statement that is too long is broken at its outermost
bracket, one item a line with a comma after each; an item that is still too long is broken in the same way.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..dynamo.global_names import NEW, SIDE_BY_SIDE
from ..nodes import SCOPES, suites_of
from ..unparse import unparse

#: Columns of a line, as in the code of this project.
WIDTH = 120


def laid_out(tree: ast.Module, width: int = WIDTH) -> str:
    """Return the text of a module.

    Args:
        tree: the module, with line numbers as ``ast.unparse`` requires.
        width: columns that no line should exceed. (A long name is not broken.)
    """
    text = unparse(tree)
    if len(text) < width or max(map(len, text.splitlines()), default=0) <= width:
        return text + "\n"
    lines: list[str] = []
    for statement in tree.body:
        _write(statement, 0, width, lines)
    return "\n".join(lines) + "\n"


def _write(statement: ast.stmt, indent: int, width: int, lines: list[str]) -> None:
    margin = " " * indent
    if isinstance(statement, SCOPES):
        _write_definition(statement, indent, width, lines)
    elif isinstance(statement, ast.If):
        _write_if(statement, "if", indent, width, lines)
    elif suites_of(statement):
        _write_blocks(statement, indent, width, lines)
    else:
        first, *inside = unparse(statement).splitlines()  # (lines of a string, if there is more than one)
        fits = max(len(margin) + len(first), *map(len, inside), 0) <= width
        broken = None if fits or _is_text(statement) else _broken_statement(statement, indent, width)
        lines += broken if broken is not None else [margin + first, *inside]


def _write_definition(
    statement: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, indent: int, width: int, lines: list[str],
) -> None:
    margin = " " * indent
    if lines and lines[-1].strip() and not lines[-1].endswith(":"):
        lines.append("")
    for decorator in statement.decorator_list:
        lines += _broken(decorator, f"{margin}@", "", indent, width)
    alone = copy.copy(statement)
    alone.body, alone.decorator_list = [ast.Pass()], []
    head = [margin + line for line in unparse(alone).splitlines()[:-1] if line]
    if len(head) == 1 and len(head[0]) > width and not getattr(statement, "type_params", None):
        head = _head_of_definition(statement, indent, width)
    lines += head
    body = statement.body
    if _is_text(body[0]):
        # as it is: its lines are its content
        text = unparse(ast.FunctionDef("_", ast.arguments([], [], None, [], [], None, []), body[:1], [], lineno=1))
        first, *inside = text.splitlines()[1:]
        lines += [margin + first, *inside]
        body = body[1:]
    for inner in body:
        _write(inner, indent + 4, width, lines)


def _head_of_definition(
    statement: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, indent: int, width: int,
) -> list[str]:
    """Return the lines of the head of a function or class that does not fit on one."""
    margin = " " * indent
    if isinstance(statement, ast.ClassDef):
        called = ast.Call(ast.Name(statement.name), statement.bases, statement.keywords)
        return _broken(called, f"{margin}class ", ":", indent, width)
    returns = f" -> {unparse(statement.returns)}" if statement.returns is not None else ""
    word = "async def" if isinstance(statement, ast.AsyncFunctionDef) else "def"
    return [f"{margin}{word} {statement.name}(", *_filled(_parameters(statement.args), indent + 4, width),
            f"{margin}){returns}:"]


def _write_if(statement: ast.If, word: str, indent: int, width: int, lines: list[str]) -> None:
    margin = " " * indent
    lines += _broken(statement.test, f"{margin}{word} ", ":", indent, width)
    for inner in statement.body:
        _write(inner, indent + 4, width, lines)
    if len(statement.orelse) == 1 and isinstance(statement.orelse[0], ast.If):
        _write_if(statement.orelse[0], "elif", indent, width, lines)
    elif statement.orelse:
        lines.append(f"{margin}else:")
        for inner in statement.orelse:
            _write(inner, indent + 4, width, lines)


def _parameters(arguments: ast.arguments) -> list[str]:
    """Return each parameter as text, in order."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults += arguments.defaults
    texts = []
    for index, (each, default) in enumerate(zip(positional, defaults)):
        texts.append(_parameter(each, default))
        if arguments.posonlyargs and index == len(arguments.posonlyargs) - 1:
            texts.append("/")
    if arguments.vararg is not None:
        texts.append("*" + _parameter(arguments.vararg, None))
    elif arguments.kwonlyargs:
        texts.append("*")
    texts += [_parameter(each, default) for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    if arguments.kwarg is not None:
        texts.append("**" + _parameter(arguments.kwarg, None))
    return texts


def _parameter(each: ast.arg, default: ast.expr | None) -> str:
    text = each.arg + (f": {unparse(each.annotation)}" if each.annotation is not None else "")
    if default is None:
        return text
    return f"{text} = {unparse(default)}" if each.annotation is not None else f"{text}={unparse(default)}"


def _filled(items: list[str], indent: int, width: int) -> list[str]:
    """Return lines of items, as many as fit on each."""
    margin = " " * indent
    lines: list[str] = []
    line = ""
    for item in items:
        if line and len(margin) + len(line) + len(item) + 3 > width:
            lines.append(margin + line)
            line = ""
        line += f"{' ' if line else ''}{item},"
    return [*lines, margin + line] if line else lines


def _write_blocks(statement: ast.stmt, indent: int, width: int, lines: list[str]) -> None:
    """Append the lines of a compound statement; its head is broken where it is too long."""
    blocks = suites_of(statement)
    written = [" " * indent + line for line in unparse(_without_blocks(statement)).splitlines()]
    head = _head(statement, indent, width) if len(written[0]) > width else []
    for line in [*head, *written[bool(head):]]:
        if line.strip() == "pass" and blocks:
            for inner in blocks.pop(0):
                _write(inner, len(line) - len("pass"), width, lines)
        else:
            lines.append(line)


def _without_blocks(node: Any) -> Any:
    """Return a compound statement, or a handler or case of one, with only ``pass`` in its blocks."""
    alone = copy.copy(node)
    for name in ("body", "orelse", "finalbody"):
        if getattr(alone, name, None):
            setattr(alone, name, [ast.Pass()])
    for name in ("handlers", "cases"):
        if getattr(alone, name, None):
            setattr(alone, name, list(map(_without_blocks, getattr(alone, name))))
    return alone


def _head(statement: ast.stmt, indent: int, width: int) -> list[str]:
    """Return the lines of the head of a loop or ``with``; none for a statement whose head is not broken."""
    margin = " " * indent
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        word = "async for" if isinstance(statement, ast.AsyncFor) else "for"
        return _broken(statement.iter, f"{margin}{word} {_target(statement.target)} in ", ":", indent, width)
    if isinstance(statement, ast.While):
        return _broken(statement.test, f"{margin}while ", ":", indent, width)
    if isinstance(statement, (ast.With, ast.AsyncWith)) and len(statement.items) == 1:
        word = "async with" if isinstance(statement, ast.AsyncWith) else "with"
        (only,) = statement.items
        name = f" as {unparse(only.optional_vars)}" if only.optional_vars is not None else ""
        return _broken(only.context_expr, f"{margin}{word} ", f"{name}:", indent, width)
    return []


def _target(node: ast.expr) -> str:
    """Return the text of the target of a loop, a tuple without parentheses."""
    text = unparse(node)
    return text[1:-1] if isinstance(node, ast.Tuple) and len(node.elts) > 1 else text


def _is_text(statement: ast.stmt) -> bool:
    """Return whether a statement is nothing but a string, as a docstring is."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) \
        and isinstance(statement.value.value, str)


def _broken_statement(statement: ast.stmt, indent: int, width: int) -> list[str] | None:
    """Return the lines of a simple statement whose value is broken; ``None`` for other statements."""
    text = unparse(statement)
    start = -1
    match statement:
        case ast.Expr(ast.JoinedStr()):
            return None
        case ast.Assign(value=value) | ast.AugAssign(value=value) | ast.AnnAssign(value=value) \
                | ast.Return(value) | ast.Expr(value):
            start = len(text) - len(unparse(value)) if value is not None else -1
        case ast.Raise(value):
            start = len("raise ")
        case ast.Assert(value, message):
            start = len("assert ")
            if message is not None and indent + start + len(unparse(value)) + len(", (") <= width:
                value, start = message, len(text) - len(unparse(message))
        case ast.ImportFrom():
            names = [name.name + (f" as {name.asname}" if name.asname else "") for name in statement.names]
            return [f"{' ' * indent}{text[:text.index(' import ')]} import (",
                    *_filled(names, indent + 4, width), f"{' ' * indent})"]
        case _:
            return None
    if value is None or not text.startswith(unparse(value), start):
        return None
    return _broken(value, " " * indent + text[:start], text[start + len(unparse(value)):], indent, width)


def _broken(node: ast.expr, head: str, tail: str, indent: int, width: int, fits: bool = True) -> list[str]:
    """Return the lines of an expression after ``head`` and before ``tail``.

    Args:
        indent: of the statement or item that it belongs to.
        fits: whether it may be on one line, if it fits there.
    """
    text = unparse(node)
    if fits and "\n" not in text and len(head) + len(text) + len(tail) <= width:
        return [head + text + tail]
    if isinstance(node, (ast.Constant, ast.JoinedStr)):
        return _broken_string(node, head, tail, indent, width)
    parts = _parts(node)
    if parts is None:
        return [head + text + tail]
    if isinstance(node, ast.GeneratorExp) and len(head) + len(parts[0]) > width:
        parts = _Parts("(", _comprehension(node), ")", "")
    opening, items, closing, comma = parts
    lines = [head + opening]
    if len(lines[0]) > width and isinstance(node, ast.Call):
        lines = _called_broken(node.func, head, "(", indent, width)
        arguments = unparse(ast.Call(ast.Name("f"), node.args, node.keywords)).removeprefix("f(")
        if len(lines[-1]) + len(arguments) + len(tail) <= width:
            return [*lines[:-1], lines[-1] + arguments + tail]
    margin = " " * (indent + 4)
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    groups = _together(node)
    last = ""
    for at, item in enumerate(items):
        written = item(margin, comma, indent + 4, width)
        group = groups[at] if at < len(groups) else ""
        if group and group == last and len(written) == 1 and len(lines[-1]) + len(written[0]) - len(margin) < width:
            lines[-1] += " " + written[0].lstrip()
        else:
            lines += written
        last = group if len(written) == 1 else ""
    return [*lines, " " * indent + closing + tail]


def _broken_string(node: ast.Constant | ast.JoinedStr, head: str, tail: str, indent: int, width: int) -> list[str]:
    """Return the lines of a string, as several literals that Python joins; of any other constant as it is."""
    alone = bool(head.strip())  # else it is in brackets, on a line of its own
    margin = " " * (indent + 4) if alone else head
    pieces = _pieces(node, width - len(margin) - len(tail))
    if not pieces or len(pieces) == 1 and not alone:
        return [head + unparse(node) + tail]
    lines = [margin + piece for piece in pieces]
    if alone:
        return [f"{head}(", *lines, f"{' ' * indent}){tail}"]
    return [*lines[:-1], lines[-1] + tail]


def _words(text: str | bytes) -> list[str] | list[bytes]:
    """Return the words of a text, each with the spaces after it."""
    pattern = r"\S*[^\S\n]*\n?"
    return re.findall(pattern, text) if isinstance(text, str) else re.findall(pattern.encode(), text)


def _pieces(node: ast.Constant | ast.JoinedStr, room: int) -> list[str]:
    """Return the texts of the literals that a string is broken into, after spaces where that is possible."""
    parts: list[tuple[int, str | bytes | ast.FormattedValue]] = []
    for part in node.values if isinstance(node, ast.JoinedStr) else [node]:
        if not isinstance(part, ast.Constant):
            assert isinstance(part, ast.FormattedValue)
            parts.append((len(unparse(ast.JoinedStr([part]))) - 3, part))
        elif isinstance(part.value, (str, bytes)):
            for word in _words(part.value):
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


def _called_broken(node: ast.expr, head: str, tail: str, indent: int, width: int) -> list[str]:
    """Return the lines of a called expression that is too long for one."""
    if isinstance(node, ast.Attribute):
        return _called_broken(node.value, head, f".{node.attr}{tail}", indent, width)
    return _broken(node, head, tail, indent, width)


def _together(node: ast.expr) -> list[str]:
    """Return for each item of a broken call or tuple the key of its group: neighbours with an equal key share a line.

    Parameters of one module are grouped (``norm.weight, norm.bias,``), a tensor and its sizes (``x.size(0), x,``), and
    keywords and entries with simple values (``hidden_states=None, attentions=None,``). An empty key is no group.
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
    """Return the text of the object that an item belongs to; empty where it has none.

    It is ``self.norm`` for ``self.norm.weight``, and ``x`` for ``x.size(1)`` and ``x`` itself.
    """
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_simple(node):
        node = node.func
    if isinstance(node, ast.Attribute):
        return unparse(node.value)
    return unparse(node) if isinstance(node, (ast.Name, ast.Subscript)) else ""


_Item = Callable[[str, str, int, int], list[str]]


class _Parts(NamedTuple):
    """The parts that an expression is broken into: its opening and closing text, its items, the text after each."""

    opening: str
    items: list[_Item]
    closing: str
    comma: str


def _parts(node: ast.expr) -> _Parts | None:
    """Return the parts that an expression is broken into; ``None`` where it cannot be broken."""
    match node:
        case ast.Call():
            return _parts_of_call(node)
        case ast.List() if node.elts:
            return _Parts("[", _items(node.elts), "]", ",")
        case ast.Set() if node.elts:
            return _Parts("{", _items(node.elts), "}", ",")
        case ast.Tuple() if node.elts:
            return _Parts("(", _items(node.elts), ")", ",")
        case ast.Dict() if node.keys:
            return _Parts("{", list(map(_entry, node.keys, node.values)), "}", ",")
        case ast.GeneratorExp(generators=[*around, ast.comprehension(iter=ast.Tuple() as items, ifs=[]) as last]) \
                if items.elts:
            # ``(value for layer in self.layers for value in (`` on one line, each item on a line
            loops = [*around, ast.comprehension(last.target, ast.Name("_"), [], 0)]
            head = unparse(ast.GeneratorExp(node.elt, loops))[:-2]
            return _Parts(f"{head}(", _items(items.elts), "))", ",")
        case ast.GeneratorExp():
            return _Parts("(", _comprehension(node), ")", "")
        case ast.ListComp():
            return _Parts("[", _comprehension(node), "]", "")
        case ast.SetComp():
            return _Parts("{", _comprehension(node), "}", "")
        case ast.DictComp():
            return _Parts("{", [_entry(node.key, node.value), *map(_loop, node.generators)], "}", "")
        case ast.Attribute():
            return _inside("", _parts(node.value), f".{node.attr}")
        case ast.Subscript(slice=ast.Constant()):
            return _inside("", _parts(node.value), f"[{unparse(node.slice)}]")
        case ast.Subscript():
            is_tuple = isinstance(node.slice, ast.Tuple)
            elements = node.slice.elts if isinstance(node.slice, ast.Tuple) and node.slice.elts else [node.slice]
            return _Parts(f"{_called(node.value)}[", _items(elements), "]", "," if is_tuple else "")
        case ast.BinOp():
            operator = unparse(ast.BinOp(ast.Name("a"), node.op, ast.Name("b"))).split()[1]
            return _Parts("(", [_grouped(node, node.left, ""), _grouped(node, node.right, f"{operator} ")], ")", "")
        case ast.BoolOp():
            word = "and" if isinstance(node.op, ast.And) else "or"
            first, *rest = node.values
            return _Parts("(", [_operand(first, ""), *(_operand(each, f"{word} ") for each in rest)], ")", "")
        case ast.Compare():
            words = [unparse(ast.Compare(ast.Name("a"), [each], [ast.Name("b")]))[2:-1] for each in node.ops]
            return _Parts("(", [_operand(node.left, ""), *map(_operand, node.comparators, words)], ")", "")
        case ast.IfExp():
            operands = [_operand(node.body, ""), _operand(node.test, "if "), _operand(node.orelse, "else ")]
            return _Parts("(", operands, ")", "")
        case ast.UnaryOp(op=ast.Not()):
            return _inside("not ", _parts(node.operand), "")
    return None


def _parts_of_call(node: ast.Call) -> _Parts | None:
    called = _called(node.func)
    match node:
        case ast.Call(args=[ast.GeneratorExp() as only], keywords=[]):
            return _Parts(f"{called}(", _comprehension(only), ")", "")
        case ast.Call(args=[ast.Dict() | ast.List() | ast.Tuple() as only], keywords=[]) if (hugged := _parts(only)):
            return _inside(f"{called}(", hugged, ")")
    items = _items(node.args)
    items += [_item(each.value, "**" if each.arg is None else f"{each.arg}=") for each in node.keywords]
    return _Parts(f"{called}(", items, ")", ",") if items else _inside("", _parts(node.func), "()")


def _inside(head: str, parts: _Parts | None, tail: str) -> _Parts | None:
    """Return parts with ``head`` before the opening text and ``tail`` after the closing text."""
    return None if parts is None else parts._replace(opening=head + parts.opening, closing=parts.closing + tail)


def _called(function: ast.expr) -> str:
    return unparse(ast.Call(function, [], []))[:-2]


def _item(node: ast.expr, prefix: str = "") -> _Item:
    return lambda head, tail, indent, width: _broken(node, head + prefix, tail, indent, width)


def _items(nodes: Iterable[ast.expr]) -> list[_Item]:
    return [_item(node.value, "*") if isinstance(node, ast.Starred) else _item(node) for node in nodes]


def _entry(key: ast.expr | None, value: ast.expr) -> _Item:
    return _item(value, "**" if key is None else f"{unparse(key)}: ")


def _grouped(outer: ast.BinOp, node: ast.expr, word: str) -> _Item:
    """Return the item of an operand of ``outer``, in parentheses where the operator requires them."""
    other = ast.Name("_", ast.Load())
    pair = ast.BinOp(node, outer.op, other) if node is outer.left else ast.BinOp(other, outer.op, node)
    alone = unparse(node)
    if alone in unparse(pair) and f"({alone})" not in unparse(pair):
        return _item(node, word)
    return _in_parentheses(node, word)


def _in_parentheses(node: ast.expr, word: str) -> _Item:
    """Return the item of an operand in parentheses; where it is broken, those are the brackets around it."""
    def item(head: str, tail: str, indent: int, width: int) -> list[str]:
        line = f"{head}{word}({unparse(node)}){tail}"
        if len(line) <= width or not isinstance(node, (ast.BoolOp, ast.BinOp, ast.Compare, ast.IfExp)):
            return [line]
        return _broken(node, head + word, tail, indent, width, fits=False)

    return item


def _operand(node: ast.expr, word: str) -> _Item:
    if isinstance(node, (ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda, ast.NamedExpr)) or \
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return _in_parentheses(node, word)
    return _item(node, word)


def _comprehension(node: ast.GeneratorExp | ast.ListComp | ast.SetComp) -> list[_Item]:
    """Return the items of a comprehension: the element, and each ``for`` on a line."""
    return [*_items([node.elt]), *map(_loop, node.generators)]


def _loop(loop: ast.comprehension) -> _Item:
    conditions = " ".join(f"if {unparse(test)}" for test in loop.ifs)
    head = f"{'async ' if loop.is_async else ''}for {_target(loop.target)} in "

    def item(start: str, tail: str, indent: int, width: int) -> list[str]:
        written = _broken(loop.iter, start + head, "" if conditions else tail, indent, width)
        if not conditions:
            return written
        if len(written[-1]) + 1 + len(conditions) + len(tail) <= width:
            return [*written[:-1], f"{written[-1]} {conditions}{tail}"]
        return [*written, f"{start}    {conditions}{tail}"]

    return item
