"""Names by which torch's own globals are known, and names of forms that are not plain Python."""

from __future__ import annotations

from collections.abc import Mapping
from types import CodeType

#: Flags of torch's own that guard such marks since 2.15: taken to be off.
PROFILER_FLAGS: Mapping[str, frozenset[str]] = {
    "__import_torch_dot_autograd_dot_profiler": frozenset({"_is_profiler_enabled"}),
}

#: What calls of a graph start with. A graph returns a tuple or list, so reading its items by constant
#: index neither fails nor is seen by anyone.
GRAPH_PREFIX = "__compiled_fn_"
#: What the names of resume functions start with.
RESUME_PREFIX = "__resume_at_"
#: Prefix of variables for the result of a graph (``OutputGraph.graph_output_var``).
GRAPH_RESULT = "graph_out_"
#: Prefix of names of constants that source cannot express (``constants``).
CONSTANT_PREFIX = "__constant_"
#: Prefix of names of the dictionary of built-in functions.
BUILTINS_PREFIX = "__builtins_dict__"
#: Prefixes of names of Python modules (``OutputGraph.install_global``, ``install_global_by_id``).
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


def is_transformed(code: CodeType) -> bool:
    """Return whether Dynamo generated a code object: it calls graphs, resume functions, or helpers of Dynamo's."""
    return any(name.startswith((GRAPH_PREFIX, RESUME_PREFIX, UTILITIES)) for name in code.co_names)


def module_of_import(name: str) -> str | None:
    """Return the module that a global of Dynamo's refers to: ``__import_torch_dot_nn`` is ``torch.nn``."""
    for prefix in IMPORT_PREFIXES:
        if name.startswith(prefix):
            return name[len(prefix) :].replace("_dot_", ".")
    return None


# --- forms that are not plain Python -----------------------------------------------------------------
# ==============================  ===========================================================================
# ``new(cls, a=x, b=y)``          ``cls.__new__(cls)``, with these entries in its ``__dict__``: an object that the
#                                 traced function made, made again without calling its class
# ``new(cls, {'k': x}, a=y)``     the same for a class that is a dictionary itself, with these items
#                                 (``new_1`` where the program has the name ``new`` itself)
# ``vars(x)['a'] = y``            an entry in the ``__dict__`` of an object, whatever its class says to attributes
# ``module.buffer = y``           ``module._buffers.update({'buffer': y})``, if the class of the module does just that
# ==============================  ===========================================================================
#: Makes an object again.
NEW = "new"
#: The entries of an object.
ENTRIES = "vars"
#: Goes over lists side by side, where what repeats is written once.
SIDE_BY_SIDE = "zip"
#: Stands for ``for k, v in entries.items(): cls.__setitem__(made, k, v)`` while code is simplified.
UPDATE = "<update>"
