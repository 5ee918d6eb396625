"""The list of passes: what holds after each."""

from __future__ import annotations

import ast
import pathlib
import sys

import pytest
from graph_invariants import check_edges

from depyf.decompiler import decompile_code, passes
from depyf.decompiler.bodies import Body, Unfinished
from depyf.decompiler.stages import stages

SAMPLES = sorted((pathlib.Path(__file__).parent.parent / "samples").glob("*.py"))


def holds(name: str, subject: object) -> None:
    """The edges of a graph lead to its blocks, handlers are among these, and statements are statements."""
    if isinstance(subject, Body) and not subject.statements:
        check_edges(subject.cfg)
        if name == "fold_expressions":  # nothing is left that nothing leads to
            blocks = set(subject.cfg.blocks)
            subject.cfg.prune()
            assert set(subject.cfg.blocks) == blocks
    if isinstance(subject, Unfinished):
        assert all(isinstance(each, ast.stmt) for each in subject.statements)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_invariants_hold_after_every_pass(path: pathlib.Path) -> None:
    name = path.stem.split("_")
    if name[0] == "since" and (int(name[1]), int(name[2])) > sys.version_info[:2]:
        pytest.skip("syntax of a later Python")
    ran: list[str] = []

    def trace(name: str, subject: object) -> None:
        ran.append(name)
        holds(name, subject)

    decompile_code(compile(path.read_text(), str(path), "exec", dont_inherit=True), trace=trace)
    assert {each.name for each in (*passes.RESTRUCTURE, *passes.STRUCTURE, *passes.FINISH)} <= set(ran)


def test_names_are_distinct() -> None:
    names = [each.name for each in passes.ALL]
    assert len(names) == len(set(names))


def loop(xs, limit):
    n = 0
    while n < limit and xs:
        n += 1
    return n


def test_stages_are_those_that_run() -> None:
    """``--stages`` prints what the list says: every pass is named, with its result or as one that had nothing to do."""
    text = stages(loop.__code__)
    for each in (*passes.RESTRUCTURE, *passes.STRUCTURE, *passes.FINISH):
        assert f"== {each.name} in loop: {each.does} ==" in text or any(
            each.name in line for line in text.splitlines() if line.startswith("(nothing to do for "))
