"""Conditions as sympy prints them, with Python's operators."""

import pytest

from depyf.torch_text.parsed import as_python


@pytest.mark.parametrize(("printed", "python"), [
    ("Ne(PythonMod(s2, 2), 0)", "s2 % 2 != 0"),
    ("8*((s0//2)) <= 9", "8 * (s0 // 2) <= 9"),
    ("Eq(Min(64, s77), s17)", "min(64, s77) == s17"),
    ("64 - Max(0, 64 - s0, s1) < 3", "64 - max(0, 64 - s0, s1) < 3"),
    ("not an expression", "not an expression"),
])
def test_python_operators(printed, python):
    assert as_python(printed) == python
