"""What the versions of a function leave open: the range of each size and number, and what is demanded beyond it.

::

    2 <= x.shape[0], 2*x.shape[0]*x.shape[1] <= 4096     all sizes from 2 on with `2 * x.shape[0] * x.shape[1] <= 4096`
    x.shape[2] // 4 == 6, in each version                one value of `x.shape[2] // 4`
"""

from __future__ import annotations

from ...advice.recompile_changes import NUMBER
from ...records.model import Compilation
from ...torch_text.comparisons import as_python
from ...torch_text.size_names import SYMBOL
from ...torch_text.user_expressions import user_expression
from ..changes import in_words
from ..dump.guards.limits import bounds, equations
from ..dump.guards.sizes import in_shape_words, is_in_range, range_in_sentence
from ..fixed_symbols import holds
from ..inductor_ranges import condition_in_words, is_made_by_inductor
from ..markdown import code, some
from ..run_index import RunIndex
from .function_versions import FunctionVersions, created


def open_ranges(versions: FunctionVersions) -> tuple[dict[str, str], frozenset[str]]:
    """Return what a version of the function leaves open, with the range that its guards leave of a size.

    The range is that of a version which could serve the first call; with the ranges come those that have none such.
    (A backend may fix a number that Dynamo left open: a float, where no tensor can stand for it.)
    """
    run, first = versions.run, _first_values(versions)
    result: dict[str, str] = {}
    others: set[str] = set()
    for each in versions.compilations:
        names = run.stack_names(each)
        closed = {decision.symbol for decision in versions.fixed(each)}
        for source in (source for decision in created(each) if decision.symbol not in closed
                       for source in decision.source.split(", ") if source):
            subject, known = in_words(source, names), run.range_of(each, source)
            result.setdefault(subject, "")
            if known and is_in_range(first.get(subject, ""), known):
                result[subject] = f"all sizes {range_in_sentence(known)}{_bounded(run, each, source)}"
            elif known:
                others.add(subject)
            elif not result[subject] and (asked := _asked_by_backend(run, each, source)):
                result[subject] = f"all sizes with {some(asked, 2)}"
    return result, frozenset(subject for subject in others if not result[subject])


def equated(versions: FunctionVersions) -> dict[str, tuple[str, str]]:
    """Return the open sizes of which each version holds an expression for one number: that, and who asks for it.

    (Where a version does without, a test tells one number from all others.)
    """
    run = versions.run
    result: dict[str, tuple[str, str]] = {}
    free: set[str] = set()
    for each in versions.compilations:
        version, names = run.version(each), run.stack_names(each)
        if version is None:
            continue
        found = equations(version)
        free.update(in_words(size, names) for size in version.sizes.names if size not in found)
        for size, equation in found.items():
            if equation.cause is not None:
                held = as_python(in_words(equation.text, names)).rpartition(" == ")[0]
                result.setdefault(in_words(size, names), (held, code(run.short_place(equation.cause))))
    return {size: told for size, told in result.items() if size not in free}


def _first_values(versions: FunctionVersions) -> dict[str, str]:
    """Return the values of the first call that changed, or were open from the first version on."""
    first: dict[str, str] = {}
    for each in versions.compilations:
        expected = {change.subject: next(filter(NUMBER.fullmatch, reversed(change.was)), "")
                    for change in versions.run.changes(each)}
        seen = {subject: decision.value for subject, decision in versions.created_by_name(each)}
        for subject, value in {**seen, **expected}.items():
            first[subject] = first.get(subject) or value or seen.get(subject, "")
    return first


def _bounded(run: RunIndex, compilation: Compilation, source: str) -> str:
    """Return the bounds on what a size and others come to, `` with `2*x.shape[0]*x.shape[1] <= 4096` ``."""
    version, names = run.version(compilation), run.stack_names(compilation)
    of = in_shape_words(user_expression(source))
    told = [code(as_python(in_words(text, names))) for text in bounds(version).get(of, ())] if version else []
    return f" with {some(told, 2)}" if told else ""


def _asked_by_backend(run: RunIndex, compilation: Compilation, source: str) -> list[str]:
    """Return the conditions on a number that Inductor asks for, as Markdown."""
    symbols = {each.symbol for each in created(compilation) if source in each.source.split(", ")}
    version, names = run.version(compilation), run.stack_names(compilation)
    return [code(condition_in_words(each, compilation, names)) for each in compilation.symbols
            if is_made_by_inductor(each) and symbols & set(SYMBOL.findall(each.symbol))
            and holds(each, compilation, version)]
