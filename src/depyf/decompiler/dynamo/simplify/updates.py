"""The loop that fills a dictionary -> one call.

Dynamo fills an object that is a dictionary by code made of a template (``_manual_dict_setitem`` in
``torch/_dynamo/side_effects.py``)::

    dict_class = type(dict_to).__mro__[2]
    dict_class.clear(dict_to)
    for k, v in dict_from.items():
        dict_class.__setitem__(dict_to, k, v)

The loop becomes ``dict_class.<update>(dict_to, dict_from)``, which is no Python: it is good only where it is carried
out while the code is simplified (:mod:`.objects`).
"""

from __future__ import annotations

from ....bytecode import operations as o
from ....bytecode.operations import Op
from ....cfg import graph as g
from ....cfg.graph import Block, Cfg
from ...names import free_name
from ..forms import UPDATE
from .naming import is_torch_name

_BODY = (o.UNPACK, o.STORE_FAST, o.STORE_FAST, o.LOAD_FAST, o.LOAD_ATTR, o.LOAD_FAST, o.LOAD_FAST, o.LOAD_FAST, o.CALL,
         o.POP)
_BEFORE = (o.LOAD_FAST, o.LOAD_ATTR, o.CALL, o.GET_ITER)


def as_one_call(graph: Cfg) -> Cfg:
    """Return the graph with loops that fill a dictionary as calls; the given one if it has none."""
    blocks = dict(graph.blocks)
    for head in graph.blocks.values():
        if head.end != g.FOR_ITER or head.ops:
            continue
        inside, behind = head.successors
        body = blocks.get(inside)
        before = [block for block in blocks.values() if head.id in block.successors and block.id != inside]
        if body is None or len(before) != 1 or body.successors != [head.id] or not _fills(before[0], body):
            continue
        start = before[0]
        place = body.ops[8]
        blocks[start.id] = Block(start.id, [
            *start.ops[:-4], body.ops[3], Op(o.LOAD_ATTR, UPDATE, place.offset, place.line, -1, place.handler),
            body.ops[5], start.ops[-4], Op(o.CALL, (2, ()), place.offset, place.line, -1, place.handler), body.ops[9],
        ], g.JUMP, (behind,), None, None, start.region)
        del blocks[head.id], blocks[inside]
    return Cfg(graph.code, blocks, graph.entry) if len(blocks) < len(graph.blocks) else graph


def with_telling_names(graph: Cfg) -> Cfg:
    """Return the graph with the numbered variables of such loops called as in torch's template."""
    names: dict[str, str] = {}
    for head in graph.blocks.values():
        if head.end != g.FOR_ITER or head.ops:
            continue
        body = graph.blocks[head.successors[0]]
        before = [block for block in graph.blocks.values() if head.id in block.successors and block is not body]
        if body.successors == [head.id] and len(before) == 1 and _fills(before[0], body):
            kinds = (body.ops[1], "key"), (body.ops[2], "value"), (body.ops[3], "dict_class"), (
                body.ops[5], "target"), (before[0].ops[-4], "entries")
            for op, name in kinds:
                if is_torch_name(op.arg):
                    names.setdefault(op.arg, name)
    taken = {op.arg for block in graph.blocks.values() for op in block.ops if isinstance(op.arg, str)}
    chosen: dict[str, str] = {}
    for old, name in names.items():
        chosen[old] = free_name(name, taken)
        taken.add(chosen[old])
    if not chosen:
        return graph
    variables = (o.LOAD_FAST, o.STORE_FAST, o.DELETE_FAST)
    blocks = {id: Block(id, [
        Op(op.kind, chosen[op.arg], op.offset, op.line, op.target, op.handler)
        if op.kind in variables and op.arg in chosen else op for op in block.ops
    ], block.end, block.successors, block.arg, block.end_op, block.region) for id, block in graph.blocks.items()}
    return Cfg(graph.code, blocks, graph.entry)


def _fills(start: Block, body: Block) -> bool:
    """Return whether two blocks are what torch's template compiles to: what lies before the loop, and its body."""
    if tuple(op.kind for op in body.ops) != _BODY or tuple(op.kind for op in start.ops[-4:]) != _BEFORE:
        return False
    unpack, key, value, _, setitem, _, first, second, call, _ = body.ops
    _, items, no_arguments, _ = start.ops[-4:]
    return (unpack.arg == 2 and setitem.arg == "__setitem__" and call.arg == (3, ()) and items.arg == "items"
            and no_arguments.arg == (0, ()) and (first.arg, second.arg) == (key.arg, value.arg))
