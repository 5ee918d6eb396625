"""Run ``depyf repro``: one compilation of a dump as a program that runs alone."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from .terminal import DONE, RUN, add_rank, refused


def add(commands: Any) -> None:
    """Add the command to those of the parser."""
    command = commands.add_parser(
        "repro", help="write one compilation as a program that runs alone",
        description="Writes a program that needs nothing but torch: the captured graph of one compilation, inputs of "
                    "the recorded sizes, strides and dtypes (their numbers are random), its guards as comments, and "
                    "the check of the backend against eager PyTorch. Needs no torch itself.",
        epilog="Exit status: 0 done, 2 nothing that can be read, or the program cannot be written.")
    command.add_argument("path", metavar="PATH", help=RUN)
    command.add_argument("compilation", metavar="ID", help="id of a compilation (0/1) or name of a graph "
                                                           "(__compiled_fn_3)")
    command.add_argument("-o", "--output", metavar="FILE", help="the program (default: repro_0_1.py; - for standard "
                                                                "output)")
    command.add_argument("--backend", default="", help="the one that the program checks by default (default: the "
                                                       "recorded one)")
    command.add_argument("--force", action="store_true", help="overwrite the file")
    add_rank(command)
    command.set_defaults(run=repro)


def repro(given: argparse.Namespace) -> int:
    """Run ``depyf repro``."""
    from ..recorded_runs import capture_of
    from ..views.repro import NotReproducible
    from ..views.repro import repro as program

    try:
        text = program(capture_of(given.path, given.rank), given.compilation, given.backend)
    except NotReproducible as error:
        return refused(error)
    name = given.output or f"repro_{given.compilation.strip('[]').replace('/', '_')}.py"
    if name == "-":
        sys.stdout.write(text)
        return DONE
    if os.path.exists(name) and not given.force:
        return refused(f"{name} is there already; give another with -o, or --force")
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"{name}: python {name} [BACKEND]")
    return DONE
