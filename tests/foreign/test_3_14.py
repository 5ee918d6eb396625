"""Code of 3.14, read from ``.pyc``: the text is the one that 3.14 itself has proven (``v3_14/regenerate.py``)."""

from __future__ import annotations

import ast
import pathlib
import sys

import pytest
from _shared import code_objects
from graph_invariants import check

from depyf.bytecode.canonical import canonicalise
from depyf.bytecode.code import SUPPORTED, table
from depyf.bytecode.pyc import PycError, load_pyc, read_pyc
from depyf.bytecode.rules import rules_for
from depyf.cfg.graph import build
from depyf.decompiler import Fidelity, decompile_code
from depyf.decompiler.emit.text import TEMPLATES, template, too_new, written

FOLDER = pathlib.Path(__file__).parent / "v3_14"
FILES = sorted((FOLDER / "compiled").glob("*.pyc"))
#: What the compiler never writes, or is no instruction.
WITHOUT_RULE = {"CACHE", "RESERVED", "INTERPRETER_EXIT", "EXIT_INIT_CHECK", "ENTER_EXECUTOR", "EXTENDED_ARG",
                "LOAD_SPECIAL", "SEND", "CLEANUP_THROW", "END_FOR", "END_SEND", "SET_FUNCTION_ATTRIBUTE"}


def comparable(text: str) -> str:
    """The tree where the host can read the text: hosts differ in parentheses and quotes."""
    try:
        return ast.dump(ast.parse(text))
    except SyntaxError:
        return text


def test_there_are_all() -> None:
    assert {p.stem for p in FILES} == {p.stem for p in (FOLDER / "sources").glob("*.py")}


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_graphs_are_sound(path: pathlib.Path) -> None:
    code = read_pyc(path)
    assert code.version == (3, 14)
    for part in code_objects(code):
        check(build(canonicalise(part)))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_the_text_is_what_3_14_has_proven(path: pathlib.Path) -> None:
    found = decompile_code(read_pyc(path))
    proven = Fidelity.EXACT if sys.version_info[:2] == (3, 14) else Fidelity.UNPROVEN
    assert found.fidelity is proven, found.note
    wanted = path.with_suffix(".txt").read_text(encoding="utf-8")
    assert comparable(found.text) == comparable(wanted)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_nothing_of_the_compilers_is_shown(path: pathlib.Path) -> None:
    text = decompile_code(read_pyc(path)).text
    for name in ("__annotate", "__conditional_annotations__", "__classdict", "NotImplementedError:", ".type_params",
                 "__static_attributes__", "__firstlineno__"):
        assert name not in text


def test_every_instruction_has_a_rule() -> None:
    numbers = table((3, 14))
    rules = rules_for((3, 14))
    without = {name for name, number in numbers.opcodes.items() if rules[number] is None}
    assert without == WITHOUT_RULE


def test_the_table_is_consistent() -> None:
    numbers = table((3, 14))
    assert len(set(numbers.opcodes.values())) == len(numbers.opcodes)
    for name, number in numbers.opcodes.items():
        jumps = name.startswith(("POP_JUMP", "JUMP_")) or name in ("FOR_ITER", "SEND")
        assert bool(numbers.jumps[number]) == jumps, name
    assert numbers.jumps[numbers.opcodes["JUMP_BACKWARD"]] == -1
    assert numbers.caches[numbers.opcodes["BINARY_OP"]] == 5
    assert SUPPORTED[-1] == (3, 14)


def test_syntax_newer_than_the_host_is_known_as_such() -> None:
    assert too_new(ast.Module([ast.Expr(written("anything", (9, 9)))], []))
    assert not too_new(ast.parse("x = 1"))
    made = template(("a{", ""), [])
    assert made.id == "t'a{{'" and made.since == TEMPLATES  # type: ignore[attr-defined]


@pytest.mark.parametrize(("magic", "said"), [
    (3666, r"magic number 3666 is of Python 3\.15, which"),
    (3600, r"magic number 3600 is of a pre-release of Python 3\.14"),
    (2000, r"magic number 2000 belongs to no released Python"),
])
def test_unknown_versions_are_refused_by_name(magic: int, said: str) -> None:
    with pytest.raises(PycError, match=said):
        load_pyc(magic.to_bytes(2, "little") + b"\r\n" + bytes(12) + b"N")
