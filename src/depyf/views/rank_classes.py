"""Classes of ranks that did the same, and in what a class differs from the others.

Of a thousand ranks nearly all do the same. Their files of records are compared as text
(:mod:`depyf.records.alike_files`), and of those that are alike one is read::

    RankClass(numbers=(0, 1, 2, 4, ... 1023), ...)     1022 ranks
    RankClass(numbers=(3,), ...)                       differs in the graph breaks of `f`

The records that are read are compared once more: a guard on a set has another order in each process. Times, caches and
ids are no difference.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..finishing.recorded import read_records
from ..model.folding import fold, listed_numbers
from ..records import store
from ..records.alike_files import AlikeFiles
from ..records.model import Capture, CompileId, GraphStage, Guard, Kernel
from ..records.run_directory import RANK
from ..torch_text.global_names import plain_name, resumed_function
from ..torch_text.run_ids import guard_text, module_lines, without_rank_ids
from .formatting import stage_name
from .markdown import code, listed, some

#: Fields that are no difference: times, caches, numbers that torch counts up, names of files made of these.
_NOT_COMPARED = frozenset({
    "start", "seconds", "phases", "timeline", "counts", "caches", "compile_id", "entry", "path", "file",
    "guards_file", "tried", "torch_name", "raw", "graph_names", "outline"})
#: Fields of a compilation, as what differs in them is called.
_OF_COMPILATION = {
    "breaks": "the graph breaks", "guard_failures": "the recompiles", "outcome": "what was compiled",
    "failure": "what was compiled", "backward_failure": "what was compiled", "restarts": "the restarts",
    "symbols": "the dynamic shapes", "stack": "the calls", "custom_ops": "the custom operators",
    "traced": "the traced lines", "arguments": "the arguments of `torch.compile`"}
#: What a class differs in, with what is known of it: ``("the graph breaks", "`f`")`` -> a digest for each compilation.
Facts = Mapping[tuple[str, str], tuple[bytes, ...]]


@dataclass(frozen=True, order=True)
class Member:
    """A rank of a class: its number, folder, own index (empty if it has none), and seconds of compiling."""

    number: int
    folder: str
    index: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class RankClass:
    """Ranks that did the same, with the records of the first, or why these cannot be read."""

    members: tuple[Member, ...]
    capture: Capture | None
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


def read_ranks(directory: str, folders: Mapping[int, str], index: str) -> list[RankClass]:
    """Return the ranks of a run by classes, in the order of the first of each."""
    files = AlikeFiles()
    groups: dict[object, list[Member]] = {}
    for number, name in folders.items():
        path = os.path.join(directory, name)
        try:
            key, took = files.add(path)
        except OSError as error:
            groups.setdefault("" if isinstance(error, FileNotFoundError) else name, []).append(Member(number, name))
        else:
            own = index if os.path.exists(os.path.join(path, index)) else ""
            groups.setdefault(key, []).append(Member(number, name, own, took))
    return merged(_read(directory, tuple(members)) for members in groups.values())


def classes_of(captures: Mapping[str, Capture]) -> list[RankClass]:
    """Return the classes of ranks whose records were read elsewhere, by folder (``"rank_0"``)."""
    return merged(_class((Member(
        int(folder.removeprefix(RANK)), folder, seconds=sum(each.seconds for each in capture.compilations)),), capture)
        for folder, capture in captures.items())


def _class(members: tuple[Member, ...], capture: Capture) -> RankClass:
    return RankClass(members, capture, store.NOT_ENDED not in capture.notes, facts=facts(capture))


def merged(classes: Iterable[RankClass]) -> list[RankClass]:
    """Return classes with those put together that differ in nothing that counts."""
    together = []
    for same in fold(classes, lambda each: (
            each.ended, each.trouble, each.capture is None, frozenset(each.facts.items()))).values():
        first = min(same, key=lambda each: each.members[0])
        together.append(dataclasses.replace(first, members=tuple(sorted(
            member for each in same for member in each.members))))
    return sorted(together, key=lambda each: each.members[0])


def in_words(numbers: Sequence[int]) -> str:
    """Return ``rank 3``, ``ranks 0-2, 4``; of many spans the first few."""
    spans = listed_numbers(numbers).split(", ")
    return ("rank " if len(numbers) == 1 else "ranks ") + some(spans, 8)


def most(classes: Sequence[RankClass]) -> RankClass:
    """Return the class with which the others are compared: the largest of those that ended, else of all."""
    return max([each for each in classes if each.ended] or classes, key=lambda each: len(each.numbers))


def _read(directory: str, members: tuple[Member, ...]) -> RankClass:
    path = os.path.join(directory, members[0].folder)
    try:
        capture = read_records(path)
    except store.RecordsError as error:
        missing = not os.path.exists(os.path.join(path, store.FILE))
        return RankClass(members, None, False, "nothing was compiled yet" if missing else str(error))
    return _class(members, capture)


# --- what is compared -----------------------------------------------------------------------------
def differences(one: RankClass, other: RankClass) -> list[str]:
    """Return in what two classes differ; of a run that did not end only the graphs are compared."""
    parts: dict[str, list[str]] = {}
    of_subjects: dict[str, list[str]] = {}
    ended = one.ended and other.ended
    for key in dict.fromkeys((*one.facts, *other.facts)):
        ours, theirs = one.facts.get(key, ()), other.facts.get(key, ())
        if ours == theirs:
            continue
        if not ended and (not key[0].endswith("graph") or all(one == other for one, other in zip(ours, theirs))):
            continue  # (the rest it may have lacked the time for)
        parts.setdefault(key[0], []).append(key[1])
    for part, subjects in parts.items():
        of_subjects.setdefault(some(subjects, 4) if subjects[0] else "", []).append(part)
    return [f"{listed(several)} of {subjects}" if subjects else "; ".join(several)
            for subjects, several in of_subjects.items()]


def facts(capture: Capture) -> Facts:
    """Return digests of what a run did, by what it is called."""
    result: dict[tuple[str, str], list[bytes]] = {}
    for part, subject, value in _parts(capture):
        result.setdefault((part, subject), []).append(hashlib.blake2b(repr(value).encode(
            "utf-8", "backslashreplace"), digest_size=12).digest())
    return {key: tuple(digests) for key, digests in result.items()}


def _parts(capture: Capture) -> Iterator[tuple[str, str, Any]]:
    for name, value in capture.environment.items():
        if name not in ("rank", "date", "command"):
            yield f"the environment ({name})", "", value
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
    for function in capture.functions:
        for frame in function.frames:
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
    for source in capture.sources:
        yield f"the file {code(source.path)}", "", source.text


def _compared(value: Any) -> Any:
    """Return a part of records without what is no difference."""
    match value:
        case str():
            return without_rank_ids(value)
        case Guard():
            return without_rank_ids(guard_text(value))
        case GraphStage():
            return value.stage, without_rank_ids(value.text), _compared(value.inputs)
        case Kernel():
            return tuple(module_lines(value.text))
        case CompileId():
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
