"""Hooks of mkdocs for ``make docs``: documents that also read well as plain files become pages of the site.

* CONTRIBUTING.md is a page of the site. A link to another file of the repository leads to the repository; it must name
  one that exists (in strict mode the build fails otherwise).
* What belongs to an item of a list is indented as far as the item's text, as everywhere else; Python-Markdown asks for
  four spaces, and for a blank line before an item that follows a paragraph.
"""

from __future__ import annotations

import os
import pathlib
import re
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
#: Files of the repository's root that are pages of the site.
PAGES = ("CONTRIBUTING.md",)
#: The target of a Markdown link, without its anchor: relative paths only.
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)")
#: The mark of an item of a list, and the spaces behind it.
ITEM = re.compile(r" *(?:[*+-]|\d+\.) +(?=\S)")
#: Code is left alone: fenced blocks and spans.
CODE = re.compile(r"(^ *```.*?^ *```|`[^`\n]*`)", re.DOTALL | re.MULTILINE)


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pages that lie outside of ``docs``."""
    for name in PAGES:
        files.append(File.generated(config, name, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Lead relative links within the site or to the repository."""
    place = ROOT if page.file.src_uri in PAGES else (DOCS / page.file.src_uri).parent
    folder = pathlib.PurePosixPath(page.file.src_uri).parent

    def target(match: re.Match[str]) -> str:
        path = (place / match[1]).resolve()
        if not path.exists():
            return match[1]  # mkdocs says so
        if path.is_relative_to(DOCS) or path.parent == ROOT and path.name in PAGES:
            within = path.name if path.parent == ROOT else path.relative_to(DOCS).as_posix()
            return pathlib.PurePath(os.path.relpath(within, folder)).as_posix()
        kind = "tree" if path.is_dir() else "blob"
        return f"{config.repo_url.rstrip('/')}/{kind}/master/{path.relative_to(ROOT).as_posix()}"

    parts = CODE.split(markdown)
    return indented("".join(part if at % 2 else LINK.sub(target, part) for at, part in enumerate(parts)))


def indented(markdown: str) -> str:
    """Indent what belongs to items of lists by four spaces a level.

    Before: ``1. text``, below it ``   * inner``; after: ``1. text``, ``    * inner``.
    """
    lines: list[str] = []
    levels: list[int] = []  # where the text of each item around begins
    in_code = after_blank = has_paragraphs = False
    for line in markdown.split("\n"):
        text = line.lstrip()
        indent = len(line) - len(text)
        item = None if in_code else ITEM.match(line)
        begins = bool(item) or after_blank or text.startswith("```")  # (else the line goes on with a paragraph)
        depth = len(levels)
        while text and not in_code and begins and levels and indent < levels[-1]:
            levels.pop()
        within = max(0, indent - levels[-1]) if levels else indent
        if item:
            lines += [""] * (not after_blank and (has_paragraphs or len(levels) < depth - 1))
            has_paragraphs = False
        lines.append(" " * (4 * len(levels) + within) + text if text else "")
        if item:
            levels.append(len(item[0]))
        if text.startswith("```"):
            in_code = not in_code
        after_blank = not text
        has_paragraphs |= after_blank and bool(levels)
    return "\n".join(lines)
