"""Items of dictionaries by their keys, where torch reads them by their places.

Torch guards a dictionary in the order of its items::

    list(self.stats)[0] == 'tokens'                  the key at a place
    list(self.stats.values())[0] == 4                what is there: self.stats['tokens'] == 4
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

_KEY = re.compile(r"list\((?P<owner>.+)\)\[(?P<place>\d+)\] == (?P<key>.+)")
#: What is at a place; inside of it nothing that is at a place.
_ITEM = re.compile(r"list\((?P<owner>(?:(?!\blist\().)*?)\.values\(\)\)\[(?P<place>\d+)\]")


class Keys:
    """The keys that the conditions of a version tell of.

    Args:
        texts: of the conditions, those on a dictionary before those on what it holds, as torch orders them.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._keys: dict[tuple[str, str], str] = {}
        for text in texts:
            match = _KEY.fullmatch(text) if text.startswith("list(") else None
            if match is not None and _is_plain(match["key"]):
                self._keys[self.named(match["owner"]), match["place"]] = match["key"]

    def named(self, text: str) -> str:
        """Return an expression with items by their keys: ``self.stats['tokens']``."""
        before = ""
        while self._keys and is_read_by_place(text) and text != before:  # (what is inside comes first)
            before, text = text, _ITEM.sub(self._item, text)
        return text

    def _item(self, match: re.Match[str]) -> str:
        key = self._keys.get((match["owner"], match["place"]))
        return match[0] if key is None else f"{match['owner']}[{key}]"


def is_read_by_place(text: str) -> bool:
    """Return whether an expression may read a dictionary by the place of an item."""
    return ".values())[" in text


def _is_plain(text: str) -> bool:
    try:
        return isinstance(ast.literal_eval(text), (str, int))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
