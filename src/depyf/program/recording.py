"""``prepare_debug`` for a process that ``depyf run``, the environment or pytest watches."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ..guarded import unwarned
from ..prepare import prepare_debug
from ..records.run_directory import MARK


class Recording(prepare_debug):
    """A ``prepare_debug`` that is entered for the first compilation, and followed by a summary.

    Args:
        directory: where the dump goes.
        choice: what is written of it (:func:`depyf.run_files.choice_of`).
        launch: the name of the launch, which goes into the mark of the directory: so the first process finds what the
            others wrote.
        first: this is the first process of the program, which reports for all.
        shows_progress: show what is being written, on a terminal and if it takes long.
        terminated: called when the first process is about to end by SIGTERM.
        **options: as of :class:`depyf.prepare_debug`.
    """

    is_summarised = True

    def __init__(
        self, directory: str, choice: tuple[str, ...], launch: str, *, first: bool = True, shows_progress: bool = False,
        terminated: Callable[[], None] | None = None, **options: Any
    ) -> None:
        super().__init__(directory, **options)
        self.choice, self.first, self.shows_progress = choice, first, shows_progress
        self._launch = launch
        self._end_of_program = terminated

    def __enter__(self) -> Recording:
        """Begin at once."""
        with unwarned():  # (warnings of torch's modules that we import may be errors to the program)
            super().__enter__()
            self._begin()
        try:
            with open(os.path.join(self.path, MARK), "a", encoding="utf-8") as file:
                file.write(f"launch {self._launch}\n")
        except OSError:
            pass  # the summary leaves this process out
        return self

    def _terminated(self) -> None:
        (self._end_of_program or super()._terminated)()
