"""The user's files that are on no disk, cells of notebooks among them: only the running program knows them."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable

from ..records.model import Compilation, SourceFile


def own_sources(compilations: Iterable[Compilation], files: Iterable[str]) -> tuple[SourceFile, ...]:
    """Return the texts of files that compilations name and that are on no disk.

    Args:
        compilations: of the run.
        files: those of the functions that were compiled.
    """
    names = dict.fromkeys(files)
    for compilation in compilations:
        names.update((each.filename, None) for each in compilation.traced)
        names.update((place.filename, None) for broken in compilation.breaks for place in broken.stack[-1:])
        if compilation.location is not None:
            names[compilation.location.filename] = None
    texts = {name: "".join(linecache.getlines(name)) for name in names if not os.path.exists(name)}
    return tuple(SourceFile(name, text) for name, text in texts.items() if text)
