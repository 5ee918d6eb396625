"""Further differences between a version that was compiled again and an earlier one that is like it.

Torch names the first guard that failed and stops there: with that one mended, the next one fails. The guards of both
versions show the others::

    len(self.history): 0 -> 1             torch says this
    len(self.critic.stats): 0 -> 1        this would have failed next
    self.history[0]: not looked at -> 3   the new version is for this value alone
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..model.guards import is_internal_of_object
from ..model.reading import is_literal, keys_in
from ..torch_text.guard_failures import are_numbers
from .changes import in_words, value
from .dump.guards.versions import Change, Side, Version, changes
from .markdown import code

#: Differences that are listed one by one.
MOST = 3


def _row(change: Change) -> str:
    """Return ``len(self.critic.stats)``: 0 → 1, as Markdown."""
    loops = f" ({code(change.loops)})" if change.loops else ""
    if change.was.kind == "none":
        return f"{code(change.subject)} has to be {value(change.now.value)} now{loops}"
    return f"{code(change.subject)}: {_side(change.was)} → {_side(change.now)}{loops}"


def _side(side: Side) -> str:
    """Return a value; of a size that is open the range, or what it is equal to."""
    if side.kind == "equal":
        return f"equal to {code(side.value)}"
    return side.value if side.kind == "open" else value(side.value)


def version_differences(old: Version, new: Version, names: Mapping[str, str]) -> list[Change]:
    """Return what the older version asks and the newer does not, then the values that the newer alone looks at."""
    failing: list[Change] = []
    asked: list[Change] = []
    for change in changes(old, new):
        if not change.subject or change.seen_by or is_internal_of_object(change.subject):
            continue
        subject = in_words(change.subject, names)
        if change.now.kind == "none" or change.was.kind in ("type", "object"):
            continue
        was, now = (replace(each, value=in_words(each.value, names)) if each.kind == "equal" else each
                    for each in (change.was, change.now))
        is_open = (was.kind in ("equal", "open") or are_numbers((was.value,))) and (
            change.subject in new.sizes.open or now.kind in ("equal", "open", "type"))
        if was.kind != "none" or is_literal(now.value):
            same = failing if was.kind != "none" else asked
            same.append(replace(change, subject=subject, was=was, now=now, is_open=is_open))
    # (A size that changes is often open in the next version. A value of the program's own may change at each call.)
    return sorted(failing, key=lambda each: ".shape[" in each.subject) + ([] if _ends_earlier(old, new) else asked)


def _ends_earlier(old: Version, new: Version) -> bool:
    """Return whether a graph break that the newer version does not have cut the older version short."""
    places = [[broken.location for broken in version.compilation.breaks] if version.compilation is not None else []
              for version in (old, new)]
    return any(place not in places[1] for place in places[0])


def keywords(old: Version, new: Version, more: int) -> tuple[tuple[str, bool], ...]:
    """Return the keyword arguments that only one version got, and whether that is the newer; none if not certain."""
    was, now = (_looked_at(version) for version in (old, new))
    gone, came = [name for name in was if name not in now], [name for name in now if name not in was]
    if more > 0 and len(came) == more and not gone:
        return tuple((name, True) for name in came)
    if more < 0 and len(gone) == -more and not came:
        return tuple((name, False) for name in gone)
    return ()


def _looked_at(version: Version) -> list[str]:
    return list(dict.fromkeys(name for one in version.conditions for owner, key in keys_in(one.subject)
                              if owner == "kwargs" and (name := key[1:-1]).isidentifier()))


def as_row(old: Version, new: Version, differences: Iterable[Change]) -> str:
    """Return the differences as a clause; ``""`` where there are none."""
    rows = list(map(_row, differences))
    if not rows:
        return ""
    shown = rows if len(rows) <= MOST + 1 else rows[:MOST]
    more = f"; and {len(rows) - len(shown)} more: {code(new.guards_file)}" if len(shown) < len(rows) else ""
    return f"{code(new.label)} differs from {code(old.label)} in this, too: {'; '.join(shown)}{more}"
