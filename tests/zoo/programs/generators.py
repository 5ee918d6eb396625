"""Generators and lazy iterators."""

import itertools

import torch

from .registry import program


@program
def gen(compiled):
    """A generator is made and used up inside."""
    @compiled
    def f(x):

        def g():
            for i in range(3):
                yield (x + i)
        return sum(g())
    return f(torch.ones(3))


@program
def generator_expression(compiled):
    """Generator expressions in ``sum``, ``any`` and ``max``."""
    @compiled
    def f(x, numbers):
        total = sum(x * n for n in numbers if n % 2)
        flags = any(n > 2 for n in numbers), all(n > 2 for n in numbers)
        print(flags)
        return total + max(n for n in numbers)
    return f(torch.ones(3), [1, 2, 3])


@program(skipped_by_torch=True)
def generator_breaks(compiled):
    """A generator breaks between its values: torch gives the frame up."""
    def numbers(x):
        yield x + 1
        print("between")
        yield x + 2

    @compiled
    def f(x):
        total = x * 0
        for value in numbers(x):
            total = total + value
        return total
    return f(torch.ones(3))


@program
def yield_from(compiled):
    """``yield from``; the values are used behind a break."""
    def inner(x):
        yield x
        yield x * 5

    def outer(x):
        yield from inner(x + 1)
        yield x - 1

    @compiled
    def f(x):
        values = list(outer(x))
        print(len(values))
        return values[0] * 2, values
    return f(torch.ones(3))


@program(skipped_by_torch=True)
def generator_argument(compiled):
    """A generator made outside is consumed inside: torch gives the frame up."""
    @compiled
    def f(x, numbers):
        for n in numbers:
            x = x + n
        return x
    return f(torch.ones(3), (n * n for n in range(4)))


@program
def iterators(compiled):
    """``zip``, ``map``, ``filter``, ``reversed``, ``enumerate`` and ``itertools``, crossing a break as lists."""
    @compiled
    def f(x, names):
        a = list(zip(names, map(len, names)))
        b = list(filter(None, reversed(names)))
        c = list(itertools.chain(enumerate(names), itertools.islice(itertools.count(3), 2)))
        d = list(itertools.product((0, 1), repeat=2))
        print(a, b)
        return x + len(a) + len(d), c, d
    return f(torch.ones(3), ["a", "", "ccc"])


@program
def sorting(compiled):
    """``sorted``, ``list.sort``, ``min`` and ``max`` with keys."""
    @compiled
    def f(x, names):
        ordered = sorted(names, key=lambda n: (len(n), n), reverse=True)
        names.sort(key=str.lower)
        y = x * len(min(names, key=len))
        print(ordered)
        return y + len(max(names, key=len)), ordered
    names = ["bb", "A", "ccc", "a"]
    return f(torch.ones(3), names), names
