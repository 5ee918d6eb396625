"""Dataclasses, named tuples, enums, strings, numpy, random numbers and other values."""

import collections
import copy
import dataclasses
import enum
import math
import random
import typing

import numpy
import torch

from .registry import program


@dataclasses.dataclass
class Point:
    x: torch.Tensor
    scale: float = 2.0
    tags: list = dataclasses.field(default_factory=list)

    def scaled(self):
        return self.x * self.scale


@dataclasses.dataclass(frozen=True)
class Setting:
    name: str
    width: int = 3


class Pair(typing.NamedTuple):
    left: object
    right: object = None


Triple = collections.namedtuple("Triple", "a b c")


class Mode(enum.Enum):
    PLUS = 1
    MINUS = "minus"


class Flags(enum.IntFlag):
    A = 1
    B = 2


@program
def dataclass_across_break(compiled):
    """A dataclass is built, changed across a break, and returned."""
    @compiled
    def f(x):
        point = Point(x + 1)
        point.tags.append("made")
        print(point.tags)
        point.scale += 1
        return point, point.scaled()
    return f(torch.ones(3))


@program
def dataclass_argument(compiled):
    """Dataclasses as arguments: one is written, the frozen one guards the code."""
    @compiled
    def f(point, setting):
        point.x = point.scaled() + setting.width
        return point.x if setting.name == "x" else point.x * 2
    point = Point(torch.ones(3))
    return f(point, Setting("x")), f(point, Setting("y", 4)), point


@program
def namedtuples(compiled):
    """Named tuples are built, replaced, unpacked and cross a break."""
    @compiled
    def f(x, given):
        pair = Pair(x + 1)
        triple = Triple(pair, given.right, 3)
        print(triple._fields)
        a, b, c = triple._replace(c=c_of(given))
        return pair._replace(right=b), a.left * c, torch.max(x, 0)

    def c_of(pair):
        return pair.right + 1
    return f(torch.arange(3.0), Pair(1, 2))


@program
def enums(compiled):
    """Enum members choose the branch, before and after a break."""
    @compiled
    def f(x, mode, flags):
        y = x + 1 if mode is Mode.PLUS else x - 1
        print(mode.name, mode.value)
        if flags & Flags.B:
            y = y * flags.value
        return y, mode, Mode("minus"), flags | Flags.A
    return f(torch.ones(3), Mode.PLUS, Flags.A), f(torch.ones(3), Mode.MINUS, Flags.B)


@program
def walrus(compiled):
    """``:=`` in a condition and in a comprehension."""
    @compiled
    def f(x, items):
        if (n := len(items)) > 2 and (m := n * 2):
            x = x + m
        found = [last := item for item in items if item]
        print(n, last)
        return x * last, found
    return f(torch.ones(3), [1, 0, 3]), f(torch.ones(3), [4])


@program
def deepcopy_(compiled):
    """``copy.copy`` and ``copy.deepcopy`` of containers with tensors."""
    @compiled
    def f(d):
        shallow, deep = copy.copy(d), copy.deepcopy(d)
        deep["list"].append(1)
        shallow["x"] = shallow["x"] + 1
        d["x"].mul_(3)
        return deep, shallow
    d = {"x": torch.ones(2), "list": []}
    deep, shallow = f(d)
    return deep, shallow, d, shallow["list"] is d["list"]


@program
def strings(compiled):
    """String methods, ``%``, ``format``, f-strings and bytes, used behind a break."""
    @compiled
    def f(x, name):
        title = name.title().replace("A", "4")
        parts = "a,b,c".split(",")
        text = "%s-%d" % (title, len(parts)) + "{0}{k!r:>5}".format(name, k=parts[0])
        print(f"{text!s:<12}|{x.dim()}")
        return x + len(text), text, "-".join(parts) + '"\'\n\\{}', name.encode() + b"\x00\xff"
    return f(torch.ones(3), "abba")


@program
def numpy_code(compiled):
    """NumPy calls are traced into the graph."""
    @compiled
    def f(a):
        b = numpy.sum(a * 2, axis=0) + numpy.float64(1)
        return b, numpy.where(a > 2, a, 0)
    return f(numpy.arange(6.0).reshape(2, 3))


@program
def numpy_and_tensors(compiled):
    """Tensors become arrays and come back, around a break."""
    @compiled
    def f(x):
        array = (x * 2).numpy()
        print(array.shape)
        array = array + numpy.ones(3, dtype=numpy.float32)
        return torch.from_numpy(array) + x, array
    return f(torch.ones(3))


@program
def random_numbers(compiled):
    """``random`` and ``torch.rand``, whose states go on after the call."""
    @compiled
    def f(x):
        n = random.randint(1, 10)
        y = x * random.random() + torch.rand(3)
        print(n)
        return y + torch.randn(3), random.uniform(0, 1), n
    return f(torch.ones(3)), f(torch.ones(3))


@program
def numpy_random(compiled):
    """``numpy.random`` breaks the graph."""
    @compiled
    def f(x):
        a = numpy.random.randint(0, 5)
        return x + a, numpy.random.rand()
    return f(torch.ones(3))


@program
def constants(compiled):
    """Returned constants of many kinds, as literals and as values."""
    @compiled
    def f(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y, (1, (2.5, -0.0), 1e300 * 1e10, 3j), None, ..., True, b"b", "s", -7, 10 ** 30, frozenset({1}), [[]], {}, ()
    return f(torch.ones(3))


@program
def torch_values(compiled):
    """Dtypes, devices, sizes and layouts that cross a break."""
    @compiled
    def f(x):
        size, dtype, device = x.shape, x.dtype, x.device
        y = x.to(torch.float64)
        print(size, dtype, device)
        return torch.zeros(size, dtype=dtype, device=device), y.dtype, y.size(), torch.finfo(y.dtype).bits, size.numel()
    return f(torch.ones(2, 3))


@program
def special_floats(compiled):
    """``inf``, ``nan``, ``pi`` and integers beyond 64 bits, in and out of the graph."""
    @compiled
    def f(x, k):
        y = torch.clamp(x / 0, max=math.inf) * math.pi
        print("middle")
        return y, math.inf, -math.inf, math.sqrt(k), 2 ** 64 + k, y.nan_to_num(posinf=1.0)
    return f(torch.ones(3), 4)


@program
def dtypes(compiled):
    """Bool, integer, half, bfloat16 and complex tensors."""
    @compiled
    def f(b, i, h, z):
        y = torch.where(b, i, -i) // 2
        torch._dynamo.graph_break()
        return y, h.to(torch.bfloat16) + 1, z * 2, ~b, i << 1
    return f(torch.tensor([True, False]), torch.tensor([5, 7]), torch.ones(2, dtype=torch.half), torch.tensor([1j, 2]))
