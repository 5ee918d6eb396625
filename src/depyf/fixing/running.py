"""Trials in a process of their own, with a time limit."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

from ..recorded_runs import captures_of
from ..records.store import RecordsError
from .forced import Conditions
from .outcome import Outcome
from .trial import CALLS, DUMP, PRINTED, Spec

#: Of standard error, what is shown of a program that failed.
_SHOWN = 2000


class Runner:
    """Runs a program in a new Python for each trial.

    Args:
        program: its file.
        arguments: its arguments.
        limit: seconds that a run may take.
    """

    def __init__(self, program: str, arguments: Sequence[str] = (), limit: float = 600) -> None:
        self.program, self.arguments, self.limit = program, tuple(arguments), limit

    def __call__(self, texts: Mapping[str, str], conditions: Conditions | None = None) -> Outcome:
        """Run the program with these texts in the place of its files.

        Args:
            texts: by real path.
            conditions: of a change that is judged by generated calls; ``None``: no calls are generated.
        """
        with tempfile.TemporaryDirectory(prefix="depyf_fix_") as folder:
            spec = Spec(self.program, self.arguments, dict(texts), folder, conditions)
            with open(os.path.join(folder, "errors"), "w+b") as errors:
                status = self.start(spec, errors.fileno())
                errors.seek(0)
                error = errors.read().decode(errors="replace")[-_SHOWN:]
            return read(folder, status, error)

    def start(self, spec: Spec, errors: int) -> int | None:
        """Run a trial and return its exit status; ``None`` where it took too long."""
        path = os.path.join(spec.folder, "spec.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(dataclasses.asdict(spec), file)
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        before = os.environ.get("PYTHONPATH", "")
        environment = {**os.environ, "PYTHONPATH": package + (os.pathsep + before if before else "")}
        try:
            return subprocess.run([sys.executable, "-m", "depyf.fixing.trial", path], stderr=errors,
                                  stdin=subprocess.DEVNULL, env=environment, timeout=self.limit).returncode
        except subprocess.TimeoutExpired:
            return None


def read(folder: str, status: int | None, error: str = "") -> Outcome:
    """Return what a trial left in its folder."""
    try:
        capture = next(iter(captures_of(os.path.join(folder, DUMP)).values()), None)
    except (RecordsError, OSError):
        capture = None
    observed, generated, printed = [], [], ""
    if os.path.exists(os.path.join(folder, CALLS)):
        with open(os.path.join(folder, CALLS), "rb") as data:
            observed, generated = pickle.load(data)
    if os.path.exists(os.path.join(folder, PRINTED)):
        with open(os.path.join(folder, PRINTED), encoding="utf-8", errors="replace") as file:
            printed = file.read()
    return Outcome(capture, observed, printed, status, error, generated)
