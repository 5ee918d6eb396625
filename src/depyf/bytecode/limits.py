"""Limits on the source that a program would become: refused before it is written, when sharing makes it absurd.

Constants and nested code objects are shared: a file of one kilobyte can contain a tuple of two references
to a tuple of two references to ... thirty times over, and source has to write all of them out. The same goes
for a nested function that is made in many places. What is bounded is what sharing adds: a large file may
become a large text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import budgets
from .canonical import canonicalise
from .code import Code, UnsupportedBytecode
from .operations import Op, Program

#: Brackets that CPython's parser lets nest, minus those that may be around a constant.
MAX_CONSTANT_DEPTH = 150
#: Functions and classes inside each other: CPython lets 100 indentations nest.
MAX_CODE_DEPTH = 90
#: The allowance beyond ``SHARING`` times the original size.
ALLOWANCE = 500_000
SHARING = 8
#: Operations that are no danger by themselves.
_FEW = 1000
#: What a constant may count as that is no danger in so few operations: a half of what is allowed in all of them.
_SMALL = ALLOWANCE // _FEW // 2
#: Characters of a string that count as one operation.
_CHARACTERS = 64
_CONTAINERS = (tuple, frozenset)

#: ``(expanded size, depth of containers, depth of code)``
_Size = tuple[int, int, int]


def check(program: Program) -> None:
    """Refuse a program that nests too deeply or expands to too much.

    Raises:
        UnsupportedBytecode: it does, or a function that it makes is malformed.
    """
    if len(program.ops) < _FEW and all(map(_is_small, program.code.consts)):
        return
    if all(map(_is_one, program.code.consts)) and not budgets.CONSTANTS.exceeded(len(program.ops) // 2):
        return  # (each operation has at most one of them)
    _Meter(program.code).measure(program)


def _is_small(value: Any) -> bool:
    """Return whether a constant counts as so few operations that it may be used :data:`_FEW` times."""
    kind = type(value)
    if kind is str or kind is bytes:
        return len(value) < _SMALL * _CHARACTERS
    if kind is int:
        return bool(value.bit_length() < _CHARACTERS)
    if kind is tuple:
        return len(value) < _SMALL // 2 and all(map(_is_one, value))
    return value is None or kind is bool or kind is float


def _is_one(value: Any) -> bool:
    """Return whether a part of a constant counts as one operation."""
    kind = type(value)
    return value is None or kind is bool or kind is str and len(value) < _CHARACTERS or (
        kind is int and bool(value.bit_length() < _CHARACTERS))


class _Idle:
    """A code object that no function is made of: only its size counts."""

    def __init__(self, code: Code) -> None:
        self.code = code


class _Meter:
    """Measures everything once, the contents of an object before the object, without recursion."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.known: dict[int, _Size] = {}
        #: The original size, everything shared counted once.
        self.distinct = 0
        self.kept: list[Any] = []  # so that ids remain valid

    def measure(self, program: Program) -> None:
        pending: list[tuple[Any, Iterator[Any], list[_Size]]] = []
        value: Any = program
        inside = _parts(value)
        sizes: list[_Size] = []
        while True:
            for part in inside:
                known = self.size(part)
                if known is None:
                    pending.append((value, inside, sizes))
                    if len(pending) > MAX_CODE_DEPTH + MAX_CONSTANT_DEPTH:
                        raise self.refused("nests too deeply to be written as source")
                    value, inside, sizes = part, _parts(part), []
                    break
                sizes.append(known)
            else:
                size = self.total(value, sizes)
                if not pending:
                    return
                self.remember(value, size)
                value, inside, sizes = pending.pop()
                sizes.append(size)

    def size(self, value: Any) -> _Size | None:
        """Return the size of something; ``None`` if it is not known yet."""
        if _is_one(value):
            return 1, 0, 0
        known = self.known.get(id(value.code if isinstance(value, _Idle) else value))
        if known is not None or type(value) in _CONTAINERS or isinstance(value, (Code, _Idle)):
            return known
        own = 1
        if isinstance(value, (str, bytes)):
            own += len(value) // _CHARACTERS
        elif isinstance(value, int):
            own += value.bit_length() // (4 * _CHARACTERS)
        if own > 1:
            self.distinct += own
            self.remember(value, (own, 0, 0))
        return own, 0, 0

    def remember(self, value: Any, size: _Size) -> None:
        if isinstance(value, _Idle):
            value = value.code
        self.known[id(value)] = size
        self.kept.append(value)

    def total(self, value: Any, parts: list[_Size]) -> _Size:
        own = 1 + len(parts)
        is_container = type(value) in _CONTAINERS
        if isinstance(value, _Idle):
            own += len(value.code.bytecode) // 2
        elif not is_container:
            own += len(_program(value).ops)
        self.distinct += own
        expanded = own + sum(size for size, _, _ in parts)
        container = max((depth for _, depth, _ in parts), default=0) + 1
        nested = max((depth for _, _, depth in parts), default=0) + (not is_container)
        constants = expanded if is_container else sum(size for size, _, code in parts if not code)
        if too_many := budgets.CONSTANTS.exceeded(constants // 2):  # (each counts once itself, once its place)
            raise self.refused(too_many)
        if is_container and container > MAX_CONSTANT_DEPTH:
            raise self.refused("a constant nests too deeply to be written as source")
        if nested > MAX_CODE_DEPTH:
            raise self.refused("functions nest too deeply to be written as source")
        if expanded > ALLOWANCE + SHARING * self.distinct:
            raise self.refused("it shares its constants so often that it would become an enormous text")
        return expanded, container if is_container else 0, nested

    def refused(self, message: str) -> UnsupportedBytecode:
        return UnsupportedBytecode(message, self.code, "code object", 0)


def _program(value: Code | Program) -> Program:
    return value if isinstance(value, Program) else canonicalise(value)


def _parts(value: Any) -> Iterator[Any]:
    """Return the parts in the text of something, each as often as it occurs there."""
    if type(value) in _CONTAINERS:
        return (part for part in value if not isinstance(part, Code))  # code there is an object like any other
    if isinstance(value, _Idle):
        return (_Idle(part) for part in value.code.consts if isinstance(part, Code))
    return _parts_of_program(_program(value))


def _parts_of_program(program: Program) -> Iterator[Any]:
    ops: list[Op] = program.ops
    pushed = set()
    for index, op in enumerate(ops):
        if op.kind == "BUILD_CONST_KEY_MAP":
            yield from op.arg
        if op.kind != "CONST":
            continue
        if not isinstance(op.arg, Code):
            yield op.arg
        elif index + 1 < len(ops) and ops[index + 1].kind == "MAKE_FUNCTION":
            pushed.add(op.arg)
            yield op.arg
    for constant in program.code.consts:
        if isinstance(constant, Code) and constant not in pushed:
            yield _Idle(constant)
