"""The parts of a code object, and one code object under the name of another."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType


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
