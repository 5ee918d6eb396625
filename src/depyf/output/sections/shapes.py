"""Dynamic shapes: what torch keeps open, what was fixed, and why."""

from __future__ import annotations

import re

from ...capture.records import Compilation
from ..markdown import code, count, link
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
                where = f", {story.place(found.location)}" if found.location else ""
                if found.kind in ("created", "unbacked"):
                    source = code(found.source, 100) if found.source else "a value that only the data tells"
                    first = f", first seen as {code(found.value, 30)}" if found.value else ""
                    text = f"{code(found.symbol)} stands for {source}, any value in {code(found.range)}{first}" \
                           f"{where}{_generalised(found.source, found.value, compilation)}"
                    created.setdefault(source, []).append((text, compilation))
                elif found.kind == "fixed":
                    source = f" ({code(found.source, 100)})" if found.source else ""
                    text = f"**fixed**: {code(found.symbol)}{source} is {code(found.value, 30)} only, because of " \
                           f"{code(found.reason, 60) if found.reason else 'a condition'}{where}"
                    fixed[text] = fixed.get(text, 0) + 1
                else:
                    text = f"condition {code(found.symbol, 100)}{where}"
                    fixed[text] = fixed.get(text, 0) + 1
        if not created and not fixed:
            continue
        lines += ["", f"{link(code(unit.title), unit.file)}, {story.place(unit.location)}:", ""]
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


_SIZE = re.compile(r"L\['(?P<name>[^']*)'\]\.(?:size|stride)\(\)\[(?P<index>\d+)\]$")


def _generalised(source: str, value: str, compilation: Compilation) -> str:
    """Why it is open: a size that changed between two calls."""
    size = _SIZE.match(source)
    for found in compilation.guard_failures:
        names = {source} if not size else {size["name"], f"L['{size['name']}']"}
        if found.source in names and found.seen == value and (
                not size or f"index {size['index']}" in found.text):
            return f"; open because {code(found.expected, 30)} became {code(found.seen, 30)}"
    return ""
