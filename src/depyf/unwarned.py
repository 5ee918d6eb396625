"""Work of ours that warns nobody, after which the program's own warnings come as they would have come without it."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def unwarned() -> Iterator[None]:
    """Show no warnings inside, also where they are errors.

    At its end ``warnings.catch_warnings`` has Python forget which lines warned already, and the program shows each
    of its warnings once more. So the filter is put before the others without a word to anyone.
    """
    if getattr(sys.flags, "context_aware_warnings", 0):  # filters of the context come first (3.14, free-threaded)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
        return
    before = warnings.filters
    warnings.filters = [("ignore", None, Warning, None, 0), *before]
    try:
        yield
    finally:
        warnings.filters = before
