"""Functions in the text of a file, found by the lines that begin them.

Files of libraries are long, and a program uses a few of their functions.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_DEFINITION = re.compile(r"[ \t]*(?:@|(?:async )?def |class )")
#: The letters that it begins with. (A file has ten thousand lines, of which most are seen by one letter to be none.)
_FIRST = frozenset("@adc")


class Part(NamedTuple):
    """A part of a file, ``texts[begin:end]``, by what it begins with.

    Attributes:
        begin, end: its lines, counted from 0.
        depth: columns that it is indented by.
        is_class: it is what stands of a class above its methods.
    """

    begin: int
    end: int
    depth: int
    is_class: bool = False


def parts(texts: Sequence[str], lines: Sequence[int]) -> list[Part]:
    """Return the functions of a file and of its classes that hold some lines, with the beginnings of the classes.

    What stands above the first definition counts as one.

    Args:
        texts: the lines of the file.
        lines: numbers of lines, counted from 1, in order.
    """
    return list(_parts(texts, 0, len(texts), lines))


def _parts(texts: Sequence[str], first: int, last: int, lines: Sequence[int]) -> Iterator[Part]:
    depth = 0 if not first else next((_depth(line) for line in texts[first:last] if _DEFINITION.match(line)), -1)
    if depth < 0:
        return  # a class without methods
    heads = [at for at in range(first, last) if texts[at][depth : depth + 1] in _FIRST and _depth(texts[at]) == depth
             and _DEFINITION.match(texts[at])]
    begins = [at for at in heads if not texts[at - 1].startswith("@", depth) or at == first]
    begins = begins if depth else [first, *(at for at in begins if at > first)]
    if depth:
        yield Part(first - 1, begins[0], _depth(texts[first - 1]), is_class=True)
    for begin, end in zip(begins, [*begins[1:], last]):
        at = bisect.bisect_right(lines, begin)
        if at == len(lines) or lines[at] > end:
            continue
        if texts[begin].startswith("class ", depth):
            yield from _parts(texts, begin + 1, end, lines)
        else:
            yield Part(begin, end, depth)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def only_parts(text: str, lines: Sequence[int]) -> str:
    """Return a text with empty lines for what is in none of its :func:`parts`; the first of them says how many."""
    texts = text.split("\n")
    kept = [""] * len(texts)
    done = 0
    for begin, end in [*((part.begin, part.end) for part in parts(texts, lines)), (len(texts), len(texts))]:
        if begin > done:
            kept[done] = f"# ... (lines {done + 1} to {begin}: nothing of them was traced)"
        kept[begin:end] = texts[begin:end]
        done = end
    return "\n".join(kept)
