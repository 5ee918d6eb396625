"""A compiled version as its reader knows it: by a number, with its conditions in the user's words."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, TypeVar

from ....model.guards import Condition, Equals, Length, SameObject, State, Tensor, Type, distinguished
from ....model.reading import Keys, Reader
from ....records.model import CacheEntry, Compilation, Frame
from ....records.naming import legal_identifier
from ...changes import in_words, made_anew_on_stack
from ...inductor_ranges import with_causes
from ...remembered import Same, once
from .sizes import Sizes, equations, open_sizes

Made = TypeVar("Made")
Others = ParamSpec("Others")


@dataclass(frozen=True)
class Fact:
    """What a version says of one object: ``3``, ``None``, ``f32[batch, 4] on cpu``, any ``float``.

    Several conditions may be about one object; the fact is what they come to. Versions are compared by their facts.

    Attributes:
        kind: ``"tensor"``, ``"value"``, ``"object"`` (a certain one) or ``"type"``.
        text: in words.
        condition: that says so.
    """

    kind: str
    text: str
    condition: Condition


_WEIGHT = {"tensor": 3, "value": 2, "object": 1, "type": 0}


def fact_of(condition: Condition, sizes: Sizes) -> tuple[str, Fact] | None:
    """Return the object that a condition decides about, and what it says; ``None`` for other conditions."""
    subject = condition.subject
    match condition:
        case Tensor():
            return subject, Fact("tensor", sizes.described(condition), condition)
        case Equals() if condition.left == subject:
            return subject, Fact("value", condition.right, condition)
        case Length() if condition.of == subject:
            return f"len({subject})", Fact("value", str(condition.count), condition)
        case Type() if condition.of == subject:
            return subject, Fact("type", f"any {condition.name}", condition)
        case SameObject() if condition.of == subject:
            return subject, Fact("object", f"one certain {condition.name or 'object'}", condition)
    return None


@dataclass(frozen=True, eq=False)
class Version:
    """A cache entry of a frame.

    Attributes:
        number: counts the versions of a frame in the order in which they were compiled.
        conditions: its guards in the user's words, in torch's order.
        sizes: the sizes that they leave open.
        compilation: how it was compiled, where that is known.
        dead: the value on the stack, ``___stack0``, by which it serves no call but the one that it was compiled for;
            empty for all other versions.
    """

    frame: Frame
    entry: CacheEntry
    number: int
    conditions: tuple[Condition, ...]
    sizes: Sizes
    compilation: Compilation | None = None
    dead: str = ""

    @property
    def failed(self) -> bool:
        """Return whether its compilation failed, so that it is no version: torch had made its code by then."""
        return self.compilation is not None and self.compilation.outcome == "failed"

    @property
    def why_dead(self) -> str:
        """Return why the version serves no more calls, as a sentence; empty if it does."""
        name = in_words(self.dead, {f"___stack{number}": text for number, text in enumerate(self.frame.stack)})
        return f"{name} is a new bound method at each call, so this version dies with it." if self.dead else ""

    @property
    def guards_name(self) -> str:
        """Return the name of the function with its guards."""
        return guards_name(self.frame, self.entry, self.number)

    @property
    def guards_file(self) -> str:
        """Return the name of the file that has all its conditions: functions can have the same name."""
        return self.entry.guards_file or f"{self.guards_name}.py"

    @functools.cached_property
    def facts(self) -> dict[str, Fact]:
        """Facts by the object that they hold for; ``len(x)`` is one of its own."""
        result: dict[str, Fact] = {}
        for subject, fact in filter(None, (fact_of(one, self.sizes) for one in self.conditions)):
            if subject not in result or _WEIGHT[result[subject].kind] < _WEIGHT[fact.kind]:
                result[subject] = fact
        return result

    @functools.cached_property
    def state(self) -> dict[str, str]:
        """Torch's state as the guards want it: ``{"grad_mode": "False", ...}``."""
        return {name: value for one in self.conditions if isinstance(one, State) for name, value in one.settings}

    @functools.cached_property
    def keys(self) -> Keys:
        """The keys of dictionaries that it looks at by place."""
        return Keys(self.conditions)

    @functools.cached_property
    def equations(self) -> dict[str, Condition]:
        """Open sizes of which an expression has to be one number, each with the equation (:func:`.sizes.equations`)."""
        return equations(self.sizes, self.conditions)

    @functools.cached_property
    def texts(self) -> frozenset[str]:
        """Its conditions, those on tensors with what is open in them."""
        return frozenset(one.text for one in self.conditions)

    @property
    def label(self) -> str:
        """``[0/1]``."""
        return str(self.entry.compile_id)


def cached(make: Callable[Concatenate[Version, Others], Made]) -> Callable[Concatenate[Version, Others], Made]:
    """Store the results of a function on the version that it is called with: several views ask for them."""
    @functools.wraps(make)
    def stored(version: Version, *others: Others.args, **by_name: Others.kwargs) -> Made:
        results: dict[object, Made] = vars(version).setdefault(f"{make.__module__}.{make.__qualname__}", {})
        key = (*others, *by_name.items())
        if key not in results:
            results[key] = make(version, *others, **by_name)
        return results[key]

    return stored


def versions(frame: Frame, compilations: Mapping[tuple[int, int, int], Compilation]) -> list[Version]:
    """Return the versions of a frame in the order in which they were compiled.

    (Of one run, the compilations are the same for all views.)
    """
    return once(("versions", Same(frame)), lambda: _versions(frame, compilations))


def _versions(frame: Frame, compilations: Mapping[tuple[int, int, int], Compilation]) -> list[Version]:
    reader = Reader(frame)
    result = []
    keys = {entry.compile_id.frame_key for entry in frame.entries}
    anew = made_anew_on_stack(each for each in compilations.values() if each.compile_id.frame_key in keys)
    entries = in_order(frame)
    names = {f"___stack{number}": text for number, text in enumerate(frame.stack) if text}
    of_entries = distinguished([with_causes(reader.read(entry.guards), compilations.get(entry.compile_id.key), names)
                             for entry in entries])
    for number, (entry, conditions) in enumerate(zip(entries, of_entries)):
        compilation = compilations.get(entry.compile_id.key)
        dead = next((each.subject for each in conditions if each.subject in anew and isinstance(each, SameObject)), "")
        sizes = open_sizes(conditions, frame, compilation)
        result.append(Version(frame, entry, number, tuple(conditions), sizes, compilation, dead))
    return result


def in_order(frame: Frame) -> list[CacheEntry]:
    """Return the entries of a frame in the order in which they were compiled."""
    return sorted(frame.entries, key=lambda entry: (_number(entry), entry.compile_id.key))


def guards_name(frame: Frame, entry: CacheEntry, number: int) -> str:
    """Return the name of the function with the guards of a version: ``guards_0_for_f`` as its code is named."""
    usual = f"__transformed_code_{number}_for_{legal_identifier(frame.name)}"
    return (_transformed_name(entry) or usual).replace("__transformed_code", "guards", 1)


def _transformed_name(entry: CacheEntry) -> str:
    match = re.search(r"def (__transformed_code_\d+_\w+)\(", entry.transformed.source.text)
    return match[1] if match else ""


def nearest(version: Version, compiled: Sequence[Version]) -> Version | None:
    """Return the version that a version is best compared with; ``None`` for the first.

    Of those compiled before it, the one that has the most conditions in common; the latest of several.
    """
    mine = version.texts
    before = [each for each in compiled[: version.number] if not each.failed]
    return max(before, key=lambda other: (-len(mine ^ other.texts), other.number), default=None)


def of_some(version: Version, compiled: Sequence[Version]) -> dict[str, int]:
    """Return the texts of its conditions that not all other versions of the function have, with how many of them do.

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


def _number(entry: CacheEntry) -> int:
    """Return the number that the name of the transformed code has."""
    name = _transformed_name(entry)
    return int(name.split("_")[4]) if name else 0


def by_compile_id(compilations: Sequence[Compilation]) -> dict[tuple[int, int, int], Compilation]:
    """Return compilations by the keys of their ids."""
    return {compilation.compile_id.key: compilation for compilation in compilations}


def signature(frame: Frame) -> str:
    """Return the parameters of a ``def``; legal Python whatever torch named them."""
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
