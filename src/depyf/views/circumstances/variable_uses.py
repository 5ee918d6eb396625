"""What the lines of a function, and of its file, do with variables and attributes."""

from __future__ import annotations

import ast
import re

from ...advice.recompile_circumstances import VariableUses
from ...advice.uses import names_added_to, own_variables
from ...records.model import Compilation, SourceLocation
from ...torch_text.resumes import resumed_function
from ..causes import in_two_steps
from ..markdown import code
from ..run_index import RunIndex
from ..user_source import Definition
from .program_files import ProgramFiles

#: The last part of an item of a list.
_PLACE = re.compile(r"\[-?\d+\]")


def variable_uses(run: RunIndex, compilation: Compilation, files: ProgramFiles) -> VariableUses:
    """Return what the lines of the function that was compiled do with variables and attributes."""
    calls = _calls_in_two_steps(run, compilation)
    place = compilation.location
    if place is None:
        return VariableUses(calls_in_two_steps=calls)
    definition = run.source.function_at(place)
    is_whole = resumed_function(compilation.function) is None
    return VariableUses(
        own_variables=frozenset(own_variables(definition.node)) if definition is not None else frozenset(),
        given=_given(definition) if definition is not None and is_whole else frozenset(),
        filled=files.lines_of(place.filename).filled, tests=_tests(run, place, definition, files),
        calls_in_two_steps=calls)


def _given(definition: Definition) -> frozenset[str]:
    """Return the parameters of a function that its own lines add nothing to."""
    names = {each.arg for each in ast.walk(definition.node.args) if isinstance(each, ast.arg)} - {"self", "cls"}
    return frozenset(names - names_added_to(definition.node))


def _tests(
    run: RunIndex, place: SourceLocation, definition: Definition | None, files: ProgramFiles,
) -> dict[str, str]:
    """Return what tests in a function and its file read, with the places (:class:`VariableUses`)."""
    own = {id(node) for node in ast.walk(definition.node)} if definition is not None else set()
    result: dict[str, str] = {}
    for value in files.lines_of(place.filename).tested_values:
        # (``self`` is another object in another class.)
        names = {value.text} if id(value.node) in own else set()
        # (The first item of another list says nothing.)
        if value.last_part and not value.text.startswith("self.") and not _PLACE.fullmatch(value.last_part):
            names.add(value.last_part)
        if names:
            where = code(run.short_place(SourceLocation(place.filename, value.node.lineno)))
            result |= dict.fromkeys(names, where)
    return result


def _calls_in_two_steps(run: RunIndex, compilation: Compilation) -> dict[str, str]:
    """Return calls of bound methods whose arguments break the graph, written in two steps."""
    summary = run.summary_of.get(compilation.compile_id.key)
    steps = (in_two_steps(broken) for each in (summary.compilations if summary else ()) for broken in each.breaks)
    return dict(filter(None, steps))
