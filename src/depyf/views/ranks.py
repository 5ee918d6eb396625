"""``index.md`` over all ranks: what each did, and where they differ.

Each rank writes the folder ``rank_<n>`` (:func:`depyf.records.run_directory.run_directory`). The index beside them is
made again by each rank that ends, so that it is there whichever rank is killed; :func:`write_index` makes it at any
time, without torch and on any machine. Ranks that did the same (:mod:`.rank_classes`) have one row.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..finishing.recorded import read_records
from ..records import store
from ..records.model import Capture, Compilation, GraphStage
from ..records.run_directory import RANK, rank_folders
from ..torch_text.global_names import resumed_function
from . import rank_classes
from .causes import heading
from .changes import changes
from .dump.folder import Folder
from .formatting import OUTCOME_OF_ONE, seconds, short_names
from .grouping import recompiles
from .index.index import FILE, index
from .index.written import stamped
from .markdown import code, count, fenced, link, prose, table
from .rank_classes import IDS, RankClass, in_words
from .run_index import RunIndex

#: With more ranks than that, each reading all the others costs too much: rank 0 and the last one write the index.
FEW = 4
DIFFERENCES = 30
#: Modules in which the operations of two graphs differ that are listed.
OPERATIONS = 8


def write_index(
    directory: str, page: str = "", run: Capture | None = None, classes: Sequence[RankClass] | None = None
) -> str:
    """Write ``index.md`` over all ranks, and those of ranks that were killed before they could write their own.

    Of ranks that did the same and were killed the first gets one.

    Args:
        directory: the one that holds the folders ``rank_<n>``, or the folder of a single run.
        page: the file of a single run's page, if there is one.
        run: the records of a single run, where they have been read.
        classes: those of ranks, where they have been read.

    Returns:
        The path of the index.

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
    """Make the index over all ranks, if it is this rank's turn; called when it has written its folder.

    An index that cannot be written costs a warning, as any file does.
    """
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
    capture = ranks.capture
    if capture is None:
        return _linked(ranks), prose(ranks.trouble, 200), "", "", "", "", "", "", ""
    done = [c for c in capture.compilations if c.outcome == "compiled"]
    lost = capture.lost
    graphs = {name for f in capture.functions for fr in f.frames for e in fr.entries
              if e.compile_id.key not in lost for name in e.graph_names}
    return (_linked(ranks), "ended" if ranks.ended else "**not ended**",
            str(len(capture.functions)), str(len(done)), str(len(graphs)),
            str(sum(len(c.breaks) for c in capture.compilations)),
            str(len(recompiles(capture.compilations))),
            str(len(capture.compilations) - len(done)), time_of(ranks))


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


#: What is compared, function by function: a heading and, for a rank, the facts as text.
Facts = Callable[[Sequence[Compilation], Mapping[str, str]], Sequence[str]]


def _breaks(compilations: Sequence[Compilation], short: Mapping[str, str]) -> Sequence[str]:
    return [f"graph break at {_place(b.location, short)}: {prose(heading(b), 100)}"
            for c in compilations for b in c.breaks]


def _recompiles(compilations: Sequence[Compilation], short: Mapping[str, str]) -> Sequence[str]:
    return [f"recompiled because of {', '.join(change.subject_text() for change in changes(c, {})[:2])}"
            for c in recompiles(compilations)]


def _not_compiled(compilations: Sequence[Compilation], short: Mapping[str, str]) -> Sequence[str]:
    words = OUTCOME_OF_ONE | {"unknown": "did not finish"}
    return [words[c.outcome] + (f": {code(c.failure.kind)}" if c.failure and c.outcome == "failed" else "")
            for c in compilations if c.outcome in words]


def _place(location: object, short: Mapping[str, str]) -> str:
    filename, line = getattr(location, "filename", ""), getattr(location, "line", 0)
    return code(f"{short.get(filename, filename)}:{line}") if location else "a place that torch does not name"


def _differences(classes: Sequence[RankClass]) -> list[str]:
    readable = [each for each in classes if each.capture is not None]
    total = sum(len(each.members) for each in readable)
    if total < 2:
        return ["There is nothing to compare: fewer than two ranks left records."]
    lines = _by_class(readable)
    in_functions = _in_functions(readable)
    if lines or in_functions:
        return [*lines, *[""][: bool(lines and in_functions)], *in_functions]
    return [f"Nowhere: {count(total, 'rank')} compiled the same functions, broke at the same places, "
            "recompiled for the same reasons and have the same graphs (ids and numbers of devices aside)."]


def differences(classes: Sequence[RankClass]) -> list[str]:
    """Return how many ranks are alike, and in what the others differ, as lines of Markdown."""
    return _by_class([each for each in classes if each.capture is not None])


def _by_class(classes: Sequence[RankClass]) -> list[str]:
    """Return a line for the largest class, and for each other what it differs in."""
    others = differing(classes)
    if not others:
        return []
    common = rank_classes.most(classes)
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
    """Return the differences, function by function."""
    ended = [each for each in classes if each.ended]
    lines: list[str] = []
    compared = {each.members[0].number: _by_function(each) for each in classes}
    keys = dict.fromkeys(key for functions in compared.values() for key in functions)
    short = short_names([*{key[1] for key in keys}, *(
        b.location.filename for each in classes if each.capture
        for c in each.capture.compilations for b in c.breaks if b.location)])
    for key in keys:
        title = f"{key[0]}, {code(f'{short.get(key[1], key[1])}:{key[2]}')}"
        unequal: list[str] = []
        of_ended = [(each.numbers, compared[each.members[0].number].get(key, [])) for each in ended]
        unequal += _unequal_versions(of_ended)
        for facts in (_breaks, _recompiles, _not_compiled):
            unequal += _unequal(facts, of_ended, short)
        unequal += _unequal_graphs(classes, key, compared)
        if unequal:
            lines += [f"### {title}", "", *unequal, ""]
    total = sum(line.startswith("### ") for line in lines)
    if total > DIFFERENCES:
        at = [i for i, line in enumerate(lines) if line.startswith("### ")][DIFFERENCES]
        lines = lines[:at] + [f"... and {count(total - DIFFERENCES, 'function')} more.", ""]
    return lines[:-1]


#: A function as Markdown, and the place where it begins.
_Key = tuple[str, str, int]


def _by_function(rank: RankClass) -> dict[_Key, list[Compilation]]:
    """Compilations by the user's function; a resume function by the place where it goes on."""
    result: dict[_Key, list[Compilation]] = {}
    if rank.capture is None:
        return result
    run = RunIndex(rank.capture)
    for compilation in rank.capture.compilations:
        summary = run.summary_of.get(compilation.compile_id.key)
        resumed = resumed_function(compilation.function) is not None
        place = summary.location if summary is not None and not resumed else compilation.location
        key = run.name_of(compilation), place.filename if place else "", place.line if place else 0
        result.setdefault(key, []).append(compilation)
    return result


def _unequal_versions(by_class: Sequence[tuple[tuple[int, ...], Sequence[Compilation]]]) -> list[str]:
    """Return a line on how many versions a function has, where ranks differ in that."""
    groups: dict[int, list[int]] = {}
    for numbers, compilations in by_class:
        done = sum(c.outcome == "compiled" for c in compilations)
        groups.setdefault(done, []).extend(numbers)
    if len(groups) < 2:
        return []
    ordered = sorted(groups.items(), reverse=True)
    shown = [f"{done or 'none'} on {in_words(sorted(numbers))}" for done, numbers in ordered]
    return [f"* versions: {', '.join(shown)}"]


def _unequal(
    facts: Facts, by_class: Sequence[tuple[tuple[int, ...], Sequence[Compilation]]], short: Mapping[str, str]
) -> list[str]:
    """Return a line for each fact that not all ranks share."""
    counted: dict[str, dict[tuple[int, ...], int]] = {}
    for numbers, compilations in by_class:
        for fact in facts(compilations, short):
            of_class = counted.setdefault(fact, {})
            of_class[numbers] = of_class.get(numbers, 0) + 1
    lines = []
    for fact, times in counted.items():
        if len({times.get(numbers, 0) for numbers, _ in by_class}) == 1:
            continue
        groups: dict[int, list[int]] = {}
        for numbers, _ in by_class:
            groups.setdefault(times.get(numbers, 0), []).extend(numbers)
        once = "once on " if max(groups) > 1 else "on "
        shown = [(f"{n} times on " if n > 1 else once if n else "not on ") + in_words(sorted(numbers))
                 for n, numbers in sorted(groups.items(), reverse=True)]
        lines.append(f"* {fact}: {', '.join(shown)}")
    return lines


def _unequal_graphs(
    classes: Sequence[RankClass], key: _Key, compared: Mapping[int, Mapping[_Key, Sequence[Compilation]]]
) -> list[str]:
    """Return the captured graphs of a function, one after the other, compared as text."""
    lines: list[str] = []
    series = {each.numbers: _graphs(each, compared[each.members[0].number].get(key, [])) for each in classes}
    for position in range(max(map(len, series.values()), default=0)):
        groups: dict[str, list[tuple[int, GraphStage]]] = {}
        for numbers, graphs in series.items():
            if position < len(graphs):
                stage = graphs[position]
                groups.setdefault(stage.text, []).extend((number, stage) for number in numbers)
        if len(groups) < 2:
            continue
        shown = []
        for members in groups.values():
            members.sort(key=lambda member: member[0])
            first, stage = members[0]
            name = in_words([number for number, _ in members])
            shown.append(link(name, f"{RANK}{first}/{stage.file}" if stage.file else ""))
        # (Of the first two of several: what the first one alone has begins with -.)
        shown[:2] = [f"{shown[0]} (-)", f"{shown[1]} (+)"]
        lines.append(f"* graph {position + 1} is not the same on {' and on '.join(shown)}:")
        lines += _difference_of_graphs(*(members[0][1] for members in list(groups.values())[:2]))
        if len(lines) > DIFFERENCES:
            lines.append("* ... and the graphs after it were not compared")
            break
    return lines


def _graphs(rank: RankClass, compilations: Sequence[Compilation]) -> list[GraphStage]:
    """Return the captured graphs, without ids in their texts, in the order of their compilations."""
    if rank.capture is None:
        return []
    order = {c.compile_id.key: i for i, c in enumerate(compilations)}
    stages = []
    for graph in rank.capture.graphs:
        at = order.get(graph.compile_id.key)
        for stage in graph.stages:
            if at is not None and stage.stage == "Captured_Graph":
                stages.append((at, replace(stage, text=IDS.sub("_", stage.text))))
    return [stage for _, stage in sorted(stages, key=lambda item: item[0])]


def _difference_of_graphs(one: GraphStage, other: GraphStage) -> list[str]:
    from .diff.canonical import changed_operations, first_difference  # (most runs have one rank)

    changed = changed_operations(one, other)
    if changed:
        return [f"  * {each}" for each in changed[:OPERATIONS]] + (
            [f"  * ... and {len(changed) - OPERATIONS} more"] if len(changed) > OPERATIONS else [])
    first = first_difference(one, other)
    return ["  * the same operations; the first line that differs:", "",
            *(f"    {line}" for line in fenced("\n".join(first), "diff")), ""] if first else [
        "  * the same operations, on other values"]
