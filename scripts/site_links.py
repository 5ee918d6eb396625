"""A hook of mkdocs for ``make docs``: pages and links that lie outside of ``docs``.

CONTRIBUTING.md is a page of the site.  A link to another file of the repository must name one that exists (in strict
mode the build fails otherwise) and leads to the repository.
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
    here = pathlib.PurePosixPath(page.file.src_uri).parent

    def target(found: re.Match[str]) -> str:
        path = (place / found[1]).resolve()
        if not path.exists():
            return found[1]  # mkdocs says so
        if path.is_relative_to(DOCS) or path.parent == ROOT and path.name in PAGES:
            within = path.name if path.parent == ROOT else path.relative_to(DOCS).as_posix()
            return pathlib.PurePath(os.path.relpath(within, here)).as_posix()
        kind = "tree" if path.is_dir() else "blob"
        return f"{config.repo_url.rstrip('/')}/{kind}/master/{path.relative_to(ROOT).as_posix()}"

    parts = CODE.split(markdown)
    return "".join(part if at % 2 else LINK.sub(target, part) for at, part in enumerate(parts))
