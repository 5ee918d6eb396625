"""Python's cyclic garbage collector, kept from running while depyf works."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class paused:  # noqa: N801 (used like a function, as contextlib.suppress is)
    """Inside of it no garbage is collected, unless the program turns collecting on.

    depyf makes a hundred thousand objects for a function and lets go of nearly all of them. A collection in between
    takes those for long-lived, and enough of these start one of all objects of the process, which takes 0.4 s where
    torch and transformers are imported.

    (A class: a generator would take as long as what most hooks do.)
    """

    __slots__ = ("_collecting",)

    def __enter__(self) -> None:
        self._collecting = gc.isenabled()
        gc.disable()

    def __exit__(self, *raised: object) -> None:
        if self._collecting:
            gc.enable()

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Return a function in which no garbage is collected."""

        @functools.wraps(function)
        def quiet(*args: P.args, **kwargs: P.kwargs) -> T:
            with paused():
                return function(*args, **kwargs)

        return quiet
