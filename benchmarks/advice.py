"""The share of graph breaks, skips and recompiles that advice answers (``make advice``).

    python benchmarks/advice.py [--dumps DIR] [--write docs/measured/advice.md]

What runs, on ``eager`` or ``aot_eager``, is what ``identical_runs.py`` runs: the models of ``architectures.py`` (those
of ``make legible``) at two input lengths, and the programs of tests/zoo; and the programs of tests/advice/corpus.txt.
An event is answered where depyf names a change in the user's file or a setting of torch. Functions without anything to
compile need no advice, and are left out. The exit status is 1 where a share is missed.
"""

from __future__ import annotations

import argparse
import collections
import os
import pathlib
import platform
import tempfile

import fix_programs
import identical_runs
from _shared import dated, table

from depyf.recorded_runs import captures_of
from depyf.records.model import Capture
from depyf.views.advice import Adviser
from depyf.views.findings import is_lost
from depyf.views.run_index import RunIndex
from depyf.views.verdict import wrapper_of

WANTED = 0.9
KINDS = ("breaks", "skips", "recompiles")


class Tally:
    """What was answered of one group of programs, and what was not."""

    def __init__(self) -> None:
        self.all: collections.Counter[str] = collections.Counter()
        self.answered: collections.Counter[str] = collections.Counter()
        self.open: collections.Counter[str] = collections.Counter()

    def add(self, kind: str, answered: bool, what: str) -> None:
        self.all[kind] += 1
        self.answered[kind] += answered
        if not answered:
            self.open[f"{kind}: {what}"] += 1

    def count(self, capture: Capture) -> None:
        run = RunIndex(capture)
        adviser = Adviser(run)
        for each in capture.compilations:
            set_up, outer = adviser.on_set_up(each), adviser.on_outer_break(each)
            for broken in each.breaks:
                known = adviser.on_break(broken) is not None or bool(wrapper_of(each, broken) or set_up)
                text = broken.location.text if broken.location else ""
                self.add("breaks", known, f"{broken.registry_id} {broken.reason.splitlines()[0]}: `{text}`")
            if is_lost(each):
                reason = each.failure.reason.partition("\n")[0] if each.failure else ""
                self.add("skips", bool(adviser.on_lost(each)), reason)
            elif each.guard_failures:
                changes = run.changes(each)
                self.add("recompiles", bool(adviser.on([each]) or outer), changes[0].subject if changes else "")


def dumps(top: pathlib.Path) -> None:
    """Makes the dumps of the groups that are missing."""
    for group in ("models", "zoo"):
        if not (top / group).exists():
            (top / group).mkdir(parents=True)
            identical_runs.started([identical_runs.__file__, "--work", group, str(top / group)])
    if (top / "corpus").exists():
        return
    (top / "corpus").mkdir()
    for case in fix_programs.cases():
        folder = top / "corpus" / case.name
        folder.mkdir()
        path = folder / f"{case.name}.py"
        path.write_text(case.before, encoding="utf-8")
        fix_programs.ForkedRunner(str(path), 60, folder / "dump")({})


def tally(folder: pathlib.Path) -> Tally:
    result = Tally()
    for path in sorted(folder.iterdir()):
        path = path / "dump" if (path / "dump").is_dir() else path
        for capture in captures_of(str(path)).values():
            result.count(capture)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dumps", type=pathlib.Path, help="dumps that were made before; made there if it is new")
    parser.add_argument("--write", type=pathlib.Path)
    given = parser.parse_args()
    import torch

    with tempfile.TemporaryDirectory() as temporary:
        top = given.dumps or pathlib.Path(temporary)
        dumps(top)
        tallies = {group: tally(top / group) for group in ("models", "zoo", "corpus")}
        models = len(list((top / "models").iterdir()))
    rows, left, good = [], [], True
    for kind in KINDS:
        events = sum(each.all[kind] for each in tallies.values())
        answered = sum(each.answered[kind] for each in tallies.values())
        good &= answered >= WANTED * events
        rows.append((kind, *(f"{each.answered[kind]} of {each.all[kind]}" for each in tallies.values()),
                     f"{answered} of {events}: {answered / max(events, 1):.0%}", f"{WANTED:.0%}"))
    for group, each in tallies.items():
        left += [(group, what, number) for what, number in each.open.most_common()]
    text = table(("with advice", *tallies, "all", "to reach"), rows)
    text += f"\n## Without advice\n\n{table(('in', 'event', 'times'), left)}"
    print(text)
    if given.write:
        given.write.write_text(
            f"# Advice\n\n{dated()}, Python {platform.python_version()}, torch {torch.__version__}, {os.cpu_count()} "
            f"cores. Command: `make advice`.\n\n{models} models of `benchmarks/architectures.py` at two input lengths, "
            "the programs of `tests/zoo` and of `tests/advice/corpus.txt`. Counted are events that depyf answers "
            "with a change in the user's file or a setting of torch; functions that have nothing to compile are left "
            f"out.\n\n{text}", encoding="utf-8")
    raise SystemExit(not good)


if __name__ == "__main__":
    main()
