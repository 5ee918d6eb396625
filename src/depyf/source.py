"""``depyf.decompile``: source for a function or a code object."""

from __future__ import annotations

from types import CodeType
from typing import Any

from .callables import code_in, unwrapped, why_no_code
from .decompiler import Decompiled, decompile_code
from .decompiler.emit.blank_lines import with_blank_lines


def code_of(obj: Any) -> CodeType:
    """Return the code object that runs when ``obj`` is called.

    Raises:
        TypeError: there is none; the message names ``obj`` and says what to give instead.
    """
    *_, last = unwrapped(obj)
    code = code_in(last)
    if code is None:
        raise TypeError(f"depyf: {why_no_code(obj)}")
    return code


def decompile(code: Any, *, verify: bool = True, simplify: bool = False, blank_lines: bool = False) -> str:
    """Return source of a function or code object.

    Args:
        code: a function, method, generator, coroutine or code object; or what leads to one, to any depth: a
            ``functools.partial``, an ``lru_cache``, a decorator that uses ``functools.wraps``, a property, an object
            with ``__call__``, an ``nn.Module`` (its ``forward``), what ``torch.compile`` returned.
        verify: prove that the source is the same program (else fall back to a form that is right by
            construction).
        simplify: remove torch.compile's list juggling.
        blank_lines: put blank lines between statements where the source had lines that left nothing in the code:
            empty ones, or comments.

    Raises:
        TypeError: there is no Python code in it: a class, a function written in C, a string.
    """
    result = decompile_full(code, verify=verify, simplify=simplify)
    return with_blank_lines(result) if blank_lines else result.text


def decompile_full(obj: Any, *, verify: bool = True, simplify: bool = False) -> Decompiled:
    """As :func:`decompile`, with the fidelity, the notes and the line map."""
    return decompile_code(code_of(obj), verify=verify, simplify=simplify)
