"""A compiled version as its reader knows it: by a number, with its conditions in the user's words."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...capture.records import CacheEntry, Compilation, Frame
from ..naming import legal_identifier
from .conditions import Condition, conditions
from .facts import Fact, facts
from .sizes import Sizes, open_sizes


@dataclass(frozen=True)
class Version:
    """A cache entry of a frame.

    Attributes:
        number: counts the versions of a frame in the order in which they were compiled.
        conditions: its guards in the user's words, in torch's order.
        sizes: the sizes that they leave open.
        compilation: how it was compiled, where that is known.
    """

    frame: Frame
    entry: CacheEntry
    number: int
    conditions: tuple[Condition, ...]
    sizes: Sizes
    compilation: Compilation | None = None

    @property
    def guards_name(self) -> str:
        return f"guards_{self.number}_for_{legal_identifier(self.frame.name)}"

    @functools.cached_property
    def facts(self) -> dict[str, Fact]:
        """What holds for each object."""
        return facts(self.conditions, self.sizes)

    @functools.cached_property
    def texts(self) -> frozenset[str]:
        """Its conditions, those on tensors with what is open in them."""
        return frozenset(one.text for one in self.conditions)

    @property
    def label(self) -> str:
        """``[0/1]``."""
        return str(self.entry.compile_id)


#: The versions of frames that several views of one run ask for, by the identity of the frame: ``(frame, versions)``.
_known: dict[int, tuple[Frame, list[Version]]] = {}


@contextlib.contextmanager
def remembered() -> Iterator[None]:
    """Inside of it the versions of a frame are made once, for all views of a run; the compilations are the same."""
    _known.clear()
    _remembers.append(None)
    try:
        yield
    finally:
        _remembers.pop()
        _known.clear()


#: Not empty inside of :func:`remembered`.
_remembers: list[None] = []


def versions(frame: Frame, compilations: Mapping[tuple[int, int, int], Compilation]) -> list[Version]:
    """Return the versions of a frame in the order in which they were compiled."""
    known = _known.get(id(frame))
    if known is not None and known[0] is frame:
        return known[1]
    found = _versions(frame, compilations)
    if _remembers:
        _known[id(frame)] = frame, found
    return found


def _versions(frame: Frame, compilations: Mapping[tuple[int, int, int], Compilation]) -> list[Version]:
    ordered = sorted(frame.entries, key=lambda entry: (_number(entry), entry.compile_id.key))
    result = []
    for number, entry in enumerate(ordered):
        compilation = compilations.get(entry.compile_id.key)
        found = conditions(entry.guards, frame)
        result.append(Version(frame, entry, number, tuple(found), open_sizes(found, frame, compilation), compilation))
    return result


def nearest(version: Version, compiled: Sequence[Version]) -> Version | None:
    """Return the version that a version is best told by: of those compiled before it, the one that has the most
    conditions in common; the latest of several. ``None`` for the first version."""
    mine = version.texts
    return max(compiled[: version.number], key=lambda other: (-len(mine ^ other.texts), other.number), default=None)


def _number(entry: CacheEntry) -> int:
    """The number that the name of the transformed code has."""
    found = re.search(r"def __transformed_code_(\d+)_for_", entry.transformed.source.text)
    return int(found[1]) if found else 0


def by_compile_id(compilations: Sequence[Compilation]) -> dict[tuple[int, int, int], Compilation]:
    return {compilation.compile_id.key: compilation for compilation in compilations}


def signature(frame: Frame) -> str:
    """The parameters as they stand in a ``def``; legal Python whatever torch named them."""
    text = frame.signature or ", ".join(frame.arguments)
    try:
        compile(f"def f({text}): ...", "signature", "exec")
    except (SyntaxError, ValueError):
        return ", ".join(legal_identifier(name) for name in frame.arguments)
    return text
