"""A run of which only records are written: its files are made of them when somebody wants to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import CodeType

from ...records import store
from ...records.file_names import only_written
from ...records.model import Branch, Capture, GraphBreak, GraphInput, GraphStage, Kernel, TransformedCode, UserFunction
from ...records.naming import FileNames
from ..nothing import TITLE, versions
from .folder import INDEX, NOTES, Folder


class RecordsOnly(Folder):
    """Names the files of a run and writes none (the dump writer of a capture session)."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.names = FileNames()

    def graph(self, graph: str, stage: GraphStage, inputs: tuple[GraphInput, ...]) -> None:
        """Leave a stage for later."""

    def kernel(self, kernel: Kernel) -> None:
        """Leave a module that Inductor generated for later."""

    def transformed(
        self, code: TransformedCode, function: UserFunction, breaks: Sequence[GraphBreak] = (),
        branch: Branch | None = None,
    ) -> tuple[str, int, str] | None:
        """Leave transformed code for later."""
        return None

    def code_object(self, name: str, kind: str, code: CodeType) -> None:
        """Refuse: a code object can only be written while there is one.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("code objects cannot be written later")

    def written(self, name: str) -> str | None:
        """Return ``None``: no file was written."""
        return None


def keep(capture: Capture, folder: Folder) -> Capture:
    """Write the records of a run, and an ``index.md`` that says what makes the rest.

    Returns:
        The capture as it was recorded.
    """
    capture = only_written(capture, lambda _: False)
    folder.write(store.FILE, "".join(store.lines(capture)))
    folder.write(INDEX, index_of_records(capture.environment))
    if capture.notes:
        folder.write(NOTES, "\n".join(capture.notes) + "\n")
    return capture


def is_kept(capture: Capture) -> bool:
    """Return whether the files of a run that came to its end are still to be made."""
    return store.NOT_ENDED not in capture.notes and bool(capture.functions or capture.graphs) \
        and not any(function.file for function in capture.functions) \
        and not any(stage.file for graph in capture.graphs for stage in graph.stages)


def index_of_records(environment: Mapping[str, str]) -> str:
    """Return the text of ``index.md`` of a run whose files are to be made.

    Args:
        environment: of the run.
    """
    return (f"{TITLE}\n\nThe run is in `{store.FILE}` ({versions(environment)}). It was watched with `later`: the "
            "files\nto read are made when somebody wants them. In this directory\n\n"
            "* `depyf report .` makes them all, this one too;\n"
            "* `depyf open .` makes them and shows the page;\n"
            "* `depyf explain .`, `depyf diff` and `depyf check` need none.\n")
