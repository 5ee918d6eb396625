"""Are two code objects the same program, byte for byte?

Instructions, constants, names and handlers are equal. Only the origin of the code may differ (file, lines, columns, and
the function's own name), which only a debugger or a traceback shows.
"""

from __future__ import annotations

import dis
import struct
import sys
from collections.abc import Iterator
from itertools import pairwise
from types import CodeType
from typing import Any

CO_NESTED = 0x10  # says that a function was defined inside another one; nothing at run time looks at it

_PLAIN = (
    "co_argcount",
    "co_posonlyargcount",
    "co_kwonlyargcount",
    "co_code",
    "co_names",
    "co_varnames",
    "co_cellvars",
    "co_freevars",
)


def identical_code(left: CodeType, right: CodeType) -> bool:
    """Return whether both run the same instructions on the same constants and names."""
    if left is right:
        return True
    if any(getattr(left, name) != getattr(right, name) for name in _PLAIN):
        return False
    if (left.co_flags ^ right.co_flags) & ~CO_NESTED:
        return False
    if getattr(left, "co_exceptiontable", b"") != getattr(right, "co_exceptiontable", b""):
        return False
    names = _qualified_names(left) & _qualified_names(right)
    if not names:
        return same_constant(left.co_consts, right.co_consts)
    return len(left.co_consts) == len(right.co_consts) and all(
        index in names or same_constant(ours, theirs)
        for index, (ours, theirs) in enumerate(zip(left.co_consts, right.co_consts))
    )


def _qualified_names(code: CodeType) -> set[int]:
    """Constants that are nothing but the qualified name of a nested function (3.10 keeps them there).

    Such a name begins with the name of the function around it, which may differ.
    """
    if sys.version_info >= (3, 11):
        return set()
    names: set[int] = set()
    others: set[int] = set()
    instructions = list(dis.get_instructions(code))
    for instruction, following in pairwise(instructions):
        if instruction.opname == "LOAD_CONST":
            (names if following.opname == "MAKE_FUNCTION" else others).add(instruction.arg or 0)
    return names - others


def same_constant(left: Any, right: Any) -> bool:
    """Return whether constants are equal: ``1`` is not ``True``, ``0.0`` not ``-0.0``, and a NaN is equal to itself."""
    if type(left) is not type(right):
        return False
    if isinstance(left, CodeType):
        return left.co_name == right.co_name and identical_code(left, right)
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(same_constant, left, right))
    if isinstance(left, frozenset):
        return len(left) == len(right) and _keys(left) == _keys(right)
    return bool(_key(left) == _key(right))


def _keys(items: frozenset[Any]) -> set[Any]:
    return {(type(item), _key(item)) for item in items}


def _key(value: Any) -> Any:
    if isinstance(value, float):
        return struct.pack("d", value)
    if isinstance(value, complex):
        return struct.pack("dd", value.real, value.imag)
    if isinstance(value, tuple):
        return tuple((type(item), _key(item)) for item in value)
    return value


# --- parts of a code object --------------------------------------------------------------------------
def nested_codes(code: CodeType) -> Iterator[CodeType]:
    """Yield all code objects inside of it, those further out first."""
    level = [code]
    while level:
        level = [const for each in level for const in each.co_consts if isinstance(const, CodeType)]
        yield from level


def global_names(code: CodeType) -> set[str]:
    """Return the names (of globals, attributes, imports) that it and the code inside of it use."""
    return set(code.co_names).union(*(inner.co_names for inner in nested_codes(code)))


def qualified_name(code: CodeType) -> str:
    """Return ``Class.method`` where this Python knows it, else ``method``."""
    return getattr(code, "co_qualname", code.co_name)


def named_like(code: CodeType, other: CodeType) -> CodeType:
    """Return the code under the name of another one.

    (The name is torch's or the user's to choose; tools look functions up by it.)
    """
    if sys.version_info >= (3, 11):
        return code.replace(co_name=other.co_name, co_qualname=other.co_qualname)
    return code.replace(co_name=other.co_name)
