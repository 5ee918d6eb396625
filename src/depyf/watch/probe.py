"""A running function of a graph, given a check after each line that computes something.

The function object stays; while somebody observes, it has the code of the same text with calls between the
statements, and afterwards its own code again. That works in every thread (the backward pass has its own), beside any
debugger, and the pause is a ``breakpoint()`` in the graph's own frame, where its tensors are live. The calls stand on
the lines of the statements that they follow, so breakpoints and tracebacks are where they were.
"""

from __future__ import annotations

import ast
import threading
import weakref
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, Protocol

from ..link.identical import named_like, nested_codes
from .steps import Group, Step, find_function

#: Name of the local variable that holds the call's observation.
LOCAL = "__depyf_watch__"
_MARK = "__depyf_observe__ (replaced by the function that begins an observation)"


class CannotWatch(Exception):
    """The function cannot be observed."""


class Observation(Protocol):
    """One call of an observed function."""

    def before(self, step: Step, reads: tuple[Any, ...]) -> None:
        """Look at what a step is about to read: ``reads`` are the values of ``step.reads``."""

    def after(self, step: Step, writes: tuple[Any, ...], reads: tuple[Any, ...]) -> bool:
        """Look at what a step has given, and return whether to pause in the frame of the function."""


#: Begins an observation; called with nothing at the beginning of each call of the function.
Observer = Callable[[], Observation]


class _Probe:
    """The steps of an observed function, and its observers."""

    def __init__(self, original: CodeType, steps: Sequence[Step]) -> None:
        self.original = original
        self.steps = steps
        self.observers: list[Observer] = []

    def begin(self) -> _Call:
        return _Call(self.steps, [observer() for observer in list(self.observers)])


class _Call:
    """A call of an observed function, which the calls in its text speak to: it hands on to all that observe."""

    def __init__(self, steps: Sequence[Step], observations: Sequence[Observation]) -> None:
        self.steps = steps
        self.observations = observations

    def before(self, index: int, *reads: Any) -> None:
        for observation in self.observations:
            observation.before(self.steps[index], reads)

    def after(self, index: int, writes: tuple[Any, ...], reads: tuple[Any, ...]) -> tuple[_Call, ...]:
        """Itself, once, to pause."""
        pause = [observation.after(self.steps[index], writes, reads) for observation in self.observations]
        return (self,) if any(pause) else ()


_probes: weakref.WeakKeyDictionary[FunctionType, _Probe] = weakref.WeakKeyDictionary()
_lock = threading.RLock()


def observe(
    function: FunctionType, text: str, groups_of: Callable[[ast.Module, int], Sequence[Group]], observer: Observer
) -> Callable[[], None]:
    """Have ``observer`` called at each step of each call, until the returned function is called.

    Args:
        function: runs with the lines of ``text``.
        text: Python source.
        groups_of: the steps of the function that begins at a line of the parsed text.
        observer: begins an observation.

    Raises:
        CannotWatch: the text does not hold the function.
    """
    with _lock:
        probe = _probes.get(function)
        if probe is None:
            code, steps = _observed(function, text, groups_of)
            probe = _Probe(function.__code__, steps)
            function.__code__ = code.replace(
        co_consts=tuple(probe.begin if const == _MARK else const for const in code.co_consts))
            _probes[function] = probe
        probe.observers.append(observer)
    reference = weakref.ref(function)

    def leave() -> None:
        with _lock:
            if observer in probe.observers:
                probe.observers.remove(observer)
            running = reference()
            if not probe.observers and running is not None and _probes.get(running) is probe:
                del _probes[running]
                running.__code__ = probe.original

    return leave


def _observed(
    function: FunctionType, text: str, groups_of: Callable[[ast.Module, int], Sequence[Group]]
) -> tuple[CodeType, list[Step]]:
    running = function.__code__
    try:
        tree = ast.parse(text)
        groups = groups_of(tree, running.co_firstlineno)
        definition = find_function(tree, running.co_firstlineno)
        if definition is None:
            raise CannotWatch(f"no function begins at line {running.co_firstlineno} of its file")
        steps = [group.step for group in groups]
        _insert(groups)
        _begin(definition.body)
        ast.fix_missing_locations(tree)
        top = compile(tree, running.co_filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CannotWatch(f"its text cannot be compiled ({type(error).__name__}: {error})") from None
    codes = [code for code in nested_codes(top)
             if code.co_firstlineno == running.co_firstlineno and _MARK in code.co_consts]
    for code in codes:
        count = running.co_argcount + running.co_kwonlyargcount
        if code.co_varnames[:count] == running.co_varnames[:count] and code.co_freevars == running.co_freevars \
                and code.co_argcount == running.co_argcount:
            return named_like(code, running).replace(co_flags=running.co_flags), steps
    raise CannotWatch("its text is another function")


# --- the calls between the statements -------------------------------------------------------------
def _begin(body: list[ast.stmt]) -> None:
    """Put the beginning of the check in front of a body.

    ``__depyf_watch__ = <begin>``, then ``__depyf_watch__ = __depyf_watch__()``.
    """
    at = 1 if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1 else 0
    place = body[at]
    check = ast.parse(f"{LOCAL} = {_MARK!r}\n{LOCAL} = {LOCAL}()").body
    body[at:at] = [_at_line(each, place.lineno) for each in check]


def _insert(groups: Sequence[Group]) -> None:
    """Before each step what it takes is shown, after it what it made.

    ``for <itself> in ...after(...): breakpoint()``: the way back of the loop is on the line, and calls nothing, so it
    is where a debugger stops: in the graph's frame, before the line lets go of anything.
    """
    # (From behind, so that places in a body stay what they are.)
    for number, group in reversed(list(enumerate(groups))):
        step = group.step
        reads = "".join(f"{each}, " for each in step.reads)
        writes = "".join(f"{each}, " for each in step.writes)
        after = ast.parse(f"for {LOCAL} in {LOCAL}.after({number}, ({writes}), ({reads})): breakpoint()").body[0]
        group.body.insert(group.last + 1, _at_line(after, step.end_line))
        if step.kind == "call" and step.reads:
            before = ast.parse(f"{LOCAL}.before({number}, {reads})").body[0]
            group.body.insert(group.index, _at_line(before, step.line))


def _at_line(statement: ast.stmt, line: int) -> ast.stmt:
    """Return the statement, moved there."""
    for node in ast.walk(statement):
        if isinstance(node, (ast.expr, ast.stmt, ast.keyword)):
            node.lineno = node.end_lineno = line
            node.col_offset = node.end_col_offset = 0
    return statement
