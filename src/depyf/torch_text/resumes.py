"""By what name a resume function is known: which function it goes on with, and where."""

from __future__ import annotations

import re

from ..capture.torch_private import touchpoints

_CODE = re.compile(rf"{touchpoints.RESUME_CODE.key}(?P<function>.*)_at_(?P<line>\d+)")


def resumed_function(code_name: str) -> tuple[str, int] | None:
    """``("f", 9)`` for ``torch_dynamo_resume_in_f_at_9``; ``None`` for any other function."""
    found = _CODE.fullmatch(code_name)
    return (found["function"], int(found["line"])) if found else None


def plain_name(code_name: str) -> str:
    """The name of the user's function: ``f`` for ``f`` and for ``torch_dynamo_resume_in_f_at_9``."""
    found = resumed_function(code_name)
    return found[0] if found else code_name


def is_resume_global(name: str) -> bool:
    """Return whether transformed code calls a resume function by a name (``__resume_at_10_2``)."""
    return name.startswith(touchpoints.RESUME_NAME.key)
