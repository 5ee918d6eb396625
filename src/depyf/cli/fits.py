"""Run ``depyf fits``: which recorded version of a function would serve a call."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from .terminal import DONE, RUN, add_rank, refused

NOT_SERVED, UNDECIDED = 1, 3


def add(commands: Any) -> None:
    """Add the command to those of the parser."""
    command = commands.add_parser(
        "fits", help="report which version of a function would serve a call",
        description="Compares the recorded conditions of each version of a function with a call: which version serves "
                    "it, or the first condition that fails and the smallest change with which the version would fit. "
                    "A condition on something that was not given is undecided. Needs no torch.",
        epilog="Exit status: 0 served, 1 no version serves the call, 2 nothing that can be read, 3 undecided. "
               "With --sizes: 1 if a size would be compiled again.")
    command.add_argument("path", metavar="PATH", help=RUN)
    command.add_argument("function", metavar="FUNCTION", help="its name (Decoder.forward, forward), or the id of one "
                                                              "of its versions (0/1), also of a resume function")
    command.add_argument("--args", nargs="+", action="extend", default=[], metavar="NAME=VALUE",
                         help="x=f32[3,4] n=4 flag=True mode=\"'train'\" xs=[f32[2],f32[2]] self.training=False; of a "
                              "tensor also x=\"f32[3,4](grad=True, stride=(1,3), device='cuda:0')\"")
    command.add_argument("--state", nargs="+", action="extend", default=[], metavar="NAME=VALUE",
                         help="of torch: grad_mode=True default_dtype=torch.float32 ...")
    command.add_argument("--same", action="store_true",
                         help="take what was not given to be as it was when each version was compiled, unless versions "
                              "differ in it")
    command.add_argument("--sizes", nargs="+", action="extend", default=[], metavar="NAME.DIM=N,N",
                         help="which of these sizes would be compiled again: x.0=1,2,8,16; n=1,2 (a number); "
                              "x.0,y.0=1,2 (both at once)")
    add_rank(command)
    command.set_defaults(run=fits)


def fits(given: argparse.Namespace) -> int:
    """Run ``depyf fits``."""
    from ..fitting.given import described_call, frame_of, known_names, known_state
    from ..fitting.oracle import advice, fit
    from ..fitting.written import NotGiven, answers_by_size, arguments
    from ..recorded_runs import capture_of
    from ..records.store import GUARDS_OF_FILE, NOT_ENDED

    try:
        capture = capture_of(given.path, given.rank)
        frame = frame_of(capture, given.function)
        call = described_call(
            frame, known_names(frame, arguments(given.args)), known_state(frame, arguments(given.state)))
        answer = fit(frame, call, given.same, capture.compilations)
        sizes = answers_by_size(given.sizes, call, lambda changed: fit(
            frame, changed, given.same, capture.compilations))
    except NotGiven as error:
        try:
            known_names(frame, {error.path: None})
        except ValueError as unknown:
            return refused(unknown)
        return refused(f"{error} (--args {error.path}=f32[4,8])")
    except ValueError as error:
        return refused(error)
    print(dataclasses.replace(answer, sizes=sizes), end="")
    asked = [each.served for answers in sizes.values() for each in answers.values()] or [answer.served]
    likely = answer if given.same or None not in asked else fit(frame, call, True, capture.compilations)
    hint = advice(answer, likely) if None in asked else ""
    if hint:
        print(f"\n{hint}")
    for note in (GUARDS_OF_FILE, NOT_ENDED):  # (there may be other versions)
        if note in capture.notes:
            print(f"\n{note[:1].upper()}{note[1:]}.")
    return NOT_SERVED if False in asked else UNDECIDED if None in asked else DONE
