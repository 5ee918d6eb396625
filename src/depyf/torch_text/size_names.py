"""Names for the sizes that a graph computes of its open sizes.

Torch writes the shape and the strides of each value whole, so that a size that a convolution made is printed six times
in a line::

    conv2d: "f32[1, 8, (((s53 - 1)//2)) + 1, (((s53 - 1)//2)) + 1][8*((((s53 - 1)//2)) + 1)**2, ...]cpu" = ...

With names, which the head of the file explains (``d0 = (s53 - 1) // 2 + 1``)::

    conv2d: "f32[1, 8, d0, d0][8*d0**2, d0**2, d0, 1]cpu" = ...

Strides of sizes that could be 0 are products of terms ``Max(1, s0//2)``, which have names, too.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from . import wrapping

#: An annotation: the type, the shape, the strides (none for a key of a dictionary), the device.
_ANNOTATION = re.compile(r"(?P<type>\w+)\[(?P<shape>[^\[\]]*)\](?P<rest>(?:\[[^\[\]]*\])?.*)")
#: A symbol of torch's for an open size or number: ``s77``, ``u0`` (unbacked), ``zf3`` (a float), ``zuf1``.
_SYMBOL = re.compile(r"\b(?:s|u|zf|zuf|z)\d+\b")
#: The begins of the names that torch gives to a tensor of which it knows no source (torch/_subclasses/meta_utils.py).
_OF_TORCHS_OWN = ("__meta_utils_unknown_tensor", "<ephemeral: ")
_OPERATOR = re.compile(r"[-+*/]")
_SHORTEST = 8
_BOUND = re.compile(r"(?P<symbol>\w+) (?P<sign><=|>=|<|>) (?P<value>-?\d+)")
_TERM = "Max("


def is_of_torchs_own(source: str) -> bool:
    """Return whether a size is that of a tensor that no argument or variable of the program's leads to.

    Such is the state of the random generator that a checkpoint keeps.
    """
    return bool(source) and all(each.startswith(_OF_TORCHS_OWN) for each in source.split(", "))


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
    """Return a name (not ``taken``) for each size that is computed of others, by torch's text of it, in order."""
    result: dict[str, str] = {}
    free = (name for number in itertools.count() if (name := f"d{number}") not in taken)
    for text in types:
        annotation = _ANNOTATION.fullmatch(text) if _OPERATOR.search(text) else None
        if annotation is not None and _OPERATOR.search(annotation["shape"]):
            sizes = [size for size in wrapping.items(annotation["shape"])
                     if len(size) >= _SHORTEST and _OPERATOR.search(size)]
            for part in (*sizes, *_terms(annotation["rest"])):
                if part not in result:
                    result[part] = next(free)
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
