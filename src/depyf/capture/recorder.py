"""The recorder: appends each record to the log as soon as it is complete, and has files written and linked.

    recorder.append(StageOfGraph("__compiled_fn_1", stage))
        log     {"record":"stage","graph":"__compiled_fn_1",...} is another line of records.jsonl
    recorder.writer.graph("__compiled_fn_1", stage, inputs)
        writer  __compiled_fn_1.Captured_Graph.0.py exists: running code may name it from now on
    recorder.link("__compiled_fn_1", "Captured_Graph", gm, stage.file)
        linker  the graph's function has the lines of that file

What was appended need not remain in memory: :meth:`Recorder.read` returns it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..records.model import (
    Branch,
    Bytecode,
    EndOfRecording,
    GraphBreak,
    GraphInput,
    GraphStage,
    Kernel,
    TransformedCode,
    UserFunction,
)
from ..records.naming import FileNames
from ..records.store import Recorded, RecordLog

if TYPE_CHECKING:
    from ..decompiler import Decompiled

R = TypeVar("R")


class DumpWriter(Protocol):
    """Writes the files that running code names (``depyf.views.dump.directory``). Their names are in the records."""

    names: FileNames
    #: Whether it writes anything. If not, texts are recorded as torch printed them.
    writes: bool

    def graph(self, graph: str, stage: GraphStage, inputs: tuple[GraphInput, ...]) -> None:
        """Write the text of a stage of a graph (``inputs``: of its captured graph)."""

    def kernel(self, kernel: Kernel) -> None:
        """Write a module that Inductor generated."""

    def transformed(
        self, code: TransformedCode, function: UserFunction, breaks: Sequence[GraphBreak] = (),
        branch: Branch | None = None,
    ) -> tuple[str, int, str] | None:
        """Write transformed code, with a header that says what it is of.

        Returns:
            ``(path, line at which the text begins, text of the whole file)``; ``None`` if that could not be written.
        """

    def code_object(self, name: str, kind: str, code: CodeType) -> None:
        """Write a code object of a function: ``"original"``, ``"transformed"`` or ``"recompiled"``."""

    def path_of(self, name: str) -> str:
        """Return the path of a file, whether it is written yet or not."""


class Linker(Protocol):
    """Links running code to files (``depyf.link``)."""

    def link_transformed(
        self, original: CodeType, transformed: CodeType, decompiled: Decompiled,
        place: tuple[str, int, str], rename: Any = None, facts: Any = None,
    ) -> CodeType | None:
        """Return the code to give back from the bytecode hook, or ``None`` to leave torch's."""

    def link_when_debugging(self, original: CodeType, transformed: CodeType, bytecode: Bytecode, path: str) -> None:
        """Have linked code run inside ``debug()`` only."""

    def link_graph(self, name: str, stage: str, target: Any, path: str) -> None:
        """Give what runs of a stage the lines of its file, now or when that is wanted."""


class Recorder:
    """Appends records, and has the files that running code names written and linked at once.

    ``attempt`` is the session's; without a linker nothing is linked.
    """

    def __init__(
        self, log: RecordLog, writer: DumpWriter, linker: Linker | None,
        attempt: Callable[[Callable[[], Any], Any], Any],
    ) -> None:
        self.writer = writer
        self.linker = linker
        self.names = writer.names
        self._log = log
        self._attempt = attempt

    def append(self, record: R) -> Recorded[R]:
        """Append a record. Where that cannot be done, return it as it is: all else continues."""
        recorded: Recorded[R] = self._attempt(lambda: self._log.append(record), record)
        return recorded

    def read(self, recorded: Recorded[R]) -> R:
        """Return a record again, from its place in the log."""
        return self._log.read(recorded)

    def link(self, graph: str, stage: str, target: Any, file: str) -> None:
        """Link what runs of a stage to its file."""
        if self.linker is not None:
            self.linker.link_graph(graph, stage, target, self.writer.path_of(file))

    def end(self, record: EndOfRecording, notes: Iterable[str]) -> None:
        """Append the end of the run, with the notes on it."""
        self._log.end(record, notes)

    def close(self) -> None:
        """Close the log of records."""
        self._log.close()
