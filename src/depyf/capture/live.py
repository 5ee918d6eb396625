"""The capture of a function that is compiled already, read from its cache entries."""

from __future__ import annotations

from collections.abc import Mapping
from types import CodeType
from typing import Any

from ..bytecode.code import Code
from ..decompiler import decompile_code
from ..decompiler.dynamo.facts import Facts
from ..finishing.frames import Meaning, code_text, make_frame
from ..guarded import guarded_call, warn_of
from ..records.model import (
    CacheEntry,
    Capture,
    CompiledFunction,
    CompiledGraph,
    CompileId,
    GraphStage,
    TransformedCode,
)
from ..records.naming import FunctionNames, function_identifier
from ..records.run_directory import environment
from ..torch_text.global_names import without_ids
from ..torch_text.guards import parse_guards
from ..torch_text.wrapping import legal_graph
from .codes import names_without_ids
from .fact_snapshot import snapshot
from .torch_private import cache_entries, graph_modules, resume_code
from .user_function import Meant, meant_by_frame


def capture_of(
    code: CodeType, namespace: dict[str, Any], meant: Meant, values: Mapping[str, Any] | None = None,
) -> Capture:
    """Return the records of a code object and its resume functions (with graphs that still exist).

    ``values`` are its local variables, as far as they are known without a call.
    """
    frames = []
    graphs: dict[str, CompiledGraph] = {}
    names = FunctionNames()
    pending: list[tuple[str, CodeType]] = [(function_identifier(meant.name), code)]
    seen: set[int] = set()
    while pending:
        name, current = pending.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        entries = []
        known = values or {} if current is code else {}
        for number, entry in enumerate(cache_entries.entries(current)):
            transformed = entry.code
            compile_id = CompileId(*(entry.compile_id or (0, number)))
            resumes = resume_code.resume_functions(transformed, namespace)
            pending += [(n, resume.code) for n, resume in resumes.items()]
            rename = names_without_ids(transformed)
            graph_names = []
            for torch_name in transformed.co_names:
                match = graph_modules.GRAPH_NAME.match(torch_name)
                if match is not None:
                    rename[torch_name] = graph_name = match.group(1)
                    graph_names.append(graph_name)
                    graphs.setdefault(graph_name, _graph(
                        torch_name, graph_name, namespace, CompileId(*(entry.compile_id or (0, 0)))))
            source = decompile_code(
                transformed, name=names.transformed(meant.name if current is code else current.co_name), simplify=True,
                rename=rename, parameter_names={n: resume.parameters for n, resume in resumes.items()},
                facts=guarded_call(
                    lambda: Facts(snapshot(transformed, known, namespace)), Facts(),
                    lambda error: warn_of(error, "some expressions are shown in torch's long form")))
            record = TransformedCode(
                compile_id, name, code_text(source), None, tuple(transformed.co_varnames[: transformed.co_argcount]))
            guards = parse_guards(without_ids(str(entry.guard_manager), namespace, {}))
            entries.append(CacheEntry(compile_id, guards, record, tuple(graph_names),
                                      tried=None if entry.given_up else number))
        means = meant if current is code else meant_by_frame(current, {}, {})
        frames.append(make_frame(Code.of(current), name, tuple(entries), Meaning(
            means.name, Code.of(means.code), tuple((called, Code.of(each)) for called, each in means.wrappers))))
    return Capture((CompiledFunction(frames[0].name, tuple(frames)),), tuple(graphs.values()), (), environment())


def _graph(torch_name: str, name: str, namespace: dict[str, Any], compile_id: CompileId) -> CompiledGraph:
    module = graph_modules.inner_graph_module(namespace.get(torch_name))
    if module is None:
        return CompiledGraph(name, torch_name, compile_id, "a backend that keeps no graph", ())
    stage = GraphStage("Captured_Graph", 0, legal_graph(graph_modules.readable(module)), False, compile_id)
    return CompiledGraph(name, torch_name, compile_id, "eager", (stage,))
