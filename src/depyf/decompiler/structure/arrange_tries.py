"""``try``, ``with``, and the statements after them and after loops, as their author wrote them.

Example: ``try: a()`` / ``except E: return`` / ``else: b()`` is one program with ``b()`` after the ``try``. Which of
them was written follows from the indentation of ``b()``, as it does for code copied into the body and its handlers.
"""

from __future__ import annotations

import ast

from ..emit.text import TRY
from ..lift.spelling import IF_TO_TEST, first_part, folds_not, negate
from ..nodes import Literal, all_statements, at_line, line_of, part_of, suites_of
from .evidence import AFTER_ALL, INDENTATION, TO_TEST, Evidence, Exit
from .frames import (
    LOOPS,
    always_fits,
    breaks_of,
    ending_in,
    first_line,
    is_empty,
    is_nothing,
    leave,
    leaves_by,
    never_falls,
    word_of,
)


def arrange_try(evidence: Evidence, stmts: list[ast.stmt], at: int, end: str, after: int | None) -> None:
    """Arrange a ``try`` among the statements of its suite.

    Args:
        evidence: of the code.
        stmts: the suite.
        at: the place of the ``try`` in it.
        end: the effect of falling off the end of the suite: ``continue``, ``return``; empty for any other.
        after: the line of the statement after the suite.
    """
    stmt = stmts[at]
    assert isinstance(stmt, ast.Try)
    following = line_of(stmts[at + 1]) if at + 1 < len(stmts) else after
    _end_of_body(evidence, stmts, at, following)
    if end and stmt.handlers and not stmt.finalbody and evidence.has_lines:
        _else_or_exits(evidence, stmts, at, end)
    else_or_after(evidence, stmts, at)


def else_or_after(evidence: Evidence, stmts: list[ast.stmt], at: int) -> None:
    """Split by columns the statements that only an ``else`` leads to: those in it, and those after the statement.

    (What follows a ``try`` is one where its handlers never fall off their ends.)
    """
    stmt = stmts[at]
    assert isinstance(stmt, (ast.Try, *LOOPS))
    if isinstance(stmt, ast.Try) and (
            not stmt.handlers or stmt.finalbody or not all(never_falls(handler.body) for handler in stmt.handlers)):
        return
    inner = evidence.column(stmt.body[0])
    rest = [*stmt.orelse, *stmts[at + 1:]]
    if inner is None or not rest:
        return
    first = rest[0]
    if isinstance(stmt, ast.Try) and isinstance(first, (ast.Break, ast.Continue)) and evidence.column(first) is None:
        written = evidence.exit_between(evidence.line_after(stmt.handlers[-1].body), AFTER_ALL, word_of(first))
        if written is not None:
            evidence.set_place(first, written)
    count = len(stmt.orelse)
    if not count:
        column = evidence.column(first)
        count = len(rest) if column is not None and column >= inner else 0
    count = evidence.count_indented(rest[:count], inner)
    stmt.orelse = rest[:count]
    stmts[at + 1:] = rest[count:]


def _else_or_exits(evidence: Evidence, stmts: list[ast.stmt], at: int, end: str) -> None:
    """Arrange ``except E: return`` and the rest after the ``try``, or ``except E: pass`` with the rest in an ``else``.

    The column of the rest decides; without columns, the lines of the handlers' exits do. (Failing that, an ``else`` is
    taken to have a line: of 45 such statements with room for it 28 have one, and of 48 without none.)
    """
    stmt = stmts[at]
    assert isinstance(stmt, ast.Try)
    rest = stmt.orelse or stmts[at + 1:]
    if not rest or stmt.orelse and at + 1 < len(stmts):
        return
    follow = [*map(line_of, stmt.handlers[1:]), first_line(rest)]
    falling = [handler for handler in stmt.handlers if not never_falls(handler.body)]
    if falling and not stmt.orelse:
        return
    ends = [(handler, line) for handler, line in zip(stmt.handlers, follow)
            if handler in falling or leaves_by(handler.body[-1], end) or evidence.falls_off(handler.body)]
    if not ends:
        return
    if evidence.has_columns:
        inner, column = evidence.column(stmt.body[0]), evidence.column(rest[0])
        if inner is None or column is None or column >= inner:
            return
        is_in_else = False
    else:
        found = [_way_out(evidence, handler, line, end) for handler, line in ends]
        returns = any(isinstance(each, ast.Return) and not is_nothing(each) for each in all_statements(rest))
        is_in_else = "falls" in found or "exit" not in found and not returns and (
            evidence.room(stmt.handlers[-1].body, rest) != 0)
    if is_in_else:
        if not stmt.orelse:
            stmt.orelse = stmts[at + 1:]
            del stmts[at + 1:]
        for handler, _ in ends:
            if leaves_by(handler.body[-1], end):
                handler.body[-1:] = [] if handler.body[1:] else [ast.Pass()]
    else:
        stmts[at + 1:], stmt.orelse = rest, []
        for handler, line in ends:
            if not never_falls(handler.body):
                written = _exit_at_end(evidence, handler, line)
                handler.body[:] = [*([] if is_empty(handler.body) else handler.body),
                                   leave(end, written.line if written else None)]


def _way_out(evidence: Evidence, handler: ast.ExceptHandler, following: int | None, end: str) -> str:
    """Return ``exit`` if a handler ends in a written exit, ``falls`` if in none; empty where that is not known."""
    body = handler.body
    if len(body) > 1 and evidence.falls_off(body):
        return "falls"
    written = _exit_at_end(evidence, handler, following)
    is_word = is_empty(body) or len(body) == 1 and leaves_by(body[0], end)
    if written is None:
        return "" if is_word else "falls"
    if written.kind:
        return "exit" if written.kind == end else "falls"
    return "" if is_word else "exit"


def _exit_at_end(evidence: Evidence, handler: ast.ExceptHandler, following: int | None) -> Exit | None:
    """Return the statement of one word at the end of a handler, before a line."""
    body = handler.body[:-1] if isinstance(handler.body[-1], (ast.Return, ast.Continue)) else handler.body
    begin = evidence.line_after(body) if body and not is_empty(body) else line_of(handler)
    return evidence.exit_between(begin, following)


def arrange_loop(evidence: Evidence, stmts: list[ast.stmt], at: int) -> None:
    """Arrange the ``else`` of a loop without ``break``, which is equivalent to statements after it."""
    stmt = stmts[at]
    assert isinstance(stmt, LOOPS)
    if evidence.has_columns and next(breaks_of(stmt.body), None) is None and (
            at + 1 == len(stmts) or stmt.orelse or evidence.room(stmt.body, stmts[at + 1:]) != 0):
        else_or_after(evidence, stmts, at)


_With = ast.With | ast.AsyncWith


def join_line(evidence: Evidence, stmt: _With) -> None:
    """Write ``with b:`` that is alone in ``with a:`` on one line as ``with a, b:``."""
    while (inner := _only_with(stmt)) is not None:
        one, other = (evidence.start(each.items[0].context_expr) for each in (stmt, inner))
        if one is None or other is None or one[0] != other[0]:
            return
        _join(stmt, inner)


def arrange_with(evidence: Evidence, stmt: _With) -> None:
    """Write ``with b:`` that is alone in ``with a:`` as ``with a, b:`` where they have one indentation.

    (What is not further right is not inside.)
    """
    keyword = len("with " if isinstance(stmt, ast.With) else "async with ")
    while (inner := _only_with(stmt)) is not None:
        one, other = (evidence.start(each.items[0].context_expr) for each in (stmt, inner))
        if one is None or other is None:
            return
        if one[1] is None or other[1] is None or other[1] > one[1]:
            column = evidence.column(inner.body[0])
            if column is None or one[1] is None or column - (one[1] - keyword) != INDENTATION:
                return
        _join(stmt, inner)


def _only_with(stmt: _With) -> _With | None:
    """Return the statement of the same kind that is alone in a ``with``."""
    inner = stmt.body[0]
    return inner if len(stmt.body) == 1 and isinstance(inner, _With) and isinstance(inner, type(stmt)) else None


def _join(stmt: _With, inner: _With) -> None:
    stmt.items += inner.items
    stmt.body = inner.body


def with_finally(evidence: Evidence | None, body: list[ast.stmt], final: list[ast.stmt]) -> ast.stmt:
    """Return a ``try`` with a ``finally``; a ``try`` alone in it is the same, unless it is further right."""
    inner = body[0] if len(body) == 1 else None
    if isinstance(inner, TRY) and inner.handlers and not inner.finalbody and not (
            evidence is not None and evidence.is_further_right(inner.body[0], final[0])):
        inner.finalbody = final
        return inner
    return ast.Try(body, [], [], final)


def _end_of_body(evidence: Evidence, stmts: list[ast.stmt], at: int, following: int | None) -> None:
    """Write a jump, or the ``return`` of a constant, where it was written: it cannot raise.

    That is at the end of the body of a ``try``, in its ``else``, or after it.
    """
    stmt = stmts[at]
    assert isinstance(stmt, ast.Try)
    suites = [*(handler.body for handler in stmt.handlers), *filter(None, [stmt.finalbody])]
    begin = next(map(line_of, stmt.handlers), None) or first_line(suites[0])
    inner = evidence.column(stmt.body[0])
    suite = stmt.orelse if len(stmt.orelse) == 1 else [] if stmt.orelse else stmt.body[1:]
    if begin is None or not suite:
        return
    only = suite[-1]
    if isinstance(only, (ast.Break, ast.Continue)):
        if stmt.orelse:
            written = evidence.exit_between(evidence.line_after(stmt.body), begin, word_of(only))
        elif any(isinstance(suite[-1], type(only)) for suite in suites):
            return
        else:
            last = max(begin, evidence.last_line(suites[-1]) or 0)
            written = next((each for each in evidence.exits if last < each.line < (following or 0)
                            and each.kind == word_of(only) and each.column == inner), None)
        if written is not None:
            evidence.set_place(only, written)
            if stmt.orelse:
                stmt.body.append(stmt.orelse.pop())
            else:
                stmt.orelse.append(stmt.body.pop())
    elif isinstance(only, ast.Return) and not stmt.orelse and isinstance(
            only.value, (ast.Constant, Literal, type(None))):
        column = evidence.column(only)
        if column is None or inner is None or (line_of(only) or 0) <= begin:
            return
        if column >= inner and stmt.handlers:
            stmt.orelse.append(stmt.body.pop())
        elif column < inner and at + 1 == len(stmts) and all(never_falls(handler.body) for handler in stmt.handlers):
            stmts.append(stmt.body.pop())


def arrange_match(evidence: Evidence, stmts: list[ast.stmt], at: int, end: str, after: int | None) -> None:
    """Arrange a ``match`` and what follows it.

    Args:
        evidence: of the code.
        stmts: the suite.
        at: the place of the ``match`` in it.
        end: the effect of falling off its end: ``return``, ``continue``; empty for any other.
        after: the line of the statement after the suite.
    """
    stmt = stmts[at]
    assert isinstance(stmt, ast.Match)
    column = evidence.column(stmt)
    if column is None:
        return
    _cases_and_rest(evidence, stmts, at, end, column)
    begin, inner = line_of(stmt), column + 2 * INDENTATION
    follow = line_of(stmts[at + 1]) if at + 1 < len(stmts) else after
    for number, case in enumerate(stmt.cases):
        limit = next(filter(None, (first_line(each.body) for each in stmt.cases[number + 1:])), follow)
        written = evidence.exit_between(begin, limit) if is_empty(case.body) and first_line(case.body) is None else None
        if written is not None and written.column == inner and written.kind == end and at + 1 == len(stmts):
            case.body = [leave(end, written.line)]
        begin = evidence.line_after(case.body) or begin if written is None else written.line + 1
    last = stmt.cases[-1]
    only = last.body[0]
    if always_fits(last) and isinstance(only, ast.If) and not last.body[1:]:
        assert isinstance(last.pattern, ast.MatchAs)
        start, before = evidence.start(only.test), column + INDENTATION + len(f"case {last.pattern.name or '_'} ")
        if start is not None and start[1] is not None and start[1] - first_part(only.test)[1] - before in IF_TO_TEST:
            last.guard, last.body = only.test, only.body
            stmt.cases += [ast.match_case(ast.MatchAs(), None, only.orelse)] if only.orelse else []
    elif not always_fits(last):
        written = evidence.exit_between(begin, follow)
        if written is not None and written.column == inner and (
                written.kind == "pass" or written.kind == end and at + 1 == len(stmts)):
            word = at_line(ast.Pass(), written.line) if written.kind == "pass" else leave(end, written.line)
            stmt.cases.append(ast.match_case(ast.MatchAs(), None, [word]))


def _cases_and_rest(evidence: Evidence, stmts: list[ast.stmt], at: int, end: str, column: int) -> None:
    """Write the statements in a case that are no further right than their ``match`` after it, if all other cases leave.

    What follows the ``match`` and is further right is its last case, then.
    """
    stmt, rest = stmts[at], stmts[at + 1:]
    assert isinstance(stmt, ast.Match)
    inside = [evidence.count_indented(case.body, column + 1) for case in stmt.cases]
    outer = [case for case, count in zip(stmt.cases, inside) if count < len(case.body)]
    falling = [case for case in stmt.cases if case not in outer and not never_falls(case.body)]
    if len(outer) > 1 or falling and (rest or not outer or not end):
        return
    follows = 0
    if rest and not always_fits(stmt.cases[-1]) and (evidence.column(rest[0]) or 0) > column:
        follows = evidence.count_indented(rest, column + 1)
        stmt.cases.append(ast.match_case(ast.MatchAs(), None, rest[:follows]))
        del stmts[at + 1:at + 1 + follows]
    if not outer or not always_fits(stmt.cases[-1]) or follows and not never_falls(rest[:follows]):
        return
    moved = outer[0].body
    count = evidence.count_indented(moved, column + 1)
    for case in falling:
        case.body = ending_in(case.body, end)
    stmts[at + 1:at + 1] = moved[count:]
    moved[count:] = [] if count else [at_line(ast.Pass(), None)]
    if not count and always_fits(outer[0]) and stmt.cases[1:]:
        stmt.cases.remove(outer[0])


# --- Loops as their author wrote them: where ``break`` is, and how a loop ends ---------------------
def break_in_loop(evidence: Evidence, stmt: ast.While) -> None:
    """Arrange ``while a:`` as ``while True:`` with ``if not a: break``, where a ``break`` comes before its body."""
    first, test = stmt.body[0], stmt.test
    if stmt.orelse or isinstance(test, ast.Constant) or folds_not(test) or isinstance(first, ast.Break):
        return
    contrary = negate(test)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) or (
            isinstance(contrary, ast.BoolOp) and isinstance(contrary.op, ast.Or)):
        return  # (The first part may be the test of the loop.)
    written = evidence.exit_between((line_of(stmt) or 0) + 1, line_of(first), "break")
    column = evidence.column(first)
    if written is not None and (written.column is None or column is None or written.column > column):
        inner = at_line(ast.If(contrary, [ast.Break()], []), line_of(stmt))
        evidence.set_place(inner.body[0], written)
        stmt.test = ast.Constant(True)
        stmt.body.insert(0, inner)


def break_after_body(evidence: Evidence, stmt: ast.While, after: int | None) -> None:
    """Arrange ``while a and b:`` as ``while a:`` with a ``break`` in the ``else`` of ``if b:``, or in ``if not b:``.

    Args:
        evidence: of the code.
        stmt: the loop.
        after: the line of the statement after it.
    """
    test = stmt.test
    if stmt.orelse or not (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)):
        return
    begin, (_, before) = evidence.start(test.values[0]), first_part(test.values[0])
    if is_empty(stmt.body) and line_of(stmt.body[0]) is None and begin is not None and begin[1] is not None:
        at = evidence.first_inside(test.values, begin[1] - before - len("while ") + INDENTATION, TO_TEST)
        inner = part_of(test, at) if at else None
        if inner is not None and not folds_not(inner):
            stmt.test, stmt.body = part_of(test, 0, at), [ast.If(negate(inner), [ast.Break()], [])]
        return
    written = evidence.exit_between(evidence.line_after(stmt.body), after, "break")
    lines = [start[0] if start is not None else 0 for start in map(evidence.start, test.values)]
    at = next((at for at in range(1, len(lines)) if 0 < lines[at - 1] < lines[at]), 0)
    if written is not None and at and written.column in (None, evidence.column(stmt.body[0])):
        branch = at_line(ast.If(part_of(test, at), stmt.body, [ast.Break()]), lines[at])
        evidence.set_place(branch.orelse[0], written)
        stmt.test, stmt.body = part_of(test, 0, at), [branch]


def leave_by_break(evidence: Evidence, stmts: list[ast.stmt]) -> bool:
    """Write each ``break`` of a loop that the compiler made a copy of the function's end; return whether there is one.

    Args:
        evidence: of the code.
        stmts: a suite of the loop. Falling off its end, or leaving it, returns nothing.
    """
    found = False
    for at, stmt in enumerate(stmts):
        if isinstance(stmt, ast.Return) and is_nothing(stmt):
            written = evidence.break_at(stmt)
            if written is not None:
                stmts[at] = ast.Break()
                evidence.set_place(stmts[at], written)
                found = True
        else:
            suites = [stmt.orelse] if isinstance(stmt, LOOPS) else suites_of(stmt)
            for suite in suites:
                found |= leave_by_break(evidence, suite)
    return found
