"""Names by which torch's own globals and profiler marks are known."""

from __future__ import annotations

from collections.abc import Mapping

#: Flags of torch's own that guard such marks since 2.15: taken to be off.
PROFILER_FLAGS: Mapping[str, frozenset[str]] = {
    "__import_torch_dot_autograd_dot_profiler": frozenset({"_is_profiler_enabled"}),
}

#: What calls of a graph start with. A graph returns a tuple or list, so reading its items by constant
#: index neither fails nor is seen by anyone.
GRAPH_PREFIX = "__compiled_fn_"
#: What the names of resume functions start with.
RESUME_PREFIX = "__resume_at_"
#: What the variables are called that hold the result of a graph (``OutputGraph.graph_output_var``).
GRAPH_RESULT = "graph_out_"
#: What names start with that stand for constants which no source can say (``constants``).
CONSTANT_PREFIX = "__constant_"
#: What names start with that stand for the dictionary of built-in functions.
BUILTINS_PREFIX = "__builtins_dict__"
#: What names start with that stand for Python modules (``OutputGraph.install_global``, ``install_global_by_id``).
IMPORT_PREFIXES = ("__import_", "___module_")
#: Dictionaries in which ``torch.nn.Module`` keeps what its attributes give, in the order in which they are asked.
MODULE_DICTIONARIES = ("_parameters", "_buffers", "_modules")
#: What globals start with that Dynamo puts into the module itself, once: reading them always works and
#: gives the same, so it does not matter when it happens.
OWN_GLOBALS = (GRAPH_PREFIX, RESUME_PREFIX, IMPORT_PREFIXES[0], BUILTINS_PREFIX, CONSTANT_PREFIX)

#: Dynamo's name for the module of its helpers.
UTILITIES = "__import_torch_dot__dynamo_dot_utils"
#: Functions of torch's own that only mark time for its profiler: ``module alias -> attribute names``.
#: (torch/_dynamo/output_graph.py, since 2.12)
PROFILER_MARKERS: Mapping[str, frozenset[str]] = {
    UTILITIES: frozenset({
        "record_pregraph_bytecode_enter", "record_pregraph_bytecode_exit",
    }),
}


def module_of_import(name: str) -> str | None:
    """Return the module that a global of Dynamo's stands for: ``__import_torch_dot_nn`` is ``torch.nn``."""
    for prefix in IMPORT_PREFIXES:
        if name.startswith(prefix):
            return name[len(prefix) :].replace("_dot_", ".")
    return None
