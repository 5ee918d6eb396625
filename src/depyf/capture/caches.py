"""Torch's compile caches while a program is watched."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .torch_private.shared import Undo

#: Entries that are made meanwhile are kept apart from others; the caches are left alone; they are used as they are,
#: and what an entry does not hold is missing. (Read while the interpreter starts: nothing is imported here.)
CACHES = ("separate", "bypass", "use")


def watch_caches(caches: str, note: Callable[[str], None]) -> Undo | None:
    """Do with torch's caches what was asked for, and note what that means."""
    from .torch_private import torch_caches

    if caches == "separate":
        return torch_caches.separate_caches("depyf-1")
    if caches == "bypass":
        note('torch\'s compile caches were not used (caches="bypass")')
        return torch_caches.bypass_caches()
    note('torch\'s compile caches were used as they are (caches="use"): graphs that an entry made '
         "without depyf does not hold are missing")
    return None


def bypass_poor_caches(note: Callable[[str], None]) -> Undo | None:
    """Use no cache where its entries lack graphs, though they are kept apart."""
    from .torch_private import torch_caches

    if torch_caches.keeps_post_grad_graphs():
        note("torch's compile caches: entries made under depyf are kept apart from others, so that "
             'they always hold the graphs (caches="separate")')
        return None
    note("torch's compile caches were not used: those of this torch do not hold the graphs after "
         'Inductor\'s passes (caches="use" uses them, and such graphs are missing)')
    return torch_caches.bypass_caches()
