"""The sizes and numbers that versions of a function leave open, and the conditions that torch tested on them.

::

    if x.shape[1] > 8: ...  (at m.py:5)      told_apart {"x.shape[1]"}
    if t != 0: ...                           excepted {"t": (0.0,)}
    F.max_pool1d(x, 4)      (at m.py:7)      bounded_by_torch {"x.shape[2]": "`m.py:7`"}
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...advice.recompile_circumstances import OpenSizes
from ...records.model import SymbolDecision
from ...torch_text.size_names import SYMBOL
from ..markdown import code
from ..run_index import RunIndex
from .function_versions import FunctionVersions, created
from .open_ranges import equated, open_ranges
from .program_files import ProgramFiles

#: A condition that one number does not meet, and all others do.
_OTHER_THAN = re.compile(rf"Ne\({SYMBOL.pattern}, (-?\d+(?:\.\d+)?)\)")
#: A condition that bounds one symbol.
_BOUND = re.compile(rf"[\d*+\- ]*{SYMBOL.pattern}[\d+\- ]* [<>]=? -?\d+")
#: The conditions that torch tested, by the size or number that they are on.
_Conditions = Mapping[str, Sequence[SymbolDecision]]


def open_sizes(versions: FunctionVersions, files: ProgramFiles) -> OpenSizes:
    """Return the sizes and numbers that versions of a function leave open."""
    ranges, without_first = open_ranges(versions)
    tested = _tested(versions)
    branched = {subject: at_branches for subject, conditions in tested.items()
                if (at_branches := [each for each in conditions if files.branches_at(each.location)])}
    return OpenSizes(
        ranges=ranges, equated=equated(versions), tested=frozenset(tested),
        told_apart=_told_apart(branched) | without_first, excepted=_excepted(branched),
        bounded_by_torch=_bounded_by_torch(versions.run, tested, files), tied=_tied(versions))


def _tested(versions: FunctionVersions) -> dict[str, list[SymbolDecision]]:
    """Return the sizes and numbers on which torch tested conditions, in versions that gave them symbols, with these."""
    tested: dict[str, list[SymbolDecision]] = {}
    for each in versions.compilations:
        of_symbol: dict[str, list[SymbolDecision]] = {}
        for decision in each.symbols:
            for symbol in SYMBOL.findall(decision.symbol) if decision.kind == "guarded" else ():
                of_symbol.setdefault(symbol, []).append(decision)
        for subject, made in versions.created_by_name(each):
            if made.symbol in of_symbol:
                tested.setdefault(subject, []).extend(of_symbol[made.symbol])
    return tested


def _told_apart(branched: _Conditions) -> frozenset[str]:
    """Return the sizes and numbers that branches of the program ask for more of than a bound."""
    return frozenset(subject for subject, conditions in branched.items()
                     if any(not _is_bound(each) for each in conditions))


def _excepted(branched: _Conditions) -> dict[str, tuple[float, ...]]:
    """Return the numbers that branches of the program tell from all others."""
    return {subject: tuple(float(match[1]) for each in conditions if (match := _OTHER_THAN.fullmatch(each.symbol)))
            for subject, conditions in branched.items()}


def _bounded_by_torch(run: RunIndex, tested: _Conditions, files: ProgramFiles) -> dict[str, str]:
    """Return the sizes that operations of torch's bound, and no branch of the program, with the place of one."""
    result = {}
    for subject, conditions in tested.items():
        bounds = [each for each in conditions if _is_bound(each)]
        place = bounds[0].location if bounds else None
        if place is not None and not any(files.branches_at(each.location) for each in bounds):
            result[subject] = code(run.short_place(place))
    return result


def _is_bound(condition: SymbolDecision) -> bool:
    return _BOUND.fullmatch(condition.symbol) is not None


def _tied(versions: FunctionVersions) -> frozenset[str]:
    """Return the sizes that torch found to be equal to numbers that are no sizes."""
    tied: set[str] = set()
    for each in versions.compilations:
        numbers = {decision.symbol for decision in created(each) if ".size()" not in decision.source}
        equal = [set(SYMBOL.findall(decision.symbol)) for decision in each.symbols
                 if decision.kind == "guarded" and decision.symbol.startswith("Eq(")]
        symbols = {symbol for both in equal if both & numbers for symbol in both - numbers}
        tied.update(subject for subject, decision in versions.created_by_name(each) if decision.symbol in symbols)
    return frozenset(tied)
