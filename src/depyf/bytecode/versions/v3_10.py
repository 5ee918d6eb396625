"""Opcodes of CPython 3.10: what differs from the version before (scripts/generate_opcode_tables.py)."""

from __future__ import annotations

BASE: str | None = "v3_9"
HAVE_ARGUMENT = 90
REMOVED: tuple[str, ...] = ()
OPCODES = {
    "GET_LEN": 30, "MATCH_MAPPING": 31, "MATCH_SEQUENCE": 32, "MATCH_KEYS": 33,
    "COPY_DICT_WITHOUT_KEYS": 34, "ROT_N": 99, "RERAISE": 119, "GEN_START": 129, "MATCH_CLASS": 152,
}
CACHES: dict[str, int] = {}
RELATIVE_JUMPS = (
    "FOR_ITER", "JUMP_FORWARD", "SETUP_ASYNC_WITH", "SETUP_FINALLY", "SETUP_WITH",
)
ABSOLUTE_JUMPS = (
    "JUMP_ABSOLUTE", "JUMP_IF_FALSE_OR_POP", "JUMP_IF_NOT_EXC_MATCH", "JUMP_IF_TRUE_OR_POP",
    "POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE",
)
