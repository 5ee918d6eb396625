"""Code of 3.7, 3.8 and 3.9, read from ``.pyc``: its text means what the source that it was made of means.

The text is compiled by the host, and so is the source; both must be the same program. That shares nothing with
the rules for the old versions, and needs no interpreter of theirs (``regenerate.py`` made the files).
"""

from __future__ import annotations

import ast
import pathlib

import pytest
from _shared import code_objects
from graph_invariants import check

from depyf.bytecode.canonical import canonicalise
from depyf.bytecode.code import Code
from depyf.bytecode.pyc import read_pyc
from depyf.cfg.graph import build
from depyf.decompiler import Fidelity, decompile_code
from depyf.decompiler.proof.exact import same_program

HERE = pathlib.Path(__file__).parent
FILES = sorted((HERE / "compiled").glob("*.pyc"))


def source_of(path: pathlib.Path) -> str:
    return (HERE / "sources" / f"{path.name.partition('.')[0]}.py").read_text(encoding="utf-8")


def host(text: str) -> dict[str, Code]:
    """Functions and classes of a module, and the module itself, as the host compiles them."""
    module = Code.of(compile(text, "text", "exec", dont_inherit=True))
    return {"": module, **{c.name: c for c in module.consts if isinstance(c, Code)}}


def test_there_are_all() -> None:
    assert len(FILES) == 3 * len(list((HERE / "sources").glob("*.py")))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_graphs_are_sound(path: pathlib.Path) -> None:
    for code in code_objects(read_pyc(path)):
        check(build(canonicalise(code)))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_the_text_means_what_the_source_means(path: pathlib.Path) -> None:
    code = read_pyc(path)
    found = decompile_code(code)
    assert found.fidelity is Fidelity.UNPROVEN, found.note  # not a fallback; the host cannot prove it
    wanted, made = host(source_of(path)), host(found.text)
    assert list(made) == list(wanted)
    for name, original in wanted.items():
        verdict = same_program(original, made[name])
        assert verdict, f"{verdict.where}\n{found.text}"


@pytest.mark.parametrize("path", [each for each in FILES if each.name.startswith("written_forms")], ids=lambda p: p.stem)
def test_the_text_has_the_form_of_the_source(path: pathlib.Path) -> None:
    assert ast.unparse(ast.parse(decompile_code(read_pyc(path)).text)) == ast.unparse(ast.parse(source_of(path)))
