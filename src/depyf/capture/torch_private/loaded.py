"""What a compiled graph is made of, as it is loaded: the generated module, its graph, their texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any, NamedTuple

from . import graph_modules, private_api

_KERNEL = re.compile(r"^(\w+) = async_compile\.\w+\(", re.MULTILINE)


class LoadedGraph(NamedTuple):
    """A compiled graph as it is loaded.

    Attributes:
        name: the global that transformed code calls.
        text: the graph: after Inductor's passes, or as the backend runs it; empty where neither is kept.
        kernels: text of each generated kernel, by name.
    """

    name: str
    text: str
    kernels: dict[str, str]


def loaded_graphs(code: Any, namespace: dict[str, Any]) -> list[LoadedGraph]:
    """Return the graphs that transformed code calls, in order."""
    found = []
    for name in code.co_names:
        if graph_modules.GRAPH_NAME.match(name) is not None and name in namespace:
            found.append(loaded_graph(name, namespace[name]))
    return found


def loaded_graph(name: str, function: Any) -> LoadedGraph:
    """Return what a compiled graph is made of."""
    for each in objects_behind(function):
        text = getattr(each, private_api.POST_GRAD_KEPT.key, None)
        if isinstance(text, str):
            return LoadedGraph(name, text, kernels_of(str(getattr(each, "source_code", ""))))
    module = graph_modules.graph_module_behind(function)
    return LoadedGraph(name, graph_modules.readable(module) if module is not None else "", {})


def kernels_of(source: str) -> dict[str, str]:
    """Return the text of each kernel in a generated module, by name."""
    begins = list(_KERNEL.finditer(source))
    ends = [each.start() for each in begins[1:]] + [len(source)]
    return {each[1]: source[each.start() : end].split("async_compile.wait")[0] for each, end in zip(begins, ends)}


def objects_behind(function: Any) -> Iterator[Any]:
    """Yield the objects that a compiled graph is made of: what closures and wrappers hold."""
    pending: list[Any] = [function]
    seen: set[int] = set()
    while pending and len(seen) < 300:
        each = pending.pop(0)
        if id(each) in seen or each is None:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, MethodType):
            pending += [each.__self__, each.__func__]
        if isinstance(each, FunctionType):
            for cell in each.__closure__ or ():
                try:
                    if callable(cell.cell_contents):
                        pending.append(cell.cell_contents)
                except ValueError:
                    continue  # empty
        for name in (private_api.ORIGINAL_CALLABLE.key, "__wrapped__", "compiled_fn"):
            pending.append(getattr(each, name, None))
