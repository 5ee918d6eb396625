r"""Our Markdown -> its blocks: the forms that :mod:`.markdown` and the sections of the index write, and no others.

    ## Recompiles                               Heading(2, "Recompiles")

    * `[0/1]` `len(x)`: 2 -> 3                  Bullets((
      * torch says: `len(L['x']) == 2`              (Paragraph("`[0/1]` ..."), Bullets(((Paragraph("torch ..."),),))),))

(A parser of all of Markdown takes longer to import than ``depyf explain`` takes for all else.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

_HEADING = re.compile(r"(#{1,6}) +(.*)")
_FENCE = re.compile(r"(`{3,})[^`]*$")
_RULE = re.compile(r"\|(?:---\|)+$")
_BULLET = "* "
_CELL_ENDS = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True)
class Heading:
    """A heading and its level, from 1."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """Running text, on one line."""

    text: str


@dataclass(frozen=True)
class CodeBlock:
    """A block of code."""

    lines: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table, the text of each cell."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Bullets:
    """A list, the blocks of each item."""

    items: tuple[tuple[Block, ...], ...]


Block: TypeAlias = "Heading | Paragraph | CodeBlock | Table | Bullets"


def blocks(lines: Sequence[str]) -> Iterator[Block]:
    """Yield the blocks of a text."""
    at = 0
    while at < len(lines):
        line = lines[at]
        heading, fence = _HEADING.match(line), _FENCE.match(line)
        end = at + 1
        if heading is not None:
            yield Heading(len(heading[1]), heading[2].strip())
        elif fence is not None:
            while end < len(lines) and lines[end].rstrip() != fence[1]:
                end += 1
            yield CodeBlock(tuple(lines[at + 1 : end]))
            end += 1
        elif _begins_table(lines, at):
            end += 1
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            yield Table(_cells(line), tuple(map(_cells, lines[at + 2 : end])))
        elif line.startswith(_BULLET):
            items: list[tuple[Block, ...]] = []
            while at < len(lines) and lines[at].startswith(_BULLET):
                end = _end_of_item(lines, at)
                items.append(tuple(blocks([lines[at][2:], *(inner[2:] for inner in lines[at + 1 : end])])))
                at = end
            yield Bullets(tuple(items))
        elif line.strip():
            while end < len(lines) and lines[end].strip() and not _begins_block(lines, end):
                end += 1
            yield Paragraph(" ".join(part.strip() for part in lines[at:end]))
        at = end


def _begins_block(lines: Sequence[str], at: int) -> bool:
    line = lines[at]
    return line.startswith(_BULLET) or bool(_HEADING.match(line) or _FENCE.match(line)) or _begins_table(lines, at)


def _begins_table(lines: Sequence[str], at: int) -> bool:
    return lines[at].startswith("|") and at + 1 < len(lines) and bool(_RULE.match(lines[at + 1]))


def _end_of_item(lines: Sequence[str], at: int) -> int:
    """Return the line after an item of a list: its lines are indented, with empty lines between them."""
    end = last = at + 1
    while end < len(lines) and (lines[end].startswith("  ") or not lines[end].strip()):
        end += 1
        last = end if lines[end - 1].strip() else last
    following = end < len(lines) and lines[end].startswith(_BULLET)
    return end if following else last


def _cells(line: str) -> tuple[str, ...]:
    inner = line.strip().removeprefix("|")
    parts = _CELL_ENDS.split(inner)
    return tuple(part.strip().replace("\\|", "|") for part in parts[:-1])
