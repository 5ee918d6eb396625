"""Reads that nobody can observe, as facts about live objects tell.

Such a read is no event. What it gives is named by what was read and by when: what happened since may have changed it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...dynamo.facts import ALWAYS, MODULES, Path, is_member
from ...dynamo.global_names import MODULE_DICTIONARIES
from .states import State
from .values import Constant, Symbol, Value, resolve

if TYPE_CHECKING:
    from .prover import Prover

ALWAYS_NOTE = "if no global name is rebound meanwhile"
MODULES_NOTE = "if reading attributes and items changes nothing"


def path_of(prover: Prover, value: Value) -> Path | None:
    """Return the path of the live object that a value stands for, if there is one."""
    value = resolve(value)
    if not isinstance(value, Symbol):
        return None
    if value.key[0] == "argument":
        return (("local", value.key[1]),)
    return prover.paths.get(value.key)


def read(prover: Prover, state: State, owner: Value | None, step: tuple[str, Any]) -> Symbol | None:
    """Return the value that a read of an attribute, item or variable gives; ``None`` where it is observable.

    Args:
        prover: what knows the live objects.
        state: the program that reads.
        owner: what it is read from; ``None`` for variables.
        step: ``("attr", name)``, ``("item", key)``, ``("global", name)``, ``("local", name)``.
    """
    base = path_of(prover, owner) if owner is not None else ()
    if base is None:
        return None
    path = (*base, step)
    kind = prover.facts.reading(path)
    source = resolve(owner) if owner is not None else None
    owned: tuple[Any, ...] = source.key if isinstance(source, Symbol) else ()
    if step[0] == "item" and base and base[-1] == ("attr", "__dict__") and prover.facts.reading(
            (*base[:-1], ("attr", step[1]))):
        # ``x.__dict__['a']`` is ``x.a``, where that is known to be no more
        base, owned, step = base[:-1], owned[2], ("attr", step[1])
        path = (*base, step)
        kind = prover.facts.reading(path)
    if not kind and base:
        # ``module.layers`` and ``modules[0]``: what the module's dictionaries hold
        for path in _in_dictionaries(prover, base, step):
            kind, owned, step = MODULES, (owned, path[-2][1]), path[-1]
            break
    elif kind == MODULES and is_member(path):
        # The dictionary of a module stays the same; what it holds may have changed since it was read.
        owned = (owned[2], base[-1][1])
    if not kind:
        return None
    if kind == ALWAYS:
        prover.notes.add(ALWAYS_NOTE)
        symbol = Symbol(("read", ALWAYS, path, step))
    else:
        symbol = Symbol(("read", state.epochs[kind == MODULES], owned, step))
    prover.paths[symbol.key] = path
    return symbol


def _in_dictionaries(prover: Prover, base: Path, step: tuple[str, Any]) -> Iterator[Path]:
    """Yield the path by which a module's dictionary holds what an attribute or index of the module gives."""
    if step[0] == "attr":
        for dictionary in MODULE_DICTIONARIES:
            path = (*base, ("attr", dictionary), ("item", step[1]))
            if prover.facts.unshadowed(path):
                yield path
    else:
        element = prover.facts.element(base, step[1])
        if element is not None:
            yield element


def item_key(value: Value) -> Any:
    """Return the constant by which items are read; ``...`` if it is none."""
    value = resolve(value)
    if isinstance(value, Constant) and type(value.value) in (str, int, bool):
        return value.value
    return ...
