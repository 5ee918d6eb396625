"""Blocks, stack depths, dominators, loops."""

import textwrap
from types import CodeType

import pytest

from depyf.bytecode.canonical import canonicalise
from depyf.bytecode.code import Code
from depyf.cfg import graph as g
from depyf.cfg.check import BrokenGraph, check
from depyf.cfg.dominators import EXIT, back_edges, dominates, dominators, natural_loops, post_dominators, successors
from depyf.cfg.stack import StackMismatch, entry_depths


def graph_of(source):
    module = compile(textwrap.dedent(source), "sample", "exec")
    code = next(c for c in module.co_consts if isinstance(c, CodeType))
    return g.build(canonicalise(Code.of(code)))


LOOP = """
    def f(a):
        for x in a:
            if x:
                print(x)
        return a
"""


def test_branch_successors_are_true_then_false():
    graph = graph_of("def f(a):\n if a: return 1\n return 2")
    entry = graph.blocks[graph.entry]
    assert entry.end == g.BRANCH
    values = [graph.blocks[s].ops[0].arg for s in entry.successors]
    assert values == [1, 2]


def test_for_successors_and_depths():
    graph = graph_of(LOOP)
    head = next(b for b in graph.blocks.values() if b.end == g.FOR_ITER)
    body, leave = head.successors
    depths = entry_depths(graph)
    assert (depths[head.id], depths[body], depths[leave]) == (1, 2, 0)


def test_loop_is_found():
    graph = graph_of(LOOP)
    head = next(b for b in graph.blocks.values() if b.end == g.FOR_ITER)
    ways = successors(graph)
    loops = natural_loops(ways, graph.entry)
    assert list(loops) == [head.id]
    assert head.successors[0] in loops[head.id] and head.successors[1] not in loops[head.id]
    assert {target for _, target in back_edges(ways, graph.entry)} == {head.id}


def test_dominators():
    graph = graph_of(LOOP)
    head = next(b for b in graph.blocks.values() if b.end == g.FOR_ITER)
    above = dominators(graph)
    assert dominates(above, graph.entry, head.successors[1])
    assert not dominates(above, head.successors[0], head.successors[1])
    below = post_dominators(graph)
    assert below[head.successors[1]] == EXIT
    assert dominates(below, head.id, head.successors[0])


def test_blocks_lie_under_one_handler():
    graph = graph_of("def f(a):\n b = a\n try: a()\n except E: pass\n return b")
    inside = [b for b in graph.blocks.values() if b.region and any(op.kind == "CALL" for op in b.ops)]
    assert len(inside) == 1
    handler = graph.blocks[inside[0].region.handler]
    assert handler.ops[0].kind == "PUSH_EXC_INFO"
    assert entry_depths(graph)[handler.id] == 1
    assert graph.blocks[graph.entry].region is None


def test_check_finds_what_is_broken():
    graph = graph_of(LOOP)
    head = next(b for b in graph.blocks.values() if b.end == g.FOR_ITER)
    head.successors = (head.successors[1], head.successors[0])
    with pytest.raises(StackMismatch):
        check(graph)
    graph = graph_of(LOOP)
    graph.blocks[graph.entry].successors = (99,)
    with pytest.raises(BrokenGraph, match="not there"):
        check(graph)
