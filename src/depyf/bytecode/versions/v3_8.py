"""Opcodes of CPython 3.8: what differs from the version before (scripts/generate_opcode_tables.py)."""

from __future__ import annotations

BASE: str | None = "v3_7"
HAVE_ARGUMENT = 90
REMOVED = (
    "BREAK_LOOP", "CONTINUE_LOOP", "SETUP_EXCEPT", "SETUP_LOOP",
)
OPCODES = {
    "ROT_FOUR": 6, "BEGIN_FINALLY": 53, "END_ASYNC_FOR": 54, "CALL_FINALLY": 162, "POP_FINALLY": 163,
}
CACHES: dict[str, int] = {}
RELATIVE_JUMPS = (
    "CALL_FINALLY", "FOR_ITER", "JUMP_FORWARD", "SETUP_ASYNC_WITH", "SETUP_FINALLY", "SETUP_WITH",
)
ABSOLUTE_JUMPS = (
    "JUMP_ABSOLUTE", "JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP", "POP_JUMP_IF_FALSE",
    "POP_JUMP_IF_TRUE",
)
