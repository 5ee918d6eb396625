"""The facts about each canonical operation, one row an operation.

:data:`SPECS` has a row for every constant of :mod:`.operations`, in the same order. Two of them::

    BINARY      OpSpec((2, 1))          a, b -> result; may raise, and anybody may notice
    STORE_FAST  OpSpec((1, 0), raises=False, touches=LOCALS, observed=NO)

The defaults are the safe assumptions about an operation that has not been examined: it may raise, and others may
notice it. Sets of operations are derived below the table; write no list of operations elsewhere that could be
derived from rows. (The effects of an *instruction* of one version are in ``versions`` and ``validate``.)
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TypeVar

from ..values import frozen
from . import operations as o
from .operations import Op

#: ``(popped, pushed)``; as a function of the argument where that counts.
Effect = tuple[int, int] | Callable[..., tuple[int, int]]


class Touches(enum.Enum):
    """The variables that an operation reads or changes: those that its argument names."""

    NOTHING = "nothing by name"
    LOCALS = "fast locals of the frame"
    CELLS = "cells of the frame, or what they hold"
    GLOBALS = "globals of the module, then builtins"
    NAMES = "the namespace of a class or module body, then globals"


class Observed(enum.Enum):
    """The extent to which others than the frame itself can notice an operation."""

    NO = "nothing"
    READ = "that something is read: it may run code of others, of which only the value is wanted"
    YES = "anything: it may run code of others, or change what they hold"


@frozen
class OpSpec:
    """The facts about one operation.

    Attributes:
        effect: values popped and pushed (``FOR_ITER``: when it goes on). Values that it only looks at are both.
        keeps: how many of the popped values, from below, are pushed again where they were.
        raises: it can raise, ``MemoryError`` and what comes from outside (``KeyboardInterrupt``) apart.
        ends_block: it is the last of its block.
        falls_through: control can go on to the next operation.
        jumps: control can go to ``Op.target``.
        touches: the variables that its argument names.
        observed: what others can notice, given that the operation does not raise.
        updates: it changes the container ``arg`` below what it pops.
    """

    effect: Effect
    keeps: int = 0
    raises: bool = True
    ends_block: bool = False
    falls_through: bool = True
    jumps: bool = False
    touches: Touches = Touches.NOTHING
    observed: Observed = Observed.YES
    updates: bool = False


LOCALS, CELLS, GLOBALS, NAMES = Touches.LOCALS, Touches.CELLS, Touches.GLOBALS, Touches.NAMES
NO, READ = Observed.NO, Observed.READ

SPECS: dict[str, OpSpec] = {
    # values and names
    o.CONST: OpSpec((0, 1), raises=False, observed=NO),
    o.LOAD_FAST: OpSpec((0, 1), touches=LOCALS, observed=NO),
    o.LOAD_FAST_AND_CLEAR: OpSpec((0, 1), raises=False, touches=LOCALS, observed=NO),
    o.STORE_FAST: OpSpec((1, 0), raises=False, touches=LOCALS, observed=NO),
    o.DELETE_FAST: OpSpec((0, 0), touches=LOCALS, observed=NO),
    o.LOAD_GLOBAL: OpSpec((0, 1), touches=GLOBALS, observed=READ),
    o.STORE_GLOBAL: OpSpec((1, 0), touches=GLOBALS),
    o.DELETE_GLOBAL: OpSpec((0, 0), touches=GLOBALS),
    o.LOAD_NAME: OpSpec((0, 1), touches=NAMES, observed=READ),
    o.STORE_NAME: OpSpec((1, 0), touches=NAMES),
    o.DELETE_NAME: OpSpec((0, 0), touches=NAMES),
    o.LOAD_DEREF: OpSpec((0, 1), touches=CELLS, observed=READ),
    o.STORE_DEREF: OpSpec((1, 0), raises=False, touches=CELLS),
    o.DELETE_DEREF: OpSpec((0, 0), touches=CELLS),
    o.LOAD_CLASSDEREF: OpSpec((0, 1), touches=CELLS, observed=READ),
    o.LOAD_FROM_DICT_OR_GLOBALS: OpSpec((1, 1), touches=NAMES, observed=READ),
    o.LOAD_FROM_DICT_OR_DEREF: OpSpec((1, 1), touches=CELLS, observed=READ),
    o.MAKE_CELL: OpSpec((0, 0), raises=False, touches=CELLS),
    o.LOAD_CLOSURE: OpSpec((0, 1), raises=False, touches=CELLS, observed=NO),
    o.LOAD_LOCALS: OpSpec((0, 1)),
    o.LOAD_BUILD_CLASS: OpSpec((0, 1)),
    o.LOAD_ASSERTION_ERROR: OpSpec((0, 1), raises=False),
    o.LOAD_COMMON_CONSTANT: OpSpec((0, 1), raises=False),
    o.LOAD_ATTR: OpSpec((1, 1), observed=READ),
    o.STORE_ATTR: OpSpec((2, 0)),
    o.DELETE_ATTR: OpSpec((1, 0)),
    o.LOAD_SUPER_ATTR: OpSpec((3, 1)),
    o.GETITEM: OpSpec((2, 1), observed=READ),
    o.SETITEM: OpSpec((3, 0)),
    o.DELITEM: OpSpec((2, 0)),
    # operators
    o.BINARY: OpSpec((2, 1)),
    o.INPLACE: OpSpec((2, 1)),
    o.UNARY: OpSpec((1, 1)),
    o.COMPARE: OpSpec((2, 1)),
    o.IS: OpSpec((2, 1), raises=False),
    o.IN: OpSpec((2, 1)),
    # building; the keys of a display are taken to be hashed unseen (an unhashable one raises)
    o.BUILD_TUPLE: OpSpec(lambda n: (n, 1), raises=False, observed=NO),
    o.BUILD_LIST: OpSpec(lambda n: (n, 1), raises=False, observed=NO),
    o.BUILD_SET: OpSpec(lambda n: (n, 1)),
    o.BUILD_MAP: OpSpec(lambda n: (2 * n, 1), observed=NO),
    o.BUILD_CONST_KEY_MAP: OpSpec(lambda keys: (len(keys), 1), observed=NO),
    o.BUILD_STRING: OpSpec(lambda n: (n, 1), raises=False),
    o.BUILD_SLICE: OpSpec(lambda n: (n, 1), raises=False, observed=NO),
    o.FORMAT: OpSpec(lambda arg: (1 + arg[1], 1)),
    o.CONVERT: OpSpec((1, 1)),
    o.BUILD_INTERPOLATION: OpSpec(lambda arg: (2 + arg[1], 1)),
    o.BUILD_TEMPLATE: OpSpec((2, 1)),
    o.LIST_APPEND: OpSpec((1, 0), raises=False, updates=True),
    o.SET_ADD: OpSpec((1, 0), updates=True),
    o.MAP_ADD: OpSpec((2, 0), updates=True),
    o.LIST_EXTEND: OpSpec((1, 0), updates=True),
    o.SET_UPDATE: OpSpec((1, 0), updates=True),
    o.DICT_UPDATE: OpSpec((1, 0), updates=True),
    o.DICT_MERGE: OpSpec((1, 0), updates=True),
    o.BUILD_UNPACK: OpSpec(lambda arg: (arg[1], 1)),
    o.LIST_TO_TUPLE: OpSpec((1, 1), raises=False),
    o.UNPACK: OpSpec(lambda n: (1, n)),
    o.UNPACK_EX: OpSpec(lambda arg: (1, arg[0] + 1 + arg[1])),
    # calls, functions, classes, imports
    o.CALL: OpSpec(lambda arg: (1 + arg[0] + len(arg[1]), 1)),
    o.CALL_EX: OpSpec(lambda has_keywords: (2 + has_keywords, 1)),
    o.MAKE_FUNCTION: OpSpec(lambda flags: (1 + flags.bit_count(), 1), raises=False),
    o.IMPORT_NAME: OpSpec((2, 1)),
    o.IMPORT_FROM: OpSpec((1, 2), keeps=1),
    o.IMPORT_STAR: OpSpec((1, 0)),
    o.INTRINSIC_1: OpSpec((1, 1)),
    o.INTRINSIC_2: OpSpec((2, 1)),
    o.SETUP_ANNOTATIONS: OpSpec((0, 0)),
    o.PRINT_EXPR: OpSpec((1, 0)),
    # the stack
    o.POP: OpSpec((1, 0), raises=False, observed=NO),
    o.COPY: OpSpec(lambda i: (i, i + 1), raises=False, observed=NO),
    o.SWAP: OpSpec(lambda i: (i, i), raises=False, observed=NO),
    o.ROT: OpSpec(lambda i: (i, i), raises=False, observed=NO),
    # iteration, generators
    o.GET_ITER: OpSpec((1, 1)),
    o.FOR_ITER: OpSpec((1, 2), keeps=1, ends_block=True, jumps=True),
    o.YIELD: OpSpec((1, 1)),
    o.YIELD_FROM: OpSpec((1, 1)),
    o.AWAIT: OpSpec((1, 1)),
    o.GET_AITER: OpSpec((1, 1)),
    o.GET_ANEXT_AWAIT: OpSpec((1, 2), keeps=1),
    o.END_ASYNC_FOR: OpSpec((2, 0)),
    # exceptions, with
    o.PUSH_EXC_INFO: OpSpec((1, 2), raises=False),
    o.POP_EXCEPT: OpSpec((1, 0), raises=False),
    o.CHECK_EXC_MATCH: OpSpec((2, 2), keeps=1),
    o.CHECK_EG_MATCH: OpSpec((2, 2)),
    o.PREP_RERAISE_STAR: OpSpec((2, 1)),
    o.BEFORE_WITH: OpSpec((1, 2)),
    o.BEFORE_ASYNC_WITH: OpSpec((1, 2)),
    o.WITH_EXCEPT_START: OpSpec((2, 3), keeps=2),  # (it looks at the exit below too, past a lasti)
    o.RAISE: OpSpec(lambda n: (n, 0), ends_block=True, falls_through=False),
    o.RERAISE: OpSpec(lambda place: (1 + place, 0), ends_block=True, falls_through=False),
    # match
    o.GET_LEN: OpSpec((1, 2), keeps=1),
    o.MATCH_MAPPING: OpSpec((1, 2), keeps=1, raises=False),
    o.MATCH_SEQUENCE: OpSpec((1, 2), keeps=1, raises=False),
    o.MATCH_KEYS: OpSpec((2, 3), keeps=2),
    o.MATCH_CLASS: OpSpec((3, 1)),
    o.COPY_DICT_WITHOUT_KEYS: OpSpec((2, 2), keeps=1),
    # control
    o.JUMP: OpSpec((0, 0), raises=False, ends_block=True, falls_through=False, jumps=True, observed=NO),
    o.BRANCH: OpSpec((1, 0), ends_block=True, jumps=True),
    o.RETURN: OpSpec((1, 0), raises=False, ends_block=True, falls_through=False),
}


def kinds(holds: Callable[[OpSpec], bool]) -> frozenset[str]:
    """Return the operations whose rows satisfy a predicate."""
    return frozenset(kind for kind, spec in SPECS.items() if holds(spec))


#: The last operation of a block that does not just run on into the next.
TERMINATORS = kinds(lambda spec: spec.ends_block)
#: Operations after which control never goes on to the next one.
NO_FALL_THROUGH = kinds(lambda spec: not spec.falls_through)
#: Operations that have a ``target``.
JUMPS = kinds(lambda spec: spec.jumps)
#: Operations for which it does not matter which handler covers them.
CANNOT_RAISE = kinds(lambda spec: not spec.raises)
#: Operations with effects that only the frame can observe.
UNOBSERVABLE = kinds(lambda spec: spec.observed is Observed.NO)
#: Operations of which others notice at most that something is read.
ONLY_READ = kinds(lambda spec: spec.observed is Observed.READ)
#: Operations on a container below the values that they take.
UPDATES = kinds(lambda spec: spec.updates)
#: How many of the values that an operation looks at remain where they are, if any do.
KEEPS: dict[str, int] = {kind: spec.keeps for kind, spec in SPECS.items() if spec.keeps}
#: Operations by the variables that they touch.
ON_LOCALS = kinds(lambda spec: spec.touches is LOCALS)
ON_CELLS = kinds(lambda spec: spec.touches is CELLS)
ON_GLOBALS = kinds(lambda spec: spec.touches is GLOBALS)
ON_NAMES = kinds(lambda spec: spec.touches is NAMES)

#: ``(popped, pushed)`` by operation where it is always the same; the functions of the argument for the others.
FIXED_EFFECTS: dict[str, tuple[int, int]] = {
    kind: spec.effect for kind, spec in SPECS.items() if isinstance(spec.effect, tuple)}
_EFFECTS_OF_ARG: dict[str, Callable[..., tuple[int, int]]] = {
    kind: spec.effect for kind, spec in SPECS.items() if not isinstance(spec.effect, tuple)}


def effect(op: Op) -> tuple[int, int]:
    """Return ``(popped, pushed)`` of an operation."""
    fixed = FIXED_EFFECTS.get(op.kind)
    return fixed if fixed is not None else _EFFECTS_OF_ARG[op.kind](op.arg)


# --- tables of functions by kind ------------------------------------------------------------------------
_F = TypeVar("_F")


def registrar(rules: dict[str, _F]) -> Callable[..., Callable[[_F], _F]]:
    """Return a decorator ``rule(*kinds)`` that puts functions into a table, by the kinds of operations they handle."""

    def rule(*kinds: str) -> Callable[[_F], _F]:
        def register(function: _F) -> _F:
            rules.update(dict.fromkeys(kinds, function))
            return function

        return register

    return rule
