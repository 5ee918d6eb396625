"""Markdown of ours as text for a terminal: what ``index.md`` says, without its marks.

Only what :mod:`depyf.views.markdown` writes is understood: headings, lists, tables, blocks of code, and in a line code
spans, links and bold text. Its texts hold no control characters, so none can reach the terminal.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

_BOLD, _DIM, _CODE, _HEAD, _END = "\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[1;34m", "\x1b[0m"
_ADDED, _REMOVED = "\x1b[32m", "\x1b[31m"
_INLINE = re.compile(
    r"(?P<fence>(?<!`)`+(?!`))(?P<code>.+?)(?<!`)(?P=fence)(?!`)|\*\*(?P<bold>.+?)\*\*(?!\*)"
    r"|\\(?P<escaped>[^a-zA-Z0-9\s])|(?P<amp>&amp;)")
#: A link, looked for where code spans have been taken out.
_LINK = re.compile(r"(?<!\\)\[(?P<shown>(?:[^\[\]\\]|\\.)*)\]\((?P<target>[^()\s]*)\)")
_ITEM = re.compile(r"(?P<indent> *)\* (?P<text>.*)")
#: Begin and end what is set off, until lines are broken. (Names of users hold no such characters: they are escaped.)
_MARKS = {"code": "\ue001", "bold": "\ue002", "end": "\ue003"}


@dataclass(frozen=True)
class Style:
    """The style that sets text off. Without ``colours`` it is plain.

    Attributes:
        colours: use the escape sequences that nearly all terminals know.
        width: characters in a line.
    """

    colours: bool = False
    width: int = 100

    def head(self, text: str) -> str:
        return self._in(_HEAD, text)

    def bold(self, text: str) -> str:
        return self._in(_BOLD, text)

    def code(self, text: str) -> str:
        return self._in(_CODE, text)

    def changed(self, text: str) -> str:
        """A line of a block of code; of a difference, where it begins so."""
        return self._in(_ADDED if text.startswith("+") else _REMOVED if text.startswith("-") else _DIM, text)

    def dim(self, text: str) -> str:
        return self._in(_DIM, text)

    def _in(self, begin: str, text: str) -> str:
        return f"{begin}{text}{_END}" if self.colours and text else text


def rendered(markdown: str, style: Style) -> str:
    """The text of some Markdown of ours."""
    lines: list[str] = []
    pending = markdown.splitlines()
    at = 0
    while at < len(pending):
        line = pending[at]
        block = re.fullmatch(r"(\s*)(`{3,})\w*", line)
        if block:
            end = next((i for i in range(at + 1, len(pending)) if pending[i].strip() == block[2]), len(pending))
            indent = len(block[1])
            lines += ["    " + style.changed(inner[indent:].rstrip()) for inner in pending[at + 1 : end]]
            at = end + 1
            continue
        if line.startswith("|"):
            end = next((i for i in range(at, len(pending)) if not pending[i].startswith("|")), len(pending))
            lines += _table(pending[at:end], style)
            at = end
            continue
        head = re.match(r"(#+) (.*)", line)
        item = _ITEM.fullmatch(line)
        if head:
            # (code within a heading is not set off: the colours would end there)
            text = _plain(head[2])
            lines.append(style.head(text) if len(head[1]) < 3 else "  " + style.bold(text))
        elif item:
            lines += _wrapped(item["text"], " " * len(item["indent"]) + "  - ", style)
        elif line.strip():
            lines += _wrapped(line, "", style)
        elif lines and lines[-1]:
            lines.append("")
        at += 1
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines) + "\n"


def _wrapped(text: str, first: str, style: Style) -> list[str]:
    """A paragraph, or an item of a list, in lines of the width."""
    marked = _inline(text)
    hanging = " " * len(first)
    lines = textwrap.wrap(
        marked, max(style.width, len(first) + 20), initial_indent=first, subsequent_indent=hanging,
        break_long_words=False, break_on_hyphens=False) or [first.rstrip()]
    return [_coloured(line, style) for line in _carried(lines, len(hanging))]


def _inline(text: str) -> str:
    """The text with :data:`_MARKS` for what is set off."""
    codes: list[str] = []

    def found(match: re.Match[str]) -> str:
        if match["code"] is not None:
            inner = match["code"]
            if len(inner) > 1 and inner[0] == inner[-1] == " " and inner.strip():
                inner = inner[1:-1]
            codes.append(f"{_MARKS['code']}{inner}{_MARKS['end']}")
            return f"\ue010{len(codes) - 1}\ue011"
        if match["bold"] is not None:
            return f"{_MARKS['bold']}{_INLINE.sub(found, match['bold'])}{_MARKS['end']}"
        # (kept apart too: an escaped bracket is not the beginning of a link)
        codes.append("&" if match["amp"] else match["escaped"])
        return f"\ue010{len(codes) - 1}\ue011"

    text = _LINK.sub(lambda link: link["shown"], _INLINE.sub(found, text))
    return re.sub("\ue010(\\d+)\ue011", lambda kept: codes[int(kept[1])], text)


def pieces(markdown: str) -> list[list[str]]:
    """A line of our Markdown as ``[kind, text]``, where the kind is ``"code"``, ``"bold"`` or ``""``."""
    kinds = {mark: name for name, mark in _MARKS.items()} | {_MARKS["end"]: ""}
    found: list[list[str]] = []
    outer = kind = ""
    for part in re.split("([\ue001-\ue003])", _inline(markdown)):
        if part not in kinds:
            found += [[kind, part]] if part else []
        elif kinds[part] == "code":
            kind = "code"
        elif kinds[part]:
            outer = kind = "bold"
        else:  # (code can stand within what is bold)
            outer = outer if kind == "code" else ""
            kind = outer
    return found


def _plain(text: str) -> str:
    return re.sub("[\ue001-\ue003]", "", _inline(text))


def _carried(lines: Iterable[str], hanging: int) -> list[str]:
    """Set off in both lines what is set off over the end of a line."""
    found, open_mark = [], ""
    for line in lines:
        if open_mark:
            line = line[:hanging] + open_mark + line[hanging:]
        marks = re.findall("[\ue001-\ue003]", line)
        open_mark = marks[-1] if marks and marks[-1] != _MARKS["end"] else ""
        found.append(line + (_MARKS["end"] if open_mark else ""))
    return found


def _coloured(line: str, style: Style) -> str:
    if not style.colours:
        return re.sub("[\ue001-\ue003]", "", line)
    for name, begin in (("code", _CODE), ("bold", _BOLD), ("end", _END)):
        line = line.replace(_MARKS[name], begin)
    return line


def _table(lines: Sequence[str], style: Style) -> list[str]:
    rows = [[_inline(cell.strip().replace("\\|", "|")) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            for line in lines if not set(line) <= set("|-: ")]
    visible: Callable[[str], str] = lambda text: re.sub("[\ue001-\ue003]", "", text)
    widths = [max(len(visible(cell)) for cell in column) for column in zip(*rows)]
    found = []
    for number, row in enumerate(rows):
        text = "  ".join(cell + " " * (width - len(visible(cell))) for cell, width in zip(row, widths)).rstrip()
        found.append("  " + (style.dim(visible(text)) if number == 0 else _coloured(text, style)))
    return found
