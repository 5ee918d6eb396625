"""The account of one test: what it compiled, in numbers that can be sent from a worker of xdist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..records.model import Capture
from ..views.causes import cause
from ..views.findings import findings
from ..views.index.totals import Totals
from ..views.markdown import one_line
from ..views.run_index import RunIndex


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
