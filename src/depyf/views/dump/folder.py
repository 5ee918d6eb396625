"""A folder that texts are written to, whatever becomes of it.

A file that cannot be written (disk full, directory removed) costs that file: one warning, and the program goes on.
Files are written under another name first and moved into place, so that a killed program leaves no half file.
"""

from __future__ import annotations

import errno
import os
import threading
import warnings

from ...harmless import harmless, is_plain_name
from ...records.plain_lines import FILE

#: The page of a run; its index; the file of notes on it (there is none where there are no notes).
PAGE, INDEX, NOTES = "index.html", "index.md", "notes.txt"
#: The first line of an index.
TITLE = "# What torch.compile did"
#: Files that are read as text, in a terminal as well. (Programs escape in their strings, pages and records all of it.)
_TO_READ = (".md", ".txt")


class Folder:
    """Writes files.

    Attributes:
        path: the directory.
        files: names written, in the order of their first writing.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.files: dict[str, None] = {}
        self.lost: list[str] = []
        self._lock = threading.Lock()
        self._warned = False

    def path_of(self, name: str) -> str:
        """Return the path of a file, whether it is written yet or not."""
        return os.path.join(self.path, name)

    def goes_on_with(self, other: Folder) -> None:
        """Take over what another one for this directory wrote, lost and warned of."""
        self.files.update(other.files)
        self.lost += other.lost
        self._warned = other._warned

    # --- writing ---
    def write(self, name: str, text: str | bytes) -> str | None:
        """Write a file and return its path; ``None`` if that failed.

        Records that somebody sent may name any file: only one in this folder is written.
        """
        if not is_plain_name(name):
            self._failed(ascii(name), OSError(errno.EINVAL, "not the name of a file in it"))
            return None
        path = os.path.join(self.path, name)
        if isinstance(text, str) and name.endswith(_TO_READ):
            text = harmless(text)
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
        if not is_plain_name(name):
            return
        try:
            os.unlink(os.path.join(self.path, name))
            self.files.pop(name, None)
        except OSError:
            pass

    def record_failed(self, error: OSError) -> None:
        """Told why a record could not be appended: it is written when the run ends."""
        self._failed(FILE, error, lost=False)

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
