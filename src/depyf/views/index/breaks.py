"""Graph breaks: why, where, and where it continues. Functions that were not compiled."""

from __future__ import annotations

import ast
from collections.abc import Sized
from dataclasses import replace

from ...advice.branches import unparsed
from ...model.folding import fold
from ...model.graph_text import read_graph
from ...records.model import Compilation, GraphBreak, SourceLocation
from ...torch_text.events import graph_break
from ...torch_text.global_names import plain_name, resumed_function
from ...torch_text.libraries import is_library
from ...torch_text.met import in_order, is_computation, met
from .. import causes
from ..causes import breaks_by_place, call_of, cause, heading, in_plain_python, path_from_frame, path_to, statement
from ..formatting import NO_TENSORS, on_branch
from ..function_summary import FunctionSummary
from ..markdown import code, count, each_once, fenced, link, prose, some, web_address
from ..verdict import break_given_up_at, compiled_below, compiled_in, since_then, why_given_up, why_plain, wrapper_of
from .overview import ROWS, SectionContext, left_out
from .recompiles import event

PLACES = 12  #: How many places of a reason are listed one by one.
#: More calls on the way to a break are shown by their ends.
STEPS = 6
NO_PLACE = "a place that torch does not name"


def breaks(run: SectionContext) -> list[str]:
    """Return the section on graph breaks: by reason, each place with what to do."""
    pairs = [(broken, c) for c in run.capture.compilations for broken in c.breaks]
    if not pairs:
        return []
    lines = ["## Graph breaks", "",
             "At a graph break the graph ends, Python runs what torch could not trace, and a new graph begins after "
             "it in a resume function `__resume_at_...`. Each compilation that comes to a break counts it once."]
    in_wrappers = fold(pairs, lambda pair: wrapper_of(pair[1], pair[0]))
    own = {id(broken) for broken, _ in in_wrappers.pop("", [])}
    for wrapper, members in in_wrappers.items():  # (torch's own around the user's module: nothing that a user can mend)
        inside = ("the module in it is compiled by itself" if compiled_in(run, wrapper) else
                  "compile the module before it is wrapped")
        lines += ["", f"### In {wrapper}, {count(len(members), 'graph break')}", "",
                  f"Torch does not trace the code of {code(wrapper)}, and nothing in your program has to be changed "
                  f"for it: {inside}.", ""]
        lines += each_once(
            f"* {run.place(broken.location) or NO_PLACE}: {code(statement(_text(broken)))}, {prose(cause(broken))}"
            for broken, _ in members)
    for group in causes.breaks_by_reason(run.capture.compilations):
        group = [(broken, compilation) for broken, compilation in group if id(broken) in own]
        if group:
            lines += _reason(run, group)
    return lines


def _reason(run: SectionContext, group: list[tuple[GraphBreak, Compilation]]) -> list[str]:
    first = group[0][0]
    page = web_address(first.url)
    ids = f"[{prose(first.registry_id)}]({page})" if page else prose(first.registry_id)
    title = prose(heading(first)) or "Torch gives no reason"
    lines = ["", f"### {title}" + (f" ({ids})" if ids else "") + _times(group), ""]
    by_line = _by_line(run, breaks_by_place(group))
    for (line, *remarks), places in list(by_line.items())[:PLACES]:
        # (The function that the line is in comes first.)
        lines += _line_of_break(run, line, remarks, sorted(places, key=lambda members: len(path_to(*members[0]))))
    if len(by_line) > PLACES:
        lines.append(f"* ... and {count(len(by_line) - PLACES, 'more place')} (`records.jsonl` has all)")
    lines += _torchs_words(group)
    hints = run.advice.torchs_hints(broken for broken, _ in group)
    if hints:
        lines += ["", "Torch's advice:", ""]
        lines += [f"* {prose(hint)}" for hint in hints]
    return lines


def _torchs_words(group: list[tuple[GraphBreak, Compilation]]) -> list[str]:
    """Torch's explanations, each once: of a long computation of what is tested the end, next to the test.

    Of the computations of one line, which differ in names and sizes, the first is shown.
    """
    lines: list[str] = []
    explained: dict[tuple[str, object], dict[str, None]] = {}
    for broken, _ in group:
        head, _, rest = (broken.explanation or (
            broken.reason if heading(broken) != broken.reason.rstrip(".") else "")).partition("\n")
        if head:
            explained.setdefault((head, broken.location if is_computation(rest) else rest), {})[rest] = None
    for (head, _), blocks in explained.items():
        first = next(iter(blocks))
        block = first.splitlines()
        if len(block) > _EXPLAINED and is_computation(first):
            block = [block[0], f"... ({len(block) - _EXPLAINED} lines more: records.jsonl)", *block[1 - _EXPLAINED:]]
        lines += ["", f"{'Torch explains' if not lines else 'And'}: {prose(head)}"]
        if block:
            lines += ["", *fenced("\n".join(block))]
        if len(blocks) > 1:
            lines += ["", f"Of the same line: {count(len(blocks) - 1, 'computation')} more (`records.jsonl` has all)."]
    return lines


def _by_line(
    run: SectionContext, by_place: list[list[tuple[GraphBreak, Compilation]]],
) -> dict[tuple[str, ...], list[list[tuple[GraphBreak, Compilation]]]]:
    """Group the places of a reason by what there is to say of their lines: the line, remarks on it."""
    groups: dict[tuple[str, ...], list[list[tuple[GraphBreak, Compilation]]]] = {}
    for members in by_place:
        broken, compilation = members[0]
        where, why = broken.location, cause(broken)
        text = statement(_text(broken))
        inside = f" in {code(_function(run, where))}" if where and where.function else ""
        line = f"{run.place(where) or NO_PLACE}{inside}{': ' + code(text) if text else ''}"
        remarks = [f"why: {prose(why)}"] if why not in (heading(broken), broken.reason.rstrip(".")) else []
        groups.setdefault((line, *remarks, *run.advice.lines_on(broken)), []).append(members)
    return groups


def _line_of_break(
    run: SectionContext, line: str, remarks: list[str], places: list[list[tuple[GraphBreak, Compilation]]],
) -> list[str]:
    lines = [f"* {line}{_times([each for members in places for each in members])}",
             *(f"  * {remark}" for remark in remarks)]
    for members in places:
        called_from, effects, of = _effects(run, members)
        if len(places) == 1:
            lines += [f"  * {text}" for text in (*([called_from] if called_from else []), *effects, of)]
        else:
            lines.append(f"  * {of}" + (f", {called_from}" if called_from else ""))
            lines += [f"    * {effect}" for effect in effects]
    return lines


def _effects(run: SectionContext, members: list[tuple[GraphBreak, Compilation]]) -> tuple[str, list[str], str]:
    """Return by which calls a break was come to, what runs and where it continues, and which compilations have it."""
    broken, compilation = members[0]
    summary = run.summary_of[compilation.compile_id.key]
    called_from = ""
    path = path_to(broken, compilation)
    if len(path) > 1:
        steps = [f"{run.place(step)} {code(_function(run, step))}" for step in path[:-1]
                 if not is_library(step.filename) or len(path) < 4]
        if len(steps) > STEPS:
            steps = [*steps[: STEPS // 2], f"{count(len(steps) - STEPS, 'more call')}", *steps[-STEPS // 2 :]]
        if steps:
            called_from = "called from " + " > ".join(steps)
    in_python: dict[str, list[str]] = {}  # (Functions that resume in a line break at what is left of it.)
    for each, of in members:
        in_python.setdefault(_in_plain_python(run, each, of), []).append(code(str(of.compile_id)))
    effects = [f"in plain Python: {text}" + (f" (in {some(ids, 4)})" if len(in_python) > 1 else "")
               for text, ids in in_python.items()]
    end = _end_of_graph(run, broken, compilation) if compilation.outcome == "compiled" else None
    if end is not None and len(path_from_frame(broken, compilation)) < 2 and not broken.skips_function:
        effects.append(_in_python_from(run, summary, end if run.source.are_in_one_function(
            end, broken.location or end) else None))
    resumes = dict.fromkeys(name for _, c in members if c.outcome == "compiled" for name in run.resume_names(c))
    if resumes:
        if all(run.fate_of(name) == "plain" for name in resumes):
            effects.append(_in_python_from(run, summary, None))
        effects.append("continues in " + some([_resume(run, name) for name in resumes], 4))
    ids = list(dict.fromkeys(code(str(c.compile_id)) for _, c in members))
    return called_from, effects, f"in {some(ids, 4)} of " + link(run.name_in_text(summary), summary.file)


def _in_python_from(run: SectionContext, summary: FunctionSummary, end: SourceLocation | None) -> str:
    """Return that a function runs in plain Python from ``end`` on, or from a break on."""
    below = compiled_below(run, summary)
    return (f"all of {code(summary.title)} that comes after {run.place(end)} runs in plain Python" if end is not None
            else f"what comes after it in {code(summary.title)} runs in plain Python, too") + (
        f"; of what it calls, this is compiled by itself: {below}" if below else "")


def _text(broken: GraphBreak) -> str:
    return broken.location.text if broken.location else ""


def _times(members: Sized) -> str:
    return f", {len(members)} times" if len(members) > 1 else ""


def _function(run: SectionContext, place: SourceLocation) -> str:
    return run.source.name_at(place, plain_name(place.function))


def _in_plain_python(run: SectionContext, broken: GraphBreak, compilation: Compilation) -> str:
    if broken.skips_function:
        compiled = compiled_below(run, run.summary_of[compilation.compile_id.key], compilation)
        return f"all of {run.name_of(compilation)}" + (
            f"; what it calls is compiled by itself: {compiled}" if compiled else "")
    if compilation.outcome != "compiled":
        return "see [Not compiled](#not-compiled): torch gave the compilation up"
    path = path_from_frame(broken, compilation)
    if len(path) > 1 and not _is_resumed(run, path[-1], compilation):
        inner = next((step for step in path[1:] if not is_library(step.filename)), path[1])
        known = call_of(path[0].text, plain_name(path[1].function))
        text = f"{code(known) if known else 'the call'} in {run.place(path[0])}"
        compiled_there = [
            each for each in run.capture.compilations if each.outcome == "compiled" and each.location is not None
            and not resumed_function(each.function) and run.source.are_in_one_function(inner, each.location)]
        if compiled_there:
            text += f"; {code(_function(run, inner))}, called there, is compiled by itself"
            if not any(run.graph_names(c) for each in compiled_there
                       for c in run.summary_of[each.compile_id.key].done):
                text += ", without a graph"
        return text
    resumes = run.resume_names(compilation)
    tested = {frame.branch.condition for name in resumes
              if (frame := run.frames.get(name)) is not None and frame.branch is not None}
    # (Two go on after a choice, by the part of a test that broke; one may begin within a branch chosen before.)
    if len(tested) == 1 and len(resumes) == 2 and met(broken).kind in _IN_BRANCH:
        return f"the choice by {code(tested.pop())}"
    site = run.source.site(broken)
    node, whole = site.statement, ""
    if site.where == broken.location and isinstance(node, (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)) \
            and node.lineno < (node.end_lineno or node.lineno):
        whole = unparsed(node, site.text)
    is_split = _end_of_graph(run, broken, compilation) is None
    return in_plain_python(broken, whole, is_split=is_split) or "the operation of this line that torch could not trace"


_EXPLAINED = 13  #: Lines of an explanation that are shown.
#: Kinds of breaks that a branch itself makes.
_IN_BRANCH = ("branch", "branch on a symbol", "assertion", "data", "item")


def _end_of_graph(run: SectionContext, broken: GraphBreak, compilation: Compilation) -> SourceLocation | None:
    """Return the line that a graph ends at, before that of the break (as in a `try`), where nothing is resumed."""
    captured = [graph.captured for graph in run.with_pieces(run.graph_names(compilation)) if graph.captured is not None]
    lines = [node.location for stage in captured for node in read_graph(stage.text).nodes if node.location is not None]
    where = broken.location
    if not lines or run.resume_names(compilation) or where is None or any(
            # (Torch cuts what a path has in common with its own.)
            each.line == where.line and where.filename.endswith(each.filename) for each in lines):
        return None
    return lines[-1]


def _is_resumed(run: SectionContext, place: SourceLocation, compilation: Compilation) -> bool:
    """Return whether the function at a place, where a break is, continues after it."""
    # (Functions of several classes can have one name, as those of other files.)
    frames = [frame for name in run.resume_names(compilation) if (frame := run.frames.get(name)) is not None]
    return any(plain_name(frame.code_name) == plain_name(place.function) if frame.location is None else
               run.source.are_in_one_function(place, replace(frame.location, function=frame.code_name))
               for frame in frames)


def _resume(run: SectionContext, name: str) -> str:
    frame = run.frames.get(name)
    fate = run.fate_of(name)
    status = {"compiled": "", "unreached": "not reached in this run", "plain": "runs in plain Python",
              "failed": "[was not compiled](#not-compiled)", "unknown": "not compiled",
              }[fate if frame is not None else "unknown"]
    if frame is not None and frame.without_tensors:
        status += f": {NO_TENSORS}"
    remarks = [on_branch(frame.branch).removeprefix(", ") if frame else "", status]
    entries = sorted(frame.entries, key=lambda entry: entry.compile_id.key) if frame else []
    if entries and all(entry.compile_id.key in run.capture.lost for entry in entries):
        remarks.append("[was not compiled](#not-compiled)")
    file = next((entry.transformed.file for entry in entries if entry.transformed.file), "")
    remark = "; ".join(filter(None, remarks))
    return link(code(name), file) + (f" ({remark})" if remark else "")


# --- Not compiled ------------------------------------------------------------------------------------
def not_compiled(run: SectionContext) -> list[str]:
    """Return the section on what runs in plain Python, and why."""
    groups = causes.not_compiled(run.capture.compilations)
    left_alone = [frame for frame in run.frames.values() if frame.without_tensors]
    if not groups and not left_alone:
        return []
    lines = ["## Not compiled", "", "These run in plain Python, as if there were no `torch.compile`. Where an "
             "exception is named, the call raised it, unless `torch._dynamo.config.suppress_errors` was set.", ""]
    for members in groups[:ROWS]:
        lines += _not_compiled(run, members)
    lines += left_out(len(groups) - ROWS, "reason")
    for frame in left_alone[:ROWS]:  # (resume functions that torch left alone: there is no compilation of them)
        resumed = resumed_function(frame.code_name)
        rest = f" from line {resumed[1]} on{on_branch(frame.branch)}" if resumed else ""
        lines += [f"* {run.place(frame.location) or 'place unknown'}: **{code(frame.title or frame.name)}{rest} runs "
                  f"in plain Python: {NO_TENSORS}.**",
                  "  * how to have it compiled, where it computes with tensors and changes no object from call to "
                  "call: give it a tensor that it uses, as an argument of the function or in a variable that is set "
                  "before the graph break and read after it"]
    return lines + left_out(len(left_alone) - ROWS, "function")


def _not_compiled(run: SectionContext, members: list[Compilation]) -> list[str]:
    first = members[0]
    place = first.place
    head = f"* {run.place(place) or 'place unknown'}, {code(str(first.compile_id))}{_times(members)}: "
    if first.outcome == "unknown":
        return [f"{head}the end of the compilation of {run.name_of(first)} was not seen (the run ended before, or an "
                "exception of the program came first)"]
    lines = [f"{head}**{why_plain(run, first)}.**{since_then(run, first)}"]
    failure = first.failure
    account = graph_break(first.compile_id, failure.reason) if failure else None
    broken = break_given_up_at(first)
    if broken is not None:
        lines.append(f"  * why it breaks: {prose(cause(broken))}; [Graph breaks](#graph-breaks) has torch's words")
        lines += [f"  * advice: {text}" for text in run.advice.on_lost(first)]
        if broken.gave_up:
            lines.append(f"  * why torch gives the function up: {why_given_up(broken)}.")
        return lines
    if first.outcome == "limit":
        for compilation in members[:3]:
            lines += ["  " + line for line in event(run, compilation, set())]
    lines += [f"  * advice: {text}" for text in run.advice.on_lost(first)]
    if account is not None:
        explanation, _, rest = account.explanation.partition("\n")
        if explanation:
            lines.append(f"  * torch explains: {prose(explanation)}")
            lines += [f"    {line}" for line in fenced(rest)] if rest else []
        lines += [f"  * torch's advice: {prose(hint)}" for hint in in_order(account.hints)]
    return lines
