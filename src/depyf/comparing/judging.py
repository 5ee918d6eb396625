"""Judges a call: the compiled versions that exist first, then the stages made afresh."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..capture.forked import ChildFailed, in_child
from ..capture.torch_private import compiled_callables, pipeline, private_api
from ..views.markdown import some
from .diagnosis import Diagnosis
from .locating import Located
from .outcome import Outcome, disagreements
from .recording import STAGE_TITLES, STAGES, Recorder
from .reference import Tolerance
from .results import Difference, Fault, RunningResult, StageResult
from .runs import OWN_DRAWS, Findings, JudgedCall, Loaded


def judge_running(
    call: JudgedCall, first: Callable[[tuple[str, ...]], bool] = lambda served: True,
) -> RunningResult:
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
    backend = call.backend
    name = compiled_callables.backend_name(backend) if backend is not None else ""
    own = ("torch",) if name == "inductor" and not compiled_callables.draws_as_eager() else ()
    return drew & frozenset(own)


# --- stages made afresh ----------------------------------------------------------------------------
def judge_afresh(
    call: JudgedCall, wanted: Sequence[str], dynamic: bool | None,
) -> tuple[tuple[StageResult, ...], tuple[str, ...]]:
    """Judge the stages made afresh, each from the same start; return them and notes on what was not judged."""
    notes: list[str] = []
    results = [_stage(call, name, dynamic, notes) for name in STAGES if name in wanted]
    differing = [each for each in results if each.differing]
    if differing:
        located = Located(call, dynamic)

        def work() -> tuple[dict[str, Difference], list[str]]:
            return located.first(differing), located.notes

        try:
            found, more = work() if call.here else in_child(work, call.limit)
            notes += more
            results = [replace(each, first=found.get(each.stage, each.first)) for each in results]
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
