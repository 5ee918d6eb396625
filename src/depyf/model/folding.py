"""Folding of what is alike: items with one key, ranges of numbers, layers.

A model of 32 layers has the same operations in each, ``layers.0`` to ``layers.31``, and the same conditions on each,
``self.layers[0]`` to ``self.layers[31]``::

    self.norm.weight                     Item
    self.layers[0].up, ...[0].down       Block(container="self.layers", letter="i", numbers=(0, ..., 31),
    ...                                        body=(self.layers[i].up, self.layers[i].down))
    self.layers[31].up, ...[31].down

What is the same for some layers only has a block of its own, or is an item.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from ..values import frozen

Member = TypeVar("Member")
Key = TypeVar("Key", bound=Hashable)
Payload = TypeVar("Payload")
#: Replaces the number of a layer.
NUMBER = "#"
#: So many numbers are listed, even if each is the same more than the one before.
_FEW = 8
LETTERS = "ijklmnpqrstuvw"


def fold(items: Iterable[Member], key: Callable[[Member], Key]) -> dict[Key, list[Member]]:
    """Return the items by their keys, in the order of the first of each."""
    result: dict[Key, list[Member]] = {}
    for item in items:
        result.setdefault(key(item), []).append(item)
    return result


# --- Numbers -----------------------------------------------------------------------------------------
def ranges(numbers: Sequence[int], shortest: int = 3) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of numbers that go up, or down, by one; each of fewer than ``shortest`` alone."""
    start = 0
    for at in range(1, len(numbers) + 1):
        step = numbers[start + 1] - numbers[start] if start + 1 < len(numbers) else 0
        if at < len(numbers) and abs(step) == 1 and numbers[at] - numbers[at - 1] == step:
            continue
        if at - start < shortest:
            yield from ((each, each) for each in numbers[start:at])
        else:
            yield numbers[start], numbers[at - 1]
        start = at


def listed_numbers(numbers: Sequence[int], shortest: int = 3) -> str:
    """Return numbers as people write them: ``0-2, 4, 6, 7``."""
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges(numbers, shortest))


def spelled(numbers: Sequence[int]) -> str:
    """Return numbers in a sentence: ``0 to 31``, ``0 and 2``, ``0 and 2 to 43``."""
    parts = [str(low) if low == high else f"{low} to {high}" for low, high in ranges(numbers)]
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def series(numbers: Sequence[int]) -> str:
    """Return numbers as the iterable of a loop: ``range(32)``, ``(0, 2, 5)``, ``(0, *range(2, 44))``."""
    first, last = numbers[0], numbers[-1]
    if list(numbers) == list(range(first, last + 1)):
        return f"range({first}, {last + 1})" if first else f"range({last + 1})"
    step = numbers[1] - first
    if len(numbers) > _FEW and list(numbers) == list(range(first, last + 1, step)):
        return f"range({first}, {last + 1}, {step})"
    return f"({', '.join(str(low) if low == high else f'*range({low}, {high + 1})' for low, high in ranges(numbers))})"


# --- Layers in the paths of modules ------------------------------------------------------------------
def layer_numbers(path: str) -> tuple[int, ...]:
    """Return the numbers in the path of a module: ``(3, 0)`` of ``layers.3.experts.0.up``."""
    return tuple(int(step) for step in path.split(".") if step.isdecimal())


def layer_pattern(path: str, every: bool = False) -> str:
    """Return the path of a module without its last number, or without all: ``layers.#`` of ``layers.3``."""
    steps = path.split(".")
    numbers = [at for at, step in enumerate(steps) if step.isdecimal()]
    for at in numbers if every else numbers[-1:]:
        steps[at] = NUMBER
    return ".".join(steps)


def up_to_layer(path: str, at: int) -> str:
    """Return a path up to one of its numbers: ``layers.3`` of ``layers.3.experts.0.up`` for 0."""
    steps = path.split(".")
    numbers = [place for place, step in enumerate(steps) if step.isdecimal()]
    return ".".join(steps[: numbers[at] + 1])


def layer_ranges(paths: Sequence[str]) -> str:
    """Return ``layers.1-31`` or ``layers.1, 3, 5-7``, in the order of the paths, which differ in the last number."""
    numbers = [layer_numbers(path)[-1] for path in paths]
    return layer_pattern(paths[0]).replace(NUMBER, listed_numbers(numbers, shortest=2), 1)


# --- Layers in expressions ---------------------------------------------------------------------------
def expression_pattern(expression: str) -> str:
    """Return an expression without the numbers of items: ``layers[#]`` of ``layers[3]`` and of ``layers['3']``."""
    parts = expression.split("[")
    for at, part in enumerate(parts[1:], 1):
        key, closed, rest = part.partition("]")
        if closed and key.strip("'").isdecimal():
            parts[at] = f"{NUMBER}]{rest}"
    return "[".join(parts)


@frozen
class Item(Generic[Payload]):
    """One text about one object."""

    text: str
    subject: str  # the object, which the text names
    payloads: tuple[Payload, ...]  # what else is known of it; in a block those of all members


@frozen
class Block(Generic[Payload]):
    """Texts that hold for several members of one container."""

    container: str  # `"self.layers"`
    letter: str  # in the texts in place of the number of the member
    numbers: tuple[int, ...]  # of the members
    body: tuple[Item[Payload] | Block[Payload], ...]

    @property
    def count(self) -> int:
        """The number of texts, of all members together."""
        return len(self.numbers) * sum(each.count if isinstance(each, Block) else 1 for each in self.body)

    @property
    def member(self) -> str:
        """``self.layers[i]``, of ``type(self.layers[i])`` too."""
        inner = self.container.rpartition("(")[2]  # (of a call that is not closed)
        return f"{self.container if ')' in inner else inner}[{self.letter}]"

    def loop(self) -> str:
        """Return ``for i in range(32)``."""
        return f"for {self.letter} in {series(self.numbers)}"


def fold_layers(items: Sequence[Item[Payload]]) -> list[Item[Payload] | Block[Payload]]:
    """Return the items with those that repeat in blocks, each at the place of its first."""
    names = set("\n".join(item.text for item in items).translate(_ONLY_WORDS).split())
    return _in_blocks(items, [letter for letter in LETTERS if letter not in names])


#: For ``str.translate``: blanks for what is between words. (Much faster than a pattern, and texts are long.)
_ONLY_WORDS = "".join([each if each.isalnum() or each == "_" else " " for each in map(chr, range(128))])


def _in_blocks(
    items: Sequence[Item[Payload]], letters: Sequence[str], start: int = 0
) -> list[Item[Payload] | Block[Payload]]:
    """Fold by the first number in each subject from ``start`` on; without letters, only group by member."""
    containers: dict[str, dict[int, list[Item[Payload]]]] = {}
    places: list[str | Item[Payload]] = []
    for item in items:
        found = _first_number(item.subject, start)
        if found is None:
            places.append(item)
            continue
        container, number = found
        if container not in containers:
            places.append(container)
        containers.setdefault(container, {}).setdefault(number, []).append(item)
    result: list[Item[Payload] | Block[Payload]] = []
    for place in places:
        result += [place] if isinstance(place, Item) else _folded(place, containers[place], letters)
    return result


def _first_number(subject: str, start: int) -> tuple[str, int] | None:
    """Return the first container from ``start`` on with the number of its member; sizes and strides are none."""
    while (at := subject.find("[", start)) >= 0:
        start = at + 1
        number = subject[start : subject.find("]", start)]
        if number.isdecimal() and not subject[:at].endswith((".shape", "stride()")):
            return subject[:at], int(number)
    return None


#: Members with a text, by that with the letter, subject and how often it occurred before.
_ByText = dict[tuple[str, str, int], dict[int, Item[Payload]]]


def _folded(
    container: str, members: dict[int, list[Item[Payload]]], letters: Sequence[str]
) -> Iterator[Item[Payload] | Block[Payload]]:
    if not letters:
        for number, group in members.items():
            yield from _in_blocks(group, letters, len(f"{container}[{number}]"))
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
            yield Block(container, letter, numbers, tuple(_in_blocks(group, letters[1:])))
        else:
            yield from _in_blocks(group, (), len(f"{container}[{numbers[0]}]"))


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
