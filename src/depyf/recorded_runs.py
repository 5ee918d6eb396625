"""The records of a run, wherever they are: a dump, the folders of its ranks, or a log of ``TORCH_TRACE``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from .finishing.frames import read_records
from .harmless import say
from .model.folding import fold
from .records import store
from .records.model import AlikeRank, Capture
from .records.run_directory import RANK, directory_of, rank_folders
from .records.store import RecordsError
from .run_files import make

if TYPE_CHECKING:
    from .capture.trace_log import RankOfLog
    from .views.ranks import RankClass

_RANK_OF_LOG = re.compile(r"_rank_(\d+)[_.]")


def captures_of(path: str, rank: int | None = None) -> dict[str, Capture]:
    """Return the records of a run by folder: of each rank (``"rank_0"``), or of one process (``""``).

    Args:
        path: as of :func:`depyf.report.report`.
        rank: of several ranks, this one is enough.

    Raises:
        RecordsError: there are none; the message says what to give.
    """
    path = directory_of(path)
    name = rank_folders(path).get(-1 if rank is None else rank, "")
    if name and os.path.exists(os.path.join(path, name, store.FILE)):
        return {name: read(os.path.join(path, name))}
    return recorded(path) or logged(path)


def folder_of(captures: Mapping[str, Capture], path: str, rank: int | None = None) -> str:
    """Return the folder of a rank of a run, or of one with the same log, and say so; by default the first folder.

    Raises:
        RecordsError: the run at the path has no such rank.
    """
    wanted = next(iter(captures)) if rank is None else f"{RANK}{rank}"
    if wanted in captures:
        return wanted
    for folder, capture in captures.items():
        if rank in [each.number for each in capture.alike_ranks]:
            say(f"depyf: {wanted} did the same as {folder}: its records are read, and the times are those of {folder}")
            return folder
    raise RecordsError(f"{path} has no rank {rank}")


def capture_of(path: str, rank: int | None = None) -> Capture:
    """Return the records of one process of a run; by default those of the first rank."""
    captures = captures_of(path, rank)
    return captures[folder_of(captures, path, rank)]


def shown(path: str) -> Capture | list[RankClass]:
    """Return the records of a run as a page shows them, or raise as :func:`captures_of`."""
    from .views import ranks

    if rank_folders(directory_of(path)):
        return readable(ranks.read(directory_of(path)))
    captures = captures_of(path)
    if captures.keys() == {""}:
        return captures[""]
    return ranks.classes_of(captures)


def recorded(path: str) -> dict[str, Capture] | None:
    """Return the records of a run by folder (``""`` for one process); ``None`` where there is no file of records."""
    if not os.path.exists(path):
        raise RecordsError(f"{path!r} is not there. Give the directory that depyf run or prepare_debug wrote, its "
                           "records.jsonl, or a log of TORCH_TRACE.")
    if not os.path.isdir(path):
        return None
    folders = rank_folders(path)
    if not folders:
        return {"": read(path)} if os.path.exists(os.path.join(path, store.FILE)) else None
    result: dict[str, Capture] = {}
    problems: list[RecordsError] = []
    for name in folders.values():
        try:
            result[name] = read(os.path.join(path, name))
        except RecordsError as error:  # (it may have been killed before it compiled anything)
            problems.append(error)
    if not result:
        raise problems[0]
    for problem in problems:
        say(f"depyf: left out: {problem}")
    return result


def read(path: str) -> Capture:
    """Return the records of a run of one process, whose files are made first where that is still to be done."""
    make(path)
    return read_records(path)


def logged(path: str, internal_stages: bool = False) -> dict[str, Capture]:
    """Return the records of a log of ``TORCH_TRACE`` by folder; of a directory of logs the newest of each rank.

    Of a file that torch saved (:mod:`depyf.capture.saved_files`) by ``""``.

    The rank is the one that the events name; where they name none, that of the file's name. Of ranks whose logs say
    the same the first has records, which name the others.

    Args:
        path: of the log or the directory.
        internal_stages: torch's internal graphs, too.

    Raises:
        RecordsError: there is none that can be read.
    """
    from .capture import saved_files, trace_log  # (few have a log)

    if not os.path.isdir(path) and (saved := saved_files.read(path)):
        return {"": saved}
    files = trace_log.logs(path) if os.path.isdir(path) else [path]
    read = list(trace_log.read_logs(files, internal_stages))
    found = [each for each in read if not isinstance(each, RecordsError)]
    troubles = [each for each in read if isinstance(each, RecordsError)]
    if not found:
        raise troubles[-1]
    for trouble in troubles:
        say(f"depyf: left out: {trouble}")
    names = {each.file: match[1] for each in found if (match := _RANK_OF_LOG.search(os.path.basename(each.file)))}
    if len({each.rank for each in found}) < len(found) == len(set(names.values())):
        if any(each.rank and each.rank != names[each.file] for each in found):
            say("depyf: events of several logs name the same rank; the ranks in the names of the files are used")
        found = [replace(each, rank=names[each.file]) for each in found]
    newest: dict[str, RankOfLog] = {}
    for each in found:
        if each.rank in newest:
            say(f"depyf: left out: {newest[each.rank].file}, which is older than {each.file}"
                f"{f' of the same rank {each.rank}' if each.rank else ''}; give its path to read it alone")
        newest[each.rank] = each
    if "" in newest and len(newest) > 1:
        say(f"depyf: left out: {newest.pop('').file}, which is of no rank")  # (the launcher's own)
    if len(newest) == 1:
        return {"": next(iter(newest.values())).capture}
    result = {}
    in_order = sorted(newest.values(), key=lambda each: int(each.rank))
    for first, *others in fold(in_order, lambda each: id(each.capture)).values():
        capture = first.capture
        if others:
            capture = replace(capture, environment=capture.environment | {"rank": first.rank}, alike_ranks=tuple(
                AlikeRank(int(each.rank), each.seconds) for each in others))
        result[f"{RANK}{first.rank}"] = capture
    return result


def readable(classes: list[RankClass]) -> list[RankClass]:
    """Return the ranks; say which left nothing that can be read: one may have been killed before it compiled anything.

    Raises:
        RecordsError: none can be read.
    """
    lost = [each for each in classes if each.capture is None]
    if len(lost) == len(classes):
        raise RecordsError(f"no rank left a {store.FILE} that can be read: {lost[0].name}: {lost[0].trouble}")
    for each in lost:
        say(f"depyf: left out: {each.name}: {each.trouble}")
    return classes
