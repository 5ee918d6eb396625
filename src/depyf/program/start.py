"""The start: the interpreter runs it before the program where ``DEPYF_DUMP_DIR`` is set.

It must never keep a program from starting, and cost little where nothing is compiled: torch is not imported here.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping

from ..harmless import say

_begun = False


def begin() -> None:
    """Watch this process, if the environment asks for it; report an error in one line.

    A second call does nothing (Python reads the ``.pth`` files of a virtual environment twice).
    """
    global _begun
    directory = os.environ.get(DIRECTORY, "")
    if _begun or not directory:
        return
    _begun = True
    try:
        from ..records import run_directory
        from .options import Options
        from .watch import Watch

        launch = os.environ.get(LAUNCH, "")
        first, run = role_in_launch(launch)
        if not launch:
            new_launch(os.environ)
        # The program may go elsewhere, and so may those that it starts.
        run_directory.here = os.getcwd()
        directory = os.environ[DIRECTORY] = os.path.abspath(directory)
        try:
            options = Options.read(os.environ.get(OPTIONS, ""))
        except ValueError as error:
            raise ValueError(f"{OPTIONS}: {error}") from None
        Watch(directory, options, first, run).arm()
    except Exception as error:
        say(f"depyf: {DIRECTORY} is set, but the program cannot be watched: {error or type(error).__name__}")


# --- The environment variables by which a program is watched ---
#: Where the dump goes. Unset or empty: nothing is watched.
DIRECTORY = "DEPYF_DUMP_DIR"
OPTIONS = "DEPYF_DUMP_OPTIONS"  #: Options, as on the command line of ``depyf run``.
#: Set by the first process of a program for those that it starts, and by ``depyf run``. It names the launch.
LAUNCH = "DEPYF_DUMP_LAUNCH"
_RUN = "run"


def new_launch(environment: MutableMapping[str, str], run: bool = False) -> None:
    """Set :data:`LAUNCH` to a unique name; ``run``: ``depyf run`` becomes (or starts) the first process."""
    environment[LAUNCH] = ":".join((_RUN if run else "", str(os.getpid()), os.urandom(6).hex()))


def role_in_launch(launch: str) -> tuple[bool, bool]:
    """Return whether a process with this :data:`LAUNCH` is the first, and whether ``depyf run`` started it."""
    if not launch:
        return True, False
    kind, _, rest = launch.partition(":")
    # On Unix ``depyf run`` becomes the program; elsewhere it starts it.
    run = os.getpid() if os.name == "posix" else os.getppid()
    mine = kind == _RUN and rest.partition(":")[0] == str(run)
    return mine, mine
