"""``depyf run``: an unchanged program, watched.

The program is run by a Python of its own, which this process becomes: it is ``__main__``, sees its own arguments, gets
the signals and ends with its own status, as there is nothing of ours around it. What watches is started by the
environment (:mod:`depyf.program`).
"""

from __future__ import annotations

import argparse
import os
import site
import subprocess
import sys
from typing import Any

from ..program import options, start
from .terminal import refused

DIRECTORY = "depyf_output"
PTH = "depyf_start.pth"  #: Installed beside the package: starts depyf where the environment asks for it.


def _add_run(commands: Any) -> None:
    command = commands.add_parser(
        "run", help="run a program and write what torch.compile does with it", allow_abbrev=False,
        usage="depyf run [options] script.py [arguments ...]\n"
              "       depyf run [options] -m module [arguments ...]",
        description="Runs a program as python does, with its arguments, and writes what torch.compile did with it; a "
                    "summary goes to standard error. The program need not be changed. For programs that others start "
                    f"(torchrun, pytest, a server), set {start.DIRECTORY}=DIR instead, and {start.OPTIONS} to "
                    "the options below.",
        epilog="Exit status: that of the program. 2: the directory cannot be used.")
    command.add_argument("-o", "--output", metavar="DIR", default=DIRECTORY,
                         help=f"where the dump goes (default: {DIRECTORY}); an earlier run in it is not overwritten, "
                              "and the new one goes to run_2, run_3, ... in it")
    command.add_argument("-m", dest="module", action="store_true", help="a module, not a file, is run")
    options.add_to(command)
    command.add_argument("program", metavar="script.py | -m module", help="what is run; all that follows is its own")
    command.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    command.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Run ``depyf run``. On Unix it does not return."""
    if not sys.executable:
        return refused("it is not known which Python this is, so no program can be run")
    from ..records.run_directory import DirectoryError, check_directory

    try:
        check_directory(given.output)
    except DirectoryError as error:
        return refused(error)
    environment = dict(os.environ)
    environment[start.DIRECTORY] = os.path.abspath(given.output)
    environment[start.OPTIONS] = options.Options.of(given).text
    start.new_launch(environment, run=True)
    # Where no file beside the packages starts depyf, a folder on the path does.
    places = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    if not any(os.path.exists(os.path.join(place, PTH)) for place in places):
        folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "program", "site")
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (folder, environment.get("PYTHONPATH"))))
    command = [sys.executable, *(["-m"] if given.module else []), given.program, *given.arguments]
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        os.execve(sys.executable, command, environment)
    try:
        return subprocess.call(command, env=environment)
    except KeyboardInterrupt:
        return 130
