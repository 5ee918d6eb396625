"""``match``: the code of a pattern becomes one test.

CPython's compiler (``compiler_pattern*`` in compile.c; codegen.c from 3.14) writes a pattern as tests on a stack
that contains the subject, its parts and the values to bind.  Every failed test pops what is there and goes to the next
case; only when all tests have succeeded the names are stored.  Here that code is run on symbolic values along the
path on which all tests succeed: the operations on a value show which pattern it is matched with.  Then the first block
of the pattern ends in a branch on ``CASE``, one edge for success and one for failure, and the rest of the structuring
sees an ``if`` (:func:`cases` makes ``match`` statements of those in the end).

Each case but the last works on a copy of the subject, which is below while the guard and the failure go on.
"""

from __future__ import annotations

import ast
import enum
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...bytecode.operations import Op, effect
from ...cfg.graph import Block
from ..lift.spelling import IF_TO_TEST, first_part
from ..lift.stack import Capture, CaseTest
from ..nodes import MatchOf, at_line, line_of, offset_of, part_of, suites_of
from ..structure.analysis import RegionCfg, copied_op
from ..structure.evidence import INDENTATION, Evidence
from ..structure.frames import LOOPS, always_fits, ending_in, never_falls

if TYPE_CHECKING:
    from ..bodies import Body

#: Operations with which the code of a pattern begins, after names and attributes.
_BEGIN = frozenset({"COPY", "MATCH_SEQUENCE", "MATCH_MAPPING", "MATCH_CLASS"})
_NAMES = {"LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CLASSDEREF"}
_STORES = {"STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF"}


class Kind(enum.Enum):
    """The kinds of patterns that are no name."""

    VALUE = "value"
    SINGLETON = "singleton"
    SEQUENCE = "sequence"
    MAPPING = "mapping"
    CLASS = "class"


class Value:
    """The subject or a part of it, and what it is matched with.

    Attributes:
        kind: of the pattern; ``None`` for a wildcard.
        ops: operations that make the value or the class.
        keys: operations that make each key of a mapping.
        constant: that of a singleton.
        parts: values of its parts. Of a sequence ``(index from the left, or from the right if negative)``.
        length: number of a sequence's parts without a star, or of a class's positional patterns.
        is_open: a part takes the rest of the sequence.
        star: index of that part; ``None`` where it is not bound, and parts are looked up by index.
        names: attribute names of a class's keyword patterns.
        rest: the target of the rest of a mapping.
        copies: values that are this one again: one for ``as``, several for alternatives.
        store: the operation that binds it.
        twins: values of other alternatives that are bound with it.
    """

    def __init__(self, of: Value | None = None) -> None:
        self.of = of
        self.kind: Kind | None = None
        self.ops: list[Op] = []
        self.keys: list[list[Op]] = []
        self.constant: bool | None = None
        self.parts: dict[int, Value] = {}
        self.length = 0
        self.is_open = False
        self.star: int | None = None
        self.names: tuple[str, ...] = ()
        self.rest: Value | None = None
        self.copies: list[Value] = []
        self.store: Op | None = None
        self.twins: list[Value] = []

    def bind(self, store: Op) -> None:
        """Have an operation bind the value, and its twins."""
        if self.store is not None:
            raise _NoPattern
        self.store = store
        for twin in self.twins:
            twin.bind(store)


class Case:
    """The argument of ``CASE``.

    Attributes:
        pattern: of the case.
        keeps: whether the subject remains on the stack.
        never: whether a guard that the compiler has decided lets the case never succeed.
    """

    def __init__(self, pattern: Value, keeps: bool, never: bool = False) -> None:
        self.pattern = pattern
        self.keeps = keeps
        self.never = never


class _NoPattern(Exception):
    """The operations are not the code of a pattern."""


# Values that only the test of a pattern needs. Each is itself: two with equal content are not equal.
@dataclass(eq=False)
class _Test:
    """The result of a test; ``good``: whether it is true where the pattern fits."""

    good: bool


@dataclass(eq=False)
class _Expression:
    """A constant, a variable or an attribute of one."""

    ops: list[Op]

    def constant(self) -> Any:
        """Return the constant that it is.

        Raises:
            _NoPattern: it is a variable, or an attribute of one.
        """
        if self.ops[0].kind != "CONST":
            raise _NoPattern
        return self.ops[0].arg


@dataclass(eq=False)
class _Keys:
    """The keys of a mapping, each with the operations that make it."""

    keys: list[list[Op]]


class _Key:
    """One of the keys."""


class _Rest:
    """The empty dictionary that takes the rest of a mapping."""


@dataclass(eq=False)
class _Length:
    """The length of a value."""

    of: Value


@dataclass(eq=False)
class _FromEnd:
    """The index of an item so many places before the end."""

    distance: int


@dataclass(eq=False)
class _Found:
    """The values of a mapping, or attributes of a class, that were looked up."""

    of: Value


_Stack = list[Value | _Test | _Expression | _Keys | _Key | _Rest | _Length | _FromEnd | _Found]
_Place = tuple[int, int]


class _Path:
    """The path through a pattern on which all tests succeed."""

    def __init__(self, cfg: RegionCfg, base: int) -> None:
        self.cfg = cfg
        self.base = base  # size of the stack when the pattern is through
        self.failures: list[tuple[int, _Stack]] = []
        self.stored = False  # whether a name was stored
        #: the stack at each block on the path, and at each operation of one that leaves the function
        self.places: dict[_Place, _Stack] = {}

    # --- the walk ---------------------------------------------------------------------------------
    def follow(
        self, at: int, index: int, stack: _Stack, other: _Path | None = None
    ) -> tuple[_Place, _Stack]:
        """Run until the pattern is through, or until the ``other`` path is met, and return place and stack there."""
        begun = False
        seen: set[int] = set()
        while True:
            if at in seen:
                raise _NoPattern
            seen.add(at)
            block = self.cfg.blocks[at]
            while index < len(block.ops):
                if begun and len(stack) == self.base:
                    return (at, index), stack
                if begun and (index == 0 or block.end == "return"):
                    if other is not None:
                        for place, there in other.places.items():
                            if _may_be_one(there, stack) and _same_place(self.cfg, (at, index), place):
                                return place, stack
                    self.places[at, index] = list(stack)
                self.step(block.ops, index, stack)
                begun = True
                index += 1
            if block.end == "branch":
                at = self.branch(block, stack)
                begun = True
            elif begun and len(stack) == self.base:
                return (at, index), stack
            elif block.end == "jump":
                at = block.successors[0]
            else:
                raise _NoPattern
            index = 0

    def branch(self, block: Block, stack: _Stack) -> int:
        test = stack.pop() if stack else None
        if not isinstance(test, _Test) or self.stored:
            raise _NoPattern  # (names are stored when all tests have succeeded)
        following, other = block.successors if test.good else reversed(block.successors)
        self.failures.append((other, list(stack)))
        return following

    def step(self, ops: list[Op], index: int, stack: _Stack) -> None:
        op = ops[index]
        method = getattr(self, "op_" + op.kind, None)
        try:
            if method is not None:
                method(op, stack)
            elif op.kind in _NAMES:
                stack.append(_Expression([op]))
            elif op.kind in _STORES:
                self.value(stack.pop()).bind(op)
                self.stored = True
            else:
                raise _NoPattern
        except IndexError:
            raise _NoPattern from None

    def value(self, entry: object) -> Value:
        if not isinstance(entry, Value):
            raise _NoPattern
        return entry

    def matched(self, entry: object, kind: Kind) -> Value:
        """Return the value, which is matched with a pattern of the kind."""
        value = self.value(entry)
        if value.kind not in (None, kind):
            raise _NoPattern
        value.kind = kind
        return value

    # --- operations -------------------------------------------------------------------------------
    def op_COPY(self, op: Op, stack: _Stack) -> None:
        entry = stack[-op.arg]
        if isinstance(entry, Value):
            copy = Value(entry)
            entry.copies.append(copy)
            entry = copy
        stack.append(entry)

    def op_SWAP(self, op: Op, stack: _Stack) -> None:
        stack[-op.arg], stack[-1] = stack[-1], stack[-op.arg]

    def op_ROT(self, op: Op, stack: _Stack) -> None:
        if op.arg > len(stack):
            raise _NoPattern
        stack.insert(len(stack) - op.arg, stack.pop())

    def op_POP(self, op: Op, stack: _Stack) -> None:
        stack.pop()

    def op_CONST(self, op: Op, stack: _Stack) -> None:
        stack.append(_Expression([op]))

    def op_LOAD_ATTR(self, op: Op, stack: _Stack) -> None:
        owner = stack.pop()
        if not isinstance(owner, _Expression) or owner.ops[0].kind == "CONST":
            raise _NoPattern
        stack.append(_Expression([*owner.ops, op]))

    def op_BUILD_TUPLE(self, op: Op, stack: _Stack) -> None:
        items = [stack.pop() for _ in range(op.arg)][::-1]
        keys = [item.ops for item in items if isinstance(item, _Expression)]
        if len(keys) != len(items):
            raise _NoPattern
        stack.append(_Keys(keys))

    def op_COMPARE(self, op: Op, stack: _Stack) -> None:
        right, left = stack.pop(), stack.pop()
        if not isinstance(right, _Expression):
            raise _NoPattern
        if isinstance(left, _Length):
            sequence, length = left.of, right.constant()
            if sequence.kind is Kind.SEQUENCE and op.arg in ("==", ">="):
                sequence.length = length
                sequence.is_open = op.arg != "=="  # the star's position is known when it is unpacked
            elif sequence.kind is not Kind.MAPPING or op.arg != ">=":
                raise _NoPattern
        elif op.arg == "==":
            self.matched(left, Kind.VALUE).ops = right.ops
        else:
            raise _NoPattern
        stack.append(_Test(True))

    def op_IS(self, op: Op, stack: _Stack) -> None:
        right, left = stack.pop(), stack.pop()
        if not isinstance(right, _Expression):
            raise _NoPattern
        constant = right.constant()
        if isinstance(left, _Found) and constant is None:
            stack.append(_Test(bool(op.arg)))  # (op.arg: ``is not``)
            return
        if constant is not None and type(constant) is not bool:
            raise _NoPattern
        self.matched(left, Kind.SINGLETON).constant = constant
        stack.append(_Test(not op.arg))

    def op_MATCH_SEQUENCE(self, op: Op, stack: _Stack) -> None:
        self.matched(stack[-1], Kind.SEQUENCE).is_open = True  # unless a test of the length follows
        stack.append(_Test(True))

    def op_MATCH_MAPPING(self, op: Op, stack: _Stack) -> None:
        self.matched(stack[-1], Kind.MAPPING)
        stack.append(_Test(True))

    def op_GET_LEN(self, op: Op, stack: _Stack) -> None:
        value = self.value(stack[-1])
        if value.kind is None and value.of is not None:
            value = value.of
        stack.append(_Length(value))

    def op_UNPACK(self, op: Op, stack: _Stack) -> None:
        entry = stack.pop()
        if isinstance(entry, _Keys):
            stack += [_Key() for _ in range(op.arg)]
            return
        if isinstance(entry, _Found):
            owner = entry.of
        else:
            owner = self.matched(entry, Kind.SEQUENCE)
            owner.is_open, owner.length = False, op.arg
        for index in reversed(range(op.arg)):
            part = owner.parts[index] = Value()
            stack.append(part)

    def op_UNPACK_EX(self, op: Op, stack: _Stack) -> None:
        owner = self.matched(stack.pop(), Kind.SEQUENCE)
        before, after = op.arg
        owner.is_open, owner.star, owner.length = True, before, before + after
        for index in reversed(range(before + 1 + after)):
            part = owner.parts[index] = Value()
            stack.append(part)

    def op_BINARY(self, op: Op, stack: _Stack) -> None:
        right, left = stack.pop(), stack.pop()
        if op.arg != "-" or not isinstance(left, _Length) or not isinstance(right, _Expression):
            raise _NoPattern
        stack.append(_FromEnd(right.constant()))

    def op_GETITEM(self, op: Op, stack: _Stack) -> None:
        place, entry = stack.pop(), stack.pop()
        if not isinstance(place, (_Expression, _FromEnd)):
            raise _NoPattern
        index = -place.distance if isinstance(place, _FromEnd) else place.constant()
        if isinstance(entry, _Found):  # 3.10 looks attributes and items up one by one
            part = entry.of.parts[index] = Value()
            stack.append(part)
            return
        value = self.value(entry)
        owner = value.of
        if owner is None or owner.kind is not Kind.SEQUENCE:
            raise _NoPattern
        owner.copies.remove(value)
        if type(index) is not int:
            raise _NoPattern
        part = owner.parts[index] = Value()
        stack.append(part)

    def op_MATCH_KEYS(self, op: Op, stack: _Stack) -> None:
        keys, owner = stack[-1], self.value(stack[-2])
        if owner.kind is not Kind.MAPPING:
            raise _NoPattern
        if isinstance(keys, _Expression) and type(keys.constant()) is tuple:
            constant = keys.ops[0]
            keys = _Keys([[Op("CONST", key, constant.offset, constant.line)] for key in constant.arg])
            stack[-1] = keys
        if not isinstance(keys, _Keys):
            raise _NoPattern
        owner.keys = keys.keys
        stack.append(_Found(owner))

    def op_MATCH_CLASS(self, op: Op, stack: _Stack) -> None:
        names, cls, owner = stack.pop(), stack.pop(), self.matched(stack.pop(), Kind.CLASS)
        if not isinstance(cls, _Expression) or not isinstance(names, _Expression):
            raise _NoPattern
        owner.ops, owner.names = cls.ops, names.constant()
        owner.length = op.arg
        stack.append(_Found(owner))

    def op_BUILD_MAP(self, op: Op, stack: _Stack) -> None:
        if op.arg:
            raise _NoPattern
        stack.append(_Rest())

    def op_DICT_UPDATE(self, op: Op, stack: _Stack) -> None:
        owner = self.value(stack.pop())
        place = -op.arg + 1
        rest = stack[place - 1] if op.arg > 1 else stack[-1]
        if owner.kind is not Kind.MAPPING or not isinstance(rest, _Rest):
            raise _NoPattern
        owner.rest = Value()
        stack[stack.index(rest)] = owner.rest

    def op_COPY_DICT_WITHOUT_KEYS(self, op: Op, stack: _Stack) -> None:
        owner = self.value(stack[-2])
        if owner.kind is not Kind.MAPPING:
            raise _NoPattern
        owner.rest = Value()
        stack[-1] = owner.rest

    def op_DELITEM(self, op: Op, stack: _Stack) -> None:
        key, _ = stack.pop(), self.value(stack.pop())
        if not isinstance(key, _Key):
            raise _NoPattern


# --- finding them ---------------------------------------------------------------------------------
def find_in_body(body: Body) -> None:
    """Make one test of the code of each pattern (from 3.10 on)."""
    if body.scope.code.version >= (3, 10) and not _BEGIN.isdisjoint(body.cfg.present):
        body.has_patterns = find_patterns(body)


def write_cases(body: Body) -> None:
    """Make ``match`` statements of the tests of patterns."""
    if body.has_patterns:
        body.statements = cases(body.statements, body.evidence, "" if body.is_namespace else "return")


def find_patterns(body: Body) -> bool:
    """Replace the code of patterns by tests; return whether there was any."""
    cfg = body.cfg
    changed = False
    pending = deque(sorted(cfg.blocks, key=cfg.order.__getitem__))
    tried: set[tuple[int, int, bool]] = set()
    following: set[int] = set()  # where a failed case leads: the subject is on the stack there
    while pending:
        at = pending.popleft()
        block = cfg.blocks.get(at)
        if block is None:
            continue
        for index, keeps in _starts(block, at in following):
            if (at, index, keeps) in tried:
                continue
            tried.add((at, index, keeps))
            try:
                success, failure, case = _pattern(body, at, index, keeps)
            except _NoPattern:
                continue
            changed = True
            pending.extendleft((success, failure))
            if keeps:
                following.add(failure)
            op = block.ops[index]
            block.ops = [*block.ops[:index], Op("CASE", case, op.offset, op.line)]
            block.end, block.successors, block.arg, block.line = "branch", [success, failure], None, op.line
            break
    if changed:
        cfg.prune()
    return changed


def _starts(block: Block, follows: bool) -> list[tuple[int, bool]]:
    """Return the indices at which a pattern's code may begin, each with whether the subject remains on the stack.

    The last case has no copy of the subject, but alternatives begin with one in every case. From 3.12 on the copy that
    a wildcard would pop is left out (``remove_redundant_nops_and_pairs`` in flowgraph.c).
    """
    starts: list[tuple[int, bool]] = [(0, False), (0, True)] if follows else []
    kinds = [op.kind for op in block.ops]
    if _BEGIN.isdisjoint(kinds):
        return starts
    for index, kind in enumerate(kinds):
        if kind == "COPY" and block.ops[index].arg == 1:
            after = block.ops[index + 1:index + 3]
            is_named = bool(after[1:]) and after[0].kind in _STORES and after[0].line != after[1].line
            starts += [(index, False), (index + 2 * is_named, True)]  # (``match (x := y):``, not ``case x if``)
        elif kind in ("MATCH_SEQUENCE", "MATCH_MAPPING"):
            starts.append((index, False))
        elif kind == "MATCH_CLASS":
            start = index - 2
            while start > 0 and kinds[start] == "LOAD_ATTR":
                start -= 1
            if start >= 0 and kinds[start] in _NAMES:
                starts.append((start, False))
    return starts


def _pattern(body: Body, at: int, index: int, keeps: bool) -> tuple[int, int, Case]:
    """Return ``(where success leads, where failure leads, the case)`` of the pattern that starts there."""
    cfg = body.cfg
    subject, first = Value(), cfg.blocks[at].ops[index]
    if keeps and first.kind != "COPY":
        fails = _guard_fails(cfg, (at, index))
        cfg.blocks[at].ops.insert(index, first)
        return cfg.split(at, index + 1), fails, Case(subject, keeps)
    path = _Path(cfg, int(keeps))
    end, _ = path.follow(at, index, [subject])
    if not path.failures:
        if not keeps:
            raise _NoPattern
        fails = _guard_fails(cfg, end)
        return cfg.split(*end), fails, Case(subject, keeps)
    failure: _Place | None = None
    done: set[tuple[int, int]] = set()
    position = 0
    while position < len(path.failures):
        start, stack = path.failures[position]
        position += 1
        if _is_wildcard(cfg, path, start, stack):
            continue
        place, stack = _popped(cfg, start, stack, path.base)
        if place in done:
            continue
        if len(stack) > path.base:
            op, evidence = cfg.blocks[place[0]].ops[place[1]:][:1], body.evidence
            if evidence is not None and op and evidence.exit_between(first.line, op[0].line) is not None or (
                    not _take_alternative(cfg, path, place, stack, end)):
                raise _NoPattern  # (A statement is written between the two: they are cases.)
            done.add(place)
            continue
        if failure is not None and not _same_place(cfg, failure, place):
            raise _NoPattern
        failure = place
    if failure is None and keeps:
        fails = _guard_fails(cfg, end)
        return cfg.split(*end), fails, Case(subject, keeps)
    if failure is None or _settled(cfg, failure) == _settled(cfg, end):
        success = cfg.split(*_settled(cfg, end))
        return success, success, Case(subject, keeps, never=keeps)  # (success would pop the remaining subject)
    return cfg.split(*end), cfg.split(*failure), Case(subject, keeps)


def _guard_fails(cfg: RegionCfg, end: _Place) -> int:
    """Split off the block that the guard of a pattern that always matches leads to when it fails, and return it.

    Its tests do not change the values below. Where it succeeds the subject is popped, which comes first in the code;
    where it fails the next case begins with the subject, or pops it and is the last one.
    """
    seen: dict[int, _Place | None] = {}  # (Where a block takes a value below, if it does; ``None`` for a test.)
    succeeds: int | None = None
    pending: set[int] = set()  # (Blocks that begin within a test.)
    work = [(*end, 0)]
    while work:
        at, index, depth = work.pop()
        if at in seen:
            continue
        block = cfg.blocks[at]
        if depth:
            pending.add(at)
        taken, begins, depth = _taken(block.ops, index, depth)
        seen[at] = None if taken is None else (at, begins)
        if taken is None:
            if block.end not in _IN_GUARDS or len(seen) > _BLOCKS_OF_A_GUARD:
                raise _NoPattern
            work += [(succ, 0, depth + change) for succ, change in zip(block.successors, _IN_GUARDS[block.end])]
        elif block.ops[taken].kind == "POP" and (succeeds is None or cfg.order[at] < cfg.order[succeeds]):
            succeeds = at
    if succeeds is None or succeeds == end[0]:
        raise _NoPattern
    guard, goals = {succeeds}, [succeeds]
    while goals:
        goal = goals.pop()
        before = [id for id, place in seen.items()
                  if place is None and id not in guard and goal in cfg.blocks[id].successors]
        guard.update(before)
        goals += before
    guard.update(id for id in pending if seen[id] is None)
    fails = {succ for id in guard - {succeeds} for succ in cfg.blocks[id].successors} - guard
    if len(fails) != 1:
        raise _NoPattern
    failure = fails.pop()
    return cfg.split(*(seen[failure] or (failure, 0)))


#: Larger ones are not looked through.
_BLOCKS_OF_A_GUARD = 50
#: The effect of the ends of its blocks on the depth of the stack, on each edge.
_IN_GUARDS = {"branch": (-1, -1), "jump": (0,), "for": (1, -1)}


def _taken(ops: list[Op], start: int, depth: int) -> tuple[int | None, int, int]:
    """Return the index of the first operation that takes, or reads, an earlier value on the stack, if one does.

    That of the first operation which makes its operands; and how much deeper the stack is at the end.
    """
    begins = start
    for index in range(start, len(ops)):
        op = ops[index]
        if op.kind == "CASE":
            raise _NoPattern
        if not depth:
            begins = index
        popped, pushed = effect(op)
        needs = op.arg if op.kind in ("COPY", "SWAP", "ROT") else popped or op.kind.startswith("MATCH_")
        if needs > depth:
            return index, begins, depth
        depth += pushed - popped
    return None, begins, depth


def _is_wildcard(cfg: RegionCfg, path: _Path, at: int, stack: _Stack) -> bool:
    """Take the alternative ``| _``, and return whether there is one.

    A failed test then only pops the copy that was for its alternative, and goes on where success leads.
    """
    index = 0
    for _ in range(10_000):
        block = cfg.blocks[at]
        if index < len(block.ops):
            owner = stack[-1] if len(stack) > path.base else None
            if isinstance(owner, Value) and owner.copies and owner.kind is None and any(
                met == stack and _same_place(cfg, (at, index), place) for place, met in path.places.items()
            ):
                owner.copies.append(Value())
                return True
            if block.ops[index].kind != "POP" or not stack:
                return False
            stack = stack[:-1]
            index += 1
        elif block.end == "jump":
            at, index = block.successors[0], 0
        else:
            return False
    return False


def _popped(cfg: RegionCfg, at: int, stack: _Stack, base: int) -> tuple[_Place, _Stack]:
    """Return the place that a failed test leads to, and the stack there.

    Values of the pattern on the stack are popped along the path, as far as it is.
    """
    index = 0
    for _ in range(10_000):
        block = cfg.blocks[at]
        while index < len(block.ops) and len(stack) > base and block.ops[index].kind == "POP":
            stack = stack[:-1]
            index += 1
        if index < len(block.ops) or block.end != "jump":
            break
        at, index = block.successors[0], 0
    return (at, index), stack


def _same_place(cfg: RegionCfg, a: _Place, b: _Place) -> bool:
    """Return whether two places continue alike: since 3.12 small blocks that leave the function are copied.

    (Such copies have the same lines; two cases may have equal bodies.)
    """
    (x, i), (y, j) = _settled(cfg, a), _settled(cfg, b)
    if (x, i) == (y, j):
        return True
    one, other = cfg.blocks[x], cfg.blocks[y]
    return (one.end == other.end == "return" and len(one.ops) - i == len(other.ops) - j
            and all(map(copied_op, one.ops[i:], other.ops[j:])))


def _may_be_one(one: _Stack, other: _Stack) -> bool:
    """Return whether two paths can meet: their stacks have the same entries, or parts of the subject."""
    return len(one) == len(other) and all(
        a is b or isinstance(a, Value) and isinstance(b, Value) for a, b in zip(one, other))


def _alternative_follows(cfg: RegionCfg, place: _Place) -> bool:
    at, index = place
    ops = cfg.blocks[at].ops
    return index < len(ops) and ops[index].kind == "COPY" and ops[index].arg == 1


def _take_alternative(cfg: RegionCfg, path: _Path, place: _Place, stack: _Stack, end: _Place) -> bool:
    """Take an alternative, ``|``: a failed test leads to another pattern for the same value.

    That one's failures lead to where the first led.
    """
    if not stack or not isinstance(stack[-1], Value) or not _alternative_follows(cfg, place):
        return False
    owner = stack[-1]
    before = len(owner.copies)
    other = _Path(cfg, path.base)
    try:
        met, after = other.follow(*place, list(stack), path)
    except _NoPattern:
        del owner.copies[before:]
        return False
    if met in path.places:
        expected = path.places[met]
    elif _same_place(cfg, met, end):
        expected = after
    else:
        del owner.copies[before:]
        return False
    if not _may_be_one(expected, after):
        raise _NoPattern
    for one, twin in zip(expected, after):
        if one is not twin and isinstance(one, Value) and isinstance(twin, Value):
            one.twins.append(twin)
            if one.store is not None:
                twin.bind(one.store)
    path.failures += other.failures
    return True


def _settled(cfg: RegionCfg, place: _Place) -> _Place:
    at, index = place
    for _ in range(10_000):
        block = cfg.blocks[at]
        if index < len(block.ops) or block.end != "jump":
            break
        at, index = block.successors[0], 0
    return at, index


# --- writing them ---------------------------------------------------------------------------------
def case_of(test: ast.expr) -> tuple[CaseTest, ast.expr | None] | None:
    """Return ``(the case, its guard)`` of a test."""
    if isinstance(test, CaseTest):
        return test, ast.Constant(False) if test.never else None
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and isinstance(test.values[0], CaseTest):
        return test.values[0], part_of(test, 1)
    return None


def cases(stmts: list[ast.stmt], evidence: Evidence | None, end: str) -> list[ast.stmt]:
    """Return the statements with ``match`` in place of tests of cases, at any depth.

    Args:
        stmts: of a suite.
        evidence: of their code.
        end: the effect of falling off its end: ``return`` (of nothing), ``continue``; empty for any other.
    """
    out: list[ast.stmt] = []
    for stmt in reversed(stmts):
        end_here = "" if out else end
        for suite in suites_of(stmt):
            is_body = isinstance(stmt, LOOPS) and suite is stmt.body
            is_end = suite is getattr(stmt, "finalbody", None) or isinstance(stmt, ast.Try) and (
                suite is stmt.body and stmt.orelse)
            suite[:] = cases(suite, evidence, "continue" if is_body else "" if is_end else end_here)
        parts = case_of(stmt.test) if isinstance(stmt, ast.If) else None
        if parts is None:
            out.insert(0, stmt)
            continue
        assert isinstance(stmt, ast.If)
        out = _match(evidence, stmt, parts[0], parts[1], out, end_here)
    return out


def _leaves(match: ast.Match) -> bool:
    """Return whether statements after a ``match`` run only when no case fits."""
    return not always_fits(match.cases[-1]) and all(never_falls(case.body) for case in match.cases)


def _is_guard(evidence: Evidence, match: MatchOf, case: CaseTest, test: ast.expr) -> bool | None:
    """Return whether a test is the guard of a case (``True``), or of an ``if`` in the case or after it (``False``).

    Args:
        evidence: of the code.
        match: the statement.
        case: its last case.
        test: what is tested where the pattern fits.
    """
    begin, start, column = evidence.place(offset_of(case)), evidence.start(test), evidence.column(match)
    if begin is None or start is None or start[1] is None or column is None:
        return None
    if begin[0] == start[0]:
        return True
    inner = start[1] - first_part(test)[1] - column - 2 * INDENTATION
    return False if inner in IF_TO_TEST or evidence.exit_between(begin[0], start[0]) is not None else None


def _match(
    evidence: Evidence | None, stmt: ast.If, test: CaseTest, guard: ast.expr | None, after: list[ast.stmt], end: str,
) -> list[ast.stmt]:
    match_cases = [ast.match_case(test.pattern, guard, stmt.body or [ast.Pass()])]
    rest = stmt.orelse
    if not rest and after:
        # the body of this case leaves: the next follows it
        first = after[0]
        if isinstance(first, MatchOf) and first.of is test.subject:
            rest, after = after[:1], after[1:]
        elif isinstance(first, Capture) and first.subject is test.subject:
            rest, after = after, []
    other = rest[0] if rest else None
    if isinstance(other, MatchOf) and other.of is test.subject and (len(rest) == 1 or _leaves(other)):
        match_cases += other.cases
        if len(rest) > 1:
            match_cases.append(ast.match_case(ast.MatchAs(), None, rest[1:]))
    elif isinstance(other, MatchOf) and other.of is test.subject and end:  # (The rest follows the ``match``.)
        if not never_falls(match_cases[0].body):
            match_cases[0].body = ending_in(match_cases[0].body, end)
        match_cases, after = [*match_cases, *other.cases], rest[1:]
    elif rest:
        capture = other if isinstance(other, Capture) and other.subject is test.subject else None
        name = None if capture is None else capture.name
        match_cases.append(ast.match_case(ast.MatchAs(None, name), None, rest[capture is not None:] or [ast.Pass()]))
    result = MatchOf(test.subject.value, match_cases, test.subject)
    if not rest and evidence is not None:  # (A guard of the last case, or an ``if``: both go on after the statement.)
        case, inner = match_cases[0], stmt.body[0] if len(stmt.body) == 1 else None
        if guard is not None and _is_guard(evidence, result, test, guard) is False:
            line = evidence.start(guard)
            case.guard, case.body = None, [at_line(ast.If(guard, case.body, []), line and line[0])]
        elif guard is None and isinstance(inner, ast.If) and not inner.orelse and (
                _is_guard(evidence, result, test, inner.test)):
            case.guard, case.body = inner.test, inner.body
    place = None if evidence is None else evidence.place(offset_of(test))
    return [at_line(result, line_of(stmt) if place is None else place[0]), *after]
