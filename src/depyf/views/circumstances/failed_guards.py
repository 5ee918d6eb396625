"""What is known of the guards that failed at a recompile.

::

    len(self.log): 1 -> 2, the versions hold 0, 1 and 2       expected {"len(self.log)": ("0", "1", "2")}
    x.shape[0] == y.shape[0] fails, and no line asks for it   taken_for_one {"x.shape[0] == y.shape[0]"}
"""

from __future__ import annotations

import re

from ...advice.recompile_circumstances import FailedGuards
from ...records.model import Compilation
from ...torch_text.guard_failures import DUCK_SIZED
from ..dump.guards.versions import Version
from ..inductor_ranges import condition_in_words
from ..run_index import RunIndex
from .program_files import ProgramFiles, is_installed


def failed_guards(run: RunIndex, compilation: Compilation, files: ProgramFiles) -> FailedGuards:
    """Return what is known of the guards that failed at a recompile."""
    return FailedGuards(
        expected=_expected(run, compilation), taken_for_one=_taken_for_one(run, compilation),
        generated_apart=_generated_apart(run, compilation), set_once=_set_once(run, compilation, files))


def _expected(run: RunIndex, compilation: Compilation) -> dict[str, tuple[str, ...]]:
    """Return what each version wants of what changed, and of lengths."""
    versions = run.versions_beside(compilation)
    subjects = {change.subject for change in run.changes(compilation)[:1]}
    subjects |= {subject for version in versions for subject in version.facts if subject.startswith("len(")}
    return {subject: tuple(filter(None, (_wanted(version, subject) for version in versions)))
            for subject in subjects}


def _wanted(version: Version, subject: str) -> str:
    """Return the value that a version wants of a size, length or number; ``""`` where it takes several."""
    size_of = re.fullmatch(r"(.+)\.shape\[(\d+)\]", subject)
    if size_of is not None:
        of, index = size_of[1], int(size_of[2])
        tensor = next((one.tensor for one in version.conditions if one.tensor is not None and one.subject == of), None)
        size = tensor.size[index] if tensor is not None and index < len(tensor.size) else None
        return "" if size is None else str(size)
    fact = version.facts.get(subject)
    return fact.text if fact is not None and fact.kind == "value" else ""


def _taken_for_one(run: RunIndex, compilation: Compilation) -> frozenset[str]:
    """Return the equations of sizes that torch made of a call in which both were the same.

    No line compares them: either torch says so, or it tested no equation.
    """
    made = [version.compilation for failure in compilation.guard_failures
            if (version := run.version_of(failure.entry)) is not None and version.compilation is not None]
    unasked = not any(decision.kind == "guarded" and decision.symbol.startswith("Eq(")
                      for each in made for decision in each.symbols)
    return frozenset(change.subject for change in run.changes(compilation)
                     if unasked or any(DUCK_SIZED in failure.text for failure in change.failures))


def _generated_apart(run: RunIndex, compilation: Compilation) -> dict[str, str]:
    """Return the sizes that Inductor told apart at a recompile, with the condition that failed."""
    result = {}
    for change in run.changes(compilation)[:1]:
        for failure in change.failures:
            decision, version = run.condition_of_inductor(failure), run.version_of(failure.entry)
            if decision is not None and version is not None and version.compilation is not None:
                made = version.compilation
                result[change.subject] = condition_in_words(decision, made, run.stack_names(made))
    return result


def _set_once(run: RunIndex, compilation: Compilation, files: ProgramFiles) -> frozenset[str]:
    """Return the attributes of ``self`` that changed and that only an ``__init__`` of the program sets."""
    changed = {match[1] for change in run.changes(compilation)
               if (match := re.fullmatch(r"self\.(\w+)", change.subject))}
    if not changed or compilation.location is None or is_installed(compilation.location.filename):
        return frozenset()
    return files.set_once & changed
