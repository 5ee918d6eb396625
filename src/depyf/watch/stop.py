"""The first line of a graph that makes a bad value of good ones."""

from __future__ import annotations

import ast
import inspect
import linecache
import math
import os
import sys
import textwrap
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any, Literal

import torch

from ..capture.torch_private.operations import holds_data, inner_tensors, version, without_side_effects
from ..harmless import say
from ..link.lifetimes import release_values
from ..link.linker import LinkedFunction
from ..link.sessions import DebugSession
from ..model.graph_text import read_graph
from ..records.naming import graph_name
from ..torch_text.generated import read_module
from .origins import Origin, Origins, UserLine, literals
from .probe import CannotWatch, Group, Observation, Step, find_function, graph_steps, kernel_steps, observe

_MOST_INPUTS = 6
_MOST_LINES = 8


class BadValueFound(RuntimeError):
    """A line of a graph made a bad value of good ones (see :func:`depyf.debug`).

    Attributes:
        graph: name of the graph, ``"__compiled_fn_1"``.
        stage: ``"Captured_Graph"``, ``"Forward_graph"``, ``"Backward_graph"``, or ``"kernel_0"`` for a generated
            module.
        filename, line: the line, in the dump.
        names: the bad values, by their names in that line.
        nodes: nodes of the graph that the line computes; of a kernel's call all that were fused into it.
        kernel: name of the kernel; empty in a graph.
        user_lines: the user's lines that these nodes come from; each has ``location`` and ``module``.
    """

    def __init__(
        self, message: str, watched: LinkedFunction, line: int, names: tuple[str, ...], origin: Origin
    ) -> None:
        super().__init__(message)
        self.graph = watched.graph
        self.stage = watched.stage
        self.filename = watched.path
        self.line = line
        self.names = names
        self.nodes = origin.nodes
        self.kernel = origin.kernel
        self.user_lines: tuple[UserLine, ...] = origin.user_lines


class Watch:
    """Watches all graphs that are linked to files.

    Args:
        stop_on: what to look for.
        can_pause: whether a debugger or a user answers; otherwise the line raises :class:`BadValueFound`.
    """

    def __init__(self, sessions: Sequence[DebugSession], stop_on: StopOn, can_pause: Callable[[], bool]) -> None:
        self.condition = Condition(stop_on)
        self.can_pause = can_pause
        self._sessions = sessions
        self._undo: list[Callable[[], None]] = []
        self._reported: set[object] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Watch:
        unlinked: dict[str, str] = {}
        try:
            for session in self._sessions:
                unlinked.update(session.unlinked)
                for linked in session.functions:
                    function = linked.function()
                    if function is None:
                        continue
                    try:
                        self._undo.append(self._observe(linked, function))
                    except CannotWatch as why:
                        unlinked[f"{linked.graph}, {_stage_name(linked)}"] = str(why)
        except BaseException:
            self.__exit__()
            raise
        for graph, reason in unlinked.items():
            self.say(("unlinked", graph), f"not watched: {graph} ({reason})")
        if not self._undo:
            self.say("nothing", "stop_on: no graph is tied to a file, so nothing is watched")
        return self

    def __exit__(self, *unused: object) -> None:
        while self._undo:
            self._undo.pop()()
        for kind, reason in self.condition.unknown.items():
            self.say(("unknown", kind), f"values of {kind} were taken to be good: they cannot be looked at ({reason})")

    def say(self, key: object, text: str) -> None:
        """Print one line on standard error, once."""
        if self.once(key):
            say(f"depyf: {text}")

    def once(self, key: object) -> bool:
        """Return whether this is the first call with a key."""
        with self._lock:
            first = key not in self._reported
            self._reported.add(key)
        return first

    def _observe(self, linked: LinkedFunction, function: FunctionType) -> Callable[[], None]:
        text = "".join(linecache.getlines(linked.path))  # (as linking stored it)
        if not text:
            raise CannotWatch(f"its text is gone ({linked.path})")
        origins = Origins(linked.path, text)
        if linked.stage.startswith("kernel_"):
            groups_of = kernel_groups(text)
            if not groups_of(ast.parse(text), function.__code__.co_firstlineno):
                return lambda: None  # not ``call`` or a part of it
            return observe(function, text, groups_of, lambda: _InModule(self, linked, origins))
        return observe(function, text, graph_groups(text), lambda: _InGraph(self, linked, origins))


def graph_groups(text: str) -> Callable[[ast.Module, int], Sequence[Group]]:
    """Return what finds the steps of the graph that begins at a line."""
    def groups(tree: ast.Module, line: int) -> Sequence[Group]:
        function = find_function(tree, line)
        if function is None:
            return []
        release_values(function)  # as in the code that ran so far
        return graph_steps(function, read_graph(text))

    return groups


def kernel_groups(text: str) -> Callable[[ast.Module, int], Sequence[Group]]:
    """Return what finds the steps of ``call`` of a generated module, or of a part of it."""
    module = read_module(text)
    lines = {launch.line for launch in module.launches}
    parameters = {name: definition.parameters for name, definition in module.definitions.items()}

    def groups(tree: ast.Module, line: int) -> Sequence[Group]:
        function = find_function(tree, line)
        result = [] if function is None else kernel_steps(function, lines, parameters)
        return result if any(group.step.kind == "call" for group in result) else []

    return groups


def _stage_name(linked: LinkedFunction) -> str:
    return graph_name(linked.stage) or linked.stage.replace("kernel_", "generated module ")


class _InFunction(Observation):
    """One call of a watched function; ``bad`` says by name whether a value is bad."""

    def __init__(self, watch: Watch, linked: LinkedFunction, origins: Origins) -> None:
        self.watch = watch
        self.linked = linked
        self.origins = origins
        self.holds = watch.condition.holds
        self.bad: dict[str, bool] = {}

    def given(self, name: str, value: Any) -> bool:
        """Look at an argument of the function."""
        bad = self.bad[name] = self.holds(name, value)
        if bad and self.watch.once(("given", self.linked.path, name)):
            argument = self.origins.argument(name)
            also = f" ({argument})" if argument else ""
            say(f"depyf: {self.linked.graph}, {_stage_name(self.linked)}: its input {name}{also} had "
                f"{self.watch.condition.name} already when the graph was called; no line of the graph is at fault for "
                f"that\n  {described(name, value, self.watch.condition)}{_callers()}")
        return bad

    def _stop_at(self, step: Step, bad: Sequence[tuple[str, Any]], reads: Sequence[Any]) -> bool:
        """Stop at a line that is at fault: raise, or report it and pause in the frame."""
        origin = self.origins.at(step.line)
        shown = [linecache.getline(self.linked.path, line).split(";  ")[0].rstrip("\n")
                 for line in range(step.line, step.end_line + 1)]
        if self.watch.condition.is_literal(literals(shown) | origin.literals):
            return False
        names = tuple(name for name, _ in bad)
        inputs = [(name, value) for name, value in zip(step.reads, reads) if name not in names]
        message = self._message(step, shown, origin, bad, inputs)
        if not self.watch.can_pause():
            raise BadValueFound(message, self.linked, step.line, names, origin)
        if not self.watch.once(("found", self.linked.path, step.line)):
            return False
        say(f"depyf: {message}")
        say("  paused in that line, before it releases anything: look at its names; `next` continues")
        return True

    def _message(
        self, step: Step, shown: Sequence[str], origin: Origin, bad: Sequence[tuple[str, Any]],
        inputs: Sequence[tuple[str, Any]],
    ) -> str:
        condition = self.watch.condition
        what = f"the kernel {origin.kernel}" if origin.kernel else "a line of a graph"
        lines = [f"{what} made {condition.name} of inputs that have none",
                 f"  {self.linked.path}:{step.line} ({self.linked.graph}, {_stage_name(self.linked)})",
                 textwrap.indent(textwrap.dedent("\n".join(each[:300] for each in shown[:_MOST_LINES])), " " * 6)]
        lines += [f"  result  {described(name, value, condition)}" for name, value in bad]
        lines += [f"  input   {described(name, value)}" for name, value in inputs[:_MOST_INPUTS]]
        if len(inputs) > _MOST_INPUTS:
            lines.append(f"          ... and {len(inputs) - _MOST_INPUTS} more")
        if origin.kernel:
            how = ", inferred from what flows through it" if origin.inferred else ""
            where = f" of {os.path.basename(origin.graph_file)}" if origin.graph_file else ""
            lines.append(f"  it computes {', '.join(origin.nodes) or 'nodes that are not known'}{where}{how}")
        if origin.user_lines:
            fused = origin.kernel and len(origin.user_lines) > 1
            lines.append("  the lines fused into it, of yours:" if fused else "  it comes from your line")
            lines += [f"      {line}" for line in origin.user_lines]
        else:
            lines.append("  torch names no line of yours for it")
        return "\n".join(lines)


class _InGraph(_InFunction):
    """A captured, forward or backward graph: torch's version counters tell which values were changed."""

    def __init__(self, watch: Watch, linked: LinkedFunction, origins: Origins) -> None:
        super().__init__(watch, linked, origins)
        self.versions: dict[str, Any] = {}

    def before(self, step: Step, *reads: Any) -> None:
        for name, value in zip(step.reads, reads):
            if name not in self.bad:
                self._know(name, value, self.given(name, value))
            elif step.opaque or self._changed(name, value):
                self._know(name, value, self.holds(name, value))

    def after(self, step: Step, writes: tuple[Any, ...], reads: tuple[Any, ...]) -> bool:
        if step.kind != "call":
            for name, value in zip(step.writes, writes):
                if step.kind == "input":
                    self._know(name, value, self.given(name, value))
                else:
                    self.bad[name], self.versions[name] = False, None  # looked at when it is read
            return False
        was_bad = any(self.bad.get(name, False) for name in step.reads)
        bad = []
        for name, value in (*zip(step.reads, reads), *zip(step.writes, writes)):
            written = name in step.writes
            if written or step.opaque or self._changed(name, value):
                holds = self.holds(name, value)
                if holds and (written or not self.bad.get(name, False)):
                    bad.append((name, value))
                self._know(name, value, holds)
        return bool(bad) and not was_bad and self._stop_at(step, bad, reads)

    def _know(self, name: str, value: Any, bad: bool) -> None:
        self.bad[name], self.versions[name] = bad, _version(value)

    def _changed(self, name: str, value: Any) -> bool:
        version = _version(value)
        return version is None or self.versions.get(name) != version


def _version(value: Any) -> Any:
    """Return a mark that changes with the value; ``None`` where there is none."""
    if isinstance(value, torch.Tensor):
        return version(value)
    if isinstance(value, (tuple, list)):
        versions = tuple(map(_version, value))
        return None if None in versions else versions
    return 0


class _InModule(_InFunction):
    """``call`` of a generated module: no version counter counts what kernels write."""

    def before(self, step: Step, *reads: Any) -> None:
        for name, value in zip(step.reads, reads):
            if name in step.changes:
                self.bad[name] = self.holds(name, value)

    def after(self, step: Step, writes: tuple[Any, ...], reads: tuple[Any, ...]) -> bool:
        if step.kind == "input":
            for name, value in zip(step.writes, writes):
                self.given(name, value)
            return False
        bad = [(name, value) for name, value in zip(step.writes, writes) if self.holds(name, value)]
        if not bad or any(self.bad[name] if name in step.changes else self.holds(name, value)
                          for name, value in zip(step.reads, reads)):
            return False
        return self._stop_at(step, bad, reads)


def _callers() -> str:
    """Return a line on the caller of the graph: the nearest frame outside depyf and torch; ``""`` without one."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    theirs = os.path.dirname(os.path.abspath(inspect.getfile(torch)))
    outside = [frame for frame, _ in traceback.walk_stack(sys._getframe(1))
               if not frame.f_code.co_filename.startswith(("<", ours + os.sep, theirs + os.sep))]
    if len(outside) < 2:
        return ""
    caller = outside[1]  # the graph's own frame comes first
    return f"\n  called from {caller.f_code.co_filename}:{caller.f_lineno} in {caller.f_code.co_name}"


# --- NaN, infinity or another bad value in a value of a graph -----------------------------------------
#: What ``stop_on`` may be.
StopOn = Literal["nan", "inf"] | Callable[[str, Any], bool]
_DEPTH = 12


class Condition:
    """The condition on which a value counts as bad.

    Args:
        stop_on: ``"nan"``, ``"inf"`` (of either sign), or ``(name, value) -> bool``, asked for each tensor and number.

    Raises:
        ValueError: it is none of these.
    """

    def __init__(self, stop_on: StopOn) -> None:
        if not callable(stop_on) and stop_on not in ("nan", "inf"):
            raise ValueError(f'stop_on={stop_on!r} is not known; give "nan", "inf" or a function (name, value) -> bool')
        self.stop_on = stop_on
        self.unknown: dict[str, str] = {}  #: Kinds of values that could not be looked at, with the reason.

    @property
    def name(self) -> str:
        """The bad value, in words."""
        if callable(self.stop_on):
            return f"a value for which {getattr(self.stop_on, '__name__', 'stop_on')} is true"
        return "a NaN" if self.stop_on == "nan" else "an infinity"

    def is_literal(self, literals: frozenset[str]) -> bool:
        """Return whether constants in the text of a line are bad values."""
        return not callable(self.stop_on) and self.stop_on in literals

    def holds(self, name: str, value: Any) -> bool:
        """Return whether a value, or a part of it, is bad."""
        with without_side_effects():
            return any(self._leaf(name, leaf) for leaf in leaves(value))

    def _leaf(self, name: str, leaf: Any) -> bool:
        if callable(self.stop_on):
            if isinstance(leaf, torch.Tensor) and not holds_data(leaf):
                return False
            return bool(self.stop_on(name, leaf))
        if isinstance(leaf, torch.Tensor):
            return any(bool(mask.any()) for mask in self.masks(leaf))
        is_bad = math.isnan if self.stop_on == "nan" else math.isinf
        return isinstance(leaf, (float, complex)) and any(map(is_bad, (leaf.real, leaf.imag)))

    def masks(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Return masks of the bad elements of a tensor (or of each tensor that it is made of); none for a function."""
        result: list[torch.Tensor] = []
        if callable(self.stop_on):
            return result
        for part in inner_tensors(tensor):
            if not (part.is_floating_point() or part.is_complex()) or not part.numel() or not holds_data(part):
                continue
            try:
                numbers = torch.view_as_real(part.resolve_conj()) if part.is_complex() else part
                if numbers.dtype.itemsize < 2:
                    numbers = numbers.to(torch.float32)  # torch compares no floats of eight bits
                result.append(torch.isnan(numbers) if self.stop_on == "nan" else torch.isinf(numbers))
            except (RuntimeError, NotImplementedError, TypeError) as error:
                self.unknown.setdefault(f"{part.dtype} on {part.device.type}", str(error).split("\n")[0])
        return result


def leaves(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield tensors and numbers in nested tuples, lists and dictionaries."""
    if isinstance(value, (torch.Tensor, int, float, complex)):
        yield value
    elif depth < _DEPTH and isinstance(value, (tuple, list, Mapping)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from leaves(item, depth + 1)


def described(name: str, value: Any, condition: Condition | None = None) -> str:
    """Return one line on a value: ``x: float32[4, 4], 3 of 16 elements, the first at [0, 2]``."""
    parts = []
    with without_side_effects():
        for leaf in leaves(value):
            if not isinstance(leaf, torch.Tensor):
                parts.append(repr(leaf))
                continue
            text = f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)}"
            try:
                text += _counted(leaf, condition) if condition is not None else _range(leaf)
            except (RuntimeError, NotImplementedError, TypeError):
                pass  # only a description
            parts.append(text)
    shown = "; ".join(parts[:4]) + ("; ..." if len(parts) > 4 else "")
    return f"{name}: {shown}" if shown else f"{name}: {type(value).__name__}"


def _counted(tensor: torch.Tensor, condition: Condition) -> str:
    for mask in condition.masks(tensor):
        if mask.dim() > tensor.dim():  # real and imaginary parts
            mask = mask.any(-1)
        bad = int(mask.sum())
        if bad:
            first = [int(index) for index in mask.nonzero()[0]]
            return f", {bad} of {mask.numel()} elements" + (f", the first at {first}" if first else "")
    return ""


def _range(tensor: torch.Tensor) -> str:
    if not holds_data(tensor) or tensor.is_complex() or not tensor.numel():
        return ""
    smallest, largest = torch.aminmax(tensor)
    if tensor.numel() == 1:
        return f", {smallest.item():.6g}"
    return f", from {smallest.item():.6g} to {largest.item():.6g}"
