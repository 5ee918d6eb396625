"""Decompile code objects to Python source, with a proof that the source is the same program.

Input: a code object of any supported Python; output: a :class:`Decompiled`: text, fidelity, a verdict for each code
object. :mod:`.pipeline` runs it, by the list of passes in :mod:`.passes`. ``while a: f()`` on its way::

    bytecode, cfg   B0 [a] branch B1, B3;  B1 [f(); a] branch B1, B2;  B2 return;  B3 return
    undo            B0 [a] branch B1, B2;  B1 [f()] jump B0;  B2 return    what the compiler did is taken back
    lift            B0: the expression a;  B1: the statement f()           by a symbolic stack
    structure       While(a, [Expr(f())]), Return
    bodies          While(a, [Expr(f())])                                  the compiler's last return goes
    emit            while a: f()
    proof           exact: compiled again, it is the same operations

``dynamo`` comes before ``undo`` for code that torch.compile wrote: it takes back what Dynamo's code generator did, and
its text is proven *equivalent*. :mod:`.scopes` makes the ``def``, ``class`` or module around a body. A code object that
cannot be written or proven takes its next output tier (:mod:`.result`); the last one is ``fallback``, a loop over block
numbers that is right by construction.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .pipeline import Decompiled, Fidelity, decompile_code

__all__ = ["Decompiled", "Fidelity", "decompile_code"]


def __getattr__(name: str) -> Any:
    """Load the pipeline when it is first wanted: much that reads records uses no more than a module of this package."""
    if name in ("DecompilationError", "Decompiler", "decompile"):  # depyf up to 0.20 had them here
        return getattr(importlib.import_module("depyf"), name)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import pipeline

    return getattr(pipeline, name)
