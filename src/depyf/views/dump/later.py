"""A run of which only records are written; its files are made when they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import CodeType

from ...records import store
from ...records.model import Branch, GraphBreak, GraphInput, GraphStage, Kernel, TransformedCode, UserFunction
from ...records.naming import FileNames
from ...records.run_directory import versions_and_rank
from .folder import TITLE, Folder


class RecordsOnly(Folder):
    """Names the files of a run and writes none (the dump writer of a capture session)."""

    writes = False

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
        """Refuse: a code object can only be written while it exists.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("code objects cannot be written later")


def index_of_records(environment: Mapping[str, str]) -> str:
    """Return the text of ``index.md`` of a run whose files are not made yet.

    Args:
        environment: of this process; its texts contain no Markdown.
    """
    return (f"{TITLE}\n\nThe run is in `{store.FILE}` ({versions_and_rank(environment)}). The files to read are made "
            "when\nsomebody wants them: in this directory\n\n"
            "* `depyf report .` makes them all, this one too;\n"
            "* `depyf open .` makes them and shows the page;\n"
            "* `depyf explain .`, `depyf diff` and `depyf check` make them first.\n")
