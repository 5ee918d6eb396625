"""The text of a tree: f-strings for every Python, no text in the place of a name, no tree that is too deep."""

import ast
import sys

import pytest

from depyf.bytecode.code import Code
from depyf.decompiler import decompile_code
from depyf.decompiler.emit.text import text_of, unparse
from depyf.decompiler.errors import CannotDecompile


def parsed(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError:
        pytest.skip("newer syntax")


@pytest.mark.parametrize("text", [
    """f"{a['b']}\"""", """f'{a.b}"'""", 'f"""{a["it\'s"]}{b[\'c\']}"""', """f"{f'{a}'}\"""",
    'f"""{f"{a[\'b\']}"}"""', """f"{a['b']!r:>{c['d']}} {{}}\"""", """f"{'; '.join(a)}\\n\"""",
])
def test_f_strings_that_pythons_before_3_12_can_read(text: str) -> None:
    assert unparse(ast.parse(text)) == text


@pytest.mark.skipif(sys.version_info < (3, 12), reason="newer syntax")
def test_f_string_that_no_older_python_can_write() -> None:
    text = """f'{"\\n".join(a)}'"""
    assert ast.dump(ast.parse(unparse(ast.parse(text)))) == ast.dump(ast.parse(text))


@pytest.mark.parametrize("text", [
    " + ".join(["a"] * 600), "a" + ".b()" * 300, "not " * 300 + "a", "f(" * 80 + "a" + ")" * 80, "a" + "[0]" * 300,
])
def test_trees_deeper_than_python_allows_to_recurse(text: str) -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    try:
        written = unparse(ast.parse(text))
    finally:
        sys.setrecursionlimit(limit)
    assert ast.dump(ast.parse(written)) == ast.dump(ast.parse(text))


def test_long_expressions_of_a_function_are_written() -> None:
    """One expression each, not a dispatch loop."""
    text = f"def f(a):\n    return {' + '.join(['a'] * 600)}\n\n\ndef g(a):\n    return a{'.b()' * 300}\n"
    code = decompile_code(Code.of(compile(text, "f.py", "exec"))).text
    assert ast.dump(ast.parse(code)) == ast.dump(ast.parse(text))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="so many quotes can only be written since 3.12")
def test_f_strings_in_f_strings_need_no_more_time_for_each_level() -> None:
    tree: ast.expr = ast.Name("a", ast.Load())
    for _ in range(25):  # (2 ** 25 visits, if each level visited the one in it twice)
        tree = ast.JoinedStr([ast.FormattedValue(tree, -1, None)])
    assert unparse(ast.Expression(tree)).count("{a}") == 1


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
    assert text_of(tree) == unparse(tree) + "\n"
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
