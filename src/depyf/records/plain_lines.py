"""The lines of ``records.jsonl`` that are no records: the first one, notes, the last one.

They make the file of a run in which nothing was compiled, for which the model of records need not be imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

#: Counted up when a line of an older file would be misread.
SCHEMA = 1
FILE = "records.jsonl"


def line_of(value: dict[str, Any]) -> str:
    """Return a value of JSON as a line."""
    # Lone surrogates, which names may hold, are escaped and come back as they were. (No record holds itself.)
    return json.dumps(value, ensure_ascii=True, check_circular=False, separators=(",", ":")) + "\n"


def first_line(environment: dict[str, str]) -> str:
    """Return the first line of a file of records: the version of its schema, and the run's environment."""
    return line_of({"record": "schema", "version": SCHEMA, "environment": environment})


def last_lines(notes: Iterable[str]) -> Iterator[str]:
    """Yield the notes on the run and the line that ends the file."""
    for note in notes:
        yield line_of({"record": "note", "text": note})
    yield line_of({"record": "end"})
