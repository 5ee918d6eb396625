"""Tracebacks and debuggers find the dumped text, even when the file is gone."""

from __future__ import annotations

import linecache
import weakref
from typing import Any


def remember_lines(path: str, text: str, owner: Any) -> None:
    """Make ``linecache`` answer for ``path`` with ``text`` as long as ``owner`` lives: what runs with these lines.

    The entry has no time stamp, so ``linecache.checkcache`` leaves it alone: running code keeps showing
    the lines that it was compiled from, whatever happens to the file afterwards. Without this entry
    (``linecache.clearcache()``) Python reads the file as usual.
    """
    entry = (len(text), None, text.splitlines(keepends=True), path)
    linecache.cache[path] = entry
    weakref.finalize(owner, _forget, path, entry).atexit = False


def _forget(path: str, entry: Any) -> None:
    if linecache.cache.get(path) is entry:
        del linecache.cache[path]
