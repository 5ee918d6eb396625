"""``identical_code`` accepts other lines and names of files, and nothing else."""

import pytest

from depyf.link.functions import identical_code

BASE = "def f(a, b=1):\n    x = a + 1.0\n    return [x, b, (0.0, None), {1} | {y for y in a}]\n"


def code(text, filename="<a>"):
    space = {}
    exec(compile(text, filename, "exec", dont_inherit=True), space)
    return next(v for k, v in space.items() if k != "__builtins__").__code__


@pytest.mark.parametrize("text", [
    "# comment\n\n" + BASE,
    BASE.replace("x = a + 1.0", "x = a + 1.0  # size (3,)\n    # more"),
    BASE.replace("def f", "def another"),
    BASE.replace("b=1", "b=2"),  # defaults belong to the function, not to its code
])
def test_layout_may_differ(text):
    assert identical_code(code(BASE), code(text, "<b>"))


@pytest.mark.parametrize("old, new", [
    ("1.0", "1"),
    ("1.0", "True"),
    ("(0.0, None)", "(-0.0, None)"),
    ("(0.0, None)", "(0, None)"),
    ("a + ", "a - "),
    ("a + ", "b + "),
    ("{1}", "{2}"),
    ("y for y in a", "y for y in b"),
    ("x = a", "z = a"),
    ("(a, b=1)", "(a, *, b=1)"),
    ("(a, b=1)", "(a, /, b=1)"),
    ("(a, b=1)", "(b, a=1)"),
    ("    return", "    yield"),
])
def test_programs_that_differ_are_refused(old, new):
    changed = BASE.replace(old, new)
    assert changed != BASE
    assert not identical_code(code(BASE), code(changed))
    assert not identical_code(code(changed), code(BASE))


def test_handlers_count():
    plain = code("def f(a):\n    try:\n        a()\n    except ValueError:\n        pass\n")
    assert identical_code(plain, plain.replace(co_filename="elsewhere"))
    other = code("def f(a):\n    try:\n        a()\n    except TypeError:\n        pass\n")
    assert not identical_code(plain, other)


def test_nan_is_itself():
    nan = float("nan")
    first = code(BASE)
    consts = tuple(nan if c == 1.0 and isinstance(c, float) else c for c in first.co_consts)
    again = tuple(float("nan") if c == 1.0 and isinstance(c, float) else c for c in first.co_consts)
    assert identical_code(first.replace(co_consts=consts), first.replace(co_consts=again))
