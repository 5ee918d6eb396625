"""Blocks, stack depths, dominators, loops."""

import textwrap
from types import CodeType

import pytest
from graph_invariants import BrokenGraph, check, check_edges

from depyf.bytecode.canonical import canonicalise
from depyf.bytecode.code import Code
from depyf.cfg import graph as g
from depyf.cfg.graph import DominatorTree, StackMismatch, back_edges, entry_depths, natural_loop, predecessors


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
    edges = {id: g.all_successors(block) for id, block in graph.blocks.items()}
    tails = back_edges(edges, DominatorTree(edges, graph.entry))
    assert list(tails) == [head.id]
    loop = natural_loop(head.id, tails[head.id], predecessors(edges))
    assert head.successors[0] in loop and head.successors[1] not in loop


def test_dominators():
    graph = graph_of(LOOP)
    head = next(b for b in graph.blocks.values() if b.end == g.FOR_ITER)
    tree = DominatorTree({id: g.all_successors(block) for id, block in graph.blocks.items()}, graph.entry)
    body, leave = head.successors
    assert tree.parent[graph.entry] == graph.entry and tree.parent[leave] == tree.parent[body] == head.id
    assert tree.dominates(graph.entry, leave) and tree.dominates(head.id, head.id)
    assert not tree.dominates(body, leave) and not tree.dominates(leave, head.id)


def test_edits_keep_the_edges():
    """Blocks can be split, joined with another and removed; the edges lead to blocks that are there."""
    graph = graph_of(LOOP)
    before = len(graph.blocks)
    entry = graph.blocks[graph.entry]
    tail = graph.split(entry.id, 1)
    assert entry.successors == [tail] and len(entry.ops) == 1 and graph.blocks[tail].end == g.JUMP
    assert graph.order[entry.id] < graph.order[tail] < min(graph.order[id] for id in graph.blocks
                                                           if id not in (entry.id, tail))
    check(graph)
    head = graph.blocks[tail].successors[0]
    graph.redirect(tail, head)
    assert graph.blocks[entry.id].successors == [head] and len(graph.blocks) == before
    check_edges(graph)
    graph.blocks[head].successors[0] = graph.blocks[head].successors[1]
    graph.prune()
    assert len(graph.blocks) < before
    check_edges(graph)


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
