"""A call compared with the versions of a function: which one serves it, and why each other one does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..model.reading import in_shape_words
from ..records.model import CacheEntry, Frame, Guard, GuardFailure, SourceLocation
from ..torch_text.user_expressions import is_global, user_expression
from .changes import Change, smallest_change
from .conditions import Finding, state_of, tried
from .given import UNKNOWN, Given
from .values import shown


@dataclass(frozen=True)
class Failure:
    """The first condition of a version that a call does not meet.

    Attributes:
        subject: what is compared, in the user's words: ``"x.shape[0]"``.
        wanted, met: what it must be and what it is; ``""`` where unknown.
        cause: the user line that made Dynamo guard, if known.
        text: torch's own words.
    """

    subject: str
    wanted: str = ""
    met: str = ""
    cause: SourceLocation | None = None
    text: str = ""


@dataclass(frozen=True)
class VersionFit:
    """A version, compared with a call.

    Attributes:
        name: torch's id of it, ``"0/1"``.
        fits: ``None`` where that cannot be decided from what was given.
        failure: why not.
        changes: the smallest change of the call with which it would fit; ``()`` where none was found.
        certain: with these changes it fits; otherwise there may be more to change.
        undecided: what could not be decided: ``(what it is on, how many conditions)``.
        dropped: conditions that torch was asked to drop and that this call does not meet.
        open: the conditions that could not be decided from what was given.
    """

    name: str
    fits: bool | None
    failure: Failure | None = None
    changes: tuple[Change, ...] = ()
    certain: bool = False
    undecided: tuple[tuple[str, int], ...] = ()
    dropped: tuple[Failure, ...] = ()
    open: tuple[Finding, ...] = field(default=(), repr=False, compare=False)


@dataclass(frozen=True)
class Fit:
    """The answer of :func:`depyf.fits`: which version of a function serves a call. ``print`` it.

    Attributes:
        function: in the user's words.
        location: where it begins.
        version: the version that serves the call, ``"0/1"``; ``None`` if none does, or that is undecided.
        served: some version serves it (``True``), none does (``False``), or that is undecided (``None``).
        versions: all of them, in the order in which torch tries them.
        then: what torch does if none serves it, ``""`` where that is not known.
        sizes: for each requested list of sizes, the answers by size.
    """

    function: str
    location: SourceLocation | None
    versions: tuple[VersionFit, ...]
    then: str = ""
    sizes: Mapping[str, Mapping[int, Fit]] = field(default_factory=dict)

    @property
    def served(self) -> bool | None:
        """Return whether some version serves the call."""
        if any(each.fits for each in self.versions):
            return True
        return None if any(each.fits is None for each in self.versions) else False

    @property
    def version(self) -> str | None:
        """Return the version that serves the call: the first that fits, if none before it is undecided."""
        first = next((each for each in self.versions if each.fits is not False), None)
        return first.name if first is not None and first.fits else None

    def __str__(self) -> str:
        from .text import text

        return text(self)


def fit(frame: Frame, given: Given, same: bool = False) -> Fit:
    """Compare a call with the recorded versions of a function.

    Args:
        frame: the function.
        given: what is known of the call (:func:`described_call`).
        same: assume what was not given as it was when each version was compiled, unless versions differ in it.
    """
    entries = sorted(frame.entries, key=lambda entry: (entry.tried is None, entry.tried or 0))
    assumed = _agreed(entries) if same else frozenset()
    given = given.with_state(_agreed_state(entries)) if same else given
    versions = tuple(_version(entry, given, assumed) for entry in entries)
    return Fit(frame.title or frame.name, frame.location, versions,
               "torch would compile another version" if entries else "no version was recorded")


def _version(entry: CacheEntry, given: Given, assumed: frozenset[str]) -> VersionFit:
    name = f"{entry.compile_id.frame}/{entry.compile_id.recompile}"
    findings = [tried(guard, given) for guard in entry.guards]
    failed = [finding for finding in findings if finding.holds is False]
    undecided = [finding for finding in findings if finding.holds is None
                 and (finding.guard.expression not in assumed or given.names(finding.missing))]
    if failed:
        return VersionFit(name, False, failure(failed[0]), smallest_change(entry.guards, given), not undecided)
    return VersionFit(name, None if undecided else True, undecided=_grouped(undecided),
                      open=tuple(undecided))


def failure_of(reason: GuardFailure) -> Failure:
    """Return torch's own reason, in words."""
    subject = in_shape_words(user_expression(reason.subject))
    return Failure(subject, reason.expected, reason.seen, reason.cause, reason.text)


def failure(finding: Finding) -> Failure:
    """Return a condition that does not hold, in words."""
    return Failure(finding.subject, finding.wanted, finding.met, finding.guard.cause, finding.guard.raw)


def _grouped(undecided: Iterable[Finding]) -> tuple[tuple[str, int], ...]:
    counts: dict[str, int] = {}
    for finding in undecided:
        name = _owner(finding.missing, finding.guard)
        counts[name] = counts.get(name, 0) + 1
    return tuple(counts.items())


def _owner(missing: str, guard: Guard) -> str:
    if not guard.source or is_global(guard.source):
        return "globals" if guard.source else "torch's state"
    if missing.endswith(")"):
        return missing
    # (``type(self.attn).forward.__defaults__`` is of ``self.attn``.)
    path = missing.removeprefix("type(").replace(")", "", 1) if missing.startswith("type(") else missing
    head = path.partition("[")[0].partition(".")
    return f"{head[0]}.{head[2].partition('.')[0]}" if head[0] == "self" and head[2] else head[0]


def _agreed(entries: Sequence[CacheEntry]) -> frozenset[str]:
    """Return the conditions that no other version contradicts."""
    by_source: list[dict[str, set[str]]] = []
    for entry in entries:
        sources: dict[str, set[str]] = {}
        for guard in entry.guards:
            sources.setdefault(guard.source, set()).add(guard.expression)
        by_source.append(sources)
    contradicted = {
        expression for one in by_source for other in by_source if one is not other
        for source, expressions in one.items() if source in other and other[source] != expressions
        for expression in expressions - other[source] if other[source] - expressions}
    return frozenset(guard.expression for entry in entries for guard in entry.guards) - contradicted


def _agreed_state(entries: Sequence[CacheEntry]) -> dict[str, Any]:
    """Return torch's settings that are the same for all versions."""
    settings = [state_of(guard) for entry in entries for guard in entry.guards if guard.kind == "GLOBAL_STATE"]
    first = settings[0] if settings else {}
    return {name: value for name, value in first.items()
            if all(shown(each.get(name, UNKNOWN)) == shown(value) for each in settings)}
