"""Torch's caches of what it compiled: separate ones, or none."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from typing import Any

from . import private_api
from .hooks import replaced
from .shared import SharedPatch, Undo, shared_patch

#: Between the tag of the tool and that of the lines of a graph.
_LINES = "@"


def watch_caches(caches: str, note: Callable[[str], None]) -> Undo | None:
    """Set torch's caches to ``"separate"``, ``"bypass"`` or ``"use"``, and note what that means."""
    if caches == "separate":
        return _set(private_api.CACHE_KEY, lambda before: f"{before}depyf-1", lambda tag: tag.partition(_LINES)[0])
    if caches == "bypass":
        note('torch\'s compile caches were not used (caches="bypass")')
        return bypass_caches()
    note('torch\'s compile caches were used as they are (caches="use"): graphs that an entry made '
         "without depyf does not hold are missing")
    return None


def bypass_poor_caches(note: Callable[[str], None]) -> Undo | None:
    """Use no cache where its entries lack the graph after Inductor's passes, even separate ones."""
    if private_api.POST_GRAD_KEPT.as_expected():
        note("torch's compile caches: entries made under depyf are kept apart from others, so that "
             'they always hold the graphs (caches="separate")')
        return None
    note("torch's compile caches were not used: those of this torch do not hold the graphs after "
         'Inductor\'s passes (caches="use" uses them, and such graphs are missing)')
    return bypass_caches()


def separate_caches_of_lines(gm: Any) -> None:
    """Separate entries that torch caches, until the next graph, from those of graphs that came from other lines.

    The text of a graph names its lines, and torch takes two graphs for the same that do the same: without this, the
    text could name the file of another program. (Its backward graph is compiled later.)
    """
    try:
        owner, name = private_api.CACHE_KEY.owner(), private_api.CACHE_KEY.attribute
    except private_api.MissingPrivateApi:
        return
    if not shared_patch((owner, name)).wanted:
        return  # entries are not separate: nothing would remove the lines again
    numbers: dict[str, int] = {}  # of stack traces, which nodes share
    order = [numbers.setdefault(str(getattr(node, "stack_trace", "")), len(numbers)) for node in gm.graph.nodes]
    digest = hashlib.blake2b("\0".join([*numbers, str(order)]).encode(), digest_size=8).hexdigest()
    setattr(owner, name, f"{getattr(owner, name).partition(_LINES)[0]}{_LINES}{digest}")


def bypass_caches() -> Undo:
    """Have torch read nothing from its caches, and write nothing to them.

    Torch then warns that it has no profile of shapes, either. A warning can be an error to the program, which did
    not ask for this.
    """
    undo = [_set(private_api.NO_CACHES, lambda before: True)]
    with contextlib.suppress(private_api.MissingPrivateApi):
        undo.append(replaced(private_api.NO_CACHES_WARNING, lambda *args, **kwargs: None))

    def leave() -> None:
        for each in undo:
            each()

    return leave


def _set(
    api: private_api.PrivateApi, value_of: Callable[[Any], Any], ours_in: Callable[[Any], Any] = lambda value: value,
) -> Undo:
    """Set an option of torch's until what is returned is called, unless the user has set another value since.

    Args:
        value_of: returns our value for the user's.
        ours_in: returns our value of the present one, which may have more.
    """
    api.get()
    owner, name = api.owner(), api.attribute

    def make(_: SharedPatch[None]) -> Undo:
        before = getattr(owner, name)
        ours = value_of(before)
        setattr(owner, name, ours)

        def undo() -> None:
            if ours_in(getattr(owner, name)) == ours:
                setattr(owner, name, before)

        return undo

    return shared_patch((owner, name)).acquire(None, make)
