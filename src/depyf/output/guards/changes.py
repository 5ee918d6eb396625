"""What differs between two versions of a function: why torch compiled it again."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from ..line_breaks import WIDTH
from .conditions import Condition
from .facts import state_in_words, state_of
from .layers import Block, Item, fold
from .versions import Version

NOTHING = "not looked at"


def changes(old: Version, new: Version) -> list[str]:
    """Return all differences, each in one line: what it was in the older version, what it is in the newer one. What is
    the same for several layers stands once."""
    before, after = old.facts, new.facts
    items: list[Item[None]] = []
    explained: set[str] = set()
    for subject in [*after, *(each for each in before if each not in after)]:
        first, second = before.get(subject), after.get(subject)
        if first is not None and second is not None and first.text == second.text:
            continue
        explained.add(subject)
        only = first or second
        if (first is None or second is None) and only is not None and only.kind == "type" and any(
                each.startswith((f"{subject}.", f"{subject}[")) for each in {*before, *after}):
            continue  # what is looked into, and its parts are told of
        if first is not None and second is not None and first.kind == second.kind == "tensor":
            items += [
                Item(line, subject, None) for line in _tensor(subject, first.condition, second.condition, old, new)]
            continue
        items.append(Item(f"{subject}: {first.text if first else NOTHING} -> {second.text if second else NOTHING}",
                          subject, None))
    items += [Item(line, "", None) for line in _ranges(old, new)]
    items += [Item(line, "", None) for line in _state(old, new)]
    for label, mine, theirs in ((new.label, new, old), (old.label, old, new)):
        known = {one.text for one in theirs.conditions}
        for one in mine.conditions:
            if one.text not in known and one.tensor is None and not _is_said(one, explained, mine):
                items.append(Item(f"only {label}: {one.text}", one.subject, None))
    return list(dict.fromkeys(_lines(fold(items))))


def as_comment(old: Version, new: Version, longest: int = 0) -> list[str]:
    """Return the differences as comments.

    Args:
        longest: lines at most (0: all); where there are more, the last says how many.
    """
    found = changes(old, new)
    if not found:
        return [f"# version {new.label} has the conditions of {old.label}"]
    lines = [f"# version {new.label} differs from {old.label}:"]
    stack = {f"___stack{number}": name for number, name in enumerate(new.frame.stack) if name}
    for line in found:
        # What torch names by its place at the break has been an expression of the user's.
        line = re.sub(r"\b___stack\d+\b", lambda match: stack.get(match[0], match[0]), line)
        lines += textwrap.wrap(line, WIDTH, initial_indent="#   ", subsequent_indent="#       ",
                               break_on_hyphens=False)
    if longest and len(lines) > longest:
        lines[longest - 1 :] = [f"#   and {len(lines) - longest + 1} lines more: {new.guards_name}.py"]
    return lines


def _tensor(
    subject: str, was_said: Condition, is_said: Condition, old: Version, new: Version
) -> Iterable[str]:
    first, second = was_said.tensor, is_said.tensor
    assert first is not None and second is not None
    if len(first.size) != len(second.size):
        yield f"{subject}: {len(first.size)} dimensions -> {len(second.size)}"
    else:
        for k, (one, other) in enumerate(zip(first.size, second.size)):
            if one != other:
                yield f"{subject}.shape[{k}]: {_size(subject, k, one, old)} -> {_size(subject, k, other, new)}"
    for name, was, now in (("dtype", first.dtype, second.dtype), ("device", first.device, second.device),
                           ("requires_grad", first.requires_grad, second.requires_grad),
                           ("class", first.cls or "Tensor", second.cls or "Tensor")):
        if was != now:
            yield f"{subject}.{name}: {was} -> {now}"
    was, now = first.layout(), second.layout()
    if was != now and None not in (*first.stride, *second.stride) and first.size == second.size:
        yield f"{subject}: {was or 'contiguous'} -> {now or 'contiguous'}"


def _size(subject: str, k: int, size: int | None, version: Version) -> str:
    if size is not None:
        return str(size)
    expression = f"{subject}.shape[{k}]"
    found = version.sizes.open.get(expression)
    if found is None:  # it is equal to something else
        return f"any, {version.sizes.names.get(expression, '')}".rstrip(", ")
    return "any" if found.range_in_words() == "any" else f"any, {found.range_in_words()}"


def _ranges(old: Version, new: Version) -> Iterable[str]:
    for expression, size in new.sizes.open.items():
        other = old.sizes.open.get(expression)
        if other is not None and other.range_in_words() != size.range_in_words():
            yield f"{expression}: {other.range_in_words()} -> {size.range_in_words()}"


def _state(old: Version, new: Version) -> Iterable[str]:
    first, second = state_of(old.conditions), state_of(new.conditions)
    for name in dict.fromkeys([*second, *first]):
        if first.get(name) != second.get(name) and first and second:
            was, now = (state_in_words(name, state[name]) if name in state else NOTHING for state in (first, second))
            yield f"{was} -> {now}"


def _is_said(condition: Condition, explained: set[str], version: Version) -> bool:
    """Whether a difference that is told already says so."""
    if condition.text.startswith("check_global_state(") or condition.text in version.sizes.implied:
        return True
    if condition.text.startswith("check_no_aliasing("):
        # It names all tensors that the version looks at.
        return any(re.search(rf"(?<![\w.]){re.escape(subject)}(?![\w.\[])", condition.text) for subject in explained)
    if condition.text.startswith("has_no_marks") and condition.subject in explained:
        return True
    return condition.text.startswith((
        f"{condition.subject} == ", f"{condition.subject} is ", "len(", "not ", "check_type(", "check_same_object(",
    )) and not explained.isdisjoint({condition.subject, f"len({condition.subject})"})


def _lines(folded: Iterable[Item[None] | Block[None]], loops: str = "") -> Iterable[str]:
    for each in folded:
        if isinstance(each, Item):
            yield each.text + (f"  ({loops})" if loops else "")
        else:
            yield from _lines(each.body, f"{loops} {each.loop()}".strip())
