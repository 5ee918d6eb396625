"""Python's cyclic garbage collector, kept from running while depyf works."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Inside of it no garbage is collected, unless the program turns collecting on.

    depyf makes a hundred thousand objects for a function and lets go of nearly all of them. A collection in between
    takes those for long-lived, and enough of these start one of all objects of the process, which takes 0.4 s where
    torch and transformers are imported.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
