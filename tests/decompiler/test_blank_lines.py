"""Blank lines between statements: where the source had lines that left nothing in the code."""

from __future__ import annotations

import ast
import sys

import depyf
from depyf.decompiler import decompile_code
from depyf.decompiler.emit.layout import with_blank_lines

SOURCE = '''\
import os
import sys

LIMIT = 10
# as many again
MORE = 20


def first(items):
    total = 0

    for item in items:
        if item:
            total += item
        # nothing else counts
        print(item)

    return total


class Holder:

    size = 3

    def __init__(self, size):
        self.size = size

    def show(self):
        text = """

        two lines
        """
        return text
'''


def spaced(source: str) -> str:
    return with_blank_lines(decompile_code(compile(source, "holder.py", "exec")))


def places(text: str) -> list[tuple[int, str]]:
    """The blank lines before each statement of a text."""
    result = []
    count = 0
    for line in text.splitlines():
        if line.strip() and not line.strip().startswith("#"):
            result.append((count, line.strip()))
            count = 0
        else:
            count += 1
    return result


def test_blank_lines_and_comments_leave_a_blank_line():
    before = dict(map(reversed, places(spaced(SOURCE))))
    assert before["LIMIT = 10"] == before["MORE = 20"] == before["for item in items:"] == before["return total"] == 1
    assert before["def first(items):"] == before["class Holder:"] == 2
    assert before["import sys"] == before["total += item"] == before["total = 0"] == 0
    assert before["def show(self):"] == 1


def test_only_blank_lines_are_added():
    text = spaced(SOURCE)
    plain = decompile_code(compile(SOURCE, "holder.py", "exec")).text
    assert text != plain
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(plain))
    assert [line for line in text.splitlines() if line] == [line for line in plain.splitlines() if line]


def test_a_statement_of_several_lines_is_one():
    source = "a = f(\n    1,\n    2,\n)\nb = 2\n"
    assert places(spaced(source))[-1] == (0, "b = 2")


def test_without_lines_nothing_is_added():
    code = compile("a = 1\n\n\nb = 2\n", "m.py", "exec")
    code = code.replace(co_linetable=b"") if sys.version_info >= (3, 10) else code
    assert with_blank_lines(decompile_code(code)) == decompile_code(code).text


def test_of_a_function():
    names = {}
    exec(compile("def f(x):\n    y = x\n\n    return y\n", "f.py", "exec"), names)
    assert depyf.decompile(names["f"]) == "def f(x):\n    y = x\n    return y\n"
    assert depyf.decompile(names["f"], blank_lines=True) == "def f(x):\n    y = x\n\n    return y\n"


def test_not_proven_as_it_is():
    result = decompile_code(compile("a = 1\n\nb = 2\n", "m.py", "exec"), verify=False)
    assert with_blank_lines(result) == result.text
