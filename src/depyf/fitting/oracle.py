"""A call compared with the versions of a function: which one serves it, and why each other one does not.

The answer as text is the same for a running function and for a dump::

    Decoder.forward, model.py:12: version [0/1] serves this call.

      [0/1]  fits
      [0/0]  does not fit: x.shape[0] must be 8, is 2 (model.py:14: y = self.up(x))
             would fit with x: f32[2, 4] -> f32[8, 4]
"""

from __future__ import annotations

import itertools
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from ..model.folding import fold
from ..model.guards import Comparison, Equals, State, Tensor
from ..model.reading import condition_of, in_shape_words
from ..records.model import CacheEntry, Compilation, Frame, Guard, GuardFailure, SourceLocation
from ..torch_text.parsed import literal
from ..torch_text.user_expressions import frame_roots, is_global, user_expression
from ..values import frozen
from .changes import smallest_change
from .conditions import Change, Finding, state_of, tried
from .given import UNKNOWN, Given, TensorValue, contiguous, shown


@frozen
class Failure:
    """The first condition of a version that a call does not meet."""

    subject: str  # what is compared, in the user's words: `"x.shape[0]"`
    # wanted, met: what it must be and what it is; `""` where unknown
    wanted: str = ""
    met: str = ""
    cause: SourceLocation | None = None  # the user line that made Dynamo guard, if known
    text: str = ""


@frozen
class VersionFit:
    """A version, compared with a call."""

    name: str  # torch's id of it, `"0/1"`
    fits: bool | None  # `None` where that cannot be decided from what was given
    failure: Failure | None = None  # why not
    # the smallest change of the call with which it would fit; `()` where none was found
    changes: tuple[Change, ...] = ()
    certain: bool = False  # with these changes it fits; otherwise there may be more to change
    undecided: tuple[tuple[str, int], ...] = ()  # what could not be decided: `(what it is on, how many conditions)`
    dropped: tuple[Failure, ...] = ()  # conditions that torch was asked to drop and that this call does not meet
    # the conditions that could not be decided from what was given
    open: tuple[Finding, ...] = field(default=(), repr=False, compare=False)
    # the number of conditions that do not hold; 0 where it is not known
    failing: int = field(default=0, repr=False, compare=False)


@frozen
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
        return text(self)


def fit(frame: Frame, given: Given, same: bool = False, compilations: Iterable[Compilation] = ()) -> Fit:
    """Compare a call with the recorded versions of a function.

    Args:
        given: what is known of the call (:func:`described_call`).
        same: assume what was not given as it was when each version was compiled, unless versions differ in it.
        compilations: those of the run, with the conditions of earlier versions that failed.
    """
    entries = sorted(frame.entries, key=lambda entry: (entry.tried is None, entry.tried or 0))
    assumed = _agreed(entries, compilations) if same else set()
    if same:  # (as are torch's settings that are the same for all versions)
        settings = [state_of(guard) for entry in entries for guard in entry.guards if guard.kind == "GLOBAL_STATE"]
        given = given.with_state({name: value for name, value in next(iter(settings), {}).items() if all(
            shown(each.get(name, UNKNOWN)) == shown(value) for each in settings)})
    versions = tuple(_version(entry, given, assumed) for entry in entries)
    return Fit(frame.title or frame.name, frame.location, versions,
               "torch would compile another version" if entries else "no version was recorded")


def _version(entry: CacheEntry, given: Given, assumed: set[str]) -> VersionFit:
    name = f"{entry.compile_id.frame}/{entry.compile_id.recompile}"
    findings = [tried(guard, given) for guard in entry.guards]
    failed = [finding for finding in findings if finding.holds is False]
    undecided = [finding for finding in findings if finding.holds is None
                 and (finding.guard.expression not in assumed or given.names(finding.missing))]
    if failed:
        first = failed[0]
        failure = Failure(first.subject, first.wanted, first.met, first.guard.cause, first.guard.raw)
        changes = smallest_change(entry.guards, given)
        return VersionFit(name, False, failure, changes, not undecided, failing=len(failed))
    owners = Counter(_owner(finding.missing, finding.guard) for finding in undecided)
    return VersionFit(name, None if undecided else True, undecided=tuple(owners.items()), open=tuple(undecided))


def failure_of(reason: GuardFailure) -> Failure:
    """Return torch's own reason, in words."""
    subject = in_shape_words(user_expression(reason.subject))
    return Failure(subject, reason.expected, reason.seen, reason.cause, reason.text)


def _owner(missing: str, guard: Guard) -> str:
    if is_global(guard.source or guard.expression):
        return "globals"
    if not guard.source and not frame_roots(guard.expression):
        return "torch's state"
    if missing.endswith(")"):
        return missing
    # (``type(self.attn).forward.__defaults__`` is of ``self.attn``.)
    path = missing.removeprefix("type(").replace(")", "", 1) if missing.startswith("type(") else missing
    head = path.partition("[")[0].partition(".")
    return f"{head[0]}.{head[2].partition('.')[0]}" if head[0] == "self" and head[2] else head[0]


def _agreed(entries: Sequence[CacheEntry], compilations: Iterable[Compilation]) -> set[str]:
    """Return the conditions that no other version contradicts.

    One that failed for a version though a later one has the same is not among them: its text lacks what differs.
    (Which modes of ``__torch_function__`` are on, torch compares without a text.)
    """
    failed = {each.compile_id.key: {failure.text for failure in each.guard_failures} for each in compilations}
    guards = [(entry, guard) for entry in entries for guard in entry.guards]
    agreed = {guard.expression for _, guard in guards}
    agreed -= {guard.expression for entry, guard in guards if guard.raw in failed.get(entry.compile_id.key, ())}
    by_source = [{about: {guard.expression for guard in of} for about, of in fold(entry.guards, _about).items()}
                 for entry in entries]
    for one, other in itertools.permutations(by_source, 2):
        for source in one.keys() & other.keys():
            if other[source] - one[source]:
                agreed -= one[source] - other[source]
    return agreed


def _about(guard: Guard) -> str:
    """Return what a condition is on: its source, or both sides where it says whether two globals are one object."""
    condition = condition_of(guard)
    if not guard.source and is_global(guard.expression) and isinstance(condition, Comparison) and (
            condition.sign in ("is", "is not")):
        return f"{condition.left} is {condition.right}"
    return guard.source


# --- The answer as text ------------------------------------------------------------------------------
#: Most versions that are shown.
_MOST = 20


def text(answer: Fit) -> str:
    """Return the answer as lines."""
    lines: list[str] = []
    where = answer.function + (f", {place_text(answer.location)}" if answer.location else "")
    if not answer.sizes:
        lines += [f"{where}: {verdict(answer)}.", ""]
        for version in answer.versions[:_MOST]:
            lines += _version_in_words(version)
        if len(answer.versions) > _MOST:
            lines.append(f"  ... and {len(answer.versions) - _MOST} more versions")
    for name, fits in answer.sizes.items():
        lines += _sizes(where, name, fits)
    return "\n".join(lines).rstrip() + "\n"


def verdict(answer: Fit) -> str:
    """Return the answer in one clause."""
    if answer.version is not None:
        return f"version [{answer.version}] serves this call"
    if answer.served is False:
        return f"no version serves this call{'; ' if answer.then else ''}{answer.then}"
    possible = [f"[{each.name}]" for each in answer.versions if each.fits is not False]
    if answer.served:
        return f"a version serves this call; which of {', '.join(possible)} is undecided"
    return f"undecided: {' or '.join(possible)} serves this call, or no version does"


def place_text(place: SourceLocation) -> str:
    """Return `model.py:12`."""
    return f"{os.path.basename(place.filename)}:{place.line}"


def _version_in_words(version: VersionFit) -> Iterator[str]:
    head = f"  [{version.name}]  "
    space = " " * len(head)
    if version.fits:
        yield f"{head}fits"
    elif version.fits is None:
        count = sum(number for _, number in version.undecided)
        owners = ", ".join(f"{number} on {name}" for name, number in version.undecided[:8])
        more = ", ..." if len(version.undecided) > 8 else ""
        conditions = "1 condition holds" if count == 1 else f"{count} conditions hold"
        yield f"{head}fits if {conditions} on what was not given: {owners}{more}"
    elif version.failure is not None:
        yield f"{head}does not fit: {failure_in_words(version.failure)}"
        if version.changes:
            changes = "; ".join(f"{each.path.replace('grad_mode', 'grad mode')}: {shown(each.before)} -> "
                                f"{shown(each.after)}" for each in version.changes)
            yield f"{space}{'would fit with' if version.certain else 'needs at least'} {changes}"
    for dropped in version.dropped:
        yield f"{space}a guard that torch skips on request does not hold: {failure_in_words(dropped)}"


def failure_in_words(why: Failure) -> str:
    """Return why a version does not fit: ``x.shape[0] must be 8, is 1 (model.py:14: y = self.up(x))``."""
    if why.wanted:
        words = f"{why.subject} must be {why.wanted}" + (f", is {why.met}" if why.met else "")
    else:
        words = why.subject or why.text
    if why.cause is None:
        return words
    return f"{words} ({place_text(why.cause)}{f': {why.cause.text}' if why.cause.text else ''})"


def _sizes(where: str, name: str, fits: Mapping[int, Fit]) -> Iterator[str]:
    yield f"{where}, {name}:"
    yield ""
    again, undecided = list[str](), list[str]()
    for size, answer in fits.items():
        result = "undecided"
        if answer.version is not None:
            result = f"[{answer.version}] serves it"
        elif answer.served is False:
            failed = [each for each in answer.versions if each.failure is not None]
            nearest = min(failed, default=None, key=lambda each: each.failing or len(each.changes) or len(fits) + _MOST)
            why = f": {failure_in_words(nearest.failure)}" if nearest and nearest.failure else ""
            result = f"compiled again{why}"
            again.append(str(size))
        if answer.served is None:
            undecided.append(str(size))
        yield f"  {size:>8}  {result}"
    yield ""
    if again:
        yield f"{len(again)} of {len(fits)} would compile again: {', '.join(again)}. (A version that torch " \
              "compiles for one of them may serve the others.)"
    else:
        yield f"None of {len(fits)} would compile again{', as far as that is decided' if undecided else ''}."
    if undecided:
        yield f"Undecided: {', '.join(undecided)}."
    yield ""


# --- what decides an undecided call ------------------------------------------------------------------
#: Most arguments and settings that are named.
_NAMED = 6
_OPEN_SIZE = 2  #: Written for a size that a version leaves open.


def advice(answer: Fit, likely: Fit) -> str:
    """Return what decides an undecided call, with values that a version asks for; ``""`` for a decided one.

    Args:
        likely: the answer if what was not given is as it was when each version was compiled.
    """
    if answer.version is not None or answer.served is False:
        return ""
    if likely.version is not None or likely.served is False:
        verdict = f"version [{likely.version}] serves this call" if likely.version else "no version serves this call"
        return f"If what was not given is as it was when each version was compiled (--same), {verdict}."
    before = "" if likely is answer else "--same "
    version = next(each for each in likely.versions if each.fits is None)
    args, state, objects = _needs(version)
    words_ = [*(["--args", *args[:_NAMED]] if args else []), *(["--state", *state[:_NAMED]] if state else [])]
    if not words_:
        return (f"Only the running program can answer, as it is on which object {_listed(objects)} is: "
                "depyf.fits(compiled, ...).")
    more = f" (and {len(args) - _NAMED} more)" if len(args) > _NAMED else ""
    cannot = (f"; which object {_listed(objects)} is, only depyf.fits in the running program can answer"
              if objects else "")
    return (f"Versions differ in what was not given; say it, as here for [{version.name}]: "
            f"{before}{' '.join(words_)}{more}{cannot}.")


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "") or "something"


def _needs(version: VersionFit) -> tuple[list[str], list[str], list[str]]:
    """Return arguments and settings that are missing, as they are written, and objects that cannot be written."""
    args, state, objects = dict[str, str](), dict[str, str](), dict[str, str]()
    for finding in version.open:
        name, _, missing = finding.missing.partition(" (")
        value = ""
        match condition_of(finding.guard):
            case State():
                state.update((name, _word(name, shown(value))) for name, value in state_of(finding.guard).items()
                             if name in missing.rstrip(")").split(", "))
                continue
            case Tensor() as one:
                shape = tuple(_OPEN_SIZE if size is None else size for size in one.size)
                name, value = one.subject, str(TensorValue(
                    shape, contiguous(shape), one.dtype, one.device, one.requires_grad, one.cls or "Tensor",
                    bool(one.inference)))
            case Equals(left=left, right=right) if left == name and (known := literal(right)) is not ...:
                value = shown(known, 200)
        (args if value else objects)[name] = _word(name, value)
    return list(args.values()), list(state.values()), [name for name in objects if name not in args]


def _word(name: str, value: str) -> str:
    """Return ``NAME=VALUE`` as it is typed in a shell."""
    word = f"{name}={value}"
    if not any(sign in word for sign in "(){}<>|&;*?!~#' \"\\$`"):
        return word
    return shlex.quote(word) if any(sign in word for sign in '"\\$`!') else f'"{word}"'
