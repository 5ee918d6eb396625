"""Methods, properties and objects of user classes."""

import torch

from .registry import program


class Base:
    factor = 3
    made = 0

    def __init__(self, x):
        self._x = x
        type(self).made += 1

    @property
    def x(self):
        return self._x

    @x.setter
    def x(self, value):
        self._x = value * 2

    @classmethod
    def scaled(cls, x):
        return x * cls.factor

    @staticmethod
    def shifted(x, by=1):
        return x + by

    def method(self, y):
        return self._x + y

    def __add__(self, other):
        return self._x + other

    def __getitem__(self, key):
        return self._x[key]

    def __len__(self):
        return len(self._x)


class Derived(Base):
    factor = 5

    def method(self, y):
        first = super().method(y)
        print("derived", self.factor)
        return first * 2

    def __call__(self, y):
        return self.method(y) - 1


@program
def methods(compiled):
    """Methods, ``super()``, ``__call__`` and a break inside an overriding method."""
    item = Derived(torch.ones(3))

    @compiled
    def f(x):
        return item(x) + item.method(x)
    return f(torch.arange(3.0))


@program
def compiled_method(compiled):
    """A bound method is what is compiled; classmethods and static methods are called."""
    class Local(Derived):
        @compiled
        def step(self, y):
            y = self.scaled(y) + Base.scaled(y)
            print(self.factor)
            return self.shifted(y, by=self.factor)
    return Local(torch.ones(3)).step(torch.ones(3))


@program
def properties(compiled):
    """A property is read and set, around a break."""
    item = Base(torch.ones(3))

    @compiled
    def f(y):
        item.x = item.x + y
        print(len(item))
        item.x = item.x - y
        return item.x
    return f(torch.ones(3)), item.x


@program
def object_made_inside(compiled):
    """An object is built in compiled code and crosses a break."""
    Base.made = Derived.made = 0

    @compiled
    def f(x):
        item = Derived(x + 1)
        torch._dynamo.graph_break()
        return item + item[0], item, len(item)
    total, item, length = f(torch.ones(3))
    return total, type(item).__name__, vars(item), length, Derived.made
