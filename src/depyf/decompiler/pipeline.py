"""Puts the stages together: try, prove, try the next form, fall back."""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass
from types import CodeType
from typing import Mapping, Sequence

from ..bytecode.code import Code


class Fidelity(str, enum.Enum):
    """How a decompilation relates to the code it came from."""

    EXACT = "exact"  # compiles to the same program
    EQUIVALENT = "equivalent"  # proven the same after the simplifications named in ``note``
    FALLBACK = "fallback"  # a dispatch loop, right by construction
    UNPROVEN = "unproven"  # only with verify=False


@dataclass(frozen=True)
class Decompiled:
    """Source of a code object.

    Attributes:
        text: Python source; one ``def`` (or module text for module code).
        fidelity: see :class:`Fidelity`.
        note: simplifications made, or why it fell back. Empty when there is nothing to say.
        line_map: ``{byte offset of an original instruction: 1-based line of text}``.
        tree: the syntax tree the text was made from, with line numbers of ``text``. It may hold
            statements that the text does not show (marked ``_depyf_hidden``: lifetimes, profiler
            markers); compiled, it gives the code that may stand in for the original.
    """

    text: str
    fidelity: Fidelity
    note: str
    line_map: Mapping[int, int]
    tree: ast.Module


def decompile_code(
    code: CodeType | Code,
    *,
    name: str | None = None,
    simplify: bool = False,
    verify: bool = True,
    parameter_names: Mapping[str, Sequence[str]] | None = None,
    rename: Mapping[str, str] | None = None,
) -> Decompiled:
    """Decompile one code object.

    Args:
        code: what to decompile.
        name: name of the function in the text (default: the code's own, made legal).
        simplify: remove torch.compile's list juggling (fidelity becomes ``equivalent``).
        verify: prove the result; without it everything is ``unproven``.
        parameter_names: parameter names of functions that the code calls by global name; used to name
            values (``x`` in ``__resume_at_102_2(..., x)``).
        rename: global names to show differently (``__compiled_fn_1_9148bb58... -> __compiled_fn_1``).
    """
    raise NotImplementedError
