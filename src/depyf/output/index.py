"""``index.md``: the story of a run, in order, with links into its files.

A pure function of a :class:`~depyf.capture.records.Capture`, so that it can be made again from ``records.jsonl``. What
repeats is told once with a count: the same break at the same line, the same reason for a recompile.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..capture.events import graph_break
from ..capture.records import Capture, Compilation, GraphBreak, GuardFailure, SourceLocation
from ..capture.resumes import plain_name, resumed_function
from .markdown import code, count, link, one_line, prose, some, table
from .story import (
    Story,
    Unit,
    breaks_by_place,
    breaks_by_reason,
    failures_by_kind,
    kind_of_failure,
    not_compiled,
    path_to,
    recompiles_by_reason,
)
from .totals import OUTCOMES, Totals

FILE = "index.md"
#: How many of a kind are told one by one.
ROWS, GROUPS, VALUES, PLACES, SYMBOLS, NOTES = 40, 8, 4, 12, 10, 6
#: Beginnings of notes of what is so in every run.
ORDINARY = ("torch's compile caches: ", "torch's compile caches were ")


def index(capture: Capture, notes_file: str = "", page: str = "") -> str:
    """The text of ``index.md``.

    Args:
        capture: the run. Files that its records name are linked; they stand beside the index.
        notes_file: where all notes stand, if there is such a file.
        page: the file of the page, if there is one.
    """
    story = _Story(capture)
    return _joined([
        [*_head(story), *_start(story, page)], _functions(story), _timeline(story), _breaks(story), _recompiles(story),
        _left_alone(story), _shapes(story), _cost(story), _notes(story, capture.notes, notes_file)])


def brief(capture: Capture) -> str:
    """The same for a terminal: without the table of all compilations and the links, and without notes of what is so in
    every run."""
    story = _Story(capture)
    notes = [note for note in capture.notes if not note.startswith(ORDINARY)]
    return _joined([
        _head(story), _functions(story), _breaks(story), _recompiles(story), _left_alone(story), _shapes(story),
        _cost(story), _notes(story, notes, "")])


def _joined(parts: Iterable[Sequence[str]]) -> str:
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


class _Story(Story):
    """The facts, with the words for them."""

    def __init__(self, capture: Capture) -> None:
        super().__init__(capture)
        self.named: dict[str, None] = {}  # files that the text names, in order

    def place(self, location: SourceLocation | None) -> str:
        """``model.py:12``; the list of files tells where that is."""
        if location is None:
            return ""
        self.named[location.filename] = None
        return code(f"{self.short.get(location.filename, location.filename)}:{location.line}")

    def subject(self, compilation: Compilation) -> str:
        """Which function; of a resume function the name that the files have, and where it goes on."""
        found = self.entries.get(compilation.compile_id.key)
        resume = resumed_function(compilation.function)
        unit = self.unit_of.get(compilation.compile_id.key)
        if resume:
            where = f"{code(unit.title if unit else resume[0])} from line {resume[1]} on"
            return f"{code(found[0].name)} ({where})" if found and found[0].name != compilation.function else where
        return code(unit.title if unit else compilation.function or "a function that torch does not name")


def seconds(value: float) -> str:
    return f"{value:.2f} s"


# --- the head -------------------------------------------------------------------------------------
def _head(story: _Story) -> list[str]:
    capture = story.capture
    totals = Totals.of(story)
    versions = {"python": "Python", "torch": "torch"}
    where = [f"{versions[key]} {capture.environment[key]}" for key in ("torch", "python")
             if capture.environment.get(key)]
    if "world_size" in capture.environment:
        where.append(f"rank {capture.environment.get('rank', '?')} of {capture.environment['world_size']}")
    if not capture.compilations and not _compiled(story):
        summary = "Nothing was compiled: no function under `torch.compile` was called while depyf watched."
    else:
        summary = (f"{count(totals.functions, 'function')} compiled, {count(totals.versions, 'version')} in all, "
                   f"{count(totals.graphs, 'graph')}, {seconds(totals.seconds)}.")
    lines = ["# What torch.compile did", "", f"{summary} ({prose(', '.join(where))})" if where else summary]
    problems = []
    if totals.breaks:
        problems.append(f"[{count(totals.breaks, 'graph break')}](#graph-breaks) at {count(totals.places, 'place')}")
    if totals.recompiles:
        problems.append(f"[{count(totals.recompiles, 'recompile')}](#recompiles)")
    for outcome in ("limit", "failed", "skipped", "unknown"):
        if totals.outcomes.get(outcome):
            problems.append(f"[{totals.outcomes[outcome]} {OUTCOMES[outcome]}](#not-compiled)")
    if problems:
        lines += ["", "**" + "**, **".join(problems) + "**."]
    elif capture.compilations:
        lines += ["", "No graph breaks, no recompiles, nothing skipped."]
    return lines


def _compiled(story: Story) -> list[Unit]:
    return [unit for unit in story.units if unit.function and (not unit.compilations or unit.done)]


def _start(story: _Story, page: str) -> list[str]:
    first = next((unit for unit in _compiled(story) if unit.file), None)
    lines: list[str] = []
    if first is not None:
        lines += ["", f"Start with {link(code(first.file), first.file)}: the function, its guards, its graphs and the "
                      "code that torch made of it, from top to bottom."]
    if page:
        lines += ["", f"The same to look at, in a browser: {link(code(page), page)}."]
    return lines


# --- what was compiled ----------------------------------------------------------------------------
def _functions(story: _Story) -> list[str]:
    units = [unit for unit in story.units if unit.function]
    if len(units) < 2 and all(len(unit.compilations) < 2 for unit in units):
        return []
    rows = []
    for unit in units[:ROWS]:
        graphs = {name for c in unit.done for name in story.graph_names(c)}
        rows.append((
            link(code(unit.title), unit.file), story.place(unit.location),
            str(len(unit.done)) if unit.compilations else "?", str(len(graphs)),
            str(sum(len(c.breaks) for c in unit.compilations)), str(len(unit.recompiles)),
            seconds(sum(c.seconds for c in unit.compilations))))
    lines = ["## Functions", "", *table(
        ("function", "where", "versions", "graphs", "breaks", "recompiles", "time"), rows)]
    return lines + _left_out(len(units) - ROWS, "function")


def _left_out(number: int, what: str) -> list[str]:
    return ["", f"... and {count(number, what)} more (`records.jsonl` has all)."] if number > 0 else []


def _timeline(story: _Story) -> list[str]:
    """Each compilation with its files; the middle of a long series of one frame is left out."""
    compilations = story.capture.compilations
    if not compilations:
        return []
    of_frame: dict[tuple[int, int], list[Compilation]] = {}
    for compilation in compilations:
        of_frame.setdefault(compilation.compile_id.frame_key, []).append(compilation)
    rows, shown = [], 0
    places: dict[tuple[int, int], int] = {}  # of the next one in the series of its frame
    for compilation in compilations:
        frame = compilation.compile_id.frame_key
        series, at = of_frame[frame], places.get(frame, 0)
        places[frame] = at + 1
        if len(series) > 6 and 3 <= at < len(series) - 1:
            if at == 3:
                rest = series[3:-1]
                rows.append((f"{code(str(rest[0].compile_id))} to {code(str(rest[-1].compile_id))}",
                             story.subject(compilation), f"compiled {len(rest)} more times", "", "",
                             seconds(sum(c.seconds for c in rest))))
            continue
        shown += 1
        if shown > ROWS:
            continue
        rows.append((code(str(compilation.compile_id)), story.subject(compilation), _came_of_it(compilation),
                     _graph_links(story, compilation), _code_link(story, compilation), seconds(compilation.seconds)))
    lines = ["## In order", "", *table(("compilation", "of", "what came of it", "graph", "code", "time"), rows[:ROWS])]
    return lines + _left_out(len(rows) + max(0, shown - ROWS) - ROWS, "compilation")


def _came_of_it(compilation: Compilation) -> str:
    if compilation.outcome == "limit":
        return "recompile limit: plain Python"
    if compilation.outcome != "compiled":
        return {"skipped": "skipped: plain Python", "unknown": "not finished"}.get(
            compilation.outcome, compilation.outcome)
    words = ["recompiled" if compilation.guard_failures or compilation.compile_id.recompile else "compiled"]
    if compilation.breaks:
        words.append(f"up to a graph break: {prose(compilation.breaks[-1].reason, 60)}")
    return " ".join(words)


_STAGES = {"Captured_Graph": "captured", "Joint_graph": "joint", "Forward_graph": "forward",
           "Backward_graph": "backward", "AFTER_POST_GRAD": "post-grad"}


def _graph_links(story: _Story, compilation: Compilation) -> str:
    """The graph, its outline and its other stages, each of which has a file."""
    found = []
    for name in story.graph_names(compilation):
        graph = story.graphs.get(name)
        if graph is None:
            continue
        for stage in graph.stages:
            if stage.internal or not stage.file:
                continue
            number = f" {stage.index + 1}" if stage.index else ""
            outline = f" ({link('outline', stage.outline)})" if stage.outline else ""
            found.append(link(_STAGES.get(stage.stage, code(stage.stage)) + number, stage.file) + outline)
        for kernel in graph.kernels:
            if kernel.file:
                outline = f" ({link('outline', kernel.outline)})" if kernel.outline else ""
                found.append(link(f"kernel {kernel.index}", kernel.file) + outline)
    return some(found, 12) if found else ("none" if compilation.outcome == "compiled" else "")


def _code_link(story: _Story, compilation: Compilation) -> str:
    found = story.entries.get(compilation.compile_id.key)
    if found is None:
        return ""
    transformed = found[1].transformed
    if not transformed.known:
        return "not in the log"
    doubt = "" if transformed.source.fidelity in ("exact", "equivalent") else f" ({transformed.source.fidelity})"
    return link("transformed", transformed.file) + doubt


# --- graph breaks ---------------------------------------------------------------------------------
def _breaks(story: _Story) -> list[str]:
    if not any(compilation.breaks for compilation in story.capture.compilations):
        return []
    lines = ["## Graph breaks", "",
             "At a graph break the graph ends, Python runs what torch could not trace, and a new graph begins behind "
             "it in a resume function `__resume_at_...`."]
    for group in breaks_by_reason(story.capture.compilations):
        lines += _reason(story, group)
    return lines


def _reason(story: _Story, group: list[tuple[GraphBreak, Compilation]]) -> list[str]:
    first = group[0][0]
    ids = f"[{first.registry_id}]({first.url})" if first.url else first.registry_id
    title = prose(first.reason, 100) or "Torch gives no reason"
    lines = ["", f"### {title}" + (f" ({ids})" if ids else "") + (f", {len(group)} times" if len(group) > 1 else "")]
    explanation = first.explanation.partition("\n")[0]
    if explanation:
        lines += ["", prose(explanation, 300)]
    lines.append("")
    by_place = breaks_by_place(group)
    for members in by_place[:PLACES]:
        lines += _place_of_break(story, members)
    if len(by_place) > PLACES:
        lines.append(f"* ... and {len(by_place) - PLACES} more places (`records.jsonl` has all)")
    if first.hints:
        lines += ["", "Torch's advice:", ""]
        lines += [f"* {prose(hint, 400)}" for hint in first.hints]
    return lines


def _place_of_break(story: _Story, members: list[tuple[GraphBreak, Compilation]]) -> list[str]:
    found, compilation = members[0]
    where = found.location
    unit = story.unit_of[compilation.compile_id.key]
    text = f": {code(where.text, 100)}" if where and where.text else ""
    inside = f" in {code(plain_name(where.function))}" if where and where.function else ""
    times = f", {len(members)} times" if len(members) > 1 else ""
    lines = [f"* {story.place(where) or 'a place that torch does not name'}{inside}{text}{times}"]
    path = path_to(found, compilation)
    if len(path) > 1:
        lines.append("  * reached from " + " > ".join(
            f"{story.place(step)} {code(plain_name(step.function))}" for step in path[:-1]))
    lines.append(f"  * in plain Python: {_in_plain_python(story, found, compilation)}")
    resumes = dict.fromkeys(
        name for _, c in members if c.outcome == "compiled"
        for name in story.resume_names(c))
    if resumes:
        lines.append("  * goes on in " + some([_resume(story, name) for name in resumes], 4))
    elif not found.skips_function and compilation.outcome == "compiled" and story.knows_code(compilation):
        lines.append("  * nothing is left to compile behind it")
    ids = list(dict.fromkeys(code(str(c.compile_id)) for _, c in members))
    lines.append(f"  * in {some(ids, 4)} of " + link(code(unit.title), unit.file))
    return lines


def _span(ids: list[str]) -> str:
    return ", ".join(ids) if len(ids) < 4 else f"{ids[0]} to {ids[-1]}"


def _in_plain_python(story: _Story, found: GraphBreak, compilation: Compilation) -> str:
    if found.skips_function:
        return f"all of {code(plain_name(compilation.function))}; functions that it calls are compiled by themselves"
    if compilation.outcome != "compiled":
        return "see below, the compilation was given up"
    path = path_to(found, compilation)
    resumed = {plain_name(story.frames[name].code_name) for name in story.resume_names(compilation)
               if name in story.frames}
    if len(path) > 1 and plain_name(path[-1].function) not in resumed:
        return (f"the call in {story.place(path[0])}; {code(plain_name(path[1].function))}, called there, "
                "is compiled by itself")
    return "the operation of this line that torch could not trace"


def _resume(story: _Story, name: str) -> str:
    frame = story.frames.get(name)
    if frame is None or not frame.entries:
        return f"{code(name)} (in plain Python: never compiled)"
    entries = sorted(frame.entries, key=lambda entry: entry.compile_id.key)
    file = next((entry.transformed.file for entry in entries if entry.transformed.file), "")
    return link(code(name), file)


# --- recompiles -----------------------------------------------------------------------------------
def _recompiles(story: _Story) -> list[str]:
    lines: list[str] = []
    for unit in story.units:
        recompiled = unit.recompiles
        if not recompiled:
            continue
        groups = recompiles_by_reason(unit)
        lines += ["", f"{link(code(unit.title), unit.file)}, {story.place(unit.location)}: "
                      f"{count(len(recompiled), 'recompile')}", ""]
        for members in groups[:GROUPS]:
            lines += _recompile_group(story, members)
        if len(groups) > GROUPS:
            lines.append(f"* ... for {len(groups) - GROUPS} more reasons (`records.jsonl` has all)")
    if not lines:
        return []
    return ["## Recompiles", "", "A call that fits no version is compiled again. Too many versions, and torch gives up "
            "(`torch._dynamo.config.recompile_limit`).", *lines]


def _recompile_group(story: _Story, members: list[Compilation]) -> list[str]:
    ids = [code(str(c.compile_id)) for c in members]
    shown = _span(ids) + (f", {len(ids)} times" if len(ids) > 3 else "")
    lines = [f"* {shown}, {story.subject(members[0])}:"]
    kinds = failures_by_kind(members)
    for found_all in kinds[:3]:
        lines += [f"  * {line}" for line in failure_lines(story, found_all)]
    if len(kinds) > 3:
        lines.append(f"  * ... and {len(kinds) - 3} other guards of older versions")
    return lines


def failure_lines(story: _Story, failures: Sequence[GuardFailure]) -> list[str]:
    """Failures of one kind of guard: which, expected and seen, against which versions, made by which line."""
    first = failures[0]
    texts = dict.fromkeys(one_line(found.text) for found in failures)
    values = []
    for word, items in (("expected", [f.expected for f in failures]), ("seen", [f.seen for f in failures])):
        different = [code(item, 60) for item in dict.fromkeys(items) if item]
        if different:
            values.append(f"{word} {some(different, VALUES)}")
    if len(texts) == 1 or not values:
        what = some([code(text, 160) for text in texts], 2)
    else:
        what = code(kind_of_failure(first), 160)
    against = dict.fromkeys(code(str(found.entry)) for found in failures if found.entry)
    line = what
    if values and not all(v in one_line(first.text) for v in (first.expected, first.seen) if v) or len(texts) > 1:
        line += "; " + ", ".join(values) if values else ""
    if against:
        line += f" (so {some(list(against), 3)} did not fit)"
    lines = [line]
    causes = dict.fromkeys(
        f"{story.place(f.cause)}: {code(f.cause.text, 100)}" for f in failures if f.cause is not None)
    if causes:
        lines.append(f"guarded because of {some(list(causes), 2)}")
    return lines


# --- what was not compiled ------------------------------------------------------------------------
def _left_alone(story: _Story) -> list[str]:
    groups = not_compiled(story.capture.compilations)
    if not groups:
        return []
    lines = ["## Not compiled", "", "These run in plain Python, as if there were no `torch.compile`, unless an "
             "exception is named.", ""]
    for members in groups[:ROWS]:
        lines += _not_compiled(story, members)
    return lines + _left_out(len(groups) - ROWS, "reason")


def _not_compiled(story: _Story, members: list[Compilation]) -> list[str]:
    first = members[0]
    times = f", {len(members)} times" if len(members) > 1 else ""
    name = f"* **{story.subject(first)}**, {story.place(first.location) or 'place unknown'}, " \
           f"{code(str(first.compile_id))}{times}: "
    failure = first.failure
    account = graph_break(first.compile_id, failure.reason) if failure else None
    reason = prose(account.reason, 200) if account else ""
    if failure and failure.location:
        reason += f" (at {story.place(failure.location)})"
    explanation = prose(account.explanation.partition("\n")[0], 400) if account and account.explanation else ""
    lines = []
    if first.outcome == "limit":
        lines.append(f"{name}**the recompile limit is reached.** Calls that fit no version run in plain Python from "
                     "now on.")
        lines += [f"  * {explanation}"] if explanation else []
        for found_all in failures_by_kind(members)[:3]:
            lines += [f"  * {line}" for line in failure_lines(story, found_all)]
    elif first.outcome == "skipped" and first.breaks:
        lines.append(f"{name}skipped because of a [graph break](#graph-breaks): {prose(first.breaks[-1].reason, 200)} "
                     f"(at {story.place(first.breaks[-1].location)})")
        return lines
    elif first.outcome == "skipped":
        lines.append(f"{name}skipped: " + (reason or "torch found nothing to compile in it (no tensor operation)"))
    elif first.outcome == "failed":
        kind = f"{code(failure.kind)}: " if failure and failure.kind else ""
        lines.append(f"{name}**failed**: {kind}{reason}")
        lines += [f"  * {explanation}"] if explanation else []
    else:
        return [f"{name}its end was not seen (the run ended before, or an exception of the program came first)"]
    if account is not None and account.hints and first.outcome != "skipped":
        lines += [f"  * torch's advice: {prose(hint, 400)}" for hint in account.hints[:4]]
    return lines


# --- dynamic shapes -------------------------------------------------------------------------------
def _shapes(story: _Story) -> list[str]:
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


# --- cost -----------------------------------------------------------------------------------------
def _cost(story: _Story) -> list[str]:
    compilations = story.capture.compilations
    phases: dict[str, float] = {}
    for compilation in compilations:
        for phase in compilation.phases:
            phases[phase.name] = phases.get(phase.name, 0.0) + phase.seconds
    if not phases:
        return []
    total = sum(c.seconds for c in compilations)
    parts = ", ".join(f"{prose(name)} {seconds(phases[name])}" for name in phases)
    lines = ["## Cost", "",
             f"Compile time {seconds(total)} in all. By part (inner parts count in outer ones): {parts}."]
    slowest = sorted(compilations, key=lambda c: -c.seconds)[:3]
    if len(compilations) > 5:
        lines += ["", "Slowest: " + ", ".join(
            f"{code(str(c.compile_id))} {story.subject(c)} {seconds(c.seconds)}" for c in slowest) + "."]
    caches: dict[str, dict[str, int]] = {}
    bypassed: dict[str, int] = {}
    for compilation in compilations:
        for lookup in compilation.caches:
            outcomes = caches.setdefault(lookup.cache, {})
            outcomes[lookup.outcome] = outcomes.get(lookup.outcome, 0) + 1
            if lookup.outcome == "bypass" and lookup.reason:
                bypassed[lookup.reason] = bypassed.get(lookup.reason, 0) + 1
    if caches:
        plural = {"hit": "hits", "miss": "misses", "bypass": "bypasses"}
        lines += ["", "Torch's caches: " + "; ".join(
            f"{code(name)} " + ", ".join(f"{number} {outcome if number == 1 else plural.get(outcome, outcome)}"
                                         for outcome, number in found.items())
            for name, found in caches.items()) + "."]
        lines += [f"Bypassed because: {prose(reason, 200)} ({number})." for reason, number in
                  list(bypassed.items())[:3]]
    return lines


# --- the rest -------------------------------------------------------------------------------------
def _notes(story: _Story, notes: Sequence[str], notes_file: str) -> list[str]:
    lines: list[str] = []
    if notes:
        lines += ["## Notes", "", *(f"* {prose(note, 300)}" for note in notes[:NOTES])]
        if len(notes) > NOTES:
            rest = count(len(notes) - NOTES, "note")
            lines.append(f"* ... and {rest} more in {link(code(notes_file), notes_file)}" if notes_file else
                         f"* ... and {rest} more")
    files = [(story.short[path], path) for path in story.named if story.short.get(path, path) != path]
    if files:
        lines += [""] * bool(lines) + ["Places: " + some(
            [f"{code(short)} is {code(path)}" for short, path in files], 12) + "."]
    return lines
