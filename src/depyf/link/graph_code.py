"""Are two functions the same graph, whatever the names of its values?

The file of a graph has other names than torch's code, and no second names of parameters. Both are compared instruction
by instruction, without what is unobservable:

* ``l_x_ = L_x_`` at the beginning: from there on the second name is read as the parameter;
* the release of a name that was just bound.

Names may differ, as long as the same value is read: names are matched where they are bound. Both release the same
values at the same places; a parameter lives until the function ends, as the caller or its second name refers to it.
"""

from __future__ import annotations

import dis
import opcode
from collections.abc import Set
from types import CodeType
from typing import Any

from .identical import CO_NESTED, same_constant

_RELEASE = "release"
_COPY = frozenset({"COPY", "DUP_TOP"})

#: An operation with its operand: a name, a constant, or the argument as it is.
_Event = tuple[str, Any]


def same_graph(graph: GraphCode, text: CodeType, numbers: Set[str] = frozenset()) -> bool:
    """Return whether both do the same.

    Args:
        graph: torch's function.
        text: the function of the file.
        numbers: parameters of the latter that are numbers: how long they live is unobservable.
    """
    running = graph.code
    plain = ("co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_cellvars", "co_freevars", "co_names")
    if any(getattr(running, name) != getattr(text, name) for name in plain) \
            or (running.co_flags ^ text.co_flags) & ~CO_NESTED \
            or getattr(running, "co_exceptiontable", b"") != getattr(text, "co_exceptiontable", b""):
        return False
    shown = GraphCode(text)
    count = running.co_argcount + running.co_kwonlyargcount
    ends = [pair for pair in zip(running.co_varnames[:count], text.co_varnames[:count]) if pair[0] in graph.released]
    if any(name not in shown.released and name not in numbers for _, name in ends):
        return False
    if len(graph.events) != len(shown.events):
        return False
    names = dict(zip(running.co_varnames[:count], text.co_varnames[:count]))
    back = {new: old for old, new in names.items()}
    for (what, one), (what_too, other) in zip(graph.events, shown.events):
        if what != what_too:
            return False
        if what == "LOAD_FAST":
            if names.get(one) != other:
                return False
        elif what == "STORE_FAST":
            names.pop(back.get(other, ""), None)
            names[one] = other
            back[other] = one
        elif what == _RELEASE:
            if len(one) != len(other) or {names.get(name) for name in one} != other:
                return False
        elif what in _VARIABLES:
            if names.get(one) != other:
                return False
        elif what in _CONSTANTS:
            if not same_constant(one, other):
                return False
        elif one != other:
            return False
    return True


class GraphCode:
    """The events of a graph's function, to compare it by.

    Attributes:
        code: of the function.
        events: in order.
        released: parameters without a second name that it releases.
    """

    def __init__(self, code: CodeType) -> None:
        self.code = code
        parameters = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        events = _events(code)
        begin = 0
        while begin < len(events) and events[begin][0] not in ("LOAD_FAST", "STORE_FAST"):
            begin += 1
        second: dict[str, str] = {}
        end = begin
        while end + 1 < len(events) and events[end][0] == "LOAD_FAST" and events[end][1] in parameters \
                and events[end + 1][0] == "STORE_FAST" and events[end + 1][1] not in parameters:
            second[events[end + 1][1]] = events[end][1]
            end += 2
        self.released: set[str] = set()
        self.events: list[_Event] = events[:begin]
        gone: set[str] = set()  # names of parameters that are released
        at = end
        while at < len(events):
            what, name = events[at]
            names, after = _released(events, at) if name is None and what == "LOAD_CONST" else (_NOTHING, at)
            if after == at:
                if what in _VARIABLES:
                    if name in gone:
                        self.events.append(("read too late", object()))
                    self.events.append((what, second.get(name, name)))
                else:
                    self.events.append(events[at])
                at += 1
                continue
            at = after
            of_parameters = names & (parameters | second.keys())
            gone |= of_parameters
            self.released |= of_parameters & parameters
            names -= of_parameters
            self._drop_unread(names)
            if names:
                self.events.append((_RELEASE, names))

    def _drop_unread(self, names: set[str]) -> None:
        """Drop the release of a name that was just bound, and its binding."""
        if self.events and self.events[-1][0] == "STORE_FAST" and self.events[-1][1] in names:
            names.discard(self.events.pop()[1])
            if self.events and self.events[-1][0] == "LOAD_FAST":
                self.events.pop()
            else:
                self.events.append(("POP_TOP", 0))


def _released(events: list[_Event], at: int) -> tuple[set[str], int]:
    """Return the names that are released there (``a = b = None``), and where that ends."""
    names: set[str] = set()
    after = at + 1
    while after < len(events):
        if events[after][0] in _COPY and after + 1 < len(events) and events[after + 1][0] == "STORE_FAST":
            names.add(events[after + 1][1])
            after += 2
        elif events[after][0] == "STORE_FAST":
            names.add(events[after][1])
            return names, after + 1
        else:
            break
    return set(), at


def _events(code: CodeType) -> list[_Event]:
    """Return the instructions of straight-line code; those that work on two variables as two.

    A jump, of which a graph has none, differs from all others.
    """
    raw, constants, variables = code.co_code, code.co_consts, code.co_varnames
    kinds = _KINDS
    extended = 0
    result: list[_Event] = []
    for number, argument in zip(raw[::2], raw[1::2]):
        if number in _SILENT:
            continue
        kind, what, second = kinds[number]
        argument |= extended
        extended = 0
        if kind == "variable":
            result.append((what, variables[argument]))
        elif kind == "plain":
            result.append((what, argument))
        elif kind == "constant":
            result.append((what, constants[argument]))
        elif kind == "two variables":
            result += (what, variables[argument >> 4]), (second, variables[argument & 15])
        elif kind == "extension":
            extended = argument << 8
        else:
            result.append((what, object()))
    return result


def _kind(number: int) -> tuple[str, str, str]:
    """Return the kind of an instruction's argument, the instruction's name here, and what it does besides."""
    name = dis.opname[number].replace("LOAD_FAST_BORROW", "LOAD_FAST").replace("LOAD_FAST_CHECK", "LOAD_FAST")
    if name == "EXTENDED_ARG":
        return "extension", name, ""
    for one in ("LOAD_FAST", "STORE_FAST"):
        if name in (f"{one}_LOAD_FAST", f"{one}_STORE_FAST"):
            return "two variables", one, name.removeprefix(f"{one}_")
    if number in opcode.haslocal:
        return "variable", name, ""
    if number in opcode.hasconst:
        return "constant", name, ""
    if number in opcode.hasjrel or number in opcode.hasjabs:
        return "jump", name, ""
    return "plain", name, ""


_KINDS = tuple(map(_kind, range(256)))
_CONSTANTS = frozenset(what for kind, what, _ in _KINDS if kind == "constant")
_VARIABLES = frozenset(what for kind, what, _ in _KINDS if kind == "variable")
_SILENT = frozenset(dis.opmap[name] for name in ("CACHE", "NOP") if name in dis.opmap)
_NOTHING: set[str] = set()
