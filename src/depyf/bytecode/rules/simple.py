"""Instructions that are one operation: ``(kind, pool, pops, pushes, fixed argument)``.

``pool`` says what the instruction's argument indexes; ``pops`` -1 means "as many as the argument says".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    from ..canonical import Translator
    from ..instructions import Instruction

SimpleRule = tuple[str, int, int, int, Any]
Rule = Union[SimpleRule, Callable[["Translator", "Instruction"], None]]  # noqa: UP007  (a string inside)
Rules = dict[str, Rule]

#: Where the argument of the operation comes from (indexes of ``Translator.pools``).
FIXED, NAMES, LOCALS, CELLS, CONSTS, NUMBER = range(6)

OPERATORS = {
    "ADD": "+", "SUBTRACT": "-", "MULTIPLY": "*", "TRUE_DIVIDE": "/", "FLOOR_DIVIDE": "//", "MODULO": "%",
    "MATRIX_MULTIPLY": "@", "POWER": "**", "LSHIFT": "<<", "RSHIFT": ">>", "AND": "&", "OR": "|", "XOR": "^",
}


def one(kind: str, pops: int, pushes: int, pool: int = FIXED, arg: Any = None) -> SimpleRule:
    return (kind, pool, pops, pushes, arg)


#: The same on every version from 3.9 on.
EVERYWHERE: Rules = {
    "LOAD_CONST": one("CONST", 0, 1, CONSTS),
    "STORE_FAST": one("STORE_FAST", 1, 0, LOCALS),
    "DELETE_FAST": one("DELETE_FAST", 0, 0, LOCALS),
    "STORE_GLOBAL": one("STORE_GLOBAL", 1, 0, NAMES),
    "DELETE_GLOBAL": one("DELETE_GLOBAL", 0, 0, NAMES),
    "LOAD_NAME": one("LOAD_NAME", 0, 1, NAMES),
    "STORE_NAME": one("STORE_NAME", 1, 0, NAMES),
    "DELETE_NAME": one("DELETE_NAME", 0, 0, NAMES),
    "LOAD_DEREF": one("LOAD_DEREF", 0, 1, CELLS),
    "STORE_DEREF": one("STORE_DEREF", 1, 0, CELLS),
    "DELETE_DEREF": one("DELETE_DEREF", 0, 0, CELLS),
    "LOAD_CLASSDEREF": one("LOAD_CLASSDEREF", 0, 1, CELLS),
    "LOAD_CLOSURE": one("LOAD_CLOSURE", 0, 1, CELLS),
    "LOAD_BUILD_CLASS": one("LOAD_BUILD_CLASS", 0, 1),
    "LOAD_ASSERTION_ERROR": one("LOAD_ASSERTION_ERROR", 0, 1),
    "STORE_ATTR": one("STORE_ATTR", 2, 0, NAMES),
    "DELETE_ATTR": one("DELETE_ATTR", 1, 0, NAMES),
    "BINARY_SUBSCR": one("GETITEM", 2, 1),
    "STORE_SUBSCR": one("SETITEM", 3, 0),
    "DELETE_SUBSCR": one("DELITEM", 2, 0),
    "UNARY_POSITIVE": one("UNARY", 1, 1, arg="+"),
    "UNARY_NEGATIVE": one("UNARY", 1, 1, arg="-"),
    "UNARY_INVERT": one("UNARY", 1, 1, arg="~"),
    "UNARY_NOT": one("UNARY", 1, 1, arg="not"),
    "BUILD_TUPLE": one("BUILD_TUPLE", -1, 1, NUMBER),
    "BUILD_LIST": one("BUILD_LIST", -1, 1, NUMBER),
    "BUILD_SET": one("BUILD_SET", -1, 1, NUMBER),
    "BUILD_STRING": one("BUILD_STRING", -1, 1, NUMBER),
    "BUILD_SLICE": one("BUILD_SLICE", -1, 1, NUMBER),
    "LIST_TO_TUPLE": one("LIST_TO_TUPLE", 1, 1),
    "IMPORT_NAME": one("IMPORT_NAME", 2, 1, NAMES),
    "IMPORT_FROM": one("IMPORT_FROM", 1, 2, NAMES),
    "IMPORT_STAR": one("IMPORT_STAR", 1, 0),
    "SETUP_ANNOTATIONS": one("SETUP_ANNOTATIONS", 0, 0),
    "PRINT_EXPR": one("PRINT_EXPR", 1, 0),
    "GET_ITER": one("GET_ITER", 1, 1),
    "YIELD_VALUE": one("YIELD", 1, 1),
    "GET_AITER": one("GET_AITER", 1, 1),
    "GET_LEN": one("GET_LEN", 1, 2),
    "MATCH_MAPPING": one("MATCH_MAPPING", 1, 2),
    "MATCH_SEQUENCE": one("MATCH_SEQUENCE", 1, 2),
    "COPY_DICT_WITHOUT_KEYS": one("COPY_DICT_WITHOUT_KEYS", 2, 2),
    # 3.11 and later only, always the same
    "PUSH_EXC_INFO": one("PUSH_EXC_INFO", 1, 2),
    "CHECK_EXC_MATCH": one("CHECK_EXC_MATCH", 2, 2),
    "CHECK_EG_MATCH": one("CHECK_EG_MATCH", 2, 2),
    "PREP_RERAISE_STAR": one("PREP_RERAISE_STAR", 2, 1),
    "BEFORE_WITH": one("BEFORE_WITH", 1, 2),
    "LOAD_LOCALS": one("LOAD_LOCALS", 0, 1),
    "LOAD_FROM_DICT_OR_GLOBALS": one("LOAD_FROM_DICT_OR_GLOBALS", 1, 1, NAMES),
    "LOAD_FAST_AND_CLEAR": one("LOAD_FAST_AND_CLEAR", 0, 1, LOCALS),
}

#: 3.10 and before: an instruction for each operator.
OPERATOR_INSTRUCTIONS: Rules = {
    **{f"BINARY_{name}": one("BINARY", 2, 1, arg=sign) for name, sign in OPERATORS.items()},
    **{f"INPLACE_{name}": one("INPLACE", 2, 1, arg=sign) for name, sign in OPERATORS.items()},
}
