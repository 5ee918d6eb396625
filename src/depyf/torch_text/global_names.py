"""Names of globals that Dynamo adds: of objects, of random functions, of resume functions; names for computed sizes.

``install_global_by_id`` (``torch/_dynamo/output_graph.py``) puts an object that a frame needs into the frame's globals
as ``<prefix>_<id>_c<compilation>``. The id differs in each run and says nothing to a reader::

    G['_140084081999072_c3'].Tensor             torch
    G['torch'].Tensor                           as it is recorded: `torch` is the value of that global
"""

from __future__ import annotations

import ast
import itertools
import re
import types
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from . import wrapping
from .parsed import parsed_expression

#: The end of such a name. (The beginning is found from there: a pattern that begins with any word is slow on the text
#: of a large model's guards.)
_BY_ID = re.compile(r"_\d{9,}_c\d+\b")
#: Beginnings of the names of globals that Dynamo adds.
_OF_DYNAMO = ("__", "_")


def without_ids(text: str, namespace: Mapping[str, Any], local_variables: Mapping[str, Any]) -> str:
    """Return a text of torch's with names for ids, of the values in these globals and locals of the frame."""
    known: dict[str, str] = {}
    parts: list[str] = []
    at = 0
    for match in _BY_ID.finditer(text):
        begin = match.start()
        while begin > at and (text[begin - 1].isalnum() or text[begin - 1] == "_"):
            begin -= 1
        name = text[begin : match.end()]
        if name not in known:
            prefix = text[begin : match.start()].strip("_")
            wanted = _name_of(namespace.get(name), namespace, local_variables) or prefix or "value"
            known[name] = _distinct(wanted, {*known.values()})
        parts += [text[at:begin], known[name]]
        at = match.end()
    return "".join([*parts, text[at:]])


def _distinct(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted[:-1]}_{number})" if wanted.endswith(")") else f"{wanted}_{number}"
    return name


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
    for name, held in _variables(namespace, local_variables):
        if held is value:
            return name
    kind = type(value).__name__
    return f"some_{kind}" if kind.isidentifier() else ""


def _variables(namespace: Mapping[str, Any], local_variables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for scope in (local_variables, namespace):
        for name, value in list(scope.items()):
            if not name.startswith(_OF_DYNAMO) and not _BY_ID.search(name):
                yield name, value


# --- the function that draws random numbers ----------------------------------------------------------
# w = random.randint(1, 3)      ->      w, h = __gen_rand_values_2()
# h = random.random()
#: Its name, a global of the function. (torch/_dynamo/output_graph.py)
BEGINNING = "__gen_rand_values"
#: Its effect, as a clause after its name.
MEANING = ("draws the random numbers of random.random, randint, randrange and uniform that the lines of the function "
           "draw: all at once, in their order, before the graph runs")


def random_values(text: str) -> list[str]:
    """Return the names of such functions in a text, each once."""
    return list(dict.fromkeys(re.findall(rf"\b{BEGINNING}_\d+\b", text))) if BEGINNING in text else []


# --- resume functions --------------------------------------------------------------------------------
#: The prefix of ``co_name`` of a resume function (torch/_dynamo/resume_execution.py).
RESUME_CODE = "torch_dynamo_resume_in_"
#: The name by which transformed code calls one: the offset at which it goes on, and a number.
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


# --- names for sizes that a graph computes of its open sizes -----------------------------------------
# Torch writes the shape and the strides of each value whole, so that a size that a convolution made is printed six
# times in a line::
#
#     conv2d: "f32[1, 8, (((s53 - 1)//2)) + 1, (((s53 - 1)//2)) + 1][8*((((s53 - 1)//2)) + 1)**2, ...]cpu" = ...
#
# With names, which the head of the file explains (``d0 = (s53 - 1) // 2 + 1``)::
#
#     conv2d: "f32[1, 8, d0, d0][8*d0**2, d0**2, d0, 1]cpu" = ...
#
# Strides of sizes that could be 0 are products of terms ``Max(1, s0//2)``, which have names, too.
#: An annotation: the type, the shape, the strides (none for a key of a dictionary), the device.
_ANNOTATION = re.compile(r"(?P<type>\w+)\[(?P<shape>[^\[\]]*)\](?P<rest>(?:\[[^\[\]]*\])?.*)")
#: A symbol of torch's for an open size or number: ``s77``, ``u0`` (unbacked), ``zf3`` (a float), ``zuf1``.
_SYMBOL = re.compile(r"\b(?:s|u|zf|zuf|z)\d+\b")
#: The begin of the name that torch gives to a tensor of which it knows no source (torch/_subclasses/meta_utils.py).
_UNKNOWN_TENSOR = "__meta_utils_unknown_tensor"
_OPERATOR = re.compile(r"[-+*/]")
_SHORTEST = 8
_BOUND = re.compile(r"(?P<symbol>\w+) (?P<sign><=|>=|<|>) (?P<value>-?\d+)")
_TERM = "Max("


def is_of_torchs_own(source: str) -> bool:
    """Return whether a size is that of a tensor that no argument or variable of the program's leads to.

    Such is the state of the random generator that a checkpoint saves.
    """
    return bool(source) and all(each.startswith(_UNKNOWN_TENSOR) for each in source.split(", "))


def is_symbol(name: str) -> bool:
    """Return whether a name is a symbol of torch's for an open size or number."""
    return _SYMBOL.fullmatch(name) is not None


def symbols_in(text: str) -> list[str]:
    """Return the symbols in a text, in order, as often as they occur."""
    return _SYMBOL.findall(text)


def with_symbols(text: str, named: Callable[[str], str]) -> str:
    """Return a text with other names for the symbols in it."""
    return _SYMBOL.sub(lambda match: named(match[0]), text)


def is_float(symbol: str) -> bool:
    """Return whether a symbol is a floating-point number: ``zf3``."""
    return symbol.startswith("z")


def bound_of_symbol(condition: str) -> tuple[str, str, int] | None:
    """Return ``("u0", ">=", 2)`` for ``u0 >= 2``; ``None`` for a condition of another form."""
    match = _BOUND.fullmatch(condition)
    return (match["symbol"], match["sign"], int(match["value"])) if match is not None else None


def size_names(types: Iterable[str], taken: Collection[str] = ()) -> dict[str, str]:
    """Return a name for each size that is computed of others, by torch's text of it, in the order of the graph.

    Args:
        types: as torch prints them, ``"f32[s0, 2*s0 + 1][2*s0 + 1, 1]cpu"``.
        taken: names that the graph uses.
    """
    result: dict[str, str] = {}
    free = (name for number in itertools.count() if (name := f"d{number}") not in taken)
    for text in types:
        annotation = _ANNOTATION.fullmatch(text) if _OPERATOR.search(text) else None
        if annotation is not None and _OPERATOR.search(annotation["shape"]):
            for size in wrapping.items(annotation["shape"]):
                if len(size) >= _SHORTEST and _OPERATOR.search(size) and size not in result:
                    result[size] = next(free)
            for term in _terms(annotation["rest"]):
                if term not in result:
                    result[term] = next(free)
    return result


def _terms(strides: str) -> Iterator[str]:
    """Yield the terms ``Max(1, ...)`` of strides, the outermost ones."""
    at = strides.find(_TERM)
    while at >= 0:
        opened = at + len(_TERM) - 1
        closed = next((opened + place for letter, place in wrapping.top_level(strides[opened:]) if letter == ")"), 0)
        if not closed:
            return
        yield strides[at : closed + 1]
        at = strides.find(_TERM, closed)


def with_size_names(text: str, names: Mapping[str, str]) -> str:
    """Return a type as torch prints it, with the names of its sizes."""
    match = _ANNOTATION.fullmatch(text) if names else None
    if match is None:
        return text
    shape = ", ".join(names.get(size, size) for size in wrapping.items(match["shape"]))
    rest = match["rest"]
    for size, name in sorted(names.items(), key=lambda each: -len(each[0])):
        if size.startswith(_TERM):
            rest = rest.replace(size, name)
        elif size in rest:
            rest = re.sub(rf"(?<=[\[ ]){re.escape(size)}(?=[\],])", name, rest.replace(f"({size})", name))
    return f"{match['type']}[{shape}]{rest}"


def in_words(size: str) -> str:
    """Return torch's text of a size as Python: ``(s53 - 1) // 2 + 1`` for ``(((s53 - 1)//2)) + 1``."""
    node = parsed_expression(size)
    return size if node is None else ast.unparse(node).replace("Max(", "max(")
