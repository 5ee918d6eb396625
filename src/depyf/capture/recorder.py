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

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ..records.model import EndOfRecording
from ..records.naming import FileNames
from ..records.store import Recorded, RecordLog

R = TypeVar("R")


class Recorder:
    """Appends records, and has the files that running code names written and linked at once.

    Args:
        writer: a :class:`depyf.views.dump.directory.Directory`; a ``Folder`` where all files are made later.
        linker: a :class:`depyf.link.linker.Linker`; ``None`` to link nothing.
        attempt: the session's.
    """

    def __init__(
        self, log: RecordLog, writer: Any, linker: Any, attempt: Callable[[Callable[[], Any], Any], Any],
    ) -> None:
        self.writer = writer
        self.linker = linker
        self.names: FileNames = writer.names
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
