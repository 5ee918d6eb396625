"""The directory of a run, and the folders of ranks and of later runs in it."""

from __future__ import annotations

import itertools
import json
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

from .. import budgets
from ..reading import CannotRead
from ..reading import text as text_of
from .environment import launch, rank_and_world

#: The file that marks a directory that depyf wrote; it names the version that wrote it.
MARK = ".depyf"
#: Names of folders before a number: of a rank, of a later run in the same directory.
RANK, RUN = "rank_", "run_"
_WRITTEN_BY = "written by depyf 1\n"
#: Names in the directory of a run, which another run would overwrite.
_OF_A_RUN = re.compile(
    r"\.depyf|index\.(html|md)|(notes|checked_calls)\.txt|records\.jsonl|(rank|run)_\d+"
    r"|(full_code_for|guards|__transformed_code|__compiled_fn|__graph_of_frame)_.*")


def numbered(names: Iterable[str], beginning: str) -> dict[int, str]:
    """Return the names that are the beginning and a number, by number, in order."""
    return dict(sorted(
        (int(name.removeprefix(beginning)), name) for name in names if re.fullmatch(beginning + r"\d+", name)))


def rank_folders(directory: str) -> dict[int, str]:
    """Return the folders of ranks in a directory, by rank."""
    try:
        return numbered(os.listdir(directory), RANK)
    except OSError:
        return {}


def directory_of(path: str) -> str:
    """Return the directory that a file of records is in; any other path as it is."""
    is_records = os.path.isfile(path) and os.path.basename(path) == FILE
    return os.path.dirname(path) or "." if is_records else path


class DirectoryError(OSError):
    """The directory cannot be used; the message says which, why and what to do."""


def run_directory(wanted: str) -> tuple[str, str]:
    """Return ``(directory to write to, notice for the user)``.

    A directory with a run, or with a file of a name that a run has, is left as it is; the run is then written to
    ``run_2``, ``run_3``, ... in it. Each of several ranks has its folder ``rank_<n>`` in the directory of the run,
    which is the same for all of them.

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
    """Mark a directory without a run as a run's and return whether it is ours: one process of several gets it.

    Args:
        shared: the directory is also ours if another rank of the same launch has made the mark.
    """
    path = os.path.join(run, MARK)
    if not any(map(_OF_A_RUN.fullmatch, os.listdir(run))) and _marked(path, mark):
        return True
    if not shared:
        return False
    for _ in range(100):
        try:
            text = text_of(path, budgets.WRITTEN, "replace")
        except (FileNotFoundError, CannotRead):
            return False
        if text:
            return text == mark
        time.sleep(0.02)  # another rank is writing it, where there are no links
    return False


def _marked(path: str, mark: str) -> bool:
    """Create a file, complete or not at all; return whether that was done: another process may be faster."""
    temporary = f"{path}.{os.getpid()}.{threading.get_ident()}"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(mark)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(mark)
        except FileExistsError:
            return False
    finally:
        os.unlink(temporary)
    return True


# --- The lines of ``records.jsonl`` that are no records: the first one, notes, the last one ----------
# They are the file of a run in which nothing was compiled, for which the model of records need not be imported.
#: Incremented when a line of an older file would be misread.
SCHEMA = 1
FILE = "records.jsonl"


def line_of(value: dict[str, Any]) -> str:
    """Return a value of JSON as a line."""
    # Lone surrogates, which names may have, are escaped and read as they were. (No record contains itself.)
    return json.dumps(value, ensure_ascii=True, check_circular=False, separators=(",", ":")) + "\n"


def first_line(environment: dict[str, str]) -> str:
    """Return the first line of a file of records: the version of its schema, and the run's environment."""
    return line_of({"record": "schema", "version": SCHEMA, "environment": environment})


def last_lines(notes: Iterable[str]) -> Iterator[str]:
    """Yield the notes on the run and the line that ends the file."""
    for note in notes:
        yield line_of({"record": "note", "text": note})
    yield line_of({"record": "end"})
