"""Statements in the arrangement that their author gave them.

A control-flow graph does not say how its branches were written: ``if a: return b`` followed by ``c``, or ``else: c``;
``if not a: continue`` followed by ``b``, or ``if a: b``; a ``return`` at the end of each branch, or nothing. These are
one program. The line table shows which of them was written (:mod:`.evidence`): the statements of one suite share an
indentation, and ``continue`` has its own place. Where no line decides, the bytecode order is preserved, and no
``else`` follows a branch that always leaves.

Example::

    for x in xs:                        for x in xs:
        if x in seen:                       if x in seen:
            pass                                continue
        else:                    ->         seen.add(x)
            seen.add(x)

All forms compile to the same program. The result is proven like any other text.
"""

from __future__ import annotations

import ast
import copy
import itertools
from typing import TYPE_CHECKING

from ..lift.spelling import INDENTATION, folds_not, negate
from ..nodes import all_statements, at_line, compound_places, line_of, part_of, suites_of
from .arrange_tries import (
    arrange_loop,
    arrange_match,
    arrange_try,
    arrange_with,
    break_after_body,
    break_in_loop,
    else_or_after,
    join_line,
    leave_by_break,
    with_finally,
)
from .evidence import AFTER_ALL, TO_TEST, Evidence, Exit
from .frames import (
    LEAVES,
    LOOPS,
    breaks_of,
    first_line,
    is_before,
    is_empty,
    is_endless,
    is_nothing,
    leave,
    leaves_by,
    never_falls,
    word_of,
)
from .spell_tests import split_asserts

if TYPE_CHECKING:
    from ..bodies import Body


def arrange(body: Body) -> None:
    """Arrange the statements of a body as its author did."""
    if body.scope.kind == "lambda":
        return
    stmts = all_statements(body.statements)
    if any(isinstance(each, ast.Assert) for each in stmts):
        split_asserts(body.statements, body.scope)
    end = "" if body.is_namespace else "return"
    if not compound_places(body.statements) or body.evidence is None:
        if body.statements and leaves_by(body.statements[-1], end):
            body.statements.pop()
        return
    returns = [each for each in stmts if isinstance(each, ast.Return)]
    arrangement = _Arrangement(body.evidence, not all(map(is_nothing, returns)))
    for each in returns:
        arrangement.place(each)
    for stmt in reversed(stmts):
        if isinstance(stmt, (ast.With, ast.AsyncWith)):
            join_line(body.evidence, stmt)
    arrangement.place_ends(body.statements)
    arrangement.suite(body.statements, end, AFTER_ALL)


def _in_branches(stmts: list[ast.stmt]) -> list[tuple[list[ast.stmt], int]]:
    """Return each statement in a suite of a loop, and in branches in it: the suite that it is in, its number."""
    found = []
    for number, stmt in enumerate(stmts):
        found.append((stmts, number))
        if isinstance(stmt, ast.If):
            found += _in_branches(stmt.body) + _in_branches(stmt.orelse)
    return found


class _Arrangement:
    """The arrangement of one body; statements are changed in place.

    Args:
        evidence: of its code.
        returns_values: whether one of its statements returns a value.
    """

    def __init__(self, evidence: Evidence, returns_values: bool) -> None:
        self.evidence = evidence
        self.returns_values = returns_values

    def place(self, stmt: ast.Return) -> None:
        """Give a ``return`` the line on which it was written: that of its operation may be of a ``with`` around."""
        place = self.evidence.place_of_return(stmt)
        if place is not None:
            at_line(stmt, place.line)

    def place_ends(self, stmts: list[ast.stmt]) -> None:
        """Place the ends of loops, branches and cases: the graph does not say which suite they are in.

        (:func:`~depyf.decompiler.undo.duplicate_ends.merge_returns` has made one of the copies of each.)
        """
        for at in compound_places(stmts):
            stmt = stmts[at]
            if isinstance(stmt, (ast.With, ast.AsyncWith)):
                arrange_with(self.evidence, stmt)
            for part in suites_of(stmt):
                self.place_ends(part)
            if isinstance(stmt, LOOPS) and not stmt.orelse:
                self._breaks(stmts, at)
                self._into_break(stmts, at)
            if isinstance(stmt, ast.If) and self._ends_as_rest(stmt, stmts[at + 1:]):
                stmt.body.pop()
            elif isinstance(stmt, ast.If) and self._ends_alike(stmt, stmts[at + 1:]):
                both = stmt.orelse + stmts[at + 1:]
                stmt.orelse, stmts[at + 1:] = both[:-1], [stmt.body.pop()]

    def _ends_alike(self, stmt: ast.If, rest: list[ast.stmt]) -> bool:
        """Return whether a branch may end in a copy of the ``return`` that its ``else``, or what follows, ends in.

        (Where places are known, :func:`~depyf.decompiler.undo.duplicate_ends.merge_returns` has found it.)
        """
        others, last = rest or stmt.orelse, stmt.body[-1]
        if self.evidence.has_lines or not stmt.body[1:] or not others or stmt.orelse and rest[1:]:
            return False
        return isinstance(last, ast.Return) and self.evidence.may_be_copied(last) and (
            ast.dump(last) == ast.dump(others[-1]))

    def _ends_as_rest(self, stmt: ast.If, rest: list[ast.stmt]) -> bool:
        """Return whether a branch ends in the ``break`` after it, which the author wrote once: left of the branch."""
        if len(rest) != 1 or len(stmt.body) < 2 or not isinstance(rest[0], ast.Break) or stmt.orelse or not isinstance(
                stmt.body[-1], ast.Break):
            return False
        begin, column = self.evidence.line_after(stmt.body[:-1]), self.evidence.column(stmt.body[0])
        written = self.evidence.exit_between(begin, AFTER_ALL, "break")
        return written is not None and written.column is not None and column is not None and written.column < column

    def _breaks(self, stmts: list[ast.stmt], at: int) -> None:
        """Write what is left of the body of a loop after the loop, and ``break`` for each copy in it."""
        loop, rest = stmts[at], stmts[at + 1:]
        assert isinstance(loop, LOOPS)
        inner = self.evidence.column(loop.body[0])
        copies = [(suite, number) for suite, number in _in_branches(loop.body)
                  if inner is not None and (column := self.evidence.column_of_head(suite[number])) is not None
                  and column < inner and self.evidence.first_line(suite[number]) is not None]
        if not copies or not (rest or is_endless(loop)):
            return
        suite, number = copies[0]
        if not isinstance(suite[number], ast.Return):
            breaks = isinstance(suite[-1], ast.Break)
            moved = suite[number:len(suite) - breaks]
            jumps = {ast.Break, ast.Continue}.intersection(map(type, all_statements(moved)))
            is_only = len(list(breaks_of(loop.body))) == breaks and all(each is suite for each, _ in copies)
            if is_only and not jumps and (not rest if never_falls(moved) else breaks):
                stmts[at + 1:at + 1] = moved
                suite[number:] = [ast.Break()]
            return
        found = [suite[number] for suite, number in copies]
        copy = rest[0] if rest else max(found, key=lambda each: line_of(each) or 0)
        if (line_of(copy) or 0) <= max(line_of(each) or 0 for each in all_statements([loop]) if each not in found):
            return  # (The place of a return inside of two clean-ups is that of the outer one.)
        for suite, number in copies:
            if line_of(suite[number]) == line_of(copy) and ast.dump(suite[number]) == ast.dump(copy):
                suite[number] = ast.Break()
        stmts[at + 1:at + 1] = [] if rest else [copy]

    def _into_break(self, stmts: list[ast.stmt], at: int) -> None:
        """Write the statements after an endless loop that are further right than its body before its one ``break``."""
        loop = stmts[at]
        assert isinstance(loop, LOOPS)
        inner = self.evidence.column(loop.body[0])
        breaks = [place for place in _in_branches(loop.body) if isinstance(place[0][place[1]], ast.Break)]
        if inner is None or len(breaks) != 1 or len(list(breaks_of(loop.body))) != 1 or not is_endless(loop):
            return
        suite, number = breaks[0]
        moved = list(itertools.takewhile(lambda each: (self.evidence.column(each) or 0) > inner, stmts[at + 1:]))
        suite[number:number] = moved
        del stmts[at + 1:at + 1 + len(moved)]

    def suite(self, stmts: list[ast.stmt], end: str, after: int | None, begin: int | None = None) -> None:
        """Arrange a suite.

        Args:
            stmts: its statements.
            end: the effect of falling off its end: ``return`` (of nothing), ``continue``; empty for any other.
            after: the line of the next statement.
            begin: the line that it begins after, where a word may be all that it is.
        """
        last = stmts[-1] if stmts[1:] else None
        if isinstance(last, ast.Continue) and end != "continue":  # (The statements before it end as it does.)
            del stmts[-1]
            self.suite(stmts, "continue", line_of(last) or after)
            if not never_falls(stmts):
                stmts.append(last)
            return
        if end and is_empty(stmts) and line_of(stmts[0]) is None:
            written = self.evidence.exit_between(begin, after)
            if written is not None and written.kind == end:
                stmts[:] = [leave(end, None)]
                self.evidence.set_place(stmts[0], written)
        self._drop_exit(stmts, end)
        self._forms(stmts, 0, end, after)
        self._drop_exit(stmts, end)
        for at in compound_places(stmts):
            stmt = stmts[at]
            is_last = at + 1 == len(stmts)
            following = after if is_last else line_of(stmts[at + 1])
            if isinstance(stmt, LOOPS) and end == "return" and leave_by_break(self.evidence, stmt.body) and not is_last:
                stmt.orelse += stmts[at + 1:]  # (A ``break`` to the end of the function skips all that follows.)
                del stmts[at + 1:]
                is_last = True
            self._inside(stmt, end if is_last else "", following)
            if isinstance(stmt, LOOPS):
                arrange_loop(self.evidence, stmts, at)
            elif isinstance(stmt, ast.Try) and not stmt.handlers:
                stmts[at] = at_line(with_finally(self.evidence, stmt.body, stmt.finalbody), line_of(stmt))
            elif isinstance(stmt, ast.Try):
                else_or_after(self.evidence, stmts, at)
            elif isinstance(stmt, ast.If):
                self._split(stmts, at, end if is_last else "", following)
            if isinstance(stmt, ast.If):
                written = self.evidence.pass_in_else(stmt) if not stmt.orelse else None
                if written is not None:
                    stmt.orelse = [at_line(ast.Pass(), written.line)]
                stmts[at:at + 1] = self._guards(stmt)
        if end == "continue" and stmts[1:] and isinstance(stmts[-1], ast.Continue) and line_of(stmts[-1]) is None:
            del stmts[-1]  # (One that was written has a line, or is written again below.)
        if self.evidence.has_columns or stmts and not suites_of(stmts[-1]):  # (It may be in a suite of the last.)
            self._add_exit(stmts, end, after)

    def _forms(self, stmts: list[ast.stmt], first: int, end: str, after: int | None) -> None:
        """Arrange the statements of a suite from a place on, those that come into the suite by that, too."""
        for at in compound_places(stmts):
            if at < first:
                break
            stmt = stmts[at]
            before = len(stmts)
            if isinstance(stmt, ast.If):
                self._test(stmts, at, end, after)
            elif isinstance(stmt, ast.Try):
                arrange_try(self.evidence, stmts, at, end, after)
            elif isinstance(stmt, ast.Match):
                arrange_match(self.evidence, stmts, at, end, after)
            if len(stmts) > before:
                self._drop_exit(stmts, end)
                self._forms(stmts, at + 1, end, after)

    def _inside(self, stmt: ast.stmt, end: str, after: int | None) -> None:
        """Arrange the suites of a compound statement."""
        suites = suites_of(stmt)
        if not suites:
            return
        if isinstance(stmt, LOOPS):
            if isinstance(stmt, ast.While):
                break_in_loop(self.evidence, stmt)
                break_after_body(self.evidence, stmt, first_line(stmt.orelse) or after)
            limit = first_line(stmt.orelse) or after
            begin = self.evidence.start(stmt.test if isinstance(stmt, ast.While) else stmt.iter)
            self.suite(stmt.body, "continue", limit, line_of(stmt) if begin is None else begin[0])
            self.suite(stmt.orelse, end, after)
            return
        finish = getattr(stmt, "finalbody", [])
        lines = [None, *map(line_of, getattr(stmt, "handlers", ()))]
        lines += [None] * (len(suites) - len(lines))
        for number, suite in enumerate(suites):
            following = next((line for at in range(number + 1, len(suites))
                              if (line := lines[at] or first_line(suites[at]))), after)
            falls_through = not (isinstance(stmt, ast.Try) and suite is stmt.body and stmt.orelse)
            self.suite(suite, end if falls_through and suite is not finish else "", following, lines[number])
        if isinstance(stmt, ast.If) and is_empty(stmt.orelse):
            stmt.orelse = []

    # --- one ``if`` -------------------------------------------------------------------------------
    def _test(self, stmts: list[ast.stmt], at: int, end: str, after: int | None) -> None:
        """Arrange an ``if`` among the statements of its suite.

        What follows a side that never falls off its end belongs to the other side. Lines say which of the two was
        written first, and columns how much of each was written after the ``if``.
        """
        stmt = stmts[at]
        assert isinstance(stmt, ast.If)
        if not stmt.orelse and stmts[at + 1:] and never_falls(stmt.body) and (
                not self._in_order(stmt, stmt.body, [], "", None) or stmt.orelse):
            return  # (``if not a: pass`` with the rest in the ``else``.)
        true, false, rest = stmt.body, stmt.orelse, stmts[at + 1:]
        if never_falls(true):
            false, rest = false + rest, []
        elif false and never_falls(false):
            true, rest = true + rest, []
        end, after = "" if rest else end, first_line(rest) or after
        if self._in_order(stmt, true, false, end, after):
            stmts[at + 1:] = rest
            self._split(stmts, at, end, after)

    def _in_order(self, stmt: ast.If, true: list[ast.stmt], false: list[ast.stmt], end: str, after: int | None) -> bool:
        """Make the side of a test that was written first its body, and the other its ``else``.

        Args:
            stmt: the ``if``.
            true, false: what its test leads to.
            end: the effect of falling off either.
            after: the line of the statement after both.

        Returns:
            Whether columns may say that a part of them was written after the statement.
        """
        sides = [[] if is_empty(side) and line_of(side[0]) is None else side for side in (true, false)]
        can_swap = not folds_not(stmt.test)
        words = [self._word(side, end) for side in sides]
        for side, word in zip(sides, words):  # (Of two words one has its place first.)
            if side and None not in words:
                self._place_word(side, self.evidence.exit_between(line_of(stmt), after, word or ""))
                words = [self._word(side, end) for side in sides]
        is_first: int | None = None
        number = next((at for at in (1, 0) if words[at] is not None and words[1 - at] is None), None)
        if number is not None:
            guard = self._guard(stmt, sides, number, end) if can_swap or not number else None
            if guard is not None and self._nest_guard(stmt, sides, number):
                return False
            side, other = sides[number], sides[1 - number]
            written = guard
            if written is None and side:
                count = self._count_inside(stmt, other, side)
                written = self.evidence.exit_between(
                    self.evidence.line_after(other[:count]), first_line(other[count:]) or after, words[number] or "",
                    self.evidence.column(other[0]))
            self._place_word(side, written)
            if written is None and words[number] == end and self.evidence.has_lines:
                sides[number] = []
            elif side:
                is_first = number if guard is not None or written is None else 1 - number
        if is_first is None:
            is_first = int(bool(sides[1]) and (not sides[0] or is_before(sides[1], sides[0]) and (
                self.evidence.has_columns or not never_falls(sides[0]) or never_falls(sides[1])
                or leaves_by(sides[0][-1], end))))  # (Without columns a ``return`` may have the line of a clean-up.)
        if is_first and can_swap:
            sides.reverse()
            stmt.test = negate(stmt.test)
        stmt.body, stmt.orelse = sides
        if not stmt.body:
            is_exit = end and stmt.orelse and not self.evidence.has_lines
            stmt.body = [leave(end, None) if is_exit else at_line(ast.Pass(), None)]
        return True

    def _guard(self, stmt: ast.If, sides: list[list[ast.stmt]], number: int, end: str) -> Exit | None:
        """Return the word between a test and the side that is more than one; write it where the other is empty.

        Args:
            stmt: the ``if``; where the word is inside of another, or between two operands, its test is divided.
            sides: what its test leads to.
            number: of the side that is a word, or nothing.
            end: the effect of falling off either.
        """
        side, other = sides[number], sides[1 - number]
        begin = self.evidence.start(stmt.test)
        if side:
            return self.evidence.exit_between(line_of(stmt), first_line(other), word_of(side[0]))
        written = self.evidence.exit_between(line_of(stmt) if begin is None else begin[0], first_line(other))
        if written is None:
            return None
        stmt.body = other
        is_inside = bool(number) and self._outer_test(stmt, written)
        sides[1 - number] = stmt.body
        if not is_inside and end and written.kind in ("", end, f"{end} None"):
            sides[number] = [leave(written.kind or end, None)]
        elif not is_inside and written.kind in ("", "pass") and self._is_pass(stmt, written):
            sides[number] = [ast.Pass()]
        return written if sides[number] else None

    def _place_word(self, side: list[ast.stmt], written: Exit | None) -> None:
        if side and written is not None:
            self.evidence.set_place(side[0], written)

    def _count_inside(self, stmt: ast.If, side: list[ast.stmt], other: list[ast.stmt]) -> int:
        """Return how many statements of the side of a test that was written first are in the branch.

        Those no further right than the test are not; without columns, those below the other side.
        """
        inner, begin = self.evidence.column(side[0]), self.evidence.start_of_test(stmt)
        if inner is not None:
            right = inner - INDENTATION + 1
            return self.evidence.count_indented(side, right if begin is None else min(right, begin[1]))
        if not other or not is_before(side, other):
            return len(side)
        return sum(1 for _ in itertools.takewhile(lambda each: not is_before(other, [each]), side))

    def _word(self, side: list[ast.stmt], end: str) -> str | None:
        """Return the word that is all of a side, if its place is not known; ``None`` for any other side."""
        if not side:
            return end
        only = side[0] if len(side) == 1 else None
        if isinstance(only, (ast.Break, ast.Continue)):
            return word_of(only) if line_of(only) is None else None
        is_implicit = isinstance(only, ast.Return) and is_nothing(only) and end == "return" and (
            self.evidence.has_lines and self.evidence.column(only) is None and not self.evidence.is_written(only))
        return end if is_implicit else None

    def _is_pass(self, stmt: ast.If, written: Exit) -> bool:
        """Return whether a word between a test and what is its body by now is a ``pass`` with that in the ``else``."""
        first = stmt.body[0]
        if self._is_elif(stmt):
            return True
        if written.column is None and isinstance(first, (ast.While, ast.Return)):
            return False  # (``while True``, and unwinding before a ``return``, have lines without operations, too.)
        return written.column == self.evidence.column(first) and (
            written.column is None and bool(written.kind)
            or bool(self.evidence.room([at_line(ast.Pass(), written.line)], stmt.body)))

    def _split(self, stmts: list[ast.stmt], at: int, end: str, after: int | None) -> None:
        """Write what columns say was not in a branch or the ``else`` after the ``if``."""
        stmt = stmts[at]
        assert isinstance(stmt, ast.If)
        evidence, inner = self.evidence, self.evidence.column(stmt.body[0])
        if stmt.orelse:
            self._add_exit(stmt.body, end, first_line(stmt.orelse), ("continue", ""))
        count = self._count_inside(stmt, stmt.body, stmt.orelse)
        rest = stmt.body[count:]
        if not stmt.orelse and end and (rest or never_falls(stmt.body)):
            written = evidence.exit_between(evidence.line_after(stmt.body[:count]), first_line(rest) or after, end)
            if written is not None and written.column is not None and written.column == inner:
                stmt.orelse = [leave(end, None)]
                evidence.set_place(stmt.orelse[0], written)
        if rest and self._leaves(stmt.orelse, end):
            del stmt.body[count:]
            stmts[at + 1:at + 1] = rest
        elif stmt.orelse and self._leaves(stmt.body, end):
            count = self._in_else(stmt, stmt.orelse, end)
            stmts[at + 1:at + 1] = stmt.orelse[count:]
            del stmt.orelse[count:]

    def _leaves(self, side: list[ast.stmt], end: str) -> bool:
        """Return whether a side ends in a written statement after which control goes elsewhere."""
        return bool(side) and never_falls(side) and not (end == "return" and self.evidence.falls_off(side) and (
            self.evidence.has_lines or not self.returns_values))

    def _in_else(self, stmt: ast.If, rest: list[ast.stmt], end: str) -> int:
        """Return how many statements after an ``if`` (or in its ``else``) were written in an ``else``."""
        evidence = self.evidence
        known = evidence.count_in_else(ast.If(stmt.test, stmt.body, []), rest)
        if known is not None:
            return known
        inner, first = evidence.column(stmt.body[0]), evidence.column(rest[0])
        if first is None and inner is not None and isinstance(rest[0], ast.If):  # (What is in it is on its line.)
            outer = inner - INDENTATION
            first = outer if evidence.column_of_head(rest[0]) == outer or evidence.begins_elif(rest[0], outer) else None
        if inner is None or first is None:
            return self._in_else_by_style(stmt, rest, end)
        if first < inner:
            if not (isinstance(rest[0], ast.If) and evidence.begins_elif(rest[0], first)):
                return 0
            # (Simple statements that are further right are in its ``else``.)
            return 1 + (evidence.count_indented(rest[1:], first + 1) if rest[1:] and not suites_of(rest[1]) else 0)
        return evidence.count_indented(rest, inner)

    def _guards(self, stmt: ast.If) -> list[ast.stmt]:
        """Return the guards that were written for ``if a or b: continue``: one after each exit between two operands.

        Those of ``if a and (b or c): continue`` are inside of ``if a``.
        """
        test = stmt.test
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and not stmt.orelse:
            inner = self._guards(ast.copy_location(ast.If(test.values[-1], stmt.body, []), stmt))
            return [ast.copy_location(ast.If(part_of(test, 0, -1), inner, []), stmt)] if len(inner) > 1 else [stmt]
        if stmt.orelse or len(stmt.body) > 1 or not isinstance(stmt.body[0], LEAVES) or not (
                isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or)):
            return [stmt]
        starts = [0, *(at for at in range(1, len(test.values))
                       if self.evidence.exits_between(*test.values[at - 1:at + 1]))]
        guards: list[ast.stmt] = []
        for start, end in zip(starts, [*starts[1:], len(test.values)]):
            guard = ast.copy_location(ast.If(part_of(test, start, end), [copy.copy(stmt.body[0])], []), stmt)
            place = self.evidence.start(test.values[end - 1])
            guards.append(at_line(guard, place and place[0]))
        return guards if len(guards) > 1 else [stmt]

    def _outer_test(self, stmt: ast.If, written: Exit) -> bool:
        """Make ``if a: if b:`` of ``if a and b:``, and of ``if not (not a or not b):``, where one word shows that.

        It is written between the two tests, or it is inside of an ``if`` at the column of the second one.

        Returns:
            Whether it is inside.
        """
        both, op = (stmt.test.operand, ast.Or) if isinstance(stmt.test, ast.UnaryOp) else (stmt.test, ast.And)
        if not isinstance(both, ast.BoolOp) or not isinstance(both.op, op):
            return False
        operands = both.values
        starts = [*map(self.evidence.start, operands)]
        at = next((at for at, (before, start) in enumerate(itertools.pairwise(starts), 1)
                   if before is not None and start is not None and start[0] > written.line), 0)
        is_between = at > 0
        if not at and written.column is not None and starts[0] is not None and (
                (starts[0][1] or 0) < written.column - INDENTATION + TO_TEST[0]):
            at = self.evidence.first_inside(operands, written.column - INDENTATION, TO_TEST)
        if not at:
            return False
        outer, inner = part_of(both, 0, at), part_of(both, at)
        if both is not stmt.test:
            if folds_not(inner):  # (``not b`` would be another program.)
                return False
            outer, inner = negate(outer), negate(inner)
        if starts[0] is not None:
            stmt.body = [ast.copy_location(ast.If(inner, stmt.body, []), stmt)]
            stmt.test, stmt.lineno = outer, (starts[at - 1] or starts[0])[0]
        return not is_between

    def _first_inside(self, operands: list[ast.expr], suite: list[ast.stmt]) -> int:
        """Return which operand of a test was the test of an ``if`` in a suite, inside of an ``if`` on those before it.

        The first operand is too far left for an ``if`` in that suite; else the other has no ``not`` and no parenthesis
        before it, after which the lines of one test begin there, too.

        Returns:
            Its index; 0 for none.
        """
        column = next((known for stmt in suite if (known := self.evidence.column(stmt)) is not None), None)
        begin = self.evidence.start(operands[0])
        if column is None or begin is None or begin[1] is None:
            return 0
        return self.evidence.first_inside(
            operands, column, TO_TEST if begin[1] < column + TO_TEST[0] else TO_TEST[:1])

    def _nest_guard(self, stmt: ast.If, sides: list[list[ast.stmt]], number: int) -> bool:
        """Make ``if not a:``, with ``if b: continue`` and the rest in it, of ``if a or b: continue``.

        And ``if a:``, with ``if not b: continue`` and the rest in it, of ``if not (a and b): continue``. After ``pass``
        the rest is in an ``else``.

        Args:
            stmt: the ``if``.
            sides: what its test leads to.
            number: of the side that is the word.

        Returns:
            Whether it was written so, and made.
        """
        test, (word, rest) = negate(stmt.test) if number else stmt.test, (sides[number], sides[1 - number])
        both, op = (test.operand, ast.And) if isinstance(test, ast.UnaryOp) else (test, ast.Or)
        at = self._first_inside(both.values, rest) if isinstance(both, ast.BoolOp) and isinstance(both.op, op) else 0
        if not at:
            return False
        assert isinstance(both, ast.BoolOp)
        outer, inner = part_of(both, 0, at), part_of(both, at)
        outer, inner = (negate(outer), inner) if both is test else (outer, negate(inner))
        guard = ast.copy_location(ast.If(inner, word, rest if is_empty(word) else []), stmt)
        stmt.test, stmt.body, stmt.orelse = outer, [guard, *([] if guard.orelse else rest)], []
        return True

    def _is_elif(self, stmt: ast.If) -> bool:
        """Return whether the branch of an ``if`` is one that was written as ``elif``."""
        inner, *rest = stmt.body
        column = self.evidence.column(inner)
        if not isinstance(inner, ast.If) or column is None or not self.evidence.begins_elif(inner, column):
            return False
        return not rest or never_falls(inner.body) and (
            self.evidence.is_further_right(rest[0], inner)
            or isinstance(rest[0], ast.If) and self.evidence.begins_elif(rest[0], column))

    def _in_else_by_style(self, stmt: ast.If, rest: list[ast.stmt], end: str) -> int:
        """Return how many statements to write in an ``else`` where no column decides.

        There is no ``else`` after a branch that never falls off its end, with two exceptions: an ``if`` that has an
        ``else`` is an ``elif``, and a ``return`` or ``raise`` after exactly one line without operations is in an
        ``else``.
        """
        first = rest[0]
        if len(rest) > 1 or leaves_by(stmt.body[-1], end) or self.evidence.is_last(rest):
            return 0
        if isinstance(first, ast.If):
            return int(bool(first.orelse))
        return int(isinstance(first, LEAVES) and self.evidence.room(stmt.body, rest) == 1)

    # --- the end of a suite -----------------------------------------------------------------------
    def _drop_exit(self, stmts: list[ast.stmt], end: str) -> None:
        """Drop the ``return`` at the end of a suite that has the effect of falling off it, unless it was written."""
        for at, stmt in enumerate(stmts):
            if not isinstance(stmt, ast.Return) or not is_nothing(stmt):
                continue
            is_last = end == "return" and stmt is stmts[-1]
            written = self.evidence.is_written(stmt)
            is_alone = is_last and len(stmts) == 1 and not self.returns_values
            if not self.evidence.has_columns and (written == "return" or written == "?" and not is_alone
                                                  or not self.evidence.has_lines and not is_last):
                # (PEP 8: a function returns an expression in all places, or in none.)
                written = "return None" if self.returns_values else "return"
            if is_last and isinstance(stmts[at - 1], (ast.With, ast.AsyncWith)) and (
                    self.evidence.is_further_right(stmt, stmts[0])) and (
                    (line_of(stmt) or 0) <= (self.evidence.last_line([stmts[at - 1]]) or 0)):
                written = ""  # (It was written inside of the ``with``, which it has to leave: 3.13.)
            if written in ("return", "return None"):
                stmt.value = ast.Constant(None) if written == "return None" else None
            elif is_last:
                stmts[at:] = [] if stmts[1:] else [at_line(ast.Pass(), line_of(stmt))]

    def _add_exit(self, stmts: list[ast.stmt], end: str, after: int | None,
                  kinds: tuple[str, ...] = ("continue",)) -> None:
        """Write the exit that the author wrote at the end of a suite, where falling off it does the same."""
        last = stmts[-1] if stmts else None
        if end and self.evidence.exits and last is not None and not never_falls(stmts):
            written = self.evidence.exit_between(self.evidence.line_after(stmts), after)
            if written is not None and written.kind in (kinds if end == "continue" else ("return", "return None")) and (
                    written.column == self.evidence.column(last)):
                stmts.append(leave(written.kind or end, written.line))
                self.evidence.set_place(stmts[-1], written)
