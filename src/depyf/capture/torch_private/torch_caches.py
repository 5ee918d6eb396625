"""Torch's caches of what it compiled, kept apart or not used."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from typing import Any

from . import private_api
from .hooks import replaced
from .shared import SharedPatch, Undo, shared_patch


def keeps_post_grad_graphs() -> bool:
    """Return whether an entry of torch's compile caches holds the graph after Inductor's passes."""
    return private_api.POST_GRAD_KEPT.as_expected()


#: Between the tag of the tool and that of the lines of a graph.
_LINES = "@"


def separate_caches(tag: str) -> Undo:
    """Entries that torch caches from now on are kept apart from those made without the tool."""
    private_api.CACHE_KEY.get()
    owner, name = private_api.CACHE_KEY.owner(), private_api.CACHE_KEY.attribute

    def make(_: SharedPatch[None]) -> Undo:
        before = getattr(owner, name)
        setattr(owner, name, before + tag)

        def undo() -> None:
            if getattr(owner, name).partition(_LINES)[0] == before + tag:
                setattr(owner, name, before)

        return undo

    return shared_patch((owner, name)).acquire(None, make)


def separate_caches_of_lines(gm: Any) -> None:
    """Keep entries that torch caches from now on apart from those of graphs that came from other lines.

    The text of a graph names its lines, and torch takes two graphs for the same that do the same: without this, the
    text could name the file of another program. (Until the next graph: its backward graph is compiled later.)
    """
    try:
        owner, name = private_api.CACHE_KEY.owner(), private_api.CACHE_KEY.attribute
    except private_api.MissingPrivateApi:
        return
    if not shared_patch((owner, name)).wanted:
        return  # entries are not kept apart: nobody would take the lines away again
    numbers: dict[str, int] = {}  # of stack traces, which nodes share
    order = [numbers.setdefault(str(getattr(node, "stack_trace", "")), len(numbers)) for node in gm.graph.nodes]
    digest = hashlib.blake2b("\0".join([*numbers, str(order)]).encode(), digest_size=8).hexdigest()
    setattr(owner, name, f"{getattr(owner, name).partition(_LINES)[0]}{_LINES}{digest}")


def bypass_caches() -> Undo:
    """Nothing is read from or written to torch's caches.

    Torch warns that it then keeps no profile of shapes, either. A warning can be an error to the program, which did
    not ask for this.
    """
    undo = [_set(private_api.NO_CACHES, lambda before: True)]
    with contextlib.suppress(private_api.MissingPrivateApi):
        undo.append(replaced(private_api.NO_CACHES_WARNING, lambda original: lambda *args, **kwargs: None))

    def leave() -> None:
        for each in undo:
            each()

    return leave


def _set(api: private_api.PrivateApi, value_of: Callable[[Any], Any]) -> Undo:
    """Set an option of torch's until what is returned is called.

    At the end the user's value is back, unless he has set another since.
    """
    api.get()
    owner, name = api.owner(), api.attribute

    def make(_: SharedPatch[None]) -> Undo:
        before = getattr(owner, name)
        ours = value_of(before)
        setattr(owner, name, ours)

        def undo() -> None:
            if getattr(owner, name) == ours:
                setattr(owner, name, before)

        return undo

    return shared_patch((owner, name)).acquire(None, make)
