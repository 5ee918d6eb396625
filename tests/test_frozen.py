"""``@frozen`` does what ``@dataclass(frozen=True)`` does, and costs less when it is imported."""

import copy
import dataclasses
import itertools
import pickle
from typing import ClassVar, Generic, TypeVar

import pytest

from depyf.frozen import fields_of, frozen

T = TypeVar("T")


@frozen
class Ours:
    """A class."""

    name: str
    number: int = 1
    items: dict[str, int] = dataclasses.field(default_factory=dict)
    aside: str = dataclasses.field(default="", compare=False, repr=False)


@dataclasses.dataclass(frozen=True)
class Theirs:
    """The same by the standard library."""

    name: str
    number: int = 1
    items: dict[str, int] = dataclasses.field(default_factory=dict)
    aside: str = dataclasses.field(default="", compare=False, repr=False)


@frozen
class Pair:
    """A class that can be hashed."""

    a: int
    b: "Pair | None" = None


def outcome(action):
    """Return what an action gives or raises, without the name of the class."""
    try:
        result = action()
    except Exception as error:
        return type(error), str(error).replace("Theirs", "Ours")
    return repr(result).replace("Theirs", "Ours")


@pytest.mark.parametrize("action", [
    lambda cls: cls("a"),
    lambda cls: cls("a", 2, {"x": 1}, "beside"),
    lambda cls: cls(number=3, name="b"),
    lambda cls: cls(),
    lambda cls: cls("a", other=1),
    lambda cls: cls("a", name="b"),
    lambda cls: cls("a", 1, {}, "", 5),
    lambda cls: cls(number=1),
    lambda cls: cls("a") == cls("a", 1, {}, "other"),
    lambda cls: cls("a") == cls("b"),
    lambda cls: cls("a") != cls("a"),
    lambda cls: cls("a") == ("a", 1, {}),
    lambda cls: hash(cls("a")),
    lambda cls: setattr(cls("a"), "name", "b"),
    lambda cls: setattr(cls("a"), "unknown", "b"),
    lambda cls: delattr(cls("a"), "name"),
    lambda cls: dataclasses.replace(cls("a"), number=5),
    lambda cls: dataclasses.replace(cls("a"), unknown=5),
    lambda cls: dataclasses.asdict(cls("a")),
    lambda cls: [field.name for field in dataclasses.fields(cls)],
    lambda cls: cls.__match_args__,
    lambda cls: cls("a").items is cls("a").items,
    lambda cls: pickle.loads(pickle.dumps(cls("a", 2))),
    lambda cls: copy.deepcopy(cls("a", 2)),
    lambda cls: vars(cls("a")),
], ids=itertools.count())
def test_it_does_what_a_frozen_dataclass_does(action):
    assert outcome(lambda: action(Ours)) == outcome(lambda: action(Theirs))


def test_equal_ones_have_one_hash():
    assert hash(Pair(1, Pair(2))) == hash(Pair(1, Pair(2))) != hash(Pair(1, Pair(3)))
    assert {Pair(1): "x"}[Pair(1)] == "x"


@pytest.mark.parametrize("ask", [
    lambda cls: [each.name for each in dataclasses.fields(cls)],
    lambda cls: dataclasses.is_dataclass(cls) and cls.__match_args__,
    lambda cls: cls.__match_args__,
    lambda cls: (cls("x"), cls.__match_args__),
    lambda cls: cls("x") == cls("x"),
    lambda cls: hash(cls("x")) == hash(cls("x")),
], ids=itertools.count())
def test_fields_are_known_whoever_asks_first(ask):
    def made(decorator):
        @decorator
        class Asked:
            """A class that nobody asked yet."""

            name: str
            number: int = dataclasses.field(default=2, compare=False)
            items: tuple[int, ...] = dataclasses.field(default_factory=tuple)

        return Asked

    assert outcome(lambda: ask(made(frozen))) == outcome(lambda: ask(made(dataclasses.dataclass(frozen=True))))


def test_a_class_of_another_has_its_fields_first():
    @frozen
    class Longer(Pair):
        """A pair and more."""

        c: int = 7

    assert Longer(1) == Longer(1, None, 7) and [each.name for each in dataclasses.fields(Longer)] == ["a", "b", "c"]
    assert Pair(1) != Longer(1) and Pair.__match_args__ == ("a", "b")


def told(fields):
    return [(each.name, each.default, each.default_factory, each.compare, each.repr) for each in fields]


def test_fields_are_read_without_dataclasses_and_are_the_same():
    @frozen
    class Fresh:
        """A class that nobody has asked about."""

        name: str
        number: int = 1
        items: dict = dataclasses.field(default_factory=dict)
        aside: str = dataclasses.field(default="", compare=False, repr=False)

    read = told(fields_of(Fresh))
    assert type(vars(Fresh)["__dataclass_fields__"]) is not dict, "it was asked about"
    made = Fresh("a", aside="b")
    assert (made.name, made.number, made.items, made.aside) == ("a", 1, {}, "b") and made == Fresh("a")
    assert read == told(dataclasses.fields(Fresh))
    assert Fresh("a", 2) == Fresh("a", number=2), "instances are made as before"


def test_what_is_no_field_is_left_to_dataclasses():
    @frozen
    class Counted:
        """A class with a variable of its own."""

        count: ClassVar[int] = 3
        name: str = "a"

    @frozen
    class Holder(Generic[T]):
        """A class with a base."""

        item: T

    assert [each.name for each in fields_of(Counted)] == ["name"] and Counted("b").count == 3
    assert [each.name for each in fields_of(Holder)] == ["item"] and Holder(1).item == 1
    assert fields_of(dict) is None and [each.name for each in fields_of(Theirs)][:2] == ["name", "number"]
