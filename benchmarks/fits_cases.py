"""Functions and modules for ``fits_calls.py``: what is compiled, and what its calls are drawn from."""

from __future__ import annotations

import collections
import contextlib
import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

FACTOR, TABLE = 2, {"a": 1.0, "b": 2}


class Mode(enum.Enum):
    MEAN, SUM = "mean", "sum"


class Level(enum.IntEnum):
    LOW, HIGH = 1, 2


class Pair(NamedTuple):
    one: Any
    two: Any


@dataclass
class Config:
    width: int = 2
    scale: float = 1.0
    name: str = "a"
    more: list[int] = field(default_factory=list)


class Net(torch.nn.Module):
    def __init__(self, depth: int = 2) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(depth))
        self.register_buffer("mask", torch.ones(4))
        self.depth, self.scale, self.act, self.cache, self.config = depth, 2.0, "relu", None, Config()

    def forward(self, x, extra=None):
        for layer in self.layers:
            x = layer(x)
        x = torch.relu(x) if self.act == "relu" else torch.tanh(x)
        x = x * self.scale * self.config.scale * self.mask
        if self.training:
            x = x + 1
        if self.cache is not None:
            x = x + self.cache
        return x if extra is None else x + extra


def enums(x, mode, level=Level.LOW):
    return (x.mean() if mode is Mode.MEAN else x.sum()) * level


def lists(x, xs):
    return x.sum() + sum(each.sum() if isinstance(each, torch.Tensor) else each for each in xs)


def dicts(x, d):
    return x.sum() * d.get("a", 1) + len(d) + (d["t"].sum() if "t" in d else 0)


def text(x, mode="a", flag=False):
    return x + len(mode) if mode.startswith("a") and not flag else x - 1


def optional(x, y=None, *rest, **named):
    x = x if y is None else x + y
    return x * named.get("scale", 1) + len(rest)


def config(x, c):
    return x * c.width * c.scale + len(c.name) + sum(c.more)


def branch(x, n=3):
    x = x.reshape(-1, 2) if x.numel() % 2 == 0 else x
    return x * 2 if x.shape[0] > 6 else x + n


def views(x, k=2):
    return x.view(k, -1).sum(0) if x.shape[0] % k == 0 else x.sum()


def numbers(x, a, b=1):
    return x * a + b if a > b else x - a


def two(x, y):
    if x is y:
        return x * 2
    return torch.cat([x, y]) if x.shape[0] == y.shape[0] else x.sum() + y.sum()


def broken(x, n=1):
    x = x * n
    torch._dynamo.graph_break()
    return x + x.shape[0]


def sets(x, s):
    return x + 1 if "a" in s or 1 in s else x - 1


def pairs(x, p):
    return x + p.one if p.two else x - 1


def calls(x, f):
    return f(x) + 1


def kinds(x, dtype=torch.float32, size=(2, 2)):
    return torch.zeros(size, dtype=dtype, device=x.device) + x.sum()


def module_globals(x):
    return x * FACTOR + TABLE["a"] + len(TABLE)


def slices(x, r):
    return x[r] if isinstance(r, slice) else x[len(r)]


def grad(x):
    return x * 2 if torch.is_grad_enabled() and x.requires_grad else x * 3


def closure() -> Callable[..., Any]:
    bias, names = 3, ["a"]

    def inner(x, change=None):
        return x + bias + len(names)

    return inner


def t(*shape: int, **options: Any) -> torch.Tensor:
    return torch.ones(shape, **options)


ROWS = [t(size, 4) for size in (0, 1, 2, 3, 4, 5, 8, 9, 16, 17)]
OTHER = [t(4), t(4, 8), t(2, 4, 4), t(4, 4, dtype=torch.float64), t(4, 4, dtype=torch.int64), t(4, 4).half(),
         t(4, 4).bfloat16(), t(4, 8).t(), t(4, 4, requires_grad=True), t(4, 4, device="meta"), t(4, 4, 2)[..., 0],
         torch.nn.Parameter(t(4, 4)), torch.nn.Parameter(t(4, 4), False), t(1, 4).expand(4, 4), t(2, 4)[1:],
         t(4, 4, dtype=torch.complex64)]
with torch.inference_mode():
    OTHER.append(t(4, 4))
ANY = ROWS + OTHER
VECTORS = [t(size) for size in (0, 1, 2, 3, 4, 6, 7, 8, 12, 13, 16, 30)]


class Case(NamedTuple):
    """What is compiled, arguments to draw from, and changes around a call: name -> values.

    ``changes`` name what a call changes before it is made, in the words that the dump's reader is given: attributes of
    the module (``self.scale``) or globals of this file.
    """

    make: Callable[[], Any]
    pools: dict[str, list[Any]]
    changes: dict[str, list[Any]] = {}
    options: dict[str, Any] = {}
    warm: int = 4


CASES = {
    "enums": Case(lambda: enums, {"x": ROWS, "mode": list(Mode), "level": list(Level)}),
    "lists": Case(lambda: lists, {"x": ANY, "xs": [[], [1], [1, 2], (1, 2), [VECTORS[2]], [VECTORS[3], VECTORS[3]],
                                                   [VECTORS[2], VECTORS[3]], [2.0, 1], [VECTORS[3], 1], [True]]}),
    "dicts": Case(lambda: dicts, {"x": ROWS, "d": [{}, {"a": 1}, {"a": 2}, {"a": 2, "b": 3}, {"b": 3, "a": 2},
                                                   {"t": VECTORS[3]}, {"t": VECTORS[4]}, {1: 2}, {"a": 1.0},
                                                   collections.OrderedDict(a=1)]}),
    "text": Case(lambda: text, {"x": ANY, "mode": ["a", "ab", "b", "", "é'\""], "flag": [False, True, 0, 1]}),
    "optional": Case(lambda: optional, {"x": ROWS, "y": [None, t(4), t(1, 4), 1, 2.5], "scale": [1, 2, 3, 4.0]}),
    "rest": Case(lambda: lambda x, *r, **k: x + len(r) + k.get("a", 0), {"x": ROWS, "a": [1, 2, 3], "b": [None, 1]}),
    "config": Case(lambda: config, {"x": ROWS, "c": [Config(), Config(3), Config(3, 2.0), Config(name="bb"), Config(4),
                                                     Config(more=[1]), Config(more=[1, 2])]}),
    "branch": Case(lambda: branch, {"x": VECTORS + ANY, "n": [1, 2, 3, 4, 2.5]}),
    "branch dynamic": Case(lambda: branch, {"x": VECTORS + ROWS, "n": [1, 2, 3, 4]}, {}, {"dynamic": True}),
    "branch static": Case(lambda: branch, {"x": VECTORS, "n": [1, 2]}, {}, {"dynamic": False}, 6),
    "views": Case(lambda: views, {"x": VECTORS, "k": [2, 3, 4, 1]}),
    "views dynamic": Case(lambda: views, {"x": VECTORS, "k": [2, 3, 4, 1]}, {}, {"dynamic": True}, 6),
    "numbers": Case(lambda: numbers, {"x": ROWS, "a": [0, 1, 2, 3, 7, 1.0, 2.5, True, float("inf"), float("nan"),
                                                       -0.0, 2**40], "b": [1, 2, -1, False, 0.0]}, {}, {}, 6),
    "tensors": Case(lambda: lambda x: x + 1, {"x": ANY}, {}, {}, 5),
    "tensors dynamic": Case(lambda: lambda x: x * x.shape[0], {"x": ANY}, {}, {"dynamic": True}, 5),
    "two": Case(lambda: two, {"x": VECTORS, "y": VECTORS}),
    "two dynamic": Case(lambda: two, {"x": VECTORS, "y": VECTORS}, {}, {"dynamic": True}, 5),
    "broken": Case(lambda: broken, {"x": ROWS, "n": [1, 2, 3]}),
    "sets": Case(lambda: sets, {"x": ROWS, "s": [{"a"}, {"b"}, {1}, {1, 2}, frozenset("a"), set(), range(2)]}),
    "pairs": Case(lambda: pairs, {"x": ROWS, "p": [Pair(1, True), Pair(2, True), Pair(1, False), Pair(t(4), True),
                                                   Pair(None, 0)]}),
    "calls": Case(lambda: calls, {"x": ROWS, "f": [torch.relu, torch.sin, abs, torch.nn.ReLU(),
                                                   torch.tanh]}),
    "kinds": Case(lambda: kinds, {"x": ROWS, "dtype": [torch.float32, torch.int64, torch.float16], "size": [
        (2, 2), (3, 2), torch.Size([2, 2]), [2, 2], (1,)]}),
    "globals": Case(lambda: module_globals, {"x": ROWS}, {
        "FACTOR": [2, 3, 4.0], "TABLE": [{"a": 1.0, "b": 2}, {"a": 2}]}),
    "slices": Case(lambda: slices, {"x": ROWS[4:], "r": [slice(0, 2), slice(1, 3), range(2), range(3), (0, 1)]}),
    "grad": Case(lambda: grad, {"x": ANY}),
    "closure": Case(closure, {"x": ROWS}, {"bias": [3, 4, 5.0], "names": [["a"], ["a", "b"]]}),
    "net": Case(Net, {"x": ROWS + [OTHER[8], OTHER[3]], "extra": [None, t(4), 1]}, {
        "self.training": [True, False], "self.scale": [2.0, 3.0, 2], "self.act": ["relu", "tanh"], "self.depth": [2, 3],
        "self.cache": [None, t(4)], "self.config.scale": [1.0, 2.0]}),
    "net parameters": Case(Net, {"x": ROWS}, {
        "self.mask": [t(4), t(1), t(4, dtype=torch.float64)], "self.layers[0].weight": [
            torch.nn.Parameter(t(4, 4)), torch.nn.Parameter(t(4, 4), requires_grad=False)],
        "self.layers[1].bias": [torch.nn.Parameter(t(4)), None]}),
    "linear": Case(lambda: torch.nn.Linear(4, 4), {"input": ANY}),
}
SETTINGS: dict[str, Callable[[], Any]] = {
    "": contextlib.nullcontext, "no grad": torch.no_grad, "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16), "deterministic": lambda: deterministic(),
    "float64": lambda: default_dtype(), "off": lambda: torch.autocast("cpu", enabled=False)}


@contextlib.contextmanager
def deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@contextlib.contextmanager
def default_dtype() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)
