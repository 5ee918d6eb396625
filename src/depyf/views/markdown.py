"""Markdown whose structure does not depend on the names in it.

Names come from the user's program and from torch: they may contain backticks, pipes, line ends, HTML. Everything of
theirs goes through :func:`code` or :func:`prose`.

:func:`blocks` reads the forms again that are written here and by the sections of the index, and no others::

    ## Recompiles                               Heading(2, "Recompiles")

    * `[0/1]` `len(x)`: 2 -> 3                  Bullets((
      * torch says: `len(L['x']) == 2`              (Paragraph("`[0/1]` ..."), Bullets(((Paragraph("torch ..."),),))),))

(A parser of all of Markdown takes longer to import than ``depyf explain`` takes for all else.)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias
from urllib.parse import quote

from ..torch_text.run_ids import without_addresses
from ..values import frozen


def one_line(text: str, longest: int = 0) -> str:
    """Return the text on one line, unprintable characters escaped, cut after a word to ``longest`` (0: not cut)."""
    text = " ".join(text.split())
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return re.sub(r"(?<=\S)\s\S{0,16}$", " ", text[: longest - 3]) + "..." if 0 < longest < len(text) else text


def code(text: str, longest: int = 0) -> str:
    """Return a code span."""
    text = one_line(text, longest)
    if not text:
        return "` `"
    runs = [len(run) for run in re.findall("`+", text)]
    fence = "`" * (max(runs) + 1 if runs else 1)
    space = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{space}{text}{space}{fence}"


#: What Markdown would read: emphasis, links, HTML, struck text, mathematics; at the beginning also headings, quotes,
#: lists and definitions of links.
_ACTIVE = re.compile(r"[\\*<|$]|(?<=\])[(\[]|~(?=~)|(?<![^\W_])_|_(?![^\W_])|^[-+=>#\[~]|(?<=^\d)[.)]|(?<=^\d\d)[.)]")


def prose(text: str, longest: int = 0) -> str:
    """Return running text.

    Code spans in it (torch's sentences have such) remain; other Markdown syntax is escaped. Addresses of objects,
    which no reader can use and which differ from run to run, are left out.
    """
    text = one_line(without_addresses(text), longest)
    parts = re.split(r"(?<!`)`([^`]+)`(?!`)", text)
    return "".join(
        code(part) if index % 2 else
        _ACTIVE.sub(lambda match: "\\" + match[0], part).replace("`", "\\`").replace("&", "&amp;")
        for index, part in enumerate(parts))


def link(shown: str, file: str) -> str:
    """Return a link to a file beside this one; ``shown`` is Markdown already. Without a file it is the text alone."""
    if not file:
        return shown
    return f"[{shown}]({quote(file.encode('utf-8', 'surrogatepass'), safe='/')})"


def web_address(text: str) -> str:
    """Return an address of the web that can be in a link as it is; ``""`` if the text is something else."""
    return text if re.fullmatch(r"https?://[\w./%#?=&+-]+", text) else ""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table; cells are Markdown already. A ``|`` ends a cell even inside of a code span."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in rows:
        lines.append("| " + " | ".join(re.sub(r"(?<!\\)\|", r"\\|", cell) for cell in row) + " |")
    return lines


def fenced(text: str, language: str = "") -> list[str]:
    """Return a block of code."""
    runs = [len(run) for run in re.findall("`{3,}", text)]
    fence = "`" * (max(runs) + 1 if runs else 3)
    lines = [line if line.isprintable() else "".join([c if c.isprintable() or c == "\t" else "?" for c in line])
             for line in text.splitlines()]
    return [fence + language, *lines, fence]


#: A code span, whose marks have a name; no other of as many backticks is in it.
_CODE = r"(?P<{0}>(?<!`)`+(?!`))(?:(?!(?<!`)(?P={0})(?!`)).)+(?P={0})"
_SPAN = re.compile(
    r"(?P<fence>(?<!`)`+(?!`))(?P<code>.+?)(?<!`)(?P=fence)(?!`)"
    rf"|\*\*(?P<bold>(?:[^\\`*]|\\.|{_CODE.format('bold_marks')}|\*(?!\*))+)\*\*(?!\*)"
    rf"|\[(?P<link>(?:[^\[\]\\`]|\\.|{_CODE.format('link_marks')}|\[[^\[\]\\`]*\](?!\())*)\]\([^()\s]*\)"
    r"|\\(?P<escaped>[^a-zA-Z0-9\s])|(?P<amp>&amp;)")


def spans(markdown: str) -> list[list[str]]:
    """Return a line of our Markdown as ``[kind, text]``, where the kind is ``"code"``, ``"bold"`` or ``""``.

    Links are text: ``"a **bold `x`**"`` is ``[["", "a "], ["bold", "bold "], ["code", "x"]]``.
    """
    merged: list[list[str]] = []
    for kinds, text in nested_spans(markdown):
        kind_of_part = kinds[-1]
        if merged and merged[-1][0] == kind_of_part != "code":
            merged[-1][1] += text
        else:
            merged.append([kind_of_part, text])
    return merged


def nested_spans(markdown: str, kinds: tuple[str, ...] = ("",)) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield ``(kinds, text)`` as :func:`spans` does, with the kinds of all that a part is in, the innermost last."""
    text, end = "", 0
    for match in _SPAN.finditer(markdown):
        text += markdown[end : match.start()]
        end = match.end()
        if match["escaped"] or match["amp"]:
            text += match["escaped"] or "&"
            continue
        if text:
            yield kinds, text
            text = ""
        if match["code"] is not None:
            inner = match["code"]
            yield (*kinds, "code"), inner[1:-1] if inner[0] == inner[-1] == " " and inner.strip() else inner
        elif match["bold"] is not None:
            yield from nested_spans(match["bold"], (*kinds, "bold"))
        else:
            yield from nested_spans(match["link"], kinds)
    text += markdown[end:]
    if text:
        yield kinds, text


def unmarked(markdown: str) -> str:
    """Return our Markdown without its marks; code keeps its backticks."""
    return "".join(f"`{text}`" if kind == "code" else text for kind, text in spans(markdown))


def plain(markdown: str) -> str:
    """Return our Markdown without any marks."""
    return "".join(text for _, text in spans(markdown))


def some(items: Sequence[str], most: int) -> str:
    """Return the first few of a list, comma-separated, and how many are left."""
    if len(items) <= most + 1:
        return ", ".join(items)
    return f"{', '.join(items[:most])}, ... ({len(items) - most} more)"


def listed(items: Sequence[str]) -> str:
    """Return ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(items[:-1]), items[-1])))


def count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: ``1 graph``, ``3 graphs``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def each_once(texts: Iterable[str]) -> list[str]:
    """Return each text once, in order, with how often it occurs: ``f``, ``g, 3 times``."""
    return [f"{text}, {number} times" if number > 1 else text for text, number in Counter(texts).items()]


# --- Blocks ------------------------------------------------------------------------------------------
#: What the first line of a block is, else a paragraph's: a table has a second line, ``|---|---|``.
_BEGINS = re.compile(
    r"(?P<level>#{1,6}) +(?P<title>.*)|(?P<fence>`{3,})[^`]*$|(?P<bullet>\* )|(?P<table>\|.*\n\|(---\|)+$)")
_CELL_ENDS = re.compile(r"(?<!\\)\|")


@frozen
class Heading:
    """A heading and its level, from 1."""

    level: int
    text: str


@frozen
class Paragraph:
    """Running text, on one line."""

    text: str


@frozen
class CodeBlock:
    """A block of code."""

    lines: tuple[str, ...]


@frozen
class Table:
    """A table, the text of each cell."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@frozen
class Bullets:
    """A list, the blocks of each item."""

    items: tuple[tuple[Block, ...], ...]


Block: TypeAlias = "Heading | Paragraph | CodeBlock | Table | Bullets"


def blocks(lines: Sequence[str]) -> Iterator[Block]:
    """Yield the blocks of a text."""
    at = 0
    while at < len(lines):
        begin, end = _beginning(lines, at), at + 1
        if begin is not None and begin["level"]:
            yield Heading(len(begin["level"]), begin["title"].strip())
        elif begin is not None and begin["fence"]:
            while end < len(lines) and lines[end].rstrip() != begin["fence"]:
                end += 1
            yield CodeBlock(tuple(lines[at + 1 : end]))
            end += 1
        elif begin is not None and begin["table"]:
            end += 1
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            yield Table(_cells(lines[at]), tuple(map(_cells, lines[at + 2 : end])))
        elif begin is not None:
            items: list[tuple[Block, ...]] = []
            while at < len(lines) and lines[at].startswith("* "):
                end = last = at + 1  # (its lines are indented, with empty lines between them)
                while end < len(lines) and (lines[end].startswith("  ") or not lines[end].strip()):
                    end += 1
                    last = end if lines[end - 1].strip() else last
                end = end if end < len(lines) and lines[end].startswith("* ") else last
                items.append(tuple(blocks([inner[2:] for inner in lines[at:end]])))
                at = end
            yield Bullets(tuple(items))
        elif lines[at].strip():
            while end < len(lines) and lines[end].strip() and not _beginning(lines, end):
                end += 1
            yield Paragraph(" ".join(part.strip() for part in lines[at:end]))
        at = end


def _beginning(lines: Sequence[str], at: int) -> re.Match[str] | None:
    return _BEGINS.match("\n".join(lines[at : at + 2 if lines[at].startswith("|") else at + 1]))


def _cells(line: str) -> tuple[str, ...]:
    parts = _CELL_ENDS.split(line.strip().removeprefix("|"))
    return tuple(part.strip().replace("\\|", "|") for part in parts[:-1])
