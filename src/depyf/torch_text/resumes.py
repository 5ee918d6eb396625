"""Names of resume functions: which function each goes on with, and where."""

from __future__ import annotations

import re

#: What ``co_name`` of a resume function starts with (torch/_dynamo/resume_execution.py).
RESUME_CODE = "torch_dynamo_resume_in_"
#: By what name transformed code calls one: the offset at which it goes on, and a number.
RESUME_NAME = re.compile(r"__resume_at_(?P<offset>\d+)_(?P<number>\d+)")
_CODE = re.compile(rf"{RESUME_CODE}(?P<function>.*)_at_(?P<line>\d+)")


def resumed_function(code_name: str) -> tuple[str, int] | None:
    """Return ``("f", 9)`` for ``torch_dynamo_resume_in_f_at_9``; ``None`` for any other function."""
    match = _CODE.fullmatch(code_name) if code_name.startswith(RESUME_CODE) else None
    return (match["function"], int(match["line"])) if match else None


def plain_name(code_name: str) -> str:
    """Return the name of the user's function: ``f`` for ``f`` and for ``torch_dynamo_resume_in_f_at_9``."""
    resumed = resumed_function(code_name)
    return resumed[0] if resumed else code_name


def is_resume(code_name: str) -> bool:
    """Return whether ``co_name`` is of a resume function."""
    return code_name.startswith((RESUME_CODE, "<resume"))


def offset_in(name: str) -> int | None:
    """Return the offset at which a resume function goes on: 96 of ``__resume_at_96_2``; ``None`` for another name."""
    match = RESUME_NAME.fullmatch(name)
    return int(match["offset"]) if match else None
