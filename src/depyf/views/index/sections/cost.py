"""The section on where the time went, and what torch's caches gave."""

from __future__ import annotations

from ... import cache_keys
from ...formatting import seconds
from ...markdown import code, prose
from ..totals import seconds_by_phase
from .context import SectionContext

#: Seconds of a phase that is listed: less is shown as nothing.
LEAST = 0.005
#: Guards of a version that take long enough at each call to be named, and the versions that are named.
_MANY_GUARDS, _VERSIONS = 500, 2


def cost(run: SectionContext) -> list[str]:
    """Return the section on compile time: by phase, the slowest compilations, the caches."""
    compilations = run.capture.compilations
    phases = seconds_by_phase(compilations)
    if not phases:
        return []
    total = sum(c.seconds for c in compilations)
    parts = ", ".join(f"{prose(name)} {seconds(phases[name])}" for name in phases if phases[name] >= LEAST)
    lines = ["## Cost", "",
             f"Compile time {seconds(total)} in all. By part (one inside of another counts in both): {parts}."]
    slowest = sorted(compilations, key=lambda c: -c.seconds)[:3]
    if len(compilations) > 5:
        lines += ["", "Slowest: " + ", ".join(
            f"{code(str(c.compile_id))} {run.subject(c)} {seconds(c.seconds)}" for c in slowest) + "."]
    lines += _guards(run)
    caches: dict[str, dict[str, int]] = {}
    bypassed: dict[str, int] = {}
    for compilation in compilations:
        for lookup in compilation.caches:
            outcomes = caches.setdefault(lookup.cache, {})
            outcomes[lookup.outcome] = outcomes.get(lookup.outcome, 0) + 1
            if lookup.outcome == "bypass" and lookup.reason:
                bypassed[lookup.reason] = bypassed.get(lookup.reason, 0) + 1
    if caches:
        plural = {"hit": "hits", "miss": "misses", "bypass": "bypasses"}
        lines += ["", "Torch's caches: " + "; ".join(
            f"{code(name)} " + ", ".join(f"{number} {prose(outcome if number == 1 else plural.get(outcome, outcome))}"
                                         for outcome, number in counts.items())
            for name, counts in caches.items()) + "."]
        lines += [f"Bypassed because: {prose(reason, 200)} ({number})." for reason, number in
                  list(bypassed.items())[:3]]
    return [*lines, *cache_keys.within(run.capture)]


def _guards(run: SectionContext) -> list[str]:
    """Return what the guards of the versions that have most of them take at each call."""
    known = [(len(entry.guards), each) for each in run.capture.compilations
             if (entry := run.entry(each)) is not None and len(entry.guards) >= _MANY_GUARDS]
    lines: list[str] = []
    for number, each in sorted(known, key=lambda one: -one[0])[:_VERSIONS]:
        took = each.counts.get("guard_microseconds", 0) / 1000
        measured = f", which takes {took:.2f} ms" if took else ""
        lines += ["", f"Each call that {code(str(each.compile_id))} {run.subject(each)} serves checks {number:,} "
                      f"guards{measured}."]
    return lines
