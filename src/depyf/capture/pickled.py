"""A pickle as plain values: nothing is imported, called or looked up.

    SerializedCode(co_name="f", ...)     Object("torch._dynamo.package.SerializedCode", state={"co_name": "f", ...})
    OrderedSet(["cpu"])                  Object("torch.utils._ordered_set.OrderedSet", arguments=(["cpu"],))
    torch.device                         Object("torch.device")

Operations of the format are read by :mod:`pickletools`. Sets become lists. A key of a dictionary that is a tuple is
left out, with its value (to hash a deep one would exhaust the stack).
"""

from __future__ import annotations

import pickletools
from dataclasses import dataclass, field
from typing import Any

_MARK = object()


@dataclass(eq=False)
class Object:
    """An object of a class, the result of a call, or (with no arguments) what a module has under a name."""

    name: str  # of the class or function, with its module: `"torch._guards.Guard"`
    arguments: tuple[Any, ...] = ()  # what it is called with
    state: dict[str, Any] = field(default_factory=dict)  # its attributes
    # of a list or a dictionary of such a class, what is in it; pairs for a dictionary. Of an object whose class reads
    # another state than attributes, that state.
    items: list[Any] = field(default_factory=list)

    def get(self, name: str) -> Any:
        """Return an attribute; ``None`` where it has none of that name."""
        return self.state.get(name)

    def text(self, name: str) -> str:
        """Return an attribute that is a text; ``""`` where it has none of that name, or it is ``None``.

        Raises:
            ValueError: it is something else.
        """
        value = self.state.get(name)
        if value is not None and not isinstance(value, str):
            raise ValueError(f"`{name}` of {self.name} is no text")
        return value or ""


def is_a(value: Any, *names: str) -> bool:
    """Return whether a value is an object of a class of one of these names, whatever the module."""
    return isinstance(value, Object) and value.name.rpartition(".")[2] in names


def read_pickle(data: bytes) -> Any:
    """Return the value of a pickle; raise ``ValueError`` if it is damaged, or of no format of Python 3's."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    try:
        for operation, argument, _ in pickletools.genops(data):
            if operation.name == "STOP":
                return stack.pop()
            _take(operation.name, argument, stack, memo)
    except (IndexError, KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise ValueError(f"a pickle that is damaged ({type(error).__name__}: {error})") from error
    raise ValueError("a pickle without an end")


def _take(name: str, argument: Any, stack: list[Any], memo: dict[int, Any]) -> None:
    if name in _CONSTANTS:
        stack.append(_CONSTANTS[name])
    elif name in _NEW:
        stack.append(_NEW[name]())
    elif name in _OF_MARKED:
        items = _marked(stack)
        stack.append(_OF_MARKED[name](items))
    elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
        count = int(name[-1])
        if len(stack) < count:
            raise ValueError(f"{name} of {len(stack)} values")
        stack[-count:] = [tuple(stack[-count:])]
    elif name in ("APPEND", "APPENDS", "ADDITEMS"):
        items = [stack.pop()] if name == "APPEND" else _marked(stack)
        (stack[-1].items if isinstance(stack[-1], Object) else stack[-1]).extend(items)
    elif name in ("SETITEM", "SETITEMS"):
        items = _marked(stack) if name == "SETITEMS" else [stack.pop(-2), stack.pop()]
        _set(stack[-1], items)
    elif name in ("GLOBAL", "STACK_GLOBAL"):
        stack.append(Object(".".join(argument.split(" ") if name == "GLOBAL" else [stack.pop(-2), stack.pop()])))
    elif name in ("REDUCE", "NEWOBJ", "NEWOBJ_EX"):
        keywords = stack.pop() if name == "NEWOBJ_EX" else {}
        arguments = stack.pop()
        stack.append(Object(stack.pop().name, tuple(arguments), dict(keywords)))
    elif name == "BUILD":
        state = stack.pop()
        for each in state if isinstance(state, tuple) else (state,):  # (attributes, and those in slots)
            if isinstance(each, dict) and isinstance(stack[-1], Object):
                stack[-1].state.update(each)
            elif each is not None and isinstance(stack[-1], Object):
                stack[-1].items.append(each)
    elif name in ("MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"):
        memo[len(memo) if name == "MEMOIZE" else argument] = stack[-1]
    elif name in ("GET", "BINGET", "LONG_BINGET"):
        stack.append(memo[argument])
    elif name in ("POP", "POP_MARK"):
        _ = stack.pop() if name == "POP" else _marked(stack)
    elif name == "DUP":
        stack.append(stack[-1])
    elif name == "BINPERSID":
        stack.append(Object("persistent", (stack.pop(),)))
    elif name in _VALUES:
        stack.append(argument)
    elif argument is not None and name not in ("PROTO", "FRAME"):
        raise ValueError(f"the operation {name}")


_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "MARK": _MARK}
_NEW: dict[str, Any] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_SET": list, "EMPTY_TUPLE": tuple}
_OF_MARKED: dict[str, Any] = {"TUPLE": tuple, "LIST": list, "FROZENSET": list, "DICT": lambda items: _set({}, items)}
#: Operations whose argument is the value.
_VALUES = frozenset({
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "UNICODE", "BINUNICODE",
    "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"})
_KEYS = (str, int, float, bytes, type(None), Object)


def _marked(stack: list[Any]) -> list[Any]:
    """Remove what follows the last mark, and the mark."""
    at = len(stack) - 1 - stack[::-1].index(_MARK)
    items = stack[at + 1 :]
    del stack[at:]
    return items


def _set(target: Any, items: list[Any]) -> Any:
    pairs = list(zip(items[::2], items[1::2]))
    if isinstance(target, Object):
        target.items += pairs
    else:
        target.update((key, value) for key, value in pairs if isinstance(key, _KEYS))
    return target
