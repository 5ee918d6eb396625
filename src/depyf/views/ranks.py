"""Ranks of a run: classes of those that did the same, and ``index.md`` over all ranks.

Of a thousand ranks nearly all do the same. Their files of records are compared as text
(:class:`depyf.torch_text.run_ids.AlikeFiles`), and of those that are alike one is read::

    RankClass(numbers=(0, 1, 2, 4, ... 1023), ...)     1022 ranks
    RankClass(numbers=(3,), ...)                       differs in the graph breaks of `f`

The records that are read are compared once more: a guard on a set has another order in each process. Times, caches and
ids are no difference.

Each rank writes the folder ``rank_<n>`` (:func:`depyf.records.run_directory.run_directory`). The index beside them is
made again by each rank that ends, so that it is there whichever rank is killed; :func:`write_index` makes it at any
time, without torch and on any machine. Ranks that did the same have one row.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import budgets
from ..finishing.frames import read_records
from ..model.folding import fold, listed_numbers
from ..reading import contents
from ..records import model, store
from ..records.naming import with_entries
from ..records.run_directory import RANK, rank_folders
from ..torch_text.global_names import plain_name, resumed_function
from ..torch_text.run_ids import AlikeFiles, guard_text, module_lines, without_rank_ids
from ..torch_text.trace_table import executed
from ..values import frozen
from . import cache_keys, collectives
from .dump.folder import Folder
from .formatting import seconds, stage_name
from .index import stamped
from .index.index import FILE, index
from .markdown import code, count, link, listed, prose, some, table
from .run_index import RunIndex
from .verdict import Totals

#: Fields that are no difference: times, caches, numbers that torch counts up, names of files made of these.
_NOT_COMPARED = frozenset({
    "start", "seconds", "phases", "timeline", "counts", "caches", "compile_id", "entry", "path", "file",
    "guards_file", "tried", "torch_name", "raw", "graph_names", "outline"})
#: Fields of a compilation, as what differs in them is called.
_OF_COMPILATION = {
    "breaks": "the graph breaks", "guard_failures": "the recompiles", "outcome": "what was compiled",
    "failure": "what was compiled", "backward_failure": "what was compiled", "restarts": "the restarts",
    "symbols": "the dynamic shapes", "stack": "the calls",
    "traced": "the traced lines", "arguments": "the arguments of `torch.compile`"}
_ENVIRONMENT = "the environment"
#: What a class differs in, with facts about it: ``("the graph breaks", "`f`")`` -> a digest for each compilation.
Facts = Mapping[tuple[str, str], tuple[bytes, ...]]


@dataclass(frozen=True, order=True)
class Member:
    """A rank of a class: its number, folder, own index (empty if it has none), and seconds of compiling."""

    number: int
    folder: str
    index: str = ""
    seconds: float = 0.0


@frozen
class RankClass:
    """Ranks that did the same, with the records of the first, or why these cannot be read."""

    members: tuple[Member, ...]
    capture: model.Capture | None
    ended: bool
    trouble: str = ""
    facts: Facts = dataclasses.field(default_factory=dict)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The ranks."""
        return tuple(member.number for member in self.members)

    @property
    def name(self) -> str:
        """The class in words: ``rank 3``, ``ranks 0-2, 4``."""
        return in_words(self.numbers)


def read(directory: str) -> list[RankClass]:
    """Return the ranks of a run by classes, in the order of the first of each."""
    files = AlikeFiles()
    groups: dict[object, list[Member]] = {}
    for number, name in rank_folders(directory).items():
        path = os.path.join(directory, name)
        try:
            data = contents(os.path.join(path, store.FILE), budgets.RUN)
        except OSError as error:
            groups.setdefault("" if isinstance(error, FileNotFoundError) else name, []).append(Member(number, name))
        else:
            own = FILE if os.path.exists(os.path.join(path, FILE)) else ""
            groups.setdefault(files.add(data), []).append(Member(number, name, own, store.seconds_of(data)))
    return merged(_read(directory, tuple(members)) for members in groups.values())


def classes_of(captures: Mapping[str, model.Capture]) -> list[RankClass]:
    """Return the classes of ranks whose records were read elsewhere, by folder (``"rank_0"``)."""
    return merged(_class((Member(
        int(folder.removeprefix(RANK)), folder, seconds=sum(each.seconds for each in capture.compilations)),), capture)
        for folder, capture in captures.items())


def _class(members: tuple[Member, ...], capture: model.Capture) -> RankClass:
    first = members[0]
    members += tuple(Member(each.number, first.folder, first.index, each.seconds) for each in capture.alike_ranks)
    return RankClass(members, capture, store.NOT_ENDED not in capture.notes, facts=facts(capture))


def merged(classes: Iterable[RankClass]) -> list[RankClass]:
    """Return classes with those put together that differ in nothing that counts."""
    together = []
    for same in fold(classes, lambda each: (
            each.ended, each.trouble, each.capture is None, frozenset(each.facts.items()))).values():
        first = min(same, key=lambda each: each.members[0])
        together.append(replace(first, members=tuple(sorted(member for each in same for member in each.members))))
    return sorted(together, key=lambda each: each.members[0])


def in_words(numbers: Sequence[int]) -> str:
    """Return ``rank 3``, ``ranks 0-2, 4``; of many spans the first few."""
    spans = listed_numbers(numbers).split(", ")
    return ("rank " if len(numbers) == 1 else "ranks ") + some(spans, 8)


def _read(directory: str, members: tuple[Member, ...]) -> RankClass:
    path = os.path.join(directory, members[0].folder)
    try:
        capture = read_records(path)
    except store.RecordsError as error:
        missing = not os.path.exists(os.path.join(path, store.FILE))
        return RankClass(members, None, False, "nothing was compiled yet" if missing else str(error))
    return _class(members, capture)


# --- what is compared -----------------------------------------------------------------------------
def _differing_parts(one: RankClass, other: RankClass) -> list[str]:
    """Return in what two classes differ; of a run that did not end only the graphs are compared."""
    parts: dict[str, list[str]] = {}
    of_subjects: dict[str, list[str]] = {}
    for part, subject in dict.fromkeys((*one.facts, *other.facts)):
        ours, theirs = (each.facts.get((part, subject), ()) for each in (one, other))
        if ours == theirs or part.startswith(_ENVIRONMENT) and not (ours and theirs):
            continue
        if not (one.ended and other.ended) and (not part.endswith("graph") or all(map(operator.eq, ours, theirs))):
            continue  # (the rest it may have lacked the time for)
        parts.setdefault(part, []).append(subject)
    for part, subjects in parts.items():
        of_subjects.setdefault(some(subjects, 4) if subjects[0] else "", []).append(part)
    return [f"{listed(several)} of {subjects}" if subjects else "; ".join(several)
            for subjects, several in of_subjects.items()]


def facts(capture: model.Capture) -> Facts:
    """Return digests of what a run did, by what it is called."""
    result: dict[tuple[str, str], list[bytes]] = {}
    for part, subject, value in _parts(capture):
        result.setdefault((part, subject), []).append(hashlib.blake2b(repr(value).encode(
            "utf-8", "backslashreplace"), digest_size=12).digest())
    return {key: tuple(digests) for key, digests in result.items()}


def _parts(capture: model.Capture) -> Iterator[tuple[str, str, Any]]:
    for name, value in capture.environment.items():
        if name not in ("rank", "date", "command"):
            yield f"{_ENVIRONMENT} ({name})", "", value
    yield "the notes", "", [_compared(note) for note in capture.notes if note != store.NOT_ENDED]
    subjects: dict[tuple[int, ...], str] = {}
    for compilation in capture.compilations:
        meant = compilation.user_function
        subject = code(meant.name if meant else plain_name(compilation.function))
        subjects[compilation.compile_id.key] = subject
        for name, words in _OF_COMPILATION.items():
            value = getattr(compilation, name)
            if value:
                yield words, subject, (name, _compared(value))
        for key in filter(None, (lookup.key for lookup in compilation.caches)):
            yield "the key in Inductor's cache", subject, [
                (part.name, part.digest) for part in key if part.name not in cache_keys.OF_ONE_GRAPH]
    for frame in capture.frames:
        subject = code(frame.title or plain_name(frame.name))
        if resumed_function(frame.code_name) is None:  # (It is a part of the source of the function.)
            yield "the source", subject, _compared((frame.original.text, frame.location, frame.wrappers))
        for entry in frame.entries:
            yield "the guards", subject, [_compared(guard) for guard in entry.guards]
            yield "the transformed code", subject, _compared(entry.transformed)
    for graph in capture.graphs:
        subject = subjects.get(graph.compile_id.key, "")
        for stage in graph.stages:
            yield f"the {stage_name(stage)} graph", subject, _compared(stage)
        for kernel in graph.kernels:
            yield "the kernels", subject, _compared(kernel)
        if graph.collectives:
            yield "the collectives", subject, graph.collectives
        if graph.schedule:
            yield "the sizes of what kernels give", subject, [each.outputs for each in graph.schedule]
            yield "the estimated times", subject, [f"{each.estimate:.3g}" for each in graph.schedule]
    if order := executed(capture.events):
        yield "the order in which graphs run", "", order
    for source in capture.sources:
        yield f"the file {code(source.path)}", "", source.text


def _compared(value: Any) -> Any:
    """Return a part of records without what is no difference."""
    match value:
        case str():
            return without_rank_ids(value)
        case model.Guard():
            return without_rank_ids(guard_text(value))
        case model.GraphStage():
            return value.stage, without_rank_ids(value.text), _compared(value.inputs)
        case model.Kernel():
            return tuple(map(without_rank_ids, module_lines(value.text)))
        case model.CompileId():
            return None
        case tuple() | list():
            return tuple(map(_compared, value))
        case dict():
            return tuple((name, _compared(each)) for name, each in sorted(value.items()))
    if dataclasses.is_dataclass(value):
        kind: Any = type(value)
        return tuple(_compared(getattr(value, name)) for name in _fields(kind))
    return value


@functools.cache
def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind) if field.name not in _NOT_COMPARED)


# --- Index over all ranks ----------------------------------------------------------------------------
#: With more ranks than that, each reading all the others costs too much: rank 0 and the last one write the index.
FEW = 4
DIFFERENCES = 30  #: Functions whose differences are shown.


def write_index(
    directory: str, page: str = "", run: model.Capture | None = None, classes: Sequence[RankClass] | None = None
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
    killed = [(each.capture, each.members[0]) for each in classes if each.capture is not None and not each.ended]
    for capture, member in killed:
        folder = os.path.join(directory, member.folder)
        _written(folder, stamped(index(capture), folder))
    return _write_shared(directory, read(directory) if killed else classes)


def _write_shared(directory: str, classes: Sequence[RankClass] | None = None) -> str:
    for _ in range(5):
        state = _state(directory)
        path = _written(directory, ranks_index(read(directory) if classes is None else classes))
        # Another rank may have ended meanwhile, and may have written its index before we wrote this one.
        classes = None
        if _state(directory) == state:
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
        # A rank that runs still writes its own index: no other process may do that now.
        with contextlib.suppress(OSError):  # (the directory has warned)
            _write_shared(above)


def _state(directory: str) -> list[object]:
    """Return what the index over all ranks depends on: the records of each rank, and whether it has an index."""
    result: list[object] = []
    for name in rank_folders(directory).values():
        path = os.path.join(directory, name)
        try:
            status = os.stat(os.path.join(path, store.FILE))
            result.append((name, status.st_size, status.st_mtime_ns, os.path.exists(os.path.join(path, FILE))))
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
        lines += ["", "A rank that has not ended runs still or was killed; its folder contains what it had compiled "
                      "until then. What it lacks is not listed as a difference. `depyf report DIR` makes this index "
                      "again."]
    lines += ["", "## Where the ranks differ", ""]
    compared = sum(len(each.members) for each in classes if each.capture is not None)
    if compared < 2:
        lines.append("There is nothing to compare: fewer than two ranks left records.")
    elif differing := differences(classes):
        in_functions = _in_functions(classes)
        lines += [*differing, *([""] if in_functions else []), *in_functions]
    else:
        lines.append(f"Nowhere: {count(compared, 'rank')} compiled the same functions, broke at the same places, "
                     "recompiled for the same reasons and have the same graphs (ids and numbers of devices aside).")
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
    def linked(rank: Member, words: str = "") -> str:
        return link(f"{words}{rank.number}", f"{rank.folder}/{rank.index}" if rank.index else "")

    if len(ranks.members) <= FEW:
        return ", ".join(map(linked, ranks.members))
    first = next((each for each in ranks.members if each.index), ranks.members[0])
    return f"{count(len(ranks.members), 'rank')} alike: {ranks.name.partition(' ')[2]}; see {linked(first, 'rank ')}"


def time_of(ranks: RankClass) -> str:
    """Return how long compilations took: ``1.20 s``, ``1.20 s to 7.00 s (rank 3)``."""
    longest = max(ranks.members, key=lambda each: each.seconds)
    least, most = seconds(min(each.seconds for each in ranks.members)), seconds(longest.seconds)
    return least if least == most else f"{least} to {most} (rank {longest.number})"


def differences(classes: Sequence[RankClass]) -> list[str]:
    """Return how many ranks are alike, and in what the others differ, as lines of Markdown."""
    others = _differing(classes)
    if not others:
        return []
    common, captures = others[0][0], {each.name: each.capture for pair in others for each in pair[:2] if each.capture}
    lines = [f"{count(len(common.members), 'rank')} are alike ({common.name.partition(' ')[2]}).", ""] * (
        len(common.members) > 1)
    for _, each, parts in others:
        verb = "differs" if len(each.members) == 1 else "differ"
        lines.append(f"* {each.name[:1].upper()}{each.name[1:]} {verb} from {common.name} in {'; '.join(parts)}")
    return lines + [f"* {line}" for line in collectives.differences(captures)]


def _differing(classes: Sequence[RankClass]) -> list[tuple[RankClass, RankClass, list[str]]]:
    """Return the class with which others are compared, each that differs from it, and in what, as Markdown.

    It is, of those that ended, the one from which all differ least.
    """
    readable = [each for each in classes if each.capture is not None]
    ended = [each for each in readable if each.ended] or readable
    large = sorted(ended, key=lambda each: len(each.members), reverse=True)[:FEW]
    common = min(large, default=None, key=lambda one: sum(
        len(each.members) * len({key for key, _ in one.facts.items() ^ each.facts.items()}) for each in ended))
    return [(common, each, parts) for each in readable
            if common is not None and each is not common and (parts := _differing_parts(common, each))]


def _in_functions(classes: Sequence[RankClass]) -> list[str]:
    from .diff.difference import difference, graphs_of_both  # (most runs have one rank)

    parts: list[list[str]] = []
    for common, each, _ in _differing(classes):
        assert common.capture is not None and each.capture is not None
        captures = _without_ids(common.capture), _without_ids(each.capture)
        if common.ended and each.ended:
            functions = difference(*captures, hint="").functions
            if caches := cache_keys.between(*captures, of_ranks=True):
                functions["Inductor's cache"] = caches[1:]
        else:
            functions = graphs_of_both(*captures)
        parts += ([f"### {title}, from {common.name} to {each.name}", "", *items, ""]
                  for title, items in functions.items())
    lines = [line for part in parts[:DIFFERENCES] for line in part]
    left_out = len(parts) - DIFFERENCES
    return [*lines, f"... and {count(left_out, 'function')} more."] if left_out > 0 else lines[:-1]


def _without_ids(capture: model.Capture) -> model.Capture:
    """Return records without ids and numbers of devices, in the texts of guards, graphs and kernels."""
    graphs = tuple(replace(
        graph, stages=tuple(replace(each, text=without_rank_ids(each.text)) for each in graph.stages),
        kernels=tuple(replace(each, text=without_rank_ids(each.text)) for each in graph.kernels))
        for graph in capture.graphs)
    return with_entries(replace(capture, graphs=graphs), lambda frame, entry: replace(entry, guards=tuple(
        replace(each, expression=without_rank_ids(each.expression), raw=without_rank_ids(each.raw))
        for each in entry.guards)))
