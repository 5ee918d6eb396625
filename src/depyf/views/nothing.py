"""The index of a run in which nothing was compiled. It is written often, so this imports next to nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..records.environment import versions_and_rank
from .dump.folder import TITLE
from .markdown import prose

NOTHING = "Nothing was compiled: no function under `torch.compile` was called while depyf watched."


def versions(environment: Mapping[str, str]) -> str:
    """Return what the run took place in, as one phrase, for Markdown."""
    return prose(versions_and_rank(environment))


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
