"""Code objects without their positions, as tools that write bytecode leave them."""

from __future__ import annotations

import sys
from types import CodeType

from depyf.bytecode.linetable import encode_linetable

#: As the compiler made it; lines without columns; nothing of both.
MODES = ("whole", "lines", "none")


def stripped(code: CodeType, mode: str) -> CodeType:
    """A code object, with those in it, in one of the modes."""
    if mode == "whole":
        return code
    size = len(code.co_code)
    ranges = code.co_lines() if mode == "lines" else [(0, size, None)]
    return code.replace(
        co_linetable=encode_linetable(sys.version_info[:2], code.co_firstlineno, ranges),
        co_consts=tuple(stripped(const, mode) if isinstance(const, CodeType) else const for const in code.co_consts))
