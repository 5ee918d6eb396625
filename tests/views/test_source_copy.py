"""Long lines of the user's text are broken, and what it says stays."""

import ast
import inspect
import pathlib

import pytest

from depyf.views.dump.source_copy import _meaning, with_short_lines

FILES = [pathlib.Path(inspect.getfile(module)) for module in (inspect, ast, pathlib, pytest)]


def widest(text):
    return max(map(len, text.splitlines()), default=0)


@pytest.mark.parametrize(("text", "expected"), [
    # a comment of its own
    ("def f():\n    # " + "word " * 30 + "end\n    return 1\n",
     "def f():\n    # " + "word " * 22 + "word\n    # " + "word " * 7 + "end\n    return 1\n"),
    # a comment behind a statement, and inside of one
    ("def f(x):\n    y = g(  # " + "w" * 105 + " e\n        x)  # short\n",
     "def f(x):\n    # " + "w" * 105 + " e\n    y = g(\n        x)  # short\n"),
    # a docstring, of which lines are indented
    ('def f():\n    """What it does.\n\n        ' + "word " * 30 + 'end"""\n',
     'def f():\n    """What it does.\n\n        ' + ("word " * 22).rstrip() + "\n        " + "word " * 8 + 'end"""\n'),
    # a statement with a comment in it
    ("def f(x):\n    return g(x, 'a' * 30,  # why\n        " + ", ".join(f"argument_{n}" for n in range(12)) + ")\n",
     "def f(x):\n    # why\n    return g(\n        x,\n        'a' * 30,\n" + "".join(f"        argument_{n},\n" for n in range(12)) + "    )\n"),
    # heads
    ("if a:\n    pass\nelif " + " and ".join(["condition"] * 10) + ":\n    # why\n    pass\nelse:\n    pass\n",
     "if a:\n    pass\nelif (\n    condition\n" + "    and condition\n" * 9 + "):\n    # why\n    pass\nelse:\n    pass\n"),
    ("# a path: /" + "folder/" * 20 + "file.py\nx = 1\n",
     "# a path:\n# /" + "folder/" * 16 + "\n# " + "folder/" * 4 + "file.py\nx = 1\n"),
])
def test_long_lines_are_broken(text, expected):
    result = with_short_lines(text)
    assert result == expected
    assert widest(result) <= 120


@pytest.mark.parametrize("text", [
    "x = 1  # short\n",
    "def f():\n    return '" + "x" * 50 + "'  # not Python\n    ]" + " " * 130 + "\n",
    "x = " + "name" * 40 + "\n",
])
def test_what_fits_or_cannot_be_broken_is_left(text):
    assert with_short_lines(text) == text


def test_a_string_in_a_call_becomes_several():
    text = f"raise ValueError(f\"{'word ' * 20}{{x}} {'word ' * 20}\")\n"
    result = with_short_lines(text)
    assert widest(result) <= 120
    assert ast.dump(ast.parse(result)) == ast.dump(ast.parse(text))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_same_tree_of_whole_files(path, monkeypatch):
    monkeypatch.setattr("depyf.views.dump.source_copy.WIDTH", 72)
    monkeypatch.setattr("depyf.torch_text.wrapping.WIDTH", 72)
    text = path.read_text(encoding="utf-8")
    result = with_short_lines(text)
    assert _meaning(result) == _meaning(text)
    before, after = (sum(len(line) > 72 for line in each.splitlines()) for each in (text, result))
    assert after * 5 <= before
