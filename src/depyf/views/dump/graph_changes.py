"""A graph that is nearly equal to one above it: what differs, and where to find the whole.

A second version of a function is mostly the same graph with other sizes::

    # the statements of __compiled_fn_1 above, with s27 instead of 8 in 7 statements; and these differ:
    #   - view = linear.view((2, 8, -1, 16))
    #   + view = linear.view((2, s27 + 1, -1, 16))
"""

from __future__ import annotations

import difflib
import functools
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from ...torch_text.run_ids import without_counter, words
from ...torch_text.size_names import is_symbol
from ...torch_text.wrapping import WIDTH
from ..markdown import count

#: Of the statements, how many may differ in more than a size.
_DIFFERENT = 0.2
#: How many statements may come and go in one place; how many that are equal end a difference.
_WINDOW, _RUN = 60, 3
#: Graphs with fewer statements are shown whole.
SHORT = 20
#: The name of a value that the other graph does not have.
_NONE = " "


def like_before(mine: Sequence[str], shown: Mapping[str, Sequence[str]]) -> str:
    """Return a graph by what differs from the most similar of those that are shown; empty where it differs too much.

    Args:
        mine: the statements of the graph (:attr:`.graph_view.GraphView.statements`).
        shown: those of the graphs above it, by name.
    """
    similar = {other: theirs for other, theirs in shown.items() if len(mine) >= SHORT and _alike(theirs, mine)}
    differences = {other: _changes(theirs, mine) for other, theirs in similar.items()}
    other = min(differences, key=lambda each: len(differences[each][1]), default="")
    sizes, changed = differences.get(other, (Counter(), []))
    # (A statement in the place of another one is one that differs.)
    different = max(Counter(line[0] for line in changed).values(), default=0)
    if not other or different > _DIFFERENT * len(mine):
        return ""
    head = f"# the statements of {other} above"
    if sizes:
        head += ", with " + "; ".join(f"{new} instead of {old} in {count(number, 'statement')}"
                                      for (old, new), number in sizes.most_common())
    head += "; and these differ (- there, + here):" if changed else ""
    wrapped = textwrap.wrap(head, WIDTH, subsequent_indent="#   ")
    for line in changed:  # (what differs may be at the end of a statement, so all of it is shown)
        wrapped += textwrap.wrap(line, WIDTH, initial_indent="#   ", subsequent_indent="#         ",
                                 break_on_hyphens=False)
    return "\n".join(wrapped)


def _alike(old: Sequence[str], new: Sequence[str]) -> bool:
    """Return whether two graphs call much the same, in whatever order: quickly found, unlike where they differ."""
    common = Counter(map(_skeleton, old)) & Counter(map(_skeleton, new))
    return sum(common.values()) >= (1 - _DIFFERENT) * max(len(old), len(new))


def _changes(old: Sequence[str], new: Sequence[str]) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Return ``(statements in which a size replaces another, by (old, new); other statements that came and went)``."""
    sizes: Counter[tuple[str, str]] = Counter()
    changed: list[str] = []
    names = _Names()
    # Statements are matched by what they call.
    for equal, a, b, c, d in _aligned([_skeleton(s) for s in old], [_skeleton(s) for s in new]):
        # (A difference goes on until several statements are equal again; some in it may be equal.)
        parts = [("equal", 0, b - a, 0, d - c)] if equal else difflib.SequenceMatcher(
            None, old[a:b], new[c:d], autojunk=False).get_opcodes()
        differing = [part for part in parts if part[0] != "equal"]
        names.bind({_target(line) for _, i, j, _, _ in differing for line in old[a + i : a + j]},
                   {_target(line) for _, _, _, k, m in differing for line in new[c + k : c + m]})
        for kind, i, j, k, m in parts:
            was, now = old[a + i : a + j], new[c + k : c + m]
            if kind != "equal":
                changed += [*(f"- {line}" for line in was), *(f"+ {line}" for line in now)]
                continue
            for first, second in zip(was, now):
                replaced = _replaced_sizes(words(first), words(second), names)
                if replaced is None:
                    changed += [f"- {first}", f"+ {second}"]
                else:
                    sizes.update(replaced)
    return sizes, changed


class _Names:
    """Which names of two graphs are of the same value, as far as their statements have been compared."""

    def __init__(self) -> None:
        self._old: dict[str, str] = {}  # of the new graph -> of the old one
        self._new: dict[str, str] = {}  # of the old graph -> of the new one

    def bind(self, old: AbstractSet[str], new: AbstractSet[str]) -> None:
        """Note the names that different statements bind; of a name that both graphs bind the reader sees both."""
        self._old |= {name: name if name in old else _NONE for name in new}
        self._new |= {name: name if name in new else _NONE for name in old}

    def are_one(self, old: str, new: str) -> bool:
        """Return whether two names are of the same value; names that were not compared before are, from now on."""
        return self._old.setdefault(new, old) == old and self._new.setdefault(old, new) == new


def _target(statement: str) -> str:
    """Return the variable that a statement binds; ``""`` where it binds none."""
    name, equals, _ = statement.partition(" = ")
    return name if equals and name.isidentifier() else ""


def _aligned(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[bool, int, int, int, int]]:
    """Yield ``(equal, begin and end in the old, begin and end in the new)`` of the parts of two lists.

    Statements come and go in few places. A difference ends where the next ``_RUN`` items are equal again, the fewest
    items from it. (A layer is much like the next: the longest equal run, which ``difflib`` looks for, may be another
    layer, and looking for it takes long.)
    """
    a = c = 0
    while a < len(old) or c < len(new):
        b, d = a, c
        while b < len(old) and d < len(new) and old[b] == new[d]:
            b, d = b + 1, d + 1
        if b > a:
            yield True, a, b, c, d
        a, c = b, d
        if a == len(old) and c == len(new):
            return
        b, d = next(((a + i, c + total - i) for total in range(1, _WINDOW) for i in range(total + 1)
                     if _meet(old, new, a + i, c + total - i)), (len(old), len(new)))
        yield False, a, b, c, d
        a, c = b, d


def _meet(old: Sequence[str], new: Sequence[str], a: int, c: int) -> bool:
    return a <= len(old) and c <= len(new) and (a < len(old)) == (c < len(new)) \
        and old[a : a + _RUN] == new[c : c + _RUN]


@functools.lru_cache(maxsize=65536)
def _skeleton(statement: str) -> str:
    """Return a statement without sizes and without the numbers that torch counts names up by."""
    return " ".join("#" if _is_size(word) else without_counter(word) for word in words(statement))


@functools.lru_cache(maxsize=4096)
def _is_size(word: str) -> bool:
    return word.isdecimal() or is_symbol(word)


def _replaced_sizes(old: Sequence[str], new: Sequence[str], names: _Names) -> Sequence[tuple[str, str]] | None:
    """Return the sizes that differ between the words of two statements with the same skeleton, each pair once.

    ``None`` where they differ in more, or keep a size in one place that another place replaces.
    """
    same = True
    pairs: dict[tuple[str, str], None] = {}
    for before, first, second in zip(["", *old], old, new):
        if _is_size(first) and _is_size(second):
            pairs[first, second] = None
        elif second.isidentifier():
            attribute = "." if before == "." else ""  # (`add` of `x.add(1)` is not the value `add`)
            same &= names.are_one(attribute + first, attribute + second)
        else:
            same &= first == second
    kept = {first for first, second in pairs if first == second}
    replaced = [pair for pair in pairs if pair[0] != pair[1]]
    return replaced if same and not any(first in kept for first, _ in replaced) else None
