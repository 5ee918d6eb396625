"""Annotations that are evaluated when somebody asks (PEP 649)."""

import typing as t

x: int = 3
if x:
    y: str
else:
    z: list[int] | None = None
for i in range(3):
    w: t.Any = i
if False:
    never: int


class A:
    a: int
    b: "str" = 1
    c = 2

    def f(self, p: a, /, q: b = 1, *r: t.Any, s: c = 2, **u: x) -> A: pass

    d: (int if x else str) = 4
    e: A
    __private: float


class B:
    a: int
    if x:
        b: str = 1
    c: [i for i in x] = 5
    with x:
        e: str
    f: x or y


def f(a: int, b=1, *c: A | B, d: "x", **e: {1: 2}) -> (int if x else str):
    q: int = 1

    @t.no_type_check
    def g(a: q) -> None:
        return q

    class C:
        g: q

        class D:
            h: g

    return lambda: C


async def h(a: int):
    async with a as b:
        return b
