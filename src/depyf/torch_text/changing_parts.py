"""The parts of torch's texts that differ between two texts of one kind: addresses, numbers, ids."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_VALUE = re.compile(r"0x[0-9a-f]+|(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)|'[^']*'")
#: Numbers that torch gives to what a guard names, another in each compilation.
_ID = re.compile(r"0x[0-9a-f]+|\b\d{9,}\b|(?<=__builtins_dict___)\d+|(?<=___)\d+\b")


def without_addresses(text: str) -> str:
    """Return a text without the addresses of the objects in it."""
    return _ADDRESS.sub("", text)


def without_values(text: str, source: str = "") -> str:
    """Return a reason of torch's with ``_`` for each number and quoted text, but for those in a source expression."""
    return _VALUE.sub(lambda m: m[0] if source and (m[0] == f"'{source}'" or m[0] in source) else "_", text)


def without_numbers_of_objects(text: str) -> str:
    """Return a guard without the numbers that torch gives to objects."""
    return _ID.sub("", text)
