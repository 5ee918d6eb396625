"""Text of a syntax tree with lines that fit a screen: what is too long gets a line for each of its parts.

``ast.unparse`` writes each statement on one line, however long. A statement that is too long is broken at its outermost
bracket, one item a line with a comma behind each; an item that is still too long is broken in the same way.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

#: Columns of a line, as in the code of this project.
WIDTH = 120


def laid_out(tree: ast.Module, width: int = WIDTH) -> str:
    """Return the text of a module.

    Args:
        tree: the module, with line numbers as ``ast.unparse`` asks for.
        width: columns that no line should exceed. (A long name or string is not broken.)
    """
    text = ast.unparse(tree)
    if len(text) < width or max(map(len, text.splitlines()), default=0) <= width:
        return text + "\n"
    lines: list[str] = []
    for statement in tree.body:
        _write(statement, 0, width, lines)
    return "\n".join(lines) + "\n"


_COMPOUND = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.AsyncFor, ast.While, ast.With,
             ast.AsyncWith)


def _write(statement: ast.stmt, indent: int, width: int, lines: list[str]) -> None:
    text = ast.unparse(statement)
    written = text.splitlines()
    margin = " " * indent
    if max(map(len, written), default=0) + indent <= width or _has_text_over_lines(statement):
        lines += [margin + line if line else line for line in written]
        return
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        _write_function(statement, indent, width, lines)
    elif isinstance(statement, ast.If):
        _write_if(statement, "if", indent, width, lines)
    elif isinstance(statement, (ast.For, ast.With, ast.While, ast.Try)):
        _write_blocks(statement, written, indent, width, lines)
    else:
        broken = _broken_statement(statement, indent, width)
        lines += broken if broken is not None else [margin + line if line else line for line in written]


def _write_function(
    statement: ast.FunctionDef | ast.AsyncFunctionDef, indent: int, width: int, lines: list[str],
) -> None:
    margin = " " * indent
    for decorator in statement.decorator_list:
        lines.append(f"{margin}@{ast.unparse(decorator)}")
    arguments = ast.unparse(statement.args)
    returns = f" -> {ast.unparse(statement.returns)}" if statement.returns is not None else ""
    word = "async def" if isinstance(statement, ast.AsyncFunctionDef) else "def"
    head = f"{margin}{word} {statement.name}({arguments}){returns}:"
    if len(head) <= width:
        lines.append(head)
    else:
        lines.append(f"{margin}{word} {statement.name}(")
        lines += _filled(_parameters(statement.args), indent + 4, width)
        lines.append(f"{margin}){returns}:")
    body = statement.body
    if not indent and ast.get_docstring(statement, clean=False) is not None:
        text = ast.unparse(ast.FunctionDef("_", ast.arguments([], [], None, [], [], None, []), body[:1], [], lineno=1))
        lines += text.splitlines()[1:]
        body = body[1:]
    for inner in body:
        _write(inner, indent + 4, width, lines)


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
    """Each parameter as text, in order."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults += arguments.defaults
    found = []
    for index, (each, default) in enumerate(zip(positional, defaults)):
        found.append(_parameter(each, default))
        if arguments.posonlyargs and index == len(arguments.posonlyargs) - 1:
            found.append("/")
    if arguments.vararg is not None:
        found.append("*" + _parameter(arguments.vararg, None))
    elif arguments.kwonlyargs:
        found.append("*")
    found += [_parameter(each, default) for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    if arguments.kwarg is not None:
        found.append("**" + _parameter(arguments.kwarg, None))
    return found


def _parameter(each: ast.arg, default: ast.expr | None) -> str:
    text = each.arg + (f": {ast.unparse(each.annotation)}" if each.annotation is not None else "")
    if default is None:
        return text
    return f"{text} = {ast.unparse(default)}" if each.annotation is not None else f"{text}={ast.unparse(default)}"


def _filled(items: list[str], indent: int, width: int) -> list[str]:
    """Items behind each other, as many as fit on a line."""
    margin = " " * indent
    lines: list[str] = []
    line = ""
    for item in items:
        if line and len(margin) + len(line) + len(item) + 3 > width:
            lines.append(margin + line)
            line = ""
        line += f"{' ' if line else ''}{item},"
    return [*lines, margin + line] if line else lines


def _write_blocks(statement: ast.stmt, written: list[str], indent: int, width: int, lines: list[str]) -> None:
    """A compound statement: its heads as they are, the statements inside laid out."""
    blocks: list[list[ast.stmt]] = [getattr(statement, name) for name in ("body", "orelse", "finalbody")
                                    if getattr(statement, name, None)]
    if isinstance(statement, ast.Try):
        blocks[1:1] = [handler.body for handler in statement.handlers]
    margin = " " * indent
    at = 0
    for block in blocks:
        plain = "\n".join(ast.unparse(inner) for inner in block).splitlines()
        shown = ["    " + line if line else line for line in plain]
        while at < len(written) and written[at : at + len(shown)] != shown:
            lines.append(margin + written[at])
            at += 1
        for inner in block:
            _write(inner, indent + 4, width, lines)
        at += len(shown)
    lines += [margin + line for line in written[at:]]


def _has_text_over_lines(statement: ast.stmt) -> bool:
    """Whether a string in it may be written over several lines: then it is left as it is."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _broken_statement(statement: ast.stmt, indent: int, width: int) -> list[str] | None:
    """The lines of a simple statement of which the value is broken; ``None`` where that is not known how."""
    if isinstance(statement, ast.Assign):
        head = "".join(f"{ast.unparse(target)} = " for target in statement.targets)
        value: ast.expr | None = statement.value
    elif isinstance(statement, ast.AugAssign):
        head, _, _ = ast.unparse(statement).partition("= ")
        head, value = head + "= ", statement.value
    elif isinstance(statement, ast.Return):
        head, value = "return ", statement.value
    elif isinstance(statement, ast.Expr):
        head, value = "", statement.value
    elif isinstance(statement, ast.ImportFrom):
        dots = "." * statement.level
        names = [name.name + (f" as {name.asname}" if name.asname else "") for name in statement.names]
        return [f"{' ' * indent}from {dots}{statement.module or ''} import (",
                *_filled(names, indent + 4, width), f"{' ' * indent})"]
    else:
        return None
    if value is None:
        return None
    return _broken(value, " " * indent + head, "", indent, width)


def _broken(node: ast.expr, head: str, tail: str, indent: int, width: int) -> list[str]:
    """The lines of an expression behind ``head`` and before ``tail``.

    Args:
        indent: of the statement or item that it belongs to.
    """
    text = ast.unparse(node)
    if "\n" not in text and len(head) + len(text) + len(tail) <= width:
        return [head + text + tail]
    parts = _parts(node)
    if parts is None:
        return [head + text + tail]
    if isinstance(node, ast.GeneratorExp) and len(head) + len(parts[0]) > width:
        parts = "(", _comprehension(node), ")", ""
    opening, items, closing, comma = parts
    lines = [head + opening]
    if len(lines[0]) > width and isinstance(node, ast.Call):
        lines = _called_broken(node.func, head, "(", indent, width)
        arguments = ast.unparse(ast.Call(ast.Name("f"), node.args, node.keywords)).removeprefix("f(")
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


def _called_broken(node: ast.expr, head: str, tail: str, indent: int, width: int) -> list[str]:
    """The lines of what is called, where that alone is too long for one."""
    if isinstance(node, ast.Attribute):
        return _called_broken(node.value, head, f".{node.attr}{tail}", indent, width)
    return _broken(node, head, tail, indent, width)


def _together(node: ast.expr) -> list[str]:
    """For each item of a broken call or tuple what it shares a line with: items of equal, not empty texts.

    The parameters of one module stand together (``norm.weight, norm.bias,``), and so do keywords and entries with
    simple values (``hidden_states=None, attentions=None,``).
    """
    if isinstance(node, ast.GeneratorExp):
        return _together(node.generators[-1].iter)
    if isinstance(node, (ast.Tuple, ast.List)):
        return list(map(_owner, node.elts))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip":
        return ["simple"] * len(node.args)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "new":
        # the class, and what an object of it holds
        return ["class"] * len(node.args) + ["simple" if _is_simple(keyword.value) else "" for keyword in node.keywords]
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        return _together(node.args[0])
    if isinstance(node, ast.Call):
        return [*map(_owner, node.args), *("simple" if _is_simple(keyword.value) else "" for keyword in node.keywords)]
    if isinstance(node, ast.Dict):
        return ["simple" if _is_simple(value) else "" for value in node.values]
    return []


def _is_simple(node: ast.expr) -> bool:
    """Whether a value says so little that others may stand beside it."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    if isinstance(node, ast.Call):
        return not node.keywords and all(isinstance(argument, ast.Constant) for argument in node.args)
    return isinstance(node, (ast.Constant, ast.Name))


def _owner(node: ast.expr) -> str:
    """``self.norm`` of ``self.norm.weight``."""
    if isinstance(node, ast.Attribute):
        return ast.unparse(node.value)
    return ""


_Item = Callable[[str, str, int, int], list[str]]


def _parts(node: ast.expr) -> tuple[str, list[_Item], str, str] | None:
    """How an expression is broken: what opens it, its items, what closes it, what stands behind each item."""
    if isinstance(node, ast.Call):
        only = node.args[0] if len(node.args) == 1 and not node.keywords else None
        if isinstance(only, ast.GeneratorExp):
            return f"{_called(node.func)}(", _comprehension(only), ")", ""
        if len(node.args) == 1 and not node.keywords and isinstance(only, (ast.Dict, ast.List, ast.Tuple)):
            hugged = _parts(only)
            if hugged is not None:
                return f"{_called(node.func)}({hugged[0]}", hugged[1], f"{hugged[2]})", hugged[3]
        items = [_plain(argument) for argument in node.args] + [_keyword(keyword) for keyword in node.keywords]
        return (f"{_called(node.func)}(", items, ")", ",") if items else None
    if isinstance(node, (ast.List, ast.Set)) and node.elts:
        return ("[", list(map(_plain, node.elts)), "]", ",") if isinstance(node, ast.List) else (
            "{", list(map(_plain, node.elts)), "}", ",")
    if isinstance(node, ast.Tuple) and node.elts:
        return "(", list(map(_plain, node.elts)), ")", ","
    if isinstance(node, ast.Dict) and node.values:
        return "{", [_entry(key, value) for key, value in zip(node.keys, node.values)], "}", ","
    if isinstance(node, ast.GeneratorExp):
        inner = node.generators[-1].iter
        if isinstance(inner, ast.Tuple) and inner.elts and not node.generators[-1].ifs:
            # ``(value for layer in self.layers for value in (`` on one line, the items on lines of their own
            head = ast.unparse(ast.GeneratorExp(node.elt, [
                *node.generators[:-1], ast.comprehension(node.generators[-1].target, ast.Name("_"), [], 0)]))[:-2]
            return f"{head}(", list(map(_plain, inner.elts)), "))", ","
        return "(", _comprehension(node), ")", ""
    if isinstance(node, ast.ListComp):
        return "[", _comprehension(node), "]", ""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        owner = _parts(node.value)
        return None if owner is None else (owner[0], owner[1], f"{owner[2]}[{ast.unparse(node.slice)}]", owner[3])
    if isinstance(node, ast.Subscript):
        elements = node.slice.elts if isinstance(node.slice, ast.Tuple) and node.slice.elts else [node.slice]
        comma = "," if isinstance(node.slice, ast.Tuple) else ""
        return f"{_called(node.value)}[", list(map(_plain, elements)), "]", comma
    if isinstance(node, ast.Attribute):
        owner = _parts(node.value)
        return None if owner is None else (owner[0], owner[1], f"{owner[2]}.{node.attr}", owner[3])
    if isinstance(node, ast.BinOp):
        operator = ast.unparse(ast.BinOp(ast.Name("a"), node.op, ast.Name("b"))).split()[1]
        return "(", [_grouped(node, node.left, ""), _grouped(node, node.right, f"{operator} ")], ")", ""
    if isinstance(node, ast.BoolOp):
        word = "and" if isinstance(node.op, ast.And) else "or"
        first, *rest = node.values
        return "(", [_operand(first, ""), *(_operand(each, f"{word} ") for each in rest)], ")", ""
    return None


def _called(function: ast.expr) -> str:
    return ast.unparse(ast.Call(function, [], []))[:-2]


def _plain(node: ast.expr) -> _Item:
    if isinstance(node, ast.Starred):
        return lambda head, tail, indent, width: _broken(node.value, head + "*", tail, indent, width)
    return lambda head, tail, indent, width: _broken(node, head, tail, indent, width)


def _keyword(keyword: ast.keyword) -> _Item:
    name = "**" if keyword.arg is None else f"{keyword.arg}="
    return lambda head, tail, indent, width: _broken(keyword.value, head + name, tail, indent, width)


def _entry(key: ast.expr | None, value: ast.expr) -> _Item:
    name = "**" if key is None else f"{ast.unparse(key)}: "
    return lambda head, tail, indent, width: _broken(value, head + name, tail, indent, width)


def _grouped(outer: ast.BinOp, node: ast.expr, word: str) -> _Item:
    """An operand, in the parentheses that it has beside its operator."""
    other = ast.Name("_", ast.Load())
    pair = ast.BinOp(node, outer.op, other) if node is outer.left else ast.BinOp(other, outer.op, node)
    alone = ast.unparse(node)
    if alone in ast.unparse(pair) and f"({alone})" not in ast.unparse(pair):
        return lambda head, tail, indent, width: _broken(node, head + word, tail, indent, width)
    return lambda head, tail, indent, width: [f"{head}{word}({alone}){tail}"]


def _operand(node: ast.expr, word: str) -> _Item:
    if isinstance(node, (ast.BoolOp, ast.IfExp, ast.Lambda, ast.NamedExpr)):
        return lambda head, tail, indent, width: [f"{head}{word}({ast.unparse(node)}){tail}"]
    return lambda head, tail, indent, width: _broken(node, head + word, tail, indent, width)


def _comprehension(node: ast.GeneratorExp | ast.ListComp) -> list[_Item]:
    """The element on one line (or broken), each ``for`` on one of its own."""
    items: list[_Item] = [_plain(node.elt)]
    for loop in node.generators:
        items.append(_loop(loop))
    return items


def _loop(loop: ast.comprehension) -> _Item:
    conditions = "".join(f" if {ast.unparse(test)}" for test in loop.ifs)
    target = ast.unparse(loop.target)
    if isinstance(loop.target, ast.Tuple) and loop.target.elts:
        target = target.strip("()")
    head = f"{'async ' if loop.is_async else ''}for {target} in "
    return lambda start, tail, indent, width: _broken(loop.iter, start + head, conditions + tail, indent, width)
