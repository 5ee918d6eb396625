"""The user's files that records name, so that a page can show and annotate them whole."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence

from ..model.graph_text import locations
from ..reading import source_lines
from ..records.model import Capture, SourceFile, SourceLocation
from ..torch_text.libraries import is_library
from ..torch_text.parsed import parsed_file

#: A longer file is left out: nobody wrote it.
LONGEST = 2_000_000
#: A file of so many characters is recorded whole.
WHOLE = 20_000


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
    broken: dict[str, set[int]] = {}
    for compilation in capture.compilations:
        for each in compilation.traced:
            traced.setdefault(each.filename, set()).update(each.lines)
        for place in (place for graph_break in compilation.breaks for place in graph_break.stack):
            broken.setdefault(place.filename, set()).add(place.line)
    for path, has_frame in files_named(capture).items():
        if not has_frame and is_library(path):
            continue
        text = "".join(read(path))
        if not has_frame and path in traced and WHOLE < len(text) <= LONGEST:
            text = only_traced(text, traced[path] | broken.get(path, set()))
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
    known: dict[str, dict[int, str]] = {}
    for place in _places(capture):
        if place.text and place.line > 0:
            known.setdefault(place.filename, {}).setdefault(place.line, place.text)
    result = []
    for path, has_frame in files_named(capture).items():
        if path in recorded:
            result.append(recorded[path])
            continue
        if not has_frame and is_library(path):
            continue
        lines = known.get(path, {})
        on_disk = list(read(path)) if read is not None else []
        if on_disk and lines and all(
                number <= len(on_disk) and on_disk[number - 1].strip() == text.strip()
                for number, text in lines.items()):
            result.append(SourceFile(path, "".join(on_disk)))
            continue
        pieces = _pieces(capture, path, lines)
        if pieces:
            result.append(SourceFile(path, pieces))
    return tuple(result)


def _places(capture: Capture) -> Iterator[SourceLocation]:
    for compilation in capture.compilations:
        yield from compilation.places()
    for frame in capture.frames:
        if frame.location is None:
            continue
        if frame.original_is_user_text:
            first = next((line for line in frame.original.text.splitlines() if line.strip()), "")
            yield SourceLocation(frame.location.filename, frame.location.line, text=first)
    for graph in capture.graphs:
        for stage in graph.stages[:1]:
            yield from locations(stage.text)


def _pieces(capture: Capture, path: str, known: dict[int, str]) -> str:
    lines = dict(known)
    for frame in capture.frames:
        if frame.location is not None and frame.location.filename == path and frame.original_is_user_text:
            for offset, text in enumerate(frame.original.text.splitlines()):
                lines[frame.location.line + offset] = text
    last = max((number for number in lines if 0 < number < 1_000_000), default=0)
    return "\n".join(lines.get(number, "") for number in range(1, last + 1)) + "\n" if last else ""
