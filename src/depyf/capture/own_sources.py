"""The user's files that are on no disk, cells of notebooks among them: only the running program knows them."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable

from ..records.model import SourceFile


def own_sources(names: Iterable[str]) -> tuple[SourceFile, ...]:
    """Return the texts of files of these names that are on no disk."""
    texts = {name: "".join(linecache.getlines(name)) for name in names if not os.path.exists(name)}
    return tuple(SourceFile(name, text) for name, text in texts.items() if text)
