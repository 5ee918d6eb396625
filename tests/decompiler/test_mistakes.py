"""A mistake of ours costs a readable form, says so, and ends nobody's program."""

from __future__ import annotations

import warnings
from types import CodeType
from typing import Any

import pytest

from depyf.decompiler import Fidelity, decompile_code, errors
from depyf.decompiler.errors import STRUCTURE, CannotDecompile
from depyf.decompiler.pipeline import Failed
from depyf.decompiler.structure.fold_expressions import Reducer

CODE: CodeType = compile("def f(a):\n    return a + 1\n", "sample", "exec").co_consts[0]


def broken(self: Any) -> None:
    raise KeyError("a mistake")


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "_warned", set())


def test_a_mistake_is_said_in_the_note_and_in_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reducer, "run", broken)
    with pytest.warns(errors.InternalError, match=r"KeyError: 'a mistake', test_mistakes.py:\d+\); please report") as seen:
        found = decompile_code(CODE)
        again = decompile_code(CODE)
    assert len(seen) == 1
    assert found.fidelity is again.fidelity is Fidelity.FALLBACK
    assert "internal error of depyf (KeyError: 'a mistake', test_mistakes.py:" in found.note
    namespace: dict[str, Any] = {}
    exec(found.text, namespace)
    assert namespace["f"](1) == 2


def test_where_warnings_are_errors_the_result_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reducer, "run", broken)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert decompile_code(CODE).fidelity is Fidelity.FALLBACK


def test_a_mistake_in_every_form_is_one_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("emit", "text_of"):
        monkeypatch.setattr(f"depyf.decompiler.pipeline.{name}", lambda *_: broken(None))
    with pytest.warns(errors.InternalError), pytest.raises(Failed, match="internal error of depyf"):
        decompile_code(CODE)


def test_what_only_does_not_fit_is_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(self: Any) -> None:
        raise CannotDecompile(STRUCTURE, "another shape")

    monkeypatch.setattr(Reducer, "run", refuses)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = decompile_code(CODE)
    assert found.note == "structure: another shape"
