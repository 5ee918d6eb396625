"""The choice of functions and stages to write: a part of the records of a run. What is compiled is never chosen."""

from __future__ import annotations

import fnmatch
import os
from dataclasses import replace

from ..provenance.sources import collect
from ..records.model import Capture, CompiledGraph
from ..values import frozen
from .function_summary import FunctionSummary
from .run_index import RunIndex


@frozen
class Choice:
    """A choice of what to keep. An empty tuple keeps all."""

    # include, exclude: patterns of the shell for functions. One with a `/` or that ends in `.py` fits the file of a
    # function (its whole path or an end of it), any other its qualified name or the last part of it. A function is
    # included or left out together with its resume functions, graphs, breaks and recompiles
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()  # names of backends, of whose graphs to keep the stages and kernels
    # as `GraphStage.stage` has them, and `"kernels"`. Links from line to kernel that lead through a stage which is left
    # out are lost
    stages: tuple[str, ...] = ()

    def of(self, capture: Capture) -> Capture:
        """Return the part of a run that is chosen. A note says that there was more."""
        kept = [summary for summary in RunIndex(capture).summaries
                if (not self.include or any(fits(pattern, summary) for pattern in self.include))
                and not any(fits(pattern, summary) for pattern in self.exclude)]
        functions = {id(summary.function) for summary in kept}
        keys = {compilation.compile_id.key for summary in kept for compilation in summary.compilations}
        keys |= {entry.compile_id.key for summary in kept if summary.function
                 for frame in summary.function.frames for entry in frame.entries}
        chosen = replace(
            capture,
            functions=tuple(each for each in capture.functions if id(each) in functions),
            compilations=tuple(each for each in capture.compilations if each.compile_id.key in keys),
            graphs=tuple(self._graph(each) for each in capture.graphs if each.compile_id.key in keys
                         or each.call is not None and not self.include))
        left_out = len(capture.functions) - len(chosen.functions)
        note = "only a part of the run is here, as it was asked for: " + ", ".join(
            f"{what} {', '.join(items)}" for what, items in (
                ("functions like", self.include), ("no functions like", self.exclude), ("graphs of", self.backends),
                ("of graphs only", self.stages)) if items) \
            + (f" ({left_out} compiled functions are left out)" if left_out else "")
        named = {each.path for each in collect(chosen)}
        return replace(
            chosen, notes=(note, *chosen.notes), sources=tuple(each for each in chosen.sources if each.path in named))

    def _graph(self, graph: CompiledGraph) -> CompiledGraph:
        if self.backends and graph.backend not in self.backends:
            return replace(graph, stages=(), kernels=())
        if not self.stages:
            return graph
        return replace(
            graph, stages=tuple(stage for stage in graph.stages if stage.stage in self.stages or stage.internal),
            kernels=graph.kernels if "kernels" in self.stages else ())


def fits(pattern: str, summary: FunctionSummary) -> bool:
    """Return whether a pattern means a function."""
    if "/" in pattern or os.sep in pattern or pattern.endswith(".py"):
        path = (summary.location.filename if summary.location else "").replace(os.sep, "/")
        pattern = pattern.replace(os.sep, "/")
        return fnmatch.fnmatchcase(path, pattern) or fnmatch.fnmatchcase(path, f"*/{pattern.removeprefix('./')}")
    names = {summary.title, summary.name, summary.title.rpartition(".")[2]}
    return any(fnmatch.fnmatchcase(name, pattern) for name in names)


def files_of(capture: Capture) -> set[str]:
    """Return the names of the files that the records of a run name."""
    names = {function.file for function in capture.functions}
    names |= {entry.transformed.file for entry in capture.entries}
    for graph in capture.graphs:
        names |= {name for stage in graph.stages for name in (stage.file, stage.outline)}
        names |= {name for kernel in graph.kernels for name in (kernel.file, kernel.outline)}
    return names - {""}
