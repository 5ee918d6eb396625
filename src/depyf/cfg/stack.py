"""The number of values on the stack: what each operation does to it, and the depth at each block's entry."""

from __future__ import annotations

from collections.abc import Callable

from ..bytecode.operations import Op
from .graph import BRANCH, FOR_ITER, RAISE, RERAISE, RETURN, Block, Cfg

#: Values popped and pushed by operations for which it is always the same.
EFFECTS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(
        ("CONST", "LOAD_FAST", "LOAD_FAST_AND_CLEAR", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF",
         "LOAD_CLASSDEREF", "LOAD_CLOSURE", "LOAD_LOCALS", "LOAD_BUILD_CLASS",
         "LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT"), (0, 1)),
    **dict.fromkeys(
        ("STORE_FAST", "STORE_GLOBAL", "STORE_NAME", "STORE_DEREF", "DELETE_ATTR", "IMPORT_STAR",
         "PRINT_EXPR", "POP", "POP_EXCEPT", "LIST_APPEND", "SET_ADD", "LIST_EXTEND", "SET_UPDATE",
         "DICT_UPDATE", "DICT_MERGE"), (1, 0)),
    **dict.fromkeys(
        ("DELETE_FAST", "DELETE_GLOBAL", "DELETE_NAME", "DELETE_DEREF", "SETUP_ANNOTATIONS",
         "MAKE_CELL"), (0, 0)),
    **dict.fromkeys(
        ("LOAD_ATTR", "LOAD_FROM_DICT_OR_GLOBALS", "LOAD_FROM_DICT_OR_DEREF", "UNARY", "LIST_TO_TUPLE",
         "CONVERT", "INTRINSIC_1", "GET_ITER", "YIELD", "YIELD_FROM", "AWAIT", "GET_AITER"), (1, 1)),
    **dict.fromkeys(
        ("GETITEM", "BINARY", "INPLACE", "COMPARE", "IS", "IN", "IMPORT_NAME", "INTRINSIC_2",
         "PREP_RERAISE_STAR", "BUILD_TEMPLATE"), (2, 1)),
    **dict.fromkeys(("STORE_ATTR", "DELITEM", "MAP_ADD", "END_ASYNC_FOR"), (2, 0)),
    **dict.fromkeys(
        ("IMPORT_FROM", "GET_ANEXT_AWAIT", "PUSH_EXC_INFO", "BEFORE_WITH", "BEFORE_ASYNC_WITH", "GET_LEN",
         "MATCH_MAPPING", "MATCH_SEQUENCE"), (1, 2)),
    "LOAD_SUPER_ATTR": (3, 1),
    "SETITEM": (3, 0),
    "CHECK_EXC_MATCH": (2, 2),
    "CHECK_EG_MATCH": (2, 2),
    "WITH_EXCEPT_START": (2, 3),
    "MATCH_KEYS": (2, 3),
    "MATCH_CLASS": (3, 1),
    "COPY_DICT_WITHOUT_KEYS": (2, 2),
}

#: The others, from the argument.
_EFFECTS_OF_ARG: dict[str, Callable[..., tuple[int, int]]] = {
    **dict.fromkeys(
        ("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING", "BUILD_SLICE"), lambda n: (n, 1)),
    "BUILD_MAP": lambda n: (2 * n, 1),
    "BUILD_CONST_KEY_MAP": lambda keys: (len(keys), 1),
    "BUILD_UNPACK": lambda arg: (arg[1], 1),
    "FORMAT": lambda arg: (1 + arg[1], 1),
    "BUILD_INTERPOLATION": lambda arg: (2 + arg[1], 1),
    "UNPACK": lambda n: (1, n),
    "UNPACK_EX": lambda arg: (1, arg[0] + 1 + arg[1]),
    "CALL": lambda arg: (1 + arg[0] + len(arg[1]), 1),
    "CALL_EX": lambda has_keywords: (2 + has_keywords, 1),
    "MAKE_FUNCTION": lambda flags: (1 + flags.bit_count(), 1),
    "COPY": lambda i: (i, i + 1),
    "SWAP": lambda i: (i, i),
    "ROT": lambda i: (i, i),
    "RAISE": lambda n: (n, 0),
    "RERAISE": lambda place: (1 + place, 0),
    "JUMP": lambda _: (0, 0),
    "BRANCH": lambda _: (1, 0),
    "FOR_ITER": lambda _: (1, 2),
    "RETURN": lambda _: (1, 0),
}


def effect(op: Op) -> tuple[int, int]:
    """``(popped, pushed)``: values an operation takes and leaves (``FOR_ITER``: when it goes on)."""
    fixed = EFFECTS.get(op.kind)
    return fixed if fixed is not None else _EFFECTS_OF_ARG[op.kind](op.arg)


class StackMismatch(ValueError):
    """Two ways into a block bring stacks of different depths, or an operation finds too few values."""


def entry_depths(graph: Cfg) -> dict[int, int]:
    """Stack depth at the entry of each block (handlers: with ``lasti`` and the exception)."""
    depths = {graph.entry: 0}
    pending = [graph.entry]

    def arrive(target: int, depth: int, origin: Block) -> None:
        known = depths.get(target)
        if known is None:
            depths[target] = depth
            pending.append(target)
        elif known != depth:
            raise StackMismatch(f"depth at B{target} is {known}, but {depth} from {origin}")

    while pending:
        block = graph.blocks[pending.pop()]
        depth = depths[block.id]
        floor = block.floor
        if block.region:
            arrive(block.region.handler, floor + block.region.lasti + 1, block)
            if depth < floor:
                raise StackMismatch(f"handler of {block} keeps {floor} of {depth} values")
        for op in block.ops:
            pops, pushes = effect(op)
            if pops > depth:
                raise StackMismatch(f"{op!r} at offset {op.offset} in {block} finds {depth} values")
            depth += pushes - pops
        end = block.end
        if end in (BRANCH, FOR_ITER, RETURN) and depth < 1:
            raise StackMismatch(f"{end} in {block} finds no value")
        if end == RAISE and depth < block.arg or end == RERAISE and depth < 1 + block.arg:
            raise StackMismatch(f"{end} in {block} finds {depth} values")
        if end == FOR_ITER:
            body, leave = block.successors
            arrive(body, depth + 1, block)
            arrive(leave, depth - 1, block)
        else:
            for successor in block.successors:
                arrive(successor, depth - (end == BRANCH), block)
    return depths
