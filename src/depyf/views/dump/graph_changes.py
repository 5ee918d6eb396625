"""A graph that is nearly equal to one that stands above it: what differs, and where to find the whole.

A second version of a function is mostly the same graph with other sizes. A reader wants to see that, and not two
hundred lines again::

    # the statements of __compiled_fn_1 above, with s27 instead of 8 in 7 statements; and these differ:
    #   - view = linear.view((2, 8, -1, 16))
    #   + view = linear.view((2, s27 + 1, -1, 16))
"""

from __future__ import annotations

import difflib
import functools
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...torch_text.wrapping import WIDTH
from ..markdown import some

#: Of the statements, how many may differ in more than a size.
_DIFFERENT = 0.2
#: How many statements may come and go in one place; how many that are equal end a difference.
_WINDOW, _RUN = 60, 3
#: Graphs with fewer statements are shown whole.
SHORT = 20
#: Places of a size that are named, where other places keep it.
_PLACES = 4
#: A space at which no line ends.
_TOGETHER = "\N{NO-BREAK SPACE}"
#: What stands for the value of a statement that the other graph does not have.
_NEW = " "
_WORD = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?|\S")
_COUNTED = re.compile(r"(?:_\d+)+$")


def like_before(mine: Sequence[str], shown: Mapping[str, Sequence[str]]) -> str:
    """Return a graph by what differs from the most similar of those that are shown; empty where it differs too much.

    Args:
        mine: the statements of the graph (:attr:`.graph_view.GraphView.statements`).
        shown: those of the graphs above it, by name.
    """
    if len(mine) < SHORT:
        return ""
    best: tuple[str, _Sizes, list[str]] | None = None
    for other, theirs in shown.items():
        if not _alike(theirs, mine):
            continue
        sizes, changed = _changes(theirs, mine)
        if len(changed) <= _DIFFERENT * len(mine) and (best is None or len(changed) < len(best[2])):
            best = other, sizes, changed
    if best is None:
        return ""
    other, sizes, changed = best
    head = f"# the statements of {other} above" + (f", with {'; '.join(sizes.words())}" if sizes.count else "")
    head += "; and these differ (- there, + here):" if changed else ""
    return "\n".join([*(line.replace(_TOGETHER, " ") for line in textwrap.wrap(head, WIDTH, subsequent_indent="#   ")),
                      *(part for line in changed for part in _whole(line))])


@dataclass
class _Sizes:
    """Sizes that stand for others.

    Attributes:
        count: the statements in which a size stands for another, by ``(old, new)``.
        places: the brackets in which it does: ``("(2, 8)", "(2, s27)")``.
        kept: pairs of which a statement has the old size in two places, and the new one in one of them.
    """

    count: Counter[tuple[str, str]] = field(default_factory=Counter)
    places: dict[tuple[str, str], dict[tuple[str, str], None]] = field(default_factory=dict)
    kept: set[tuple[str, str]] = field(default_factory=set)

    def add(self, old: str, new: str) -> None:
        """Add two statements that differ in sizes alone."""
        pairs = [(one, other) for one, other in zip(_WORD.finditer(old), _WORD.finditer(new)) if _is_size(one[0])]
        changed = [*dict.fromkeys((one[0], other[0]) for one, other in pairs if one[0] != other[0])]
        same = {one[0] for one, other in pairs if one[0] == other[0]}
        self.count.update(changed)
        self.kept |= {pair for pair in changed if pair[0] in same}
        for one, other in pairs:
            if one[0] != other[0]:
                self.places.setdefault((one[0], other[0]), {})[_around(old, one), _around(new, other)] = None

    def words(self) -> list[str]:
        """Return phrases on the sizes that stand for others, with the places where a size alone does not tell which."""
        result = []
        for (old, new), count in self.count.most_common():
            result.append(f"{new} instead of {old} in {count} statement{'s' * (count > 1)}")
            if (old, new) in self.kept:
                places = [f"{now} for {was}".replace(" ", _TOGETHER) for was, now in self.places[old, new]]
                result[-1] += f": {some(places, _PLACES)}"
        return result


def _around(statement: str, word: re.Match[str]) -> str:
    """Return the innermost brackets around a word, without the numbers that torch counts names up by."""
    first, last = word.start(), word.end()
    depth = 0
    while first and depth >= 0:
        first -= 1
        depth += (statement[first] in ")]") - (statement[first] in "([")
    depth = 0
    while last < len(statement) and depth >= 0:
        depth += (statement[last] in "([") - (statement[last] in ")]")
        last += 1
    return re.sub(r"(?<=[A-Za-z])(?:_\d+)+\b", "", statement[first:last])


def _whole(line: str) -> list[str]:
    """Return a statement on as many lines as it takes: what differs may stand at its end."""
    return textwrap.wrap(line, WIDTH, initial_indent="#   ", subsequent_indent="#         ", break_on_hyphens=False)


def _alike(old: Sequence[str], new: Sequence[str]) -> bool:
    """Return whether two graphs call much the same, in whatever order: quickly found, unlike where they differ."""
    common = Counter(map(_skeleton, old)) & Counter(map(_skeleton, new))
    return sum(common.values()) >= (1 - _DIFFERENT) * max(len(old), len(new))


def _changes(old: Sequence[str], new: Sequence[str]) -> tuple[_Sizes, list[str]]:
    """Return ``(sizes that stand for others, the other statements that came and went)``."""
    sizes = _Sizes()
    changed: list[str] = []
    names: dict[str, str] = {}  # of the new graph -> of the old one
    # Statements are matched by what they call.
    for equal, a, b, c, d in _aligned([_skeleton(s) for s in old], [_skeleton(s) for s in new]):
        if equal:
            _compare(old[a:b], new[c:d], names, sizes, changed)
            continue
        # (A difference goes on until several statements are equal again; those in it that are equal are none.)
        parts = difflib.SequenceMatcher(None, old[a:b], new[c:d], autojunk=False).get_opcodes()
        gone = {_target(line) for kind, i, j, _, _ in parts if kind != "equal" for line in old[a + i : a + j]}
        for kind, i, j, k, m in parts:
            was, now = old[a + i : a + j], new[c + k : c + m]
            if kind == "equal":
                _compare(was, now, names, sizes, changed)
                continue
            changed += [*(f"- {line}" for line in was), *(f"+ {line}" for line in now)]
            for name in map(_target, now):
                names[name] = name if name in gone else _NEW
    return sizes, changed


def _compare(
    old: Sequence[str], new: Sequence[str], names: dict[str, str], sizes: _Sizes, changed: list[str],
) -> None:
    """Compare statements that call the same, one by one."""
    for first, second in zip(old, new):
        if _same_but_for_sizes(_WORD.findall(first), _WORD.findall(second), names):
            sizes.add(first, second)
        else:
            changed += [f"- {first}", f"+ {second}"]


def _target(statement: str) -> str:
    """Return the variable that a statement binds; ``""`` where it binds none."""
    name, equals, _ = statement.partition(" = ")
    return name if equals and name.isidentifier() else ""


def _aligned(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[bool, int, int, int, int]]:
    """Yield ``(whether they are equal, begin and end in the old, begin and end in the new)`` of the parts of two lists.

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
    return " ".join("#" if _is_size(word) else _COUNTED.sub("", word) for word in _WORD.findall(statement))


@functools.lru_cache(maxsize=4096)
def _is_size(word: str) -> bool:
    return word.isdigit() or re.fullmatch(r"[suz]f?\d+", word) is not None


def _same_but_for_sizes(old: Sequence[str], new: Sequence[str], names: dict[str, str]) -> bool:
    """Return whether two statements with the same skeleton have the same values in the same places."""
    same = True
    for first, second in zip(old, new):
        if _is_size(first) and _is_size(second):
            continue
        if not second.isidentifier():
            same &= first == second
        else:
            same &= names.setdefault(second, first) == first
    return same
