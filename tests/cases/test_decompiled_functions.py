"""Small programs as people write them, compiled and decompiled: what a person gets to read (``functions/*.test``).

``[in]`` is a module; the whole of it is decompiled, or, with ``[of outer.<locals>.inner]``, the function of that name.
A comment ``# not as written: ...`` says what is other, where the text is not that of ``[in]``.
"""

from __future__ import annotations

from types import CodeType

import pytest
from case_files import Case, check, parameters

from depyf.decompiler import Fidelity
from depyf.source import decompile_full

CASES = parameters("functions")
MARK = "# not as written: "


def function(module: CodeType, name: str) -> CodeType:
    """Return the code object of a function by its qualified name."""
    for part in name.split("."):
        if part != "<locals>":
            (module,) = [each for each in module.co_consts if isinstance(each, CodeType) and each.co_name == part]
    return module


def code_of(case: Case) -> CodeType:
    module = compile(case["in"], f"{case.name}.py", "exec", dont_inherit=True)
    return function(module, case.argument("of")) if case.argument("of") else module


@pytest.mark.parametrize("case", CASES)
def test_the_text(case: Case) -> None:
    found = decompile_full(code_of(case))
    assert found.fidelity is Fidelity.EXACT, found.note
    check(case, found.text)


@pytest.mark.parametrize("case", CASES)
def test_what_is_not_as_written_says_so(case: Case) -> None:
    as_written = not case.outputs() or bool(case.argument("of"))
    assert as_written or MARK in case.comment, "say in the comment what is '# not as written: ...'"
    assert not as_written or MARK not in case.comment, "it is as written by now: remove that from the comment"


def test_there_are_enough() -> None:
    assert len(CASES) >= 100
