"""The faster ``ast.unparse`` writes what ``ast.unparse`` writes."""

import ast
import glob
import os

import pytest

from depyf.decompiler.emit.unparse import unparse

LIBRARY = os.path.dirname(os.__file__)
#: Every kind of node, and every ninth module besides.
MODULES = [os.path.join(LIBRARY, "test", f"test_{name}.py") for name in (
    "grammar", "patma", "fstring", "unparse", "coroutines", "except_star", "type_params", "docxmlrpc")]
MODULES += sorted(glob.glob(f"{LIBRARY}/*.py"))[::9]

TEXTS = [
    '"""text"""', '"a \\\\ b"', "'''a\n\tb'''", '"""\\"\\"\\""""', '"ends with \\""', '"\\x00"', '""', "u'text'",
    "x = u'text'", "f'{x!r:>{y}} {{}} {\"a\" + z}'", "(3).real", "3.0.real", "x = -1, ...", "x = 1e1000, 1e1000j, b'a'",
    "f()", "f(*a, b=1, **c)", "(a or b)(c)", "(lambda: 1).x", "a.b.c.d()", "(yield)", "x = (yield).y", "class A: pass",
    "class A(B, c=1):\n    '''d'''", "async def f():\n    async with a as b, c: await d\n    return [x async for x in y]",
    "def f(a, /, b: int=1, *c, d, e=2, **g) -> h:\n    'text'\n    return", "x = ('a' 'b', (1,), [], {}, {*()}, {1})",
    "if a:\n    pass\nelif b:\n    pass\nelse:\n    pass", "x[1:2, ::3], x[*y], x[()]", "for (a, b) in c: (d, e) = f",
]


@pytest.mark.parametrize("text", TEXTS)
def test_text(text: str) -> None:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        pytest.skip("newer syntax")
    assert unparse(tree) == ast.unparse(tree)


@pytest.mark.parametrize("path", MODULES, ids=os.path.basename)
def test_module(path: str) -> None:
    if not os.path.exists(path):
        pytest.skip("a library without its tests, or of another version")
    with open(path, "rb") as file:
        tree = ast.parse(file.read())
    try:
        expected = ast.unparse(tree)
    except ValueError as error:  # (an f-string without quotes left)
        with pytest.raises(ValueError, match=str(error)):
            unparse(tree)
        return
    assert unparse(tree) == expected


def test_without_the_visitor_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("depyf.decompiler.emit.unparse._Host", object)
    tree = ast.parse("x = f(1)")
    assert unparse(tree) == ast.unparse(tree)
