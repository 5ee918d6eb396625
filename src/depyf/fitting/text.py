"""The answer of the guard oracle in plain text.

    Decoder.forward, model.py:12: version [0/1] serves this call.

      [0/1]  fits
      [0/0]  does not fit: x.shape[0] must be 8, is 2 (model.py:14: y = self.up(x))
             would fit with x: f32[2, 4] -> f32[8, 4]

It is the same for a running function and for a dump.
"""

from __future__ import annotations

import ast
import contextlib
import os
import shlex
from collections.abc import Iterator, Mapping

from ..model.guards import Equals, Tensor
from ..model.reading import condition_of
from ..records.model import SourceLocation
from .conditions import Finding, state_of
from .oracle import Failure, Fit, VersionFit
from .values import TensorValue, contiguous, shown

#: Most versions that are shown.
_MOST = 20


def text(answer: Fit) -> str:
    """Return the answer as lines."""
    lines: list[str] = []
    if not answer.sizes:
        lines += [f"{_where(answer)}: {verdict(answer)}.", ""]
        for version in answer.versions[:_MOST]:
            lines += _version(version)
        if len(answer.versions) > _MOST:
            lines.append(f"  ... and {len(answer.versions) - _MOST} more versions")
    for name, fits in answer.sizes.items():
        lines += _sizes(_where(answer), name, fits)
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


def _where(answer: Fit) -> str:
    place = answer.location
    return answer.function + (f", {place_text(place)}" if place else "")


def place_text(place: SourceLocation) -> str:
    """Return `model.py:12`."""
    return f"{os.path.basename(place.filename)}:{place.line}"


def _version(version: VersionFit) -> Iterator[str]:
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
        yield f"{head}does not fit: {failure(version.failure)}"
        if version.changes:
            changes = "; ".join(f"{each.path.replace('grad_mode', 'grad mode')}: {shown(each.before)} -> "
                                f"{shown(each.after)}" for each in version.changes)
            yield f"{space}{'would fit with' if version.certain else 'needs at least'} {changes}"
    for dropped in version.dropped:
        yield f"{space}a guard that torch skips on request does not hold: {failure(dropped)}"


def failure(why: Failure) -> str:
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
            nearest = min(failed, key=lambda each: len(each.changes) or len(fits) + _MOST, default=None)
            result = "compiled again" + (f": {failure(nearest.failure)}" if nearest and nearest.failure else "")
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
#: Written for a size that a version leaves open.
_OPEN_SIZE = 2


def advice(answer: Fit, likely: Fit) -> str:
    """Return what decides an undecided call, with values that a version asks for; ``""`` for a decided one.

    Args:
        answer: the answer.
        likely: the answer if what was not given is as it was when each version was compiled.
    """
    if _decided(answer):
        return ""
    if _decided(likely):
        verdict = f"version [{likely.version}] serves this call" if likely.version else "no version serves this call"
        return f"If what was not given is as it was when each version was compiled (--same), {verdict}."
    return _to_give(likely, "" if likely is answer else "--same ")


def _decided(answer: Fit) -> bool:
    return answer.version is not None or answer.served is False


def _to_give(answer: Fit, before: str) -> str:
    version = next(each for each in answer.versions if each.fits is None)
    args, state, objects = _needs(version)
    words_ = [*(["--args", *args[:_NAMED]] if args else []), *(["--state", *state[:_NAMED]] if state else [])]
    if not words_:
        return (f"Only the running program can tell, as it is on which object {_listed(objects)} is: "
                "depyf.fits(compiled, ...).")
    more = f" (and {len(args) - _NAMED} more)" if len(args) > _NAMED else ""
    cannot = f"; which object {_listed(objects)} is, only depyf.fits in the running program can tell" if objects else ""
    return (f"Versions differ in what was not given; say it, as here for [{version.name}]: "
            f"{before}{' '.join(words_)}{more}{cannot}.")


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "") or "something"


def _needs(version: VersionFit) -> tuple[list[str], list[str], list[str]]:
    """Return arguments and settings that are missing, as they are written, and objects that cannot be written."""
    args: dict[str, str] = {}
    state: dict[str, str] = {}
    objects: dict[str, str] = {}
    for finding in version.open:
        settings = state_of(finding.guard)
        missing = finding.missing.partition("(")[2].rstrip(")").split(", ")
        state.update((name, _word(name, shown(value))) for name, value in settings.items() if name in missing)
        if settings:
            continue
        name, value = _needed(finding)
        if value:
            args[name] = _word(name, value)
        else:
            objects.setdefault(name, name)
    return list(args.values()), list(state.values()), [name for name in objects if name not in args]


def _needed(finding: Finding) -> tuple[str, str]:
    """Return what a condition is on, and a value that meets it; ``""`` where none can be written."""
    name = finding.missing.partition(" (")[0]
    match condition_of(finding.guard):
        case Tensor() as one:
            shape = tuple(_OPEN_SIZE if size is None else size for size in one.size)
            return one.subject, str(TensorValue(shape, contiguous(shape), one.dtype, one.device, one.requires_grad,
                                                one.cls or "Tensor", one.inference))
        case Equals(left=left, right=right) if left == name:
            with contextlib.suppress(ValueError):
                return name, shown(ast.literal_eval(right), 200)
    return name, ""


def _word(name: str, value: str) -> str:
    """Return ``NAME=VALUE`` as it is typed in a shell."""
    word = f"{name}={value}"
    if not any(sign in word for sign in "(){}<>|&;*?!~#' \"\\$`"):
        return word
    return shlex.quote(word) if any(sign in word for sign in '"\\$`!') else f'"{word}"'
