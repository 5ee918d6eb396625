"""The part of a compiled version that is at fault: parts are run separately and compared with their originals.

fresh graphs, as captured, wrong?   yes -> capture: a node, else the transformed code
fresh, by the program's backend?    yes -> backend: a graph, and in it a node or kernel
all that is fresh is right          -> the guards of the version allow a call that it is wrong for
"""

from __future__ import annotations

import contextlib
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
from .runs import JudgedCall, Loaded
from .state import same_random_numbers

#: Kinds of guards that fix a value.
_OF_VALUE = frozenset({"EQUALS_MATCH", "CONSTANT_MATCH", "ID_MATCH", "TRUE_MATCH", "FALSE_MATCH", "NONE_MATCH",
                       "BOOL_MATCH", "LAMBDA_GUARD"})


class Fresh(NamedTuple):
    """Facts of a compilation made afresh."""

    guards: dict[str, tuple[Guard, ...]]  # of each function, by its name
    #: the first graph, or node of it, that gave another value than the captured one with the same inputs
    graph: Difference | None
    kernel: Difference | None  # the first kernel that wrote something else than its nodes give


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
        self.ran: Loaded = call.as_loaded(facts=True).extra
        self.own = next((each for each in self.ran.served if not each.resumes_at), None)

    def fault(self) -> Fault:
        """Return the part at fault.

        Raises:
            ChildFailed: it could not be looked for.
        """
        try:
            captured = self._fresh(lambda gm, inputs: gm.forward)
        except ChildFailed as error:
            return self._code_fault(f"it could not be compiled afresh to try its parts ({error})")
        if self._is_wrong(captured):
            node = None
            with contextlib.suppress(ChildFailed):
                located = Located(replace(self.call, backward=False), None)
                node = in_child(located.captured_node, self.call.limit)
            return self._code_fault("no node of its graphs was found to differ") if node is None else Fault(
                "graph", node.name, f"the captured graph gives something else than {node.against}; the largest "
                f"difference is {node.max_difference:.3g}", node.user_lines)
        backend = self.call.backend
        with contextlib.suppress(ChildFailed):
            if backend is not None and self._is_wrong(compiled := self._fresh(backend)):
                return self._backend_fault(compiled.extra, compiled_callables.backend_name(backend))
        return self._version_fault(captured.extra.guards, backend)

    def _is_wrong(self, outcome: Outcome) -> bool:
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

    # --- the parts --------------------------------------------------------------------------------------
    def _code_fault(self, before: str) -> Fault:
        """Return that what Dynamo made of the functions is at fault, besides their graphs."""
        own = self.own
        lines = (UserLine(SourceLocation(own.filename, own.line, "", "")),) if own is not None and own.line else ()
        name = ", ".join(each.title for each in self.ran.served) or self.call.name
        effects = [each for each in self.found if each.part in ("side effect", "printed text", "random state")]
        if effects and len(effects) == len(self.found):
            return Fault("side effect", effects[0].place, f"{effects[0].text}; {before}, the transformed code of "
                         f"{name} does not do what the function does", lines)
        return Fault("transformed code", name, before, lines)

    def _backend_fault(self, fresh: Fresh, name: str) -> Fault:
        kernel, first = fresh.kernel, fresh.graph
        if kernel is not None:
            return Fault("kernel", kernel.name, f"it computes {', '.join(kernel.nodes)} and gives something else than "
                         f"{kernel.against}; the largest difference is {kernel.max_difference:.3g}",
                         kernel.user_lines)
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

    def _version_fault(self, fresh: dict[str, tuple[Guard, ...]], backend: Any) -> Fault:
        """Return why a version is wrong for the call: compiled afresh, with ``fresh`` guards, it is right."""
        missing = {each: missing_guards(each.guards, fresh.get(each.function, ())) for each in self.ran.served}
        at_fault = next((each for each in missing if missing[each]), self.own)
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
        with contextlib.suppress(ChildFailed):
            if backend is not None and self._is_wrong(self._fresh(backend, caches=True)):
                return Fault("cache", f"of {at_fault.function} {at_fault.version}", f"{what}; its guards fit, but what "
                             "it runs came from torch's compile cache, which takes it for the same; without the cache "
                             "it is right (TORCHINDUCTOR_FX_GRAPH_CACHE=0)")
        return Fault("version", at_fault.version, f"{what}; compiled afresh it is right")


def missing_guards(own: Sequence[Guard], fresh: Sequence[Guard]) -> list[Guard]:
    """Return the guards of a fresh version on things that another version does not guard in that way."""
    def key(guard: Guard) -> tuple[str, str]:
        return without_numbers_of_objects(guard.source), "value" if guard.kind in _OF_VALUE else guard.kind

    known = set(map(key, own))
    texts = {without_numbers_of_objects(each.expression) for each in own}
    return [each for each in fresh if each.source and key(each) not in known
            and without_numbers_of_objects(each.expression) not in texts]


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
    with contextlib.suppress(Exception), torch.no_grad():
        for each in (module, captured):
            recorder.interpreted(each, number)(*map(snapshot, inputs))
        own, of_captured = recorder.runs
        by_name = {each.name: each.value for each in own.values}
        return search.node("backend", of_captured, lambda node: (
            [by_name[node.name]] if node.name in by_name else list(by_name.values())), "")
    return None


def _tensors(values: Sequence[Any]) -> Any:
    return snapshot([each for each in values if isinstance(each, torch.Tensor)])
