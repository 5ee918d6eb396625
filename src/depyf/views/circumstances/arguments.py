"""What a function that was compiled takes, and where that is made."""

from __future__ import annotations

import ast

from ...advice.recompile_circumstances import Arguments
from ...advice.uses import kept_parameters
from ...records.model import Compilation
from ...torch_text.resumes import resumed_function
from ..dump.guards.versions import signature
from ..run_index import RunIndex
from .callers import compiled_caller


def arguments(run: RunIndex, compilation: Compilation) -> Arguments:
    """Return what the function that was compiled takes, and where that is made."""
    made_in, caller = compiled_caller(run, compilation)
    summary = run.summary_of[compilation.compile_id.key]
    return Arguments(
        packed=_packed(run, compilation), made_in=made_in,
        made_outside=_passed_on(run, caller) if caller is not None else frozenset(),
        divided=any(resumed_function(each.function) is not None for each in summary.compilations))


def _packed(run: RunIndex, compilation: Compilation) -> dict[str, str]:
    """Return the parameters with a star of what was compiled, without it, with the kind of arguments they take."""
    frame = run.frame_of(compilation)
    if frame is None:
        return {}
    (function,) = ast.parse(f"def f({signature(frame)}): ...").body
    assert isinstance(function, ast.FunctionDef)
    packed = (function.args.vararg, "positional"), (function.args.kwarg, "keyword")
    return {parameter.arg: kind for parameter, kind in packed if parameter is not None}


def _passed_on(run: RunIndex, caller: Compilation) -> frozenset[str]:
    """Return the parameters of a function to which its lines give no other value."""
    definition = run.source.function_at(caller.location) if caller.location is not None else None
    return frozenset(kept_parameters(definition.node)) if definition is not None else frozenset()
