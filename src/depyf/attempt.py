"""Errors of ours cost what they happen in, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Made = TypeVar("Made")


def attempt(action: Callable[[], Made], otherwise: Made, report: Callable[[Exception], None]) -> Made:
    """Run an action and return its result; where it raises, report that and return ``otherwise``."""
    try:
        return action()
    except Exception as error:
        report(error)
        return otherwise
