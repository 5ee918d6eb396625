"""The user's files that records name, so that a page can show and annotate them whole."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Collection, Sequence

from ..model.graph_text import locations
from ..reading import source_lines
from ..records.model import Capture, SourceFile
from ..torch_text.libraries import is_library
from ..torch_text.parsed import parsed_file

LONGEST = 2_000_000  #: A longer file is left out: nobody wrote it.
WHOLE = 20_000  #: A file of so many characters is recorded whole.


def files_named(capture: Capture) -> dict[str, bool]:
    """Return the files that frames, breaks, graphs and traced lines name -> whether a frame of its own is in it."""
    result: dict[str, bool] = {}
    for frame in capture.frames:
        if frame.location is not None and frame.entries:
            for place in (frame.location, *frame.wrappers):
                result[place.filename] = True
    for compilation in capture.compilations:
        if compilation.location is not None:
            result[compilation.location.filename] = True
        for broken in compilation.breaks:
            for place in broken.stack[-1:]:
                result.setdefault(place.filename, False)
    for graph in capture.graphs:
        for stage in graph.stages[:1]:  # (the captured one; the others name the same lines)
            for place in locations(stage.text):
                result.setdefault(place.filename, False)
    return result


def collect(capture: Capture, read: Callable[[str], Sequence[str]] = source_lines) -> tuple[SourceFile, ...]:
    """Return the texts of the files that a capture names.

    Of a long file that no compiled function is in, functions of which no line was traced have no bodies.

    Args:
        read: returns the lines of a file with their ends, or none; also of a notebook's cell.
    """
    result = []
    traced: dict[str, set[int]] = {}
    for each in (each for compilation in capture.compilations for each in compilation.traced):
        traced.setdefault(each.filename, set()).update(each.lines)
    for broken in (each for compilation in capture.compilations for each in compilation.breaks):
        for place in broken.stack:
            if place.filename in traced:
                traced[place.filename].add(place.line)
    for path, has_frame in files_named(capture).items():
        if not has_frame and is_library(path):
            continue
        text = "".join(read(path))
        if not has_frame and path in traced and WHOLE < len(text) <= LONGEST:
            text = only_traced(text, traced[path])
        if text and len(text) <= LONGEST:
            result.append(SourceFile(path, text))
    return tuple(result)


def only_traced(text: str, lines: Collection[int]) -> str:
    """Return the text of a file without the bodies of functions and methods that have none of the lines.

    The other lines stay at their places. A text that this Python cannot read is returned as it is.
    """
    tree = parsed_file(text)
    pending, texts = tree.body if tree is not None else [], text.split("\n")
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ClassDef):
            pending += node.body
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inner, last = node.body[0], node.end_lineno or node.lineno
            first = min([inner.lineno, *(each.lineno for each in getattr(inner, "decorator_list", ()))])
            indent = texts[first - 1][: inner.col_offset]
            if not indent.strip() and not any(node.lineno <= line <= last for line in lines):
                texts[first - 1 : last] = [f"{indent}...  # (lines {first} to {last}: nothing of them was traced)",
                                           *[""] * (last - first)]
    return "\n".join(texts)


# --- where there are no records of them ---------------------------------------------------------------
def sources_of_capture(capture: Capture, read: Callable[[str], Sequence[str]] | None = None) -> tuple[SourceFile, ...]:
    """Return the files of a capture: those recorded.

    Else those that are read, where the known lines agree; else what the records have of them, at its place.

    Args:
        read: as in :func:`collect`; ``None`` not to look at the disk. Records may name any file, so that is for those
            who asked for it.
    """
    recorded = {source.path: source for source in capture.sources}
    known_lines = _known_lines(capture)
    result = []
    for path, has_frame in files_named(capture).items():
        if path in recorded:
            result.append(recorded[path])
        elif has_frame or not is_library(path):
            lines = known_lines.get(path, {})
            on_disk = list(read(path)) if read is not None else []
            is_same = bool(on_disk and lines) and all(
                number <= len(on_disk) and on_disk[number - 1].strip() == known.strip()
                for number, known in lines.items())
            text = "".join(on_disk) if is_same else "".join(
                f"{lines.get(number, '')}\n" for number in range(1, max(lines, default=0) + 1))
            result += [SourceFile(path, text)] if text else []
    return tuple(result)


def _known_lines(capture: Capture) -> dict[str, dict[int, str]]:
    """Return the lines of each file of which the records have the text."""
    result: dict[str, dict[int, str]] = {}
    for frame in capture.frames:
        if frame.location is not None and frame.original_is_user_text:
            lines = frame.original.text.splitlines()
            result.setdefault(frame.location.filename, {}).update(enumerate(lines, frame.location.line))
    of_graphs = (locations(stage.text) for graph in capture.graphs for stage in graph.stages[:1])
    for place in itertools.chain(*(each.places() for each in capture.compilations), *of_graphs):
        if place.text and 0 < place.line < 1_000_000:
            result.setdefault(place.filename, {}).setdefault(place.line, place.text)
    return result
