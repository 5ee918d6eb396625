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

from ..decompiler.dynamo.global_names import GRAPH_PREFIX, PROFILER_FLAGS, PROFILER_MARKERS, module_of_import
from ..decompiler.trees import nodes_of

_ENTER, _EXIT = "record_pregraph_bytecode_enter", "record_pregraph_bytecode_exit"


def add_marks(definition: ast.FunctionDef | ast.AsyncFunctionDef, names: Collection[str]) -> bool:
    """Mark calls of graphs in a function, in place; return whether there is anything to mark.

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
    return _mark_in(definition, f"if {flag}:\n    {owner}.{_EXIT}({owner}.{_ENTER}())")


def _mark_in(owner: ast.AST, text: str) -> bool:
    """Put ``text`` before each statement in the blocks of ``owner`` that itself calls a graph."""
    result = False
    for block in list(owner.__dict__.values()):
        if not isinstance(block, list):
            continue
        for part in list(block):
            if isinstance(part, ast.stmt):
                if _calls_graph(part):
                    mark = ast.parse(text).body[0]
                    for node in nodes_of(mark):
                        ast.copy_location(node, part)
                    block.insert(block.index(part), mark)
                    result = True
                if hasattr(part, "body") or hasattr(part, "cases"):
                    result |= _mark_in(part, text)
            elif isinstance(part, (ast.excepthandler, ast.match_case)):
                result |= _mark_in(part, text)
    return result


def flag_modules() -> dict[str, ModuleType]:
    """Return the modules that hold torch's flag, by the names that Dynamo's code has for them.

    Dynamo puts them among a function's globals only where its own code asks; ours holds the module itself.
    """
    modules = {alias: sys.modules.get(module_of_import(alias) or "") for alias in PROFILER_FLAGS}
    return {alias: module for alias, module in modules.items()
            if module is not None and all(hasattr(module, flag) for flag in PROFILER_FLAGS[alias])}


def _calls_graph(stmt: ast.stmt) -> bool:
    """Return whether a statement itself calls a graph, not one inside it."""
    parts = [child for child in ast.iter_child_nodes(stmt) if isinstance(child, ast.expr)]
    return any(isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith(GRAPH_PREFIX)
               for node in nodes_of(*parts))
