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
from collections import Counter
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
#: Column of the texts next to the names.
_BESIDE = 73
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


def add(commands: Any) -> None:
    """Add the command to those of the parser."""
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


def render(report: Report, width: int) -> str:
    """Return the report for a terminal of ``width`` columns."""
    lines = [f"depyf {__version__}, torch {report.torch or 'none'}, Python {platform.python_version()}"]
    if report.note:
        lines += textwrap.wrap(report.note[0].upper() + report.note[1:], width)
    if report.findings:
        counts = Counter(each.state for each in report.findings)
        text = ", ".join(f"{counts[state]} {state}" for state in ("present", "changed", "missing") if counts[state])
        lines += ["", *textwrap.wrap(f"Names of torch's that depyf uses: {text}", width), ""]
        lines += _table(report.findings, width)
    lines += ["", "Optional", ""]
    for name, use in OPTIONAL.items():
        lines += _entry(f"{name} {_version_of(name)}", use, 24, width)
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    lines += _entry("C++ compiler", f"{compiler or 'none found'} (backend=\"inductor\" on a CPU)", 24, width)
    lines += ["", "For a bug report:", bug_report(report)]
    return "\n".join(lines) + "\n"


def bug_report(report: Report) -> str:
    """Return the report in one line."""
    parts = [f"depyf {__version__}", f"torch {report.torch or 'none'}",
             f"{platform.python_implementation()} {platform.python_version()}", platform.platform()]
    for state in ("missing", "changed") if report.findings else ():
        names = [each.api.name for each in report.findings if each.state == state]
        parts.append(f"{state}: {', '.join(names) or 'none'}")
    return "; ".join(parts)


def _table(findings: tuple[Finding, ...], width: int) -> list[str]:
    """Return names and uses, side by side where there is room; missing and changed ones first."""
    order = {"missing": 0, "changed": 1, "present": 2}
    beside = width >= _BESIDE + 40
    lines = []
    for each in sorted(findings, key=lambda finding: order[finding.state]):
        word = each.state if each.state == "present" else each.state.upper()
        head = f"{word:<9}{each.api.name}"
        if each.state != "present":
            lines.append(head)
            about = [f"for: {each.api.use} (since torch {each.api.since})", f"lost: {each.api.lost}"]
            if each.state == "changed":
                about.append(f"changed: it {each.amiss}")
            for text in about:
                lines += _indented(text, 9, width)
        elif beside and len(head) < _BESIDE:
            lines += _entry(head, each.api.use, _BESIDE, width)
        else:
            lines += [head, *_indented(each.api.use, _BESIDE if beside else 9, width)]
    return lines


def _entry(head: str, text: str, column: int, width: int) -> list[str]:
    """Return a heading, and a text that begins in a column beside it."""
    first, *rest = textwrap.wrap(text, max(width - column, 20)) or [""]
    return [f"{head:<{column - 1}} {first}", *(" " * column + line for line in rest)]


def _indented(text: str, by: int, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, by + 20), initial_indent=" " * by, subsequent_indent=" " * (by + 2))


def _version_of(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def doctor(given: argparse.Namespace) -> int:
    """Run ``depyf doctor``."""
    report = examine()
    sys.stdout.write(render(report, shutil.get_terminal_size().columns))
    return report.status
