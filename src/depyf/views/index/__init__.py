"""``index.md``: a run as Markdown with links to its files.

    # What torch.compile did
    1 function compiled, 2 versions in all, 2 graphs, 1.50 s.
    ## Graph breaks ... ## Recompiles ... ## Not compiled ... ## Dynamic shapes ... ## Cost ... ## Notes

A section is a function of the :class:`~.overview.SectionContext` that gives its lines, none where there is nothing to
say::

    breaks(run)  ->  ["## Graph breaks", "", "At a graph break ...", "### Data-dependent branching (GB0170)", ...]

The context knows the records, names places and functions in the same way for all, and notes the files that the text
names. ``index`` has the tables and puts the sections in order. This module reads the written file again, for ``depyf
explain``, without the records it was made of::

    stamped(text, "dump")         with a last line that says which depyf wrote it, and of which records
    read("dump")                  the text, if it is that of the records beside it; else None
    in_terminal(blocks(text))     without the links to begin with, the table of all compilations and the words
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

from ... import __version__, budgets, reading
from ...records.run_directory import FILE as RECORDS
from ..dump.folder import INDEX
from ..markdown import Block, Bullets, Heading, Paragraph

#: The sections that a terminal does without: the table is too wide, the words are those of the page.
IN_ORDER, WORDS = "In order", "Words"
NOTES = "Notes"
#: How the lines on where to begin start; below the text a terminal names the files themselves.
START, BROWSER = "Start with ", "To read it in a browser, "
#: How notes begin that say what is so in every run.
ORDINARY = ("torch's compile caches: ", "torch's compile caches were ")


def stamped(text: str, directory: str) -> str:
    """Return the text of an index with the line that says which depyf wrote it, and of which records."""
    try:
        return f"{text}\n{_stamp(directory)}"
    except OSError:
        return text


def _stamp(directory: str) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in reading.parts(os.path.join(directory, RECORDS), budgets.RUN):
        digest.update(part)
    return f"<!-- depyf {__version__} {digest.hexdigest()} -->\n"


def read(directory: str) -> str | None:
    """Return the index of a dump; ``None`` where there is none that this depyf made of the present records."""
    try:
        text = reading.text(os.path.join(directory, INDEX), budgets.WRITTEN, "surrogatepass")
        stamp = _stamp(directory)
    except (OSError, ValueError):
        return None
    return text.removesuffix(stamp) if text.endswith(stamp) else None


def in_terminal(parts: Sequence[Block]) -> list[Block]:
    """Return the blocks of an index that a terminal shows."""
    shown: list[Block] = []
    section = ""
    for part in parts:
        if isinstance(part, Heading) and part.level <= 2:
            section = part.text if part.level == 2 else ""
        if section == NOTES and isinstance(part, Bullets):
            part = Bullets(tuple(item for item in part.items if not (item and _starts(item[0], *ORDINARY))))
            if not part.items:
                continue
        if section not in (IN_ORDER, WORDS) and (section or not _starts(part, START, BROWSER)):
            shown.append(part)
    if shown and shown[-1] == Heading(2, NOTES):
        del shown[-1]
    return shown


def _starts(part: Block, *beginnings: str) -> bool:
    return isinstance(part, Paragraph) and part.text.startswith(beginnings)
