"""The records of a run, wherever they are: a dump, the folders of its ranks, or a log of ``TORCH_TRACE``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .finishing.frames import read_records
from .harmless import say
from .records import store
from .records.model import Capture
from .records.run_directory import RANK, directory_of, rank_folders
from .records.store import RecordsError
from .run_files import make

if TYPE_CHECKING:
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
    if folders:
        return _of_ranks(path, list(folders.values()))
    return {"": read(path)} if os.path.exists(os.path.join(path, store.FILE)) else None


def read(path: str) -> Capture:
    """Return the records of a run of one process, whose files are made first where that is still to be done."""
    make(path)
    return read_records(path)


def _of_ranks(path: str, folders: Sequence[str]) -> dict[str, Capture]:
    """Return the records of those ranks that have some: one may have been killed before it compiled anything."""
    result: dict[str, Capture] = {}
    problems: list[RecordsError] = []
    for name in folders:
        try:
            result[name] = read(os.path.join(path, name))
        except RecordsError as error:
            problems.append(error)
    if not result:
        raise problems[0]
    for problem in problems:
        say(f"depyf: left out: {problem}")
    return result


def logged(path: str, internal_stages: bool = False) -> dict[str, Capture]:
    """Return the records of a log of ``TORCH_TRACE`` by folder; of a directory of logs the newest of each rank.

    Of a file that torch saved (:mod:`depyf.capture.saved_files`) by ``""``.

    The rank is the one that the events name; where they name none, that of the file's name.

    Args:
        path: of the log or the directory.
        internal_stages: torch's internal graphs, too.

    Raises:
        RecordsError: there is none that can be read.
    """
    from .capture import saved_files, trace_log  # (few have a log)

    if not os.path.isdir(path):
        if saved := saved_files.read(path):
            return {"": saved}
        return _by_folder(trace_log.read_ranks(path, internal_stages))
    found: list[tuple[str, str, Capture]] = []  # file, rank, records
    troubles: list[RecordsError] = []
    for file in trace_log.logs(path):
        try:
            found += [(file, rank or capture.environment.get("rank", ""), capture)
                      for rank, capture in trace_log.read_ranks(file, internal_stages).items()]
        except RecordsError as error:
            troubles.append(error)
    if not found:
        raise troubles[-1]
    for trouble in troubles:
        say(f"depyf: left out: {trouble}")
    names = {file: match[1] for file, *_ in found if (match := _RANK_OF_LOG.search(os.path.basename(file)))}
    if len({rank for _, rank, _ in found}) < len(found) == len(set(names.values())):
        if any(rank and rank != names[file] for file, rank, _ in found):
            say("depyf: events of several logs name the same rank; the ranks in the names of the files are used")
        found = [(file, names[file], capture) for file, _, capture in found]
    newest: dict[str, tuple[str, Capture]] = {}
    for file, rank, capture in found:
        if rank in newest:
            say(f"depyf: left out: {newest[rank][0]}, which is older than {file}"
                f"{f' of the same rank {rank}' if rank else ''}; give its path to read it alone")
        newest[rank] = file, capture
    if "" in newest and len(newest) > 1:
        say(f"depyf: left out: {newest.pop('')[0]}, which is of no rank")  # (the launcher's own)
    return _by_folder({rank: capture for rank, (_, capture) in newest.items()})


def _by_folder(by_rank: Mapping[str, Capture]) -> dict[str, Capture]:
    """Return the records of ranks by folder, in the order of the ranks; those of one process by ``""``."""
    if len(by_rank) == 1:
        return {"": next(iter(by_rank.values()))}
    return {f"{RANK}{rank}": by_rank[rank] for rank in sorted(by_rank, key=int)}


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
