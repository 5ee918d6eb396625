"""Loops that fill a dictionary, as one call while the code around them is simplified.

Dynamo fills an object that is a dictionary by code made of a template (``_manual_dict_setitem`` in
``torch/_dynamo/side_effects.py``)::

    dict_class = type(dict_to).__mro__[2]
    dict_class.clear(dict_to)
    for k, v in dict_from.items():
        dict_class.__setitem__(dict_to, k, v)

The loop becomes ``dict_class.<update>(dict_to, dict_from)``, which is no Python: :mod:`.objects` carries it out where
this code makes the dictionary, and makes the entries one by one where it knows them. Elsewhere it becomes a loop again.
"""

from __future__ import annotations

from ....bytecode import operations as o
from ....bytecode.operations import Op, effect
from ....cfg import graph as g
from ....cfg.graph import Block, Cfg
from ...nodes import free_name
from ..global_names import UPDATE

_BODY = (o.UNPACK, o.STORE_FAST, o.STORE_FAST, o.LOAD_FAST, o.LOAD_ATTR, o.LOAD_FAST, o.LOAD_FAST, o.LOAD_FAST, o.CALL,
         o.POP)
_BEFORE = (o.LOAD_FAST, o.LOAD_ATTR, o.CALL, o.GET_ITER)


def as_calls(graph: Cfg) -> Cfg:
    """Return the graph with loops that fill a dictionary as calls; the given one if it has none."""
    given, graph = graph, graph.copy()
    blocks = graph.blocks
    for head in list(blocks.values()):
        if head.end != g.FOR_ITER or head.ops:
            continue
        inside, after = head.successors
        body = blocks.get(inside)
        before = [block for block in blocks.values() if head.id in block.successors and block.id != inside]
        if body is None or len(before) != 1 or body.successors != [head.id] or not _fills(before[0], body):
            continue
        start, place = before[0], body.ops[8]
        start.ops = [
            *start.ops[:-4], body.ops[3], Op(o.LOAD_ATTR, UPDATE, place.offset, place.line, -1, place.handler),
            body.ops[5], start.ops[-4], Op(o.CALL, (2, ()), place.offset, place.line, -1, place.handler), body.ops[9]]
        start.end, start.successors, start.end_op = g.JUMP, [after], None
        del blocks[head.id], blocks[inside]
    return graph if len(blocks) < len(given.blocks) else given


def _fills(start: Block, body: Block) -> bool:
    """Return whether two blocks are what torch's template compiles to: the part before the loop, and its body."""
    if tuple(op.kind for op in body.ops) != _BODY or tuple(op.kind for op in start.ops[-4:]) != _BEFORE:
        return False
    unpack, key, value, _, setitem, _, first, second, call, _ = body.ops
    _, items, no_arguments, _ = start.ops[-4:]
    return (unpack.arg == 2 and setitem.arg == "__setitem__" and call.arg == (3, ()) and items.arg == "items"
            and no_arguments.arg == (0, ()) and (first.arg, second.arg) == (key.arg, value.arg))


def as_loops(graph: Cfg, taken: set[str]) -> Cfg:
    """Make the calls loops again, in place; their variables have other names than those taken."""
    for block in list(graph.blocks.values()):
        while (at := next((at for at, op in enumerate(block.ops) if op.arg == UPDATE), -1)) >= 0:
            block = _with_loop(graph, block, at, taken)
    return graph


def _with_loop(graph: Cfg, block: Block, at: int, taken: set[str]) -> Block:
    """Make a loop of the call whose function is read at an index of a block, and return the block after it."""
    ops = block.ops
    end, depth = at + 1, 1
    while effect(ops[end])[0] < depth:  # (the call takes what the function is below)
        depth += _growth(ops[end])
        end += 1
    first, middle = _start(ops, at), _start(ops, end)
    cls, target, entries, call = ops[first:at], ops[at + 1 : middle], ops[middle:end], ops[end]

    def made(kind: str, arg: object = None) -> Op:
        return Op(kind, arg, call.offset, None, -1, call.handler)

    after = graph.blocks[graph.split(block.id, end + 2)]
    key, value = free_name("key", taken), free_name("value", taken)
    taken |= {key, value}
    block.ops = [*ops[:first], *entries, made(o.LOAD_ATTR, "items"), made(o.CALL, (0, ())),
                 made(o.GET_ITER)]
    head = graph.add(block, [], g.FOR_ITER, (), block.region)
    body = graph.add(head, [
        made(o.UNPACK, 2), made(o.STORE_FAST, key), made(o.STORE_FAST, value), *cls, made(o.LOAD_ATTR, "__setitem__"),
        *target, made(o.LOAD_FAST, key), made(o.LOAD_FAST, value), made(o.CALL, (3, ())), made(o.POP),
    ], g.JUMP, (head.id,), block.region)
    block.successors, head.successors = [head.id], [body.id, after.id]
    return after


def _start(ops: list[Op], end: int) -> int:
    """Return where the operations before an index begin that give the value they end with."""
    missing = 1
    while missing:
        end -= 1
        missing -= _growth(ops[end])
    return end


def _growth(op: Op) -> int:
    """Return by how much an operation makes the stack higher."""
    pops, pushes = effect(op)
    return pushes - pops
