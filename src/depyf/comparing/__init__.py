"""``depyf.compare``: the same call in eager Python, as its compiled versions are, and through each stage made afresh.

    print(depyf.compare(compiled_model, x))

In comes a call; out comes a :class:`Comparison`: whether the versions that exist leave what eager Python leaves, which
part of them does not, and which stage of a fresh compilation gives something else, at which node or kernel, from which
line of the user's.

Each run is done in a process of its own (``judged``), which describes what it leaves (``outcome``, ``reachable``).
``judging`` judges the versions first and the stages then, ``diagnosis`` and ``graph_check`` look for the part at fault.
``call``, ``stages``, ``recording`` and ``search`` find the first value that differs, with copies of arguments that
``state`` makes; where a process cannot fork (CUDA), they do all of it in this one.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .results import Comparison, Difference, Fault, RunningResult, StageResult

if TYPE_CHECKING:
    from .tensors import Tolerance

__all__ = ["Comparison", "Difference", "Fault", "RunningResult", "StageResult", "compare"]


def compare(
    fn: Any, /, *args: Any, rtol: float | None = None, atol: float | None = None, backward: bool | None = None,
    dynamic: bool | None = None, stages: Sequence[str] = ("captured", "aot", "inductor"), **kwargs: Any,
) -> Comparison:
    """Judge ``fn(*args, **kwargs)``: the compiled versions that exist, and each stage of torch.compile made afresh.

    Each run is held against eager Python: its result (values, dtypes, strides, memory shared with arguments), what it
    changed (arguments, attributes, containers, globals, captured variables), what it printed or raised, gradients, and
    the random numbers it drew. Each is done in a process forked for it, so this one is afterwards as it was, torch's
    caches and counters included. Where a process cannot fork (CUDA is in use, Windows), copies of tensors are used in
    this process, and only the stages made afresh are judged. With a torch built for GPUs no backward pass can run in a
    forked process once this one has run one: then what runs is judged without it, and the stages in this process. Notes
    say so.

    Args:
        fn: a function, method or module, compiled or not.
        *args, **kwargs: of the call. (For parameters of ``fn`` that are called like the options here use
            ``functools.partial``.)
        rtol, atol: tolerances; by default those of ``torch.testing.assert_close`` for each dtype. Give both or none.
        backward: also run the backward pass (of a weighed sum of all floating-point results) and compare gradients;
            ``None``: if a result requires a gradient.
        dynamic: as in ``torch.compile``, for the stages made afresh.
        stages: which of ``"captured"`` (the graph as Dynamo captured it, run by eager PyTorch), ``"aot"`` (forward and
            backward graphs as Inductor gets them, run by eager PyTorch) and ``"inductor"`` (its generated code) are
            made afresh; ``()``: none.

    Returns:
        A :class:`Comparison`: ``print`` it, or read ``equal``, ``running``, ``first`` and ``stages``.

    Raises:
        ValueError: a stage is not known, or only one tolerance is given.
        ModuleNotFoundError: torch is not installed.
    """
    if "torch" not in sys.modules and importlib.util.find_spec("torch") is None:
        raise ModuleNotFoundError("depyf.compare needs PyTorch: pip install torch")
    from ..capture import apart
    from ..capture.torch_private import compiled_callables
    from .stages import NAMES
    from .tensors import Tolerance

    unknown = [name for name in stages if name not in NAMES]
    if unknown:
        raise ValueError(f"stages={unknown} are not known; give some of {', '.join(map(repr, NAMES))}")
    if (rtol is None) != (atol is None):
        raise ValueError("give both rtol and atol, or none of them")
    function = compiled_callables.innermost_function(fn)
    title = getattr(function, "__qualname__", type(function).__qualname__)
    tolerance = Tolerance(rtol, atol)
    why_not = apart.why_not()
    if why_not:
        note = f"the versions that exist were not judged, as nothing could be run apart: {why_not}"
        return _in_this_process(function, args, kwargs, tolerance, bool(backward), dynamic, stages, title, note)
    no_backward = apart.why_no_backward()
    if no_backward:
        running = apart.in_child(
            lambda: _apart(fn, function, args, kwargs, tolerance, False, dynamic, (), title)).running
        note = f"no backward pass of what runs was judged, and the stages were run in this process: {no_backward}"
        made = _in_this_process(function, args, kwargs, tolerance, bool(backward), dynamic, stages, title, note)
        return dataclasses.replace(made, running=running)
    return apart.in_child(lambda: _apart(fn, function, args, kwargs, tolerance, backward, dynamic, stages, title))


def _apart(
    fn: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tolerance: Tolerance, backward: bool | None,
    dynamic: bool | None, stages: Sequence[str], title: str,
) -> Comparison:
    from ..capture.torch_private import cache_entries
    from .judged import JudgedCall
    from .judging import judge_afresh, judge_running

    call = JudgedCall(fn, function, args, kwargs, tolerance, backward)
    running = judge_running(call) if cache_entries.compiled_with(fn) is not None else None
    made = judge_afresh(call, stages, dynamic)
    return Comparison(title, made.stages, made.notes, running)


def _in_this_process(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tolerance: Tolerance, backward: bool,
    dynamic: bool | None, stages: Sequence[str], title: str, note: str,
) -> Comparison:
    from ..capture.torch_private import hooks
    from .call import Call
    from .state import Start

    call = Call(Start(function, args, kwargs), tolerance, backward, dynamic)
    hooks.never_compile("depyf")
    made = call.compare(stages, title)
    return Comparison(title, made.stages, (*made.notes, note))
