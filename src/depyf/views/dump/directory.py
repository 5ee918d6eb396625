"""The directory of one run: where every text is written.

A file that cannot be written (disk full, directory removed) costs that file: one warning, and the
program goes on.  Files are written under another name first and moved into place, so that a killed
program leaves no half file.
"""

from __future__ import annotations

import itertools
import marshal
import os
import re
import threading
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import CodeType
from typing import Any

from ...records import store
from ...records.environment import launch, rank_and_world
from ...records.model import Branch, GraphBreak, GraphInput, GraphStage, Kernel, TransformedCode, UserFunction
from ...records.naming import FileNames, legal_identifier
from ...torch_text.resumes import resumed_function
from ...torch_text.wrapping import comment
from ..causes import sentences
from ..formatting import after_break, called_through, notes_of
from .graph_file import graph_file

MEANINGS = {
    "exact": "compiles to the same program (proven)",
    "equivalent": "proven to do the same",
    "fallback": "a dispatch loop: right by construction, its structure was not recovered",
    "unproven": "not proven",
}
#: A directory of ours holds this file; it names the version that wrote it.
MARK = ".depyf"
#: Beginnings of the names of folders that a number follows: of a rank, of a later run in the same directory.
RANK, RUN = "rank_", "run_"
_WRITTEN_BY = "written by depyf 1\n"


def numbered(names: Iterable[str], beginning: str) -> dict[int, str]:
    """Those names that are the beginning and a number, by number, in order."""
    return dict(sorted(
        (int(name.removeprefix(beginning)), name) for name in names if re.fullmatch(beginning + r"\d+", name)))


class DirectoryError(OSError):
    """The directory cannot be used; the message says which, why and what to do."""


def run_directory(wanted: str) -> tuple[str, str]:
    """``(directory to write to, what to tell the user)``.

    A directory that holds something already is left as it is; the run then goes to ``run_2``,
    ``run_3``, ... inside it. Of several ranks each has its folder ``rank_<n>`` in the directory of the run, which is
    the same for all of them.

    Raises:
        DirectoryError: it is a file, or cannot be made or written.
    """
    path = os.path.abspath(os.fspath(wanted))
    if os.path.exists(path) and not os.path.isdir(path):
        raise DirectoryError(f"depyf cannot write to {path!r}: it is a file. Give the name of a directory.")
    ranks = rank_and_world()
    mark = f"{_WRITTEN_BY}ranks of {launch()}\n" if ranks else _WRITTEN_BY
    try:
        for number in itertools.count(1):
            run = path if number == 1 else os.path.join(path, f"{RUN}{number}")
            os.makedirs(run, exist_ok=True)
            if not _claimed(run, mark, shared=ranks is not None):
                continue
            mine = run
            if ranks:
                mine = os.path.join(run, f"{RANK}{ranks[0]}")
                try:
                    os.mkdir(mine)
                except FileExistsError:  # of an earlier launch that looks the same
                    continue
                _claimed(mine, _WRITTEN_BY, shared=False)
            notice = "" if run == path or ranks and ranks[0] else (
                f"depyf: {path} holds an earlier run, which is kept; this one is written to {run}")
            return mine, notice
    except OSError as error:
        raise DirectoryError(
            f"depyf cannot write to {path!r} ({error.strerror or error}). Give a directory that can be "
            "made and written.") from error
    raise AssertionError("itertools.count does not end")


def _claimed(run: str, mark: str, shared: bool) -> bool:
    """Mark an empty directory as a run's and return whether it is ours: of several processes only one gets it.

    Args:
        shared: the directory is ours too if another rank of the same launch has made the mark.
    """
    path = os.path.join(run, MARK)
    # Written aside and linked: the mark is there as a whole or not at all, and never replaces another.
    aside = f"{path}.{os.getpid()}.{threading.get_ident()}"
    if not [name for name in os.listdir(run) if not name.startswith(MARK + ".")]:
        with open(aside, "w", encoding="utf-8") as file:
            file.write(mark)
        try:
            os.link(aside, path)
        except FileExistsError:
            pass  # another process was faster
        except OSError:  # a file system without links
            try:
                with open(path, "x", encoding="utf-8") as file:
                    file.write(mark)
            except FileExistsError:
                pass
            else:
                return True
        else:
            return True
        finally:
            os.unlink(aside)
    if not shared:
        return False
    for _ in range(100):
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            return False
        if text:
            return text == mark
        time.sleep(0.02)  # another rank is writing it, where there are no links
    return False


class Directory:
    """Writes the files of a run (the dump writer of a capture session).

    Attributes:
        path: the directory.
        files: names written, in the order of their first writing.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.names = FileNames()
        self.files: dict[str, None] = {}
        self.lost: list[str] = []
        self._lock = threading.Lock()
        self._warned = False

    # --- writing ---
    def write(self, name: str, text: str | bytes) -> str | None:
        """Write a file and return its path; ``None`` if that failed."""
        path = os.path.join(self.path, name)
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        partial = f"{path}.{os.getpid()}.partial"
        try:
            with open(partial, "wb") as file:
                file.write(data)
            os.replace(partial, path)
        except OSError as error:
            self._failed(name, error)
            try:
                os.unlink(partial)
            except OSError:
                pass
            return None
        with self._lock:
            self.files[name] = None
        return path

    def remove(self, name: str) -> None:
        """Remove a file that was written, if that can be done."""
        try:
            os.unlink(os.path.join(self.path, name))
            self.files.pop(name, None)
        except OSError:
            pass

    def record_failed(self, error: OSError) -> None:
        """Told why a record could not be appended: it is written when the run ends."""
        self._failed(store.FILE, error, lost=False)

    def _failed(self, name: str, error: OSError, lost: bool = True) -> None:
        with self._lock:
            if lost:
                self.lost.append(name)
            first, self._warned = not self._warned, True
        if first:
            try:
                warnings.warn(
                    f"depyf: {name} could not be written to {self.path} ({error.strerror or error}); the program "
                    "goes on, and further files that cannot be written are left out silently",
                    RuntimeWarning, stacklevel=2)
            except Exception:
                pass  # warnings may be errors here

    def written(self, name: str) -> str | None:
        """Return the path of a file that was written; ``None`` for one that was not."""
        return os.path.join(self.path, name) if name in self.files else None

    # --- what must be there while the run goes on: running code names it ---
    def graph(self, graph: str, stage: GraphStage, inputs: tuple[GraphInput, ...]) -> None:
        """Write a stage.

        Args:
            inputs: of the captured graph.
        """
        self.write(stage.file, graph_file(graph, stage, inputs).text)

    def kernel(self, kernel: Kernel) -> None:
        """Write a module that Inductor generated."""
        self.write(kernel.file, kernel.text)

    def transformed(
        self, code: TransformedCode, function: UserFunction, breaks: Sequence[GraphBreak] = (),
        branch: Branch | None = None,
    ) -> tuple[str, int, str] | None:
        """Write transformed code; return ``(path, line of the file at which the text begins, text of the file)``.

        Args:
            code: its record.
            function: that the user means.
            breaks: where its graph ends before the function does.
            branch: the branch that it continues.
        """
        header = transformed_header(code, function, breaks, branch)
        text = header + code.source.text
        path = self.write(code.file, text)
        if code.exact is not None:
            whole = replace(code, source=code.exact)
            plain = transformed_header(whole, function, breaks, branch) + code.exact.text
            self.write(code.file.removesuffix(".py") + ".unsimplified.py", plain)
        return None if path is None else (path, header.count("\n") + 1, text)

    def code_object(self, name: str, kind: str, code: CodeType) -> None:
        """Write a code object, marshalled, to ``NAME.KIND.bin`` (``kind``: ``original``, ``transformed``, ...)."""
        stem = name.removesuffix(".py")
        self.write(f"{legal_identifier(stem)}.{kind}.bin", marshal.dumps(_portable(code)))


def _portable(value: Any) -> Any:
    """Return the constant as ``marshal`` can write it.

    Dynamo puts objects into code, which become their ``repr``.
    """
    if isinstance(value, CodeType):
        return value.replace(co_consts=tuple(map(_portable, value.co_consts)))
    if type(value) in (tuple, frozenset):
        return type(value)(map(_portable, value))
    try:
        marshal.dumps(value)
    except (ValueError, TypeError):
        return repr(value)
    return value


def how_faithful(fidelity: str, note: str) -> list[str]:
    """Return the lines on fidelity in the head of a text: what it means, with the conditions; then the other notes."""
    notes = sorted(notes_of(note))
    conditions = [part.removeprefix("if ") for part in notes if part.startswith("if ")]
    text = f"fidelity: {fidelity} - {MEANINGS.get(fidelity, '')}"
    others = "; ".join(part for part in notes if not part.startswith("if "))
    return [text + (f", if: {'; '.join(conditions)}" if conditions else ""), *([others] if others else [])]


def transformed_header(
    code: TransformedCode, function: UserFunction, breaks: Sequence[GraphBreak], branch: Branch | None,
) -> str:
    """Return the text above transformed code: comments and an empty line."""
    fidelity = code.source.fidelity
    location = function.location
    resumed = resumed_function(location.function) if location else None
    lines = [f"what torch.compile made of {code.function_name if resumed else function.name}, "
             f"compilation {code.compile_id}"]
    if resumed:
        lines.append(f"continues {function.name} {after_break(resumed[1], branch)}")
    if location is not None:
        lines.append(f"original: {location.filename}:{location.line}")
    lines += called_through(function.wrappers)
    lines += sentences(breaks)
    lines += how_faithful(fidelity, code.source.note)
    lines = [part for line in lines for part in comment(" ".join(line.split()), deeper=2)]
    return "\n".join(line.encode("ascii", "replace").decode() if not line.isprintable() else line
                     for line in lines) + "\n\n"
