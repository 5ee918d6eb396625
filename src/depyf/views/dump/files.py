"""All files of a dump that are made of records alone: at the end of a run, and again from ``records.jsonl``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ...guarded import guarded_call
from ...provenance.graph_provenance import Provenance
from ...records import store
from ...records.model import CacheEntry, Capture, CompiledGraph, Frame, UserFunction
from ...records.naming import FunctionNames, only_written, with_entries
from ...values import remembered
from .. import page as pages
from ..formatting import WITHOUT_CODE, by_call, never_called, no_version
from ..index import index, stamped
from ..markdown import plain
from ..user_source import UserSource, numbers_for_text
from .directory import Directory, graph_file
from .folder import NOTES
from .full_code import full_code, name_of
from .guards.functions import guards_file
from .guards.versions import guards_name, in_order, nearest, versions
from .outline import kernel_outline, outline, saved_for_backward

Progress = Callable[[str, int, int], None]  #: ``progress("outlines", 3, 48)``: the fourth of 48 is next.


def silent(what: str, done: int, total: int) -> None:
    """Show no progress."""


def write_artefacts(capture: Capture, directory: Directory) -> Capture:
    """Write the texts of a recorded run: graphs, kernels, transformed code; a session writes them one by one.

    Returns:
        The capture with the names of the files.
    """
    graphs = []
    names = directory.names
    source = UserSource(capture.sources)
    for graph in capture.graphs:
        graph = replace(
            graph,
            stages=tuple(replace(stage, file=names.stage_file(graph.name, stage.stage, stage.index, stage.file))
                         for stage in graph.stages),
            kernels=tuple(replace(kernel, file=names.kernel_file(graph.name, kernel.index, kernel.file))
                          for kernel in graph.kernels))
        graphs.append(graph)
        for stage in graph.stages:
            directory.graph(graph.name, stage, graph.inputs, _on_graph(graph, capture))
        for kernel in graph.kernels:
            directory.kernel(kernel)

    def written(frame: Frame, entry: CacheEntry) -> CacheEntry:
        code = entry.transformed
        if not code.known:
            return entry
        shown = name_of(code)
        code = replace(code, file=names.transformed_file(shown, code.compile_id, code.function_name, code.file))
        made = capture.by_id.get(code.compile_id.key)
        wrong = [f"not what plain Python does, by an error of torch's: it {plain(each.sentence)}"
                 for each in (numbers_for_text(entry, made, source) if made is not None else ())]
        directory.transformed(
            code, UserFunction(frame.title or frame.name, frame.location, frame.wrappers),
            made.breaks if made is not None else (), frame.branch, [*no_version(made), *wrong], frame.stack)
        return replace(entry, transformed=code)

    return with_entries(replace(capture, graphs=tuple(graphs)), written)


def _on_graph(graph: CompiledGraph, capture: Capture) -> list[str]:
    """Return sentences on a graph that no code calls: its compilation failed, or was of no frame."""
    return [*map(plain, by_call(graph)), *never_called(capture.by_id.get(graph.compile_id.key))]


@remembered()
def write_views(
    capture: Capture, directory: Directory, report: Callable[[Exception], None], notes: Iterable[str] = (),
    clean: bool = False, page: bool | None = None, progress: Progress = silent, records: bool = True,
) -> Capture:
    """Write what is made of the whole: full code, outlines, notes, ``records.jsonl``, ``index.html`` and ``index.md``.

    Args:
        capture: the run; its artefacts are written already, and their records name the files.
        report: called with an internal error, which costs the file that it concerns.
        clean: remove the files of graphs that no compiled function calls.
        page: write ``index.html``; ``None``: unless that takes long (:func:`depyf.page.is_large`).
        progress: called with what is being written (see :data:`Progress`).

    Returns:
        The capture as it was recorded, with the names of all files.
    """
    errors: list[str] = []

    def noted(error: Exception) -> None:
        errors.append(f"internal error: {type(error).__name__}: {error}")
        report(error)

    given = capture
    written = guarded_call(lambda: only_written(given, lambda name: name in directory.files), given, noted)
    whole = guarded_call(lambda: _with_full_code(written, directory, noted, progress), written, noted)
    capture = guarded_call(lambda: _without_wild(whole, directory), whole, noted) if clean else whole
    known: dict[str, Provenance] = {}
    graphs = []
    for number, graph in enumerate(capture.graphs):
        progress("outlines", number, len(capture.graphs))
        failed = _on_graph(graph, given)
        graphs.append(guarded_call(lambda: _with_outlines(graph, directory, known, failed), graph, noted))
    capture = replace(capture, graphs=tuple(graphs))
    reported = _notes(capture, notes, errors, directory)
    notes_file = NOTES * (bool(reported) and directory.write(NOTES, "\n".join(reported) + "\n") is not None)
    final = replace(capture, notes=reported)
    progress("records", 0, 1)
    # Records that cannot be written leave what was written while the run went on.
    if records:
        guarded_call(lambda: directory.write(store.FILE, "".join(store.lines(final))), None, noted)
    wanted = not pages.is_large(final) if page is None else page
    progress("the page" if wanted else "the index", 0, 1)
    path = guarded_call(lambda: directory.write(pages.FILE, pages.build(final, provenances=known)), None, noted) \
        if wanted else None
    shown = pages.FILE if path else ""
    later = page is None and not wanted
    guarded_call(lambda: directory.write(index.FILE, stamped(
        index.index(final, notes_file, shown, later), directory.path)), None, noted)
    finally_reported = _notes(capture, notes, errors, directory)
    if finally_reported != reported:
        directory.write(NOTES, "\n".join(finally_reported) + "\n")
    return final


def _notes(capture: Capture, notes: Iterable[str], errors: Iterable[str], directory: Directory) -> tuple[str, ...]:
    """Return the notes on the run so far."""
    lost = ["not written: " + ", ".join(directory.lost)] if directory.lost else []
    return tuple(dict.fromkeys([*capture.notes, *notes, *errors, *lost]))


def _with_full_code(
    capture: Capture, directory: Directory, report: Callable[[Exception], None], progress: Progress
) -> Capture:
    """Return the capture with a file of full code for each function, and one of all guards for each version."""
    # (Names come before any view uses the versions of the frames, which are made once for a frame.)
    numbers = {id(entry): number for frame in capture.frames for number, entry in enumerate(in_order(frame))}
    capture = with_entries(capture, lambda frame, entry: replace(entry, guards_file=directory.names.give(
        ("guards", entry.compile_id.key, frame.code_name), f"{guards_name(frame, entry, numbers[id(entry)])}.py")))
    names = FunctionNames()
    functions = []
    for done, function in enumerate(capture.functions):
        progress("full code", done, len(capture.functions))
        name = names.full_code(function.frames[0].title or function.name) + ".py"
        written = guarded_call(lambda: directory.write(name, full_code(function, capture)), None, report)
        for version, before in ((each, nearest(each, of_frame)) for frame in function.frames
                                for of_frame in [versions(frame, capture)] for each in of_frame):
            guarded_call(lambda: directory.write(version.entry.guards_file, guards_file(version, before)), None, report)
        functions.append(replace(function, file=name if written is not None else ""))
    capture = replace(capture, functions=tuple(functions))
    if all(entry.guards_file in directory.files for entry in capture.entries):
        return capture  # (with the frames of which versions were made)
    return with_entries(capture, lambda frame, entry: entry if entry.guards_file in directory.files else replace(
        entry, guards_file=""))


def _with_outlines(
    graph: CompiledGraph, directory: Directory, known: dict[str, Provenance], failed: Sequence[str],
) -> CompiledGraph:
    """Write an outline beside the file of each stage in which modules are called, and of each generated module.

    Returns:
        The graph with the calls of its kernels and the names of the outlines; its provenance is put into ``known``.
    """
    modules = any(stage.modules for stage in graph.stages)
    if not modules and not graph.kernels:
        return graph
    provenance = known[graph.name] = Provenance(graph)

    def write(file: str, text: str) -> str:
        name = file.removesuffix(".py") + ".outline.txt"
        return name if directory.write(name, text) else ""

    kernels, stages = [], []
    for kernel in provenance.kernels:
        if kernel.file in directory.files:
            ids = f" of compilation {kernel.compile_id}" if kernel.compile_id else ""
            title = f"{graph.name}: kernel {kernel.index}{ids}"
            kernel = replace(kernel, outline=write(kernel.file, kernel_outline(provenance, kernel, title, failed)))
        kernels.append(kernel)
    for stage in provenance.stages if modules else ():
        record = stage.record
        if record.file in directory.files and not record.internal and record.is_python:
            shown = graph_file(graph.name, record, graph.inputs, failed)
            text = outline(provenance, stage, shown.title, shown.line, failed)
            saved = saved_for_backward(provenance, stage)
            record = replace(record, outline=write(record.file, text + ("\n".join(["", *saved, ""]) if saved else "")))
        stages.append(record)
    return replace(graph, kernels=tuple(kernels), stages=tuple(stages) if modules else graph.stages)


def _without_wild(capture: Capture, directory: Directory) -> Capture:
    """Remove the files of graphs that no compiled function calls, as a backend's experiments; their records remain.

    Files of a failed compilation remain (the backend's input shows why), of one that went on when the block
    ended, and of compilations without a frame.
    """
    kept = {each.compile_id.key for each in capture.compilations if each.outcome in WITHOUT_CODE}
    called = {name for entry in capture.entries for name in entry.graph_names}
    graphs = []
    for graph in capture.graphs:
        if (graph.piece_of or graph.name) not in called and graph.compile_id.key not in kept and graph.call is None:
            for name in [n for n in directory.files if n.startswith(graph.name + ".")]:
                directory.remove(name)
            graph = replace(
                graph, stages=tuple(replace(stage, file="", outline="") for stage in graph.stages),
                kernels=tuple(replace(kernel, file="", outline="") for kernel in graph.kernels))
        graphs.append(graph)
    return replace(capture, graphs=tuple(graphs))
