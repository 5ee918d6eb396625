"""Paths of files that torch prints shortened."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

from . import private_api


class FullPaths:
    """Map a path as torch prints it to the path, where torch cut it in the middle of a name; keep any other.

    torch/utils/_traceback.py, ``shorten_filename``, cuts what a path has in common with torch's own and one
    character more; where only the root is common, that removes the first letter of a name.

    Args:
        files: returns the paths that may be meant.
    """

    def __init__(self, files: Callable[[], Iterable[Any]]) -> None:
        self._files = files
        self._known: dict[str, str] = {}

    def __call__(self, shown: str) -> str:
        """Return the whole path for one that torch printed; as it is where torch did not cut it or no file fits."""
        if shown not in self._known:
            self._known[shown] = shown if os.path.isabs(shown) else self._whole(shown)
        return self._known[shown]

    def _whole(self, shown: str) -> str:
        shorten = private_api.SHORT_PATHS.get_or(None)
        torchs = os.path.dirname(str(sys.modules["torch"].__file__))
        folders = (torchs, os.path.dirname(torchs))
        if shorten is None or any(os.path.exists(os.path.join(folder, shown)) for folder in folders):
            return shown  # a file of torch or of a package beside it, which is cut at a whole name
        fitting = (file for file in self._files() if isinstance(file, str) and file.endswith(shown)
                   and not file.endswith((os.sep + shown, "/" + shown)) and os.path.isabs(file)
                   and shorten(file) == shown)
        return next(fitting, shown)


def cut_paths(files: Iterable[str]) -> dict[str, str]:
    """Return ``{path as torch prints it: path}`` of files that torch cuts in the middle of a name."""
    shorten = private_api.SHORT_PATHS.get_or(None)
    packages = os.path.dirname(os.path.dirname(str(sys.modules["torch"].__file__))) + os.sep
    cut: dict[str, str] = {}
    for file in files if shorten is not None else ():
        if not file.startswith(packages) and os.path.isabs(file):
            shown = shorten(file)
            if shown != file and not file.endswith((os.sep + shown, "/" + shown)):
                cut.setdefault(shown, file)
    return cut
