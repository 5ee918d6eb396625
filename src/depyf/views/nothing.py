"""The index of a run in which nothing was compiled. It is written often, so this imports next to nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .markdown import prose

NOTHING = "Nothing was compiled: no function under `torch.compile` was called while depyf watched."
TITLE = "# What torch.compile did"


def versions(environment: Mapping[str, str]) -> str:
    """Return what the run took place in, as one phrase: versions, and the rank where there are several."""
    names = {"torch": "torch", "python": "Python"}
    known = [f"{name} {environment[key]}" for key, name in names.items() if environment.get(key)]
    if "world_size" in environment:
        known.append(f"rank {environment.get('rank', '?')} of {environment['world_size']}")
    return prose(", ".join(known))


def index_of_nothing(environment: Mapping[str, str], notes: Sequence[str], trouble: str = "") -> str:
    """Return the text of ``index.md``.

    Args:
        environment: of the run.
        notes: on the run.
        trouble: why the run was not watched, where that failed.
    """
    lines = [TITLE, "", f"{f'depyf did not watch this run: {prose(trouble)}' if trouble else NOTHING} "
                        f"({versions(environment)})"]
    if notes:
        lines += ["", "## Notes", "", *(f"* {prose(note, 300)}" for note in notes)]
    return "\n".join(lines) + "\n"
