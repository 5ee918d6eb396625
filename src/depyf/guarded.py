"""Work in the process of a program: errors are caught, nothing warns, and no garbage is collected meanwhile."""

from __future__ import annotations

import contextlib
import gc
import sys
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
    """Warn of an internal error and what it costs; the program never sees the error."""
    _warn(error, f"the program continues, {lost}")


def missing(what: str) -> Callable[[Exception], None]:
    """Return a function that warns of an internal error by which a part of the output is missing."""
    return lambda error: _warn(error, f"that {what} is missing")


def _warn(error: Exception, lost: str) -> None:
    try:
        warnings.warn(harmless(f"depyf: an internal error ({type(error).__name__}: {error}); {lost}"), RuntimeWarning,
                      stacklevel=4)
    except Exception:
        pass  # warnings may be errors here


# --- warnings ----------------------------------------------------------------------------------------
class unwarned:  # noqa: N801  (a context, named like those of ``contextlib``)
    """A context that shows no warnings, also where they are errors.

    ``warnings.catch_warnings`` makes Python forget which lines warned already, so that the program shows each of its
    warnings once more. So the filter is put before the others silently.
    """

    __slots__ = ("_before", "_caught")

    def __enter__(self) -> None:
        self._caught: warnings.catch_warnings[None] | None = None
        if getattr(sys.flags, "context_aware_warnings", 0):  # filters of the context come first (3.14, free-threaded)
            self._caught = warnings.catch_warnings()
            self._caught.__enter__()
            warnings.simplefilter("ignore")
            return
        self._before = warnings.filters
        warnings.filters = [("ignore", None, Warning, None, 0), *self._before]

    def __exit__(self, *error: object) -> None:
        if self._caught is not None:
            self._caught.__exit__(None, None, None)
        else:
            warnings.filters = self._before


# --- the garbage collector ---------------------------------------------------------------------------
class paused(contextlib.ContextDecorator):  # noqa: N801 (used like a function, as contextlib.suppress is)
    """Inside of it no garbage is collected, unless the program turns collecting on.

    depyf makes a hundred thousand short-lived objects for a function. A collection in between counts them as
    long-lived, and enough of these start a full collection, which takes 0.4 s where torch and transformers are
    imported. (A class: a generator would take as long as most hooks do.)
    """

    def __enter__(self) -> None:
        self._collecting = gc.isenabled()
        gc.disable()

    def __exit__(self, *raised: object) -> None:
        if self._collecting:
            gc.enable()

    def _recreate_cm(self) -> paused:
        return paused()  # (for each call of a decorated function)
