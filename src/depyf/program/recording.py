"""``prepare_debug`` for a process that ``depyf run`` or the environment watches."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..prepare import prepare_debug
from ..records.run_directory import MARK
from ..termination import at_sigterm

if TYPE_CHECKING:
    from ..records.model import Capture


class Recording(prepare_debug):
    """A ``prepare_debug`` with a choice and a launch.

    Args:
        directory: where the dump goes.
        choice: what is written of it (:func:`depyf.run_files.choice_of`).
        launch: the name of the launch, which goes into the mark of the directory: so the first process finds what the
            others wrote.
        first: this is the first process of the program, which reports for all.
        shows_progress: show what is being written, on a terminal and if it takes long.
        terminated: called when the process is about to end by SIGTERM.
        **options: as of :class:`depyf.prepare_debug`.

    Attributes:
        capture: what was written.
    """

    def __init__(
        self, directory: str, choice: tuple[str, ...], launch: str, *, first: bool = True, shows_progress: bool = False,
        terminated: Callable[[], None] | None = None, **options: Any
    ) -> None:
        super().__init__(directory, **options)
        self.capture: Capture | None = None
        self._choice = choice
        self._launch = launch
        self._first = first
        self.shows_progress = shows_progress
        self._on_sigterm = terminated

    def __enter__(self) -> Recording:
        """Begin at once: this is entered for the first compilation."""
        super().__enter__()
        self._begin()
        try:
            with open(os.path.join(self.path, MARK), "a", encoding="utf-8") as file:
                file.write(f"launch {self._launch}\n")
        except OSError:
            pass  # the summary leaves this process out
        return self

    def _at_sigterm(self) -> Callable[[], None]:
        return at_sigterm(self._on_sigterm) if self._on_sigterm is not None else lambda: None

    def _warn_once(self, text: str) -> None:
        if self._first:
            super()._warn_once(text)

    def _say_now(self, text: str) -> None:
        """Say nothing: the summary does."""

    def _shown(self, path: str) -> str:
        from .start import shown

        return shown(path)

    def _options(self) -> tuple[str, ...]:
        return *super()._options(), *self._choice

    def _written(self, capture: Capture) -> None:
        self.capture = capture
