"""torch's marks for its profiler, put back where the text leaves them out.

Dynamo's code tells the profiler when it comes to a graph (``Pregraph bytecode`` in a profile). The text has no use for
that; what runs has: before each statement that calls a graph, on its line, if a profiler is on. (Dynamo's code asks
that since torch 2.15; before, it calls two functions each time, into which a debugger would step.)
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection
from types import ModuleType

from ..decompiler.dynamo_names import GRAPH_PREFIX, PROFILER_FLAGS, PROFILER_MARKERS

_ENTER, _EXIT = "record_pregraph_bytecode_enter", "record_pregraph_bytecode_exit"


def add_marks(definition: ast.FunctionDef | ast.AsyncFunctionDef, names: Collection[str]) -> bool:
    """Marks calls of graphs in a function, in place; returns whether there is anything to mark.

    Args:
        definition: the function.
        names: the names that Dynamo's code uses: they say whether this torch marks.
    """
    owner = next((m for m, known in PROFILER_MARKERS.items() if m in names and {_ENTER, _EXIT} <= known), "")
    if not owner or _ENTER not in names or _EXIT not in names:
        return False
    flag = next((f"{module}.{flag}" for module in flag_modules() for flag in PROFILER_FLAGS[module]), "")
    if not flag:
        return False
    text = f"if {flag}:\n    {owner}.{_EXIT}({owner}.{_ENTER}())"
    found = False
    for node in list(ast.walk(definition)):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if not isinstance(block, list):
                continue
            for stmt in [stmt for stmt in block if isinstance(stmt, ast.stmt) and _calls_graph(stmt)]:
                mark = ast.parse(text).body[0]
                for part in ast.walk(mark):
                    ast.copy_location(part, stmt)
                block.insert(block.index(stmt), mark)
                found = True
    return found


def flag_modules() -> dict[str, ModuleType]:
    """The modules that hold torch's flag, by the names that Dynamo's code has for them.

    Dynamo puts them among a function's globals only where its own code asks; ours holds the module itself.
    """
    found = {alias: sys.modules.get(alias.removeprefix("__import_").replace("_dot_", ".")) for alias in PROFILER_FLAGS}
    return {alias: module for alias, module in found.items()
            if module is not None and all(hasattr(module, flag) for flag in PROFILER_FLAGS[alias])}


def _calls_graph(stmt: ast.stmt) -> bool:
    """Whether the statement itself calls a graph, not one inside it."""
    parts = [child for child in ast.iter_child_nodes(stmt) if isinstance(child, ast.expr)]
    return any(isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith(GRAPH_PREFIX)
               for part in parts for node in ast.walk(part))
