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
``Program.ops``).  What each kind pops, pushes, raises and ends is in :mod:`.opspec`, one row a kind.
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

Notation below: ``kind  arg  : stack before -> stack after`` (top of stack on the right).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import shown

if TYPE_CHECKING:
    from .code import Code

# --- values and names -----------------------------------------------------------------------------
CONST = "CONST"  # value (constants may be nested Code, Ellipsis, frozenset...)  : -> value
LOAD_FAST = "LOAD_FAST"  # name                                : -> value   (may raise if unbound)
LOAD_FAST_AND_CLEAR = "LOAD_FAST_AND_CLEAR"  # name (3.12+ inlined comprehensions) : -> value-or-NULL
STORE_FAST = "STORE_FAST"  # name                              : value ->
DELETE_FAST = "DELETE_FAST"  # name                            : ->
LOAD_GLOBAL = "LOAD_GLOBAL"  # name (explicit global scope)    : -> value
STORE_GLOBAL = "STORE_GLOBAL"
DELETE_GLOBAL = "DELETE_GLOBAL"
LOAD_NAME = "LOAD_NAME"  # name (module and class bodies)      : -> value
STORE_NAME = "STORE_NAME"
DELETE_NAME = "DELETE_NAME"
LOAD_DEREF = "LOAD_DEREF"  # name (contents of a cell)         : -> value
STORE_DEREF = "STORE_DEREF"
DELETE_DEREF = "DELETE_DEREF"
LOAD_CLASSDEREF = "LOAD_CLASSDEREF"  # name (class body: locals, then cell; 3.12 LOAD_FROM_DICT_OR_DEREF)
LOAD_FROM_DICT_OR_GLOBALS = "LOAD_FROM_DICT_OR_GLOBALS"  # name : mapping -> value  (3.12+)
LOAD_FROM_DICT_OR_DEREF = "LOAD_FROM_DICT_OR_DEREF"  # name : mapping -> value  (3.12+, in classes)
MAKE_CELL = "MAKE_CELL"  # name : -> ; a new cell for a variable of an inlined comprehension (3.12+ only)
LOAD_CLOSURE = "LOAD_CLOSURE"  # name                          : -> cell  (only to build closures)
LOAD_LOCALS = "LOAD_LOCALS"  #                                 : -> locals mapping (3.12+)
LOAD_BUILD_CLASS = "LOAD_BUILD_CLASS"  #                       : -> builtins.__build_class__
LOAD_ASSERTION_ERROR = "LOAD_ASSERTION_ERROR"  #               : -> AssertionError
LOAD_COMMON_CONSTANT = "LOAD_COMMON_CONSTANT"  # name of a built-in that the program cannot change (3.14+) : -> value
LOAD_ATTR = "LOAD_ATTR"  # name                                : obj -> value
STORE_ATTR = "STORE_ATTR"  # name                              : value, obj ->
DELETE_ATTR = "DELETE_ATTR"  # name                            : obj ->
LOAD_SUPER_ATTR = "LOAD_SUPER_ATTR"  # (name, two_argument)    : super, class, self -> value (3.12+)
GETITEM = "GETITEM"  #                                         : obj, index -> value
SETITEM = "SETITEM"  #                                         : value, obj, index ->
DELITEM = "DELITEM"  #                                         : obj, index ->

# --- operators ------------------------------------------------------------------------------------
BINARY = "BINARY"  # "+", "-", "*", "/", "//", "%", "@", "**", "<<", ">>", "&", "|", "^" : a, b -> a op b
INPLACE = "INPLACE"  # the same, for ``a += b``                : a, b -> result
UNARY = "UNARY"  # "-", "+", "~", "not"                        : a -> result
COMPARE = "COMPARE"  # "<", "<=", "==", "!=", ">", ">="        : a, b -> result
IS = "IS"  # inverted: bool (True means ``is not``)            : a, b -> result
IN = "IN"  # inverted: bool (True means ``not in``)            : a, b -> result

# --- building -------------------------------------------------------------------------------------
BUILD_TUPLE = "BUILD_TUPLE"  # n                               : v1..vn -> tuple
BUILD_LIST = "BUILD_LIST"  # n
BUILD_SET = "BUILD_SET"  # n
BUILD_MAP = "BUILD_MAP"  # n pairs                             : k1, v1, ..., kn, vn -> dict
BUILD_CONST_KEY_MAP = "BUILD_CONST_KEY_MAP"  # keys (tuple)    : v1..vn -> dict
BUILD_STRING = "BUILD_STRING"  # n
BUILD_SLICE = "BUILD_SLICE"  # 2 or 3                          : start, stop[, step] -> slice
FORMAT = "FORMAT"  # (conversion: "", "s", "r", "a"; has_spec) : value[, spec] -> str
CONVERT = "CONVERT"  # "s", "r", "a": value -> str (3.13+, only in ``f"{x!r:{not_constant}}"``)
BUILD_INTERPOLATION = "BUILD_INTERPOLATION"  # (conversion, has_spec) : value, text[, spec] -> part (3.14+)
BUILD_TEMPLATE = "BUILD_TEMPLATE"  #                           : strings, parts (tuples) -> template (3.14+)
LIST_APPEND = "LIST_APPEND"  # i : value -> ; appends to the list i below the top *after* popping
SET_ADD = "SET_ADD"  # i
MAP_ADD = "MAP_ADD"  # i : key, value -> ; on every version key is pushed first (3.7 is swapped)
LIST_EXTEND = "LIST_EXTEND"  # i : iterable ->
SET_UPDATE = "SET_UPDATE"  # i
DICT_UPDATE = "DICT_UPDATE"  # i   ({**x})
DICT_MERGE = "DICT_MERGE"  # i     (f(**x): duplicate keys raise)
BUILD_UNPACK = "BUILD_UNPACK"  # (kind, n) : v1..vn -> v; 3.8-: iterables or mappings into one "list", "tuple",
#                                 "set", "dict", "arguments" (a tuple, f(*a, *b)), "keywords" (f(**a, **b))
LIST_TO_TUPLE = "LIST_TO_TUPLE"  #                             : list -> tuple
UNPACK = "UNPACK"  # n                                         : seq -> vn, ..., v1 (v1 on top)
UNPACK_EX = "UNPACK_EX"  # (before, after)                     : seq -> ... (first on top)

# --- calls, functions, classes, imports -----------------------------------------------------------
CALL = "CALL"  # (n_positional, keyword_names tuple)           : callable, args..., kwargs... -> result
CALL_EX = "CALL_EX"  # has_keywords: bool                      : callable, args[, mapping] -> result
MAKE_FUNCTION = "MAKE_FUNCTION"  # flags 1 defaults, 2 kwdefaults, 4 annotations, 8 closure, 16 __annotate__
#                                 : [defaults][kwdefaults][annotations][closure] code -> function
IMPORT_NAME = "IMPORT_NAME"  # name                            : level, fromlist -> module
IMPORT_FROM = "IMPORT_FROM"  # name                            : module -> module, value
IMPORT_STAR = "IMPORT_STAR"  #                                 : module ->
INTRINSIC_1 = "INTRINSIC_1"  # lower-case name of the intrinsic (3.12+) : value -> result
INTRINSIC_2 = "INTRINSIC_2"  # lower-case name of the intrinsic (3.12+) : a, b -> result
SETUP_ANNOTATIONS = "SETUP_ANNOTATIONS"
PRINT_EXPR = "PRINT_EXPR"  #                                   : value ->

# --- the stack ------------------------------------------------------------------------------------
POP = "POP"  #                                                 : value ->
COPY = "COPY"  # i                     : pushes a copy of the i-th value from the top (1 = top)
SWAP = "SWAP"  # i                     : swaps the top with the i-th value from the top (2 = next)
ROT = "ROT"  # i                       : lifts 2..i up, puts the top at place i (i > 2)

# --- iteration, generators ------------------------------------------------------------------------
GET_ITER = "GET_ITER"  #                                       : iterable -> iterator
FOR_ITER = "FOR_ITER"  # target: exit  : iterator -> iterator, value | exit: (iterator popped)
YIELD = "YIELD"  #                                             : value -> sent
YIELD_FROM = "YIELD_FROM"  #                                   : iterable -> result   (``yield from x``)
AWAIT = "AWAIT"  #                                             : awaitable -> result  (``await x``)
GET_AITER = "GET_AITER"  #                                     : async iterable -> async iterator
GET_ANEXT_AWAIT = "GET_ANEXT_AWAIT"  #                         : aiter -> aiter, value (with its await)
END_ASYNC_FOR = "END_ASYNC_FOR"  # in a handler : aiter, exc -> ; re-raises unless StopAsyncIteration

# --- exceptions, with -----------------------------------------------------------------------------
PUSH_EXC_INFO = "PUSH_EXC_INFO"  #                             : exc -> previous, exc
POP_EXCEPT = "POP_EXCEPT"  #                                   : previous ->
CHECK_EXC_MATCH = "CHECK_EXC_MATCH"  #                         : exc, type -> exc, bool
CHECK_EG_MATCH = "CHECK_EG_MATCH"  #                           : exc, type -> rest, match
PREP_RERAISE_STAR = "PREP_RERAISE_STAR"  #                     : orig, list -> exc
BEFORE_WITH = "BEFORE_WITH"  #                                 : manager -> exit, entered
BEFORE_ASYNC_WITH = "BEFORE_ASYNC_WITH"  #                     : manager -> exit, awaitable
WITH_EXCEPT_START = "WITH_EXCEPT_START"  #  : exit, [lasti], previous, exc -> same, result
RAISE = "RAISE"  # 0, 1 or 2           : [exc[, cause]] ->           (ends a block)
RERAISE = "RERAISE"  # place of lasti below exc (1: next), 0 without : [lasti], exc ->  (ends a block)

# --- match ----------------------------------------------------------------------------------------
GET_LEN = "GET_LEN"  #                                         : obj -> obj, len
MATCH_MAPPING = "MATCH_MAPPING"  #                             : obj -> obj, bool
MATCH_SEQUENCE = "MATCH_SEQUENCE"  #                           : obj -> obj, bool
MATCH_KEYS = "MATCH_KEYS"  #                                   : obj, keys -> obj, keys, values-or-None
MATCH_CLASS = "MATCH_CLASS"  # n : obj, class, kwnames -> attributes-or-None (3.10 leaves a bool too: folded)
COPY_DICT_WITHOUT_KEYS = "COPY_DICT_WITHOUT_KEYS"

# --- control --------------------------------------------------------------------------------------
JUMP = "JUMP"  # target
BRANCH = "BRANCH"  # arg: bool; target : value -> ; jumps to target if ``bool(value) == arg``
RETURN = "RETURN"  #                                           : value ->  (ends a block)


class Op:
    """One canonical operation.

    Attributes:
        kind: one of the constants of this module.
        arg: operand, as listed beside each kind; ``None`` where there is none.
        offset: byte offset of the instruction it came from (parts of a fused one share it).
        line: source line of that instruction, or ``None``.
        target: for ``JUMP``, ``BRANCH``, ``FOR_ITER``: index of the target in ``Program.ops``; else -1.
        handler: index into ``Program.handlers`` of the innermost handler that covers it; -1 for none.
    """

    __slots__ = ("arg", "handler", "kind", "line", "offset", "target")

    def __init__(
        self, kind: str, arg: Any = None, offset: int = -1, line: int | None = None,
        target: int = -1, handler: int = -1,
    ) -> None:
        self.kind = kind
        self.arg = arg
        self.offset = offset
        self.line = line
        self.target = target
        self.handler = handler

    def __repr__(self) -> str:
        parts = [self.kind]
        if self.arg is not None or self.kind == CONST:
            parts.append(shown(self.arg))
        if self.target >= 0:
            parts.append(f"-> {self.target}")
        return " ".join(parts)


class Handler:
    """The target of an exception: the op it continues at, and how much of the stack survives.

    Attributes:
        target: index into ``Program.ops`` (a ``PUSH_EXC_INFO``).
        depth: number of stack values that remain below what the handler is given.
        lasti: whether an opaque instruction-offset value is between those and the exception.
    """

    __slots__ = ("depth", "lasti", "target")

    def __init__(self, target: int, depth: int, lasti: bool) -> None:
        self.target = target
        self.depth = depth
        self.lasti = lasti

    def __repr__(self) -> str:
        return f"Handler(-> {self.target}, depth={self.depth}, lasti={self.lasti})"


class Program:
    """A code object as canonical operations: ``ops`` in code order and the ``handlers`` they name."""

    __slots__ = ("code", "handlers", "ops")

    def __init__(self, code: Code, ops: list[Op], handlers: list[Handler]) -> None:
        self.code = code
        self.ops = ops
        self.handlers = handlers
