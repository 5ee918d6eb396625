"""Names of globals that Dynamo adds: of objects, of functions for random numbers, of resume functions.

``install_global_by_id`` (``torch/_dynamo/output_graph.py``) puts an object that a frame needs into the frame's globals
as ``<prefix>_<id>_c<compilation>``. The id differs in each run and says nothing to a reader::

    G['_140084081999072_c3'].Tensor             torch
    G['torch'].Tensor                           as it is recorded: `torch` is the value of that global
"""

from __future__ import annotations

import math
import operator
import re
import types
import weakref
from collections.abc import Mapping
from typing import Any

_BY_ID = re.compile(r"\b(?P<prefix>\w*)_\d{9,}_c\d+\b")  #: Such a name, and what its beginning is.
_OF_DYNAMO = ("__", "_")  #: Beginnings of the names of globals that Dynamo adds.
#: A function of ``operator`` that Python has no sign for, or of ``math``, by the name that FX gives the global.
_OF_MODULE = re.compile(r"\b(_operator|math)_(\w+)(?=\()")


def operator_imports(text: str) -> str:
    """Return the imports of functions that a graph calls by names of FX: ``_operator_not_(x)``, ``math_ceil(x)``."""
    found = sorted(set(_OF_MODULE.findall(text))) if "_operator_" in text or "math_" in text else ()
    return "".join(f"from {module.strip('_')} import {name} as {module}_{name}\n" for module, name in found
                   if hasattr(operator if module == "_operator" else math, name))


def without_ids(text: str, namespace: Mapping[str, Any], local_variables: Mapping[str, Any]) -> str:
    """Return a text of torch's with names for ids, of the values in these globals and locals of the frame."""
    known: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        if match[0] not in known:
            wanted = _name_of(namespace.get(match[0]), namespace, local_variables)
            name = wanted = wanted or match["prefix"].strip("_") or "value"
            number = 0
            while name in known.values():
                number += 1
                name = f"{wanted[:-1]}_{number})" if wanted.endswith(")") else f"{wanted}_{number}"
            known[match[0]] = name
        return known[match[0]]

    return _BY_ID.sub(named, text)


def _name_of(value: Any, namespace: Mapping[str, Any], local_variables: Mapping[str, Any]) -> str:
    """Return the name that the user would give an object; ``""`` where none is known."""
    if type(value) is weakref.ReferenceType:
        inner = _name_of(value(), namespace, local_variables)
        return f"weakref.ref({inner})" if inner else ""
    if value is None:
        return ""
    if type(value) is types.ModuleType:
        return value.__name__
    if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        module, name = getattr(value, "__module__", None), value.__qualname__
        if isinstance(module, str) and "<" not in name:
            return name if module in ("builtins", "__main__") else f"{module}.{name}"
    for scope in (local_variables, namespace):
        for name, held in list(scope.items()):
            if held is value and not name.startswith(_OF_DYNAMO) and not _BY_ID.search(name):
                return name
    kind = type(value).__name__
    return f"some_{kind}" if kind.isidentifier() else ""


# --- the function that draws random numbers ----------------------------------------------------------
# w = random.randint(1, 3)      ->      w, h = __gen_rand_values_2()
# h = random.random()
#: Its name, a global of the function. (torch/_dynamo/output_graph.py)
BEGINNING = "__gen_rand_values"
#: What it does, as a clause after its name.
MEANING = ("draws the random numbers of random.random, randint, randrange and uniform that the lines of the function "
           "draw: all at once, in their order, before the graph runs")


def random_values(text: str) -> list[str]:
    """Return the names of such functions in a text, each once."""
    return list(dict.fromkeys(re.findall(rf"\b{BEGINNING}_\d+\b", text))) if BEGINNING in text else []


# --- resume functions --------------------------------------------------------------------------------
#: What ``co_name`` of a resume function starts with (torch/_dynamo/resume_execution.py).
RESUME_CODE = "torch_dynamo_resume_in_"
#: By what name transformed code calls one: the offset at which it goes on, and a number.
RESUME_NAME = re.compile(r"__resume_at_(?P<offset>\d+)_(?P<number>\d+)")
_CODE = re.compile(rf"{RESUME_CODE}(?P<function>.*)_at_(?P<line>\d+)")


def resumed_function(code_name: str) -> tuple[str, int] | None:
    """Return ``("f", 9)`` for ``torch_dynamo_resume_in_f_at_9``; ``None`` for any other function."""
    match = _CODE.fullmatch(code_name) if code_name.startswith(RESUME_CODE) else None
    return (match["function"], int(match["line"])) if match else None


def plain_name(code_name: str) -> str:
    """Return the name of the user's function: ``f`` for ``f`` and for ``torch_dynamo_resume_in_f_at_9``."""
    resumed = resumed_function(code_name)
    return resumed[0] if resumed else code_name


def is_resume(code_name: str) -> bool:
    """Return whether ``co_name`` is of a resume function."""
    return code_name.startswith((RESUME_CODE, "<resume"))


def offset_in(name: str) -> int | None:
    """Return the offset at which a resume function goes on: 96 of ``__resume_at_96_2``; ``None`` for another name."""
    match = RESUME_NAME.fullmatch(name)
    return int(match["offset"]) if match else None
