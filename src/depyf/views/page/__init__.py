"""``index.html``: one HTML text made of records, which needs no network and no torch.

    data.py      {"runs": [{"units": [...], "breaks": [...], "graphs": [...], "docs": [...]}]}: terms of the page's data
    run.py       numbers for documents, files and lines, which all parts share; the status of lines; the parts for
                 functions, graphs and kernels
    __init__.py  the data, packed, with the script and the style, under a strict policy

``static/`` has the script and the style, built from ``frontend/`` by ``make page-assets``.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
import os
import re
import string
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ... import guarded
from ...harmless import write_whole
from ...provenance.graph_provenance import Provenance
from ...records.model import Capture, SourceFile
from ..dump.folder import PAGE
from ..markdown import one_line
from ..ranks import RankClass
from .data import FORMAT, run_data
from .run import Json, ranks_head, run_head

FILE = PAGE
#: A page that takes longer is left to ``depyf report``. (By the records, not a clock: identical runs have the
#: same files.)
SECONDS, SECONDS_A_CHARACTER = 2.0, 1.5e-6
#: Characters of a page's data after which further runs are left out.
LARGEST = 6_000_000
#: What a page is made of.
Recorded = Capture | Mapping[str, Capture] | Sequence[RankClass]
_DATA = re.compile(r'id="data">(.*?)</script>', re.DOTALL)
_PART = re.compile(r'class="part">(.*?)</script>', re.DOTALL)
_STATIC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "static")


def build(
    capture: Recorded, sources: Sequence[SourceFile] | None = None, title: str = "", *,
    provenances: Mapping[str, Provenance] | None = None, names: Mapping[str, str] | None = None,
) -> str:
    """Return the page of a run: one HTML text, ASCII.

    Its Content-Security-Policy allows its script and style and nothing else, so no text of the records can run or fetch
    anything.

    Args:
        capture: the records; for several ranks those of each by its name (``{"rank 0": ...}``), in order, or classes
            of ranks that did the same (:mod:`depyf.views.ranks`).
        sources: the user's files to annotate. ``None``: those in the records, else what the records have of them.
        title: of the page; the command, its backends and the date, if empty.
        provenances: those of graphs that are known already, by name of the graph.
        names: names of files, by path, where that is not a part of the path (a notebook's ``In[3]``).
    """
    return "".join(_pieces(capture, sources, title, provenances, names))


def _pieces(
    capture: Recorded, sources: Sequence[SourceFile] | None = None, title: str = "",
    provenances: Mapping[str, Provenance] | None = None, names: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Yield the text of :func:`build`: a part of the data for each run, then the head of the data."""
    shown: list[tuple[str, RankClass | None, Capture]]
    if isinstance(capture, Capture):
        shown = [("", None, capture)]
    elif isinstance(capture, Mapping):
        shown = [(name, None, run) for name, run in capture.items()]
    else:
        shown = [(each.name, each, each.capture) for each in capture if each.capture is not None]
    captures = [run for _, _, run in shown]
    begin, between, end = _shell(title or _title(captures))
    yield begin
    runs: list[Json] = []
    size = 0
    for name, ranks, run in shown:
        if size > LARGEST:
            break
        with guarded.paused():
            data = {"name": name, **run_data(run, sources, provenances, names)}
            text = packed(data)
        runs.append(run_head(data, ranks))
        size += len(text)
        yield f'<script type="application/json" class="part">{text}</script>\n'
    environment = captures[0].environment if captures else {}
    head = {
        "format": FORMAT, "title": title, "environment": dict(environment), "runs": runs,
        "backends": _backends(captures),
        "left_out": [name for name, _, _ in shown[len(runs) :]],
        **(ranks_head(capture) if not isinstance(capture, (Capture, Mapping)) else {})}
    yield f"{between}{packed(head)}{end}"


def is_large(capture: Capture) -> bool:
    """Return whether the page would take more than two seconds: the end of a run leaves it to ``depyf report`` then."""
    size = sum(sum(len(stage.text) for stage in graph.stages) + sum(len(kernel.text) for kernel in graph.kernels)
               for graph in capture.graphs)
    return SECONDS_A_CHARACTER * size > SECONDS


def write(path: str, capture: Recorded, **options: Any) -> str:
    """Write the page.

    Args:
        path: the file, or a directory, in which it is called ``index.html``.
        capture, **options: as of :func:`build`.

    Returns:
        The path of the file.

    Raises:
        OSError: it cannot be written.
    """
    return write_text(os.path.join(path, FILE) if os.path.isdir(path) else path, _pieces(capture, **options))


def write_text(path: str, pieces: Iterable[str]) -> str:
    """Write the pieces of a page (ASCII), or raise ``OSError``; return the path."""
    write_whole(path, (piece.encode() for piece in pieces))
    return path


def _shell(title: str) -> tuple[str, str, str]:
    """Return the text of a page before its parts, between these and the head of its data, and after that."""
    script, style = _asset("page.js"), _asset("page.css")
    policy = (f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; "
              "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
    before, after = _asset("shell.html").split("$data")
    before, head, rest = before.rpartition("<script")
    title = html.escape(one_line(title)).encode("ascii", "xmlcharrefreplace").decode("ascii")
    return (string.Template(before).substitute(policy=policy, title=title, style=style),
            head + rest, string.Template(after).substitute(script=script))


def packed(data: Mapping[str, Any]) -> str:
    """Return the data as JSON, compressed: graphs repeat themselves, and a page ten times smaller can be sent by mail.

    It is base64, in which no text of a program is HTML.
    """
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    # (31: gzip, without a time in its head. A higher level takes longer and saves little.)
    compressor = zlib.compressobj(1, zlib.DEFLATED, 31)
    packed = base64.b64encode(compressor.compress(text) + compressor.flush()).decode("ascii")
    return json.dumps({"encoding": "gzip", "size": len(text), "data": packed})


def unpacked(page: str) -> Any:
    """Return the data of a page: its head, with the runs that are in it."""
    head, *parts = (json.loads(zlib.decompress(base64.b64decode(json.loads(text)["data"]), 31)) for text in (
        *_DATA.findall(page), *_PART.findall(page)))
    return {**head, "runs": [{**run, **part} for run, part in zip(head["runs"], parts)]}


def _title(runs: Sequence[Capture]) -> str:
    """Return the title: the command, its backends and the date; the compiled functions, where these are unknown."""
    environment = next((run.environment for run in runs), {})
    if environment.get("command"):
        return " \u00b7 ".join(filter(None, (
            environment["command"].removeprefix("python "), ", ".join(_backends(runs)), environment.get("date", ""))))
    names = list(dict.fromkeys(function.frames[0].title or function.name if function.frames else function.name
                               for run in runs for function in run.functions))
    return ": ".join(filter(None, ("torch.compile", ", ".join(names[:3] + ["..."] * (len(names) > 3)))))


def _backends(runs: Sequence[Capture]) -> list[str]:
    return sorted({graph.backend for run in runs for graph in run.graphs if graph.backend})


@functools.cache
def _asset(name: str) -> str:
    with open(os.path.join(_STATIC, name), encoding="utf-8", newline="") as file:
        return file.read().replace("\r\n", "\n")


@functools.cache
def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
