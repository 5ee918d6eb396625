"""``depyf report``: the files of a run again."""

from __future__ import annotations

import argparse
from typing import Any

from .terminal import DONE


def add(commands: Any) -> None:
    """Add the command to those of the parser."""
    command = commands.add_parser(
        "report", help="make the files of a run from its records, a log of TORCH_TRACE or a file that torch saved",
        description="Makes the index and the page of a run again (of a run that was killed, or of all its ranks). With "
                    "-o, makes all files that the records give, also from a log that TORCH_TRACE wrote, or from a "
                    "package of AOTInductor or torch.export.save (.pt2), from caches or compiled functions that "
                    "torch saved. Needs no torch.",
        epilog="Exit status: 0 done, 2 there is nothing that can be read or the output cannot be written.")
    command.add_argument("path", metavar="PATH",
                         help="directory that depyf.prepare_debug wrote, its records.jsonl, a log of TORCH_TRACE, or a "
                         "file that torch saved")
    command.add_argument("-o", "--output", metavar="DIR", help="where all files go (default: only the "
                                                                        "index and the page, beside the records)")
    command.add_argument("--page", action=argparse.BooleanOptionalAction, default=True,
                         help="write the page index.html (default: yes)")
    command.add_argument("--sources", action="store_true",
                         help="read the user's files from this machine's disk where the records have no copy (a log "
                              "has none); the records name the files, so only for those that you trust")
    command.add_argument("--internal-stages", action="store_true",
                         help="write torch's internal graphs, and the texts around them, that a log of TORCH_TRACE has")
    command.set_defaults(run=report)


def report(given: argparse.Namespace) -> int:
    """Run ``depyf report``."""
    from ..report import report as make

    print(make(given.path, given.output, given.page, given.sources, given.internal_stages))
    return DONE
