"""Dynamic shapes: what torch keeps open, what was fixed, and why."""

from __future__ import annotations

import ast
import re

from ...capture.records import Compilation, SymbolDecision
from ..changes import in_words
from ..markdown import code, count, link, prose
from .told import Told

#: How many symbols of a function are told one by one.
SYMBOLS = 10


def shapes(story: Told) -> list[str]:
    lines: list[str] = []
    for unit in story.units:
        created: dict[str, list[tuple[str, Compilation]]] = {}
        fixed: dict[str, int] = {}
        for compilation in unit.compilations:
            for found in compilation.symbols:
                if found.kind in ("created", "unbacked"):
                    what, text = _open(story, found, compilation)
                    created.setdefault(what, []).append((text, compilation))
                else:
                    text = _fixed(story, found, compilation) if found.kind == "fixed" else \
                        _condition(story, found, compilation)
                    fixed[text] = fixed.get(text, 0) + 1
        if not created and not fixed:
            continue
        lines += ["", f"{link(story.unit_name(unit), unit.file)}, {story.place(unit.location)}:", ""]
        for texts in list(created.values())[:SYMBOLS]:
            text, compilation = texts[0]
            more = f" (and in {count(len(texts) - 1, 'other version')})" if len(texts) > 1 else ""
            lines.append(f"* {code(str(compilation.compile_id))} {text}{more}")
        if len(created) > SYMBOLS:
            lines.append(f"* ... and {count(len(created) - SYMBOLS, 'symbol')} more")
        # What was fixed matters most: it makes for recompiles.
        decided = sorted(fixed, key=lambda text: not text.startswith("**"))
        for text in decided[:SYMBOLS]:
            lines.append(f"* {text}" + (f", {fixed[text]} times" if fixed[text] > 1 else ""))
        if len(fixed) > SYMBOLS:
            lines.append(f"* ... and {count(len(fixed) - SYMBOLS, 'condition')} more")
    if not lines:
        return []
    return ["## Dynamic shapes", "", "Sizes and numbers that torch keeps open, so that one version fits many of them; "
            "what was fixed, and the conditions that became guards.", *lines]


def _open(story: Told, found: SymbolDecision, compilation: Compilation) -> tuple[str, str]:
    """What a symbol stands for, and the sentence on it."""
    first = f", first seen as {code(found.value)}" if found.value else ""
    where = f", {story.place(found.location)}" if found.location else ""
    if not found.source:
        return found.symbol, (f"a value that only the data tells (torch's {code(found.symbol)}), "
                              f"{values(found.range)}{where}")
    what = in_words(found.source, story.stack_names(compilation))
    text = f"{code(what)} (torch's {code(found.symbol)}): {values(found.range)}{first}{where}"
    return what, text + _generalised(story, what, found.value, compilation)


def _fixed(story: Told, found: SymbolDecision, compilation: Compilation) -> str:
    names = story.stack_names(compilation)
    sources = ", ".join(code(in_words(source, names)) for source in found.source.split(", ")) if found.source else ""
    what = f"{sources} (torch's {code(found.symbol)})" if sources else code(found.symbol)
    reason = f", because of {prose(found.reason)}" if found.reason else ""
    return f"**fixed**: {what} is {code(found.value)} only{reason}" + (
        f", {story.place(found.location)}" if found.location else "")


def _condition(story: Told, found: SymbolDecision, compilation: Compilation) -> str:
    """A condition on symbols, in the words of what they stand for."""
    names = story.stack_names(compilation)
    known = {each.symbol: in_words(each.source, names) for each in compilation.symbols if each.source}
    text = re.sub(r"\b[a-z]+\d+\b", lambda symbol: known.get(symbol[0], symbol[0]), _compared(found.symbol))
    where = f", {story.place(found.location)}" if found.location else ""
    return f"condition {code(text)}{where}" + (f" (torch: {code(found.symbol)})" if text != found.symbol else "")


#: Sympy's names of comparisons.
_COMPARISONS = {"Ne": ast.NotEq, "Eq": ast.Eq}


def _compared(condition: str) -> str:
    """``s2 != 2`` for sympy's ``Ne(s2, 2)``."""
    try:
        node = ast.parse(condition, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return condition
    match node:
        case ast.Call(ast.Name(name), [left, right], []) if name in _COMPARISONS:
            return ast.unparse(ast.Compare(left, [_COMPARISONS[name]()], [right]))
    return condition


def values(interval: str) -> str:
    """``any value from 2 on (torch's `[2, int_oo]`)``: a range of torch's in words."""
    found = re.fullmatch(r"(?:VR)?\[(?P<low>[^,]+), (?P<high>[^\]]+)\]", interval)
    if found is None:
        return f"any value in {code(interval)}" if interval else "any value"
    low, high = (None if bound.strip("- ") in ("int_oo", "oo") else bound.strip() for bound in found.groups())
    if low is None and high is None:
        return "any value"
    if low is None:
        return f"any value up to {high}"
    return f"any value from {low} on" if high is None else f"any value from {low} to {high}"


def _generalised(story: Told, what: str, value: str, compilation: Compilation) -> str:
    """Why it is open: it changed between two calls."""
    for change in story.changes(compilation):
        if change.subject == what and change.now == value and change.was[0]:
            return f"; open because {code(change.was[0])} became {code(change.now)}"
    return ""
