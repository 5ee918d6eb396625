"""Other interpreters as compilers, and the proof with them; skipped for those that are not here."""

from __future__ import annotations

import pathlib
import sys
from types import CodeType

import pytest
from _shared import find_interpreter

from depyf.bytecode.code import Code
from depyf.bytecode.pyc import read_pyc
from depyf.decompiler import Fidelity, decompile_code
from depyf.decompiler.proof.exact import same_program
from depyf.decompiler.proof.recompile import ForeignError, Interpreter

HERE = pathlib.Path(__file__).parent
VERSIONS = ("3.7", "3.8", "3.9")


def interpreter(version: str) -> Interpreter:
    path = find_interpreter(version)
    if path is None:
        pytest.skip(f"no Python {version}")
    return Interpreter(path)


def test_the_running_interpreter() -> None:
    here = Interpreter(sys.executable)
    assert here.version == sys.version_info[:2]
    text = "def f(a, *, b=1):\n    'd'\n    return [a, b, lambda: (yield)]\n"
    assert same_program(here.compile(text, "x"), Code.of(compile(text, "x", "exec")))
    assert Interpreter(sys.executable).compile("x = 1").names == ("x",)


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13"])
def test_an_expression_that_begins_a_line(version: str) -> None:
    """Its place in the text decides which jumps there are (torchgen's ``isValueType``)."""
    other = interpreter(version)
    code = other.compile("def f(a, t):\n    return (\n        a.b == t()\n        or (a.b == t and not t)\n"
                         "        or a.b == 3\n    )\n")
    found = decompile_code(code, interpreter=other)
    assert found.fidelity is Fidelity.EXACT, found.note


def test_text_that_is_none() -> None:
    here = Interpreter(sys.executable)
    with pytest.raises(ForeignError, match="SyntaxError"):
        here.compile("def f(:")
    with pytest.raises(ForeignError, match="utf-8"):
        here.compile("'\udc80'")
    assert "ä" in here.compile(b"# coding: latin-1\nx = '\xe4'").consts


def test_nothing_is_executed(tmp_path: pathlib.Path) -> None:
    mark = tmp_path / "mark"
    Interpreter(sys.executable).compile(f"open({str(mark)!r}, 'w').close()")
    assert not mark.exists()


def test_optimize() -> None:
    here = Interpreter(sys.executable)
    plain, stripped = here.compile("assert x", optimize=0), here.compile("assert x", optimize=1)
    assert plain.bytecode != stripped.bytecode


def test_what_is_no_interpreter(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ForeignError):
        Interpreter(tmp_path / "absent").compile("x")
    liar = tmp_path / "liar"
    liar.write_text("#!/bin/sh\necho C; exit 0\n")
    liar.chmod(0o755)
    with pytest.raises(ForeignError, match="is not a .pyc file"):
        Interpreter(liar).compile("x")
    liar.write_text("#!/bin/sh\necho broken >&2; exit 3\n")
    with pytest.raises(ForeignError, match="ended with 3 broken"):
        Interpreter(liar).compile("x")
    liar.write_text("#!/bin/sh\nexec sleep 60\n")
    with pytest.raises(ForeignError, match="timed out"):
        Interpreter(liar, timeout=0.2).compile("x")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", sorted(path.stem for path in (HERE / "sources").glob("*.py")))
def test_proven(version: str, name: str) -> None:
    code = read_pyc(HERE / "compiled" / f"{name}.{version}.pyc")
    found = decompile_code(code, interpreter=interpreter(version))
    assert found.fidelity is Fidelity.EXACT, found.note


def test_a_function_alone_is_proven() -> None:
    code = read_pyc(HERE / "compiled" / "blocks.3.8.pyc")
    function = next(c for c in code.consts if isinstance(c, Code) and c.name == "all_ways_out")
    assert decompile_code(function, interpreter=interpreter("3.8")).fidelity is Fidelity.EXACT
    assert decompile_code(function).fidelity is Fidelity.UNPROVEN


def test_an_interpreter_of_another_version() -> None:
    code = read_pyc(HERE / "compiled" / "expressions.3.8.pyc")
    with pytest.raises(ForeignError, match="is Python"):
        decompile_code(code, interpreter=Interpreter(sys.executable))


def test_the_host_needs_none() -> None:
    def f(a: CodeType) -> object:
        return a.co_name

    assert decompile_code(f.__code__, interpreter=Interpreter("/nowhere")).fidelity is Fidelity.EXACT
