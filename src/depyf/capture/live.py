"""The capture of a function that is compiled already, read from its cache entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any

from ..finishing.functions import finished
from ..guarded import guarded_call, missing
from ..records.model import Capture, CompiledGraph, CompileId, GraphStage
from ..records.naming import FileNames
from ..records.run_directory import environment
from ..torch_text.events import EventReader
from ..torch_text.global_names import without_ids
from ..torch_text.wrapping import legal_graph
from .codes import Codes, names_without_ids
from .fact_snapshot import snapshot
from .torch_private import cache_entries, graph_modules, resume_code
from .user_function import Meant, meant_by_frame


class _Log:
    """A log of records that is no file."""

    def append(self, record: Any) -> Any:
        return record

    read = append


def capture_of(
    code: CodeType, namespace: dict[str, Any], meant: Meant, values: Mapping[str, Any] | None = None,
) -> Capture:
    """Return the records of a code object and its resume functions (with graphs that still exist).

    ``values`` are its local variables, as far as they are known without a call.
    """
    def attempt(action: Callable[[], Any], otherwise: Any) -> Any:
        return guarded_call(action, otherwise, missing("part of what is compiled"))

    log: Any = _Log()
    codes = Codes(log, FileNames(), EventReader(), attempt, lambda note: None)
    graphs: dict[str, CompiledGraph] = {}
    pending, seen = [code], set[int]()
    while pending:
        current = pending.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        means, known = (meant, values or {}) if current is code else (meant_by_frame(current, {}, {}), {})
        for number, entry in enumerate(cache_entries.entries(current)):
            transformed, compile_id = entry.code, CompileId(*(entry.compile_id or (0, number)))
            resumes = resume_code.resume_functions(transformed, namespace)
            pending += [resume.code for resume in resumes.values()]
            matches = {name: graph_modules.GRAPH_NAME.match(name) for name in transformed.co_names}
            called = {name: match[1] for name, match in matches.items() if match is not None}
            for torch_name, name in called.items():
                graphs.setdefault(name, _graph(torch_name, name, namespace, compile_id))
            codes.add(compile_id, current, transformed, means, tuple(called.values()), resumes,
                      called | names_without_ids(transformed) | codes.shown_resumes(resumes),
                      attempt(lambda: snapshot(transformed, known, namespace), ""))
            codes.guarded_by(compile_id, without_ids(str(entry.guard_manager), namespace, {}))
    codes.end()
    return finished(Capture(
        graphs=tuple(graphs.values()), environment=environment(), unwritten=codes.unwritten(None)), attempt)


def _graph(torch_name: str, name: str, namespace: dict[str, Any], compile_id: CompileId) -> CompiledGraph:
    module = graph_modules.inner_graph_module(namespace.get(torch_name))
    if module is None:
        return CompiledGraph(name, torch_name, compile_id, "a backend that keeps no graph", ())
    stage = GraphStage("Captured_Graph", 0, legal_graph(graph_modules.readable(module)), False, compile_id)
    return CompiledGraph(name, torch_name, compile_id, "eager", (stage,))
