"""Recompiles: what changed since the versions were compiled, a row for each. Dynamic shapes."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TypeAlias

from ...model.arithmetic import Interval
from ...model.folding import fold
from ...records.model import Compilation, SourceLocation, SymbolDecision
from ...torch_text.global_names import resumed_function
from ...torch_text.guard_failures import number
from ...torch_text.size_names import is_of_torchs_own, symbols_in
from ...torch_text.user_expressions import sources_in_words, sources_of
from ..causes import kind_of_failure
from ..changes import Change, in_words, row
from ..dump.guards.sizes import condition_in_words, fixed_symbols, holds, how_made, is_made_by_inductor
from ..markdown import code, count, link, prose, some
from ..run_index import RunIndex
from .overview import SectionContext

#: Recompiles of a function that are listed one by one: the first, and the last one. Those between are counted.
ROWS = 12


def recompiles(run: SectionContext) -> list[str]:
    """Return the section on recompiles: by function, each with what changed, then advice."""
    lines: list[str] = []
    for summary in run.summaries:
        recompiled = summary.recompiles
        if not recompiled:
            continue
        resumed = sum(resumed_function(each.function) is not None for each in recompiled)
        of_resumes = f", {resumed} of them of resume functions" if 0 < resumed < len(recompiled) else ""
        lines += ["", f"{link(run.name_in_text(summary), summary.file)}, {run.place(summary.location)}: "
                      f"{count(len(recompiled), 'recompile')}{of_resumes}", ""]
        shown = [*recompiled[: ROWS - 1], recompiled[-1]] if len(recompiled) > ROWS + 1 else recompiled
        reported: set[tuple[str, ...]] = set()
        for each in shown:
            if len(shown) < len(recompiled) and each is shown[-1]:
                lines.append(f"* ... {len(recompiled) - len(shown)} more, each of its own version")
            lines += event(run, each, reported)
        actions, reasons = (run.advice.on(recompiled, is_action) for is_action in (True, False))
        if not actions and not reasons:
            reasons = list(filter(None, [run.advice.on_outer_break(recompiled[0])]))
        for heading, texts in (("To compile less often", actions), ("Why torch compiled it again", reasons)):
            if texts:
                lines += ["", f"{heading}:", "", *(f"* {text}" for text in texts)]
    if not lines:
        return []
    return ["## Recompiles", "", "No compiled version matched a call, so torch compiled another one. At too many "
            "versions it stops (`torch._dynamo.config.recompile_limit`, 8 by default). Each row says what "
            "changed: from → to.",
            *lines]


def event(run: SectionContext, compilation: Compilation, reported: set[tuple[str, ...]]) -> list[str]:
    """Return the lines on one recompile: what changed, causes not in ``reported`` yet, then torch's own words."""
    changes = run.changes(compilation)
    # (Of a summary, itself and resume functions, several may have recompiles.)
    parts = {c.compile_id.frame_key for c in run.summary_of[compilation.compile_id.key].recompiles}
    of = f", in {run.name_of(compilation)}" if len(parts) > 1 else ""
    lines = [f"* {code(str(compilation.compile_id))}{' ' + row(changes) if changes else ''}{of}"]
    if not changes:
        return lines
    besides = run.besides(compilation)
    if besides:
        lines.append(f"  * {besides}")
    failures = changes[0].failures
    causes = tuple(dict.fromkeys(f"{run.place(place)}: {code(place.text)}"
                                 for place in map(run.line_guarded_for, failures) if place is not None))
    if causes and causes not in reported:
        reported.add(causes)
        lines.append(f"  * torch guards it because of {some(list(causes), 2)}")
    asked = next(filter(None, map(run.condition_of_inductor, failures)), None)
    if asked is not None and asked.location is not None:
        lines.append(f"  * no line of the program asks for it: a condition {how_made(asked.location)}")
    lines.append("  * torch says: " + "; ".join(_torchs_words(change) for change in changes))
    return lines


def _torchs_words(change: Change) -> str:
    """Return torch's sentences on one change, whole, with the versions that they are about."""
    sentences = []
    for members in fold(change.failures, kind_of_failure).values():
        first = members[0]
        alike = [code(str(failure.entry)) for failure in members if failure.entry and failure.text == first.text]
        likewise = [code(str(failure.entry)) for failure in members if failure.entry and failure.text != first.text]
        of = ", ".join(filter(None, (some(alike, 4), f"with another value of {some(likewise, 4)}" if likewise else "")))
        sentences.append(code(first.text) + (f" (of {of})" if of else ""))
    return "; ".join(sentences)


# --- Dynamic shapes ----------------------------------------------------------------------------------
#: How many symbols of a function are listed one by one.
SYMBOLS = 10
Decision: TypeAlias = tuple[SymbolDecision, Compilation]


def shapes(run: SectionContext) -> list[str]:
    """Return the section on dynamic shapes: what is open, what was fixed, the conditions on it."""
    lines: list[str] = []
    for summary in run.summaries:
        # (What a skipped function decided applies to no call.)
        decisions = [(decision, compilation) for compilation in summary.compilations if compilation.outcome != "skipped"
                     for decision in run.decisions(compilation) if is_used(run, decision, compilation)]
        if not decisions:
            continue
        used = {_key(*decision) for decision in decisions}
        fixed = [(decision, compilation) for compilation in summary.compilations
                 for decision in fixed_symbols(compilation, run.version(compilation))
                 if _key(decision, compilation) in used]
        # What was fixed matters most: it makes for recompiles.
        known = {_key(*decision) for decision in fixed}
        of_program = [decision for decision in decisions if is_of_program(*decision)]
        texts = _at_most(_fixed(run, [decision for decision in fixed if is_of_program(*decision)]), "size")
        texts += _at_most(_open(run, of_program, known), "symbol")
        texts += _at_most(_conditions(run, of_program, known), "condition")
        if texts:
            head = f"{link(run.name_in_text(summary), summary.file)}, {run.place(summary.location)}:"
            lines += ["", head, "", *texts]
    if not lines:
        return []
    return ["## Dynamic shapes", "", "Sizes and numbers that torch keeps open, so that one version fits many of them; "
            "what was fixed, and the conditions that torch tested while it compiled. (Those that a call must satisfy "
            "are in the guards.)", *lines]


def _at_most(texts: Sequence[str], what: str) -> list[str]:
    shown = [f"* {text}" for text in texts[:SYMBOLS]]
    return [*shown, f"* ... and {count(len(texts) - SYMBOLS, what)} more"] if len(texts) > SYMBOLS else shown


def _key(decision: SymbolDecision, compilation: Compilation) -> tuple[str, str]:
    return decision.symbol, str(compilation.compile_id)


def _fixed(run: SectionContext, decisions: Sequence[Decision]) -> list[str]:
    values: dict[tuple[str, SourceLocation | None, str], dict[str, list[Decision]]] = {}
    for decision, compilation in decisions:
        # (Several sizes where torch found them equal.)
        sizes = ", ".join(_subject(run, source, compilation) for source in sources_of(decision.source)) \
            if decision.source else code(decision.symbol)
        values.setdefault((sizes, decision.location, decision.reason), {}).setdefault(
            _number(decision.value), []).append((decision, compilation))
    texts = []
    for (name, *_), fixed in values.items():
        decision = next(iter(fixed.values()))[0][0]
        each = "; ".join(f"{code(value)} in {some([code(str(version.compile_id)) for _, version in members], 3)}"
                         for value, members in fixed.items())
        word = f": {_REASONS.get(decision.reason) or prose(decision.reason)}" if decision.reason else ""
        texts.append(f"**fixed**: {name} (torch's {code(decision.symbol)}{word}){_at(run, decision)}: {each}")
    return texts


def _at(run: SectionContext, decision: SymbolDecision) -> str:
    return f", {run.place(decision.location)}" if decision.location else ""


#: Why torch fixed a symbol (the last argument of ``ShapeEnv._set_replacement``), in words.
_REASONS = {"range_refined_to_singleton": "conditions leave one value",
            **dict.fromkeys(("solve", "find", "trivial_lhs", "trivial_rhs"), "it has to be equal to a number")}


def _subject(run: SectionContext, source: str, compilation: Compilation) -> str:
    what = in_words(source, run.stack_names(compilation))
    constant = run.values_on_stack(compilation).get(what)
    return f"the constant {code(constant)}" if constant else code(what)


def _number(text: str) -> str:
    """Return ``1e-05`` for sympy's ``1.00000000000000e-5``."""
    try:
        return str(int(text)) if text.lstrip("-").isdigit() else repr(float(text))
    except ValueError:
        return text


def _open(run: SectionContext, decisions: Sequence[Decision], fixed: Set[tuple[str, str]]) -> list[str]:
    """Return the open sizes and numbers with their ranges, in the versions where they were not fixed later."""
    sentences: dict[tuple[str, str], list[tuple[str, Compilation]]] = {}
    for decision, compilation in decisions:
        if decision.kind in ("created", "unbacked") and _key(decision, compilation) not in fixed:
            extent = range_of(run, decision, compilation)
            what, text = _open_text(run, decision, compilation, extent)
            sentences.setdefault((what, extent), []).append((text, compilation))
    return [f"{code(str(texts[0][1].compile_id))} {texts[0][0]}" + (
                f" (and in {count(len(texts) - 1, 'other version')})" if len(texts) > 1 else "")
            for texts in sentences.values()]


def _conditions(run: SectionContext, decisions: Sequence[Decision], fixed: Set[tuple[str, str]]) -> list[str]:
    versions: dict[str, list[str]] = {}
    for decision, compilation in decisions:
        symbols = symbols_in(decision.symbol)
        if decision.kind == "guarded" and not (symbols and all(
                (symbol, str(compilation.compile_id)) in fixed for symbol in symbols)) and holds(
                    decision, compilation, run.version(compilation)):
            # (with the user's names)
            text = condition_in_words(decision, compilation, run.values_on_stack(compilation))
            where = f", {how_made(decision.location)}" if decision.location and is_made_by_inductor(decision) else ""
            torchs = f" (torch: {code(decision.symbol)})" if text != decision.symbol else ""
            text = f"condition {code(text)}{'' if where else _at(run, decision)}{torchs}{where}"
            versions.setdefault(text, []).append(code(str(compilation.compile_id)))
    return [f"{text}, in {some(list(dict.fromkeys(of)), 3)}" for text, of in versions.items()]


def _open_text(run: SectionContext, decision: SymbolDecision, compilation: Compilation, extent: str) -> tuple[str, str]:
    """Return the size or number that a symbol denotes, and the sentence on it with its range."""
    torchs, where = f"(torch's {code(decision.symbol)})", _at(run, decision)
    if not decision.source:
        return decision.symbol, f"a value unknown while torch compiles {torchs}, {extent}{where}"
    first = f", first seen as {code(decision.value)}" if decision.value else ""
    what = in_words(decision.source, run.stack_names(compilation))
    changed = next((change for change in run.changes(compilation) if change.subject == what
                    and change.now == decision.value and number(change.before) is not None), None)
    why = f"; open because {code(changed.before)} became {code(changed.now)}" if changed else ""
    return what, f"{_subject(run, decision.source, compilation)} {torchs}: {extent}{first}{where}{why}"


def range_of(run: RunIndex, decision: SymbolDecision, compilation: Compilation) -> str:
    """Return the range of a symbol, in words: as the guards leave it, torch's own where they say nothing.

    With the equation with a number that it has to satisfy: ``any value from 2 on with `x.shape[2] // 4 == 6` ``.
    """
    known = [run.range_of(compilation, source) for source in sources_of(decision.source)]
    left = next((each for each in known if each != Interval()), None) or Interval.read(decision.range)
    extent = left.in_sentence() if left is not None else f"in {code(decision.range)}" if decision.range else ""
    version = run.version(compilation)
    equated = version.equations if version is not None else {}
    found = next((equated[of] for of in sources_in_words(decision.source, {}) if of in equated), None)
    equation = f" with {code(in_words(found.text, run.stack_names(compilation)))}" if found is not None else ""
    return f"any value {extent}".rstrip() + equation


def is_of_program(decision: SymbolDecision, compilation: Compilation) -> bool:
    """Return whether a decision is on a size or number that is not of a tensor of torch's own, or of a backend's."""
    named = symbols_in(decision.symbol)
    own = {each.symbol for each in compilation.symbols if each.kind == "created" and is_of_torchs_own(each.source)}
    return not named or not own.issuperset(named)


def is_used(run: RunIndex, decision: SymbolDecision, compilation: Compilation) -> bool:
    """Return whether anything that a reader sees has the symbol: a guard, a graph, another decision."""
    if decision.kind == "created" and is_of_torchs_own(decision.source):
        return False
    version = run.version(compilation)
    if version is None or decision.kind not in ("created", "unbacked"):
        return True
    if any(each.kind not in ("created", "unbacked") and decision.symbol in symbols_in(each.symbol)
           for each in compilation.symbols):
        return True
    names, expressions = run.stack_names(compilation), sources_in_words(decision.source, {})
    if any(change.subject == in_words(source, names)
           for change in run.changes(compilation) for source in sources_of(decision.source)):
        return True
    return any(each in version.sizes.names or any(each in one.text for one in version.conditions)
               for each in expressions) or any(
                   decision.symbol in run.symbols_in(name) for name in version.entry.graph_names)
