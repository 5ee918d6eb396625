"""What depends further down in a function on what a line computes: the graph breaks there next.

value = int(token)
if value in self.stop:      a graph has no number to test, even where it has a symbol for it
return self.words[value]    nor to index a list with: torch raises an error (2.13)
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Set

from .branches import unparsed
from .source import Function, Site, called
from .tensor_indices import in_steps, numbers_among_indices

#: Whether a test depends on variables of these names.
Depends = Callable[[ast.expr, Set[str]], bool]


def later_test(site: Site, depends: Depends) -> str:
    """Return the next test that depends on what a statement assigns: ``line 30 (`token.numel() == 0`)``.

    ``""`` where there is none.
    """
    test = next_test(site, depends)
    return f"line {test.lineno} (`{unparsed(test, site.text)}`)" if test is not None else ""


def next_test(site: Site, depends: Depends) -> ast.expr | None:
    """Return the next test that depends on what a statement assigns; ``None`` where there is none."""
    statement = site.statement
    if not isinstance(statement, ast.Assign) or site.function is None or _is_given(statement.value, site.function):
        return None
    names = {node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)}
    return _next_test(site.function, statement.end_lineno or statement.lineno, names, depends)


def _next_test(function: Function, line: int, names: set[str], depends: Depends) -> ast.expr | None:
    """Return the next test behind a line that depends on variables; ``None`` where there is none."""
    for node in _after(function, line):
        if isinstance(node, (ast.If, ast.While, ast.Assert, ast.IfExp)):
            if any(depends(test, names) for test in _jumps(node)):
                return node.test
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.discard(node.id)  # (another value from here on)
    return None


def test_of(function: Function, name: str) -> ast.expr | None:
    """Return the first test of a function that depends on a parameter; ``None`` where there is none."""
    return _next_test(function, function.lineno, {name}, on_number)


def later_index(site: Site) -> str | None:
    """Return how to index where a number that a statement assigns is an index beside others further down.

    ``"index in steps: `c[i][0]` for `c[i, 0]`"``; ``""`` where that cannot be said, ``None`` where there is none.
    """
    statement = site.statement
    if not isinstance(statement, ast.Assign) or site.function is None:
        return None
    names = _variables(statement)
    end = statement.end_lineno or statement.lineno
    found = [each for each in numbers_among_indices(site.function, names) if each.lineno > end and any(
        isinstance(node, ast.Name) and node.id in names for node in ast.walk(each.slice))]
    if not found:
        return None
    told = []
    for item in dict.fromkeys(unparsed(each, site.text) for each in found):
        changed = in_steps(ast.parse(item).body[0], names)
        if changed is None:
            return ""
        told.append(f"`{ast.unparse(changed)}` for `{item}`")
    return f"index in steps: {', '.join(told)}"


def later_item(site: Site) -> tuple[str, str] | None:
    """Return what is indexed further down by a number that a statement assigns, and where.

    ``("options", "line 7 (`options[i - 1]`)")``; ``None`` where nothing is.
    """
    statement = site.statement
    if not isinstance(statement, ast.Assign) or site.function is None:
        return None
    names = _variables(statement)
    for node in _after(site.function, statement.end_lineno or statement.lineno):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.discard(node.id)
        elif isinstance(node, ast.Subscript) and not isinstance(node.value, ast.Dict) \
                and not isinstance(node.slice, (ast.Tuple, ast.Slice)) and on_number(node.slice, names):
            return unparsed(node.value, site.text), f"line {node.lineno} (`{unparsed(node, site.text)}`)"
    return None


def test_in_loop(site: Site) -> tuple[str, int] | None:
    """Return a test in a loop behind a statement that a value in a tensor decides, and the line of the loop.

    ``("line 14 (`b.item() > 0.5`)", 13)``: the graph breaks there, and a break in a loop gives up the whole function
    that the loop is in, also what stands before it.
    """
    statement, function = site.statement, site.function
    if statement is None or function is None:
        return None
    end = statement.end_lineno or statement.lineno
    names = {node.id for target in getattr(statement, "targets", ()) for node in ast.walk(target)
             if isinstance(node, ast.Name)}
    for node in _after(function, end):
        if isinstance(node, (ast.For, ast.While)):
            for each in ast.walk(node):
                if isinstance(each, (ast.If, ast.While, ast.Assert, ast.IfExp)) and each is not node and any(
                        _is_of_tensor(test) or isinstance(each, ast.If) and on_number(test, names)
                        for test in _jumps(each)):
                    return f"line {each.test.lineno} (`{unparsed(each.test, site.text)}`)", node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.discard(node.id)
    return None


def _jumps(node: ast.If | ast.While | ast.Assert | ast.IfExp) -> Iterator[ast.expr]:
    """Yield the tests at which Python jumps, but for the one of an ``assert`` that torch puts into the graph.

    That is the last one, if what fails it raises at once with no message, or one that is a constant:
    ``generic_jump`` in ``torch/_dynamo/symbolic_convert.py`` finds it by the instructions behind the jump.
    """
    if not isinstance(node, ast.Assert):
        yield node.test
    elif node.msg is not None and any(isinstance(each, (ast.Name, ast.FormattedValue)) for each in ast.walk(node.msg)):
        yield node.test
    else:
        yield from _before_raise(node.test, last=True)


def _before_raise(test: ast.expr, *, last: bool, wanted: bool = True) -> Iterator[ast.expr]:
    """Yield the parts of a test of an ``assert`` that are not the check itself.

    Args:
        test: all of it, or a part.
        last: the next instruction after the part raises.
        wanted: whether the part has to be true for the assertion to hold.
    """
    match test:
        case ast.BoolOp(_, [*earlier, end]):
            for each in earlier:
                yield from _before_raise(each, last=False)
            yield from _before_raise(end, last=last, wanted=wanted)
        case ast.UnaryOp(ast.Not(), ast.Compare(_, [ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]) as inner):
            yield from _before_raise(inner, last=last, wanted=wanted)  # (Python writes `not a in b` as `a not in b`)
        case ast.UnaryOp(ast.Not(), inner):
            yield from _before_raise(inner, last=last, wanted=not wanted)
        case ast.IfExp(condition, body, other):
            yield from (condition, body)
            yield from _before_raise(other, last=last, wanted=wanted)
        case ast.Compare(_, [_, _, *_]):
            yield test
        case _ if not (last and wanted):
            yield test


def _is_of_tensor(test: ast.expr) -> bool:
    """Return whether a test is of a value in a tensor, as far as its text tells."""
    return any(isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and (
        node.func.attr == "item" or node.func.attr in ("any", "all") and not node.args) for node in ast.walk(test))


def _is_given(value: ast.expr, function: Function) -> bool:
    """Return whether a number is that of an argument: torch may compile a version for each such number instead."""
    match value:
        case ast.Call(ast.Name(), [ast.Name(name)], []) | ast.Call(ast.Attribute(ast.Name(name), "item"), [], []):
            return name in {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    return False


def on_number(test: ast.expr, names: Set[str]) -> bool:
    """Return whether a test depends on a number, and not on whether there is one or of what type it is."""
    if isinstance(test, ast.Compare) and all(isinstance(each, (ast.Is, ast.IsNot)) for each in test.ops):
        return False
    if isinstance(test, ast.Call) and called(test) == "isinstance":
        return False
    return any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(test))


def on_size(test: ast.expr, names: Set[str]) -> bool:
    """Return whether a test depends on the size of a tensor."""
    for node in ast.walk(test):
        match node:
            case ast.Attribute(ast.Name(name), "shape" | "numel" | "size" | "nelement") | ast.Call(
                    ast.Name("len"), [ast.Name(name)], []) if name in names:
                return True
    return False


def numbers_of(function: Function) -> set[str]:
    """Return the variables of a function that numbers out of tensors are assigned to."""
    return {name for node in ast.walk(function) if isinstance(node, ast.Assign) for name in _variables(node)}


def _variables(statement: ast.Assign) -> set[str]:
    """Return the variables that are the whole of what an assignment assigns, where that may be a number."""
    if not may_be_number(statement.value):
        return set()
    return {target.id for target in statement.targets if isinstance(target, ast.Name)}


def may_be_number(value: ast.expr) -> bool:
    """Return whether an expression is a number out of a tensor by its text: ``int(x)``, ``x.max().item() - 1``."""
    match value:
        case ast.BinOp(left, _, right):
            return may_be_number(left) or may_be_number(right)
        case ast.UnaryOp(_, inner):
            return may_be_number(inner)
        case ast.Call(ast.Name("max" | "min" | "abs" | "round"), arguments):
            return any(map(may_be_number, arguments))
        case ast.Call(ast.Attribute(_, "item")) | ast.Call(ast.Name("int" | "float" | "bool")):
            return True
    return False


def _after(function: ast.AST, line: int) -> Iterator[ast.AST]:
    """Yield what stands behind a line of a function, in the order of the text."""
    found = [node for node in ast.walk(function) if getattr(node, "lineno", 0) > line]
    yield from sorted(found, key=lambda node: (node.lineno, node.col_offset))  # type: ignore[attr-defined]
