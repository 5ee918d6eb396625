"""A text is compiled where it came from, so that the same bytes come back, and there is little to prove."""

import sys
from types import CodeType

import pytest

from depyf.decompiler import Fidelity, decompile_code
from depyf.decompiler.proof import exact

SOURCE = """
import os, sys

def called():
    return os.getcwd(), sys.exit

def calls_inside():
    return [os.path.join(path) for path in (lambda: os.listdir())()]

def is_no_module(a):
    return a.os(), other.f(), a.sys.f()

class A:
    def method(self):
        return os.getcwd(self.x)

    def private(self):
        return self.__private(__x=1)

    def makes_a_class(self):
        class B:
            def method(self):
                return os.getcwd()
        return B

    def closes_over(self, name):
        def inner():
            return os.getcwd(name, self)
        return inner

    def inner_class(self):
        class B(A):
            def __init__(self):
                super().__init__(self.method(), lambda: __class__)
        return B
"""


def codes(code=None):
    code = compile(SOURCE, "text.py", "exec", dont_inherit=True) if code is None else code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const
            yield from codes(const)


CODES = [code for code in codes() if code.co_name != "A" and not code.co_name.startswith("<")]


def by_name(name):
    return next(code for code in CODES if code.co_name == name)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a code object alone does not know where it stood")
@pytest.mark.parametrize("code", CODES, ids=lambda code: f"{code.co_name}:{code.co_firstlineno}")
def test_each_code_object_alone(code):
    if not code.co_flags & 1:  # (the body of a class is no text of its own)
        parts = decompile_code(code).parts[1:]
        assert {part.fidelity for part in parts} == {Fidelity.EXACT}
        return
    result = decompile_code(code)
    assert result.fidelity is Fidelity.EXACT, result.note
    assert result.line_map


def test_the_same_bytes_come_back(monkeypatch):
    def walked(*arguments):
        raise AssertionError("the programs were followed")

    if sys.version_info >= (3, 11):
        monkeypatch.setattr(exact, "_Walk", walked)
    assert decompile_code(by_name("private")).fidelity is Fidelity.EXACT
