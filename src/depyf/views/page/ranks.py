"""Several ranks as data of the page: what is told of each before its own data are opened."""

from __future__ import annotations

from collections.abc import Sequence

from .. import ranks as index
from ..markdown import prose, spans
from ..rank_classes import RankClass
from .run import Json


def run_head(run: Json, ranks: RankClass | None) -> Json:
    """Return what the head of the data tells of a run: its name, its numbers, those of its functions.

    Args:
        run: its data.
        ranks: the ranks whose run it is.
    """
    head: Json = {"name": run["name"], "summary": run["summary"], "units": _functions(run)}
    if ranks is not None:
        seconds = [member.seconds for member in ranks.members]
        head |= {"ranks": len(ranks.members), "ended": ranks.ended, "time": index.time_of(ranks),
                 "seconds": [min(seconds), max(seconds)]}
    return head


def _functions(run: Json) -> list[Json]:
    """Return the numbers of functions, those of one name together, and where their graphs break."""
    result: dict[str, Json] = {}
    numbers = ("versions", "graphs", "breaks", "recompiles", "seconds")
    for unit in run["units"]:
        known = result.setdefault(unit["title"], {"title": unit["title"], **dict.fromkeys(numbers, 0), "at": []})
        for name in numbers:
            known[name] += unit[name]
    for reason in run["breaks"]:
        for at in reason["places"]:
            title = at["of"] if at["of"] in result else at["of"].partition(",")[0]
            if title in result:
                result[title]["at"].append(f"{_place(run, at['place'])} {reason['title']}")
    return list(result.values())


def _place(run: Json, place: int) -> str:
    if place < 0:
        return "?"
    file, line = run["places"][2 * place : 2 * place + 2]
    return f"{run['files'][file]['short']}:{line}"


def ranks_head(classes: Sequence[RankClass]) -> Json:
    """Return what the head of the data tells of all ranks: in what they differ, and which are missing."""
    missing = [index.missing_ranks(classes)]
    missing += [f"{each.name[:1].upper()}{each.name[1:]}: {prose(each.trouble, 200)}."
                for each in classes if each.capture is None]
    return {"differences": [spans(line.removeprefix("* ")) for line in index.differences(classes) if line],
            "missing": [spans(sentence) for sentence in missing if sentence]}
