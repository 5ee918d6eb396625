"""Names of resume functions: which function each goes on with, and where."""

from __future__ import annotations

import re

#: What ``co_name`` of a resume function starts with (torch/_dynamo/resume_execution.py).
RESUME_CODE = "torch_dynamo_resume_in_"
_CODE = re.compile(rf"{RESUME_CODE}(?P<function>.*)_at_(?P<line>\d+)")


def resumed_function(code_name: str) -> tuple[str, int] | None:
    """Return ``("f", 9)`` for ``torch_dynamo_resume_in_f_at_9``; ``None`` for any other function."""
    match = _CODE.fullmatch(code_name)
    return (match["function"], int(match["line"])) if match else None


def plain_name(code_name: str) -> str:
    """Return the name of the user's function: ``f`` for ``f`` and for ``torch_dynamo_resume_in_f_at_9``."""
    resumed = resumed_function(code_name)
    return resumed[0] if resumed else code_name
