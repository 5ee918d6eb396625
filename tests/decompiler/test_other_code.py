"""Code that is not of a module, a function or a class: expressions, interactive statements, cells of notebooks, comprehensions."""

from __future__ import annotations

import ast
import sys
from types import CodeType

import pytest

from depyf.decompiler import Fidelity, decompile_code

EXPRESSIONS = (
    "a + f(b for b in c)", "a if b else c", "not (a or b) and c", "[x for x in y if x]", "lambda z: z + 1", "(w := 3)",
    "a.b[c](d, *e, f=g)", "x or y",
)
STATEMENTS = ("x + 1", "for x in y:\n    x", "x = 1\nx\nprint(x)", "if a:\n    b\nelse:\n    c")
CELLS = (
    "x = await f()\nprint(x)",
    "async with a as b:\n    async for c in b:\n        print(c)\nz = [i async for i in k]",
    "import os\n\n@d\ndef f():\n    return 1\nawait f()",
)


def proven(code: CodeType, note: str) -> str:
    found = decompile_code(code)
    assert found.fidelity is Fidelity.EXACT, found.note
    assert note in found.note
    return found.text.rstrip("\n")


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions(text: str) -> None:
    found = proven(compile(text, "<string>", "eval"), "'eval'")
    if sys.version_info >= (3, 11):  # (before that no columns tell `not (a or b)` from `not a and not b`)
        assert ast.dump(ast.parse(found)) == ast.dump(ast.parse(text))


@pytest.mark.parametrize("text", STATEMENTS)
def test_interactive_statements(text: str) -> None:
    assert proven(compile(ast.Interactive(ast.parse(text).body), "<stdin>", "single"), "'single'") == text


@pytest.mark.parametrize("text", CELLS)
def test_cells_of_a_notebook(text: str) -> None:
    assert proven(compile(text, "<cell>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), "TOP_LEVEL_AWAIT") == text


def around(self, k):
    iterable = 3
    return (self.x * i + k for i in k if i > iterable), [self.f(x) for x in k], {x: y for x, y in k}, {
        x for x in k for y in x}


def test_comprehensions_alone() -> None:
    found = {code.co_name: proven(code, "'eval'") for code in around.__code__.co_consts if isinstance(code, CodeType)}
    assert found["<genexpr>"] == "lambda iterable, k, self: (self.x * i + k for i in iterable_ if i > iterable)"
    if sys.version_info < (3, 12):  # (from then on the others are part of the function)
        assert found["<listcomp>"] == "lambda self: [self.f(x) for x in iterable]"
        assert found["<dictcomp>"] in ("{x: y for x, y in iterable}", "{x: y for (x, y) in iterable}")
        assert found["<setcomp>"] == "{x for x in iterable for y in x}"


def test_a_generator() -> None:
    assert proven((each for each in range(3) if each).gi_code, "'eval'") == "(each for each in iterable if each)"


async def awaiting(k):
    return (x async for x in k), (await x for x in k), [x async for x in k if await x], {await x: 1 for x in k}


def test_asynchronous_comprehensions_alone() -> None:
    found = [proven(code, "") for code in awaiting.__code__.co_consts if isinstance(code, CodeType)]
    assert found[:2] == ["(x async for x in iterable)", "(await x for x in iterable)"]
    if sys.version_info < (3, 12):
        assert found[2:] == ["[x async for x in iterable if await x]", "{await x: 1 for x in iterable}"]
