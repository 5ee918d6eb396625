"""Instructions that are one operation: ``(kind, pool, pops, slots pushed, fixed argument)``.

``pool`` says what the instruction's argument indexes; ``pops`` -1 means "as many as the argument says" (displays).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Union

from ..opspec import FIXED_EFFECTS

if TYPE_CHECKING:
    from ..canonical import Translator
    from ..instructions import Instruction

SimpleRule = tuple[str, int, int, tuple[int, ...], Any]
Rule = Union[SimpleRule, Callable[["Translator", "Instruction"], None]]  # noqa: UP007  (a string inside)
Rules = dict[str, Rule]

#: Where the argument of the operation comes from (indexes of ``Translator.pools``).
FIXED, NAMES, LOCALS, CELLS, CONSTS, NUMBER = range(6)

OPERATORS = {
    "ADD": "+", "SUBTRACT": "-", "MULTIPLY": "*", "TRUE_DIVIDE": "/", "FLOOR_DIVIDE": "//", "MODULO": "%",
    "MATRIX_MULTIPLY": "@", "POWER": "**", "LSHIFT": "<<", "RSHIFT": ">>", "AND": "&", "OR": "|", "XOR": "^",
}


def one(kind: str, pool: int = FIXED, arg: Any = None, hidden: int = 0) -> SimpleRule:
    """Return the rule of an instruction that is one operation, whose row says what it does to the stack.

    Args:
        kind: the operation.
        pool: what the instruction's argument indexes.
        arg: the operation's argument, if it is always the same.
        hidden: how many slots that no operation sees come below what it pushes.
    """
    pops, pushes = FIXED_EFFECTS.get(kind, (-1, 1))
    return kind, pool, pops, (0,) * hidden + (1,) * pushes, arg


#: The same on every version from 3.9 on.
EVERYWHERE: Rules = {
    "LOAD_CONST": one("CONST", CONSTS),
    "STORE_FAST": one("STORE_FAST", LOCALS),
    "DELETE_FAST": one("DELETE_FAST", LOCALS),
    "STORE_GLOBAL": one("STORE_GLOBAL", NAMES),
    "DELETE_GLOBAL": one("DELETE_GLOBAL", NAMES),
    "LOAD_NAME": one("LOAD_NAME", NAMES),
    "STORE_NAME": one("STORE_NAME", NAMES),
    "DELETE_NAME": one("DELETE_NAME", NAMES),
    "LOAD_DEREF": one("LOAD_DEREF", CELLS),
    "STORE_DEREF": one("STORE_DEREF", CELLS),
    "DELETE_DEREF": one("DELETE_DEREF", CELLS),
    "LOAD_CLASSDEREF": one("LOAD_CLASSDEREF", CELLS),
    "LOAD_CLOSURE": one("LOAD_CLOSURE", CELLS),
    "LOAD_BUILD_CLASS": one("LOAD_BUILD_CLASS"),
    "LOAD_ASSERTION_ERROR": one("LOAD_ASSERTION_ERROR"),
    "STORE_ATTR": one("STORE_ATTR", NAMES),
    "DELETE_ATTR": one("DELETE_ATTR", NAMES),
    "BINARY_SUBSCR": one("GETITEM"),
    "STORE_SUBSCR": one("SETITEM"),
    "DELETE_SUBSCR": one("DELITEM"),
    "UNARY_POSITIVE": one("UNARY", arg="+"),
    "UNARY_NEGATIVE": one("UNARY", arg="-"),
    "UNARY_INVERT": one("UNARY", arg="~"),
    "UNARY_NOT": one("UNARY", arg="not"),
    "BUILD_TUPLE": one("BUILD_TUPLE", NUMBER),
    "BUILD_LIST": one("BUILD_LIST", NUMBER),
    "BUILD_SET": one("BUILD_SET", NUMBER),
    "BUILD_STRING": one("BUILD_STRING", NUMBER),
    "BUILD_SLICE": one("BUILD_SLICE", NUMBER),
    "LIST_TO_TUPLE": one("LIST_TO_TUPLE"),
    "IMPORT_NAME": one("IMPORT_NAME", NAMES),
    "IMPORT_FROM": one("IMPORT_FROM", NAMES),
    "IMPORT_STAR": one("IMPORT_STAR"),
    "SETUP_ANNOTATIONS": one("SETUP_ANNOTATIONS"),
    "PRINT_EXPR": one("PRINT_EXPR"),
    "GET_ITER": one("GET_ITER"),
    "YIELD_VALUE": one("YIELD"),
    "GET_AITER": one("GET_AITER"),
    "GET_LEN": one("GET_LEN"),
    "MATCH_MAPPING": one("MATCH_MAPPING"),
    "MATCH_SEQUENCE": one("MATCH_SEQUENCE"),
    "COPY_DICT_WITHOUT_KEYS": one("COPY_DICT_WITHOUT_KEYS"),
    # 3.11 and later only, always the same
    "PUSH_EXC_INFO": one("PUSH_EXC_INFO"),
    "CHECK_EXC_MATCH": one("CHECK_EXC_MATCH"),
    "CHECK_EG_MATCH": one("CHECK_EG_MATCH"),
    "PREP_RERAISE_STAR": one("PREP_RERAISE_STAR"),
    "BEFORE_WITH": one("BEFORE_WITH"),
    "LOAD_LOCALS": one("LOAD_LOCALS"),
    "LOAD_FROM_DICT_OR_GLOBALS": one("LOAD_FROM_DICT_OR_GLOBALS", NAMES),
    "LOAD_FAST_AND_CLEAR": one("LOAD_FAST_AND_CLEAR", LOCALS),
}

#: 3.10 and before: an instruction for each operator.
OPERATOR_INSTRUCTIONS: Rules = {
    **{f"BINARY_{name}": one("BINARY", arg=sign) for name, sign in OPERATORS.items()},
    **{f"INPLACE_{name}": one("INPLACE", arg=sign) for name, sign in OPERATORS.items()},
}
