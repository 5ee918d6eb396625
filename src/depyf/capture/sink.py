"""The writer that a session hands its findings to: files, and what ties running code to them."""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import Any, Protocol

from ..decompiler import Decompiled
from ..records.model import Branch, GraphBreak, GraphInput, GraphStage, Kernel, TransformedCode, UserFunction


class Sink(Protocol):
    """Destination of texts; what writes a file returns its path, or ``None`` if there is none."""

    def graph(self, graph: str, stage: GraphStage, inputs: tuple[GraphInput, ...]) -> str | None:
        """Args: inputs: of the captured graph."""

    def kernel(self, graph: str, kernel: Kernel) -> str | None: ...

    def transformed(
        self, code: TransformedCode, function: UserFunction, breaks: Sequence[GraphBreak] = (),
        branch: Branch | None = None,
    ) -> tuple[str, int, str] | None:
        """``(path, line of the file at which the text begins, text of the file)``.

        Args:
            code: its record.
            function: that the user means.
            breaks: where its graph ends before the function does.
            branch: the branch that it continues.
        """

    def code_object(self, name: str, kind: str, code: CodeType) -> None: ...

    def record(self, record: Any) -> None:
        """A record of a kind that :mod:`depyf.records.store` writes, complete as far as the run has come."""


class GraphLinker(Protocol):
    """Ties running code to files (see ``depyf.link``)."""

    def link_transformed(
        self, original: CodeType, transformed: CodeType, decompiled: Decompiled,
        place: tuple[str, int, str], rename: Any = None, facts: Any = None,
    ) -> CodeType | None: ...

    def link_when_debugging(
        self, original: CodeType, transformed: CodeType, decompiled: Decompiled,
        place: tuple[str, int, str], rename: Any = None, facts: Any = None,
    ) -> bool: ...

    def link_graph(self, name: str, stage: str, target: Any, text: str, path: str) -> bool: ...
