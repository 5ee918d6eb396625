"""Loop inversion undone.

CPython (3.8 on) writes the test of a ``while`` twice: before the loop, and again at its end.
:func:`rotate` finds tests that do the same and lead to the same places and makes them one, so that the
test is the head of the loop again.
"""

from __future__ import annotations

from ...bytecode.operations import Op
from ...flow.stack import effect
from .regions import Flow, Node


def rotate(flow: Flow) -> None:
    again = True
    rounds = 0
    while again and rounds < 50:
        again = False
        rounds += 1
        again |= _merge_equal(flow)
        groups: dict[tuple[object, ...], list[Node]] = {}
        for node in flow.nodes.values():
            if node.end == "branch" and node.ops:
                groups.setdefault((node.succs[0], node.succs[1], node.region), []).append(node)
        for group in groups.values():
            if len(group) < 2:
                continue
            group.sort(key=lambda n: flow.order[n.id])
            first = group[0]
            for other in group[1:]:
                size = _common(first, other)
                if not size:
                    continue
                start = len(first.ops) - size
                if start:
                    head = flow.nodes[flow.split(first.id, start)]
                else:
                    head = first
                cut = len(other.ops) - size
                if cut:
                    other.ops = other.ops[:cut]
                    other.end, other.succs, other.arg = "jump", [head.id], None
                else:
                    _redirect(flow, other.id, head.id)
                first = head
                again = True


def _key(op: Op) -> tuple[object, ...]:
    return (op.kind, type(op.arg), op.arg, op.line)


def _common(a: Node, b: Node) -> int:
    """Length of the longest common end of two blocks that is an expression by itself."""
    limit = min(len(a.ops), len(b.ops))
    size = 0
    while size < limit:
        x, y = a.ops[-1 - size], b.ops[-1 - size]
        if x.kind != y.kind or x.line != y.line or type(x.arg) is not type(y.arg) or x.arg != y.arg:
            break
        size += 1
    if size == len(a.ops) == len(b.ops):
        return size
    while size:
        depth = 0
        good = True
        for op in a.ops[len(a.ops) - size:]:
            popped, pushed = effect(op)
            if depth < popped:
                good = False
                break
            depth += pushed - popped
        if good and depth >= 1:
            return size
        size -= 1
    return 0


def _redirect(flow: Flow, old: int, new: int) -> None:
    for node in flow.nodes.values():
        if old in node.succs:
            node.succs = [new if s == old else s for s in node.succs]
    if flow.entry == old:
        flow.entry = new
    del flow.nodes[old]


def _merge_equal(flow: Flow) -> bool:
    """Blocks that only take values off the stack, on one line, and lead to one place, are one."""
    seen: dict[tuple[object, ...], int] = {}
    done = False
    for id in sorted(flow.nodes, key=flow.order.__getitem__):
        node = flow.nodes.get(id)
        if node is None or node.end != "jump" or not node.ops or id == flow.entry or id in flow.kinds:
            continue
        if any(op.kind not in ("POP", "SWAP") for op in node.ops):
            continue
        key = (*(_key(op) for op in node.ops), node.succs[0], node.region)
        first = seen.setdefault(key, id)
        if first != id:
            _redirect(flow, id, first)
            done = True
    return done
