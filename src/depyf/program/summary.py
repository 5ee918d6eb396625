"""The few lines that ``depyf run`` prints after the program."""

from __future__ import annotations

import functools
import operator
import os
import re
import textwrap
from collections import Counter
from collections.abc import Mapping

from .. import budgets
from ..finishing.frames import read_records
from ..reading import contents
from ..records import store
from ..records.model import Capture
from ..records.run_directory import MARK, RANK, RUN, shown
from ..views.causes import breaks_by_place, breaks_by_reason, cause
from ..views.dump.folder import INDEX, PAGE
from ..views.formatting import OUTCOMES, total
from ..views.markdown import count, one_line, unmarked
from ..views.run_index import RunIndex
from ..views.verdict import Totals, verdict

WIDTH = 110
_OURS = re.compile(rf"({RUN}|{RANK})\d+$")


def captures(directory: str, launch: str, known: Mapping[str, Capture]) -> dict[str, Capture]:
    """Return the captures that the processes of a launch wrote to a dump, by folder.

    Args:
        launch: its name in the marks of the folders.
        known: captures that need not be read.
    """
    result = {}
    for folder in _folders(directory):
        try:
            if folder in known:
                result[folder] = known[folder]
            elif f"launch {launch}\n".encode() in contents(os.path.join(folder, MARK), budgets.WRITTEN):
                result[folder] = read_records(folder)
        except (OSError, store.RecordsError):
            continue  # another's, or that process compiled nothing, or is still writing
    return result


def _folders(directory: str) -> list[str]:
    folders, pending = [], [directory]
    while pending:
        folder = pending.pop(0)
        folders.append(folder)
        try:
            names = [name for name in os.listdir(folder) if _OURS.match(name)]
        except OSError:
            continue
        pending += [os.path.join(folder, name) for name in sorted(names, key=lambda name: (len(name), name))]
    return folders


def summary(processes: Mapping[str, Capture]) -> list[str]:
    """Return the summary of at least one process: what was not compiled, if anything.

    Then five lines: what was compiled, breaks, recompiles, where it is, where to start.
    """
    runs = {folder: RunIndex(capture) for folder, capture in processes.items()}
    totals = [Totals.of(run) for run in runs.values()]
    # (Processes have the same functions, and one can have several at a place: two that are written on one line.)
    functions = functools.reduce(operator.or_, (
        Counter((each.title, each.location) for each in run.summaries if each.done) for run in runs.values())).total()
    other = {word: sum(each.outcomes.get(outcome, 0) for each in totals) for outcome, word in OUTCOMES.items()}
    other[OUTCOMES["loaded"]] = sum(
        each.outcome == "loaded" for capture in processes.values() for each in capture.compilations)
    ranks = [folder for folder in processes if os.path.basename(folder).startswith(RANK)]
    calls = total(graph for capture in processes.values() for graph in capture.graphs)
    where = ""
    if len(processes) > 1:
        where = f" on {len(ranks)} ranks" if len(ranks) == len(processes) else f" in {len(processes)} processes"
    sentences = list(dict.fromkeys(sentence for run in runs.values() for sentence in verdict(run)))
    lines = [
        *(line for sentence in sentences for line in textwrap.wrap(
            f"depyf: {unmarked(sentence)}", WIDTH, subsequent_indent="  ", break_long_words=False,
            break_on_hyphens=False)),
        f"depyf: torch.compile made {count(sum(each.graphs for each in totals), 'graph')} of "
        f"{count(functions, 'function')}{f', {calls}' if calls else ''}{where}, "
        f"{sum(each.seconds for each in totals):.1f} s of compiling"
        + "".join(f"; {number} {word}" for word, number in other.items() if number),
        "  graph breaks  " + _breaks(runs),
        "  recompiles    " + _recompiles(runs)]
    top = os.path.dirname(ranks[0]) if ranks else next(iter(processes))
    names = [shown(folder) for folder in processes]
    written = shown(top) + os.sep + (f"{RANK}*" if len(ranks) == len(processes) > 1 else "")
    if len(processes) > 1 and len(ranks) < len(processes):
        written = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    lines.append(f"  written to    {written}")
    if os.path.exists(os.path.join(top, PAGE)):
        start = f"{shown(os.path.join(top, PAGE))} (depyf open {shown(top)}), or: depyf explain {shown(top)}"
    elif os.path.exists(os.path.join(top, INDEX)):
        start = f"{shown(os.path.join(top, INDEX))}, or: depyf explain {shown(top)} (depyf open makes the page)"
    else:
        start = f"depyf explain {shown(top)}"
    return [*lines, f"  start with    {start}"]


def _breaks(runs: Mapping[str, RunIndex]) -> str:
    groups = [(run, members) for run in runs.values()
              for group in breaks_by_reason(run.capture.compilations) for members in breaks_by_place(group)]
    number = sum(len(members) for _, members in groups)
    if not number:
        return "none"
    run, members = groups[0]
    broken = members[0][0]
    where = broken.location
    place = f"{run.short_place(where)}: " if where else ""
    first = f"{place}{one_line(cause(broken))}"
    places = len({(run.short.get(b.location.filename), b.location.line) if b.location else None
                  for run, members in groups for b, _ in members[:1]})
    return f"{number}, first at {first}" if places > 1 or number > 1 else f"1, at {first}"


def _recompiles(runs: Mapping[str, RunIndex]) -> str:
    recompiles = [(run, summary, compilation) for run in runs.values() for summary in run.summaries
                  for compilation in summary.recompiles]
    if not recompiles:
        return "none"
    in_order = [id(compilation) for run in runs.values() for compilation in run.capture.compilations]
    run, summary, compilation = min(recompiles, key=lambda each: in_order.index(id(each[-1])))
    changed = run.changes(compilation)
    what = unmarked(changed[0].row()) if changed else "no version matched a call"
    first = f"{summary.title}: {what}"
    return f"{len(recompiles)}, first of {first}" if len(recompiles) > 1 else f"1, of {first}"
