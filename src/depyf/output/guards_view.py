"""Guards as a Python function: one condition a line, grouped by the object they test.

Repetition is folded: where the same conditions hold for ``layers[0]`` ... ``layers[31]``, they are written
once, in a loop over the numbers.  :func:`expand` gives the list back, so nothing is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..capture.records import Guard

_NUMBER = re.compile(r"(?<=\[)'?\d+'?(?=\])")
#: Loops shorter than this are not worth reading.
SHORTEST_LOOP = 3


@dataclass(frozen=True)
class Group:
    """Conditions on one object.  With ``values``, ``{}`` in the texts stands for each value in turn."""

    source: str
    conditions: tuple[tuple[str, str], ...]  # (expression, cause)
    values: tuple[str, ...] = ()


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
    """Groups that differ in one number only become one group with ``values``.

    Only the first number that differs is folded; the order of the groups is that of the first of each.
    """
    folded: dict[tuple[object, ...], list[tuple[int, str, Group]]] = {}
    order: list[tuple[object, ...]] = []
    for index, one in enumerate(groups):
        numbers = _NUMBER.findall(one.source)
        key: tuple[object, ...] = ("single", index)
        value = ""
        if numbers:
            value = numbers[0]
            pattern = _NUMBER.sub("{}", one.source.replace("{", "{{").replace("}", "}}"), count=1)
            conditions = tuple((_abstract(e, one.source, pattern), c) for e, c in one.conditions)
            if all(e is not None for e, _ in conditions):
                key = (pattern, conditions)
        if key not in folded:
            order.append(key)
        folded.setdefault(key, []).append((index, value, one))
    result = []
    for key in order:
        members = folded[key]
        if len(members) < SHORTEST_LOOP or key[0] == "single":
            result += [one for _, _, one in members]
        else:
            values = tuple(value for _, value, _ in members)
            result.append(Group(str(key[0]), key[1], values))  # type: ignore[arg-type]
    return result


def _abstract(expression: str, source: str, pattern: str) -> str | None:
    """The expression with the object replaced by the pattern; ``None`` if it names other numbers too."""
    if source not in expression:
        return None
    rest = expression.split(source)
    if any("{" in part or "}" in part for part in rest):
        return None
    return pattern.join(rest)


def expand(groups: Sequence[Group]) -> list[Group]:
    """The groups without folding."""
    result = []
    for one in groups:
        if not one.values:
            result.append(one)
            continue
        for value in one.values:
            result.append(Group(one.source.format(value),
                                tuple((e.format(value), c) for e, c in one.conditions)))
    return result


def guard_function(name: str, guards: Sequence[Guard]) -> str:
    """Source of a function that returns whether all guards hold."""
    lines = [f"def {name}(L, G):"]
    if not guards:
        return "\n".join([*lines, "    # torch gave no guards", "    return True", ""])
    groups = fold(group(guards))
    checks = len(guards)
    lines.append(f'    """{checks} condition{"s" if checks != 1 else ""}, in the order of their objects."""')
    for one in groups:
        if one.values:
            numbers = ", ".join(one.values)
            lines.append(f"    # {one.source.format('i')}" if one.source else "    # global state")
            lines.append(f"    for i in ({numbers},):")
            prefix = "        "
        else:
            lines.append(f"    # {one.source or 'global state'}")
            prefix = "    "
        for expression, cause in one.conditions:
            text = expression.format("i") if one.values else expression
            comment = f"  # {cause}" if cause else ""
            comment = comment.replace("\n", " ").replace("\r", " ").replace("\f", " ")
            lines.append(f"{prefix}if not ({text}):{comment}")
            lines.append(f"{prefix}    return False")
    lines.append("    return True")
    return "\n".join(lines) + "\n"
