"""The sizes and numbers that versions of a function hold for one value.

::

    x.shape[1] fixed at m.py:8, where mask.shape[1] is 11, too; open in the next version

    places          {"x.shape[1]": "`m.py:8`"}
    open_elsewhere  {"x.shape[1]": ("mask.shape[1]",)}
"""

from __future__ import annotations

from ...advice.keys import is_only_key
from ...advice.recompile_circumstances import FixedSizes
from ...records.model import Compilation, SymbolDecision
from ..dump.guards.conditions import ARGUMENTS
from ..markdown import code
from ..run_index import RunIndex
from .function_versions import FunctionVersions
from .program_files import ProgramFiles


def fixed_sizes(versions: FunctionVersions, files: ProgramFiles) -> FixedSizes:
    """Return the sizes and numbers that versions of a function hold for one value."""
    open_elsewhere, same_as = _open_elsewhere(versions)
    # (Of several versions the last one tells the place.)
    last = {subject: decision.location for subject, decision in versions.fixed_in_any()
            if decision.location is not None}
    return FixedSizes(
        places={subject: code(versions.run.short_place(place)) for subject, place in last.items()},
        open_elsewhere=open_elsewhere, same_as=same_as,
        by_tests=frozenset(subject for subject, place in last.items() if files.only_tests_at(place)),
        keys=_keys(versions))


def _keys(versions: FunctionVersions) -> frozenset[str]:
    """Return the numbers that are fixed as they are keys, and nothing else, in each line that fixes them."""
    only: dict[str, bool] = {}
    for subject, decision in versions.fixed_in_any():
        is_key = decision.location is not None and is_only_key(subject, decision.location.text)
        only[subject] = only.get(subject, True) and is_key
    return frozenset(subject for subject, is_key in only.items() if is_key)


def _open_elsewhere(versions: FunctionVersions) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return the sizes that one version holds for one value of, and another leaves open.

    With each come sizes of arguments that are the same number in the first: what is computed with both fixes it. Apart
    from these are those that torch took for a size that all versions hold for that number.
    """
    opened: set[str] = set()
    first: dict[str, tuple[Compilation, SymbolDecision]] = {}
    for each in versions.compilations:
        decided = dict(versions.fixed_by_name(each))
        opened.update(subject for subject, _ in versions.created_by_name(each) if subject not in decided)
        for subject, decision in decided.items():
            first.setdefault(subject, (each, decision))
    others: dict[str, tuple[str, ...]] = {}
    same: dict[str, str] = {}
    for subject in first.keys() & opened:
        where, decision = first[subject]
        others[subject] = tuple(
            size for size in _sizes_of(versions.run, where, decision.value) if size != subject)
        held = [name for name, (there, other) in first.items()
                if there is where and other is decision and name != subject and name not in opened]
        same |= {subject: held[0]} if held else {}
    return others, same


def _sizes_of(run: RunIndex, compilation: Compilation, number: str) -> list[str]:
    """Return the sizes of arguments that a version holds for this number."""
    version = run.version(compilation)
    return [] if version is None else [
        f"{one.subject}.shape[{index}]" for one in version.conditions
        if one.tensor is not None and one.section == ARGUMENTS
        for index, size in enumerate(one.tensor.size) if str(size) == number]
