"""Guards as a Python function: one condition a line, grouped by the object they test.

Repetition is folded: where the same conditions hold for ``layers[0]`` ... ``layers[31]``, they are written
once, in ``all(... for i in range(32))``.  :func:`expand` gives the list back, so nothing is lost.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..capture.records import Guard
from .markdown import count

_NUMBER = re.compile(r"(?<=\[)'?\d+'?(?=\])")
_MARK = re.compile("\0(\\d+)\0")
#: Loops shorter than this are not worth reading.
SHORTEST_LOOP = 3
#: An entry's guards that differ from those of the one before are named above it, if they are not more than this.
LONGEST_DIFFERENCE = 12
_LOOSE = re.compile(r"\b(or|if|else|lambda|for)\b|:=")
_VARIABLES = "ijklmnpqrstuvw"


@dataclass(frozen=True)
class Group:
    """Conditions on one object.

    With ``values``, it stands for several objects: the texts hold marks, the n-th of which becomes the n-th
    of each of the values in turn.
    """

    source: str
    conditions: tuple[tuple[str, str], ...]  # (expression, cause)
    values: tuple[tuple[str, ...], ...] = ()


def cause_text(guard: Guard) -> str:
    if guard.cause is None:
        return ""
    place = f"{guard.cause.filename}:{guard.cause.line}"
    return f"{guard.cause.text}  ({place})" if guard.cause.text else place


def group(guards: Iterable[Guard]) -> list[Group]:
    """Guards by object, in the order in which the objects are first tested."""
    by_source: dict[str, list[tuple[str, str]]] = {}
    for guard in guards:
        by_source.setdefault(guard.source, []).append((guard.expression, cause_text(guard)))
    return [Group(source, tuple(conditions)) for source, conditions in by_source.items()]


def fold(groups: Sequence[Group]) -> list[Group]:
    """Groups that differ in numbers only become one group with ``values``; each stands where its first stood."""
    folded: dict[tuple[object, ...], list[tuple[tuple[str, ...], Group]]] = {}
    for index, one in enumerate(groups):
        numbers = tuple(_NUMBER.findall(one.source))
        key: tuple[object, ...] = ("single", index)
        if numbers:
            pattern = _with_marks(one.source)
            parts = [expression.split(one.source) for expression, _ in one.conditions]
            if all(len(p) > 1 for p in parts):  # each names the object
                key = (pattern, tuple((pattern.join(p), cause) for p, (_, cause) in zip(parts, one.conditions)))
        folded.setdefault(key, []).append((numbers, one))
    result = []
    for key, members in folded.items():
        if len(members) < SHORTEST_LOOP or key[0] == "single":
            result += [one for _, one in members]
        else:
            result.append(_folded(str(key[0]), key[1], [numbers for numbers, _ in members]))  # type: ignore[arg-type]
    return result


def _with_marks(source: str) -> str:
    count = iter(range(source.count("[")))
    return _NUMBER.sub(lambda _: f"\0{next(count)}\0", source)


def _folded(source: str, conditions: tuple[tuple[str, str], ...], members: list[tuple[str, ...]]) -> Group:
    """The group of all members. Numbers that are the same in all are written out."""
    columns = list(zip(*members))
    varying = [n for n, column in enumerate(columns) if len(set(column)) > 1]
    shown = [f"\0{varying.index(n)}\0" if n in varying else column[0] for n, column in enumerate(columns)]
    values = tuple(tuple(numbers[n] for n in varying) for numbers in members)
    return Group(_fill(source, shown), tuple((_fill(e, shown), cause) for e, cause in conditions), values)


def _fill(text: str, values: Sequence[str]) -> str:
    return _MARK.sub(lambda mark: values[int(mark[1])], text) if "\0" in text else text


def expand(groups: Sequence[Group]) -> list[Group]:
    """The groups without folding."""
    result = []
    for one in groups:
        if not one.values:
            result.append(one)
            continue
        for values in one.values:
            result.append(Group(_fill(one.source, values), tuple((_fill(e, values), c) for e, c in one.conditions)))
    return result


def guard_function(name: str, guards: Sequence[Guard], before: Sequence[Guard] | None = None) -> str:
    """Source of a function that returns whether all guards hold.

    Args:
        name: of the function.
        guards: of one cache entry.
        before: those of the entry that is tried before it; what differs is said above the function.
    """
    return "".join(f"{line}\n" for line, _ in guard_lines(name, guards, before))


def guard_lines(
    name: str, guards: Sequence[Guard], before: Sequence[Guard] | None = None
) -> list[tuple[str, str]]:
    """The lines of :func:`guard_function`, each with the cause of the condition that it tests (:func:`cause_text`)."""
    head = _difference(guards, before) if before is not None else ""
    lines = [(line, "") for line in head.splitlines()]
    lines.append((f"def {name}(L, G):", ""))
    if not guards:
        return [*lines, ("    # torch gave no guards", ""), ("    return True", "")]
    lines.append((f'    """{count(len(guards), "condition")}, in the order of their objects."""', ""))
    lines.append(("    return (", ""))
    joint = ""
    for one in fold(group(guards)):
        letters = loop_letters(one)
        lines.append((f"        # {_one_line(_fill(one.source, letters)) or 'global state'}", ""))
        indent = "        "
        if one.values:
            lines.append((f"{indent}{joint}all(", ""))
            indent, joint = "            ", ""
        for expression, cause in one.conditions:
            text = _fill(expression, letters)
            text = f"({text})" if _is_loose(text) else text
            comment = f"  # {_one_line(cause)}" if cause else ""
            lines += [(line, cause) for line in f"{indent}{joint}{text}{comment}".split("\n")]
            joint = "and "
        if one.values:
            lines.append((f"{indent}{_loops(letters, one.values)})", ""))
    lines.append(("    )", ""))
    return lines


def loop_letters(one: Group) -> list[str]:
    """The variables that stand for what differs between the objects of a group; none if it is of one object."""
    return list(_VARIABLES[: len(one.values[0])]) if one.values else []


def shown(one: Group) -> tuple[str, tuple[tuple[str, str], ...], str]:
    """``(object, conditions with their causes, the loop over its objects)`` with variables for what differs."""
    letters = loop_letters(one)
    return (_fill(one.source, letters), tuple((_fill(text, letters), cause) for text, cause in one.conditions),
            _loops(letters, one.values) if one.values else "")


def _is_loose(text: str) -> bool:
    """Whether ``and`` beside it would be read another way."""
    return _LOOSE.search(text) is not None


def _loops(letters: Sequence[str], members: Sequence[tuple[str, ...]]) -> str:
    """``for i in range(32)``; several numbers that take all combinations have a loop each."""
    columns = [list(dict.fromkeys(column)) for column in zip(*members)]
    if math.prod(map(len, columns)) == len(set(members)):
        return " ".join(f"for {letter} in {_series(column)}" for letter, column in zip(letters, columns))
    tuples = ", ".join(f"({', '.join(values)})" for values in members)
    return f"for {', '.join(letters)} in ({tuples})"


def _series(values: Sequence[str]) -> str:
    texts = all(v.startswith("'") for v in values)
    plain = [v.strip("'") for v in values]
    numbers = [int(v) for v in plain]
    counts = [str(n) for n in numbers] == plain and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    if counts and (texts or not any(v.startswith("'") for v in values)):
        first = f"{numbers[0]}, " if numbers[0] else ""
        series = f"range({first}{numbers[-1] + 1})"
        return f"map(str, {series})" if texts else series
    return f"({', '.join(values)},)"


def _difference(guards: Sequence[Guard], before: Sequence[Guard]) -> str:
    here, there = {g.expression for g in guards}, {g.expression for g in before}
    lines = [f"#   + {_one_line(g.expression)}" for g in guards if g.expression not in there]
    lines += [f"#   - {_one_line(g.expression)}" for g in before if g.expression not in here]
    lines = list(dict.fromkeys(lines))
    if not lines:
        return "# the conditions of the version before it\n"
    if len(lines) > LONGEST_DIFFERENCE:
        return f"# {len(lines)} conditions differ from those of the version before it\n"
    return "# against the version before it:\n" + "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.splitlines())
