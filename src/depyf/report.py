"""``depyf report``: the files of a run again, from its records or from a log of ``TORCH_TRACE``. Needs no torch."""

from __future__ import annotations

import os
from dataclasses import replace

from . import guarded
from . import page as pages
from .harmless import say
from .provenance.sources import files_named, sources_of_capture
from .reading import source_lines
from .recorded_runs import logged, read, readable, recorded
from .records.model import Capture
from .records.naming import only_written
from .records.run_directory import directory_of, rank_folders, run_directory
from .records.store import RecordsError, is_unwritten
from .run_files import say as warn
from .values import remembered
from .views import ranks
from .views.dump import files as views
from .views.dump.directory import Directory
from .views.index.index import FILE
from .views.markdown import count


@guarded.paused()
def report(
    path: str, output: str | None = None, page: bool = True, sources: bool = False, internal_stages: bool = False,
) -> str:
    """Make the files of a run that are made of records.

    Args:
        path: the directory of a run (or of all its ranks), its ``records.jsonl``, a log that ``TORCH_TRACE`` wrote
            (or the directory of such logs), or a file that torch saved (:mod:`depyf.capture.saved_files`).
        output: where all files go; a directory that contains a run is left as it is, and a folder in it is used.
            ``None``: the index and the page of a run are made again beside its records. A log needs an output.
        page: write the page ``index.html``; for several ranks one of all.
        sources: read the user's files from this machine's disk if the records have no copy (those of a log do not),
            if they agree with the recorded facts. Records name the files: only for those that you trust.
        internal_stages: write the internal graphs that a log has, and the texts around them, too.

    Returns:
        The path of the ``index.md``.

    Raises:
        RecordsError: there are no records, or a log has no output; the message says what to give.
        OSError: the output cannot be written.
    """
    path = directory_of(path)
    if output is None and rank_folders(path):
        return _report_all_ranks(path, page, sources)
    captures = recorded(path)
    if output is None:
        if captures is None:
            if os.path.isdir(path):
                from .capture import trace_log  # (few have a log)

                trace_log.logs(path)  # raises where there is none
            raise RecordsError(f"{path!r} is no directory of records; of a log of TORCH_TRACE, or a file that torch "
                               f"saved, say where the files go: depyf report {path} -o DIR")
        captures = _sourced({"": _completed(path, captures[""])}, sources)
        with remembered():
            if page:
                pages.write(path, captures[""])
            return ranks.write_index(path, pages.FILE if page else "", captures[""])
    if captures is None:
        captures = logged(path, internal_stages)
    captures = _sourced(captures, sources)
    target, _ = run_directory(output)
    for folder, capture in captures.items():
        own = os.path.join(target, folder) if folder else target
        os.makedirs(own, exist_ok=True)
        directory = Directory(own)
        views.write_views(views.write_artefacts(capture, directory), directory, warn, page=page)
        directory.report_missing("the report is incomplete; if the disk is full, make it again elsewhere with -o")
    return os.path.join(target, FILE) if captures.keys() == {""} else _report_all_ranks(target, page, sources)


def _report_all_ranks(path: str, page: bool, sources: bool) -> str:
    """Make the page and the index over all ranks; those that did the same are read and shown once."""
    classes = []
    for each in readable(ranks.read(path)):
        first = os.path.join(path, each.members[0].folder)
        capture = each.capture
        if capture is not None:
            capture = _completed(first, read(first) if is_unwritten(first) else capture)
        classes.append(replace(each, capture=capture))
    if page:
        shown = _sourced({each.name: each.capture for each in classes if each.capture is not None}, sources)
        pages.write(path, [replace(each, capture=shown.get(each.name)) for each in classes])
    return ranks.write_index(path, classes=classes)


def _completed(path: str, capture: Capture) -> Capture:
    """Say so where not all files of a run are there (it was killed, or they were removed)."""
    found = only_written(capture, lambda name: os.path.exists(os.path.join(path, name)))
    if found != capture:
        say(f"depyf: not all files that the records of {path} name are there; `depyf report {path} -o DIR` makes "
            "them all in another directory")
    return found


def _sourced(captures: dict[str, Capture], read: bool) -> dict[str, Capture]:
    """Return the records with the user's files as they are on this machine's disk; say so where they are not read."""
    if read:
        return {folder: replace(capture, sources=sources_of_capture(capture, source_lines))
                for folder, capture in captures.items()}
    lacking = {path for capture in captures.values() for path, has_frame in files_named(capture).items()
               if has_frame and path not in {source.path for source in capture.sources}}
    if lacking:
        say(f"depyf: the records have no copy of {count(len(lacking), 'source file')} that they name; `depyf report "
            "--sources` reads them from this machine's disk")
    return captures
