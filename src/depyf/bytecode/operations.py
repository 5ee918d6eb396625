"""The canonical operations: one small instruction set that every CPython version is mapped to.

Versions of CPython differ in *encoding* far more than in *meaning*.  ``canonical.py`` is the only
place that knows how a version spells an operation; everything after it (``cfg``, ``decompiler``)
sees only these operations.  For example, ``return f(a) or b``::

    3.11                              3.13                        operations
    LOAD_GLOBAL f (and a NULL)        LOAD_GLOBAL f (and a NULL)  0 LOAD_GLOBAL 'f'
    LOAD_FAST a                       LOAD_FAST a                 1 LOAD_FAST 'a'
    PRECALL 1; CALL 1                 CALL 1                      2 CALL (1, ())
    JUMP_IF_TRUE_OR_POP to RETURN     COPY 1                      3 COPY 1
                                      TO_BOOL; POP_JUMP_IF_TRUE   4 BRANCH True -> 7
                                      POP_TOP                     5 POP
    LOAD_FAST b                       LOAD_FAST b                 6 LOAD_FAST 'b'
    RETURN_VALUE                      RETURN_VALUE                7 RETURN

A :class:`Program` is a list of :class:`Op`.  An op has a ``kind`` (one of the names below), an
``arg`` whose meaning depends on the kind, and, for jumps, a ``target`` (index into
``Program.ops``).  What each kind pops, pushes, raises and ends is in its row (:class:`OpSpec`); the defaults are the
safe assumptions about an operation that has not been examined: it may raise, and others may notice it. Sets of
operations are derived below the rows; write no list of operations elsewhere that could be derived from them. (The
effects of an *instruction* of one version are in ``code`` and ``validate``.)
Operand stack conventions are those of CPython 3.12, cleaned up:

* no ``NULL`` and no method-call pairs: a call is ``callable, arg0, ..., argN-1 -> result``;
* no caches, ``EXTENDED_ARG``, ``RESUME``, ``PRECALL``, ``NOP``; fused instructions are split (the
  parts share their offset);
* no ``TO_BOOL`` (``BRANCH`` and ``UNARY not`` test truth themselves);
* ``JUMP_IF_X_OR_POP t`` is ``COPY 1; BRANCH x -> t; POP``;
* jumps on ``None`` are ``CONST None; IS; BRANCH``;
* an exception handler starts with exactly the exception on the stack above ``Handler.depth`` values
  (plus, below it, one opaque ``lasti`` value if ``Handler.lasti``), on every version.  Handlers of
  ``try`` and ``with`` start with ``PUSH_EXC_INFO``; clean-up handlers that the compiler writes do not:
  ``COPY 3; POP_EXCEPT; RERAISE 1`` (over every running handler), ``CONST None; STORE n; DELETE n;
  RERAISE 1`` (``except E as n``), ``END_ASYNC_FOR``, ``LIST_APPEND 3; POP`` (``except*``), and
  the restoring of variables of an inlined comprehension (3.12+: ``SWAP 2; POP; STORE_FAST x;
  RERAISE 0``).  The six-value protocol and block stack of 3.10 and before are folded into exactly
  this form (3.10 gets 3.11's clean-up handlers), and the ``finally`` subroutines of 3.8 and before are
  copied to where they are called;
* ``yield from`` and ``await`` are one op each (the ``SEND`` loop of 3.11+ and its
  ``CLEANUP_THROW`` handlers are folded);
* the lookup of ``__enter__`` and ``__exit__`` of 3.14+ is the ``BEFORE_WITH`` of versions before; ``any(...)``,
  ``all(...)`` and ``tuple(...)`` of a generator expression, for which 3.14+ writes a loop too, are the call;
* the preamble of generators (``RETURN_GENERATOR; POP_TOP``) and the ``StopIteration`` wrapper of
  3.12+ (``CALL_INTRINSIC_1 3; RERAISE`` over the whole body) are folded;
* ``MAKE_CELL`` (but see there), ``COPY_FREE_VARS`` are dropped (cells follow from the code object);
* unreachable instructions are dropped.

Notation below: ``arg : stack before -> stack after`` (top of stack on the right).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ..values import frozen
from .errors import shown

if TYPE_CHECKING:
    from .code import Code

#: ``(popped, pushed)``; as a function of the argument where that counts.
Effect = tuple[int, int] | Callable[..., tuple[int, int]]


#: The variables that an operation reads or changes, those that its argument names: fast locals or cells of the frame,
#: globals of the module (then builtins), or those of a class or module body (then globals).
NOTHING, LOCALS, CELLS, GLOBALS, NAMES = "nothing", "locals", "cells", "globals", "names"
#: The extent to which others than the frame itself can notice an operation: nothing; that something is read (it may run
#: code of others, of which only the value is wanted); anything (it may change what others hold, too).
NO, READ, YES = "no", "read", "yes"


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
    touches: str = NOTHING
    observed: str = YES
    updates: bool = False


SPECS: dict[str, OpSpec] = {}


def row(kind: str, effect: Effect, **facts: Any) -> str:
    """Put the facts about an operation into the table; return its kind."""
    SPECS[kind] = OpSpec(effect, **facts)
    return kind


# --- values and names -----------------------------------------------------------------------------
# value (constants may be nested Code, Ellipsis, frozenset...) : -> value
CONST = row("CONST", (0, 1), raises=False, observed=NO)
LOAD_FAST = row("LOAD_FAST", (0, 1), touches=LOCALS, observed=NO)  # name : -> value (may raise if unbound)
# name (3.12+ inlined comprehensions) : -> value-or-NULL
LOAD_FAST_AND_CLEAR = row("LOAD_FAST_AND_CLEAR", (0, 1), raises=False, touches=LOCALS, observed=NO)
STORE_FAST = row("STORE_FAST", (1, 0), raises=False, touches=LOCALS, observed=NO)  # name : value ->
DELETE_FAST = row("DELETE_FAST", (0, 0), touches=LOCALS, observed=NO)  # name : ->
LOAD_GLOBAL = row("LOAD_GLOBAL", (0, 1), touches=GLOBALS, observed=READ)  # name (explicit global scope) : -> value
STORE_GLOBAL = row("STORE_GLOBAL", (1, 0), touches=GLOBALS)
DELETE_GLOBAL = row("DELETE_GLOBAL", (0, 0), touches=GLOBALS)
LOAD_NAME = row("LOAD_NAME", (0, 1), touches=NAMES, observed=READ)  # name (module and class bodies) : -> value
STORE_NAME = row("STORE_NAME", (1, 0), touches=NAMES)
DELETE_NAME = row("DELETE_NAME", (0, 0), touches=NAMES)
LOAD_DEREF = row("LOAD_DEREF", (0, 1), touches=CELLS, observed=READ)  # name (contents of a cell) : -> value
STORE_DEREF = row("STORE_DEREF", (1, 0), raises=False, touches=CELLS)
DELETE_DEREF = row("DELETE_DEREF", (0, 0), touches=CELLS)
# name (class body: locals, then cell; 3.12 LOAD_FROM_DICT_OR_DEREF)
LOAD_CLASSDEREF = row("LOAD_CLASSDEREF", (0, 1), touches=CELLS, observed=READ)
# name : mapping -> value (3.12+)
LOAD_FROM_DICT_OR_GLOBALS = row("LOAD_FROM_DICT_OR_GLOBALS", (1, 1), touches=NAMES, observed=READ)
# name : mapping -> value (3.12+, in classes)
LOAD_FROM_DICT_OR_DEREF = row("LOAD_FROM_DICT_OR_DEREF", (1, 1), touches=CELLS, observed=READ)
# name : -> ; a new cell for a variable of an inlined comprehension (3.12+ only)
MAKE_CELL = row("MAKE_CELL", (0, 0), raises=False, touches=CELLS)
# name : -> cell (only to build closures)
LOAD_CLOSURE = row("LOAD_CLOSURE", (0, 1), raises=False, touches=CELLS, observed=NO)
LOAD_LOCALS = row("LOAD_LOCALS", (0, 1))  # : -> locals mapping (3.12+)
LOAD_BUILD_CLASS = row("LOAD_BUILD_CLASS", (0, 1))  # : -> builtins.__build_class__
LOAD_ASSERTION_ERROR = row("LOAD_ASSERTION_ERROR", (0, 1), raises=False)  # : -> AssertionError
# name of a built-in that the program cannot change (3.14+) : -> value
LOAD_COMMON_CONSTANT = row("LOAD_COMMON_CONSTANT", (0, 1), raises=False)
LOAD_ATTR = row("LOAD_ATTR", (1, 1), observed=READ)  # name : obj -> value
STORE_ATTR = row("STORE_ATTR", (2, 0))  # name : value, obj ->
DELETE_ATTR = row("DELETE_ATTR", (1, 0))  # name : obj ->
LOAD_SUPER_ATTR = row("LOAD_SUPER_ATTR", (3, 1))  # (name, two_argument) : super, class, self -> value (3.12+)
GETITEM = row("GETITEM", (2, 1), observed=READ)  # : obj, index -> value
SETITEM = row("SETITEM", (3, 0))  # : value, obj, index ->
DELITEM = row("DELITEM", (2, 0))  # : obj, index ->

# --- operators ------------------------------------------------------------------------------------
BINARY = row("BINARY", (2, 1))  # "+", "-", "*", "/", "//", "%", "@", "**", "<<", ">>", "&", "|", "^" : a, b -> a op b
INPLACE = row("INPLACE", (2, 1))  # the same, for ``a += b`` : a, b -> result
UNARY = row("UNARY", (1, 1))  # "-", "+", "~", "not" : a -> result
COMPARE = row("COMPARE", (2, 1))  # "<", "<=", "==", "!=", ">", ">=" : a, b -> result
IS = row("IS", (2, 1), raises=False)  # inverted: bool (True means ``is not``) : a, b -> result
IN = row("IN", (2, 1))  # inverted: bool (True means ``not in``) : a, b -> result

# --- building -------------------------------------------------------------------------------------
# (The keys of a display are taken to be hashed unseen; an unhashable one raises.)
BUILD_TUPLE = row("BUILD_TUPLE", lambda n: (n, 1), raises=False, observed=NO)  # n : v1..vn -> tuple
BUILD_LIST = row("BUILD_LIST", lambda n: (n, 1), raises=False, observed=NO)  # n
BUILD_SET = row("BUILD_SET", lambda n: (n, 1))  # n
BUILD_MAP = row("BUILD_MAP", lambda n: (2 * n, 1), observed=NO)  # n pairs : k1, v1, ..., kn, vn -> dict
# keys (tuple) : v1..vn -> dict
BUILD_CONST_KEY_MAP = row("BUILD_CONST_KEY_MAP", lambda keys: (len(keys), 1), observed=NO)
BUILD_STRING = row("BUILD_STRING", lambda n: (n, 1), raises=False)  # n
BUILD_SLICE = row("BUILD_SLICE", lambda n: (n, 1), raises=False, observed=NO)  # 2 or 3 : start, stop[, step] -> slice
FORMAT = row("FORMAT", lambda arg: (1 + arg[1], 1))  # (conversion: "", "s", "r", "a"; has_spec) : value[, spec] -> str
CONVERT = row("CONVERT", (1, 1))  # "s", "r", "a": value -> str (3.13+, only in ``f"{x!r:{not_constant}}"``)
# (conversion, has_spec) : value, text[, spec] -> part (3.14+)
BUILD_INTERPOLATION = row("BUILD_INTERPOLATION", lambda arg: (2 + arg[1], 1))
BUILD_TEMPLATE = row("BUILD_TEMPLATE", (2, 1))  # : strings, parts (tuples) -> template (3.14+)
# i : value -> ; appends to the list i below the top *after* popping
LIST_APPEND = row("LIST_APPEND", (1, 0), raises=False, updates=True)
SET_ADD = row("SET_ADD", (1, 0), updates=True)  # i
# i : key, value -> ; on every version key is pushed first (3.7 is swapped)
MAP_ADD = row("MAP_ADD", (2, 0), updates=True)
LIST_EXTEND = row("LIST_EXTEND", (1, 0), updates=True)  # i : iterable ->
SET_UPDATE = row("SET_UPDATE", (1, 0), updates=True)  # i
DICT_UPDATE = row("DICT_UPDATE", (1, 0), updates=True)  # i ({**x})
DICT_MERGE = row("DICT_MERGE", (1, 0), updates=True)  # i (f(**x): duplicate keys raise)
# (kind, n) : v1..vn -> v; 3.8-: iterables or mappings into one "list", "tuple", "set", "dict", "arguments" (a tuple,
# f(*a, *b)), "keywords" (f(**a, **b))
BUILD_UNPACK = row("BUILD_UNPACK", lambda arg: (arg[1], 1))
LIST_TO_TUPLE = row("LIST_TO_TUPLE", (1, 1), raises=False)  # : list -> tuple
UNPACK = row("UNPACK", lambda n: (1, n))  # n : seq -> vn, ..., v1 (v1 on top)
UNPACK_EX = row("UNPACK_EX", lambda arg: (1, arg[0] + 1 + arg[1]))  # (before, after) : seq -> ... (first on top)

# --- calls, functions, classes, imports -----------------------------------------------------------
# (n_positional, keyword_names tuple) : callable, args..., kwargs... -> result
CALL = row("CALL", lambda arg: (1 + arg[0] + len(arg[1]), 1))
# has_keywords: bool : callable, args[, mapping] -> result
CALL_EX = row("CALL_EX", lambda has_keywords: (2 + has_keywords, 1))
# flags 1 defaults, 2 kwdefaults, 4 annotations, 8 closure, 16 __annotate__
# : [defaults][kwdefaults][annotations][closure] code -> function
MAKE_FUNCTION = row("MAKE_FUNCTION", lambda flags: (1 + flags.bit_count(), 1), raises=False)
IMPORT_NAME = row("IMPORT_NAME", (2, 1))  # name : level, fromlist -> module
IMPORT_FROM = row("IMPORT_FROM", (1, 2), keeps=1)  # name : module -> module, value
IMPORT_STAR = row("IMPORT_STAR", (1, 0))  # : module ->
INTRINSIC_1 = row("INTRINSIC_1", (1, 1))  # lower-case name of the intrinsic (3.12+) : value -> result
INTRINSIC_2 = row("INTRINSIC_2", (2, 1))  # lower-case name of the intrinsic (3.12+) : a, b -> result
SETUP_ANNOTATIONS = row("SETUP_ANNOTATIONS", (0, 0))
PRINT_EXPR = row("PRINT_EXPR", (1, 0))  # : value ->

# --- the stack ------------------------------------------------------------------------------------
POP = row("POP", (1, 0), raises=False, observed=NO)  # : value ->
# i : pushes a copy of the i-th value from the top (1 = top)
COPY = row("COPY", lambda i: (i, i + 1), raises=False, observed=NO)
# i : swaps the top with the i-th value from the top (2 = next)
SWAP = row("SWAP", lambda i: (i, i), raises=False, observed=NO)
ROT = row("ROT", lambda i: (i, i), raises=False, observed=NO)  # i : lifts 2..i up, puts the top at place i (i > 2)

# --- iteration, generators ------------------------------------------------------------------------
GET_ITER = row("GET_ITER", (1, 1))  # : iterable -> iterator
# target: exit : iterator -> iterator, value | exit: (iterator popped)
FOR_ITER = row("FOR_ITER", (1, 2), keeps=1, ends_block=True, jumps=True)
YIELD = row("YIELD", (1, 1))  # : value -> sent
YIELD_FROM = row("YIELD_FROM", (1, 1))  # : iterable -> result (``yield from x``)
AWAIT = row("AWAIT", (1, 1))  # : awaitable -> result (``await x``)
GET_AITER = row("GET_AITER", (1, 1))  # : async iterable -> async iterator
GET_ANEXT_AWAIT = row("GET_ANEXT_AWAIT", (1, 2), keeps=1)  # : aiter -> aiter, value (with its await)
END_ASYNC_FOR = row("END_ASYNC_FOR", (2, 0))  # in a handler : aiter, exc -> ; re-raises unless StopAsyncIteration

# --- exceptions, with -----------------------------------------------------------------------------
PUSH_EXC_INFO = row("PUSH_EXC_INFO", (1, 2), raises=False)  # : exc -> previous, exc
POP_EXCEPT = row("POP_EXCEPT", (1, 0), raises=False)  # : previous ->
CHECK_EXC_MATCH = row("CHECK_EXC_MATCH", (2, 2), keeps=1)  # : exc, type -> exc, bool
CHECK_EG_MATCH = row("CHECK_EG_MATCH", (2, 2))  # : exc, type -> rest, match
PREP_RERAISE_STAR = row("PREP_RERAISE_STAR", (2, 1))  # : orig, list -> exc
BEFORE_WITH = row("BEFORE_WITH", (1, 2))  # : manager -> exit, entered
BEFORE_ASYNC_WITH = row("BEFORE_ASYNC_WITH", (1, 2))  # : manager -> exit, awaitable
# : exit, [lasti], previous, exc -> same, result (it looks at the exit below too, past a lasti)
WITH_EXCEPT_START = row("WITH_EXCEPT_START", (2, 3), keeps=2)
# 0, 1 or 2 : [exc[, cause]] -> (ends a block)
RAISE = row("RAISE", lambda n: (n, 0), ends_block=True, falls_through=False)
# place of lasti below exc (1: next), 0 without : [lasti], exc -> (ends a block)
RERAISE = row("RERAISE", lambda place: (1 + place, 0), ends_block=True, falls_through=False)

# --- match ----------------------------------------------------------------------------------------
GET_LEN = row("GET_LEN", (1, 2), keeps=1)  # : obj -> obj, len
MATCH_MAPPING = row("MATCH_MAPPING", (1, 2), keeps=1, raises=False)  # : obj -> obj, bool
MATCH_SEQUENCE = row("MATCH_SEQUENCE", (1, 2), keeps=1, raises=False)  # : obj -> obj, bool
MATCH_KEYS = row("MATCH_KEYS", (2, 3), keeps=2)  # : obj, keys -> obj, keys, values-or-None
# n : obj, class, kwnames -> attributes-or-None (3.10 leaves a bool too: folded)
MATCH_CLASS = row("MATCH_CLASS", (3, 1))
COPY_DICT_WITHOUT_KEYS = row("COPY_DICT_WITHOUT_KEYS", (2, 2), keeps=1)

# --- control --------------------------------------------------------------------------------------
JUMP = row("JUMP", (0, 0), raises=False, ends_block=True, falls_through=False, jumps=True, observed=NO)  # target
# arg: bool; target : value -> ; jumps to target if ``bool(value) == arg``
BRANCH = row("BRANCH", (1, 0), ends_block=True, jumps=True)
RETURN = row("RETURN", (1, 0), raises=False, ends_block=True, falls_through=False)  # : value -> (ends a block)


@dataclass(eq=False, slots=True)
class Op:
    """One canonical operation.

    Attributes:
        arg: operand, as listed beside each kind; ``None`` where there is none.
        offset: byte offset of the instruction it came from (parts of a fused one share it).
        target: for ``JUMP``, ``BRANCH``, ``FOR_ITER``: index of the target in ``Program.ops``; else -1.
        handler: index into ``Program.handlers`` of the innermost handler that covers it; -1 for none.
    """

    kind: str
    arg: Any = None
    offset: int = -1
    line: int | None = None
    target: int = -1
    handler: int = -1

    def __repr__(self) -> str:
        parts = [self.kind]
        if self.arg is not None or self.kind == CONST:
            parts.append(shown(self.arg))
        if self.target >= 0:
            parts.append(f"-> {self.target}")
        return " ".join(parts)


@dataclass(eq=False, slots=True)
class Handler:
    """The target of an exception: the op it continues at (a ``PUSH_EXC_INFO``), and how much of the stack survives.

    ``depth`` values remain, and if ``lasti``, an opaque instruction offset is between those and the exception.
    """

    target: int
    depth: int
    lasti: bool


@dataclass(eq=False, slots=True)
class Program:
    """A code object as canonical operations: ``ops`` in code order and the ``handlers`` they name."""

    code: Code
    ops: list[Op]
    handlers: list[Handler]


# --- sets of operations, derived ------------------------------------------------------------------
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
UNOBSERVABLE = kinds(lambda spec: spec.observed == NO)
#: Operations of which others notice at most that something is read.
ONLY_READ = kinds(lambda spec: spec.observed == READ)
#: Operations on a container below the values that they take.
UPDATES = kinds(lambda spec: spec.updates)
#: How many of the values that an operation looks at remain where they are, if any do.
KEEPS: dict[str, int] = {kind: spec.keeps for kind, spec in SPECS.items() if spec.keeps}
#: Operations by the variables that they touch.
ON_LOCALS = kinds(lambda spec: spec.touches == LOCALS)
ON_CELLS = kinds(lambda spec: spec.touches == CELLS)
ON_GLOBALS = kinds(lambda spec: spec.touches == GLOBALS)
ON_NAMES = kinds(lambda spec: spec.touches == NAMES)

#: ``(popped, pushed)`` by operation where it is always the same.
FIXED_EFFECTS: dict[str, tuple[int, int]] = {
    kind: spec.effect for kind, spec in SPECS.items() if isinstance(spec.effect, tuple)}


def effect(op: Op) -> tuple[int, int]:
    """Return ``(popped, pushed)`` of an operation."""
    known = SPECS[op.kind].effect
    return known if isinstance(known, tuple) else known(op.arg)


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
