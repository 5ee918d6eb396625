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
from collections import deque
from dataclasses import dataclass, field
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


@dataclass(eq=False)
class Value:
    """The subject or a part of it, and what it is matched with.

    Attributes:
        of: the value that it is a copy of.
        kind: ``value``, ``singleton``, ``sequence``, ``mapping`` or ``class``; ``None`` for a wildcard.
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

    of: Value | None = None
    kind: str | None = None
    ops: list[Op] = field(default_factory=list)
    keys: list[list[Op]] = field(default_factory=list)
    constant: bool | None = None
    parts: dict[int, Value] = field(default_factory=dict)
    length: int = 0
    is_open: bool = False
    star: int | None = None
    names: tuple[str, ...] = ()
    rest: Value | None = None
    copies: list[Value] = field(default_factory=list)
    store: Op | None = None
    twins: list[Value] = field(default_factory=list)

    def bind(self, store: Op) -> None:
        """Have an operation bind the value, and its twins."""
        if self.store is not None:
            raise _NoPattern
        self.store = store
        for twin in self.twins:
            twin.bind(store)


@dataclass(eq=False)
class Case:
    """The argument of ``CASE``.

    Attributes:
        pattern: of the case.
        keeps: whether the subject remains on the stack.
        never: whether a guard that the compiler has decided lets the case never succeed.
    """

    pattern: Value
    keeps: bool
    never: bool = False


class _NoPattern(Exception):
    """The operations are not the code of a pattern."""


@dataclass(eq=False)
class _Other:
    """What is on the stack for the test of a pattern only.

    Attributes:
        kind: ``test``, ``expression`` (a constant, a variable or an attribute of one), ``keys`` of a mapping, ``key``
            (one of them), ``rest`` (the dictionary that takes the rest of one), ``length``, ``from end`` (an index),
            ``found`` (the values of a mapping, or attributes of a class, that were looked up).
        content: of a test whether it is true where the pattern fits; of an expression its operations, and of keys those
            of each; of what was found, and of a length, the value; of an index the distance from the end.
    """

    kind: str
    content: Any = None


def _content(entry: object, kind: str) -> Any:
    """Return the content of an entry of the stack that must be of the kind."""
    if not isinstance(entry, _Other) or entry.kind != kind:
        raise _NoPattern
    return entry.content


def _constant(ops: list[Op]) -> Any:
    """Return the constant that an expression must be."""
    if ops[0].kind != "CONST":
        raise _NoPattern
    return ops[0].arg


_Stack = list[Value | _Other]
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
        is_good = _content(stack.pop() if stack else None, "test")
        if self.stored:
            raise _NoPattern  # (names are stored when all tests have succeeded)
        following, other = block.successors if is_good else reversed(block.successors)
        self.failures.append((other, list(stack)))
        return following

    def step(self, ops: list[Op], index: int, stack: _Stack) -> None:
        op = ops[index]
        method = getattr(self, "op_" + op.kind, None)
        try:
            if method is not None:
                method(op, stack)
            elif op.kind in _NAMES:
                stack.append(_Other("expression", [op]))
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

    def matched(self, entry: object, kind: str) -> Value:
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
        stack.append(_Other("expression", [op]))

    def op_LOAD_ATTR(self, op: Op, stack: _Stack) -> None:
        owner = _content(stack.pop(), "expression")
        if owner[0].kind == "CONST":
            raise _NoPattern
        stack.append(_Other("expression", [*owner, op]))

    def op_BUILD_TUPLE(self, op: Op, stack: _Stack) -> None:
        items = [stack.pop() for _ in range(op.arg)][::-1]
        stack.append(_Other("keys", [_content(item, "expression") for item in items]))

    def op_COMPARE(self, op: Op, stack: _Stack) -> None:
        right, left = _content(stack.pop(), "expression"), stack.pop()
        if left.kind == "length":
            sequence, length = _content(left, "length"), _constant(right)
            if sequence.kind == "sequence" and op.arg in ("==", ">="):
                sequence.length = length
                sequence.is_open = op.arg != "=="  # the star's position is known when it is unpacked
            elif sequence.kind != "mapping" or op.arg != ">=":
                raise _NoPattern
        elif op.arg == "==":
            self.matched(left, "value").ops = right
        else:
            raise _NoPattern
        stack.append(_Other("test", True))

    def op_IS(self, op: Op, stack: _Stack) -> None:
        constant, left = _constant(_content(stack.pop(), "expression")), stack.pop()
        if left.kind == "found" and constant is None:
            stack.append(_Other("test", bool(op.arg)))  # (op.arg: ``is not``)
            return
        if constant is not None and type(constant) is not bool:
            raise _NoPattern
        self.matched(left, "singleton").constant = constant
        stack.append(_Other("test", not op.arg))

    def op_MATCH_SEQUENCE(self, op: Op, stack: _Stack) -> None:
        self.matched(stack[-1], "sequence").is_open = True  # unless a test of the length follows
        stack.append(_Other("test", True))

    def op_MATCH_MAPPING(self, op: Op, stack: _Stack) -> None:
        self.matched(stack[-1], "mapping")
        stack.append(_Other("test", True))

    def op_GET_LEN(self, op: Op, stack: _Stack) -> None:
        value = self.value(stack[-1])
        if value.kind is None and value.of is not None:
            value = value.of
        stack.append(_Other("length", value))

    def op_UNPACK(self, op: Op, stack: _Stack) -> None:
        entry = stack.pop()
        if entry.kind == "keys":
            stack += [_Other("key") for _ in range(op.arg)]
            return
        if entry.kind == "found":
            owner: Value = _content(entry, "found")
        else:
            owner = self.matched(entry, "sequence")
            owner.is_open, owner.length = False, op.arg
        self.push_parts(owner, op.arg, stack)

    def op_UNPACK_EX(self, op: Op, stack: _Stack) -> None:
        owner = self.matched(stack.pop(), "sequence")
        before, after = op.arg
        owner.is_open, owner.star, owner.length = True, before, before + after
        self.push_parts(owner, before + 1 + after, stack)

    def push_parts(self, owner: Value, count: int, stack: _Stack) -> None:
        for index in reversed(range(count)):
            part = owner.parts[index] = Value()
            stack.append(part)

    def op_BINARY(self, op: Op, stack: _Stack) -> None:
        right, _ = _constant(_content(stack.pop(), "expression")), _content(stack.pop(), "length")
        if op.arg != "-":
            raise _NoPattern
        stack.append(_Other("from end", right))

    def op_GETITEM(self, op: Op, stack: _Stack) -> None:
        place, entry = stack.pop(), stack.pop()
        index = -_content(place, "from end") if place.kind == "from end" else _constant(_content(place, "expression"))
        if entry.kind == "found":  # 3.10 looks attributes and items up one by one
            owner: Value | None = _content(entry, "found")
        else:
            value = self.value(entry)
            owner = value.of
            if owner is None or owner.kind != "sequence" or type(index) is not int:
                raise _NoPattern
            owner.copies.remove(value)
        assert owner is not None
        part = owner.parts[index] = Value()
        stack.append(part)

    def mapping(self, entry: object) -> Value:
        value = self.value(entry)
        if value.kind != "mapping":
            raise _NoPattern
        return value

    def op_MATCH_KEYS(self, op: Op, stack: _Stack) -> None:
        keys, owner = stack[-1], self.mapping(stack[-2])
        if keys.kind == "expression" and type(_constant(_content(keys, "expression"))) is tuple:
            [constant] = _content(keys, "expression")
            keys = _Other("keys", [[Op("CONST", key, constant.offset, constant.line)] for key in constant.arg])
            stack[-1] = keys
        owner.keys = _content(keys, "keys")
        stack.append(_Other("found", owner))

    def op_MATCH_CLASS(self, op: Op, stack: _Stack) -> None:
        names, cls = _content(stack.pop(), "expression"), _content(stack.pop(), "expression")
        owner = self.matched(stack.pop(), "class")
        owner.ops, owner.names = cls, _constant(names)
        owner.length = op.arg
        stack.append(_Other("found", owner))

    def op_BUILD_MAP(self, op: Op, stack: _Stack) -> None:
        if op.arg:
            raise _NoPattern
        stack.append(_Other("rest"))

    def op_DICT_UPDATE(self, op: Op, stack: _Stack) -> None:
        owner = self.mapping(stack.pop())
        _content(stack[-op.arg], "rest")
        stack[-op.arg] = owner.rest = Value()

    def op_COPY_DICT_WITHOUT_KEYS(self, op: Op, stack: _Stack) -> None:
        stack[-1] = self.mapping(stack[-2]).rest = Value()

    def op_DELITEM(self, op: Op, stack: _Stack) -> None:
        _content(stack.pop(), "key")
        self.value(stack.pop())


# --- finding them ---------------------------------------------------------------------------------
def write_cases(body: Body) -> None:
    """Make ``match`` statements of the tests of patterns."""
    if body.has_patterns:
        body.statements = cases(body.statements, body.evidence, "" if body.is_namespace else "return")


def find_patterns(body: Body) -> None:
    """Replace the code of each pattern by one test (from 3.10 on)."""
    cfg = body.cfg
    if body.scope.code.version < (3, 10) or _BEGIN.isdisjoint(cfg.present):
        return
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
            body.has_patterns = True
            pending.extendleft((success, failure))
            if keeps:
                following.add(failure)
            op = block.ops[index]
            block.ops = [*block.ops[:index], Op("CASE", case, op.offset, op.line)]
            block.end, block.successors, block.arg, block.line = "branch", [success, failure], None, op.line
            break
    if body.has_patterns:
        cfg.prune()


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
    end_settled = cfg.settled(*end)
    if failure is None or cfg.settled(*failure) == end_settled:
        success = cfg.split(*end_settled)
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
    while True:
        at, index = cfg.settled(at, index)
        ops = cfg.blocks[at].ops
        owner = stack[-1] if len(stack) > path.base else None
        if isinstance(owner, Value) and owner.copies and owner.kind is None and index < len(ops) and any(
            met == stack and _same_place(cfg, (at, index), place) for place, met in path.places.items()
        ):
            owner.copies.append(Value())
            return True
        if index == len(ops) or ops[index].kind != "POP" or not stack:
            return False
        stack = stack[:-1]
        index += 1


def _popped(cfg: RegionCfg, at: int, stack: _Stack, base: int) -> tuple[_Place, _Stack]:
    """Return the place that a failed test leads to, and the stack there.

    Values of the pattern on the stack are popped along the path, as far as it is.
    """
    index = 0
    while True:
        at, index = cfg.settled(at, index)
        if len(stack) <= base or [op.kind for op in cfg.blocks[at].ops[index:index + 1]] != ["POP"]:
            return (at, index), stack
        stack = stack[:-1]
        index += 1


def _same_place(cfg: RegionCfg, a: _Place, b: _Place) -> bool:
    """Return whether two places continue alike: since 3.12 small blocks that leave the function are copied.

    (Such copies have the same lines; two cases may have equal bodies.)
    """
    (x, i), (y, j) = cfg.settled(*a), cfg.settled(*b)
    if (x, i) == (y, j):
        return True
    one, other = cfg.blocks[x], cfg.blocks[y]
    return (one.end == other.end == "return" and len(one.ops) - i == len(other.ops) - j
            and all(map(copied_op, one.ops[i:], other.ops[j:])))


def _may_be_one(one: _Stack, other: _Stack) -> bool:
    """Return whether two paths can meet: their stacks have the same entries, or parts of the subject."""
    return len(one) == len(other) and all(
        a is b or isinstance(a, Value) and isinstance(b, Value) for a, b in zip(one, other))


def _take_alternative(cfg: RegionCfg, path: _Path, place: _Place, stack: _Stack, end: _Place) -> bool:
    """Take an alternative, ``|``: a failed test leads to another pattern for the same value.

    That one's failures lead to where the first led.
    """
    first = [(op.kind, op.arg) for op in cfg.blocks[place[0]].ops[place[1]:][:1]]
    if not stack or not isinstance(stack[-1], Value) or first != [("COPY", 1)]:
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
