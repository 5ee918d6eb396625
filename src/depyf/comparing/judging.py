"""Judges a call: the compiled versions that exist first, then the stages made afresh.

Of a version that is wrong, parts are run separately and compared with their originals, to find the one at fault:

fresh graphs, as captured, wrong?   yes -> capture: a node, else the transformed code
fresh, by the program's backend?    yes -> backend: a graph, and in it a node or kernel
all that is fresh is right          -> the guards of the version allow a call that it is wrong for
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import CodeType
from typing import Any

import torch

from ..capture.forked import ChildFailed, in_child
from ..capture.torch_private import cache_entries, compiled_callables, graph_modules, hooks, pipeline, private_api
from ..records.model import Guard, SourceLocation
from ..torch_text.global_names import is_resume
from ..torch_text.guards import parse_guards
from ..torch_text.run_ids import without_numbers_of_objects
from ..views.markdown import some
from ..watch.origins import UserLine
from .locating import Located, Search
from .outcome import Disagreement, Outcome, disagreements
from .recording import STAGE_TITLES, STAGES, Recorder, copied, kernels_recorded
from .reference import Tolerance, difference, snapshot
from .results import Difference, Fault, RunningResult, StageResult
from .runs import OWN_DRAWS, Findings, JudgedCall, Loaded
from .state import same_random_numbers

#: Kinds of guards that fix a value.
_OF_VALUE = frozenset({"EQUALS_MATCH", "CONSTANT_MATCH", "ID_MATCH", "TRUE_MATCH", "FALSE_MATCH", "NONE_MATCH",
                       "BOOL_MATCH", "LAMBDA_GUARD"})


def judge_running(call: JudgedCall, first: Callable[[tuple[str, ...]], bool] = lambda served: True) -> RunningResult:
    """Judge the compiled versions that serve a call, as they are; what torch would compile for it, if none does.

    ``first`` says of the versions that ran whether to do what takes long: look for the part at fault, and judge what
    follows random numbers that compiled code draws in its own way.
    """
    try:
        return _judged(call, first)
    except Exception as error:  # (the program goes on)
        return RunningResult(failure=str(error).partition("\n")[0] or type(error).__name__)


def _judged(call: JudgedCall, first: Callable[[tuple[str, ...]], bool]) -> RunningResult:
    actual, remade = call.as_loaded(), ""
    ran: Loaded = actual.extra
    own_random = _own_random(call)
    result = RunningResult(tuple(dict.fromkeys(each.title for each in ran.served)), ran.nothing_fits)
    if not ran.served and not ran.missed:
        return replace(result, failure="no compiled version ran: torch runs this call in plain Python")
    if call.here and ran.missed:
        actual, own_random = _remade(call), frozenset()
        remade = "compiled afresh, separately from the program's versions, to judge the call in this process"
    if actual.raised is not None and actual.raised.by_torch and call.in_eager_python().raised is None:
        return replace(result, failure=f"torch did not compile it ({actual.raised.type}: "
                       f"{(actual.raised.text.splitlines() or [''])[0]})")
    findings = call.against_eager(actual, own_random)
    drawn = [each.place for each in findings.not_judged if each.why_not == OWN_DRAWS]
    searched = first(result.served)
    if drawn and not findings.differing and searched:
        with contextlib.suppress(ChildFailed):
            findings = _with_draws_of_eager(call, actual, findings)
            remade = (f"{some(drawn, 3)}: compared in a compilation made afresh that draws the random numbers of eager "
                      "Python (fallback_random), as the versions that exist draw their own")
    result = replace(result, differing=tuple(map(str, findings.differing)), remade=remade,
                     not_judged=tuple(map(str, findings.not_judged)))
    if not findings.differing or not searched or call.here:  # (parts are tried in processes of their own)
        return result
    try:
        fault = Diagnosis(call, findings.differing, frozenset() if remade else own_random,
                          pipeline.isolated_compile if remade else pipeline.uncached).fault()
    except ChildFailed as error:
        fault = Fault("version", "", f"its parts could not be tried: {error}")
    return replace(result, fault=fault)


def _with_draws_of_eager(call: JudgedCall, actual: Outcome, findings: Findings) -> Findings:
    """Judge what follows a version's own random numbers, in two steps.

    A compilation made afresh that draws the random numbers of eager Python has to agree with eager Python; and one that
    draws its own has to agree, from the same seed, with the version that exists.
    """
    again = call.against_eager(_remade(call))
    if again.differing:
        return again
    twin = _remade(call, draws_as_eager=False)
    others = {each.place for each in disagreements(actual, twin, Tolerance())}
    unlike = f"{OWN_DRAWS}, and another compilation gives other values from one seed"
    not_judged = [replace(each, why_not=unlike) if each.why_not == OWN_DRAWS else each for each in findings.not_judged
                  if each.why_not != OWN_DRAWS or each.place in others]
    return Findings((), (*not_judged, *again.not_judged), findings.largest)


def _remade(call: JudgedCall, draws_as_eager: bool = True) -> Outcome:
    """Return the outcome of the call compiled anew by its own backend."""
    backend = call.backend
    if backend is None:
        raise ChildFailed("the backend is not known that it was compiled with")

    def again(gm: Any, inputs: Any) -> Any:
        return backend(gm, inputs)

    again.depyf_compares = True  # type: ignore[attr-defined]  # no function declares attributes
    outcome = call.afresh(lambda: contextlib.nullcontext(again),
                          settings=functools.partial(pipeline.isolated_compile, draws_as_eager),
                          dynamic=getattr(backend, "dynamic", None))
    if outcome.raised is not None and call.in_eager_python().raised is None:
        raise ChildFailed(f"{outcome.raised.type}: {outcome.raised.text}")
    return outcome


def _own_random(call: JudgedCall) -> frozenset[str]:
    """Return the random numbers that compiled versions of the call draw in their own way, as torch documents."""
    drew = call.in_eager_python().drew
    if "numpy" in drew and not private_api.NUMPY_RANDOM.get_or(True):  # (they are torch's)
        return frozenset(("torch", "numpy"))
    is_inductor = call.backend is not None and compiled_callables.backend_name(call.backend) == "inductor"
    return drew & {"torch"} if is_inductor and not compiled_callables.draws_as_eager() else frozenset()


# --- stages made afresh ----------------------------------------------------------------------------
def judge_afresh(
    call: JudgedCall, wanted: Sequence[str], dynamic: bool | None,
) -> tuple[tuple[StageResult, ...], tuple[str, ...]]:
    """Judge the stages made afresh, each from the same start; return them and notes on what was not judged."""
    notes: list[str] = []
    results = [_stage(call, name, dynamic, notes) for name in STAGES if name in wanted]
    differing = [each.stage for each in results if each.differing]
    if differing:
        located = Located(call, dynamic)

        def work() -> tuple[Difference | None, list[str]]:
            return located.first(differing), located.notes

        try:
            found, more = work() if call.here else in_child(work, call.limit)
            notes += more
            later = differing[differing.index(found.stage):] if found is not None else ()  # (they have it of that)
            results = [replace(each, first=found) if each.stage in later else each for each in results]
        except ChildFailed as error:
            notes.append(f"no node or kernel was looked for: {error}")
    return tuple(results), tuple(dict.fromkeys(notes))


def _stage(call: JudgedCall, name: str, dynamic: bool | None, notes: list[str]) -> StageResult:
    title = STAGE_TITLES[name]
    try:
        actual = call.at_stage(name, Recorder(), dynamic)
        graphs, said = actual.extra
        if actual.raised is not None and call.in_eager_python().raised is None:
            return StageResult(name, title, failure=f"{actual.raised.type}: {actual.raised.text}", graphs=graphs)
        findings = call.against_eager(actual, may_ask=False)
    except Exception as error:  # what stops a stage is its result
        return StageResult(name, title, failure=str(error))
    notes += said
    if not graphs:
        notes.append(f"{title}: torch compiled nothing")
    first = next((Difference(
        name, each.part, each.place, 0, each.part == "gradient", (), f"eager Python ({each.text}); no single node or "
        "kernel was found that differs", each.distance) for each in findings.differing), None)
    return StageResult(name, title, findings.largest, tuple(each.place for each in findings.differing),
                       tuple(map(str, findings.not_judged)), first, graphs=graphs)


# --- the part at fault --------------------------------------------------------------------------------
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
        """Return the part at fault; raise :class:`ChildFailed` where it could not be looked for."""
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
                return self._backend_fault(compiled_callables.backend_name(backend), *compiled.extra[1:])
        return self._version_fault(captured.extra[0], backend)

    def _is_wrong(self, outcome: Outcome) -> bool:
        return bool(self.call.against_eager(outcome, self.own_random).differing)

    def _fresh(self, backend: Any, caches: bool = False) -> Outcome:
        """Run the call compiled anew by a backend.

        ``extra`` of the outcome: the guards by function; the first graph, or node of it, that gave another value than
        the captured one with the same inputs; the first kernel that wrote something else than its nodes give.
        """
        code, recorder, transformed = self.call.code, Recorder(on=True), list[CodeType]()
        beside, search = _GraphsBeside(backend, recorder), Search(self.call.tolerance)

        @contextlib.contextmanager
        def make_backend() -> Iterator[Any]:
            with contextlib.ExitStack() as stack:
                with contextlib.suppress(AttributeError):  # this torch lacks it
                    stack.callback(hooks.on_bytecode(lambda original, new: transformed.append(new)))
                stack.enter_context(kernels_recorded(recorder))
                yield beside.compile

        def facts() -> tuple[dict[str, tuple[Guard, ...]], Difference | None, Difference | None]:
            guards = {each.co_name: parse_guards(str(entry.guard_manager)) for each in cache_entries.known_codes()
                      if code is None or each.co_name == code.co_name or is_resume(each.co_name)
                      for entry in cache_entries.entries(each) if any(entry.code is one for one in transformed)}
            return guards, beside.first_difference(search), search.kernels(recorder.runs)

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

    def _backend_fault(self, name: str, first: Difference | None, kernel: Difference | None) -> Fault:
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
            if self.found[0].structural == "shared memory":
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

    def __init__(self, backend: Callable[..., Any], recorder: Recorder) -> None:
        self._backend, self._recorder = backend, recorder
        #: Number of a graph, itself, what the backend made of it, inputs; then the results and inputs that both left.
        self._runs: list[tuple[int, Any, Any, list[Any], Any, Any]] = []

    def compile(self, gm: Any, inputs: Any) -> Any:
        """Compile a graph; the backend itself, as torch sees it."""
        self._recorder.number += 1
        number = self._recorder.number
        captured = copied(gm)
        compiled = self._backend(gm, inputs)

        def run(*args: Any) -> Any:
            given, copies = (list(map(snapshot, args)) for _ in range(2))
            expected = None
            with same_random_numbers(), torch.no_grad(), contextlib.suppress(Exception):  # (it says nothing then)
                expected = snapshot(captured.forward(*copies))
            result = compiled(*args)
            if expected is not None:
                self._runs.append((number, captured, compiled, given, (expected, snapshot(copies)),
                                   (snapshot(result), snapshot(args))))
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
