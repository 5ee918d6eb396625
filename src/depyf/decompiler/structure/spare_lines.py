"""Lines that a function has to spare, where its line table is gone.

A code object says on which line its definition begins, and so does the one behind it. What lies between is the place of
the function. Its text takes some of these lines at least; what is left over may be an ``else``, a ``continue``, an
``if`` in an ``if`` (or comments, empty lines, and lines that are broken). Where nothing is left over there is none.

Example: methods at lines 10 and 15, ``if a: return b`` and ``return c``. Four lines and an empty one are the place; the
text takes four with its head. So there is no ``else``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...bytecode import operations as o
from ...bytecode.canonical import canonicalise
from ...bytecode.code import Code
from ..nodes import SCOPES, all_statements, suites_of
from .habits import Space
from .suites import (
    falling_handlers,
    is_empty,
    is_only_exit,
    leaves_by,
    never_falls,
)

if TYPE_CHECKING:
    from ...bytecode.operations import Op
    from ..scopes import CodeScope

#: Columns of a line (PEP 8).
_WIDTH = 79
#: Columns of a line that continues another, at least.
_CONTINUED = 30
#: What nodes take beside their parts (two columns otherwise; each part of a list takes two for what parts it).
_OWN_COLUMNS: dict[type[ast.AST], int] = {
    ast.keyword: 1, ast.Tuple: 0, ast.List: 0, ast.Set: 0, ast.Expr: 0, ast.Assign: 1,
    ast.arguments: 0, ast.arg: 0, ast.Return: 7, ast.Raise: 6, ast.Assert: 7, ast.Yield: 6, ast.Await: 6,
    ast.Lambda: 9, ast.IfExp: 10, ast.And: 3, ast.Or: 2, ast.BoolOp: 0, ast.Compare: 0, ast.BinOp: 2, ast.Starred: 1,
    ast.USub: 1, ast.UnaryOp: 0, ast.Not: 4, ast.comprehension: 9, ast.NotIn: 6, ast.IsNot: 6, ast.Import: 5,
    ast.ImportFrom: 11, ast.AugAssign: 3,
}
#: Operations that statements end in, each on a line of its own.
_STATEMENTS = frozenset({o.STORE_NAME, o.STORE_GLOBAL, o.STORE_ATTR, o.SETITEM, o.POP, o.BRANCH, o.DELETE_NAME})
#: What the compiler stores at the end of a class.
_OF_THE_COMPILER = frozenset({"__static_attributes__", "__classcell__", "__classdictcell__"})
#: Expressions that are code objects. (Others in angle brackets hold a definition with type parameters.)
_EXPRESSIONS = frozenset({"<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"})


# --- the place --------------------------------------------------------------------------------------
def lines_of_place(scope: CodeScope) -> int | None:
    """Return the number of lines from the beginning of a function to the next definition; ``None`` if not known.

    Empty lines between definitions (PEP 8) and statements that stand there are taken off.
    """
    code, around, between = scope.code, scope.parent, 0
    while around is not None and around.kind in ("class", "module"):
        ops = iter(_ops_of(around))
        if not any(op.arg is code for op in ops):
            return None
        following, count = _next_definition(ops)
        between += count
        if following is not None:
            empty = 2 if around.kind == "module" else 1
            lines = following.firstlineno - scope.code.firstlineno - between - empty
            return lines if lines > 0 else None
        code, around = around.code, around.parent
    return None


def _ops_of(scope: CodeScope) -> list[Op]:
    program = scope.program or canonicalise(scope.code)
    return program.ops


def _next_definition(ops: Iterator[Op]) -> tuple[Code | None, int]:
    """Return the next definition, and the number of statements before it (the one that is being made not counted)."""
    count = -1
    for op in ops:
        if op.kind == o.CONST and isinstance(op.arg, Code) and op.arg.name not in _EXPRESSIONS:
            return op.arg, max(count, 0)
        count += op.kind in _STATEMENTS and op.arg not in _OF_THE_COMPILER
    return None, max(count, 0)


# --- the text ---------------------------------------------------------------------------------------
def fewest_lines(stmts: list[ast.stmt], end: str, indentation: int) -> int:
    """Return the number of lines that a suite takes at least, whichever of its forms was written.

    Args:
        stmts: the suite.
        end: what falling off its end does: ``return`` (of nothing), ``continue``; empty for anything else.
        indentation: of it.
    """
    count = 0
    for at, stmt in enumerate(stmts):
        rest = stmts[at + 1:]
        if isinstance(stmt, ast.If):
            count += _of_if(stmt, rest, end, indentation)
        elif rest or not at or not leaves_by(stmt, end):
            count += _of_statement(stmt, "" if rest else end, indentation)
    return count


def else_places(stmts: list[ast.stmt]) -> int:
    """Return the number of places in a suite where an ``else`` would take a line that nothing else needs."""
    count = 0
    for at, stmt in enumerate(stmts):
        rest = (getattr(stmt, "orelse", None) or stmts[at + 1:]) if isinstance(stmt, ast.If) else []
        if isinstance(stmt, ast.If) and rest and not isinstance(rest[0], ast.If) and never_falls(stmt.body):
            count += 1
        count += sum(map(else_places, suites_of(stmt)))
    return count


def could_be_elif(rest: list[ast.stmt]) -> bool:
    """Return whether all that is behind an ``if`` could be its ``elif``."""
    return isinstance(rest[0], ast.If) and (len(rest) == 1 or never_falls(rest[0].body))


def lines_of_exit(rest: list[ast.stmt]) -> int:
    """Return the lines that ``if a: b; return`` and the rest take more than the rest in the ``else`` takes."""
    return int(could_be_elif(rest))


def has_empty_else(stmt: ast.Try, end: str) -> bool:
    """Return whether the ``else`` of a ``try`` could stand behind it, if handlers that do nothing left the suite."""
    suites = falling_handlers(stmt, end)
    return bool(stmt.orelse and suites) and not stmt.finalbody and all(is_only_exit(suite, end) for suite in suites)


def _of_if(stmt: ast.If, rest: list[ast.stmt], end: str, indentation: int) -> int:
    body, orelse, inside = stmt.body, stmt.orelse, indentation + 4
    if is_empty(body) and orelse:
        body, orelse = orelse, []
    count = lines_of_text(stmt.test, inside)
    falls = "" if rest else end
    if never_falls(body):
        others = orelse or rest
        last = body[-1]
        if others and (leaves_by(last, end) or _same_end(body, others)):
            if body[1:]:
                count += fewest_lines(body[:-1], "", inside) + 1 - lines_of_exit(others)
        else:
            count += fewest_lines(body, "", inside)
    elif not orelse and len(body) == 1 and isinstance(body[0], ast.If) and not body[0].orelse:
        count += fewest_lines(body, falls, inside) - 1
    else:
        count += fewest_lines(body, falls, inside)
        count += bool(orelse) and not (len(orelse) == 1 and isinstance(orelse[0], ast.If))
    return count + (fewest_lines(orelse, falls, inside) if orelse else 0)


def _same_end(body: list[ast.stmt], rest: list[ast.stmt]) -> bool:
    """Return whether a branch and what is behind it end in one ``return``."""
    return len(body) > 1 and len(rest) > 1 and isinstance(body[-1], ast.Return) and (
        ast.dump(body[-1]) == ast.dump(rest[-1]))


def _of_statement(stmt: ast.stmt, end: str, indentation: int) -> int:
    inside = indentation + 4
    if isinstance(stmt, SCOPES):
        return lines_of_head(stmt, indentation) + fewest_lines(
            stmt.body, "" if isinstance(stmt, ast.ClassDef) else "return", inside)
    if isinstance(stmt, (ast.For, ast.AsyncFor, ast.While)):
        head = [stmt.test] if isinstance(stmt, ast.While) else [stmt.target, stmt.iter]
        count = 1 + sum(lines_of_text(each, inside) - 1 for each in head) + fewest_lines(stmt.body, "continue", inside)
        return count + (1 + fewest_lines(stmt.orelse, end, inside) if stmt.orelse else 0)
    if isinstance(stmt, (ast.With, ast.AsyncWith)):
        return 1 + sum(lines_of_text(item.context_expr, inside) - 1 for item in stmt.items) + fewest_lines(
            stmt.body, end, inside)
    suites = suites_of(stmt)
    if suites:
        more = int(isinstance(stmt, ast.Match))
        if isinstance(stmt, ast.Try) and end and has_empty_else(stmt, end):
            return len(suites) - 1 + sum(fewest_lines(suite, end, inside) for suite in suites)
        return more + len(suites) + sum(fewest_lines(suite, end, inside + 4 * more) for suite in suites)
    if isinstance(stmt, ast.Return) and isinstance(stmt.value, ast.IfExp):
        choice = stmt.value
        branch = ast.If(choice.test, [ast.Return(choice.body)], [])
        return fewest_lines([branch, ast.Return(choice.orelse)], "", indentation)
    if isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant) and isinstance(stmt.value.value, str):
        return stmt.value.value.count("\n") + 1
    return lines_of_text(stmt, indentation)


def lines_of_head(stmt: ast.stmt, indentation: int) -> int:
    """Return the lines of decorators and the head of a definition."""
    assert isinstance(stmt, SCOPES)
    count = 1 + sum(lines_of_text(each, indentation) for each in stmt.decorator_list)
    if not isinstance(stmt, ast.ClassDef):
        count += lines_of_text(stmt.args, indentation + len("def ():") + len(stmt.name)) - 1
    return count


def lines_of_text(node: ast.AST, indentation: int) -> int:
    """Return the number of lines that an expression or a simple statement takes."""
    columns, breaks = _columns(node)
    over = columns + indentation - _WIDTH
    if over <= 0:
        return 1
    room = max(_WIDTH - indentation - 8, _CONTINUED)
    return 1 + max(breaks if breaks > 1 else 0, -(-over // room))


def _columns(node: ast.AST) -> tuple[int, int]:
    """Return the columns that a text takes, about (to make the text of each statement takes long), and its breaks."""
    columns = breaks = 0
    work = [node]
    while work:
        node = work.pop()
        if isinstance(node, ast.Name):
            columns += len(node.id)
        elif isinstance(node, ast.Attribute):
            columns += len(node.attr) + 1
            work.append(node.value)
        elif isinstance(node, ast.Call):
            columns += 2 * (len(node.args) + len(node.keywords))
            work += (node.func, *node.args, *node.keywords)
        elif isinstance(node, ast.Constant):
            text = repr(node.value)
            columns += len(text)
            breaks += text.count("\\n")
        else:
            columns += _OWN_COLUMNS.get(type(node), 2)
            for name in node._fields:
                value = getattr(node, name, None)
                if isinstance(value, list):
                    columns += 2 * len(value)
                    work += [part for part in value if isinstance(part, ast.AST)]
                elif isinstance(value, ast.AST):
                    if not isinstance(value, ast.expr_context):
                        work.append(value)
                elif isinstance(value, str):
                    columns += len(value)
    return columns, breaks


def space_of(scope: CodeScope, stmts: list[ast.stmt]) -> Space:
    """Return the space of a function's text."""
    return Space(spare_lines(scope, stmts), else_places(stmts), len(all_statements(stmts)),
                 scope.docstring() is not None)


def spare_lines(scope: CodeScope, stmts: list[ast.stmt]) -> int | None:
    """Return the number of lines that a function has to spare; ``None`` where its place is not known.

    Args:
        scope: of its code.
        stmts: its body as the graph has it, without docstring and declarations.
    """
    if scope.head is None or scope.parent is None:
        return None
    place = lines_of_place(scope)
    if place is None:
        return None
    indentation, around = 0, scope.parent
    while around.parent is not None:
        indentation, around = indentation + 4, around.parent
    doc = scope.docstring()
    text = lines_of_head(scope.head, indentation) + fewest_lines(stmts, "return", indentation + 4)
    return place - text - (0 if doc is None else doc.count("\n") + 1) - _declares(scope)


def _declares(scope: CodeScope) -> bool:
    """Return whether a function has a ``global`` or ``nonlocal``."""
    return any(op.kind == o.STORE_GLOBAL or op.kind == o.STORE_DEREF and op.arg in scope.code.freevars
               for op in _ops_of(scope))
