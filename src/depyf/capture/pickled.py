"""A pickle -> plain values, without unpickling: its operations are read, and nothing is imported or called.

    c__main__\\nModel\\n(I3\\ntR.     ->  Opaque("__main__.Model", args=(3,))

What a pickle would import, and what calling that would give, is an :class:`Opaque`.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Iterator
from typing import Any


class Opaque:
    """An object that a pickle would make.

    Attributes:
        name: of its class, or of the function that would make it: ``"torch.device"``; ``""`` where it has none.
        args: what that would be called with.
        state: its attributes, where the pickle sets them by name.
    """

    def __init__(self, name: str, args: Any = ()) -> None:
        self.name = name
        self.args = args
        self.state: dict[str, Any] = {}
        self.rest: list[Any] = []  # any other state, items


_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, Any] = {"EMPTY_TUPLE": tuple, "EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_SET": list}
_IGNORED = frozenset({"PROTO", "FRAME", "STOP", "READONLY_BUFFER"})
_ATOMS = (str, int, float, bytes, bool, type(None))


def plain_value(data: bytes) -> Any:
    """Return the value of a pickle; keys of dictionaries that are no atoms are left out, with their values.

    Raises:
        ValueError, IndexError, KeyError, TypeError, AttributeError: it is damaged, or no pickle.
    """
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}

    def since_mark() -> list[Any]:
        begin = marks.pop()
        values, stack[begin:] = stack[begin:], []
        return values

    for operation, argument, _ in pickletools.genops(io.BytesIO(data)):
        name = operation.name
        if name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name == "MARK":
            marks.append(len(stack))
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            memo[int(argument)] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(memo[int(argument)])
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            count = int(name[-1])
            stack[-count:] = [tuple(stack[-count:])]
        elif name in ("TUPLE", "LIST", "FROZENSET"):
            values = since_mark()
            stack.append(values if name == "LIST" else tuple(values))
        elif name in ("APPEND", "APPENDS", "ADDITEMS"):
            values = [stack.pop()] if name == "APPEND" else since_mark()
            target = stack[-1]
            (target if isinstance(target, list) else target.rest).extend(values)
        elif name in ("SETITEM", "SETITEMS", "DICT"):
            values = [stack.pop(-2), stack.pop()] if name == "SETITEM" else since_mark()
            if name == "DICT":
                stack.append({})
            _set_items(stack[-1], zip(values[::2], values[1::2]))
        elif name == "GLOBAL":
            stack.append(Opaque(argument.replace(" ", ".", 1)))
        elif name == "STACK_GLOBAL":
            stack[-2:] = [Opaque(f"{stack[-2]}.{stack[-1]}")]
        elif name in ("REDUCE", "NEWOBJ", "NEWOBJ_EX"):
            count = 3 if name == "NEWOBJ_EX" else 2
            callee, *args = stack[-count:]
            stack[-count:] = [Opaque(getattr(callee, "name", ""), args[0] if count == 2 else tuple(args))]
        elif name in ("OBJ", "INST"):
            values = since_mark()
            stack.append(Opaque(argument.replace(" ", ".", 1) if argument else values[0].name, tuple(values)))
        elif name == "BUILD":
            state = stack.pop()
            for each in state if isinstance(state, tuple) else (state,):
                _set_items(stack[-1].state, each.items()) if isinstance(each, dict) else stack[-1].rest.append(each)
        elif name in ("PERSID", "BINPERSID"):
            stack.append(Opaque("", (argument if name == "PERSID" else stack.pop(),)))
        elif name == "POP":
            stack.pop()
        elif name == "POP_MARK":
            since_mark()
        elif name == "DUP":
            stack.append(stack[-1])
        elif name.startswith("EXT"):
            stack.append(Opaque(f"extension {argument}"))
        elif name not in _IGNORED:
            if not isinstance(argument, (*_ATOMS, bytearray)):
                raise ValueError(f"operation {name}")
            stack.append(argument)
    return stack[-1]


def _set_items(target: Any, items: Any) -> None:
    for key, value in items:
        if isinstance(target, Opaque):
            target.rest += [key, value]
        elif isinstance(key, _ATOMS):
            target[key] = value


def objects(value: Any) -> Iterator[Opaque]:
    """Yield each object in a value, the outer ones first; also of pickles that are in it as bytes."""
    seen: dict[int, Any] = {}
    pending = [value]
    while pending:
        each = pending.pop()
        if id(each) in seen or isinstance(each, _ATOMS) and not isinstance(each, bytes):
            continue
        seen[id(each)] = each
        if isinstance(each, Opaque):
            yield each
            pending += [each.rest, each.state, each.args]
        elif isinstance(each, dict):
            pending += reversed(each.values())
        elif isinstance(each, (list, tuple)):
            pending += reversed(each)
        elif isinstance(each, bytes) and is_pickle(each):
            try:
                pending.append(plain_value(each))
            except (ValueError, IndexError, KeyError, TypeError, AttributeError):
                continue  # (bytes that only look like one)


def is_pickle(data: bytes) -> bool:
    """Return whether bytes begin and end as a pickle of protocol 2 or later."""
    return len(data) > 3 and data[0] == 0x80 and 2 <= data[1] <= 5 and data[-1:] == b"."
