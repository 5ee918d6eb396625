"""Tables of functions by the kind of operation they handle."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_F = TypeVar("_F")


def registrar(rules: dict[str, _F]) -> Callable[..., Callable[[_F], _F]]:
    """Return a decorator ``rule(*kinds)`` that puts functions into a table, by the kinds of operations they handle."""

    def rule(*kinds: str) -> Callable[[_F], _F]:
        def register(function: _F) -> _F:
            rules.update(dict.fromkeys(kinds, function))
            return function

        return register

    return rule
