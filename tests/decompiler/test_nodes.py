"""Refined nodes stand in a tree as the nodes that they refine."""

from __future__ import annotations

import ast

import pytest

from depyf.decompiler.emit.text import check
from depyf.decompiler.nodes import (
    REFINEMENTS,
    FoldedBool,
    Literal,
    LiteralConstant,
    UntestedAssert,
    as_literal,
    at_line,
    copied,
    line_of,
    order_of,
    refined,
)


@pytest.mark.parametrize("kind", sorted(REFINEMENTS, key=lambda kind: kind.__qualname__), ids=lambda k: k.__qualname__)
def test_it_goes_by_the_name_of_what_it_refines(kind: type[ast.AST]) -> None:
    base = kind.__bases__[0]
    assert kind.__name__ == base.__name__ and kind._fields == base._fields
    assert kind.__qualname__ not in vars(ast)


def name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


def test_text_and_dump_are_those_of_what_it_refines() -> None:
    plain = ast.BoolOp(ast.And(), [name("a"), name("b")])
    folded = refined(plain, FoldedBool)
    assert ast.dump(folded) == ast.dump(plain) and ast.unparse(folded) == "a and b"
    check(folded)


def test_a_copy_knows_what_the_node_knows() -> None:
    folded = FoldedBool(ast.Or(), [name("a"), name("b")])
    folded.merged = True
    folded.col_offset = 7
    same = copied(folded)
    assert type(same) is FoldedBool and same.merged and order_of(same) == 7
    assert not FoldedBool(ast.Or(), []).merged


def test_a_literal_knows_its_constant() -> None:
    made = as_literal(ast.Tuple([ast.Constant(1)], ast.Load()), (1,))
    assert isinstance(made, Literal) and isinstance(made, ast.Tuple) and made.literal == (1,)
    assert type(as_literal(ast.Constant(None), None)) is LiteralConstant


def test_lines() -> None:
    statement = UntestedAssert(None)
    assert line_of(statement) is None
    assert line_of(at_line(statement, 3)) == 3
    assert line_of(at_line(statement, None)) == 3
