"""The answer of the guard oracle in plain text.

    Decoder.forward, model.py:12: version [0/1] serves this call.

      [0/1]  fits
      [0/0]  does not fit: x.shape[0] must be 8, is 2 (model.py:14: y = self.up(x))
             would fit with x: f32[2, 4] -> f32[8, 4]

It is the same for a running function and for a dump.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from ..records.model import SourceLocation
from .oracle import Failure, Fit, VersionFit
from .values import shown

#: Rows of one kind that are told.
_MOST = 20


def text(answer: Fit) -> str:
    """Return the answer as lines."""
    lines = [f"{_where(answer)}: {verdict(answer)}.", ""] if not answer.sizes else []
    if not answer.sizes:
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
    again = [size for size, answer in fits.items() if answer.served is False]
    open_ = [size for size, answer in fits.items() if answer.served is None]
    yield f"{where}, {name}:"
    yield ""
    for size, answer in fits.items():
        failed = [each for each in answer.versions if each.failure is not None]
        nearest = min(failed, key=lambda each: len(each.changes) or len(fits) + _MOST, default=None)
        why = f": {failure(nearest.failure)}" if answer.served is False and nearest and nearest.failure else ""
        yield f"  {size:>8}  {_short(answer)}{why}"
    yield ""
    if again:
        yield f"{len(again)} of {len(fits)} would compile again: {', '.join(map(str, again))}. (A version that torch " \
              "compiles for one of them may serve the others.)"
    else:
        yield f"None of {len(fits)} would compile again{', as far as that is decided' if open_ else ''}."
    if open_:
        yield f"Undecided: {', '.join(map(str, open_))}."
    yield ""


def _short(answer: Fit) -> str:
    if answer.version is not None:
        return f"[{answer.version}] serves it"
    if answer.served is False:
        return "compiled again"
    return "undecided"
