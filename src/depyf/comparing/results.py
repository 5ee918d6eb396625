"""Results of a comparison."""

from __future__ import annotations

import textwrap

from ..values import frozen
from ..watch.origins import UserLine

_SHOWN = 8  #: So many places that differ, or are not judged, are shown.


@frozen
class Difference:
    """The first place where a stage differs."""

    stage: str  # `"captured"`, `"aot"` or `"inductor"`
    kind: str  # `"node"`, `"kernel"`, or `"result"` where no single node or kernel was found
    name: str  # of the node or kernel; of the result, `"result[0]"`
    graph: int = 0  # number of the captured graph, from 1; 0 where it is not known
    backward: bool = False  # it is in a backward graph
    nodes: tuple[str, ...] = ()  # those that a kernel computes
    against: str = ""  # what it was compared with, in words
    max_difference: float = 0.0  # the largest absolute difference; infinite where the values cannot be subtracted
    user_lines: tuple[UserLine, ...] = ()  # the user's lines that it comes from

    def __str__(self) -> str:
        where = f" of graph {self.graph}" * bool(self.graph) + ", backward" * self.backward
        return "\n    ".join((
            f"{self.kind} {self.name}{where}: differs by {self.max_difference:.3g}" + f" from {self.against}" * bool(
                self.against), *([f"it computes {', '.join(self.nodes)}"] if self.nodes else []),
            *map(str, self.user_lines)))


class Judged:
    """What was judged: ``failure``, places that are ``differing`` and ``not_judged``."""

    failure: str
    differing: tuple[str, ...]
    not_judged: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """It ran, all that the call leaves was compared, and it is what it leaves in eager Python."""
        return not (self.failure or self.differing or self.not_judged)


@frozen
class StageResult(Judged):
    """The result of comparing a stage with eager Python."""

    stage: str  # `"captured"`, `"aot"` or `"inductor"`
    title: str  # in words
    max_difference: float = 0.0  # the largest absolute difference of all results, rounding included
    differing: tuple[str, ...] = ()  # names of the results that differ
    not_judged: tuple[str, ...] = ()  # names of the results that differ between runs of eager Python, with the reason
    first: Difference | None = None  # where the difference begins; `None` where nothing differs
    failure: str = ""  # why the stage could not run; empty if it ran
    graphs: int = 0  # the number of graphs that ran

    @property
    def verdict(self) -> str:
        """``"equal"``, ``"DIFFERENT"``, ``"partly judged"`` or ``"did not run"``."""
        if self.failure:
            return "did not run"
        return "DIFFERENT" if self.differing else "partly judged" if self.not_judged else "equal"


@frozen
class Fault:
    """The part of a compiled version that is at fault, as far as that can be derived by running parts of it."""

    #: `"guard"`, `"graph"`, `"kernel"`, `"backward graph"`, `"backend"`, `"transformed code"`, `"side effect"` or
    #: `"cache"` (torch's compile cache); `"version"` where no part could be named
    part: str
    name: str  # of the node, kernel, function or effect; for a guard what it should be about
    text: str  # how that was found, in words
    user_lines: tuple[UserLine, ...] = ()  # the user's lines that it comes from

    def __str__(self) -> str:
        return f"{self.part} {self.name}: {self.text}" + "".join(f"\n    {line}" for line in self.user_lines)


@frozen
class RunningResult(Judged):
    """The result of judging the compiled versions that exist, as they are."""

    #: the versions that ran: `"forward [0/1]"`, resume functions with the line that they continue
    served: tuple[str, ...] = ()
    #: no version of the function itself fits the call; what torch would compile was judged, compiled separately as the
    #: program would do it (with its compile caches)
    nothing_fits: bool = False
    differing: tuple[str, ...] = ()  # each place that is different, and how, in words
    not_judged: tuple[str, ...] = ()  # each place that was not compared, and why, in words
    #: what was judged in a compilation made afresh, and why; empty where it was the versions that exist
    remade: str = ""
    fault: Fault | None = None  # the part at fault; `None` where nothing is different, or no part was looked for
    failure: str = ""  # why the versions could not be judged; empty if they were

    def __str__(self) -> str:
        if self.failure:
            return f"the versions that exist were not judged: {self.failure}"
        ran = f"what runs ({', '.join(self.served) or 'no compiled version'})"
        if self.nothing_fits:
            ran = f"what torch would compile, as no version fits this call ({', '.join(self.served) or 'nothing'})"
        verdict = "DIFFERENT" if self.differing else "equal where it was compared" if self.not_judged else "equal"
        lines = [f"{ran}: {verdict}"]
        for before, items in (("", self.differing), ("not judged: ", self.not_judged)):
            lines += [f"  {before}{each}" for each in items[:_SHOWN]]
            lines += [f"  {before}{len(items) - _SHOWN} more"] if len(items) > _SHOWN else []
        if self.remade:
            lines.append(f"  ({self.remade})")
        if self.fault is not None:
            lines.append(textwrap.indent(f"at fault: {self.fault}", "  "))
        return "\n".join(lines)


@frozen
class Comparison:
    """The result of :func:`depyf.compare`; ``print`` it."""

    function: str  # its name
    stages: tuple[StageResult, ...]  # compiled afresh, in the order in which torch makes them
    notes: tuple[str, ...] = ()  # what was not looked at, and why
    #: the versions that exist, as they are; `None` where the function is not compiled
    running: RunningResult | None = None

    @property
    def equal(self) -> bool:
        """What runs left what eager Python leaves, and all stages ran and did, too; everything was compared."""
        return all(stage.equal for stage in self.stages) and (self.running is None or self.running.equal)

    @property
    def different(self) -> bool:
        """What runs, or a stage that ran, left something else than eager Python."""
        return any(stage.differing for stage in self.stages) or bool(self.running and self.running.differing)

    @property
    def first(self) -> Difference | None:
        """The first difference in the first stage that has one."""
        return next((stage.first for stage in self.stages if stage.first is not None), None)

    def stage(self, name: str) -> StageResult:
        """Return a stage by its name; raise ``KeyError`` where it was not compared."""
        return {stage.stage: stage for stage in self.stages}[name]

    def __str__(self) -> str:
        lines = [f"{self.function}:"]
        if self.running is not None:
            lines += [textwrap.indent(str(self.running), "  "), *(["  compiled afresh:"] if self.stages else [])]
        lines += self._table() if self.stages else []
        for stage in [each for each in self.stages if each.first is not None][:1]:
            lines += [f"first difference, in {stage.title}:", textwrap.indent(str(stage.first), "  ")]
        lines += [f"not judged: {stage.title}: {each}" for stage in self.stages for each in stage.not_judged]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)

    def _table(self) -> list[str]:
        rows = [("stage", "against eager", "max difference", "first difference")]
        for stage in self.stages:
            first = f"{stage.first.kind} {stage.first.name}" if stage.first is not None else ""
            if stage.first is not None and stage.first.user_lines:
                line, *more = stage.first.user_lines
                first += f", {line.location.filename}:{line.location.line}{f' and {len(more)} more' if more else ''}"
            rows.append((stage.title, stage.verdict, "" if stage.failure else f"{stage.max_difference:.3g}",
                         " ".join(stage.failure.split())[:200] or first))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        return ["  " + "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[3]]).rstrip()
                for row in rows]
