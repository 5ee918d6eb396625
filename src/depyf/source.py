"""``depyf.decompile``: source for a function or a code object."""

from __future__ import annotations

from types import CodeType
from typing import Any

from .decompiler import Decompiled, decompile_code


def code_of(obj: Any) -> CodeType:
    """The code object of a function, method, generator, coroutine, class body wrapper or code object."""
    for attribute in ("__func__", "__wrapped_code__"):
        obj = getattr(obj, attribute, obj)
    if isinstance(obj, CodeType):
        return obj
    for attribute in ("__code__", "gi_code", "cr_code", "ag_code", "f_code"):
        code = getattr(obj, attribute, None)
        if isinstance(code, CodeType):
            return code
    raise TypeError(f"there is no code object in a {type(obj).__name__}; give a function or a code object")


def decompile(code: Any, *, verify: bool = True, simplify: bool = False) -> str:
    """Source of a function or code object.

    Args:
        code: a function, method, generator, coroutine or code object.
        verify: prove that the source is the same program (else fall back to a form that is right by
            construction).
        simplify: remove torch.compile's list juggling.
    """
    return decompile_full(code, verify=verify, simplify=simplify).text


def decompile_full(obj: Any, *, verify: bool = True, simplify: bool = False) -> Decompiled:
    """As :func:`decompile`, with the fidelity, the notes and the line map."""
    return decompile_code(code_of(obj), verify=verify, simplify=simplify)
