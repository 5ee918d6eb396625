"""``index.md`` over all ranks: what each did, and where they differ.

Each rank writes the folder ``rank_<n>`` (:func:`depyf.records.run_directory.run_directory`). The index beside them is
made again by each rank that ends, so that it is there whichever rank is killed; :func:`write_index` makes it at any
time, without torch and on any machine. Ranks that did the same (:mod:`.rank_classes`) have one row.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..finishing.recorded import read_records
from ..records import store
from ..records.model import Capture
from ..records.run_directory import RANK, rank_folders
from ..torch_text.run_ids import without_rank_ids
from . import rank_classes
from .dump.folder import Folder
from .formatting import seconds
from .index.index import FILE, index
from .index.totals import Totals
from .index.written import stamped
from .markdown import count, link, prose, table
from .rank_classes import RankClass, in_words
from .run_index import RunIndex

#: With more ranks than that, each reading all the others costs too much: rank 0 and the last one write the index.
FEW = 4
#: Functions whose differences are shown.
DIFFERENCES = 30


def write_index(
    directory: str, page: str = "", run: Capture | None = None, classes: Sequence[RankClass] | None = None
) -> str:
    """Write ``index.md`` over all ranks and return its path; of ranks that were killed the first of a class gets one.

    Args:
        directory: that has the folders ``rank_<n>``, or the folder of a single run.
        page: the file of a single run's page, if there is one.
        run, classes: the records of a single run, and those of ranks, where they have been read.

    Raises:
        RecordsError: there are no records in it.
        OSError: it cannot be written.
    """
    folders = rank_folders(directory)
    if not folders:
        return _written(directory, stamped(index(run or read_records(directory), page=page), directory))
    classes = read(directory) if classes is None else classes
    killed = [each for each in classes if each.capture is not None and not each.ended]
    for each in killed:
        assert each.capture is not None
        folder = os.path.join(directory, each.members[0].folder)
        _written(folder, stamped(index(each.capture), folder))
    return _write_shared(directory, read(directory) if killed else classes)


def read(directory: str) -> list[RankClass]:
    """Return the ranks of a run, by classes."""
    return rank_classes.read_ranks(directory, rank_folders(directory), FILE)


def _write_shared(directory: str, classes: Sequence[RankClass] | None = None) -> str:
    folders = rank_folders(directory)
    for _ in range(5):
        state = _state(directory, folders)
        path = _written(directory, ranks_index(read(directory) if classes is None else classes))
        # Another rank may have ended meanwhile, and may have written its index before we wrote this one.
        classes, folders = None, rank_folders(directory)
        if _state(directory, folders) == state:
            break
    return path


def rank_ended(directory: str) -> None:
    """Make the index over all ranks, if it is this rank's turn, when it has written its folder."""
    above, name = os.path.split(os.path.abspath(directory))
    folders = rank_folders(above)
    if name not in folders.values():
        return
    last = all(os.path.exists(os.path.join(above, folder, FILE)) for folder in folders.values())
    if len(folders) <= FEW or last or name == f"{RANK}0":
        # A rank that runs still writes its own index: nobody else may do that now.
        try:
            _write_shared(above)
        except OSError:
            pass  # the directory has warned


def _state(directory: str, folders: Mapping[int, str]) -> list[object]:
    result: list[object] = []
    for name in folders.values():
        try:
            status = os.stat(os.path.join(directory, name, store.FILE))
            result.append((name, status.st_size, status.st_mtime_ns))
        except OSError:
            result.append(name)
    return result


def _written(directory: str, text: str) -> str:
    path = Folder(directory).write(FILE, text)
    if path is None:
        raise OSError(f"{FILE} could not be written to {directory}")
    return path


# --- the text -------------------------------------------------------------------------------------
def ranks_index(classes: Sequence[RankClass]) -> str:
    """Return the text of the index over all ranks. Links go into the folders beside it."""
    total = sum(len(each.members) for each in classes)
    lines = [f"# What torch.compile did on {count(total, 'rank')}", "",
             *table(("rank", "state", "functions", "versions", "graphs", "breaks", "recompiles", "not compiled",
                     "time"), map(_row, classes))]
    missing = missing_ranks(classes)
    if missing:
        lines += ["", missing]
    if any(not each.ended for each in classes):
        lines += ["", "A rank that has not ended runs still or was killed; its folder holds what it had compiled until "
                      "then. What it lacks is not listed as a difference. `depyf report DIR` makes this index "
                      "again."]
    lines += ["", "## Where the ranks differ", "", *_differences(classes)]
    return "\n".join(lines) + "\n"


def missing_ranks(classes: Sequence[RankClass]) -> str:
    """Return the sentence that names ranks of the run which have no folder; empty where all have one."""
    world = {each.capture.environment.get("world_size") for each in classes if each.capture} - {None}
    wanted = range(max((int(w) for w in world if w and w.isdigit()), default=0))
    missing = sorted(set(wanted).difference(*(each.numbers for each in classes)))
    return f"No folder of {in_words(missing)}: not started, or on a machine with another disk." if missing else ""


def _row(ranks: RankClass) -> tuple[str, ...]:
    if ranks.capture is None:
        return _linked(ranks), prose(ranks.trouble, 200), "", "", "", "", "", "", ""
    totals = Totals.of(RunIndex(ranks.capture))
    return (_linked(ranks), "ended" if ranks.ended else "**not ended**", *map(str, (
        len(ranks.capture.functions), totals.versions, totals.graphs, totals.breaks, totals.recompiles,
        len(ranks.capture.compilations) - totals.versions)), time_of(ranks))


def _linked(ranks: RankClass) -> str:
    """Return the numbers of a class with links to the indexes of its ranks; of more than a few to one."""
    if len(ranks.members) <= FEW:
        return ", ".join(_to_index(each, str(each.number)) for each in ranks.members)
    first = next((each for each in ranks.members if each.index), ranks.members[0])
    one = _to_index(first, f"rank {first.number}")
    return f"{count(len(ranks.members), 'rank')} alike: {ranks.name.partition(' ')[2]}; see {one}"


def _to_index(rank: rank_classes.Member, words: str) -> str:
    return link(words, f"{rank.folder}/{rank.index}" if rank.index else "")


def time_of(ranks: RankClass) -> str:
    """Return how long compilations took: ``1.20 s``, ``1.20 s to 7.00 s (rank 3)``."""
    least, longest = (choose(ranks.members, key=lambda each: each.seconds) for choose in (min, max))
    if seconds(least.seconds) == seconds(longest.seconds):
        return seconds(least.seconds)
    return f"{seconds(least.seconds)} to {seconds(longest.seconds)} (rank {longest.number})"


def _differences(classes: Sequence[RankClass]) -> list[str]:
    readable = [each for each in classes if each.capture is not None]
    total = sum(len(each.members) for each in readable)
    if total < 2:
        return ["There is nothing to compare: fewer than two ranks left records."]
    lines, in_functions = differences(readable), _in_functions(readable)
    if lines or in_functions:
        return [*lines, *[""][: bool(lines and in_functions)], *in_functions]
    return [f"Nowhere: {count(total, 'rank')} compiled the same functions, broke at the same places, "
            "recompiled for the same reasons and have the same graphs (ids and numbers of devices aside)."]


def differences(classes: Sequence[RankClass]) -> list[str]:
    """Return how many ranks are alike, and in what the others differ, as lines of Markdown."""
    others = differing(classes)
    if not others:
        return []
    common = rank_classes.most([each for each in classes if each.capture is not None])
    alike = in_words(common.numbers)
    lines = [f"{count(len(common.members), 'rank')} are alike ({alike.partition(' ')[2]}).", ""]
    for each, words in others:
        verb = "differs" if len(each.members) == 1 else "differ"
        lines.append(f"* {each.name[:1].upper()}{each.name[1:]} {verb} from {alike} in {words}")
    return lines if len(common.members) > 1 else lines[2:]


def differing(classes: Sequence[RankClass]) -> list[tuple[RankClass, str]]:
    """Return each class that differs from the largest one, and in what, as Markdown."""
    readable = [each for each in classes if each.capture is not None]
    if not readable:
        return []
    common = rank_classes.most(readable)
    return [(each, "; ".join(parts)) for each in readable
            if each is not common and (parts := rank_classes.differences(common, each))]


def _in_functions(classes: Sequence[RankClass]) -> list[str]:
    from .diff.difference import difference  # (most runs have one rank)

    common = rank_classes.most(classes)
    lines: list[str] = []
    shown = left_out = 0
    for each, _ in differing(classes):
        if not (common.ended and each.ended and common.capture and each.capture):
            continue  # (what a run that did not end lacks is no difference)
        functions = difference(_without_ids(common.capture), _without_ids(each.capture)).functions
        for title, items in functions.items():
            if shown == DIFFERENCES:
                left_out += 1
            else:
                shown += 1
                lines += [f"### {title}, from {common.name} to {each.name}", "", *items, ""]
    return [*lines, f"... and {count(left_out, 'function')} more."] if left_out else lines[:-1]


def _without_ids(capture: Capture) -> Capture:
    graphs = (replace(graph, stages=tuple(replace(stage, text=without_rank_ids(stage.text)) for stage in graph.stages))
              for graph in capture.graphs)
    return replace(capture, graphs=tuple(graphs))
