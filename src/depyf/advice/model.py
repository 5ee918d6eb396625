"""A piece of advice, and the edits that carry it out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..values import frozen


@frozen
class Edit:
    """Lines of a file that others replace."""

    filename: str
    first: int  # from 1
    last: int  # it is replaced, too; `last == first - 1` inserts before `first`
    lines: tuple[str, ...]  # the new lines, without line ends


@frozen
class Advice:
    """What is to be said of a break, or a change that makes a break or a recompile go away."""

    rule: str  # name of the rule, `"print"`
    change: str  # what to do, as the end of a sentence, or a sentence on why the graph breaks; code in backticks
    why: str = ""  # why a change helps
    cost: str = ""  # what it costs, or when it is not the same; of a setting, what it does
    edits: tuple[Edit, ...] = ()  # the change, where it is mechanical
    settings: tuple[str, ...] = ()  # lines that set options of torch, to be inserted before the first compiled call
    condition: tuple[str, ...] = ()  # the test that chose between two sides, as the old and as the new lines have it
    #: the facts prove the change; else `change` says why the graph breaks, and which fact decides
    is_change: bool = True


def edited(text: str, edits: Iterable[Edit]) -> str | None:
    """Return the text of a file with edits made; ``None`` where two of them touch the same lines."""
    lines: list[str] = text.splitlines()
    below = len(lines) + 1
    for edit in sorted(set(edits), key=lambda each: (each.first, each.last), reverse=True):
        if edit.last >= below:
            return None
        lines[edit.first - 1 : edit.last] = edit.lines
        below = edit.first
    return "\n".join(lines) + ("\n" if text.endswith("\n") or not text else "")


def indented(lines: Sequence[str], indentation: str) -> tuple[str, ...]:
    """Return lines with an indentation put before those that are not empty."""
    return tuple(indentation + line if line else line for line in lines)
