"""The parts that all documents share: their head, places, findings."""

from __future__ import annotations

import json
import os
from typing import Any

from ... import __version__
from ...records.model import SourceLocation
from ...records.run_directory import RANK
from ..findings import Finding
from ..markdown import plain, unmarked

#: Counted up when a field goes or means something else. New fields do not change it.
VERSION = 1
#: The JSON Schema of all documents.
SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "schema.json")


def head(command: str) -> dict[str, Any]:
    """Return the beginning of a document: who wrote it, of which command it is, and the version of its schema."""
    return {"depyf": __version__, "command": command, "version": VERSION}


def written(document: dict[str, Any]) -> str:
    """Return a document as text. Lone surrogates, which names may hold, are escaped."""
    return json.dumps(document, ensure_ascii=True, indent=2, allow_nan=False) + "\n"


def rank_of(folder: str) -> int | None:
    """Return the number of the rank that a folder of a dump is of; ``None`` where there is one process only."""
    number = folder.removeprefix(RANK)
    return int(number) if folder.startswith(RANK) and number.isdigit() else None


def place(location: SourceLocation | None, text: str = "") -> dict[str, Any] | None:
    """Return a place in the user's files."""
    if location is None:
        return None
    return {"file": location.filename, "line": location.line, "function": location.function,
            "text": location.text or text}


def finding(found: Finding, text: str = "") -> dict[str, Any]:
    """Return what counts against a budget.

    Args:
        found: the finding.
        text: the user's line at its place, where that does not have it.
    """
    return {"function": found.function, "frame": plain(found.frame), "compile_id": found.compile_id,
            "place": place(found.place, text), "cause": unmarked(found.cause)}


def seconds(value: float) -> float:
    """Return a time to the microsecond."""
    return round(value, 6)
