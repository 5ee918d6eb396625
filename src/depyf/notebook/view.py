"""A page as the output of a cell: HTML for front ends that show it, text for those that do not."""

from __future__ import annotations

import atexit
import functools
import html
import os
import shutil
import sys
import tempfile
import urllib.parse
from collections.abc import Iterable, Sequence
from typing import Any

from .. import page as pages
from ..harmless import write_whole
from ..provenance import sources
from ..records.model import Capture
from ..views.markdown import count, one_line
from ..views.page.run import place_of
from ..views.ranks import RankClass

#: The largest page, in characters, that is put into the notebook itself. Jupyter's server drops outputs of more than
#: 3 MB in 3 seconds (``iopub_data_rate_limit``), and the page is saved with the notebook.
INLINE = 2_000_000
#: Pixels; the reader can drag the lower edge.
HEIGHT = 640
_LEAST = 200
_NOTHING = "Nothing was compiled."
_TITLE = "depyf: what torch.compile did"
_NAMED = 4  #: Breaks, recompiles and losses that the text names.

# `color-scheme` of a frame sets `prefers-color-scheme` inside it: so the page follows the front end's theme without a
# script outside of the frame. While the edge is dragged, the frame must not take the pointer's movements.
_STYLE = """
.depyf-frame {resize: vertical; overflow: hidden; box-sizing: border-box; padding-bottom: 12px; max-width: 100%;
 border: 1px solid #8888; border-radius: 4px}
.depyf-frame iframe {display: block; width: 100%; height: 100%; border: 0}
.depyf-frame:active > iframe:not(:active) {pointer-events: none}
[data-jp-theme-light="true"] .depyf-frame iframe, .vscode-light .depyf-frame iframe {color-scheme: light}
[data-jp-theme-light="false"] .depyf-frame iframe, .vscode-dark .depyf-frame iframe,
.vscode-high-contrast:not(.vscode-high-contrast-light) .depyf-frame iframe,
html[theme="dark"] .depyf-frame iframe {color-scheme: dark}
"""


class View:
    """A run, to be shown by a notebook: the value of a cell, or given to ``IPython.display.display``.

    Attributes:
        path: the file of the page, or the directory that was written; empty if nothing was written.
        notes: shown with the page.
        result: what the function returned, of ``interactive(fn, *args)``.
    """

    def __init__(
        self, page: str, path: str = "", *, notes: Sequence[str] = (), height: int = HEIGHT, result: Any = None,
    ) -> None:
        if height < _LEAST:
            raise ValueError(f"height={height!r} is too low to see anything; give at least {_LEAST} (pixels)")
        self.page = page
        self.path = path
        self.notes = tuple(notes)
        self.height = int(height)
        self.result = result

    @classmethod
    def of(cls, capture: Capture | Sequence[RankClass], path: str = "", **options: Any) -> View:
        """Return the view of records, with cells by the numbers that the notebook shows.

        Args:
            capture: as of :func:`depyf.page.build`.
            path, **options: as of the class; a page that is too large for the notebook is written to the directory.

        Raises:
            OSError: it cannot be written.
        """
        runs = [capture] if isinstance(capture, Capture) else [each.capture for each in capture if each.capture]
        text = pages.build(capture, names=cell_names(path for run in runs for path in sources.files_named(run)))
        view = cls(text, path, **options)
        if len(text) > INLINE and os.path.isdir(path) and not view.file:
            write_whole(os.path.join(path, pages.FILE), [text.encode()])
        return view

    @functools.cached_property
    def words(self) -> tuple[str, ...]:
        """A few lines of text on what happened."""
        return tuple(line for run in pages.unpacked(self.page)["runs"] for line in _outline(run))

    @property
    def file(self) -> str:
        """The file of the page, if there is one."""
        path = os.path.join(self.path, pages.FILE) if self.path and os.path.isdir(self.path) else self.path
        return path if path and os.path.isfile(path) else ""

    def __repr__(self) -> str:
        lines = ["depyf", *self.notes, *self.words]
        if self.path and self.words != (_NOTHING,):
            lines.append(f"The page: {self.file}" if self.file else f"All files: {self.path}")
        return "\n  ".join(lines)

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        if self.words == (_NOTHING,):
            return f"{_text(self.words)}{notes}"
        if len(self.page) > INLINE:
            return f"{_text(self.words)}{notes}<p>{self._large()}</p>"
        # The frame has an origin of its own (no allow-same-origin): nothing of the page reaches the notebook. The
        # page's own policy stands in it. A front end that does not trust a notebook removes the frame, not the text.
        page = self.page.replace("&", "&amp;").replace('"', "&quot;")
        return (f"<style>{_STYLE}</style>{_text(self.words[:1])}{notes}"
                f'<div class="depyf-frame" style="height: {self.height}px"><iframe title="{_TITLE}" '
                f'sandbox="allow-scripts allow-popups allow-popups-to-escape-sandbox" srcdoc="{page}"></iframe></div>')

    def _large(self) -> str:
        why = f"The page has {len(self.page) / 1e6:.1f} MB, too much for a notebook."
        if not self.file:
            return f"{why} Write the dump to a directory, and open the <code>{pages.FILE}</code> there."
        relative = os.path.relpath(self.file)
        if relative.startswith(os.pardir) or os.path.isabs(relative):  # a front end serves what lies beside it
            return f"{why} It is in a file: <code>{html.escape(self.file)}</code>"
        address = urllib.parse.quote(relative.replace(os.sep, "/"))
        return f'{why} It is in a file: <a href="{address}" target="_blank">{html.escape(relative)}</a>'


def _text(lines: Sequence[str]) -> str:
    return "".join(f"<p>{html.escape(line)}</p>" for line in lines)


def _outline(run: dict[str, Any]) -> list[str]:
    """Return a run in a few lines: its numbers first, then its problems."""
    summary = run["summary"]
    name = f"{run['name']}: " if run["name"] else ""
    if not run["compilations"] and not run["units"]:
        return [f"{name}{_NOTHING}"]
    numbers = [count(summary["functions"], "function"), count(summary["versions"], "version"),
               count(summary["graphs"], "graph")]
    if not run["compilations"]:  # (a function that was compiled unwatched: no more is known)
        return [f"{name}{', '.join(numbers)}."]
    numbers += [count(summary["breaks"], "graph break"), count(summary["recompiles"], "recompile")]
    numbers += [f"{summary[key]} {words}" for key, words in (
        ("limit", "at the recompile limit"), ("failed", "failed"), ("skipped", "skipped")) if summary[key]]
    lines = [f"{name}{', '.join(numbers)}; {summary['seconds']:.1f} s compiling."]
    lines += [_sentence(sentence) for sentence in run["verdict"]]
    for reason in run["breaks"][:_NAMED]:
        where = place_of(run, reason["places"][0]["place"]) or "a place that torch does not name"
        lines.append(f"graph break at {where}: {reason['title']}")
    for group in run["recompiles"][:_NAMED]:
        why = _sentence(group["rows"][0]["text"]) or "no compiled version matched a call"
        lines.append(f"recompiled {group['subject']}: {why}")
    losses = (_sentence(lost["text"]) or f"{lost['outcome']}: {lost['subject']}" for lost in run["lost"][:_NAMED])
    text = "\n".join(lines)
    return [one_line(line) for line in (*lines, *(why for why in losses if why not in text))]


def _sentence(pieces: list[list[str]]) -> str:
    """Return a sentence of the page as plain text."""
    return "".join(text for _, text in pieces)


# --- temporary directories ---------------------------------------------------------------------------
def temporary() -> str:
    """Return a directory that is removed at the end of this process."""
    path, process = tempfile.mkdtemp(prefix="depyf_"), os.getpid()
    atexit.register(lambda: shutil.rmtree(path, ignore_errors=True) if os.getpid() == process else None)
    return path


# --- cells of the notebook ---------------------------------------------------------------------------
def cell_names(paths: Iterable[str]) -> dict[str, str]:
    """Return the number of each path that is a cell, as in IPython's tracebacks: ``In[3]``."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    if name_of is None:
        return {}
    named = {path: name_of(path) for path in paths}  # ("Cell", "In[3]"), or None
    return {path: str(name[1]) for path, name in named.items() if name}
