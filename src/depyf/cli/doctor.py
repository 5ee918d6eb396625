"""Run ``depyf doctor``."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import importlib.util
import platform
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..guarded import unwarned
from ..values import frozen

if TYPE_CHECKING:
    from ..capture.torch_private.private_api import PrivateApi, State

ALL_THERE, SOMETHING_MISSING = 0, 1
#: Optional modules (by the name of their distribution), and their uses.
OPTIONAL = {
    "triton": "kernels for GPUs (torch.compile writes C++ for CPUs, which needs a compiler)",
    "numpy": "torch.compile of code that uses NumPy",
    "debugpy": "breakpoints from an editor",
}
COMPILERS = ("c++", "g++", "clang++")


@frozen
class Finding:
    """A private API of torch, as the installed torch has it; ``amiss`` says what is wrong with it."""

    api: PrivateApi
    state: State
    amiss: str


@frozen
class Report:
    """The findings of the doctor."""

    torch: str | None  # its version; ``None`` where it is not installed or cannot be imported
    note: str  # about torch: untested, too old, why it cannot be imported
    findings: tuple[Finding, ...] = ()  # one for each private API; none without torch

    @property
    def status(self) -> int:
        """The exit status."""
        fine = self.torch is not None and all(each.state == "present" for each in self.findings)
        return ALL_THERE if fine else SOMETHING_MISSING


def _add_doctor(commands: Any) -> None:
    command = commands.add_parser(
        "doctor", help="show what depyf finds of the installed torch, and what is lost",
        description="Shows the names of torch's that depyf uses (present, changed, missing), what is lost without "
                    "those that are missing, and a line for a bug report.",
        epilog="Exit status: 0 all are as expected, 1 something is missing or changed, or there is no torch.")
    command.set_defaults(run=doctor)


def examine() -> Report:
    """Look at the torch that would be imported here."""
    from ..capture.torch_private import private_api

    if importlib.util.find_spec("torch") is None:
        return Report(None, "torch is not installed (pip install torch): depyf decompile and depyf.decompile work, "
                            "prepare_debug does not.")
    try:
        with unwarned():
            version = str(importlib.import_module("torch").__version__)
    except Exception as error:  # half an installation fails in any way
        return Report(None, f"torch is installed and cannot be imported ({type(error).__name__}: {error}).")
    try:
        note = private_api.support_status(version)
    except private_api.TorchTooOld as error:
        note = str(error)
    with unwarned():
        return Report(version, note, tuple(Finding(api, *api.state()) for api in private_api.TABLE))


_STATES = ("missing", "changed", "present")  #: In the order in which they are listed.


def render(report: Report, width: int) -> str:
    """Return the report for a terminal of ``width`` columns."""
    names = {state: [each.api.name for each in report.findings if each.state == state] for state in _STATES}
    lines = [f"depyf {__version__}, torch {report.torch or 'none'}, Python {platform.python_version()}"]
    if report.note:
        lines += textwrap.wrap(report.note[0].upper() + report.note[1:], width)
    if report.findings:
        text = ", ".join(f"{len(names[state])} {state}" for state in reversed(_STATES) if names[state])
        lines += ["", *textwrap.wrap(f"Names of torch's that depyf uses: {text}", width), ""]
    for each in sorted(report.findings, key=lambda each: _STATES.index(each.state)):
        if each.state == "present":
            lines += _entry(f"present  {each.api.name}", each.api.use, 9, width)
        else:
            lines += _entry(f"{each.state.upper():<9}{each.api.name}",
                            f"for: {each.api.use} (since torch {each.api.since})", 9, width)
            lines += _entry("", f"lost: {each.api.lost}", 9, width)
            lines += _entry("", f"changed: it {each.amiss}", 9, width) if each.state == "changed" else []
    lines += ["", "Optional", ""]
    for name, use in OPTIONAL.items():
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = "not installed"
        lines += _entry(f"{name} {version}", use, 24, width)
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    lines += _entry("C++ compiler", f"{compiler or 'none found'} (backend=\"inductor\" on a CPU)", 24, width)
    parts = [f"depyf {__version__}", f"torch {report.torch or 'none'}",
             f"{platform.python_implementation()} {platform.python_version()}", platform.platform()]
    parts += (f"{state}: {', '.join(names[state]) or 'none'}" for state in _STATES[:2] if report.findings)
    return "\n".join([*lines, "", "For a bug report:", "; ".join(parts)]) + "\n"


def _entry(head: str, text: str, column: int, width: int) -> list[str]:
    """Return a heading, and a text that begins in a column: beside it where there is room, else below."""
    lines = [" " * column + line for line in textwrap.wrap(text, max(width - column, 20))]
    if len(head) >= column:
        return [head, *lines]
    return [f"{head:<{column}}{lines[0][column:]}", *lines[1:]] if head else lines


def doctor(given: argparse.Namespace) -> int:
    """Run ``depyf doctor``."""
    report = examine()
    sys.stdout.write(render(report, shutil.get_terminal_size().columns))
    return report.status
