"""Facts of a code object's source text, read from its line table: where statements begin, and which say nothing.

Code of 3.11 and later has a position for each instruction (line, column, end). From these follow

* the column of a statement: its indentation (*certain*: the compiler gives operations the span of their node);
* the statements ``continue``, ``break``, ``pass``, ``return`` that leave nothing but a jump, a NOP or the load of
  ``None`` (*certain*: no other node has their span and does no more than that. A constant may be as wide as one of
  them, but then it is loaded). Operations that the compiler adds have the position of the preceding ones
  (``propagate_line_numbers`` in compile.c), or none;
* the column of a compound statement: one step of indentation left of its first line (*likely*).

Code of 3.10 and before has lines only. A line with nothing but such operations is one of these statements
(*likely*: which of them, is not known).

Example: ``for x in y:`` / ``    if x: continue`` / ``    f(x)`` has a jump with the position ``2:10-2:18``. It is eight
columns wide, and no other instruction has it: ``continue``.
"""

from __future__ import annotations

import ast
import sys
from bisect import bisect_left
from collections.abc import Collection
from functools import cache, cached_property
from itertools import compress
from operator import attrgetter
from typing import NamedTuple

from ...bytecode.code import Code, decode, table
from ...bytecode.linetable import Position, parse_exception_table, positions
from ..lift.spelling import BRANCH_TO_TEST, ELIF_TO_TEST, IF_TO_TEST, INDENTATION, best_spelling, first_part, start_of
from ..nodes import SCOPES, Literal, all_statements, at_line, line_of, offset_of, ops_of, suites_of
from .frames import is_nothing, word_of
from .leftovers import Leftovers, one_line_guards

#: A line that is after each line of a function.
AFTER_ALL = sys.maxsize
#: The statements that may leave nothing but a jump, by their width.
_BY_WIDTH = {4: "pass", 5: "break", 6: "return", 8: "continue"}
#: Operations that these leave, and those that leave loops, handlers and ``with`` before them.
_LEAVING = (
    "NOP", "JUMP_ABSOLUTE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "POP_TOP", "POP_EXCEPT",
    "POP_ITER", "SWAP", "LOAD_CONST", "LOAD_SMALL_INT", "RETURN_VALUE", "RETURN_CONST", "POP_BLOCK", "ROT_TWO",
    "EXTENDED_ARG", "NOT_TAKEN", "CACHE", "END_FOR", "BREAK_LOOP", "CONTINUE_LOOP", "BEGIN_FINALLY",
    "WITH_CLEANUP_START", "WITH_CLEANUP_FINISH", "POP_FINALLY", "CALL_FINALLY",
)
#: Further operations that leave a ``with`` up to 3.10 (calls have them, too) or follow handlers.
_LEAVING_WITH = ("DUP_TOP", "CALL_FUNCTION", "RERAISE", "END_FINALLY")
#: Columns from a statement to its test: ``if`` or ``elif``, and perhaps ``not`` and a parenthesis.
TO_TEST, _TO_TEST_OF_ELIF = (
    (*widths, *(width + len("not ") for width in widths)) for widths in (IF_TO_TEST, ELIF_TO_TEST))


class Exit(NamedTuple):
    """A statement of one word.

    Attributes:
        line: its line.
        column: of its first letter; ``None`` where that is not known.
        kind: ``continue``, ``break``, ``pass`` or ``return``; ``""`` for one of them; ``"return None"``.
    """

    line: int
    column: int | None
    kind: str


class _Opcodes:
    """The opcodes of one version that show what was written.

    Attributes:
        nop: of ``NOP``.
        leaving: of :data:`_LEAVING`.
        acting: those of them that do more than load a constant, which may be an operand.
        returning, jumping: that return, and that jump in any case.
        extended, taking: of ``EXTENDED_ARG``, and of what takes the ``None`` of a statement.
        moving: that only move or drop values.
        preceding: that can come before the first operation of an expression, as a part of it.
        looping, caches_of_loop: that jump back to the head of a loop, and the number of their caches.
        constant, small: that load a constant, and the one of them whose argument it is (3.14).
        storing, deleting: that store and that delete variables.
        storing_two: of the one that stores two (3.13).
    """

    def __init__(self, version: tuple[int, int]) -> None:
        opcodes = table(version).opcodes

        def numbers(*names: str) -> frozenset[int]:
            return frozenset(opcodes[name] for name in names if name in opcodes)

        self.nop = opcodes["NOP"]
        self.leaving = numbers(*_LEAVING, *(_LEAVING_WITH if version < (3, 11) else ()))
        # (A ``None`` among operands is a separate load, as wide as ``pass``.)
        self.acting = self.leaving - numbers(
            "LOAD_CONST", "LOAD_SMALL_INT", "EXTENDED_ARG", "CACHE", *_LEAVING_WITH)
        self.returning = numbers("RETURN_VALUE", "RETURN_CONST")
        self.jumping = numbers(*(name for name in _LEAVING if name.startswith("JUMP")), "RAISE_VARARGS", "RERAISE")
        self.looping = numbers("JUMP_BACKWARD")
        self.caches_of_loop = table(version).caches[opcodes["JUMP_BACKWARD"]] if self.looping else 0
        self.extended = opcodes["EXTENDED_ARG"]
        self.moving = numbers("SWAP", "POP_TOP", "ROT_TWO")
        self.preceding = numbers("EXTENDED_ARG", "PUSH_NULL")
        self.small = opcodes.get("LOAD_SMALL_INT", -1)
        self.constant = numbers("LOAD_CONST", "RETURN_CONST", "LOAD_SMALL_INT")
        self.storing, self.deleting = (numbers(*(start + scope for scope in ("FAST", "NAME", "GLOBAL", "DEREF")))
                                       for start in ("STORE_", "DELETE_"))
        self.storing_two = opcodes.get("STORE_FAST_STORE_FAST", -1)
        self.taking = self.returning | self.storing | {self.extended}


_opcodes = cache(_Opcodes)


@cache
def _selection(opcodes: frozenset[int]) -> bytes:
    """Return a table for ``bytes.translate`` that leaves 1 for some opcodes and 0 for all others."""
    selection = bytearray(256)
    for opcode in opcodes:
        selection[opcode] = 1
    return bytes(selection)


def _place_of_exit(each: Exit) -> tuple[int, int]:
    return each.line, each.column or 0


def _lines_of(places: set[Position | None]) -> set[int]:
    return {position.line for position in places if position is not None}


def _count_lines(positions: list[Position | None]) -> int:
    """Count the lines of positions, up to two."""
    first: int | None = None
    for position in positions:
        if position is not None and position.line != first:
            if first is not None:
                return 2
            first = position.line
    return 0 if first is None else 1


def _word_as_wide(position: Position | None) -> str:
    """Return the word that is as wide as a position; empty if none is."""
    if position is None or position.line != position.end_line or position.column is None or position.end_column is None:
        return ""
    return _BY_WIDTH.get(position.end_column - position.column, "")


class Evidence:
    """The facts of one code object.

    Attributes:
        has_columns: whether there are positions (3.11 and later, with the table in place).
        has_lines: whether there are lines.
        copies_exits: whether the compiler copies ends of functions to where jumps lead there (3.10 and later).
    """

    def __init__(self, code: Code, has_places: bool = True, is_resumed: bool = False) -> None:
        """Read the facts.

        Args:
            code: the code object.
            has_places: whether the operations that statements are made of are at their places in the code.
            is_resumed: whether it is a resume function, of which a part is torch's.
        """
        self.positions: list[Position | None] = (
            positions(code) if has_places else [None] * (len(code.bytecode) // 2))
        self._opcodes, self._tables = _opcodes(code.version), table(code.version)
        self._consts, self._names, self._first_line = code.consts, code.varnames, code.firstlineno
        self._exception_table = code.exceptiontable
        self._units, self._arguments = code.bytecode[::2], code.bytecode[1::2]
        self.copies_exits = code.version >= (3, 10)
        self._marks_true = code.version >= (3, 12)
        instructions = decode(code) if has_places and code.version < (3, 11) else []
        self._guards = one_line_guards(instructions)
        self._left = Leftovers(instructions) if instructions and not self.copies_exits else None
        self.has_columns = any(each is not None and each.column is not None for each in self.positions)
        if is_resumed and self.has_columns:  # (Code that torch adds to the user's has a line and no columns.)
            self.positions = [None if position is not None and position.column is None else position
                              for position in self.positions]
        self.has_lines = _count_lines(self.positions) > 1
        self._columns: dict[ast.stmt, int | None] = {}
        self._starts: dict[ast.expr, tuple[int, int] | None] = {}
        self.exits: list[Exit] = []
        if self.has_lines:
            self.exits = self._exits_by_span() if self.has_columns else self._exits_by_line(code)

    # --- one-word statements ----------------------------------------------------------------------
    @cached_property
    def _more(self) -> set[Position | None]:
        """The positions of everything but one-word statements."""
        return self._positions_of(frozenset(self._units) - self._opcodes.leaving)

    def _exits_by_line(self, code: Code) -> list[Exit]:
        """Return the lines with nothing but one-word statements."""
        known = set(self.positions) - {None}
        other = set(self._more)
        units, nop = self._units, self._opcodes.nop
        if code.exceptiontable:  # (``try:`` leaves a NOP before the protected body.)
            other |= {self.positions[entry.start // 2 - 1] for entry in parse_exception_table(code.exceptiontable)
                      if 0 < entry.start <= 2 * len(units) and units[entry.start // 2 - 1] == nop}
        other |= {self.positions[at] for at, opcode in enumerate(units)
                  if opcode in self._opcodes.constant and self._constant(at) is not None}
        if not self._opcodes.deleting.isdisjoint(self._units):
            # (At the end of ``except E as e``, and there alone, ``e`` is set to ``None`` and deleted in one place.)
            opcodes = self._opcodes
            written = frozenset(self._units) - opcodes.leaving - opcodes.storing - opcodes.deleting
            other -= (self._positions_of(opcodes.storing) & self._positions_of(opcodes.deleting)) - (
                self._positions_of(written))
        lines = _lines_of(self._positions_of(self._opcodes.acting) & known) - _lines_of(other)
        words = self._left.words() if self._left is not None else {}
        kinds = {**{line: words.get(line, "") for line in lines}, **self._guards}
        return [Exit(line, None, kinds[line]) for line in sorted(kinds)]

    def _exits_by_span(self) -> list[Exit]:
        """Return the spans that are as wide as a word, and in which nothing is done that the word does not do."""
        spans: dict[Position | None, list[int]] = {
            position: [] for position in self._positions_of(self._opcodes.acting) if _word_as_wide(position)}
        if not spans:  # (so that not all positions are looked at)
            return []
        begun, lines = set(), _lines_of(set(spans))
        for at, position in enumerate(self.positions):
            if position is not None and position.line in lines:
                if position in spans:
                    spans[position].append(at)
                else:
                    begun.add(position[::2])
        exits = []
        for position, units in spans.items():
            assert position is not None and position.column is not None and position.end_column is not None
            inside = ((position.line, column) for column in range(position.column + 1, position.end_column))
            if begun.isdisjoint(inside) and (word := self._word(position, units)):  # (A word has no parts.)
                before = len("return ") if word == "return None" else 0
                exits.append(Exit(position.line, position.column - before, word))
        return sorted(exits, key=_place_of_exit)

    def _word(self, position: Position, units: list[int]) -> str:
        """Return the word that a span is, by its width and its code units; empty if it is something else."""
        opcodes, word = self._opcodes, _word_as_wide(position)
        done = {self._units[at] for at in units}
        stored, deleted = ({self._argument(at) for at in units if self._units[at] in some}
                           for some in (opcodes.storing, opcodes.deleting))
        # (The end of ``except E as e`` sets ``e`` to ``None`` and deletes it.)
        more = done - opcodes.leaving
        if more and (stored != deleted or more - opcodes.storing - opcodes.deleting):
            return ""
        for at in units:  # (A constant that is loaded for more than to be returned, or stored at a handler's end.)
            if self._units[at] in opcodes.constant and (self._constant(at) is not None or (
                    self._units[at] not in opcodes.returning
                    and (self._units[at + 1:at + 2] or b"\0")[0] not in opcodes.taking)):
                return ""
        load = self._load_of_constant(units[-1])
        if word == "pass" and done <= opcodes.moving and load is None:
            return ""  # (It is a name in a pattern.)
        last, after = self._units[units[-1]], self._units[units[-1] + 1:units[-1] + 2]
        if last == opcodes.nop and after and self._tables.jumps[after[0]] and after[0] not in opcodes.leaving:
            return ""  # (It is the ``None`` of ``is None``, before the jump of the test.)
        if word == "pass" and self._units[units[0]] == opcodes.nop \
                and not self._looped.isdisjoint((units[0], units[0] + 1)):
            return ""  # (It is ``while True``.)
        returns = not done.isdisjoint(opcodes.returning)
        if not returns and done.isdisjoint(opcodes.jumping):
            returns = load is not None
            if load is not None and (self._units[load] not in opcodes.constant or self._constant(load) is not None):
                return ""  # (It is a constant that is returned.)
        if word == ("continue" if returns else "return"):
            return ""
        return "return None" if returns and word == "pass" and self._is_after_return(position) else word

    def _load_of_constant(self, at: int) -> int | None:
        """Return the load of the constant that is returned when a construct around a code unit was left.

        Its place is that of the exit of the construct; the constant is at the unit. ``None`` if there is none.
        """
        opcodes = self._opcodes
        for after in range(at + 1, len(self._units)):
            opcode = self._units[after]
            if opcode in opcodes.jumping:
                break
            if opcode in opcodes.returning:
                load = after if opcode in opcodes.constant else after - 1
                is_left = self._units[load] in opcodes.constant and self.positions[load] in self._more
                return load if is_left else None
        return None

    @cached_property
    def _looped(self) -> set[int]:
        """The code units that jumps lead back to."""
        opcodes = self._opcodes
        return {at + 1 + opcodes.caches_of_loop - self._argument(at) for at, opcode in enumerate(self._units)
                if opcode in opcodes.looping}

    @cached_property
    def _protected(self) -> set[int]:
        """The code units at which protected bodies begin."""
        return {entry.start // 2 for entry in parse_exception_table(self._exception_table)}

    def endless(self, offset: int) -> int | None:
        """Return the column of a ``while True`` whose first operation is at a byte offset; ``None`` if it is none.

        It leaves a NOP on its line, before the place that the loop jumps back to (or that, for a ``continue``): with
        its span (3.11), or that of ``True`` (3.12 and later).
        """
        at = offset // 2
        while 0 < at < len(self.positions) and self._units[at - 1] in self._opcodes.preceding:
            at -= 1
        if at in self._protected and self._units[at - 1] == self._opcodes.nop:
            at -= 1  # (That of ``try``.)
        if not 0 < at < len(self.positions) or self._units[at - 1] != self._opcodes.nop or (
                self._looped.isdisjoint((at - 1, at))):
            return None
        begin, first = self.positions[at - 1], self.positions[at]
        if begin is None or first is None or begin.column is None or begin.line >= first.line:
            return None
        is_short = begin.end_line == begin.line
        if self._marks_true and not is_short:  # (It is of a ``try``.)
            return None
        return begin.column - len("while ") * is_short

    def _is_after_return(self, position: Position) -> bool:
        """Return whether a ``None`` is where ``return`` fits before it, and no statement begins."""
        assert position.column is not None
        before = max((each.end_column for each in self.positions if each is not None and each.end_column
                      and each.end_line == position.line and each.end_column <= position.column), default=None)
        if before is None:  # (On the line of a ``def`` nothing decides; mostly it is ``pass``.)
            return position.line != self._first_line and position.column % INDENTATION == len("return ") % INDENTATION
        return position.column - before > len("return ")

    def _argument(self, at: int) -> int:
        """Return the argument of the operation at a code unit."""
        argument, shift = self._arguments[at], 8
        while at and self._units[at - 1] == self._opcodes.extended:
            at -= 1
            argument |= self._arguments[at] << shift
            shift += 8
        return argument

    def _constant(self, at: int) -> object:
        """Return the constant that the operation at a code unit has."""
        argument = self._argument(at)
        if self._units[at] == self._opcodes.small:
            return argument
        return self._consts[argument] if argument < len(self._consts) else None

    def _positions_of(self, opcodes: frozenset[int]) -> set[Position | None]:
        return set(compress(self.positions, self._units.translate(_selection(opcodes))))

    @cached_property
    def _exits_at(self) -> dict[tuple[int, int | None], list[Exit]]:
        """The one-word statements by line and column, ``return None`` by those of the ``None``."""
        result: dict[tuple[int, int | None], list[Exit]] = {}
        for each in self.exits:
            after = len("return ") if each.kind == "return None" else 0
            result.setdefault((each.line, each.column and each.column + after), []).append(each)
        return result

    def exit_between(
        self, first: int | None, last: int | None, kind: str = "", column: int | None = None,
    ) -> Exit | None:
        """Return the first one-word statement on a line from ``first`` on and before ``last``.

        Those that are known to be of another kind, or further right than a column, are skipped. ``None`` if there is
        none, or if one of the lines is not known.
        """
        if first is None or last is None:
            return None
        for at in range(bisect_left(self.exits, first, key=attrgetter("line")), len(self.exits)):
            found = self.exits[at]
            if found.line >= last:
                break
            if (not kind or found.kind in ("", kind)) and (
                    column is None or found.column is None or found.column <= column):
                return found
        return None

    def exits_between(self, before: ast.expr, after: ast.expr) -> bool:
        """Return whether a one-word statement is on a line between two operands of a test: the exit of a guard."""
        one, other = self.start(before), self.start(after)
        return one is not None and other is not None and self.exit_between(one[0] + 1, other[0]) is not None

    def is_written(self, stmt: ast.Return) -> str:
        """Return whether a ``return`` of nothing was written, and how.

        Returns:
            ``return``, ``return None``; ``pass``, where it was, and falling off the end after it returns; ``?`` for
            one of these; empty if it was not.
        """
        ops = ops_of(stmt)
        if ops is not None and self._left is not None and self._left.ends_by_itself(ops[1]):
            return ""
        for position in self._places_of(stmt)[:None if self.has_columns else 1]:
            for each in self._exits_at.get((position.line, position.column), ()):
                return each.kind if each.kind in ("return", "return None", "pass") else "" if each.kind else "?"
        return ""

    def break_at(self, stmt: ast.Return) -> Exit | None:
        """Return the ``break`` that was written in the place of a ``return`` of nothing.

        (``inline_small_exit_blocks`` in compile.c; the copies have the place of the jump.)
        """
        places = {(position.line, position.column) for position in self._places_of(stmt)}
        return min((each for place in places for each in self._exits_at.get(place, ()) if each.kind == "break"),
                   key=_place_of_exit, default=None)

    def pass_in_else(self, stmt: ast.If) -> Exit | None:
        """Return the ``pass`` that was written as the ``else`` of an ``if``: what the jump after its test leads to."""
        units, column = self._units_of(stmt), self.column(stmt.body[0])
        if units is None or column is None or self._tables.jumps[self._units[units[1]]] != 1:
            return None
        target = units[1] + 1 + self._tables.caches[self._units[units[1]]] + self._argument(units[1])
        place = self.place(2 * target)
        return None if place is None or place[1] != column or place[0] <= (line_of(stmt.body[0]) or 0) else next(
            (each for each in self._exits_at.get(place, ()) if each.kind == "pass"), None)

    def _units_of(self, stmt: ast.stmt) -> tuple[int, int] | None:
        """Return the code units of a statement: its first operation (-1 if not known), and of the one that wrote it."""
        ops = ops_of(stmt)
        return None if ops is None or not 0 <= ops[1] < 2 * len(self.positions) else (ops[0] // 2, ops[1] // 2)

    def _places_of(self, stmt: ast.stmt) -> list[Position]:
        """Return the positions of the operations of a statement, the one that wrote it first."""
        units = self._units_of(stmt)
        if units is None:
            return []
        first, last = max(units[0], 0), units[1]
        if first > 0 and self._units[first - 1] not in self._opcodes.returning:  # (``NOP``, or a leftover.)
            first -= 1
        before = self._before_clean_up(last) if isinstance(stmt, ast.Return) else None
        places = (self.positions[last], *self.positions[first:last], None if before is None else self.positions[before])
        return [position for position in places if position is not None]

    def set_place(self, stmt: ast.stmt, place: Exit) -> None:
        """Give a statement of one word its line and column."""
        at_line(stmt, place.line)
        self._columns[stmt] = place.column

    # --- places of operations ---------------------------------------------------------------------
    def place(self, offset: int) -> tuple[int, int | None] | None:
        """Return line and column at which the operation at a byte offset begins."""
        position = self.position(offset)
        return None if position is None else (position.line, position.column)

    def word_at(self, offset: int) -> str:
        """Return the word that the operation at a byte offset was written as; empty if that is not known."""
        place = self.place(offset)
        return "" if place is None else next((each.kind for each in self._exits_at.get(place, ())), "")

    def start_of_return(self, value: object, offset: int) -> tuple[int | None, int | None]:
        """Return line and column of the ``return`` of a constant, given the offset of the operation that returns it.

        The compiler's own ``return None`` has no place.
        """
        place = self.place(offset)
        if place is None:
            return None, None
        line, column = place
        if value is None:
            word = next(iter(self._exits_at.get(place, ())), None)
            if word is None or word.kind in ("break", "pass"):
                return None, None
            if word.kind == "return" or column is None:
                return line, column
        return line, None if column is None else column - len("return ")

    @cached_property
    def _done_at(self) -> dict[Position | None, set[int]]:
        """The opcodes of the operations at each place."""
        result: dict[Position | None, set[int]] = {}
        for opcode, position in zip(self._units, self.positions):
            result.setdefault(position, set()).add(opcode)
        return result

    def is_of_exit(self, offset: int) -> bool:
        """Return whether nothing that has the place of an operation does more than leave constructs."""
        place, opcodes = self.position(offset), self._opcodes
        more = self._done_at.get(place, set()) - opcodes.leaving
        # (The end of ``except E as e`` sets ``e`` to ``None`` and deletes it.)
        return place is not None and (not more or more <= opcodes.storing | opcodes.deleting and not (
            more.isdisjoint(opcodes.storing) or more.isdisjoint(opcodes.deleting)))

    def return_before(self, offset: int, value: object) -> int | None:
        """Return the offset of an operation with the place of the ``return`` that the clean-up at an offset belongs to.

        Args:
            offset: of the first operation of the clean-up.
            value: the constant that is returned.
        """
        for at in range(offset // 2 - 1, -1, -1):
            place = self.positions[at]
            if self._units[at] not in self._opcodes.leaving | self._opcodes.deleting:
                break
            if place is not None and place.line == place.end_line and self.is_of_exit(2 * at):
                width = (place.end_column or 0) - (place.column or 0)
                if width == len(repr(value)) or value is None and width == len("return"):
                    return 2 * at
            if self._units[at] != self._opcodes.nop:
                break
        return None

    def may_be_copied(self, stmt: ast.Return) -> bool:
        """Return whether a ``return`` of a value may be a copy that the compiler made.

        It copies up to four operations (``inline_small_exit_blocks`` in compile.c, ``MAX_COPY_SIZE``; 3.10 and later).
        An expression is at least one, and so is the return.
        """
        return self.copies_exits and not is_nothing(stmt) \
            and sum(isinstance(node, ast.expr) for node in ast.walk(stmt)) <= 3

    def falls_off(self, stmts: list[ast.stmt]) -> bool:
        """Return whether a suite ends in an implicit ``return``, on one of its paths.

        A function returns where control falls off its end. Where that is copied (3.10 and later:
        ``duplicate_exits_without_lineno`` in compile.c), the copies have the line of the preceding statement.
        """
        last = stmts[-1]
        if len(stmts) > 1 and isinstance(last, ast.Return) and is_nothing(last) and not self.is_written(last):
            return True
        return any(self.falls_off(suite) for stmt in stmts if isinstance(stmt, (ast.If, ast.Try, ast.With))
                   for suite in suites_of(stmt))

    # --- lines ------------------------------------------------------------------------------------
    def first_line(self, stmt: ast.stmt) -> int | None:
        """Return the first line of a statement; ``None`` where it is not known."""
        units, line = self._whole_units_of(stmt), line_of(stmt)
        lines = [line] if line is not None else []
        if units is not None:
            lines += filter(None, self._first_lines[units])
        return min(lines, default=None)

    def last_line(self, stmts: list[ast.stmt]) -> int | None:
        """Return the last line of which something is known to belong to a suite."""
        last = 0
        for stmt in all_statements(stmts):
            if isinstance(stmt, SCOPES):
                last = max([last, *(line_of(each) or 0 for each in ast.walk(stmt) if isinstance(each, ast.stmt))])
            units, line = self._whole_units_of(stmt), line_of(stmt) or 0
            last = max(last, line)
            if units is not None:  # (Before its own operations may be the end of the test of an ``except``.)
                last = max([last, *compress(self._last_lines[units], map(line.__le__, self._first_lines[units]))])
        return last or None

    def line_after(self, stmts: list[ast.stmt]) -> int | None:
        """Return the line after a suite, as far as that is known."""
        last = self.last_line(stmts)
        return None if last is None else last + 1

    def _whole_units_of(self, stmt: ast.stmt) -> slice | None:
        """Return the code units of a statement whose first operation is known."""
        units = self._units_of(stmt)
        return slice(units[0], units[1] + 1) if units is not None and 0 <= units[0] <= units[1] else None

    @cached_property
    def _first_lines(self) -> list[int]:
        """The first line of each code unit; 0 where it is not known."""
        return [0 if each is None else each.line for each in self.positions]

    @cached_property
    def _last_lines(self) -> list[int]:
        """The last line of each code unit; 0 where it is not known."""
        return [0 if each is None else each.end_line for each in self.positions]

    @cached_property
    def _lines_in_order(self) -> list[int]:
        """The lines at which operations begin."""
        return sorted({each.line for each in self.positions if each is not None})

    def room(self, branch: list[ast.stmt], rest: list[ast.stmt]) -> int | None:
        """Return the number of unused lines between a branch and the statements after it.

        An ``else`` of more than one word takes one of them (*certain*: where there is none, there is no ``else``);
        so may a comment, an empty line, and a closing parenthesis. ``None`` where lines are not known.
        """
        last, first = self.last_line(branch), self.first_line(rest[0])
        if last is None or first is None:
            return None
        lines = self._lines_in_order
        return first - 1 - max(lines[bisect_left(lines, first) - 1] if lines and lines[0] < first else last, last)

    # --- unreachable code of the compiler ----------------------------------------------------------
    def count_in_else(self, stmt: ast.If | ast.Try, rest: list[ast.stmt]) -> int | None:
        """Return how many of the statements after one that control never falls out of were written in its ``else``.

        The compiler of 3.9 and before leaves jumps over an ``else`` (:mod:`.leftovers`; *certain*).

        Returns:
            the number; ``None`` where it is unknown.
        """
        if self._left is None:
            return None
        begin, end = self._last_offset([stmt]), self._first_offset(rest[0])
        if begin is None or end is None or begin >= end:
            return None
        target = self._left.jump_after(begin, self._jumps(stmt), end)
        if target is not None:
            starts = [self._first_offset(each) or 0 for each in rest]
            return next((at for at, start in enumerate(starts) if start >= target > end), len(rest))
        return None if self._returns(stmt) else 0

    def is_last(self, stmts: list[ast.stmt]) -> bool:
        """Return whether the compiler is known to have left nothing after a suite, so that it ends in no ``else``."""
        if self._left is None or not isinstance(stmts[-1], ast.Return):
            return False
        offset = self._last_offset(stmts)
        return offset == self._left.last

    def _jumps(self, stmt: ast.stmt) -> bool:
        """Return whether the last suite of a statement ends in a jump, which has no operation of its own."""
        suites = suites_of(stmt)
        return self._jumps(suites[-1][-1]) if suites else isinstance(stmt, (ast.Break, ast.Continue))

    def _returns(self, stmt: ast.stmt) -> bool:
        """Return whether a suite of a statement ends in a ``return``, after which the compiler leaves nothing."""
        return isinstance(stmt, ast.Return) or any(self._returns(suite[-1]) for suite in suites_of(stmt))

    def _first_offset(self, stmt: ast.stmt) -> int | None:
        """Return the byte offset of the first operation that is known of a statement."""
        known = [ops for each in all_statements([stmt]) if (ops := ops_of(each)) is not None]
        return min((first if first >= 0 else last for first, last in known), default=None)

    def _last_offset(self, stmts: list[ast.stmt]) -> int | None:
        """Return the byte offset of the last operation that is known of a suite."""
        return max((ops[1] for each in all_statements(stmts) if (ops := ops_of(each)) is not None), default=None)

    # --- columns ----------------------------------------------------------------------------------
    def column(self, stmt: ast.stmt) -> int | None:
        """Return the column at which a statement begins; ``None`` where it is unknown."""
        if not self.has_columns:
            return None
        if isinstance(stmt, ast.Match):
            return self._match(stmt)
        if stmt not in self._columns:
            if hasattr(stmt, "body") and not isinstance(stmt, SCOPES):
                return self._compound(stmt)  # (It follows from the inner statements, which may still change.)
            self._columns[stmt] = self._simple(stmt)
        return self._columns[stmt]

    def column_of_head(self, stmt: ast.stmt) -> int | None:
        """Return the column of a statement; of an ``if``, the rightmost that its test allows, whatever it contains."""
        if not isinstance(stmt, ast.If):
            return self.column(stmt)
        begin = self.start_of_test(stmt)
        return None if begin is None else begin[1] - len("if ")

    def is_further_right(self, one: ast.stmt, other: ast.stmt) -> bool:
        """Return whether a statement is known to begin further right than another."""
        column, least = self.column(one), self.column(other)
        return column is not None and least is not None and column > least

    def count_indented(self, stmts: list[ast.stmt], column: int | None) -> int:
        """Return how many statements come before one that is known to begin left of a column."""
        return next((at for at, stmt in enumerate(stmts) if column is not None
                     and (begin := self.column(stmt)) is not None and begin < column), len(stmts))

    def _simple(self, stmt: ast.stmt) -> int | None:
        if isinstance(stmt, ast.Assert):
            return self._assert(stmt)
        units = self._units_of(stmt)
        if units is None:
            return None
        first, last = units
        end = self.positions[last]
        if end is None or end.column is None:
            return None
        if isinstance(stmt, ast.Delete):
            return end.column - len("del ")
        if isinstance(stmt, ast.Assign) and (begin := self.position(offset_of(stmt.targets[0]))) is not None and (
                isinstance(stmt.targets[0], ast.Tuple)):
            return begin.column  # (of an unpacking, whose targets may be on several lines)
        if isinstance(stmt, ast.Return):
            place = self.place_of_return(stmt)
            return place.column if place is not None else None
        if self._units[last] == self._opcodes.storing_two and isinstance(stmt, ast.Assign) and isinstance(
                stmt.targets[0], ast.Tuple):
            one, other = (each.id if isinstance(each, ast.Name) else "" for each in stmt.targets[0].elts[:2])
            if one != other == self._names[self._argument(last) >> 4] and one:  # (It stores the second one first.)
                return end.column - len(one) - len(", ")
        span = self.positions[first:last + 1] if 0 <= first <= last else [end]
        columns = [position.column for position in span if position is not None and position.line == end.line]
        return min([column for column in columns if column is not None], default=end.column)

    def place_of_return(self, stmt: ast.Return) -> Position | None:
        """Return where a ``return`` begins; ``None`` where that is not known.

        The operation has the span of the statement, or, for a constant, that of the value (``compiler_return`` in
        compile.c); what 3.14 computes later, as ``-1``, is no constant there. After the clean-up of a ``with`` or
        ``finally`` it has the span of that; the value comes before it. (Of constants see
        :func:`~depyf.decompiler.undo.cleanup_copies.place_returns`.)
        """
        units = self._units_of(stmt)
        place = None if units is None else self.positions[units[1]]
        if units is None or place is None or place.column is None:
            return place
        if stmt.value is None:
            written = self.is_written(stmt)
            if written != "return None":
                return place if written in ("return", "pass") else None
            return place._replace(column=place.column - len("return "))
        begin = self.start(stmt.value)
        is_before = begin is not None and begin[1] is not None and begin < (place.line, place.column)
        if self._before_clean_up(units[1]) is not None or is_before:
            place = None if begin is None else place._replace(line=begin[0], column=begin[1])
        elif not isinstance(stmt.value, (ast.Constant, Literal)) or (
                begin is not None and begin[1] is not None and begin > (place.line, place.column)):
            return place
        return None if place is None or place.column is None else place._replace(column=place.column - len("return "))

    def _before_clean_up(self, last: int) -> int | None:
        """Return the code unit before the clean-up of a ``with`` or ``finally`` whose place the one at ``last`` has."""
        before = last
        while before > 0 and self.positions[before] == self.positions[last]:
            before -= 1
        return None if self._opcodes.leaving.issuperset(self._units[before + 1:last]) else before

    def _assert(self, stmt: ast.Assert) -> int | None:
        """Return the column of an ``assert``.

        What fails has its span; in 3.11 that of the comparison that was tested last (``compiler_jump_if`` in
        compile.c).
        """
        units, begin = self._units_of(stmt), self.start_of_test(stmt)
        # (Before it may be an operation of the handler's head.)
        first, last = units if units is not None else (0, -1)
        place = next((each for each in self.positions[first:last + 1]
                      if each is not None and (begin is not None or each.line == line_of(stmt))), None)
        if place is None or place.column is None or begin is None or (place.line, place.column) < begin:
            return None if place is None else place.column
        return begin[1] - first_part(stmt.test)[1] - len("assert ")

    def _match(self, stmt: ast.Match) -> int | None:
        begin = self.start(stmt.subject.target if isinstance(stmt.subject, ast.NamedExpr) else stmt.subject)
        if begin is None or begin[1] is None:
            return None
        column = begin[1] - len("match ")
        return column - column % 2  # (a parenthesis)

    def _compound(self, stmt: ast.stmt) -> int | None:
        if isinstance(stmt, (ast.For, ast.AsyncFor)):
            place = self.start(stmt.target)
            if place is not None and place[1] is not None:
                return place[1] - len("for " if isinstance(stmt, ast.For) else "async for ")
        body: list[ast.stmt] = getattr(stmt, "body", None) or []
        if not body or line_of(body[0]) == line_of(stmt) and not isinstance(stmt, (ast.Try, ast.With, ast.AsyncWith)):
            return None
        first = [body[0]] if not isinstance(stmt, ast.Try) else [suite[0] for suite in suites_of(stmt)]
        inner = min((column for each in first if (column := self.column(each)) is not None), default=None)
        if inner is None and isinstance(body[0], (ast.Continue, ast.Break)):
            line, lines = line_of(stmt) or 0, self._lines_in_order
            following = lines[bisect_left(lines, line + 1):][:1]
            written = self.exit_between(line + 1, following[0] + 1, word_of(body[0])) if following else None
            inner = written and written.column
        if inner is None:
            return None
        begin = self.start_of_test(stmt) if isinstance(stmt, ast.If) else None
        written = self.exit_between(begin[0], line_of(body[0])) if begin is not None else None
        if begin is not None and written is not None and written.column is not None and written.kind != "pass":
            column = written.column - INDENTATION
            if begin[1] - column in (*TO_TEST, *_TO_TEST_OF_ELIF):  # (It is what was written in the branch.)
                return column
        nearest = inner - INDENTATION
        if not isinstance(stmt, ast.If) or begin is None or begin[1] >= inner:
            return nearest
        # (``if a:`` with ``if b:`` in it has the test ``a and b``; so has ``if not a:``.)
        before = 0
        test = stmt.test
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and (
                self.first_inside(test.values, nearest, TO_TEST)):
            before = first_part(stmt.test)[1] // len("not ") * len("not ")
        widths = [before + width for width in BRANCH_TO_TEST] if before else (*TO_TEST, *_TO_TEST_OF_ELIF)
        return next((column for column in range(nearest, -1, -INDENTATION) if begin[1] - column in widths), nearest)

    def first_inside(self, operands: list[ast.expr], column: int, widths: Collection[int]) -> int:
        """Return which operand of a test was likely the test of an ``if``, inside of an ``if`` on those before it.

        It is on a line of its own, and no exit is written before it.

        Args:
            operands: of the test.
            column: of the inner ``if``.
            widths: how far right of that column its test may begin.

        Returns:
            Its index; 0 for none.
        """
        starts = [self.start(each) or (0, None) for each in operands]
        return next((at for at in range(1, len(starts)) if 0 < starts[at - 1][0] < starts[at][0]
                     and (begin := starts[at][1]) is not None and begin - column in widths
                     and not self.exits_between(*operands[at - 1:at + 1])), 0)

    def begins_elif(self, stmt: ast.If, column: int) -> bool:
        """Return whether an ``if`` in an ``else`` branch was written as ``elif``.

        Args:
            stmt: the inner one.
            column: of the outer one.
        """
        place = self.start_of_test(stmt)
        if place is None or place[1] - column not in _TO_TEST_OF_ELIF:
            return False
        last = self.start(stmt.test.values[-1]) if isinstance(stmt.test, ast.BoolOp) else None
        if last is None or last[0] <= place[0]:
            return True
        # (It may begin below ``if (``. Nobody leaves a line empty before ``elif (``.)
        as_elif, as_if = (best_spelling(self, stmt.test, column, widths)[0] for widths in (ELIF_TO_TEST, IF_TO_TEST))
        ends = {each.end_line for each in self.positions if each is not None}
        return as_elif < as_if or as_elif == as_if and not ends.isdisjoint((place[0] - 1, place[0] - 2))

    def start_of_test(self, stmt: ast.If | ast.Assert) -> tuple[int, int] | None:
        """Return line and column at which a test begins, without ``not`` and parentheses before it."""
        return self._start(first_part(stmt.test)[0])

    def start(self, expr: ast.expr) -> tuple[int, int | None] | None:
        """Return line and column at which an expression begins; ``None`` where the line is not known."""
        part = first_part(expr)[0]
        return self._start(part) or self.place(offset_of(part))

    def _start(self, part: ast.expr) -> tuple[int, int] | None:
        """Return where the first part of an expression begins; it is asked for in each step of the arrangement."""
        if part not in self._starts:
            self._starts[part] = start_of(self, part)
        return self._starts[part]

    def position(self, offset: int) -> Position | None:
        """Return where the operation at a byte offset is in the source; ``None`` where that is not known."""
        return self.positions[offset // 2] if 0 <= offset < 2 * len(self.positions) else None


__all__ = ["INDENTATION", "Evidence", "Exit", "Position"]
