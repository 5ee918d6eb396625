"""What versions since 3.12 and 3.14 have, decompiled in process where the host has it."""

from __future__ import annotations

import sys
import warnings

import pytest

from depyf.decompiler import Fidelity, decompile_code

GENERICS = '''
def gen[T: int, *Ts, **P](a: T, b=1, *, c: list[T] = 2) -> list[T]:
    def inner(x: T): return T
    return a
class G[T](Base, metaclass=M):
    x: int
    def m[S: (int, str)](self, a: S) -> T: return super().m(a, __class__)
type X[T, U: (int, str)] = list[T]
def outer(k):
    type Z = k
    @dec
    def f[T](a: T) -> k: return k
    class Q[T](k):
        type W = T | k
    return f
'''
FINALLY = '''
def f(a):
    try:
        a()
    finally:
        return 1
'''
AND_OR = '''
def f(a, b, c):
    x = a and b.x or c
    return (a or b) and c, [a and b or c for a in b], x
'''


@pytest.mark.parametrize("source", [
    pytest.param(GENERICS, id="generics", marks=pytest.mark.skipif(sys.version_info < (3, 12), reason="3.12")),
    pytest.param(AND_OR, id="and_or"),
])
def test_is_the_same_program(source: str) -> None:
    found = decompile_code(compile(source, "sample", "exec", dont_inherit=True))
    assert found.fidelity is Fidelity.EXACT, found.note


def test_texts_of_ours_are_compiled_without_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = compile(FINALLY, "sample", "exec", dont_inherit=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert decompile_code(code).fidelity is Fidelity.EXACT
