"""Results of a comparison."""

from __future__ import annotations

from dataclasses import dataclass

from ..watch.origins import UserLine


@dataclass(frozen=True)
class Difference:
    """The first place where a stage gives something else.

    Attributes:
        stage: ``"captured"``, ``"aot"`` or ``"inductor"``.
        kind: ``"node"``, ``"kernel"``, or ``"result"`` where no single node or kernel was found.
        name: of the node or kernel; of the result, ``"result[0]"``.
        graph: number of the captured graph, from 1; 0 where it is not known.
        backward: it is in a backward graph.
        nodes: of a kernel: what it computes.
        against: what it was compared with, in words.
        max_difference: the largest absolute difference; infinite where the values cannot be subtracted.
        user_lines: the user's lines that it comes from.
    """

    stage: str
    kind: str
    name: str
    graph: int = 0
    backward: bool = False
    nodes: tuple[str, ...] = ()
    against: str = ""
    max_difference: float = 0.0
    user_lines: tuple[UserLine, ...] = ()

    def __str__(self) -> str:
        where = f" of graph {self.graph}" if self.graph else ""
        where += ", backward" if self.backward else ""
        text = f"{self.kind} {self.name}{where}: differs by {self.max_difference:.3g}"
        if self.against:
            text += f" from {self.against}"
        if self.nodes:
            text += f"\n    it computes {', '.join(self.nodes)}"
        return text + "".join(f"\n    {line}" for line in self.user_lines)


@dataclass(frozen=True)
class StageResult:
    """The result of comparing a stage with eager Python.

    Attributes:
        stage: ``"captured"``, ``"aot"`` or ``"inductor"``.
        title: in words.
        equal: all results (changed arguments and buffers, and gradients, too) are within the tolerance.
        max_difference: the largest absolute difference of all results.
        differing: names of the results that differ.
        first: where it begins; ``None`` where all is equal.
        failure: why the stage could not run; empty if it ran.
        graphs: how many graphs ran.
    """

    stage: str
    title: str
    equal: bool
    max_difference: float = 0.0
    differing: tuple[str, ...] = ()
    first: Difference | None = None
    failure: str = ""
    graphs: int = 0


@dataclass(frozen=True)
class Comparison:
    """The result of :func:`depyf.compare`; ``print`` it.

    Attributes:
        function: its name.
        stages: in the order in which torch makes them.
        notes: what was not looked at, and why.
    """

    function: str
    stages: tuple[StageResult, ...]
    notes: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """All stages ran and gave what eager Python gives."""
        return all(stage.equal for stage in self.stages)

    @property
    def first(self) -> Difference | None:
        """The first difference in the first stage that has one."""
        return next((stage.first for stage in self.stages if stage.first is not None), None)

    def stage(self, name: str) -> StageResult:
        """Return a stage by its name.

        Raises:
            KeyError: it was not compared.
        """
        for stage in self.stages:
            if stage.stage == name:
                return stage
        raise KeyError(name)

    def __str__(self) -> str:
        rows = [("stage", "against eager", "max difference", "first difference")]
        for stage in self.stages:
            if stage.failure:
                rows.append((stage.title, "did not run", "", stage.failure.split("\n")[0][:100]))
                continue
            first = ""
            if stage.first is not None:
                first = f"{stage.first.kind} {stage.first.name}"
                if stage.first.user_lines:
                    line = stage.first.user_lines[0].location
                    more = len(stage.first.user_lines) - 1
                    first += f", {line.filename}:{line.line}" + (f" and {more} more" if more else "")
            rows.append((stage.title, "equal" if stage.equal else "DIFFERENT", f"{stage.max_difference:.3g}", first))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [f"{self.function}:"]
        lines += ["  " + "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[3]]).rstrip()
                  for row in rows]
        if self.first is not None:
            lines.append(f"first difference, in {next(s.title for s in self.stages if s.first is not None)}:")
            lines += [f"  {line}" for line in str(self.first).split("\n")]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)
