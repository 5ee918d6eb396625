"""The names of files that the records of a run hold: changed all at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .model import CacheEntry, Capture, Frame


def with_entries(capture: Capture, of: Callable[[Frame, CacheEntry], CacheEntry]) -> Capture:
    """Return the capture with other cache entries."""
    return replace(capture, functions=tuple(
        replace(function, frames=tuple(
            replace(frame, entries=tuple(of(frame, entry) for entry in frame.entries)) for frame in function.frames))
        for function in capture.functions))


def only_written(capture: Capture, is_written: Callable[[str], bool]) -> Capture:
    """Return the capture without the names of texts that are in no file.

    Args:
        is_written: whether there is a file of that name.
    """

    def name(file: str) -> str:
        return file if file and is_written(file) else ""

    graphs = tuple(
        replace(graph, stages=tuple(replace(stage, file=name(stage.file)) for stage in graph.stages),
                kernels=tuple(replace(kernel, file=name(kernel.file)) for kernel in graph.kernels))
        for graph in capture.graphs)
    return with_entries(replace(capture, graphs=graphs), lambda frame, entry: replace(
        entry, transformed=replace(entry.transformed, file=name(entry.transformed.file))))
