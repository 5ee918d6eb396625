"""Words and numbers that several views share."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterable, Sequence

from ..records.model import Branch, Capture, Compilation, CompiledGraph, Failure, GraphStage, SourceLocation
from ..records.naming import ADJECTIVES, AOT_CODE, EXPORTED, direction
from ..records.store import FROM_FILE, FROM_LOG, GENERATOR, NOT_ENDED, UNDER_STANCE
from ..torch_text.user_expressions import known_on_stack, stack_values_in
from .markdown import code, count

#: Words for ``Compilation.outcome``, in the order of their weight.
OUTCOMES = {"failed": "failed", "limit": "stopped at the recompile limit", "skipped": "skipped",
            "open": "still being compiled when the block ended", "loaded": "loaded from a package",
            "unknown": "not finished"}
#: The same for a compilation that is shown by itself.
OUTCOME_OF_ONE = OUTCOMES | {"limit": "the recompile limit is reached"}
#: Outcomes of compilations whose graphs are shown although no code calls them.
WITHOUT_CODE = ("failed", "open", "loaded", "unknown")
LOST = ("skipped", "failed", "limit")  #: Outcomes of compilations that gave no version.
NOT_LOST = ("compiled", "open", "loaded")  #: Outcomes of compilations by which no call runs in plain Python.
_LONGEST_ERROR = 160  #: Characters of an error's message in a comment.
#: Why torch leaves a resume function alone without a word, as the end of a sentence. (``has_tensor_in_frame``,
#: torch/_dynamo/convert_frame.py: it compiles where it finds one, or torch among the globals that the code names.)
NO_TENSORS = ("none of the variables that it begins with is or contains a tensor (attributes of objects do not count), "
              "and torch compiles nothing then")


def error_of(compilation: Compilation | None) -> str:
    """Return the error with which a compilation failed, in short; ``""`` where it did not fail."""
    if compilation is None or compilation.outcome != "failed":
        return ""
    failure = compilation.failure
    if failure is None:
        return "an error"
    text = first_line(failure)
    end = next((at for at, pair in enumerate(zip(text, text[1:]), 1) if pair[0] in ".!?" and pair[1].isspace()), None)
    heading = textwrap.shorten(text[:end], _LONGEST_ERROR, placeholder=" ...") if text else ""
    return ": ".join(filter(None, (failure.kind or "an error", heading)))


def first_line(failure: Failure) -> str:
    """Return the first line of a failure; with the next one where it only announces that."""
    lines = [line.strip() for line in failure.reason.splitlines() if line.strip()]
    return " ".join(lines[:2] if lines and lines[0].endswith(":") else lines[:1])


def no_version(compilation: Compilation | None) -> list[str]:
    """Return the sentences on what torch had made of a compilation that failed; none where it did not fail."""
    error = error_of(compilation)
    if compilation is None or not error:
        return []
    return [f"Compilation {compilation.compile_id} failed: {error}",
            f"There is no version {compilation.compile_id}: what torch had made of it is never called."]


def never_called(compilation: Compilation | None) -> list[str]:
    """Return the sentences on a graph of a compilation that failed; none where it did not fail."""
    error = error_of(compilation)
    return [f"compilation {compilation.compile_id} failed: {error}", "so nothing calls this graph"] \
        if compilation is not None and error else []


#: What begins the list of the values that were on the stack at a graph break.
COMPUTED = "computed up to the graph break"


def on_stack(stack: tuple[str, ...], text: str) -> list[str]:
    """Return ``___stack1: y.sum()`` for each value from the stack that is known and that a text uses."""
    uses = stack_values_in(text)
    return [f"{name}: {expression}" for name, expression in known_on_stack(stack).items()
            if uses.count(name) > 1]  # (once as a parameter)


def remarks(notes: Iterable[str]) -> list[str]:
    """Return the notes on what the records as a whole lack, as sentences."""
    return [f"{note[:1].upper()}{note[1:]}." for note in notes
            if note in (FROM_LOG, NOT_ENDED) or note.startswith((UNDER_STANCE, GENERATOR, FROM_FILE))]


def is_from_file(capture: Capture) -> bool:
    """Return whether the records were read from a file that torch saved, not from a run."""
    return any(note.startswith(FROM_FILE) for note in capture.notes)


def notes_of(note: str) -> list[str]:
    """Return the notes on a text one by one: ``"if x: y; no position"`` is two."""
    return [part.strip() for part in note.replace("\n", " ").split(";") if part.strip()]


def stage_name(stage: GraphStage) -> str:
    """Return ``captured``, ``post-grad backward``: a stage of a graph in Markdown."""
    name, which = ADJECTIVES.get(stage.stage, code(stage.shown_as or stage.stage)), direction(stage)
    if which:
        return f"{name} {which}"
    return f"{name} {stage.index + 1}" if stage.index else name


def after_break(file: str, line: int, branch: Branch | None = None) -> str:
    """Return ``at model.py:34, after a graph break, where x.max() > 3.0 is true``."""
    place = f"at {os.path.basename(file)}:{line}" if file else f"in line {line}"
    return f"{place}, after a graph break" + on_branch(branch, lambda text: text)


def on_branch(branch: Branch | None, shown: Callable[[str], str] = code) -> str:
    """Return the branch that a resume function continues, as the end of a sentence; empty where there is none."""
    return f", where {shown(branch.condition)} is {'true' if branch.held else 'false'}" if branch else ""


def called_through(wrappers: Sequence[SourceLocation]) -> list[str]:
    """Return the wrappers of a function, outermost first: one sentence; none where there are none."""
    places = [f"{wrapper.function} ({wrapper.filename.rpartition('site-packages/')[2]}:{wrapper.line})"
              for wrapper in wrappers]
    return [f"called through {count(len(wrappers), 'wrapper')}: {', '.join(places)}"] if wrappers else []


def seconds(value: float) -> str:
    """Return a time: ``1.50 s``."""
    return f"{value:.2f} s"


# --- Short names of files: as much of each path as distinguishes the files of a run -----------------
def short_names(files: Iterable[str]) -> dict[str, str]:
    """Return the shortest ends of paths that distinguish the files; a path that torch cut has its file's name."""
    paths = dict.fromkeys(files)
    whole = {path: [other for other in paths if other.endswith(("/" + path, "\\" + path))] for path in paths}
    parts = {path: path.replace("\\", "/").split("/") for path in paths if len(whole[path]) != 1}
    named = {}
    for path in parts:
        depth = 1
        while depth < len(parts[path]) and any(
                other != path and parts[other][-depth:] == parts[path][-depth:] for other in parts):
            depth += 1
        named[path] = "/".join(parts[path][-depth:])
    return {path: named[path] if path in named else named.get(whole[path][0], path) for path in paths}


def files_of(capture: Capture) -> Iterable[str]:
    """Yield the paths that the records of a run name, as often as they do."""
    for compilation in capture.compilations:
        yield from (place.filename for place in compilation.places())
    yield from (graph.call.filename for graph in capture.graphs if graph.call is not None)
    for frame in capture.frames:
        yield from (place.filename for place in (frame.location, *frame.wrappers) if place)


# --- Graphs without a Dynamo frame, in words: ``compiled by `compile_fx` at `app.py:12``` ------------
def what_called(graph: CompiledGraph) -> str:
    """Return what called or was called, in Markdown; ``""`` for a graph of a frame."""
    if graph.call is None:
        return ""
    function = code(graph.call.function)
    if not graph.by_compiler:
        return f"shown by {function} in a thread that compiled nothing,"
    if any(stage.stage == EXPORTED for stage in graph.stages):
        return f"exported by {function}"
    if any(issue.kind == "failed" for issue in graph.issues):
        return f"not exported by {function}"
    if graph.call.function.startswith("load_"):
        return f"loaded by {function}"
    # (Without generated code it is unknown whether the call returned.)
    is_compiled = graph.kernels or any(stage.stage == AOT_CODE for stage in graph.stages)
    return f"{'compiled by' if is_compiled else 'given to'} {function}"


def by_call(graph: CompiledGraph, place: Callable[[SourceLocation], str] | None = None) -> list[str]:
    """Return the sentence on the call that compiled a graph, in Markdown; none where torch compiled a frame."""
    call = graph.call
    if call is None:
        return []
    where = place(call) if place is not None else code(f"{call.filename}:{call.line}")
    return [f"{what_called(graph)} at {where}" if call.filename else what_called(graph)]


def without_frame(graphs: Iterable[CompiledGraph]) -> list[CompiledGraph]:
    """Return the graphs that were compiled, or only shown, without a Dynamo frame."""
    return [graph for graph in graphs if graph.call is not None and (graph.stages or graph.kernels or graph.issues)]


def total(graphs: Iterable[CompiledGraph]) -> str:
    """Return ``2 graphs given to a compiler directly, 1 exported program, 1 failed export``; ``""`` for none."""
    of_calls = without_frame(graphs)
    failed = sum(any(issue.kind == "failed" for issue in graph.issues) for graph in of_calls)
    exported = sum(any(stage.stage == EXPORTED for stage in graph.stages) for graph in of_calls)
    number = sum(graph.by_compiler and bool(graph.stages or graph.kernels) for graph in of_calls) - exported
    return ", ".join(filter(None, (
        f"{count(number, 'graph')} given to a compiler directly" if number else "",
        count(exported, "exported program") if exported else "",
        count(failed, "failed export") if failed else "")))
