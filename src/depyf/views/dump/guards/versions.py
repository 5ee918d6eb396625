"""A compiled version of a function: its number, and its conditions in the words of the user's program."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ....decompiler.dynamo.global_names import BUILTINS_PREFIX, module_of_import
from ....model import guards
from ....model.arithmetic import substituted
from ....model.folding import Block, Item, fold, fold_layers, unfolded
from ....model.guards import ARGUMENTS, CLOSURE, GLOBALS, OBJECTS, STATE, Condition, SameObject, Tensor
from ....model.reading import Keys, Reader, is_literal, keys_in
from ....records.model import CacheEntry, Capture, Compilation, Frame
from ....records.naming import legal_identifier, transformed_function
from ....torch_text.guard_failures import is_made_anew
from ....torch_text.user_expressions import known_on_stack, stack_value, with_stack_names
from ....torch_text.wrapping import comment
from ....values import Same, frozen, once
from ...changes import in_words, value
from ...markdown import code, count
from .sizes import Sizes, equations, open_sizes, with_causes


@frozen
class Fact:
    """What a version says of one object: ``3``, ``None``, ``f32[batch, 4] on cpu``, any ``float``.

    Of several conditions on one object, the most specific one counts. Versions are compared by their facts.
    """

    kind: str  # `"tensor"`, `"value"`, `"object"` (a certain one) or `"type"`
    text: str
    condition: Condition


_WEIGHT = {"tensor": 3, "value": 2, "object": 1, "type": 0}


def fact_of(condition: Condition, sizes: Sizes) -> tuple[str, Fact] | None:
    """Return the object that a condition decides about, and what it says; ``None`` for other conditions."""
    subject = condition.subject
    match condition:
        case Tensor():
            return subject, Fact("tensor", sizes.described(condition), condition)
        case guards.Equals() if condition.left == subject:
            return subject, Fact("value", condition.right, condition)
        case guards.Length() if condition.of == subject:
            return f"len({subject})", Fact("value", str(condition.count), condition)
        case guards.Type() if condition.of == subject:
            return subject, Fact("type", f"any {condition.name}", condition)
        case SameObject() if condition.of == subject:
            return subject, Fact("object", f"one certain {condition.name or 'object'}", condition)
    return None


@dataclass(frozen=True, eq=False)
class Version:
    """A cache entry of a frame."""

    frame: Frame
    entry: CacheEntry
    number: int  # counts the versions of a frame in the order in which they were compiled
    conditions: tuple[Condition, ...]  # its guards in the user's words, in torch's order
    sizes: Sizes  # the sizes that they leave open
    compilation: Compilation | None = None  # its compilation, if known
    # the value on the stack, `___stack0`, because of which it serves only the call that it was compiled for; else empty
    dead: str = ""

    @property
    def failed(self) -> bool:
        """Return whether its compilation failed after torch had made its code, so that it is no version."""
        return self.compilation is not None and self.compilation.outcome == "failed"

    @property
    def why_dead(self) -> str:
        """Return why the version serves no more calls, as a sentence; empty if it does."""
        name = in_words(self.dead, known_on_stack(self.frame.stack))
        return f"{name} is a new bound method at each call, so this version dies with it." if self.dead else ""

    @property
    def guards_name(self) -> str:
        """Return the name of the function with its guards."""
        return guards_name(self.frame, self.entry, self.number)

    @property
    def guards_file(self) -> str:
        """Return the name of the file with all its conditions (functions can have the same name)."""
        return self.entry.guards_file or f"{self.guards_name}.py"

    @functools.cached_property
    def facts(self) -> dict[str, Fact]:
        """The facts by object; ``len(x)`` counts as an object."""
        result: dict[str, Fact] = {}
        for subject, fact in filter(None, (fact_of(one, self.sizes) for one in self.conditions)):
            if subject not in result or _WEIGHT[result[subject].kind] < _WEIGHT[fact.kind]:
                result[subject] = fact
        return result

    @functools.cached_property
    def wanted(self) -> dict[str, str]:
        """The one value or type that it takes of things, as torch has them when a guard fails: ``{"x.ndim": "2"}``."""
        result: dict[str, str] = {}
        for subject, fact in self.facts.items():
            match fact.condition:
                case Tensor() as one:
                    sizes = {f"shape[{k}]": str(size) for k, size in enumerate(one.size) if size is not None}
                    result[f"type({subject})"] = one.cls or "Tensor"
                    result |= {f"{subject}.{name}": value for name, value in {
                        "ndim": str(len(one.size)), "dtype": f"torch.{one.dtype}",
                        "requires_grad": str(one.requires_grad), **sizes}.items()}
                case guards.Type() as one:
                    result[f"type({subject})"] = one.name
                case _ if fact.kind == "value":
                    result |= {f"type({subject})": "NoneType"} if fact.text == "None" else {subject: fact.text}
        return result

    @functools.cached_property
    def state(self) -> dict[str, str]:
        """Torch's state as the guards want it: ``{"grad_mode": "False", ...}``."""
        return dict(setting for one in self.conditions if isinstance(one, guards.State) for setting in one.settings)

    @functools.cached_property
    def keys(self) -> Keys:
        """The keys of dictionaries that it looks at by place."""
        return Keys(self.conditions)

    @functools.cached_property
    def equations(self) -> dict[str, Condition]:
        """Open sizes of which an expression has to be one number, each with its equation."""
        return equations(self.sizes, self.conditions)

    @functools.cached_property
    def texts(self) -> frozenset[str]:
        """The texts of its conditions."""
        return frozenset(one.text for one in self.conditions)

    @functools.cached_property
    def sections(self) -> list[tuple[str, list[Condition]]]:
        """Its conditions by subject, with a title for each section."""
        groups = fold(self.conditions, lambda one: (one.section, one.root if one.section == OBJECTS else ""))
        titles = {ARGUMENTS: "arguments", CLOSURE: "variables of the enclosing function",
                  GLOBALS: "modules and globals", STATE: "torch's state"}
        ordered = sorted(groups, key=lambda key: (ARGUMENTS, CLOSURE, OBJECTS, GLOBALS, STATE).index(key[0]))
        return [(titles.get(key[0], key[1]), groups[key]) for key in ordered]

    @functools.cached_property
    def folded(self) -> list[list[Item[Condition] | Block[Condition]]]:
        """The conditions of each section, folded by layer."""
        return [fold_layers([Item(self.sizes.text(one), one.subject, (one,)) for one in members])
                for _, members in self.sections]

    @property
    def label(self) -> str:
        """``[0/1]``."""
        return str(self.entry.compile_id)


def versions(frame: Frame, capture: Capture) -> list[Version]:
    """Return the versions of a frame in the order in which they were compiled; made once for all views of a run."""
    return once(("versions", Same(frame)), lambda: _versions(frame, capture.by_id))


def _versions(frame: Frame, compilations: Mapping[tuple[int, int, int], Compilation]) -> list[Version]:
    reader = Reader(frame)
    result = []
    keys = {entry.compile_id.frame_key for entry in frame.entries}
    # (Values on the stack at a graph break that are another object at each call.)
    anew = {stack_value(failure.source) for each in compilations.values() if each.compile_id.frame_key in keys
            for failure in each.guard_failures if is_made_anew(failure)} - {""}
    entries = in_order(frame)
    names = known_on_stack(frame.stack)
    of_entries = guards.distinguished([with_causes(
        reader.read(entry.guards), compilations.get(entry.compile_id.key), names) for entry in entries])
    for number, (entry, conditions) in enumerate(zip(entries, of_entries)):
        compilation = compilations.get(entry.compile_id.key)
        dead = next((each.subject for each in conditions if each.subject in anew and isinstance(each, SameObject)), "")
        sizes = open_sizes(conditions, frame, compilation)
        result.append(Version(frame, entry, number, tuple(conditions), sizes, compilation, dead))
    return result


def in_order(frame: Frame) -> list[CacheEntry]:
    """Return the entries of a frame in the order in which they were compiled."""
    return sorted(frame.entries, key=lambda entry: (
        transformed_function(entry.transformed.source.text)[1], entry.compile_id.key))


def guards_name(frame: Frame, entry: CacheEntry, number: int) -> str:
    """Return the name of the function with a version's guards: ``guards_0_for_f`` of ``__transformed_code_0_for_f``."""
    usual = f"__transformed_code_{number}_for_{legal_identifier(frame.name)}"
    return (transformed_function(entry.transformed.source.text)[0] or usual).replace("__transformed_code", "guards", 1)


def nearest(version: Version, compiled: Sequence[Version]) -> Version | None:
    """Return the earlier version with most conditions in common, the latest of several; ``None`` for the first."""
    mine = version.texts
    before = [each for each in compiled[: version.number] if not each.failed]
    return max(before, key=lambda other: (-len(mine ^ other.texts), other.number), default=None)


def not_in_all(version: Version, compiled: Sequence[Version]) -> dict[str, int]:
    """Return the texts of its conditions that not all other versions of the function have, with how many do.

    They show which version serves a call: the fewer have one, the more it says.
    """
    others = [other.texts for other in compiled if other is not version and not other.failed]
    having = {text: sum(text in texts for texts in others) for text in version.texts}
    return {text: number for text, number in having.items() if number < len(others)}


def deciding(compiled: Sequence[Version]) -> frozenset[str]:
    """Return the texts of conditions that want another thing of an object than those of another version do."""
    wanted: dict[str, str] = {}
    differ: set[str] = set()
    for version in compiled:
        for subject, fact in version.facts.items() if not version.failed else ():
            if wanted.setdefault(subject, fact.text) != fact.text:
                differ.add(subject)
    return frozenset(version.facts[subject].condition.text for version in compiled for subject in differ
                     if subject in version.facts and not version.failed)


def signature(frame: Frame) -> str:
    """Return the parameters of a ``def``, legal Python whatever torch named them."""
    text = frame.signature or ", ".join(frame.arguments)
    try:
        compile(f"def f({text}): ...", "signature", "exec")
    except (SyntaxError, ValueError):
        return ", ".join(legal_identifier(name) for name in frame.arguments)
    return text


def state_in_words(name: str, value: str) -> str:
    """Return ``grad mode off``."""
    if name == "autocast":
        return "no autocast" if value == "{}" else f"autocast {value.strip('{}')}".replace("'", "")
    shown = name.replace("_", " ")
    if value in ("True", "False"):
        return f"{shown} {'on' if value == 'True' else 'off'}"
    return f"{shown} {value.removeprefix('torch.')}"


# --- The differences between two versions of a function: why torch compiled it again -----------------
@frozen
class Side:
    """What something is in one version."""

    value: str
    # that of a fact; `"open"` for any size in a range, `"equal"` for a size that is always equal to another, `"none"`
    # where the version does not look
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


@frozen
class Change:
    """One difference between two versions."""

    # what differs, `"len(self.history)"`; empty for a condition of one version alone and for global state, where `now`
    # is the whole text
    subject: str
    # was, now: what it was in the older version, what it is in the newer one
    was: Side
    now: Side
    loops: str = ""  # the layers that it is the same for, `"for i in range(2)"`
    times: int = 1  # the number of objects, layers counted one by one
    # of what only one version looks at, where that follows from the other differences: `"only [0/1] looks at
    # self.critic"`; else empty
    seen_by: str = ""

    @property
    def text(self) -> str:
        """The difference as a line: ``len(self.history): 0 -> 1  (for i in range(2))``."""
        text = f"{self.subject}: {self.was.text} -> {self.now.text}" if self.subject else self.now.text
        return text + (f"  ({self.loops})" if self.loops else "")


#: What one version alone looks at of objects: values and tensors are listed one by one where there are few of them.
FEW = 10


def changes(old: Version, new: Version) -> list[Change]:
    """Return all differences; one that is the same for several layers once. Several views need them."""
    return once(("changes", old, new), lambda: _changes(old, new))


def _changes(old: Version, new: Version) -> list[Change]:
    found = list(_found(old, new))
    few = sum(is_value for _, _, is_value in found) <= FEW
    items = [Item(_SEPARATOR.join((change.subject, change.was.value, change.now.value)), path, (
        replace(change, seen_by="") if few and is_value else change,)) for change, path, is_value in found]
    result: dict[tuple[str, str], Change] = {}
    for item, loops in unfolded(fold_layers(items)):
        subject, was, now = item.text.split(_SEPARATOR)
        first = item.payloads[0]
        result.setdefault((item.text, loops), replace(
            first, subject=subject, was=replace(first.was, value=was), now=replace(first.now, value=now), loops=loops,
            times=len(item.payloads)))
    return list(result.values())


def _found(old: Version, new: Version) -> Iterator[tuple[Change, str, bool]]:
    """Yield differences, the objects to fold by, and whether one version alone looks at a value of an object."""
    before, after = old.facts, new.facts
    either = {*before, *after}
    explained: set[str] = set()
    for subject in [*after, *(each for each in before if each not in after)]:
        first, second = before.get(subject), after.get(subject)
        if first is not None and second is not None:
            if first.text != second.text:
                explained.add(subject)
                one, other = first.condition, second.condition
                if isinstance(one, Tensor) and isinstance(other, Tensor):
                    yield from ((change, subject, False) for change in _tensor(one, other, old, new))
                else:
                    yield Change(subject, Side(first.text, first.kind), Side(second.text, second.kind)), subject, False
        elif (only := first or second) is not None:
            explained.add(subject)
            parts = (f"{subject}.", f"{subject}[")
            # (Of what is looked into, its parts are listed.)
            if only.kind != "type" or not any(each.startswith(parts) for each in either):
                is_old = second is None
                missing = _PARTS if any(each.startswith(parts) for each in (after if is_old else before)) else NOTHING
                said = Side(only.text, only.kind)
                was, now = (said, missing) if is_old else (missing, said)
                seen_by, is_value = _seen_by((old if is_old else new).label, only.condition, only.kind)
                yield Change(subject, was, now, seen_by=seen_by), subject, is_value
    for expression, size in new.sizes.open.items():
        known = old.sizes.open.get(expression)
        if known is not None and known.range != size.range:
            yield Change(expression, Side(known.range.in_words()), Side(size.range.in_words())), "", False
    for name in dict.fromkeys([*new.state, *old.state]) if old.state and new.state else ():
        if old.state.get(name) != new.state.get(name):
            words = [state_in_words(name, state[name]) if name in state else NOTHING.text
                     for state in (old.state, new.state)]
            yield Change("", Side(""), Side(" -> ".join(words))), "", False
    for mine, theirs in ((new, old), (old, new)):
        asks_for_other_tensors = any(isinstance(one, guards.NoAliasing) for one in theirs.conditions)
        for one in mine.conditions:
            if isinstance(one, Tensor) or asks_for_other_tensors and isinstance(one, guards.NoAliasing):
                continue  # (of which tensors, the tensors that each version looks at say)
            if one.text not in theirs.texts and not _is_implied(one, explained, mine):
                yield Change("", Side(""), Side(f"only {mine.label}: {one.text}"),
                             seen_by=_seen_by(mine.label, one, "")[0]), one.subject, False


def _seen_by(label: str, one: Condition, kind: str) -> tuple[str, bool]:
    """Return that one version looks at something, and if at a value; empty for what a caller decides about."""
    internal = one.is_of_internal or isinstance(one, guards.Has) and not (one.present or one.is_attribute)
    if one.section in (ARGUMENTS, CLOSURE) and not internal or one.section == STATE or one.is_computed:
        return "", False
    root = module_of_import(one.root) or one.root
    if one.root.startswith(BUILTINS_PREFIX):
        root = "built-in functions"
    elif one.section == GLOBALS and root == one.root:
        root = "globals of its module"
    return f"only {label} looks at {root}", one.section == OBJECTS and kind in ("tensor", "value") and not internal


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
    stack = known_on_stack(new.frame.stack)
    texts: list[str] = []
    counted: Counter[str] = Counter()
    for change in differences:
        if longest and change.seen_by:
            counted[change.seen_by] += change.times
        else:
            texts.append(change.text)
    texts += [f"{seen_by}: {count(number, 'condition')}" for seen_by, number in counted.items()]
    for text in texts:
        lines += comment(f"  {with_stack_names(text, stack)}", 0, 6)
    if longest and len(lines) > longest:
        lines[longest - 1 :] = [f"#   and {len(lines) - longest + 1} lines more: {whole or new.guards_file}"]
    elif longest and any(change.seen_by for change in differences):
        lines.append(f"#   (each of these: {whole or new.guards_file})")
    return lines


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


def _is_implied(condition: Condition, explained: set[str], version: Version) -> bool:
    """Return whether a listed difference already implies a condition."""
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


# --- Further differences between a version that was compiled again and an earlier one that is like it ----------------
# Torch names the first guard that failed and stops there: with that one mended, the next one fails. The guards of both
# versions show the others:
#
#     len(self.history): 0 -> 1             torch says this
#     len(self.critic.stats): 0 -> 1        this would have failed next
#     self.history[0]: not looked at -> 3   the new version is for this value alone
#: Differences that are listed one by one.
MOST = 3


def _row(change: Change) -> str:
    """Return ``len(self.critic.stats)``: 0 → 1, as Markdown."""
    loops = f" ({code(change.loops)})" if change.loops else ""
    if change.was.kind == "none":
        return f"{code(change.subject)} has to be {value(change.now.value)} now{loops}"
    return f"{code(change.subject)}: {_side(change.was)} → {_side(change.now)}{loops}"


def _side(side: Side) -> str:
    """Return a value; of a size that is open the range, or what it is equal to."""
    if side.kind == "equal":
        return f"equal to {code(side.value)}"
    return side.value if side.kind == "open" else value(side.value)


def version_differences(old: Version, new: Version, names: Mapping[str, str]) -> list[Change]:
    """Return what the older version asks and the newer does not, then the values that the newer alone looks at."""
    failing: list[Change] = []
    asked: list[Change] = []
    for change in changes(old, new):
        if not change.subject or change.seen_by or guards.is_internal_of_object(change.subject):
            continue
        subject = in_words(change.subject, names)
        was, now = (replace(each, value=in_words(each.value, names)) if each.kind == "equal" else each
                    for each in (change.was, change.now))
        if was.kind == now.kind == "type":
            subject = f"type({subject})"
            was, now = (replace(each, value=each.value.removeprefix("any ")) for each in (was, now))
        elif now.kind == "none" or was.kind in ("type", "object"):  # (the older version takes more)
            continue
        if was.kind != "none" or is_literal(now.value):
            same = failing if was.kind != "none" else asked
            same.append(replace(change, subject=subject, was=was, now=now))
    # (A graph break that the newer version does not have cut the older one short: it looks at less.)
    ended, ends = ([broken.location for broken in version.compilation.breaks] if version.compilation is not None else []
                   for version in (old, new))
    # (A size that changes is often open in the next version. A value of the program's own may change at each call.)
    return sorted(failing, key=lambda each: ".shape[" in each.subject) + ([] if {*ended} - {*ends} else asked)


def keywords(old: Version, new: Version, more: int) -> tuple[tuple[str, bool], ...]:
    """Return the keyword arguments that only one version got, and whether that is the newer; none if not certain."""
    was, now = (dict.fromkeys(name for one in version.conditions for owner, key in keys_in(one.subject)
                              if owner == "kwargs" and (name := key[1:-1]).isidentifier()) for version in (old, new))
    gone, came = [name for name in was if name not in now], [name for name in now if name not in was]
    if more > 0 and len(came) == more and not gone:
        return tuple((name, True) for name in came)
    if more < 0 and len(gone) == -more and not came:
        return tuple((name, False) for name in gone)
    return ()


def as_row(old: Version, new: Version, differences: Iterable[Change]) -> str:
    """Return the differences as a clause; ``""`` where there are none."""
    rows = list(map(_row, differences))
    if not rows:
        return ""
    shown = rows if len(rows) <= MOST + 1 else rows[:MOST]
    more = f"; and {len(rows) - len(shown)} more: {code(new.guards_file)}" if len(shown) < len(rows) else ""
    return f"{code(new.label)} differs from {code(old.label)} in this, too: {'; '.join(shown)}{more}"
