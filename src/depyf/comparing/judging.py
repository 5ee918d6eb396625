"""Judges a call: the compiled versions that exist first, then the stages made afresh."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..capture.apart import ChildFailed, in_child
from ..capture.torch_private import cache_entries, compiled_callables, hooks, torch_settings
from . import stages
from .diagnosis import Diagnosis
from .judged import JudgedCall, Loaded, Served
from .outcome import Disagreement
from .recording import Recorder
from .results import Comparison, Difference, Fault, RunningResult, StageResult

#: Backends that draw random numbers of their own.
_OWN_RANDOM = ("inductor",)


def judge_running(
    call: JudgedCall, locate: Callable[[tuple[str, ...]], bool] = lambda served: True,
) -> RunningResult:
    """Judge the compiled versions that serve a call, as they are; what torch would compile for it, if none does.

    Args:
        call: the call.
        locate: whether to look for the part at fault, by the versions that ran.
    """
    begun = time.perf_counter()
    try:
        actual = call.as_loaded()
        ran: Loaded = actual.extra
        own_random = _own_random(call)
        result = RunningResult(tuple(dict.fromkeys(map(_said, ran.served))), ran.missed, ran.nothing_fits)
        if actual.raised is not None and actual.raised.by_torch and call.expected.raised is None:
            return replace(result, failure=f"torch did not compile it ({actual.raised.type}: "
                           f"{(actual.raised.text.splitlines() or [''])[0]})", seconds=time.perf_counter() - begun)
        found = call.against_eager(actual, own_random)
        if found:
            fault = _fault(call, found, own_random) if locate(result.served) else None
            result = replace(result, equal=False, differing=tuple(map(str, found)), fault=fault,
                             max_difference=max(each.apart for each in found))
    except ChildFailed as error:
        result = RunningResult(failure=str(error))
    return replace(result, seconds=time.perf_counter() - begun)


def _own_random(call: JudgedCall) -> frozenset[str]:
    """Return the random numbers that the call's compiled versions draw in a way of their own, as torch documents."""
    if "numpy" in call.expected.drew and torch_settings.draws_numpy_from_torch():
        return frozenset(("torch", "numpy"))
    given = cache_entries.compiled_with(call.compiled)
    name = compiled_callables.backend_name(given.backend) if given is not None else ""
    return frozenset(("torch",) if name in _OWN_RANDOM else ())


def _fault(call: JudgedCall, found: Sequence[Disagreement], own_random: frozenset[str]) -> Fault:
    try:
        return Diagnosis(call, found, own_random).fault()
    except ChildFailed as error:
        return Fault("version", "", f"its parts could not be tried: {error}")


def _said(served: Served) -> str:
    if served.resumes_at:
        return f"resume function for line {served.resumes_at} {served.version}"
    return f"{served.function} {served.version}"


def judge_afresh(call: JudgedCall, wanted: Sequence[str], dynamic: bool | None) -> Comparison:
    """Judge the stages made afresh: each is compiled and run in a process of its own."""
    results: list[StageResult] = []
    notes: list[str] = []
    for name in stages.NAMES:
        if name in wanted:
            results.append(_stage(call, name, dynamic, notes))
    if any(not each.equal and not each.failure for each in results):
        results = _located(call, results, wanted, dynamic, notes)
    return Comparison("", tuple(results), tuple(dict.fromkeys(notes)))


def _stage(call: JudgedCall, name: str, dynamic: bool | None, notes: list[str]) -> StageResult:
    title = stages.TITLES[name]

    def run() -> tuple[Any, Any]:
        recorder = Recorder()
        context = stages.backend(name, recorder)
        backend = context.__enter__()
        compiled = stages.compiled_apart(call.function, call.code, backend, dynamic)
        return compiled, lambda: (recorder.graphs, recorder.notes)

    try:
        actual = call.afresh(run)
        if actual.raised is not None and call.expected.raised is None:
            return StageResult(name, title, False, failure=f"{actual.raised.type}: {actual.raised.text}",
                               graphs=actual.extra[0])
        found = call.against_eager(actual, frozenset(), may_ask=False)
    except ChildFailed as error:
        return StageResult(name, title, False, failure=str(error))
    graphs, said = actual.extra
    notes += said
    if not graphs:
        notes.append(f"{title}: torch compiled nothing")
    first = None
    if found:
        first = Difference(name, found[0].part, found[0].place, against=f"eager Python ({found[0].text})",
                           max_difference=found[0].apart, backward=found[0].part == "gradient")
    return StageResult(name, title, not found, max((each.apart for each in found), default=0.0),
                       tuple(each.place for each in found), first, graphs=graphs)


def _located(
    call: JudgedCall, results: list[StageResult], wanted: Sequence[str], dynamic: bool | None, notes: list[str],
) -> list[StageResult]:
    """Name the node or kernel where a stage begins to differ, as far as a value leads there."""
    from .call import Call
    from .state import Start

    def work() -> Comparison:
        hooks.never_compile("depyf")
        return Call(Start(call.function, call.args, call.kwargs), call.tolerance, call.backward is not False,
                    dynamic).compare(wanted, "")

    try:
        found = in_child(work, call.limit)
    except ChildFailed as error:
        notes.append(f"no node or kernel was looked for: {error}")
        return results
    notes += found.notes
    located = []
    for each in results:
        own = next((stage for stage in found.stages if stage.stage == each.stage), None)
        if own is not None and own.first is not None and not each.equal and not each.failure:
            each = replace(each, first=own.first, max_difference=own.max_difference)
        located.append(each)
    return located
