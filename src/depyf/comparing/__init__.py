"""``depyf.compare``: the same call through eager Python and through each stage of torch.compile.

    print(depyf.compare(model, x, backward=True))

In comes a call; out comes a :class:`Comparison`: which stage gives something else, at which node or kernel, from which
line of the user's. ``state`` gives each run the same start, ``stages`` makes the backends, ``recording`` keeps what
nodes, kernels and calls give, ``call`` compares what the runs leave, ``search`` finds the first value that differs.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from typing import Any

from .results import Comparison, Difference, StageResult

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
    from ..capture.torch_private import hooks
    from .call import Call
    from .stages import NAMES
    from .state import Start
    from .tensors import Tolerance

    unknown = [name for name in stages if name not in NAMES]
    if unknown:
        raise ValueError(f"stages={unknown} are not known; give some of {', '.join(map(repr, NAMES))}")
    if (rtol is None) != (atol is None):
        raise ValueError("give both rtol and atol, or none of them")
    function = hooks.innermost_function(fn)
    call = Call(Start(function, args, kwargs), Tolerance(rtol, atol), backward, dynamic)
    hooks.never_compile("depyf")
    return call.compare(stages, getattr(function, "__qualname__", type(function).__qualname__))
