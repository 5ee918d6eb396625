"""Graph modules: facts about their nodes, and their text."""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Iterator
from itertools import islice
from types import FunctionType
from typing import Any

from ...records.model import Caller, SourceLocation
from ...torch_text.met import frames_in
from ..object_facts import closure_values
from . import private_api

#: A graph in transformed code, without the unique ending that torch gives it since 2.7.
GRAPH_NAME = re.compile(rf"({private_api.GRAPH_NAME.key}\d+)(?:_[0-9a-f_]{{36,}})?$")


def readable(gm: Any) -> str:
    """Return the graph as Python: shapes, strides, dtypes and devices as annotations, user lines as comments.

    Raises:
        AttributeError: this torch prints no graphs.
    """
    printed = getattr(gm, private_api.READABLE_GRAPH.attribute)
    return str(printed(print_output=False, include_stride=True, include_device=True))


def without_ids(name: str) -> str:
    """Return the name of a stage of torch's without that of the graph, which differs from run to run."""
    return re.sub(rf"\s*{private_api.GRAPH_NAME.key}\d+(?:_[0-9a-f_]{{36,}})?", "", name) or name


def node_modules(gm: Any) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Return ``(node, [(key, path, class), ...])`` of the modules that each node of a captured graph was called in.

    Dynamo has the stack of modules in ``node.meta["nn_module_stack"]``: ``{key: (path as an expression, class)}``,
    outermost first (torch/_dynamo/variables/nn_module.py, ``record_nn_module_stack``). The key distinguishes two calls
    of one module.
    """
    return [(name, [(str(key), str(path), cls if isinstance(cls, str) else getattr(cls, "__qualname__", str(cls)))
                    for key, (path, cls) in stack.items()])
            for name, node in _nodes(gm) if (stack := node.meta.get(private_api.MODULE_STACK.key))]


def _nodes(gm: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the nodes of a graph; one of a graph in it is named with that graph's name: ``"wrap_body_0.linear"``."""
    for node in gm.graph.nodes:
        yield f"{prefix}{node.name}", node
    for name, inner in gm.named_children():
        if hasattr(inner, "graph"):
            yield from _nodes(inner, f"{prefix}{name}.")


def calls_into_torch(gm: Any) -> tuple[Caller, ...]:
    """Return the program's lines that led into torch's Python code (``torch.func``, optimisers), with what it made.

    Torch prints the innermost place of a node's stack (torch/fx/graph.py, ``_parse_stack_trace``).
    """
    torchs = os.path.join(os.path.dirname(str(sys.modules["torch"].__file__)), "")

    @functools.cache
    def outside(stack: str) -> SourceLocation | None:
        places = frames_in(stack) if torchs in stack[stack.rfind('File "') :] else ()
        return next((place for place in reversed(places) if not place.filename.startswith(torchs)), None)

    nodes: dict[SourceLocation, list[str]] = {}
    for name, node in _nodes(gm):
        stack = getattr(node, "stack_trace", None) if node.op not in ("placeholder", "output") else None
        if isinstance(stack, str) and (place := outside(stack)) is not None:
            nodes.setdefault(place, []).append(name)
    return tuple(Caller(place, tuple(each)) for place, each in nodes.items())


def graph_inputs(gm: Any) -> list[tuple[str, str]]:
    """Return ``(parameter, source)`` of the inputs of a captured graph, in order: ``("L_x_", "L['x']")``.

    The source is empty where it is not known. Dynamo has it in ``node.meta["grapharg"]`` until the backend is done
    (torch/_dynamo/output_graph.py, ``SubgraphTracer.create_graph_input``; torch/_dynamo/variables/builder.py,
    ``GraphArg``).
    """
    inputs = []
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            source = getattr(node.meta.get(private_api.GRAPH_INPUTS.key), "source", None)
            name = getattr(source, "name", "")
            inputs.append((str(node.target), str(name() if callable(name) else name)))
    return inputs


def inner_graph_module(function: Any) -> Any:
    """Return the graph module that a compiled graph runs, inside wrappers and closures; ``None`` if there is none."""
    pending = [function]
    for current in islice(pending, 50):
        if hasattr(current, private_api.READABLE_GRAPH.attribute):
            return current
        attributes = ("__self__", private_api.ORIGINAL_CALLABLE.key, "__wrapped__")
        pending += [inner for name in attributes if (inner := getattr(current, name, None)) is not None]
        if isinstance(current, FunctionType):
            pending += closure_values(current).values()
    return None


def interprets(compiled: Any) -> bool:
    """Return whether aot_eager made an object of a graph, on a torch where that interprets the graph."""
    api = private_api.AOT_EAGER_CODE
    try:
        made_there = (getattr(compiled, "__module__", None) == api.module
                      and str(getattr(compiled, "__qualname__", "")).startswith(api.attribute + "."))
    except private_api.MissingPrivateApi:
        return False
    return made_there and not api.as_expected()
