"""The part of a compiled version that is at fault: parts are run separately and compared with their originals.

fresh graphs, as captured, wrong?   yes -> capture: a node, else the frame whose compiled version does it
fresh, by the program's backend?    yes -> backend: a graph, and in it a node or kernel
all that is fresh is right          -> the guards of the version allow a call that it is wrong for
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import CodeType
from typing import Any, NamedTuple

import torch

from ..capture.forked import ChildFailed, in_child
from ..capture.torch_private import cache_entries, compiled_callables, graph_modules, hooks, pipeline
from ..records.model import Guard, SourceLocation
from ..torch_text.global_names import is_resume
from ..torch_text.guards import parse_guards
from ..torch_text.run_ids import without_numbers_of_objects
from ..watch.origins import UserLine
from .locating import Located, Search
from .outcome import Disagreement, Outcome
from .recording import KernelRecorder, Recorder, copied
from .reference import difference, snapshot
from .results import Difference, Fault
from .runs import JudgedCall, Loaded, Served
from .state import same_random_numbers

#: Kinds of guards that fix a value.
_OF_VALUE = frozenset({"EQUALS_MATCH", "CONSTANT_MATCH", "ID_MATCH", "TRUE_MATCH", "FALSE_MATCH", "NONE_MATCH",
                       "BOOL_MATCH", "LAMBDA_GUARD"})


class Fresh(NamedTuple):
    """Facts of a compilation made afresh.

    Attributes:
        guards: of each function, by its name.
        graph: the first graph, or node of it, that gave another value than the captured one with the same inputs.
        kernel: the first kernel that wrote something else than its nodes give.
    """

    guards: dict[str, tuple[Guard, ...]]
    graph: Difference | None
    kernel: Difference | None


class Diagnosis:
    """Looks for the part at fault.

    Args:
        found: where the versions that serve the call differ from eager Python.
        own_random: the random numbers that compiled code draws in its own way.
        settings: makes the context in which parts are compiled.
    """

    def __init__(
        self, call: JudgedCall, found: Sequence[Disagreement], own_random: frozenset[str],
        settings: Callable[[], contextlib.AbstractContextManager[None]],
    ) -> None:
        self.call, self.found, self.own_random, self._settings = call, found, own_random, settings
        self._trouble = ""
        self.ran: Loaded = call.as_loaded(facts=True).extra

    def fault(self) -> Fault:
        """Return the part at fault."""
        captured = self._try(lambda: self._fresh(lambda gm, inputs: gm.forward))
        if captured is None:
            return self._frame_fault(f"it could not be compiled afresh to try its parts ({self._trouble})")
        if self._wrong(captured):
            return self._capture_fault()
        backend = self.call.backend
        compiled = self._try(lambda: self._fresh(backend)) if backend is not None else None
        if compiled is not None and self._wrong(compiled):
            return self._backend_fault(compiled.extra, compiled_callables.backend_name(backend))
        return self._version_fault(captured.extra, backend)

    # --- runs ---------------------------------------------------------------------------------------
    def _try(self, run: Callable[[], Outcome]) -> Outcome | None:
        try:
            return run()
        except ChildFailed as error:
            self._trouble = str(error)
            return None

    def _wrong(self, outcome: Outcome) -> bool:
        return bool(self.call.against_eager(outcome, self.own_random).differing)

    def _fresh(self, backend: Any, caches: bool = False) -> Outcome:
        """Run the call compiled anew by a backend; ``extra`` of the outcome is :class:`Fresh`."""
        code, recorder, transformed = self.call.code, Recorder(on=True), list[CodeType]()
        beside = _GraphsBeside(backend, KernelRecorder(recorder))

        @contextlib.contextmanager
        def make_backend() -> Iterator[Any]:
            with contextlib.ExitStack() as stack:
                with contextlib.suppress(AttributeError):  # this torch lacks it
                    stack.callback(hooks.on_bytecode(lambda original, new: transformed.append(new)))
                stack.enter_context(beside.kernels)
                yield beside.compile

        def facts() -> Fresh:
            guards = {each.co_name: parse_guards(str(entry.guard_manager)) for each in cache_entries.known_codes()
                      if code is None or each.co_name == code.co_name or is_resume(each.co_name)
                      for entry in cache_entries.entries(each) if any(entry.code is one for one in transformed)}
            search = Search(self.call.tolerance)
            return Fresh(guards, beside.first_difference(search), search.kernels(recorder.runs))

        return self.call.afresh(make_backend, facts, pipeline.as_the_program if caches else self._settings,
                                getattr(backend, "dynamic", None))

    # --- capture ------------------------------------------------------------------------------------
    def _capture_fault(self) -> Fault:
        located = Located(replace(self.call, backward=False), None)
        node: Difference | None = None
        with contextlib.suppress(ChildFailed):
            node = in_child(located.captured_node, self.call.limit)
        if node is not None:
            return Fault("graph", node.name, f"the captured graph gives something else than {node.against}; "
                         f"the largest difference is {node.max_difference:.3g}", node.user_lines)
        return self._frame_fault("no node of its graphs was found to differ")

    def _frame_fault(self, before: str) -> Fault:
        """Blame the function whose compiled version is at fault: with its Python code all is as in eager Python."""
        culprit = self._culprit()
        effects = [each for each in self.found if each.part in ("side effect", "printed text", "random state")]
        only_effects = bool(effects) and len(effects) == len(self.found)
        name, lines = self._names(culprit)
        where = f"the resume function for line {culprit.resumes_at}" if culprit and culprit.resumes_at else name
        if only_effects:
            return Fault("side effect", effects[0].place, f"{effects[0].text}; {before}, the transformed code of "
                         f"{where} does not do what the function does", lines)
        if culprit is None or not culprit.resumes_at:
            return Fault("transformed code", name, before, lines)
        return Fault("resume function", name, f"{before}; run as it is written, {where} gives what eager Python gives",
                     lines)

    def _culprit(self) -> Served | None:
        """Return the resume function that is at fault; the function itself where none is."""
        # The last that helps: its callers are then right.
        for each in reversed(list(dict.fromkeys(self.ran.served))):
            if each.resumes_at:
                forget = functools.partial(_forget, each.function)
                outcome = self._try(functools.partial(self.call.as_loaded, compiles=False, before=forget))
                if outcome is not None and not self._wrong(outcome):
                    return each
        return next((each for each in self.ran.served if not each.resumes_at), None)

    def _names(self, served: Served | None) -> tuple[str, tuple[UserLine, ...]]:
        if served is None:
            return getattr(self.call.function, "__qualname__", type(self.call.function).__qualname__), ()
        line = served.resumes_at or served.line
        return f"{served.function} {served.version}", (
            UserLine(SourceLocation(served.filename, line, "", "")),) if line else ()

    # --- backend ------------------------------------------------------------------------------------
    def _backend_fault(self, fresh: Fresh, name: str) -> Fault:
        if fresh.kernel is not None:
            kernel = fresh.kernel
            return Fault("kernel", kernel.name, f"it computes {', '.join(kernel.nodes)} and gives something else than "
                         f"{kernel.against}; the largest difference is {kernel.max_difference:.3g}",
                         kernel.user_lines)
        first = fresh.graph
        if first is not None:
            return Fault("graph" if first.name else "backend", first.name or f"{name}, graph {first.graph}",
                         f"what {name} made of graph {first.graph} gives something else than the captured graph with "
                         f"the same inputs; the largest difference is {first.max_difference:.3g}", first.user_lines)
        if all(each.part == "gradient" for each in self.found):
            text = self.found[0].text
            if text.startswith("it shares"):
                text += "; changing one in place (clip_grad_norm_) changes the other"
            return Fault("backward graph", self.found[0].place,
                         f"what {name} made of the captured graphs gives the same results and another gradient: {text}")
        return Fault("backend", name, f"what {name} made of the captured graphs leaves something else than these")

    # --- the version itself -------------------------------------------------------------------------
    def _version_fault(self, fresh: Fresh, backend: Any) -> Fault:
        """Return why a version is wrong for the call: compiled afresh by its backend, as ``fresh`` is, it is right."""
        missing = {each: missing_guards(each.guards, fresh.guards.get(each.function, ())) for each in self.ran.served}
        at_fault = next((each for each in missing if missing[each]), None) or next(
            (each for each in self.ran.served if not each.resumes_at), None)
        if at_fault is None:
            return Fault("version", "", "compiled afresh it is right")
        free = at_fault.free
        what = f"version {at_fault.version} of {at_fault.function} serves {', '.join(free) or 'this call'}"
        if lacks := missing[at_fault]:
            return Fault("guard", ", ".join(dict.fromkeys(each.source for each in lacks[:4])),
                         f"{what}; compiled afresh it is right, with the guard {lacks[0].expression}, which this "
                         "version lacks", tuple(UserLine(each.cause) for each in lacks if each.cause is not None)[:1])
        if free:
            return Fault("guard", ", ".join(value.partition(" = ")[0] for value in free),
                         f"{what}; compiled afresh it is right; its guards allow it")
        cached = self._try(lambda: self._fresh(backend, caches=True)) if backend is not None else None
        if cached is not None and self._wrong(cached):
            return Fault("cache", f"of {at_fault.function} {at_fault.version}", f"{what}; its guards fit, but what it "
                         "runs came from torch's compile cache, which takes it for the same; without the cache it is "
                         "right (TORCHINDUCTOR_FX_GRAPH_CACHE=0)")
        return Fault("version", at_fault.version, f"{what}; compiled afresh it is right")


def missing_guards(own: Sequence[Guard], fresh: Sequence[Guard]) -> list[Guard]:
    """Return the guards of a fresh version on things that another version does not guard in that way."""
    def key(guard: Guard) -> tuple[str, str]:
        return without_numbers_of_objects(guard.source), "value" if guard.kind in _OF_VALUE else guard.kind

    known = set(map(key, own))
    texts = {without_numbers_of_objects(each.expression) for each in own}
    return [each for each in fresh if each.source and key(each) not in known
            and without_numbers_of_objects(each.expression) not in texts]


def _forget(name: str) -> None:
    """Remove the compiled versions of resume functions of that name, in the process of a run."""
    for code in cache_entries.known_codes():
        if code.co_name == name:
            pipeline.forget(code)


# --- captured graphs beside what a backend made of them ------------------------------------------------
class _GraphsBeside:
    """A backend that runs each captured graph before what another backend made of it."""

    def __init__(self, backend: Callable[..., Any], kernels: KernelRecorder) -> None:
        self._backend, self.kernels = backend, kernels
        #: Number of a graph, itself, what the backend made of it, inputs; then the results and inputs that both left.
        self._runs: list[tuple[int, Any, Any, list[Any], Any, Any]] = []

    def compile(self, gm: Any, inputs: Any) -> Any:
        """Compile a graph; the backend itself, as torch sees it."""
        self.kernels.number += 1
        number = self.kernels.number
        captured = copied(gm)
        compiled = self._backend(gm, inputs)

        def run(*args: Any) -> Any:
            given, copies = (list(map(snapshot, args)) for _ in range(2))
            expected = None
            with same_random_numbers(), torch.no_grad(), contextlib.suppress(Exception):  # (it says nothing then)
                expected = snapshot(captured.forward(*copies))
            result = compiled(*args)
            if expected is not None:
                self._runs.append((number, captured, compiled, given, (expected, _tensors(copies)),
                                   (snapshot(result), _tensors(args))))
            return result

        return run

    def first_difference(self, search: Search) -> Difference | None:
        """Return the first graph that gave another value; with its first node where the backend runs it by nodes."""
        for number, captured, compiled, given, expected, actual in self._runs:
            equal, distance = difference(actual, expected, search.tolerance)
            if not equal:
                node = _first_node(number, captured, graph_modules.inner_graph_module(compiled), given, search)
                return replace(node or Difference("backend", "graph", "", number), max_difference=distance)
        return None


def _first_node(number: int, captured: Any, module: Any, inputs: list[Any], search: Search) -> Difference | None:
    if not isinstance(module, torch.fx.GraphModule):
        return None
    recorder = Recorder(on=True)
    try:
        with torch.no_grad():
            for each in (module, captured):
                recorder.interpreted(each, number)(*map(snapshot, inputs))
    except Exception:
        return None
    own, of_captured = recorder.runs
    by_name = {each.name: each.value for each in own.values}
    return search.node("backend", of_captured, lambda node: (
        [by_name[node.name]] if node.name in by_name else list(by_name.values())), "")


def _tensors(values: Sequence[Any]) -> Any:
    return snapshot([each for each in values if isinstance(each, torch.Tensor)])
