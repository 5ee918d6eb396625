"""The lines at the end of ``pytest --depyf``."""

from __future__ import annotations

from collections.abc import Sequence

from ..program.summary import shown
from ..views.markdown import count
from .account import Account

#: Tests that are listed one by one.
MOST = 20


def summary(accounts: Sequence[Account], directory: str, troubles: Sequence[str]) -> list[str]:
    """Return what the tests compiled: in all, then each test in which something broke or was compiled again.

    Args:
        accounts: of tests that compiled something.
        directory: of their folders.
        troubles: what could not be recorded, and why.
    """
    lines = [f"not recorded: {trouble}" for trouble in dict.fromkeys(troubles)]
    if not accounts:
        return lines or ["no test compiled anything, so nothing was written"]
    lines.append(f"{count(len(accounts), 'test')} compiled something: " + _numbers(
        sum(each.graphs for each in accounts), sum(each.breaks for each in accounts),
        sum(each.recompiles for each in accounts), sum(each.skipped for each in accounts))
        + f", {sum(each.seconds for each in accounts):.1f} s of compiling")
    worth = [each for each in accounts if not each.well]
    for each in worth[:MOST]:
        first = f" ({each.first})" if each.first else ""
        lines.append(f"  {each.name}: {_numbers(each.graphs, each.breaks, each.recompiles, each.skipped)}{first}")
    if len(worth) > MOST:
        lines.append(f"  ... and {len(worth) - MOST} more")
    example = (worth or accounts)[0]
    return [*lines, f"written to {shown(directory)}, a folder for each test: depyf explain {shown(example.folder)}"]


def _numbers(graphs: int, breaks: int, recompiles: int, skipped: int) -> str:
    parts = [count(graphs, "graph")]
    parts += [count(number, word) for number, word in ((breaks, "graph break"), (recompiles, "recompile")) if number]
    return ", ".join([*parts, f"{skipped} skipped"] if skipped else parts)
