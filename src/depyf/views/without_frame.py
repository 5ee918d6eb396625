"""Graphs without a Dynamo frame, in words: ``compiled by `compile_fx` at `app.py:12```."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..records.model import CompiledGraph, SourceLocation
from .markdown import code, count


def what_called(graph: CompiledGraph) -> str:
    """Return what called or was called, in Markdown; ``""`` for a graph of a frame."""
    if graph.call is None:
        return ""
    if not graph.by_compiler:
        return f"shown by {code(graph.call.function)} in a thread that compiled nothing,"
    # (Without generated code it is unknown whether the call returned.)
    return f"{'compiled by' if graph.kernels else 'given to'} {code(graph.call.function)}"


def by_call(graph: CompiledGraph, place: Callable[[SourceLocation], str] | None = None) -> list[str]:
    """Return the sentence on the call that a graph was compiled by, in Markdown; none where torch compiled a frame.

    Args:
        graph: its records.
        place: the words for the line that called; ``None``: its path.
    """
    call = graph.call
    if call is None:
        return []
    where = place(call) if place is not None else code(f"{call.filename}:{call.line}")
    return [f"{what_called(graph)} at {where}" if call.filename else what_called(graph)]


def without_frame(graphs: Iterable[CompiledGraph]) -> list[CompiledGraph]:
    """Return the graphs that were compiled, or only shown, without a Dynamo frame.

    (A call that raised before there was a graph has none.)
    """
    return [graph for graph in graphs if graph.call is not None and (graph.stages or graph.kernels)]


def total(graphs: Iterable[CompiledGraph]) -> str:
    """Return ``2 graphs by direct calls of a compiler``; ``""`` for none."""
    number = sum(graph.by_compiler for graph in without_frame(graphs))
    return f"{count(number, 'graph')} by direct calls of a compiler" if number else ""
