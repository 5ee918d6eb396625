"""Are two code objects the same program, or the same graph, whatever the names of its values?

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
import sys
from collections.abc import Iterator, Set
from itertools import pairwise
from types import CodeType
from typing import Any

from ..decompiler.proof.exact import same_constant

# --- equality of code objects -------------------------------------------------------------------------
# Instructions, constants, names and handlers are equal. Only the origin of the code may differ (file, lines, columns,
# and the function's own name), which only a debugger or a traceback shows.
CO_NESTED = 0x10  # says that a function was defined inside another one; nothing at run time looks at it

#: What is equal for two graphs, too.
_PLAIN = ("co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_cellvars", "co_freevars", "co_names")


def identical_code(left: CodeType, right: CodeType) -> bool:
    """Return whether both run the same instructions on the same constants and names."""
    if left is right:
        return True
    if not _are_alike(left, right) or (left.co_code, left.co_varnames) != (right.co_code, right.co_varnames):
        return False
    names = _qualified_names(left) & _qualified_names(right)
    return len(left.co_consts) == len(right.co_consts) and all(
        index in names or _same_constant(ours, theirs)
        for index, (ours, theirs) in enumerate(zip(left.co_consts, right.co_consts)))


def _are_alike(left: CodeType, right: CodeType) -> bool:
    return (all(getattr(left, name) == getattr(right, name) for name in _PLAIN)
            and not (left.co_flags ^ right.co_flags) & ~CO_NESTED
            and getattr(left, "co_exceptiontable", b"") == getattr(right, "co_exceptiontable", b""))


def _qualified_names(code: CodeType) -> set[int]:
    """Constants that are nothing but the qualified name of a nested function (3.10 keeps them there).

    Such a name begins with the name of the function around it, which may differ.
    """
    if sys.version_info >= (3, 11):
        return set()
    names: set[int] = set()
    others: set[int] = set()
    instructions = list(dis.get_instructions(code))
    for instruction, following in pairwise(instructions):
        if instruction.opname == "LOAD_CONST":
            (names if following.opname == "MAKE_FUNCTION" else others).add(instruction.arg or 0)
    return names - others


def _same_constant(left: Any, right: Any) -> bool:
    if isinstance(left, CodeType) and isinstance(right, CodeType):
        return left.co_name == right.co_name and identical_code(left, right)
    return same_constant(left, right)


# --- parts of a code object --------------------------------------------------------------------------
def nested_codes(code: CodeType) -> Iterator[CodeType]:
    """Yield all code objects inside of it, those further out first."""
    level = [code]
    while level:
        level = [const for each in level for const in each.co_consts if isinstance(const, CodeType)]
        yield from level


def global_names(code: CodeType) -> set[str]:
    """Return the names (of globals, attributes, imports) that it and the code inside of it use."""
    return set(code.co_names).union(*(inner.co_names for inner in nested_codes(code)))


def qualified_name(code: CodeType) -> str:
    """Return ``Class.method`` where this Python knows it, else ``method``."""
    return getattr(code, "co_qualname", code.co_name)


def named_like(code: CodeType, other: CodeType) -> CodeType:
    """Return the code under the name of another one.

    (The name is torch's or the user's to choose; tools look functions up by it.)
    """
    if sys.version_info >= (3, 11):
        return code.replace(co_name=other.co_name, co_qualname=other.co_qualname)
    return code.replace(co_name=other.co_name)


_RELEASE = "release"
_COPY = frozenset({"COPY", "DUP_TOP"})

#: An operation with its operand: a name, a constant, or the argument as it is.
_Event = tuple[str, Any]


def same_graph(graph: GraphCode, text: CodeType, numbers: Set[str] = frozenset()) -> bool:
    """Return whether both do the same.

    Args:
        numbers: parameters of the latter that are numbers: how long they live is unobservable.
    """
    running = graph.code
    if not _are_alike(running, text):
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
            if not _same_constant(one, other):
                return False
        elif one != other:
            return False
    return True


class GraphCode:
    """The events of a graph's function, to compare it by.

    Attributes:
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
