"""Guarded calls: an error of ours costs what it happens in, and nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TypeVar

from .harmless import harmless

Result = TypeVar("Result")


def guarded_call(action: Callable[[], Result], otherwise: Result, report: Callable[[Exception], None]) -> Result:
    """Run an action and return its result; where it raises, report that and return ``otherwise``."""
    try:
        return action()
    except Exception as error:
        report(error)
        return otherwise


def warn_of(error: Exception, lost: str) -> None:
    """Warn of an error of ours, which never reaches the program.

    Args:
        error: the error.
        lost: what it costs.
    """
    try:
        warnings.warn(
            harmless(f"depyf: an internal error ({type(error).__name__}: {error}); the program continues, {lost}"),
            RuntimeWarning, stacklevel=3)
    except Exception:
        pass  # warnings may be errors here
