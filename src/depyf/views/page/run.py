"""What all parts of the page's data share: documents, numbers of files, places and graphs, status of lines; ranks."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...advice.source import blocks
from ...provenance import sources
from ...records.model import Capture, Compilation, SourceFile, SourceLocation
from ...torch_text.global_names import plain_name, resumed_function
from ...torch_text.parsed import parsed_file
from .. import ranks as index
from ..formatting import short_names
from ..index.overview import context_of
from ..markdown import prose, spans
from ..ranks import RankClass
from ..user_source import definitions

#: What can be said of a line, the weightiest first; docs/page.md says what each means.
BREAK, GRAPH, PYTHON, FOLDED, UNREACHED, UNKNOWN = "break", "graph", "python", "folded", "unreached", "unknown"
_WEIGHT = {status: weight for weight, status in enumerate((BREAK, GRAPH, PYTHON, FOLDED, UNREACHED, UNKNOWN))}


@dataclass
class FileLines:
    """What is known of the lines of a file, and the status of each that follows."""

    graphs: defaultdict[int, set[int]] = field(default_factory=lambda: defaultdict(set))  # in which a line is
    breaks: defaultdict[int, list[str]] = field(default_factory=lambda: defaultdict(list))  # reasons, by line
    traced: set[int] = field(default_factory=set)
    python: dict[int, str] = field(default_factory=dict)  # first line of a function that torch gave up -> why
    compiled: set[int] = field(default_factory=set)  # first lines of functions

    def statuses(self, text: str) -> list[list[Any]]:
        """Return ``[line, status, graphs, why]`` for each line with a status, in order.

        Args:
            text: of the file. Of one that this Python cannot read only what torch said of single lines is known.
        """
        rows: dict[int, list[Any]] = {}

        def say(line: int, status: str, why: str = "") -> None:
            if line not in rows or _WEIGHT[status] < _WEIGHT[rows[line][1]]:
                rows[line] = [line, status, sorted(self.graphs.get(line, ())), why]

        for line, reasons in self.breaks.items():
            say(line, BREAK, reasons[0])
        for line in self.graphs:
            say(line, GRAPH)
        functions = [(range(each.first, each.node.body[0].lineno), [
            range(first, end + 1) for first, end in _statements(each.node.body)])
            for each in definitions(parsed_file(text))]
        heads = {line for head, _ in functions for line in head}
        known = self.graphs.keys() | self.traced | self.breaks.keys()
        for head, statements in functions:
            why = next((self.python[line] for line in head if line in self.python), "")
            compiled = not self.compiled.isdisjoint(head)
            lines = {line for statement in statements for line in statement}
            for statement in statements:
                if not known.isdisjoint(statement):
                    continue
                if why and not compiled:
                    say(statement[0], PYTHON, why)
                elif lines & self.traced:
                    say(statement[0], UNREACHED)
                elif compiled or lines & self.graphs.keys():  # (nothing says which lines were traced)
                    say(statement[0], UNKNOWN)
        for line in self.traced - heads:
            say(line, FOLDED)
        for statement in (each for _, statements in functions for each in statements):
            if own := [rows[line] for line in statement if line in rows]:
                best = min(own, key=lambda item: _WEIGHT[item[1]])
                for line in statement:
                    rows.setdefault(line, [line, *best[1:]])
        return [rows[line] for line in sorted(rows) if 0 < line <= text.count("\n") + 1]


def _statements(body: list[ast.stmt]) -> Iterator[tuple[int, int]]:
    pending = list(reversed(body))
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue  # (what is in it runs when it is called)
        if isinstance(node, (ast.Pass, ast.Global, ast.Nonlocal)) or (
                isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            continue  # leaves no code
        inner = [each for block in blocks(node) for each in block]
        if isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
            pending += reversed(inner)
            continue  # `try:` itself does nothing
        end = node.end_lineno or node.lineno
        if inner:
            head = [value for name in ("test", "iter", "subject") if (value := getattr(node, name, None)) is not None]
            head += [item.context_expr for item in getattr(node, "items", ())]
            end = head[-1].end_lineno if head else max(node.lineno, min(item.lineno for item in inner) - 1)
        yield node.lineno, end
        pending += reversed(inner)


# --- Numbers for documents, files and lines ----------------------------------------------------------
Json = dict[str, Any]


class Run:
    """A run while its data is made.

    Attributes:
        index: the records with their relations.
        documents: texts that a pane can show, each once.
        file_numbers: by path, in order.
        places: the user's lines, ``(file, line)`` -> number.
        graph_numbers: by name of the graph.
    """

    def __init__(self, capture: Capture, files: Sequence[SourceFile], names: Mapping[str, str]) -> None:
        self.capture = capture
        self.index = context_of(capture)
        self.files = files
        self.names = names
        self.documents: list[Json] = []
        self.keys: set[str] = set()
        self.places: dict[tuple[str, int], int] = {}
        self.file_numbers: dict[str, int] = {}
        self.graph_numbers = {graph.name: number for number, graph in enumerate(capture.graphs)}
        self.lines: defaultdict[str, FileLines] = defaultdict(FileLines)  # by the paths of the records
        self.whole = _whole_paths(capture, files)

    def file(self, name: str) -> int:
        """Return the number of a file, a new one where it has none."""
        return self.file_numbers.setdefault(self.whole.get(name, name), len(self.file_numbers))

    def short_names(self) -> dict[str, str]:
        """Return the names of files, by path."""
        return {path: self.names.get(path, short) for path, short in short_names(self.file_numbers).items()}

    def place(self, location: SourceLocation | None) -> int:
        """Return the number of a user's line; -1 for none."""
        if location is None or location.line <= 0:
            return -1
        self.file(location.filename)
        name = self.whole.get(location.filename, location.filename)
        return self.places.setdefault((name, location.line), len(self.places))

    def document(self, kind: str, key: str, title: str, text: str, **more: Any) -> int:
        """Add a text that a pane can show, and return its number."""
        while key in self.keys:
            key += "'"
        self.keys.add(key)
        self.documents.append({"kind": kind, "key": key, "title": title, "text": plain_lines(text), **more})
        return len(self.documents) - 1

    def function_at(self, place: SourceLocation) -> str:
        """Return the name of the function of a line, with its class where the user's file says it."""
        return self.index.source.name_at(place, plain_name(place.function))

    def subject(self, compilation: Compilation) -> str:
        """Return the function of a compilation, and from which line on."""
        resume = resumed_function(compilation.function)
        summary = self.index.summary_of.get(compilation.compile_id.key)
        title = summary.title if summary else plain_name(compilation.function) or "a function that torch does not name"
        if not resume:
            return title
        meant = compilation.user_function
        return f"{meant.name if meant else title}, from line {resume[1]} on"


def _whole_paths(capture: Capture, files: Sequence[SourceFile]) -> dict[str, str]:
    """Return the only known file for each path that torch may have shortened (``transformers/activations.py``)."""
    known = dict.fromkeys([file.path for file in files] + list(sources.files_named(capture)) + [
        traced.filename for compilation in capture.compilations for traced in compilation.traced])
    ends: dict[str, list[str]] = {}
    for path in known:
        parts = path.replace("\\", "/").split("/")
        for count in range(2, len(parts)):
            ends.setdefault("/".join(parts[-count:]), []).append(path)
    return {end: paths[0] for end, paths in ends.items() if len(paths) == 1 and end not in known}


def plain_lines(text: str) -> str:
    """Return the text with one kind of line end, as the page counts lines."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


# --- several ranks -----------------------------------------------------------------------------------
def run_head(run: Json, ranks: RankClass | None) -> Json:
    """Return the name, the numbers and the functions of a run; ``ranks`` are those that did the same."""
    head: Json = {"name": run["name"], "summary": run["summary"], "units": _functions(run)}
    if ranks is not None:
        seconds = [member.seconds for member in ranks.members]
        head |= {"ranks": len(ranks.members), "ended": ranks.ended, "time": index.time_of(ranks),
                 "seconds": [min(seconds), max(seconds)]}
    return head


def _functions(run: Json) -> list[Json]:
    """Return the numbers of functions, added for equal names, and where their graphs break."""
    result: dict[str, Json] = {}
    numbers = ("versions", "graphs", "breaks", "recompiles", "seconds")
    for unit in run["units"]:
        known = result.setdefault(unit["title"], {"title": unit["title"], **dict.fromkeys(numbers, 0), "at": []})
        for name in numbers:
            known[name] += unit[name]
    for reason in run["breaks"]:
        for at in reason["places"]:
            title = at["of"] if at["of"] in result else at["of"].partition(",")[0]
            if title in result:
                result[title]["at"].append(f"{place_of(run, at['place']) or '?'} {reason['title']}")
    return list(result.values())


def place_of(run: Json, place: int) -> str:
    """Return a place of a run's data: ``model.py:12``; ``""`` for none."""
    if place < 0:
        return ""
    file, line = run["places"][2 * place : 2 * place + 2]
    return f"{run['files'][file]['short']}:{line}"


def ranks_head(classes: Sequence[RankClass]) -> Json:
    """Return the differences between ranks, and the missing ones."""
    missing = [index.missing_ranks(classes)]
    missing += [f"{each.name[:1].upper()}{each.name[1:]}: {prose(each.trouble, 200)}."
                for each in classes if each.capture is None]
    return {"differences": [spans(line.removeprefix("* ")) for line in index.differences(classes) if line],
            "missing": [spans(sentence) for sentence in missing if sentence]}
