"""Folds texts that repeat from layer to layer.

A model of 32 layers has the same conditions on each, ``self.layers[0]`` to ``self.layers[31]``::

    self.norm.weight                     Item
    self.layers[0].up, ...[0].down       Block(container="self.layers", letter="i", numbers=(0, ..., 31),
    ...                                        body=(self.layers[i].up, self.layers[i].down))
    self.layers[31].up, ...[31].down

What is the same for some layers only has a block of its own, or is an item.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

#: So many numbers are listed, even if each is the same more than the one before.
_FEW = 8
LETTERS = "ijklmnpqrstuvw"
#: The number of a member. (Those of sizes and strides are none.)
_NUMBER = re.compile(r"\[(?<!\.shape\[)(?<!stride\(\)\[)(\d+)\]")
#: What a path is in: a call whose bracket is not closed.
_UNCLOSED = re.compile(r"^.*\((?=[^()]*$)")
Payload = TypeVar("Payload")


@dataclass(frozen=True)
class Item(Generic[Payload]):
    """One text about one object.

    Attributes:
        subject: the object, which the text names.
        payloads: what else is known of it; in a block those of all members.
    """

    text: str
    subject: str
    payloads: tuple[Payload, ...]


@dataclass(frozen=True)
class Block(Generic[Payload]):
    """Texts that hold for several members of one container.

    Attributes:
        container: ``"self.layers"``.
        letter: in the texts in place of the number of the member.
        numbers: of the members.
    """

    container: str
    letter: str
    numbers: tuple[int, ...]
    body: tuple[Item[Payload] | Block[Payload], ...]

    @property
    def count(self) -> int:
        """The number of texts, of all members together."""
        return len(self.numbers) * sum(each.count if isinstance(each, Block) else 1 for each in self.body)

    @property
    def member(self) -> str:
        """``self.layers[i]``, of ``type(self.layers[i])`` too."""
        return f"{_UNCLOSED.sub('', self.container)}[{self.letter}]"

    def loop(self) -> str:
        """Return ``for i in range(32)``."""
        return f"for {self.letter} in {series(self.numbers)}"


def series(numbers: Sequence[int]) -> str:
    """Return numbers as the iterable of a loop: ``range(32)``, ``(0, 2, 5)``, ``(0, *range(2, 44))``."""
    first, last = numbers[0], numbers[-1]
    if list(numbers) == list(range(first, last + 1)):
        return f"range({first}, {last + 1})" if first else f"range({last + 1})"
    step = numbers[1] - first
    if len(numbers) > _FEW and list(numbers) == list(range(first, last + 1, step)):
        return f"range({first}, {last + 1}, {step})"
    return f"({', '.join(str(low) if low == high else f'*range({low}, {high + 1})' for low, high in _runs(numbers))})"


def spelled(numbers: Sequence[int]) -> str:
    """Return numbers in a sentence: ``0 to 31``, ``0 and 2``, ``0 and 2 to 43``."""
    words = [str(low) if low == high else f"{low} to {high}" for low, high in _runs(numbers)]
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of consecutive numbers; of fewer than three each by itself."""
    start = 0
    for at, number in enumerate(numbers):
        if at + 1 < len(numbers) and numbers[at + 1] == number + 1:
            continue
        run = numbers[start : at + 1]
        if len(run) < 3:
            yield from ((each, each) for each in run)
        else:
            yield run[0], number
        start = at + 1


def fold(items: Sequence[Item[Payload]]) -> list[Item[Payload] | Block[Payload]]:
    """Return the items with those that repeat in blocks, each at the place of its first."""
    names = set("\n".join(item.text for item in items).translate(_ONLY_WORDS).split())
    return _fold(items, [letter for letter in LETTERS if letter not in names])


#: For ``str.translate``: blanks for what is between words. (Much faster than a pattern, and texts are long.)
_ONLY_WORDS = "".join(each if each.isalnum() or each == "_" else " " for each in map(chr, range(128)))


def _fold(
    items: Sequence[Item[Payload]], letters: Sequence[str], start: int = 0
) -> list[Item[Payload] | Block[Payload]]:
    """Fold by the first number in each subject from ``start`` on; without letters, only group by member."""
    containers: dict[str, dict[int, list[Item[Payload]]]] = {}
    places: list[str | Item[Payload]] = []
    for item in items:
        match = _NUMBER.search(item.subject, start)
        if match is None:
            places.append(item)
            continue
        container = item.subject[: match.start()]
        if container not in containers:
            places.append(container)
        containers.setdefault(container, {}).setdefault(int(match[1]), []).append(item)
    result: list[Item[Payload] | Block[Payload]] = []
    for place in places:
        result += [place] if isinstance(place, Item) else _folded(place, containers[place], letters)
    return result


#: Members with a text, by that with the letter, subject and how often it occurred before.
_ByText = dict[tuple[str, str, int], dict[int, Item[Payload]]]


def _folded(
    container: str, members: dict[int, list[Item[Payload]]], letters: Sequence[str]
) -> Iterator[Item[Payload] | Block[Payload]]:
    if not letters:
        for number, group in members.items():
            yield from _fold(group, letters, len(f"{container}[{number}]"))
        return
    letter = letters[0]
    by_text: _ByText[Payload] = {}
    for number, group in members.items():
        plain, there = f"{container}[{number}]", f"{container}[{letter}]"
        for item in group:
            named = plain in item.text
            text, subject = (each.replace(plain, there) if named else each for each in (item.text, item.subject))
            again = 0
            while number in by_text.get((text, subject, again), ()):
                again += 1
            by_text.setdefault((text, subject, again), {})[number] = item
    classes: dict[tuple[int, ...], list[Item[Payload]]] = {}
    for (text, subject, _), by_number in _with_own_numbers(by_text, letter).items():
        numbers = tuple(sorted(by_number))
        if len(numbers) == 1:
            item = by_number[numbers[0]]
        else:
            item = Item(text, subject, tuple(each for item in by_number.values() for each in item.payloads))
        classes.setdefault(numbers, []).append(item)
    for numbers, group in classes.items():
        if len(numbers) > 1:
            yield Block(container, letter, numbers, tuple(_fold(group, letters[1:])))
        else:
            yield from _fold(group, (), len(f"{container}[{numbers[0]}]"))


def _with_own_numbers(by_text: _ByText[Payload], letter: str) -> _ByText[Payload]:
    """Join the texts that end in the number of the layer: ``self.layers[0].index == 0``, ``...[1].index == 1``."""
    own: _ByText[Payload] = {}
    wanted: dict[tuple[str, str, int], tuple[str, str, int]] = {}
    for key, by_number in by_text.items():
        number = next(iter(by_number))
        if len(by_number) == 1 and key[0].endswith(f" == {number}"):
            wanted[key] = f"{key[0].removesuffix(str(number))}{letter}", key[1], key[2]
            own.setdefault(wanted[key], {}).update(by_number)
    result: _ByText[Payload] = {}
    for key, by_number in by_text.items():
        joined = own.get(wanted.get(key, key), {})
        result.update({wanted[key]: joined} if len(joined) > 1 else {key: by_number})
    return result


def unfolded(folded: Iterable[Item[Payload] | Block[Payload]], loops: str = "") -> Iterator[tuple[Item[Payload], str]]:
    """Yield each text once, with its loops: ``"for i in range(32)"``."""
    for each in folded:
        if isinstance(each, Item):
            yield each, loops
        else:
            yield from unfolded(each.body, f"{loops} {each.loop()}".strip())
