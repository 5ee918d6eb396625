"""The start: what the interpreter runs before the program, where ``DEPYF_DUMP_DIR`` is set.

It must never keep a program from starting, and a program that does not compile anything pays for little: nothing of
torch's is imported here.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..harmless import say
from . import variables

if TYPE_CHECKING:
    from .watch import Watch

#: What watches this process, once :func:`begin` was called.
watch: Watch | None = None


def begin() -> None:
    """Watch this process, if the environment asks for it.

    Whatever goes wrong is said in one line; called twice, it does nothing.
    """
    global watch
    directory = os.environ.get(variables.DIRECTORY, "")
    if watch is not None or not directory:
        return
    try:
        from .options import Options
        from .watch import Watch

        launch = os.environ.get(variables.LAUNCH, "")
        first, run = variables.role_in_launch(launch)
        if not launch:
            variables.new_launch(os.environ)
        # The program may go elsewhere, and so may those that it starts.
        directory = os.environ[variables.DIRECTORY] = os.path.abspath(directory)
        watch = Watch(directory, Options.read(os.environ.get(variables.OPTIONS, "")), first, run)
        watch.arm()
    except Exception as error:
        say(f"depyf: {variables.DIRECTORY} is set, but the program cannot be watched: {error or type(error).__name__}")
