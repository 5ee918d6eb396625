"""The guard oracle: which version of a function would serve a call, and why not the others.

For a dump, the call is described (``depyf fits``, no torch is needed)::

    x=f32[1, 3] n=4            written.py: the command line -> described values
    Given                      given.py: the known values of a call
    L['x'].size()[0] == 8      conditions.py: holds, does not hold, or cannot be decided from what was given
    x.shape[0]: 1 -> 8         changes.py: the smallest change with which a version fits
    Fit                        oracle.py: the versions in the order in which torch tries them, as values and text
    x.0=1,2,8                  written.py: the answers for other sizes

For a running function (:func:`depyf.fits`) torch's own guards decide (running.py, which also describes the live
values); the smallest change is made to copies of them and checked by torch's guards.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .oracle import Fit, VersionFit

if TYPE_CHECKING:
    from .dropped import DroppedGuards

__all__ = ["Fit", "VersionFit", "dropped_guards", "fits"]


def fits(compiled: Any, /, *args: Any, sizes: Sequence[str] = (), **kwargs: Any) -> Fit:
    """Return which compiled version of a function would serve ``compiled(*args, **kwargs)``.

    The call is not made: nothing is run, compiled or counted, and the next call finds everything as it was. What
    follows a graph break is ignored, as its values are not known without running.

    Args:
        compiled: the result of ``torch.compile``, or a function or module, whose versions for any backend are meant.
        *args, **kwargs: of the call. (For a parameter that is called ``sizes`` use ``functools.partial``.)
        sizes: which of these sizes would be compiled again: ``["x.0=1,2,8,16"]`` (dimension 0 of ``x``), ``["n=1,2"]``
            (a number), ``["x.0,y.0=1,2"]`` (both at once).

    Returns:
        A :class:`Fit`: ``print`` it, or read ``served``, ``version`` and ``versions``.

    Raises:
        TypeError: ``compiled`` is not a function, or the arguments do not match its parameters.
        ValueError: a name in ``sizes`` is not among the arguments.
        ModuleNotFoundError: torch is not installed.
    """
    if "torch" not in sys.modules and importlib.util.find_spec("torch") is None:
        raise ModuleNotFoundError("depyf.fits needs PyTorch: pip install torch. Of a dump, the command `depyf fits` "
                                  "says it without")
    from ..capture.torch_private import cache_entries
    from ..capture.user_function import called_frame
    from .given import unknown_name
    from .running import RunningOracle
    from .written import NotGiven, answers_by_size

    frame = called_frame(compiled, args, kwargs)
    oracle = RunningOracle(frame, cache_entries.compiled_with(compiled))
    lists = [sizes] if isinstance(sizes, str) else sizes
    try:
        answers = answers_by_size(lists, oracle.given, oracle.changed_call)
        return dataclasses.replace(oracle.answer(), sizes=answers)
    except NotGiven as error:
        raise unknown_name("the call", error.path, frame.values) from None


def dropped_guards() -> DroppedGuards:
    """Check guards that the program asks torch to drop, on each call in a block.

        with depyf.dropped_guards() as dropped:
            model = torch.compile(model, options={"guard_filter_fn": torch.compiler.skip_all_guards_unsafe})
            serve(model)
        print(dropped)      # x.shape[0] must be 2 or more, is 1 (llama.py:88: ...)

    Only functions that are compiled in the block are checked.
    """
    from .dropped import DroppedGuards

    return DroppedGuards()
