"""Work of ours that warns nobody, after which the program's own warnings come as they would have come without it."""

from __future__ import annotations

import sys
import warnings


class unwarned:  # noqa: N801  (a context, named like those of ``contextlib``)
    """A context that shows no warnings, also where they are errors.

    At its end ``warnings.catch_warnings`` has Python forget which lines warned already, and the program shows each
    of its warnings once more. So the filter is put before the others without a word to anyone.
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
