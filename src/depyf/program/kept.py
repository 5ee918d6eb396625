"""What ``depyf run --later`` says after the program. It is said each time, so this imports next to nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..records.model import Capture


def shown(path: str) -> str:
    """Return the path as it is shortest from here."""
    try:
        near = os.path.relpath(path)
    except (ValueError, OSError):  # on another drive, or here is no more
        return path
    return path if near.startswith(os.pardir) else near


def kept_lines(capture: Capture, path: str) -> list[str]:
    """Return what is said of a run of which records only were written.

    Args:
        capture: of the first process.
        path: its folder.
    """
    number = len(capture.compilations)
    return [f"depyf: {number} compilation{'' if number == 1 else 's'} recorded in {shown(path)}{os.sep}",
            f"  to read it: depyf explain {shown(path)}; depyf report {shown(path)} makes the files"]
