"""The files of a run, made of its records: :func:`write` now, :func:`make` when a recorded run is to be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from .guarded import guarded_call, missing
from .records import store
from .records.model import Capture

if TYPE_CHECKING:
    from .views.dump.folder import Folder

#: How files are written (``EndOfRecording.options``): ``"include f*"`` and its like choose a part of the run.
KEEP_WILD, PAGE, NO_PAGE = "keep wild graphs", "page", "no page"
CHOICES = ("include", "exclude", "backend", "stage")
#: Called with what is being written (:data:`depyf.views.dump.files.Progress`).
Progress = Callable[[str, int, int], None]
Report = Callable[[Exception], None]
say: Report = missing("file")  #: Warns of an internal error, which costs a file.


def write(
    capture: Capture, path: str, report: Report = say, notes: Iterable[str] = (), progress: Progress | None = None,
    before: Folder | None = None,
) -> Capture:
    """Write all files of a run that has ended; return it as it was recorded.

    The records are replaced by their final form, unless an internal error made a function lacking in it.

    Args:
        capture: what was recorded.
        path: the directory.
        report: called with an internal error, which costs the file that it concerns.
        notes: more than those of the run.
        progress: called with what is being written.
        before: wrote files while the run went on.
    """
    from .finishing.functions import finished
    from .model.graph_text import read_graph
    from .views.dump import files
    from .views.dump.directory import Directory

    recorded = capture.unwritten.recorded if capture.unwritten is not None else None
    options = recorded.options if recorded is not None else ()
    shown = progress or files.silent
    whole = finished(capture, lambda action, otherwise: guarded_call(action, otherwise, report), shown)
    directory = Directory(path)
    if before is not None:
        directory.goes_on_with(before)
    chosen = guarded_call(lambda: _chosen(whole, options, directory), whole, report)
    made = len(whole.entries)
    lacking = capture.unwritten is not None and made < len(capture.unwritten.bytecodes)
    page = True if PAGE in options else False if NO_PAGE in options else None
    final = files.write_views(
        files.write_artefacts(chosen, directory), directory, report, notes, clean=KEEP_WILD not in options, page=page,
        progress=shown, records=not lacking)
    directory.report_missing()
    read_graph.cache_clear()
    return final


def _chosen(capture: Capture, options: Sequence[str], directory: Folder) -> Capture:
    """Return the part of a run that the options choose; remove the files of the rest."""
    values = [tuple(option.removeprefix(f"{kind} ") for option in options if option.startswith(f"{kind} "))
              for kind in CHOICES]
    if not any(values):
        return capture
    from .views.choice import Choice, files_of

    chosen = Choice(*values).of(capture)
    kept = files_of(chosen)
    for name in list(directory.files):
        if re.sub(r"\.(unsimplified\.py|(original|transformed|recompiled)\.bin)$", ".py", name) not in kept:
            directory.remove(name)
    return chosen


def make(path: str) -> None:
    """Make the files of a recorded run that has none yet (``files="later"``).

    Where that fails, the records can be read as they are.
    """
    if store.is_unwritten(path):
        from .views import ranks

        guarded_call(lambda: write(store.read(path), path), None, say)
        guarded_call(lambda: ranks.rank_ended(path), None, say)
