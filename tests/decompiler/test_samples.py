"""Every construct, decompiled, compiled again and compared: the same program."""

from __future__ import annotations

import pathlib
import sys
from types import CodeType

import pytest

from depyf.bytecode.code import Code
from depyf.decompiler import Fidelity, decompile_code
from depyf.decompiler.proof.exact import same_program
from depyf.decompiler.proof.recompile import compile_function

FOLDER = pathlib.Path(__file__).parent.parent / "samples"


def readable(path: pathlib.Path) -> bool:
    """Whether this Python can read a sample: ``since_3_12_*.py`` holds syntax that 3.12 brought."""
    name = path.stem.split("_")
    return name[0] != "since" or (int(name[1]), int(name[2])) <= sys.version_info[:2]


SAMPLES = [path for path in sorted(FOLDER.glob("*.py")) if readable(path)]


def functions(path: pathlib.Path) -> list[CodeType]:
    module = compile(path.read_text(), str(path), "exec", dont_inherit=True)
    # (class bodies and what makes type parameters are part of the module's text)
    return [c for c in module.co_consts if isinstance(c, CodeType) and c.co_flags & 2 and not c.co_name.startswith("<")]


CASES = [
    pytest.param(code, id=f"{path.stem}-{code.co_name}")
    for path in SAMPLES
    for code in functions(path)
]


@pytest.mark.parametrize("code", CASES)
def test_the_text_is_the_same_program(code: CodeType) -> None:
    found = decompile_code(code)
    assert found.fidelity is Fidelity.EXACT, f"{found.note}\n{found.text}"
    # proven once more from the text alone
    import ast

    again = compile_function(ast.parse(found.text), Code.of(code))
    assert same_program(Code.of(code), again), found.text


@pytest.mark.parametrize("code", CASES)
def test_the_line_map_points_into_the_text(code: CodeType) -> None:
    found = decompile_code(code)
    lines = found.text.count("\n")
    assert found.line_map
    assert all(1 <= line <= lines for line in found.line_map.values())


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_modules(path: pathlib.Path) -> None:
    code = compile(path.read_text(), str(path), "exec", dont_inherit=True)
    found = decompile_code(code)
    assert found.fidelity is Fidelity.EXACT, found.note


def test_a_function_that_is_never_lost() -> None:
    """Without proof the text says so."""
    found = decompile_code(CASES[0].values[0], verify=False)
    assert found.fidelity is Fidelity.UNPROVEN
