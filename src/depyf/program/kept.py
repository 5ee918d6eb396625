"""What is said after a program whose files are still to be made. This imports next to nothing."""

from __future__ import annotations

import os


def shown(path: str) -> str:
    """Return the path as it is shortest from here."""
    try:
        near = os.path.relpath(path)
    except (ValueError, OSError):  # on another drive, or here is no more
        return path
    return path if near.startswith(os.pardir) else near


def kept_lines(number: int, path: str) -> list[str]:
    """Return what is said of a run of which only records were written.

    Args:
        number: of compilations of the first process.
        path: its folder.
    """
    return [f"depyf: {number} compilation{'' if number == 1 else 's'} recorded in {shown(path)}{os.sep}",
            f"  its files are made when they are wanted: depyf explain {shown(path)}, depyf open {shown(path)}, or "
            f"depyf report {shown(path)}"]
