"""Names that are not taken yet."""

from __future__ import annotations

import itertools
from collections.abc import Container


def free_name(wanted: str, taken: Container[str], first: int = 1) -> str:
    """Return a name that is not taken: the wanted one, or that with a number behind it.

    Args:
        wanted: the name.
        taken: names that others have.
        first: the number that is tried first.
    """
    name = wanted
    for number in itertools.count(first):
        if name not in taken:
            break
        name = f"{wanted}_{number}"
    return name
