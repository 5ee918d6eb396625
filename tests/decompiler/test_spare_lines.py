"""Code without a line table: the lines of a function's place tell which of its forms was written."""

from __future__ import annotations

import sys
from types import CodeType

import pytest

from depyf.decompiler import decompile_code

BEHIND = "\n\ndef behind():\n    pass\n"

WHILE = """
def f(a):
    while a.more():
        a.next()
"""


def without_lines(code: CodeType) -> CodeType:
    """Return the code object, and those in it, without a line table."""
    inner = tuple(without_lines(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_linetable=b"", co_consts=inner)


def text_without_lines(source: str) -> str:
    found = decompile_code(without_lines(compile(source, "<test>", "exec")))
    assert found.fidelity.value == "exact"
    return found.text


def test_loop_without_positions() -> None:
    """The test of a loop of one block is the end of that block, too."""
    assert text_without_lines(WHILE).strip() == WHILE.strip()


def test_broken_lines_are_counted() -> None:
    """A statement wider than a line takes two of the lines that an ``else`` might have had."""
    names = ", ".join(f"argument_{number}" for number in range(7))
    source = f"def f(a):\n    if a:\n        return -a\n    return a(\n        {names})\n"
    assert "else" not in text_without_lines(source + BEHIND)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the compiler makes no fields of %")
def test_percent_where_no_text_is_an_f_string() -> None:
    percent = "def f(a):\n    print('%r' % (a,), '%d' % a)\n"
    assert "'%r' % (a,)" in text_without_lines(percent)
    assert "{a!r}" in text_without_lines(percent + "\n\ndef g(a):\n    print(f'{a}')\n")
