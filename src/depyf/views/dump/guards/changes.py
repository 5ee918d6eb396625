"""The differences between two versions of a function: why torch compiled it again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ....decompiler.dynamo.global_names import BUILTINS_PREFIX, module_of_import
from ....model import guards
from ....model.arithmetic import substituted
from ....model.guards import ARGUMENTS, CLOSURE, GLOBALS, OBJECTS, STATE, Condition, Tensor
from ....torch_text.user_expressions import with_stack_names
from ....torch_text.wrapping import comment
from ...markdown import count
from .layers import Item, fold, unfolded
from .versions import Fact, Version, cached, state_in_words


@dataclass(frozen=True)
class Side:
    """What something is in one version.

    Attributes:
        value: in words.
        kind: that of a fact; ``"open"`` for any size in a range, ``"equal"`` for a size that is always equal to
            another, ``"none"`` where the version does not look.
    """

    value: str
    kind: str = "value"

    @property
    def text(self) -> str:
        """The same as a part of a line: ``any, 2 or more``."""
        if self.kind == "equal":
            return f"equal to {self.value}"
        return f"any, {self.value}" if self.kind == "open" and self.value != "any" else self.value


NOTHING = Side("not looked at", "none")
#: What a version has that does not look at a thing itself, but at parts of it.
_PARTS = Side("an object", "parts")
_SEPARATOR = "\x1f"


@dataclass(frozen=True)
class Change:
    """One difference between two versions.

    Attributes:
        subject: the thing that differs, ``"len(self.history)"``; empty for a condition of one version alone and for
            global state, which ``now`` says whole.
        was, now: what it was in the older version, what it is in the newer one.
        loops: the layers that it is the same for, ``"for i in range(2)"``.
        times: the number of objects, layers counted one by one.
        seen_by: the label of the version that looks at something that the other does not look at, where that is a
            consequence of the other differences and no difference by itself; else empty.
        module: the module or object that this is a part of.
    """

    subject: str
    was: Side
    now: Side
    loops: str = ""
    times: int = 1
    seen_by: str = ""
    module: str = ""

    @property
    def text(self) -> str:
        """The difference as a line: ``len(self.history): 0 -> 1  (for i in range(2))``."""
        text = f"{self.subject}: {self.was.text} -> {self.now.text}" if self.subject else self.now.text
        return text + (f"  ({self.loops})" if self.loops else "")


#: What one version alone looks at of objects: values and tensors are listed one by one where there are few of them.
FEW = 10
#: A difference, the object by which layers are folded, and whether one version alone looks at a value of an object.
_Found = tuple[Change, str, bool]


@cached
def changes(old: Version, new: Version) -> list[Change]:
    """Return all differences. What is the same for several layers is one of them."""
    found = list(_found(old, new))
    few = sum(is_value for _, _, is_value in found) <= FEW
    items = [Item(_SEPARATOR.join((change.subject, change.was.value, change.now.value)), path, (
        replace(change, seen_by="", module="") if few and is_value else change,)) for change, path, is_value in found]
    result: dict[tuple[str, str], Change] = {}
    for item, loops in unfolded(fold(items)):
        subject, was, now = item.text.split(_SEPARATOR)
        first = item.payloads[0]
        result.setdefault((item.text, loops), replace(
            first, subject=subject, was=replace(first.was, value=was), now=replace(first.now, value=now), loops=loops,
            times=len(item.payloads)))
    return list(result.values())


def _found(old: Version, new: Version) -> Iterator[_Found]:
    before, after = old.facts, new.facts
    either = {*before, *after}
    explained: set[str] = set()
    for subject in [*after, *(each for each in before if each not in after)]:
        first, second = before.get(subject), after.get(subject)
        if first is not None and second is not None:
            if first.text != second.text:
                explained.add(subject)
                yield from ((change, subject, False) for change in _of_both(subject, first, second, old, new))
        elif (only := first or second) is not None:
            explained.add(subject)
            parts = (f"{subject}.", f"{subject}[")
            # (Of what is looked into, its parts are listed.)
            if only.kind != "type" or not any(each.startswith(parts) for each in either):
                is_old = second is None
                other = _PARTS if any(each.startswith(parts) for each in (after if is_old else before)) else NOTHING
                said = Side(only.text, only.kind)
                was, now = (said, other) if is_old else (other, said)
                label, module, is_value = _seen_by((old if is_old else new).label, only.condition, only.kind)
                yield Change(subject, was, now, seen_by=label, module=module), subject, is_value
    for expression, size in new.sizes.open.items():
        known = old.sizes.open.get(expression)
        if known is not None and known.range != size.range:
            yield Change(expression, Side(known.range.in_words()), Side(size.range.in_words())), "", False
    for text in _state(old, new):
        yield _alone(text), "", False
    for label, mine, theirs in ((new.label, new, old), (old.label, old, new)):
        tells_apart = any(isinstance(one, guards.NoAliasing) for one in theirs.conditions)
        for one in mine.conditions:
            if isinstance(one, Tensor) or tells_apart and isinstance(one, guards.NoAliasing):
                continue  # (of which tensors, the tensors that each version looks at say)
            if one.text not in theirs.texts and not _is_said(one, explained, mine):
                change = _alone(f"only {label}: {one.text}", *_seen_by(label, one, "")[:2])
                yield change, one.subject, False


def _alone(text: str, seen_by: str = "", module: str = "") -> Change:
    """Return a difference that a text says whole."""
    return Change("", Side(""), Side(text), seen_by=seen_by, module=module)


def _of_both(subject: str, first: Fact, second: Fact, old: Version, new: Version) -> Iterable[Change]:
    """Return the differences in something that both versions look at."""
    one, other = first.condition, second.condition
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return _tensor(one, other, old, new)
    return (Change(subject, Side(first.text, first.kind), Side(second.text, second.kind)),)


def _seen_by(label: str, one: Condition, kind: str) -> tuple[str, str, bool]:
    """Return which version alone looks at something, at what root, and whether at a value of an object.

    Empty for what a caller can give otherwise.
    """
    internal = one.is_of_internal or isinstance(one, guards.Has) and not (one.present or one.is_attribute)
    if one.section in (ARGUMENTS, CLOSURE) and not internal or one.section == STATE or one.is_computed:
        return "", "", False
    root = module_of_import(one.root) or one.root
    if one.root.startswith(BUILTINS_PREFIX):
        root = "built-in functions"
    elif one.section == GLOBALS and root == one.root:
        root = "globals of its module"
    return label, root, one.section == OBJECTS and kind in ("tensor", "value") and not internal


#: Lines about the differences of a version before other things; where there are more, they are in brief.
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


def _tensor(first: Tensor, second: Tensor, old: Version, new: Version) -> Iterator[Change]:
    subject = second.subject
    if len(first.size) != len(second.size):
        yield Change(subject, Side(f"{len(first.size)} dimensions"), Side(str(len(second.size))))
    else:
        for k, (one, other) in enumerate(zip(first.size, second.size)):
            size = f"{subject}.shape[{k}]"
            if one != other or one is None and (size in old.sizes.open) != (size in new.sizes.open):
                yield Change(size, _size(size, one, old), _size(size, other, new))
    for name, was, now in (("dtype", first.dtype, second.dtype), ("device", first.device, second.device),
                           ("requires_grad", str(first.requires_grad), str(second.requires_grad)),
                           ("class", first.cls or "Tensor", second.cls or "Tensor")):
        if was != now:
            yield Change(f"{subject}.{name}", Side(was), Side(now))
    was, now = old.sizes.layout(first), new.sizes.layout(second)
    # (Strides that follow from sizes that differ are no other layout.)
    same_size = None not in (*first.stride, *second.stride) and first.size == second.size
    if was != now and (same_size or not (was.startswith("strides") and now.startswith("strides"))):
        yield Change(subject, Side(was), Side(now))


def _size(expression: str, size: int | None, version: Version) -> Side:
    if size is not None:
        return Side(str(size))
    known = version.sizes.open.get(expression)
    if known is not None:
        return Side(known.range.in_words(), "open")
    expressions = {each.name: each.expression for each in version.sizes.open.values()}
    return Side(substituted(version.sizes.names.get(expression, "another size"), expressions), "equal")


def _state(old: Version, new: Version) -> Iterable[str]:
    first, second = old.state, new.state
    for name in dict.fromkeys([*second, *first]):
        if first.get(name) != second.get(name) and first and second:
            was, now = (state_in_words(name, state[name]) if name in state else NOTHING.text
                        for state in (first, second))
            yield f"{was} -> {now}"


def _is_said(condition: Condition, explained: set[str], version: Version) -> bool:
    """Return whether a difference that is listed already says so."""
    about = {condition.subject, f"len({condition.subject})"}
    match condition:
        case guards.State():
            return True
        case guards.NoAliasing():  # (it names all tensors that the version looks at)
            about = {*condition.tensors}
        case guards.Marks():
            about = {condition.subject}
        case guards.Comparison(sign="==" | "is" | "is not") if condition.left == condition.subject:
            pass
        case guards.Type() | guards.SameObject() | guards.Length() | guards.Not() | guards.Has(is_attribute=True):
            pass
        case _:
            return condition.text in version.sizes.implied
    return not explained.isdisjoint(about) or condition.text in version.sizes.implied
