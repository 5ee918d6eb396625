"""Guards that a filter drops (``options={"guard_filter_fn": ...}``), checked with the others all the same.

Torch builds all guards, calls the filter, and builds the remaining guards again (torch/_dynamo/guards.py,
``CheckFunctionManager.__init__``). The first ones are stored here. A condition that always holds is added after the
last guard of the version: torch evaluates it when all others hold, with the local variables of the frame, so it sees
each call that the version serves, and evaluates the dropped guards for it.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import private_api
from .hooks import Undo, replaced

#: The text of the condition that always holds.
ALWAYS = "True"


@dataclass(eq=False)
class FullGuards:
    """All guards of a version, as they were before some were dropped."""

    compile_id: str  # torch's, `0/1`
    manager: Any  # torch's object for all of them
    remaining: Callable[[], Any]  # torch's object for those that are left

    def failure_reason(self, values: Mapping[str, Any]) -> str:
        """Return the first guard that does not hold, as torch says it; ``""`` if all hold.

        Args:
            values: the local variables of the frame.
        """
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


#: Not empty while guards are asked about a call that is not made.
_unobserved: list[bool] = []


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
                with enable():  # (torch disables them for its guards, and one of the dropped ones asks for that)
                    on_call(full, values)
            return True

        remaining.root.add_epilogue_lambda_guard(always, [ALWAYS], None)

    undo = [replaced(private_api.BUILD_GUARDS, build_guards), replaced(private_api.MAKE_GUARDS, init)]

    def leave() -> None:
        nonlocal on
        on = False
        for each in undo:
            each()

    return leave
