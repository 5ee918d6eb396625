"""Graph breaks: why, where, and where it goes on."""

from __future__ import annotations

from ...capture.records import Compilation, GraphBreak
from ...capture.resumes import plain_name
from ..markdown import code, link, prose, some
from ..story import breaks_by_place, breaks_by_reason, path_to
from .told import Told

#: How many places of a reason are told one by one.
PLACES = 12


def breaks(story: Told) -> list[str]:
    if not any(compilation.breaks for compilation in story.capture.compilations):
        return []
    lines = ["## Graph breaks", "",
             "At a graph break the graph ends, Python runs what torch could not trace, and a new graph begins behind "
             "it in a resume function `__resume_at_...`."]
    for group in breaks_by_reason(story.capture.compilations):
        lines += _reason(story, group)
    return lines


def _reason(story: Told, group: list[tuple[GraphBreak, Compilation]]) -> list[str]:
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


def _place_of_break(story: Told, members: list[tuple[GraphBreak, Compilation]]) -> list[str]:
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


def _in_plain_python(story: Told, found: GraphBreak, compilation: Compilation) -> str:
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


def _resume(story: Told, name: str) -> str:
    frame = story.frames.get(name)
    if frame is None or not frame.entries:
        return f"{code(name)} (in plain Python: never compiled)"
    entries = sorted(frame.entries, key=lambda entry: entry.compile_id.key)
    file = next((entry.transformed.file for entry in entries if entry.transformed.file), "")
    return link(code(name), file)
