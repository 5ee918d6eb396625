"""What is compiled between two moments, recorded from the first compilation on.

Nothing is done, written or imported before the first frame is compiled, so that a test which compiles nothing runs as
it would without.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from ..capture.import_hook import when_imported
from ..capture.torch_private import first_compilation
from ..guarded import unwarned

if TYPE_CHECKING:
    from ..program.recording import Recording
    from ..records.model import Capture


@dataclass(frozen=True)
class Recorded:
    """What was compiled.

    Attributes:
        capture: ``None`` if nothing was, or if it could not be recorded.
        folder: of the dump; empty where none is kept.
        trouble: why it could not be recorded.
    """

    capture: Capture | None = None
    folder: str = ""
    trouble: str = ""


class CompileWatch:
    """Records what is compiled between :meth:`begin` and :meth:`end`, as often as wanted."""

    def __init__(self) -> None:
        self._module: ModuleType | None = None  # of torch's, once it is imported
        self._undo: Callable[[], None] | None = None  # while it waits for the first compilation
        self._open = False
        self._folder: str | None = None
        self._temporary = ""
        self._recording: Recording | None = None
        self._trouble = ""
        self._lock = threading.RLock()
        when_imported(first_compilation.FRAME.module, self._imported)

    def begin(self, folder: str | None) -> None:
        """Wait for the first compilation.

        Args:
            folder: where the dump goes; ``None``: it is not kept.
        """
        self.end()
        with self._lock:
            self._folder, self._open = folder, True
            self._wait()

    def end(self) -> Recorded:
        """Write and return what was compiled since :meth:`begin`; called again, nothing."""
        with self._lock:
            recording, self._recording = self._recording, None
            self._open = False
            temporary, self._temporary = self._temporary, ""
            trouble, self._trouble = self._trouble, ""
        if recording is None:
            return Recorded(trouble=trouble)
        try:
            recording.__exit__(None, None, None)
            return Recorded(recording.capture, "" if temporary else recording.path)
        except Exception as error:  # ours: the test is not to see it
            return Recorded(trouble=f"{type(error).__name__}: {error}")
        finally:
            if temporary:
                shutil.rmtree(temporary, ignore_errors=True)

    def close(self) -> None:
        """Leave torch as it was."""
        self.end()
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()

    def _imported(self, module: ModuleType) -> None:
        self._module = module
        with self._lock:
            self._wait()

    def _wait(self) -> None:
        if self._open and self._module is not None and self._undo is None:
            try:
                self._undo = first_compilation.before_next(first_compilation.FRAME, self._module, self._first)
            except AttributeError as error:  # another torch
                self._trouble = f"this torch cannot be watched from outside ({error}); use depyf.prepare_debug"

    def _first(self) -> None:
        """Enter the recording: the first frame is about to be compiled."""
        with self._lock:
            self._undo = None
            if not self._open or self._recording is not None:
                return
            try:
                from ..program.recording import Recording

                if self._folder is None:
                    self._temporary = tempfile.mkdtemp(prefix="depyf-")
                recording = Recording(self._folder or self._temporary, (), "pytest", first=False, page=False,
                                      link=None if self._folder is not None else False, files="now")
                with unwarned():
                    # What torch's own modules warn of while we import them is not the test's doing.
                    recording.__enter__()
                self._recording = recording
            except Exception as error:  # ours: the test goes on
                self._trouble = f"{error or type(error).__name__}"
