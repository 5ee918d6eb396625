"""Guarded calls: an error of ours costs what it happens in, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def guarded_call(action: Callable[[], Result], otherwise: Result, report: Callable[[Exception], None]) -> Result:
    """Run an action and return its result; where it raises, report that and return ``otherwise``."""
    try:
        return action()
    except Exception as error:
        report(error)
        return otherwise
