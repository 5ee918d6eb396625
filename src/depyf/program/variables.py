"""The environment variables by which a program is watched, and the message after one whose files are made later."""

from __future__ import annotations

import os
from collections.abc import MutableMapping

#: Where the dump goes. Unset or empty: nothing is watched.
DIRECTORY = "DEPYF_DUMP_DIR"
#: Options, as on the command line of ``depyf run``.
OPTIONS = "DEPYF_DUMP_OPTIONS"
#: Set by the first process of a program for those that it starts, and by ``depyf run``. It names the launch.
LAUNCH = "DEPYF_DUMP_LAUNCH"
_RUN = "run"


def new_launch(environment: MutableMapping[str, str], run: bool = False) -> None:
    """Set :data:`LAUNCH` to a name that no other launch has.

    Args:
        environment: of the process and of those that it starts.
        run: called by ``depyf run``, which becomes (or starts) the first process of the program.
    """
    environment[LAUNCH] = ":".join((_RUN if run else "", str(os.getpid()), os.urandom(6).hex()))


def role_in_launch(launch: str) -> tuple[bool, bool]:
    """Return whether this is the first process of the program, and whether ``depyf run`` started it.

    Both by what :data:`LAUNCH` held when this process began.
    """
    if not launch:
        return True, False
    kind, _, rest = launch.partition(":")
    # On Unix ``depyf run`` becomes the program; elsewhere it starts it.
    run = os.getpid() if os.name == "posix" else os.getppid()
    mine = kind == _RUN and rest.partition(":")[0] == str(run)
    return mine, mine


# --- after a program whose files are still to be made ------------------------------------------------
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
