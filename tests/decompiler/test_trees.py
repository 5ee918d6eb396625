"""Nodes that all trees share (``Load``, ``Lt``) may hold what others put there: it leads out of the tree."""

import ast

import pytest

from depyf.decompiler.nodes import copied, nodes_of
from depyf.link.lifetimes import free_unused

TEXT = """def f(a, b):
    c = [a, -b]
    d = a < b <= c and not (a + b)
    a += 1
    return {c: d for c in c}
"""


@pytest.fixture
def shared_nodes_lead_elsewhere():
    """As ``executing`` leaves them, which IPython and pytest use for tracebacks: each node knows its ``parent``."""
    other = ast.parse(TEXT)
    for node in ast.walk(other):
        for child in ast.iter_child_nodes(node):
            child.parent = node
    yield other
    for node in ast.walk(other):
        vars(node).pop("parent", None)


def test_walks_and_copies_stay_in_their_tree(shared_nodes_lead_elsewhere):
    tree = ast.parse(TEXT)
    shared = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
    mine = {id(node) for node in ast.walk(tree) if not isinstance(node, shared)}
    assert {id(node) for node in nodes_of(tree)} == mine
    copy = copied(tree)
    assert ast.unparse(copy) == ast.unparse(tree)
    assert not mine & {id(node) for node in nodes_of(copy)}
    free_unused(copy.body[0], ())
    assert ast.unparse(copy) == ast.unparse(tree), "nothing in it is freed"
