"""Items of dictionaries by their keys, where torch reads them by their places.

Torch guards a dictionary in the order of its items::

    list(self.stats)[0] == 'tokens'                  the key at a place
    list(self.stats.values())[0] == 4                what is there: self.stats['tokens'] == 4
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

#: What is at a place; inside of it nothing that is at a place.
_ITEM = re.compile(r"list\((?P<owner>(?:(?!\blist\().)*?)\.values\(\)\)\[(?P<place>\d+)\]")


class Keys:
    """The keys of dictionaries.

    Args:
        known: dictionaries, places and keys, in the order in which torch tests them: a dictionary before its items.
    """

    def __init__(self, known: Iterable[tuple[str, int, str]]) -> None:
        self._keys: dict[tuple[str, int], str] = {}
        for owner, place, key in known:
            self._keys[self.named(owner), place] = key

    def named(self, text: str) -> str:
        """Return an expression with items by their keys: ``self.stats['tokens']``."""
        before = ""
        while self._keys and is_read_by_place(text) and text != before:  # (what is inside comes first)
            before, text = text, _ITEM.sub(self._item, text)
        return text

    def _item(self, match: re.Match[str]) -> str:
        key = self._keys.get((match["owner"], int(match["place"])))
        return match[0] if key is None else f"{match['owner']}[{key}]"


def is_read_by_place(text: str) -> bool:
    """Return whether an expression may read a dictionary by the place of an item."""
    return ".values())[" in text


_STRING = re.compile(r"\['[^'\\]*'\]")


def keys_in(path: str) -> Iterator[tuple[str, str]]:
    """Yield the dictionaries that a path reads by a string, and the string as Python: ``("kwargs", "'mask'")``."""
    for key in _STRING.finditer(path):
        yield path[: key.start()], key[0][1:-1]
