"""``depyf.compare``: one call in eager Python, by its compiled versions, and by each stage of a fresh compilation.

    print(depyf.compare(compiled_model, x))

A :class:`Comparison` says whether the versions that exist agree with eager Python, which part of them does not, and
which stage of a fresh compilation differs, at which node or kernel, from which line of the user's.

Each run (``runs``) is done in a fork, or, where no process can be forked (CUDA), on copies in this one (``state``); its
result is an ``outcome`` (``reachable``). Values may be as far apart as rounding can take them, which ``reference``
measures. ``judging`` judges the versions first, with the part of one that is at fault, and the stages then;
``locating`` finds the first value of a stage that differs (``recording``).
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from typing import Any

from .results import Comparison, Difference, Fault, RunningResult, StageResult

__all__ = ["Comparison", "Difference", "Fault", "RunningResult", "StageResult", "compare"]


def compare(
    fn: Any, /, *args: Any, rtol: float | None = None, atol: float | None = None, backward: bool | None = None,
    dynamic: bool | None = None, stages: Sequence[str] = ("captured", "aot", "inductor"), **kwargs: Any,
) -> Comparison:
    """Judge ``fn(*args, **kwargs)``: the compiled versions that exist, and each stage of torch.compile made afresh.

    Each run is compared with eager Python: its result (values, dtypes, strides, memory shared with arguments), what it
    changed, printed or raised, gradients, and the random numbers it drew. A value is equal if it is as near to that of
    a float64 run as rounding lets it be. What differs between two runs of eager Python is not judged, and listed.

    Each run is done in a forked process, so this one is unchanged afterwards, including torch's caches and counters;
    where that is impossible (CUDA is in use, Windows; a torch built for GPUs after a backward pass), on copies in this
    process, and for a call that no version fits, a separate compilation is judged. A note says so.

    Args:
        fn: a function, method or module, compiled or not.
        *args, **kwargs: of the call. (For parameters of ``fn`` that are called like the options here use
            ``functools.partial``.)
        rtol, atol: tolerances; by default what rounding can make, as measured in this call. Give both or none.
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
    from ..capture import forked
    from ..capture.torch_private import cache_entries, compiled_callables
    from .judging import judge_afresh, judge_running
    from .recording import STAGES
    from .reference import Tolerance
    from .runs import JudgedCall

    unknown = [name for name in stages if name not in STAGES]
    if unknown:
        raise ValueError(f"stages={unknown} are not known; give some of {', '.join(map(repr, STAGES))}")
    if (rtol is None) != (atol is None):
        raise ValueError("give both rtol and atol, or none of them")
    function = compiled_callables.innermost_function(fn)
    here = forked.why_not() or forked.why_no_backward()
    call = JudgedCall(fn, function, args, kwargs, Tolerance(rtol, atol), backward, here=bool(here))

    def judge() -> Comparison:
        running = judge_running(call) if cache_entries.compiled_with(fn) is not None else None
        made, notes = judge_afresh(call, stages, dynamic)
        if here:
            notes = (*notes, f"all was run on copies in this process, and no part at fault was looked for: {here}")
        return Comparison(call.name, made, notes, running)

    return judge() if here else forked.in_child(judge)
