"""Tracebacks and debuggers find the dumped text, even when the file is gone."""

from __future__ import annotations

import linecache


def remember_lines(path: str, text: str) -> None:
    """Make ``linecache`` answer for ``path`` with ``text``.

    The entry has no time stamp, so ``linecache.checkcache`` leaves it alone: running code keeps showing
    the lines that it was compiled from, whatever happens to the file afterwards. Without this entry
    (``linecache.clearcache()``) Python reads the file as usual.
    """
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
