"""A folder that texts are written to.

A file that cannot be written (disk full, directory removed) is left out, and :meth:`Folder.report_missing` names it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Mapping, Sequence

from ...harmless import harmless, is_plain_name, say, write_whole
from ...records import store
from ...records.naming import FileNames
from ...records.run_directory import FILE, versions_and_rank
from ..markdown import prose

#: The page of a run; its index; the file of notes on it (there is none where there are no notes).
PAGE, INDEX, NOTES = "index.html", "index.md", "notes.txt"
#: The first line of an index.
TITLE = "# What torch.compile did"
#: Files that are read as text, in a terminal as well. (Programs escape in their strings, pages and records all of it.)
_TO_READ = (".md", ".txt")
_NAMED = 6  #: So many missing files are named.


class Folder:
    """Writes files; the dump writer of a session whose files are made later, which only names them."""

    writes = False  # whether it writes the files that running code names

    def __init__(self, path: str) -> None:
        self.path = path
        self.names = FileNames()  # of those
        self.files: dict[str, None] = {}  # names written, in the order of their first writing
        self.lost: dict[str, str] = {}  # names of files that could not be written, with the reasons
        self._lock = threading.Lock()
        self.records_lack = False  # whether a record could not be appended: until the run ends it is in memory only

    def path_of(self, name: str) -> str:
        """Return the path of a file, whether it is written yet or not."""
        return os.path.join(self.path, name)

    def goes_on_with(self, other: Folder) -> None:
        """Take over what another one for this directory wrote, lost and warned of."""
        self.files.update(other.files)
        self.lost.update(other.lost)
        self.records_lack = other.records_lack

    # --- writing ---
    def write(self, name: str, text: str | bytes) -> str | None:
        """Write a file and return its path; ``None`` if that failed.

        Records from elsewhere may name any file: only one in this folder is written.
        """
        path = self.path_of(name)
        if isinstance(text, str) and name.endswith(_TO_READ):
            text = harmless(text)
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        try:
            if not is_plain_name(name):
                name = ascii(name)
                raise OSError(errno.EINVAL, "not the name of a file in it")
            write_whole(path, [data])
        except OSError as error:
            with self._lock:
                self.lost[name] = error.strerror or str(error)
            return None
        with self._lock:
            self.files[name] = None
        return path

    def remove(self, name: str) -> None:
        """Remove a written file, if that is possible."""
        if not is_plain_name(name):
            return
        with contextlib.suppress(OSError):
            os.unlink(self.path_of(name))
            self.files.pop(name, None)

    def report_missing(self, remedy: str = "") -> None:
        """Print in one line which files could not be written, why, and what to do; nothing where all are there."""
        lost = [name for name in self.lost if not os.path.exists(self.path_of(name))]
        if not lost:
            return
        more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        remedy = remedy or (
            f"the records are complete: `depyf report {self.path} -o NEW_DIR` writes all files where there is room"
            if FILE in self.files or store.is_unwritten(self.path) and not self.records_lack else
            "the records are incomplete, too: run the program again with a directory that can be written")
        say(f"depyf: missing in {self.path}: {', '.join(lost[:_NAMED])}{more} ({self.lost[lost[0]]}); {remedy}")


# --- The index of a run in which nothing was compiled. It is written often, so this imports next to nothing ---
NOTHING = "Nothing was compiled: no function under `torch.compile` was called while depyf watched."


def index_of_nothing(environment: Mapping[str, str], notes: Sequence[str], trouble: str = "") -> str:
    """Return the text of ``index.md``; ``trouble``: why the run was not watched."""
    lines = [TITLE, "", f"{f'depyf did not watch this run: {prose(trouble)}' if trouble else NOTHING} "
                        f"({prose(versions_and_rank(environment))})"]
    if notes:
        lines += ["", "## Notes", "", *(f"* {prose(note, 300)}" for note in notes)]
    return "\n".join(lines) + "\n"


# --- A run of which only records are written ---------------------------------------------------------
def index_of_records(environment: Mapping[str, str]) -> str:
    """Return the text of ``index.md`` of a run whose files are not made yet."""
    return (f"{TITLE}\n\nThe run is in `{store.FILE}` ({versions_and_rank(environment)}). The files to read are made "
            "when\nsomebody wants them: in this directory\n\n"
            "* `depyf report .` makes them all, this one too;\n"
            "* `depyf open .` makes them and shows the page;\n"
            "* `depyf explain .`, `depyf diff` and `depyf check` make them first.\n")
