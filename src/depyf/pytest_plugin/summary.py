"""What each test compiled, in numbers, and the lines at the end of ``pytest --depyf``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..program.summary import shown
from ..records.model import Capture
from ..views.causes import cause
from ..views.findings import findings
from ..views.index.totals import Totals
from ..views.markdown import count, one_line
from ..views.run_index import RunIndex

#: Tests that are listed one by one.
MOST = 20


def summary(accounts: Sequence[Account], directory: str, troubles: Sequence[str]) -> list[str]:
    """Return what the tests compiled: in all, then each test in which something broke or was compiled again.

    Args:
        accounts: of tests that compiled something.
        directory: of their folders.
        troubles: what could not be recorded, and why.
    """
    lines = [f"not recorded: {trouble}" for trouble in dict.fromkeys(troubles)]
    if not accounts:
        return lines or ["no test compiled anything, so nothing was written"]
    lines.append(f"{count(len(accounts), 'test')} compiled something: " + _numbers(
        sum(each.graphs for each in accounts), sum(each.breaks for each in accounts),
        sum(each.recompiles for each in accounts), sum(each.skipped for each in accounts))
        + f", {sum(each.seconds for each in accounts):.1f} s of compiling")
    worth = [each for each in accounts if not each.well]
    for each in worth[:MOST]:
        first = f" ({each.first})" if each.first else ""
        lines.append(f"  {each.name}: {_numbers(each.graphs, each.breaks, each.recompiles, each.skipped)}{first}")
    if len(worth) > MOST:
        lines.append(f"  ... and {len(worth) - MOST} more")
    example = (worth or accounts)[0]
    return [*lines, f"written to {shown(directory)}, a folder for each test: depyf explain {shown(example.folder)}"]


def _numbers(graphs: int, breaks: int, recompiles: int, skipped: int) -> str:
    parts = [count(graphs, "graph")]
    parts += [count(number, word) for number, word in ((breaks, "graph break"), (recompiles, "recompile")) if number]
    return ", ".join([*parts, f"{skipped} skipped"] if skipped else parts)


# --- the account of one test -------------------------------------------------------------------------
@dataclass(frozen=True)
class Account:
    """What a test compiled.

    Attributes:
        name: of the test, or of the file that was collected.
        folder: where its dump is.
        first: the first of what went wrong, in words; empty where nothing did.
    """

    name: str
    folder: str
    graphs: int
    breaks: int
    recompiles: int
    skipped: int
    seconds: float
    first: str = ""

    @classmethod
    def of(cls, name: str, folder: str, capture: Capture) -> Account:
        """Return the account of what was recorded."""
        run = RunIndex(capture)
        totals, skipped = Totals.of(run), findings(run, "skipped")
        broken = next((each for c in capture.compilations for each in c.breaks), None)
        first = ""
        if broken is not None:
            where = broken.location
            first = (f"{run.short_place(where)}: " if where else "") + one_line(cause(broken), 100)
        return cls(name, folder, totals.graphs, totals.breaks, totals.recompiles, len(skipped), totals.seconds, first)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Account:
        """Return the account that :meth:`plain` was of."""
        return cls(**values)

    def plain(self) -> dict[str, Any]:
        """Return it as numbers and text alone."""
        return asdict(self)

    @property
    def well(self) -> bool:
        """Return whether nothing broke, was compiled again or was left out."""
        return not (self.breaks or self.recompiles or self.skipped)
