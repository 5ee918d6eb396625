"""The faster ``ast.unparse`` writes what ``ast.unparse`` writes."""

import ast
import glob
import os
import sys

import pytest

from depyf.decompiler.emit.text import text_of
from depyf.decompiler.emit.unparse import unparse
from depyf.decompiler.errors import CannotDecompile

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


def parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError:
        pytest.skip("newer syntax")


@pytest.mark.parametrize("text", TEXTS)
def test_text(text: str) -> None:
    tree = parsed(text)
    assert unparse(tree) == ast.unparse(tree)


@pytest.mark.parametrize("path", MODULES, ids=os.path.basename)
def test_module(path: str) -> None:
    if not os.path.exists(path):
        pytest.skip("a library without its tests, or of another version")
    with open(path, "rb") as file:
        tree = ast.parse(file.read().replace(b"__debug__", b"debug"))  # (a name that no code loads)
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


#: A name in each place that has one.
NAMED = [
    "name", "x.name", "f(name=1)", "def name(): pass", "async def name(): pass", "class name: pass",
    "def f(name): pass", "def f(name, /, x=1): pass", "def f(*name): pass", "def f(**name): pass",
    "def f(*, name): pass", "lambda name: 1", "lambda *name: 1", "lambda *, name=1: 1",
    "try:\n    pass\nexcept E as name:\n    pass", "def f():\n    global name", "def f():\n    nonlocal name",
    "import name", "import x as name", "import name.x", "from name import x", "from x import name",
    "from x import y as name", "f'{name}'", "f'{x.name!r:{y}}'", "[x for name in y]", "(name := 1)",
    "match x:\n    case name:\n        pass", "match x:\n    case [*name]:\n        pass",
    "match x:\n    case {1: y, **name}:\n        pass", "match x:\n    case A(name=1):\n        pass",
    "def f[name](): pass", "def f[*name](): pass", "def f[**name](): pass", "type name = int",
]


class _Hostile(ast.NodeVisitor):
    """Puts a name that is none in the place of ``name``."""

    def generic_visit(self, node: ast.AST) -> None:
        for field, value in ast.iter_fields(node):
            if isinstance(value, str) and value.split(".")[0] == "name":
                setattr(node, field, "x): import os #")
            elif isinstance(value, list) and value == ["name"]:
                setattr(node, field, ["x): import os #"])
        super().generic_visit(node)


@pytest.mark.parametrize("text", NAMED)
def test_no_place_of_a_name_takes_other_text(text: str) -> None:
    tree = parsed(text)
    assert text_of(tree) == ast.unparse(tree) + "\n"
    _Hostile().visit(tree)
    assert "import os #" in ast.unparse(tree)
    with pytest.raises(CannotDecompile, match=r"'x\): import os #' is not a name"):
        text_of(tree)


@pytest.mark.parametrize("kind", ["elif", "attribute", "minus"])
def test_what_nests_too_deeply(kind: str) -> None:
    tree = _deep(kind)
    with pytest.raises(CannotDecompile):
        text_of(tree)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        with pytest.raises(CannotDecompile, match="nest too deeply"):
            text_of(tree)
    finally:
        sys.setrecursionlimit(limit)


def _deep(kind: str) -> ast.Module:
    """Return a tree of 2,000 levels."""
    name: ast.expr = ast.Name("a", ast.Load())
    node, stmt = name, ast.Pass() if kind == "elif" else None
    for _ in range(2000):
        if stmt is not None:
            stmt = ast.If(name, [ast.Pass()], [stmt])
        node = ast.UnaryOp(ast.USub(), node) if kind == "minus" else ast.Attribute(node, "b", ast.Load())
    return ast.Module([stmt or ast.Expr(node)], [])
