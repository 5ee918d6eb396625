"""The directory of a run, the folders of ranks and of later runs in it, and the environment of a run."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .. import budgets
from ..reading import CannotRead
from ..reading import text as text_of

#: The working directory as the program began, in which its user reads the paths; ``None``: the present one.
here: str | None = None


def shown(path: str) -> str:
    """Return the path as it is shortest from where the program began."""
    try:
        near = os.path.relpath(path, here)
    except (ValueError, OSError):  # on another drive, or here is no more
        return path
    return path if near.startswith(os.pardir) else near


# --- the environment of a run ------------------------------------------------------------------------
#: Names of options and variables with secret values.
_SECRET_NAME = re.compile(
    r"token(?!s|i[sz])|secret|passw|credential|(?:api|access|private).?key|(?:^|[-_])auth(?:$|[-_])", re.I)
#: What is secret by its form: user and password in an address; tokens of Hugging Face, GitHub, GitLab, OpenAI, Slack,
#: Weights & Biases; keys of AWS.
_SECRET = re.compile(
    r"(?<=://)[^/@\s]+(?=@)|\b(?:hf_\w{16,}|gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|sk-[\w-]{16,}"
    r"|xox\w-[\w-]{8,}|AKIA[A-Z0-9]{12,}|(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f]))")
_MASK = "REDACTED"


def environment() -> dict[str, str]:
    """Return versions, the command and the date; ``rank`` and ``world_size`` where there are several ranks."""
    torch = sys.modules.get("torch")
    facts = {"python": sys.version.split()[0], "torch": str(getattr(torch, "__version__", "none")),
             "command": command(), "date": time.strftime("%Y-%m-%d %H:%M")}
    ranks = rank_and_world()
    if ranks is not None:
        facts["rank"], facts["world_size"] = map(str, ranks)
    return facts


def versions_and_rank(environment: Mapping[str, str]) -> str:
    """Return an environment as one phrase: versions, and the rank where there are several."""
    names = {"torch": "torch", "python": "Python"}
    known = [f"{name} {environment[key]}" for key, name in names.items() if environment.get(key)]
    if "world_size" in environment:
        known.append(f"rank {environment.get('rank', '?')} of {environment['world_size']}")
    return ", ".join(known)


def command() -> str:
    """Return the command that started the program: ``python train.py --steps 3``; of ``-c`` without the text.

    What looks like a secret is left out: ``--hf-token REDACTED``.
    """
    given = sys.orig_argv[1:]
    if sys.argv[:1] == ["-c"] and "-c" in given:
        given = given[: given.index("-c") + 1]
    return shlex.join(["python", *without_secrets(given)])


def without_secrets(words: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command, with a mask for what is a secret by the name before it or by its form."""
    follows = False
    for word in words:
        name, equals, value = word.partition("=")
        if follows and not word.startswith("-"):
            yield _MASK
            follows = False
            continue
        secret = _SECRET_NAME.search(name) is not None and (name.startswith("-") or bool(equals))
        follows = secret and not equals
        yield f"{name}={_MASK}" if secret and equals else _SECRET.sub(_MASK, word)


def rank_and_world() -> tuple[int, int] | None:
    """Return ``(rank, number of ranks)`` of this process; ``None`` if it runs alone.

    ``torch.distributed`` knows them once it is initialised; before that, ``torchrun`` and other launchers put them into
    the environment (torch/distributed/rendezvous.py, ``env://``).
    """
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            rank, world = int(distributed.get_rank()), int(distributed.get_world_size())
        else:
            rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError, RuntimeError):
        return None
    return (rank, world) if world > 1 and 0 <= rank < world else None


def launch() -> str:
    """Return a text that is the same in all ranks of a launch, and differs between launches as far as that is known.

    ``torchrun`` starts its workers again under another restart count. Its folder of logs is new for each launch, but
    each machine has its own, so it counts only where all ranks are on one machine.
    """
    names = ["TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID",
             "SLURM_STEP_ID", "OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"]
    parts = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    if os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE"):
        error_file = os.environ.get("TORCHELASTIC_ERROR_FILE", "")  # .../<launch>/attempt_0/<rank>/error.json
        if error_file:
            parts.append("logs=" + os.path.dirname(os.path.dirname(os.path.dirname(error_file))))
    return " ".join(parts)


MARK = ".depyf"  #: The file that marks a directory that depyf wrote; it names the version that wrote it.
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
    path = _directory(wanted)
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
                f"depyf: {path} contains an earlier run, which is not overwritten; this one is written to {run}")
            return mine, notice
    except OSError as error:
        raise _refused(path, error) from error
    raise AssertionError("itertools.count does not end")


def check_directory(wanted: str) -> None:
    """Raise what :func:`run_directory` raises for a directory that cannot be made or written; leave nothing there."""
    path = place = _directory(wanted)
    while not os.path.exists(place):
        place = os.path.dirname(place)
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise _refused(path, error) from error


def _directory(wanted: str) -> str:
    path = os.path.abspath(os.fspath(wanted))
    if os.path.exists(path) and not os.path.isdir(path):
        raise DirectoryError(f"depyf cannot write to {path!r}: it is a file. Give the name of a directory.")
    return path


def _refused(path: str, error: OSError) -> DirectoryError:
    return DirectoryError(
        f"depyf cannot write to {path!r} ({error.strerror or error}). Give a directory that can be made and written.")


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
