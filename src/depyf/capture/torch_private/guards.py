"""Guards as torch builds them: what their printed trees leave out, and those that a filter drops."""

from __future__ import annotations

import contextlib
import re
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from . import private_api
from .frame_values import code_in_words, guarded_value
from .hooks import Undo, replaced

# --- objects that are compared by their ids ----------------------------------------------------------
# An id says nothing to a reader. The name of a function or a code object is added; a member of an enumeration has its
# name in place of the id::
#
#     ___check_obj_id(L['f'].__code__, 140084081999072), type=<class 'code'>                        torch
#     ___check_obj_id(L['f'].__code__, 140084081999072), type=<class 'code'>, of rhs at app.py:5    in records
#
#     ___check_obj_id(L['mode'], 140194463542736), type=<class 'app.Mode'>                          torch
#     L['mode'] is <Mode.FAST: ...>                                                                 in records
_GUARD = re.compile(r"___check_obj_id\((?P<source>.*?), (?P<id>\d+)\), type=<class '(?P<type>[\w.]+)'>")
_FUNCTIONS = frozenset({"code", "function", "builtin_function_or_method"})
#: The sources of functions that are named: what is passed, and the program's globals. (Functions of torch, which
#: each graph has dozens of guards on, are reached by globals of Dynamo's, and seldom others.)
_NAMED = ("L['", "G['")
_OF_DYNAMO = "__"


def with_objects(text: str, values: Mapping[str, Any], namespace: Mapping[str, Any]) -> str:
    """Return a printed tree of guards with the names of objects that are compared by their ids.

    ``values`` and ``namespace`` are local variables and globals of the frame that is being compiled.
    """
    members: dict[str, dict[int, str]] = {}

    def named(match: re.Match[str]) -> str:
        source, number, kind = match["source"], int(match["id"]), match["type"]
        if kind in _FUNCTIONS:
            if not source.startswith(_NAMED) or source.startswith(_OF_DYNAMO, len(_NAMED[0])):
                return match[0]
            value = guarded_value(source, values, namespace)
            name = _name(value) if id(value) == number else ""
            return f"{match[0]}, of {name}" if name and name.isprintable() and "#" not in name else match[0]
        if kind not in members:
            members[kind] = _members(kind)
        name = members[kind].get(number, "")
        return f"{source} is <{kind.rpartition('.')[2]}.{name}: ...>" if name else match[0]

    return _GUARD.sub(named, text)


def _name(value: Any) -> str:
    if type(value) in (FunctionType, CodeType):
        return code_in_words(getattr(value, "__code__", value))
    if type(value) is not BuiltinFunctionType:
        return ""
    # (Where it is a method, its module has no such name.)
    home = sys.modules.get(value.__module__) if type(value.__module__) is str else None
    of_module = type(home) is ModuleType and vars(home).get(value.__name__) is value
    return f"{value.__module__}.{value.__name__}" if of_module else value.__qualname__


def _members(name: str) -> dict[int, str]:
    """Return the members of an enumeration, a class of that name with its module, by their ids; else none.

    No code of the user's runs: dictionaries of modules and classes are read.
    """
    found: Any = None
    parts = name.split(".")
    for end, part in enumerate(parts, 1):
        own: Mapping[str, Any] = {}
        if isinstance(found, type | ModuleType):
            own = (type if isinstance(found, type) else ModuleType).__getattribute__(found, "__dict__")
        found = sys.modules.get(".".join(parts[:end]), own.get(part))
    members = type.__getattribute__(found, "__dict__").get("_member_map_") if isinstance(found, type) else None
    return {id(member): key for key, member in members.items()} if type(members) is dict else {}


# --- lengths of dictionaries -------------------------------------------------------------------------
# Torch tests the number of entries of a dictionary and does not print it.
#
# Where the order of keys counts, as in a loop over ``items()``, a ``DictGuardManager`` guards the dictionary. It
# compares the number of entries before it looks at any of them (torch/csrc/dynamo/guards.cpp, ``DictGuardManager``),
# but the printed tree has only the entries that the function came to.
#: Such a manager in the printed tree, and the line of one.
_MANAGER = "+- DictGuardManager: source="
#: In the first line of any manager. (Guards on an object itself come before the managers of its parts.)
_ANY_MANAGER = "Manager: source="
_LINE = re.compile(r"(?P<depth>(?:\| )*)\+- DictGuardManager: source=(?P<source>.+?), (?:accessed_by|type)=.*")


def with_lengths(text: str, values: Mapping[str, Any], namespace: Mapping[str, Any]) -> str:
    """Return a printed tree of guards with the lengths of dictionaries as further guards."""
    if _MANAGER not in text:
        return text
    lines = text.split("\n")
    managers = [number for number, line in enumerate(lines) if _ANY_MANAGER in line]
    for number, end in reversed(list(zip(managers, [*managers[1:], len(lines)]))):
        manager = _LINE.fullmatch(lines[number])
        value: Any = guarded_value(manager["source"], values, namespace) if manager else None
        if manager and issubclass(type(value), dict):
            length, source = dict.__len__(value), manager["source"]
            guard = f"len({source}) == {length}" if length else f"not {source}"
            if not any(f": {guard} " in line for line in lines[number + 1 : end]):
                lines.insert(number + 1, f"{manager['depth']}| +- DICT_LENGTH: {guard} ")
    return "\n".join(lines)


# --- guards that a filter drops ----------------------------------------------------------------------
# Torch builds all guards, calls the filter, and builds the remaining guards again (torch/_dynamo/guards.py,
# ``CheckFunctionManager.__init__``). The first ones are stored here. A condition that is always true is added after the
# last guard of the version: torch evaluates it if the others are true, with the frame's local variables, so it sees
# each call that the version serves, and evaluates the dropped guards for it.
#: The text of the condition that is always true.
ALWAYS = "True"


@dataclass(eq=False)
class FullGuards:
    """All guards of a version, as they were before some were dropped."""

    compile_id: str  # torch's, `0/1`
    manager: Any  # torch's object for all of them
    remaining: Callable[[], Any]  # torch's object for those that are left

    def failure_reason(self, values: Mapping[str, Any]) -> str:
        """Return the first guard that does not hold, as torch says it; ``""`` if all hold."""
        local = dict(values)
        if getattr(self.manager, private_api.GUARD_CHECK.attribute)(local).result:
            return ""
        left = self.remaining()
        for name in ("closure_vars", "global_scope"):
            setattr(self.manager, name, getattr(left, name, None))
        return str(private_api.GUARD_REASON.get()(self.manager, local, None, None)).removeprefix("None: ")

    def function(self) -> tuple[str, tuple[str, int] | None]:
        """Return the name of the function, and where it begins, where torch still knows them."""
        entry = getattr(self.remaining(), "cache_entry", None)
        code = getattr(entry, "code", None)
        return (str(code.co_name), (str(code.co_filename), int(code.co_firstlineno))) if code else ("", None)


#: By torch's object for the guards that are left.
_full: weakref.WeakKeyDictionary[Any, FullGuards] = weakref.WeakKeyDictionary()
_unobserved: list[bool] = []  #: Not empty while guards are asked about a call that is not made.


@contextlib.contextmanager
def unobserved() -> Iterator[None]:
    """Inside, guards are asked about calls that are not made."""
    _unobserved.append(True)
    try:
        yield
    finally:
        _unobserved.pop()


def full_guards(guard_manager: Any) -> FullGuards | None:
    """Return all guards of a version of which some were dropped while :func:`keep_dropped` was on."""
    try:
        return _full.get(guard_manager)
    except TypeError:
        return None


def keep_dropped(on_call: Callable[[FullGuards, Mapping[str, Any]], None]) -> Undo:
    """Keep the guards that torch drops, until what is returned is called.

    Args:
        on_call: called for each call that a version with dropped guards serves.

    Raises:
        MissingPrivateApi: this torch builds its guards in another way.
    """
    enable = private_api.TORCH_FUNCTION_ON.get()
    first: dict[int, Any] = {}  # by the identity of the object that builds: the guards before the filter is asked
    on = True

    def build_guards(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        first.setdefault(id(self), result[1])
        return result

    def init(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        first.pop(id(self), None)
        try:
            original(self, *args, **kwargs)
        finally:
            manager = first.pop(id(self), None)
        remaining = self.guard_manager
        if on and manager is not None and manager is not remaining:
            watch(FullGuards(str(private_api.COMPILE_ID.get()() or "?"), manager, weakref.ref(remaining)), remaining)

    def watch(full: FullGuards, remaining: Any) -> None:
        _full[remaining] = full

        def always(values: Mapping[str, Any]) -> bool:
            if on and not _unobserved:
                with enable():  # (torch disables them for its guards, and one of the dropped ones requires that)
                    on_call(full, values)
            return True

        remaining.root.add_epilogue_lambda_guard(always, [ALWAYS], None)

    undo = contextlib.ExitStack()
    undo.callback(replaced(private_api.BUILD_GUARDS, build_guards))
    undo.callback(replaced(private_api.MAKE_GUARDS, init))

    def leave() -> None:
        nonlocal on
        on = False
        undo.close()

    return leave
