"""``index.md`` over all ranks: what each did, and where they differ.

Each rank writes the folder ``rank_<n>`` (:func:`depyf.records.run_directory.run_directory`). The index beside them is
made again by each rank that ends, so that it is there whichever rank is killed; :func:`write_index` makes it at any
time, without torch and on any machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..records import store
from ..records.model import Capture, Compilation
from ..records.run_directory import RANK, numbered
from ..torch_text.recorded import read_records
from ..torch_text.resumes import plain_name
from .changes import changes
from .diff.canonical import excerpts
from .dump.directory import Directory
from .formatting import OUTCOME_OF_ONE, seconds
from .grouping import recompiles
from .index.index import FILE, index
from .markdown import code, count, fenced, link, prose, some, table
from .short_paths import short_names

#: With more ranks than that, each reading all the others costs too much: rank 0 and the last one write the index.
FEW = 4
DIFFERENCES = 30
#: In texts of graphs: what differs between ranks that run the same.
_IDS = re.compile(r"0x[0-9a-f]+|(?<=cuda:)\d+|(?<=index=)\d+|__compiled_fn_\d+|\b\d{9,}\b")


@dataclass(frozen=True)
class Rank:
    """A rank's folder.

    Attributes:
        folder: its name.
        capture: what it holds; ``None`` if nothing can be read.
        ended: the run of the rank came to its end.
        trouble: why nothing can be read.
        index: the name of its own index; empty if it has none.
    """

    number: int
    folder: str
    capture: Capture | None
    ended: bool
    trouble: str = ""
    index: str = ""


def write_index(directory: str, page: str = "", run: Capture | None = None) -> str:
    """Write ``index.md`` over all ranks, and that of each rank which was killed before it could write its own.

    Args:
        directory: the one that holds the folders ``rank_<n>``, or the folder of a single run.
        page: the file of a single run's page, if there is one.
        run: the records of a single run, where they have been read.

    Returns:
        The path of the index.

    Raises:
        RecordsError: there are no records in it.
        OSError: it cannot be written.
    """
    folders = rank_folders(directory)
    if not folders:
        return _written(directory, index(run or read_records(directory), page=page))
    for name in folders.values():
        own = _read(directory, 0, name)
        if own.capture is not None and not own.ended:
            _written(os.path.join(directory, name), index(own.capture))
    return _write_shared(directory)


def _write_shared(directory: str) -> str:
    folders = rank_folders(directory)
    for _ in range(5):
        state = _state(directory, folders)
        ranks = [_read(directory, number, name) for number, name in folders.items()]
        path = _written(directory, ranks_index(ranks))
        # Another rank may have ended meanwhile, and may have written its index before we wrote this one.
        folders = rank_folders(directory)
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


def rank_folders(directory: str) -> dict[int, str]:
    """Return the folders of ranks in a directory, by rank."""
    try:
        return numbered(os.listdir(directory), RANK)
    except OSError:
        return {}


def _state(directory: str, folders: Mapping[int, str]) -> list[object]:
    result: list[object] = []
    for name in folders.values():
        try:
            status = os.stat(os.path.join(directory, name, store.FILE))
            result.append((name, status.st_size, status.st_mtime_ns))
        except OSError:
            result.append(name)
    return result


def _read(directory: str, number: int, name: str) -> Rank:
    try:
        capture = read_records(os.path.join(directory, name))
    except store.RecordsError as error:
        missing = not os.path.exists(os.path.join(directory, name, store.FILE))
        return Rank(number, name, None, False, "nothing was compiled yet" if missing else str(error))
    has_index = os.path.exists(os.path.join(directory, name, FILE))
    return Rank(number, name, capture, store.NOT_ENDED not in capture.notes, index=FILE if has_index else "")


def ranks_of(captures: Mapping[str, Capture]) -> list[Rank]:
    """Ranks whose records were read elsewhere, by folder (``"rank_0"``)."""
    return [Rank(int(folder.removeprefix(RANK)), folder, capture, store.NOT_ENDED not in capture.notes)
            for folder, capture in captures.items()]


def _written(directory: str, text: str) -> str:
    path = Directory(directory).write(FILE, text)
    if path is None:
        raise OSError(f"{FILE} could not be written to {directory}")
    return path


# --- the text -------------------------------------------------------------------------------------
def ranks_index(ranks: Sequence[Rank]) -> str:
    """Return the text of the index over all ranks. Links go into the folders beside it."""
    lines = [f"# What torch.compile did on {count(len(ranks), 'rank')}", "",
             *table(("rank", "state", "functions", "versions", "graphs", "breaks", "recompiles", "not compiled",
                     "time"), map(_row, ranks))]
    world = {rank.capture.environment.get("world_size") for rank in ranks if rank.capture} - {None}
    missing = sorted(set(range(max((int(w) for w in world if w and w.isdigit()), default=0)))
                     - {rank.number for rank in ranks})
    if missing:
        lines += ["", f"No folder of {_ranks(missing)}: not started, or on a machine with another disk."]
    if any(not rank.ended for rank in ranks):
        lines += ["", "A rank that has not ended runs still or was killed; its folder holds what it had compiled until "
                      "then. What it lacks is not listed as a difference. `depyf report DIR` makes this index "
                      "again."]
    lines += ["", "## Where the ranks differ", "", *_differences(ranks)]
    return "\n".join(lines) + "\n"


def _row(rank: Rank) -> tuple[str, ...]:
    capture = rank.capture
    if capture is None:
        return str(rank.number), prose(rank.trouble, 200), "", "", "", "", "", "", ""
    done = [c for c in capture.compilations if c.outcome == "compiled"]
    graphs = {name for f in capture.functions for fr in f.frames for e in fr.entries for name in e.graph_names}
    return (link(str(rank.number), f"{rank.folder}/{rank.index}"), "ended" if rank.ended else "**not ended**",
            str(len(capture.functions)), str(len(done)), str(len(graphs)),
            str(sum(len(c.breaks) for c in capture.compilations)),
            str(len(recompiles(capture.compilations))),
            str(len(capture.compilations) - len(done)), seconds(sum(c.seconds for c in capture.compilations)))


#: What is compared, function by function: a heading and, for a rank, the facts as text.
Facts = Callable[[Sequence[Compilation], Mapping[str, str]], Sequence[str]]


def _breaks(compilations: Sequence[Compilation], short: Mapping[str, str]) -> Sequence[str]:
    return [f"graph break at {_place(b.location, short)}: {prose(b.reason, 100)}"
            for c in compilations for b in c.breaks]


def _recompiles(compilations: Sequence[Compilation], short: Mapping[str, str]) -> Sequence[str]:
    return [f"recompiled because of {', '.join(change.subject_text() for change in changes(c, {})[:2])}"
            for c in recompiles(compilations)]


def _not_compiled(compilations: Sequence[Compilation], short: Mapping[str, str]) -> Sequence[str]:
    words = OUTCOME_OF_ONE | {"unknown": "did not finish"}
    return [words[c.outcome] + (f": {code(c.failure.kind)}" if c.failure and c.outcome == "failed" else "")
            for c in compilations if c.outcome in words]


def _versions(compilations: Sequence[Compilation], short: Mapping[str, str]) -> Sequence[str]:
    done = sum(c.outcome == "compiled" for c in compilations)
    return [count(done, "version")] if done else []


def _place(location: object, short: Mapping[str, str]) -> str:
    filename, line = getattr(location, "filename", ""), getattr(location, "line", 0)
    return code(f"{short.get(filename, filename)}:{line}") if location else "a place that torch does not name"


def _differences(ranks: Sequence[Rank]) -> list[str]:
    readable = [rank for rank in ranks if rank.capture is not None]
    ended = [rank for rank in readable if rank.ended]
    if len(readable) < 2:
        return ["There is nothing to compare: fewer than two ranks left records."]
    lines: list[str] = []
    compared = {rank.number: _by_function(rank) for rank in readable}
    keys = dict.fromkeys(key for functions in compared.values() for key in functions)
    short = short_names([*{key[1] for key in keys}, *(
        b.location.filename for rank in readable if rank.capture
        for c in rank.capture.compilations for b in c.breaks if b.location)])
    for key in keys:
        title = f"{code(key[0])}, {code(f'{short.get(key[1], key[1])}:{key[2]}')}"
        unequal: list[str] = []
        for facts in (_versions, _breaks, _recompiles, _not_compiled):
            unequal += _unequal(facts, [(rank.number, compared[rank.number].get(key, [])) for rank in ended], short)
        unequal += _unequal_graphs(readable, key, compared)
        if unequal:
            lines += [f"### {title}", "", *unequal, ""]
    total = sum(line.startswith("### ") for line in lines)
    if total > DIFFERENCES:
        at = [i for i, line in enumerate(lines) if line.startswith("### ")][DIFFERENCES]
        lines = lines[:at] + [f"... and {count(total - DIFFERENCES, 'function')} more.", ""]
    if not lines:
        return [f"Nowhere: {count(len(readable), 'rank')} compiled the same functions, broke at the same places, "
                "recompiled for the same reasons and have the same graphs (ids and numbers of devices aside)."]
    return lines[:-1]


_Key = tuple[str, str, int]


def _by_function(rank: Rank) -> dict[_Key, list[Compilation]]:
    """Compilations by the user's function; a resume function by the place where it goes on."""
    result: dict[_Key, list[Compilation]] = {}
    for compilation in rank.capture.compilations if rank.capture else ():
        place = compilation.location
        key = (plain_name(compilation.function), place.filename if place else "", place.line if place else 0)
        result.setdefault(key, []).append(compilation)
    return result


def _unequal(
    facts: Facts, by_rank: Sequence[tuple[int, Sequence[Compilation]]], short: Mapping[str, str]
) -> list[str]:
    """Return a line for each fact that not all ranks share."""
    counted: dict[str, dict[int, int]] = {}
    for number, compilations in by_rank:
        for fact in facts(compilations, short):
            of_rank = counted.setdefault(fact, {})
            of_rank[number] = of_rank.get(number, 0) + 1
    lines = []
    for fact, times in counted.items():
        if len({times.get(number, 0) for number, _ in by_rank}) == 1:
            continue
        groups: dict[int, list[int]] = {}
        for number, _ in by_rank:
            groups.setdefault(times.get(number, 0), []).append(number)
        shown = [(f"{n} times on " if n > 1 else "on " if n else "not on ") + _ranks(numbers)
                 for n, numbers in sorted(groups.items(), reverse=True)]
        lines.append(f"* {fact}: {', '.join(shown)}")
    return lines


def _ranks(numbers: Sequence[int]) -> str:
    return ("rank " if len(numbers) == 1 else "ranks ") + some(list(map(str, numbers)), 8)


def _unequal_graphs(
    ranks: Sequence[Rank], key: _Key, compared: Mapping[int, Mapping[_Key, Sequence[Compilation]]]
) -> list[str]:
    """Return the captured graphs of a function, one after the other, compared as text."""
    lines: list[str] = []
    series = {rank.number: _graphs(rank, compared[rank.number].get(key, [])) for rank in ranks}
    for position in range(max(map(len, series.values()), default=0)):
        groups: dict[str, list[tuple[int, str]]] = {}
        for number, graphs in series.items():
            if position < len(graphs):
                groups.setdefault(graphs[position][0], []).append((number, graphs[position][1]))
        if len(groups) < 2:
            continue
        shown = []
        for members in groups.values():
            numbers, file = [number for number, _ in members], members[0][1]
            shown.append(link(_ranks(numbers), f"{RANK}{numbers[0]}/{file}" if file else ""))
        lines.append(f"* graph {position + 1} is not the same on {' and on '.join(shown)}; the first difference:")
        first, second = list(groups)[:2]
        lines += ["", *(f"  {line}" for line in fenced("\n".join(_first_difference(first, second)), "diff")), ""]
        if len(lines) > DIFFERENCES:
            lines.append("* ... and the graphs after it were not compared")
            break
    return lines


def _graphs(rank: Rank, compilations: Sequence[Compilation]) -> list[tuple[str, str]]:
    """Return ``(text without ids, file)`` of the captured graphs, in the order of their compilations."""
    if rank.capture is None:
        return []
    order = {c.compile_id.key: i for i, c in enumerate(compilations)}
    texts = []
    for graph in rank.capture.graphs:
        at = order.get(graph.compile_id.key)
        for stage in graph.stages:
            if at is not None and stage.stage == "Captured_Graph":
                texts.append((at, _IDS.sub("_", stage.text), stage.file))
    return [(text, file) for _, text, file in sorted(texts, key=lambda item: item[0])]


def _first_difference(first: str, second: str) -> list[str]:
    ours, theirs = first.splitlines(), second.splitlines()
    for one, other in zip(ours, theirs):
        if one != other:
            cut = excerpts(one.strip(), other.strip())
            return [f"- {cut[0]}", f"+ {cut[1]}"]
    longer = ours[len(theirs):] or theirs[len(ours):]
    return [f"{'-' if len(ours) > len(theirs) else '+'} {longer[0].strip()}"] if longer else []
