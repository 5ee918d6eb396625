"""Graphs without a Dynamo frame, in words: ``compiled by `compile_fx` at `app.py:12```."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..records.model import CompiledGraph, SourceLocation
from .markdown import code, count


def by_call(graph: CompiledGraph, place: Callable[[SourceLocation], str] | None = None) -> list[str]:
    """Return the sentence on the call that a graph was compiled by, in Markdown; none where torch compiled a frame.

    Args:
        graph: its records.
        place: the words for the line that called; ``None``: its path.
    """
    if graph.call is None:
        return []
    call = graph.call
    where = place(call) if place is not None else code(f"{call.filename}:{call.line}")
    if graph.by_compiler:
        # (Without generated code nothing tells whether the call came to its end.)
        what = "compiled by" if graph.kernels else "given to"
        return [f"{what} {code(call.function)}" + (f" at {where}" if call.filename else "")]
    return [f"shown at {where} in {code(call.function)}, while nothing was compiled"]


def without_frame(graphs: Iterable[CompiledGraph]) -> list[CompiledGraph]:
    """Return the graphs that were compiled, or only shown, without a Dynamo frame."""
    return [graph for graph in graphs if graph.call is not None]


def total(graphs: Iterable[CompiledGraph]) -> str:
    """Return ``2 graphs by direct calls of a compiler``; ``""`` for none."""
    number = sum(graph.by_compiler for graph in without_frame(graphs))
    return f"{count(number, 'graph')} by direct calls of a compiler" if number else ""
