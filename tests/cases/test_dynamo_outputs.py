"""Small programs that torch compiles: what a person gets to read of what Dynamo made of them (``dynamo/*.test``).

``[in]`` is a module in which ``torch`` and ``nn`` are known; ``[run]`` calls what ``compiled(...)`` (``torch.compile`` with
``backend="eager"``) makes of its functions. Expected are, of each function that torch compiled, its transformed code,
version by version, then its resume functions and their transformed code. Numbers that torch gives out in one process are
counted from 1 on. A comment ``# to improve: ...`` says what a person would write otherwise.
"""

from __future__ import annotations

import functools
import itertools
import linecache
import re
import sys
import types

import pytest

torch = pytest.importorskip("torch")

from case_files import Case, check, parameters

import depyf
from depyf.records import store

CASES = parameters("dynamo")
pytestmark = pytest.mark.skipif(
    not torch.__version__.startswith("2.13.") or sys.version_info[:2] != (3, 11), reason="the code of one version")
#: Numbers that torch counts up in a process, and the offset of a resume function.
_NUMBERS = [re.compile(rf"(?<={name}_)\d+(?:_\d+)?") for name in ("__compiled_fn", "__resume_at", "___context_manager")]


def program(case: Case, part: str, names: dict) -> None:
    """Run a part of a case as a file of its own, whose lines torch and depyf can read."""
    name = f"/cases/{case.name}.{part}.py"
    text = case[part] + "\n"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    exec(compile(text, name, "exec", dont_inherit=True), names)


def texts(capture) -> list[str]:
    """Return the texts that a person reads, in order."""
    found = []
    for function in capture.functions:
        for frame in function.frames:
            if not frame.original_is_user_text:
                found.append(frame.original)
            found += [entry.transformed.source for entry in frame.entries if entry.transformed is not None]
    assert found and all(text.fidelity in ("exact", "equivalent") for text in found)
    return [text.text.strip("\n") for text in found]


def counted(text: str) -> str:
    """Count graphs, resume functions and contexts from 1 on."""
    for pattern in _NUMBERS:
        numbers: dict[str, str] = {}
        text = pattern.sub(lambda found: numbers.setdefault(found[0], str(len(numbers) + 1)), text)
    return text


@pytest.mark.parametrize("case", CASES)
def test_the_text(case: Case, tmp_path, monkeypatch) -> None:
    module = types.ModuleType("cases_program")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    names = vars(module)
    names.update(torch=torch, nn=torch.nn, compiled=functools.partial(torch.compile, backend="eager"))
    torch._dynamo.reset()
    # (How long numbers are decides where lines are broken.)
    monkeypatch.setattr(torch._dynamo.bytecode_transformation, "_unique_id_counter", itertools.count())
    program(case, "in", names)
    with torch.set_grad_enabled(True), depyf.prepare_debug(str(tmp_path / "dump")) as on:
        program(case, "run", names)
    check(case, counted("\n\n".join(texts(store.read(on.path)))))


def test_there_are_enough() -> None:
    assert len(CASES) >= 60
