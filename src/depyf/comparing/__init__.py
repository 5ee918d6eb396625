"""``depyf.compare``: the same call through eager Python and through each stage of torch.compile.

    print(depyf.compare(model, x, backward=True))

Which stage gives something else, at which node or kernel, from which line of the user's.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .results import Comparison, Difference, StageResult

if TYPE_CHECKING:
    from .recording import Recorder
    from .search import Search
    from .state import Start
    from .tensors import Tolerance

__all__ = ["Comparison", "Difference", "StageResult", "compare"]


def compare(
    fn: Any, /, *args: Any, rtol: float | None = None, atol: float | None = None, backward: bool = False,
    dynamic: bool | None = None, stages: Sequence[str] = ("captured", "aot", "inductor"), **kwargs: Any,
) -> Comparison:
    """Run ``fn(*args, **kwargs)`` in eager Python and through each stage of torch.compile, and compare.

    Each run begins with copies of the arguments' tensors, of the parameters and buffers of modules (``fn`` itself,
    that of a method, those among arguments, closures and globals that ``fn`` names), and with the same random state;
    the user's objects and the caches of compiled functions are afterwards as they were.

    Args:
        fn: a function, method or module, compiled or not. Its results are compared, what it changed in place, and
            gradients, if they are asked for.
        *args, **kwargs: of the call. (For parameters of ``fn`` that are called like the options here use
            ``functools.partial``.)
        rtol, atol: tolerances; by default those of ``torch.testing.assert_close`` for each dtype. Give both or none.
        backward: also run the backward pass (of the sum of all floating-point results) and compare gradients.
        dynamic: as in ``torch.compile``.
        stages: which of ``"captured"`` (the graph as Dynamo captured it, run by eager PyTorch), ``"aot"`` (forward and
            backward graphs as Inductor gets them, run by eager PyTorch) and ``"inductor"`` (its generated code).

    Returns:
        A :class:`Comparison`: ``print`` it, or read ``equal``, ``first`` and ``stages``.

    Raises:
        ValueError: a stage is not known, or only one tolerance is given.
        ModuleNotFoundError: torch is not installed.
        Exception: what ``fn`` raises in eager Python.
    """
    if "torch" not in sys.modules and importlib.util.find_spec("torch") is None:
        raise ModuleNotFoundError("depyf.compare needs PyTorch: pip install torch")
    from ..capture.torch_private import hooks, pipeline
    from . import stages as made
    from .recording import Recorder
    from .search import Search
    from .state import Start
    from .tensors import Tolerance

    unknown = [name for name in stages if name not in made.NAMES]
    if unknown:
        raise ValueError(f"stages={unknown} are not known; give some of {', '.join(map(repr, made.NAMES))}")
    if (rtol is None) != (atol is None):
        raise ValueError("give both rtol and atol, or none of them")
    function = hooks.innermost_function(fn)
    tolerance = Tolerance(rtol, atol)
    start = Start(function, args, kwargs)
    notes: list[str] = []
    hooks.never_compile("depyf")
    expected, calls = _eager(start, backward)
    recorders: dict[str, Recorder] = {}
    found = []
    with pipeline.apart():
        for name in made.NAMES:
            if name not in stages:
                continue
            recorder = recorders[name] = Recorder()
            try:
                with made.backend(name, recorder) as backend, start.run() as run:
                    recorder.on = True
                    actual = _results(made.compiled(function, backend, dynamic), run, backward)
            except Exception as error:  # noqa: BLE001  (what stands in a stage's way is told as its result)
                found.append(StageResult(
                    name, made.TITLES[name], False, failure=f"{type(error).__name__}: {error}", graphs=recorder.graphs))
                continue
            found.append(_stage(name, made.TITLES[name], expected, actual, tolerance, recorder.graphs))
            notes += recorder.notes
            if not recorder.graphs:
                notes.append(f"{made.TITLES[name]}: torch compiled nothing")
        if backward and any(stage.stage == "aot" and not stage.equal and not stage.failure for stage in found):
            # What gradients are held against: no stage before has nodes that compute them.
            recorder = recorders["plain"] = Recorder()
            try:
                with made.backend("plain", recorder) as backend, start.run() as run:
                    recorder.on = True
                    _results(made.compiled(function, backend, dynamic), run, backward)
            except Exception as error:  # noqa: BLE001
                notes.append(f"gradients could not be compared node by node ({type(error).__name__}: {error})")
    search = Search(tolerance)
    told: list[StageResult] = []
    for stage in found:
        if not stage.equal and not stage.failure:
            stage = _located(stage, search, calls, recorders, next((each.first for each in told if each.first), None))
        told.append(stage)
    title = getattr(function, "__qualname__", type(function).__qualname__)
    return Comparison(title, tuple(told), tuple(dict.fromkeys(notes)))


def _eager(start: Start, backward: bool) -> tuple[dict[str, Any], list[Any]]:
    from ..capture.torch_private import pipeline
    from .recording import EagerCalls

    with pipeline.all_eager(), start.run() as run:
        calls = EagerCalls()
        return _results(start.function, run, backward, calls), calls.values


def _results(function: Any, run: Any, backward: bool, mode: Any = None) -> dict[str, Any]:
    """Everything that a run leaves, by name."""
    torch = importlib.import_module("torch")
    from .tensors import kept, named_leaves

    with mode if mode is not None else contextlib.nullcontext():
        result = function(*run.args, **run.kwargs)
    found = {name: kept(value) for name, value in named_leaves(result, "result")}
    if backward:
        outputs = [value for _, value in named_leaves(result, "result")
                   if isinstance(value, torch.Tensor) and value.requires_grad]
        if outputs:
            torch.autograd.backward(outputs, [torch.ones_like(each) for each in outputs])
    given = [*named_leaves(run.args, "args"), *named_leaves(run.kwargs, "kwargs")]
    for name, value in [*given, *run.held.items()]:
        if not isinstance(value, torch.Tensor):
            continue
        found[f"{name} afterwards"] = kept(value)
        if backward and value.requires_grad and value.is_leaf:
            found[f"gradient of {name}"] = kept(value.grad)
    return found


def _stage(
    name: str, title: str, expected: dict[str, Any], actual: dict[str, Any], tolerance: Tolerance, graphs: int
) -> StageResult:
    from .tensors import difference

    differing, largest = [], 0.0
    for key in dict.fromkeys([*expected, *actual]):
        if key in expected and key in actual:
            equal, apart = difference(actual[key], expected[key], tolerance)
        else:
            equal, apart = False, float("inf")
        largest = max(largest, apart)
        if not equal:
            differing.append(key)
    return StageResult(name, title, not differing, largest, tuple(differing), graphs=graphs)


def _located(
    stage: StageResult, search: Search, calls: list[Any], recorders: dict[str, Recorder], before: Difference | None
) -> StageResult:
    """The stage with its first difference: its own, or that which it has of an earlier stage."""

    def runs(name: str) -> list[Any]:
        return recorders[name].runs if name in recorders else []

    first = before
    if first is None and stage.stage == "captured":
        first = search.captured(calls, runs("captured"))
    elif first is None and stage.stage == "aot":
        first = search.aot(runs("captured"), runs("aot")) or search.gradients(runs("plain"), runs("aot"))
    elif first is None:
        first = search.passes(runs("aot"), runs("inductor")) or search.kernels(runs("inductor"))
    if first is None:
        name = stage.differing[0]
        against = "eager Python; no single node or kernel is further from its counterpart than the tolerance"
        first = Difference(stage.stage, "result", name, backward=name.startswith("gradient of"), against=against,
                           max_difference=stage.max_difference)
    return replace(stage, first=first)
