"""The differences between two versions of a function: why torch compiled it again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ....decompiler.dynamo.global_names import BUILTINS_PREFIX, module_of_import
from ....torch_text.wrapping import comment
from ...changes import with_stack_names
from ...markdown import count
from .conditions import ARGUMENTS, CLOSURE, GLOBALS, OBJECTS, STATE, Condition
from .facts import INTERNALS, Fact, state_in_words, state_of
from .layers import Item, fold, unfolded
from .versions import Version, kept

NOTHING = "not looked at"
#: What a version has that does not look at a thing itself, but at parts of it.
_PARTS = "an object"
_APART = "\x1f"
#: The condition that tensors are different ones.
_APART_TENSORS = "check_no_aliasing("


@dataclass(frozen=True)
class Change:
    """One difference between two versions.

    Attributes:
        subject: the thing that differs, ``"len(self.history)"``; empty for a condition of one version alone and for
            global state, which ``now`` says whole.
        was, now: what it was in the older version, what it is in the newer one.
        loops: the layers that it is the same for, ``"for i in range(2)"``.
        times: how many objects it holds for, layers counted one by one.
        seen_by: the label of the version that looks at something that the other does not look at, where that is a
            consequence of the other differences and no difference by itself; else empty.
        module: the module or object that this is a part of.
    """

    subject: str
    was: str
    now: str
    loops: str = ""
    times: int = 1
    seen_by: str = ""
    module: str = ""

    @property
    def text(self) -> str:
        """The difference as a line: ``len(self.history): 0 -> 1  (for i in range(2))``."""
        text = f"{self.subject}: {self.was} -> {self.now}" if self.subject else self.now
        return text + (f"  ({self.loops})" if self.loops else "")


#: What one version alone looks at of objects: values and tensors are listed one by one where there are few of them.
FEW = 10


@kept
def changes(old: Version, new: Version) -> list[Change]:
    """Return all differences. What is the same for several layers stands once."""
    items = _items(old, new)
    few = sum(each.payload is not None and each.payload[2] for each in items) <= FEW
    folded = fold([Item(each.text, each.subject, each.payload[:2] if each.payload is not None and not (
        few and each.payload[2]) else None) for each in items])
    result: dict[tuple[str, str], Change] = {}
    for item, loops, times in unfolded(folded):
        subject, was, now = item.text.split(_APART) if _APART in item.text else ("", "", item.text)
        result.setdefault((item.text, loops), Change(subject, was, now, loops, times, *(item.payload or ())))
    return list(result.values())


def _line(subject: str, was: object, now: object) -> str:
    """Return the parts of a difference as one text, in which layers are folded."""
    return _APART.join((subject, str(was), str(now)))


def _items(old: Version, new: Version) -> list[Item[tuple[str, str, bool] | None]]:
    """Return the differences.

    The payload says which version alone looks at it, as a part of what, and whether it is a value or a tensor of an
    object.
    """
    before, after = old.facts, new.facts
    either = {*before, *after}
    items: list[Item[tuple[str, str, bool] | None]] = []
    explained: set[str] = set()
    for subject in [*after, *(each for each in before if each not in after)]:
        first, second = before.get(subject), after.get(subject)
        if first is not None and second is not None:
            if first.text != second.text:
                explained.add(subject)
                items += _items_of_both(subject, first, second, old, new)
        elif (only := first or second) is not None:
            explained.add(subject)
            # (Of what is looked into, its parts are listed.)
            if only.kind != "type" or not any(each.startswith((f"{subject}.", f"{subject}[")) for each in either):
                where = _where((old if second is None else new).label, only.condition, subject, only.kind)
                other = _PARTS if any(each.startswith((f"{subject}.", f"{subject}[")) for each in (
                    after if second is None else before)) else NOTHING
                was, now = (only.text, other) if second is None else (other, only.text)
                items.append(Item(_line(subject, was, now), subject, where))
    items += [Item(line, "", None) for line in _ranges(old, new)]
    items += [Item(line, "", None) for line in _state(old, new)]
    for label, mine, theirs in ((new.label, new, old), (old.label, old, new)):
        tells_apart = any(one.text.startswith(_APART_TENSORS) for one in theirs.conditions)
        for one in mine.conditions:
            if tells_apart and one.text.startswith(_APART_TENSORS):
                continue  # (of which tensors, the tensors that each version looks at say)
            if one.text not in theirs.texts and one.tensor is None and not _is_said(one, explained, mine):
                items.append(Item(f"only {label}: {one.text}", one.subject, _where(label, one, one.subject, "")))
    return items


def _items_of_both(
    subject: str, first: Fact, second: Fact, old: Version, new: Version
) -> Iterator[Item[tuple[str, str, bool] | None]]:
    """Yield the differences in something that both versions look at."""
    if first.kind == second.kind == "tensor":
        for line in _tensor(subject, first.condition, second.condition, old, new):
            yield Item(line, subject, None)
    else:
        yield Item(_line(subject, first.text, second.text), subject, None)


def _where(label: str, one: Condition, subject: str, kind: str) -> tuple[str, str, bool] | None:
    """Return which version alone looks at something, at what root, and whether at a value of an object.

    ``None`` for what a caller can give otherwise.
    """
    internal = INTERNALS.search(one.text) is not None or " not in " in one.text
    if one.section in (ARGUMENTS, CLOSURE) and not internal or one.section == STATE or one.is_computed:
        return None
    root = module_of_import(one.root) or one.root
    if one.root.startswith(BUILTINS_PREFIX):
        root = "built-in functions"
    elif one.section == GLOBALS and root == one.root:
        root = "globals of its module"
    return label, root, one.section == OBJECTS and kind in ("tensor", "value") and not internal


#: Lines about the differences of a version that stand before other things; where there are more, they are told briefly.
MOST_LINES = 40


def as_comment(old: Version, new: Version, longest: int = 0, whole: str = "") -> list[str]:
    """Return the differences as comments.

    Args:
        longest: lines at most (0: all); where there is a limit, what only one version looks at is counted by module.
        whole: where a reader finds all of them (default: the file with the guards of the newer version).
    """
    differences = changes(old, new)
    if not differences:
        return [f"# version {new.label} has the conditions of {old.label}"]
    most = ", of the earlier ones the most like it" if old.number != new.number - 1 else ""
    lines = [f"# version {new.label} differs from {old.label}{most}:"]
    stack = {f"___stack{number}": name for number, name in enumerate(new.frame.stack) if name}
    for line in [change.text for change in differences] if not longest else _brief(differences):
        # What torch names by its place at the break has been an expression of the user's.
        lines += comment(f"  {with_stack_names(line, stack)}", 0, 6)
    if longest and len(lines) > longest:
        lines[longest - 1 :] = [f"#   and {len(lines) - longest + 1} lines more: {whole or new.guards_file}"]
    elif longest and any(change.seen_by for change in differences):
        lines.append(f"#   (each of these: {whole or new.guards_file})")
    return lines


def _brief(differences: Sequence[Change]) -> Iterator[str]:
    """Yield the differences, those that are only looked at by one version as a count for each module."""
    counted: dict[tuple[str, str], int] = {}
    for change in differences:
        if change.seen_by:
            key = change.seen_by, change.module
            counted[key] = counted.get(key, 0) + change.times
        else:
            yield change.text
    for (label, module), number in counted.items():
        yield f"only {label} looks at {module}: {count(number, 'condition')}"


def _tensor(
    subject: str, was_said: Condition, is_said: Condition, old: Version, new: Version
) -> Iterable[str]:
    first, second = was_said.tensor, is_said.tensor
    assert first is not None and second is not None
    if len(first.size) != len(second.size):
        yield _line(subject, f"{len(first.size)} dimensions", len(second.size))
    else:
        for k, (one, other) in enumerate(zip(first.size, second.size)):
            expression = f"{subject}.shape[{k}]"
            if one != other or one is None and (expression in old.sizes.open) != (expression in new.sizes.open):
                yield _line(f"{subject}.shape[{k}]", _size(subject, k, one, old), _size(subject, k, other, new))
    for name, was, now in (("dtype", first.dtype, second.dtype), ("device", first.device, second.device),
                           ("requires_grad", first.requires_grad, second.requires_grad),
                           ("class", first.cls or "Tensor", second.cls or "Tensor")):
        if was != now:
            yield _line(f"{subject}.{name}", was, now)
    was, now = old.sizes.layout(was_said), new.sizes.layout(is_said)
    # (Strides that follow from sizes that differ are no other layout.)
    same_size = None not in (*first.stride, *second.stride) and first.size == second.size
    if was != now and (same_size or not (was.startswith("strides") and now.startswith("strides"))):
        yield _line(subject, was, now)


def _size(subject: str, k: int, size: int | None, version: Version) -> str:
    if size is not None:
        return str(size)
    expression = f"{subject}.shape[{k}]"
    open_size = version.sizes.open.get(expression)
    if open_size is None:  # it is equal to something else
        expressions = {known.name: known.expression for known in version.sizes.open.values()}
        equal = re.sub(r"[A-Za-z_]\w*", lambda match: expressions.get(match[0], match[0]),
                       version.sizes.names.get(expression, "another size"))
        return f"equal to {equal}"
    return "any" if open_size.range_in_words() == "any" else f"any, {open_size.range_in_words()}"


def _ranges(old: Version, new: Version) -> Iterable[str]:
    for expression, size in new.sizes.open.items():
        other = old.sizes.open.get(expression)
        if other is not None and other.range_in_words() != size.range_in_words():
            yield _line(expression, other.range_in_words(), size.range_in_words())


def _state(old: Version, new: Version) -> Iterable[str]:
    first, second = state_of(old.conditions), state_of(new.conditions)
    for name in dict.fromkeys([*second, *first]):
        if first.get(name) != second.get(name) and first and second:
            was, now = (state_in_words(name, state[name]) if name in state else NOTHING for state in (first, second))
            yield f"{was} -> {now}"


def _is_said(condition: Condition, explained: set[str], version: Version) -> bool:
    """Return whether a difference that is listed already says so."""
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
