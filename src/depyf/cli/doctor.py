"""Run ``depyf doctor``."""

from __future__ import annotations

import argparse
from typing import Any


def add(commands: Any) -> None:
    """Add the command to those of the parser."""
    command = commands.add_parser(
        "doctor", help="show what depyf finds of the installed torch, and what is lost",
        description="Shows the names of torch's that depyf uses (present, changed, missing), what is lost without "
                    "those that are missing, and a line for a bug report.",
        epilog="Exit status: 0 all are as expected, 1 something is missing or changed, or there is no torch.")
    command.set_defaults(run=doctor)


def doctor(given: argparse.Namespace) -> int:
    """Run ``depyf doctor``."""
    from ..doctor import run

    return run()
