"""What changed at a recompile, and the advice on it."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: What a version expects of an argument whose ``_base``, the tensor that it is a view of, it looks at.
A_VIEW = "a view of another tensor"
#: A number as text.
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
WHOLE_NUMBER = re.compile(r"-?\d+")


@dataclass(frozen=True)
class ValueChange:
    """What changed at a recompile.

    Attributes:
        subject: in the user's words, ``"x.shape[0]"``.
        was, now: what the versions expected, and what the call had.
        lasts: another call can have the value that a version expects; no bound method can.
        keywords: names of keyword arguments that were given or left out.
        cause: the user's line because of which torch guards it.
        owner: what torch says it belongs to (:attr:`depyf.records.model.GuardFailure.owner`).
        of_global: it is reached from a global name.
    """

    subject: str
    was: tuple[str, ...]
    now: str
    lasts: bool = True
    keywords: tuple[str, ...] = ()
    cause: str = ""
    owner: str = ""
    of_global: bool = False


@dataclass(frozen=True)
class RecompileAdvice:
    """What keeps torch from compiling again.

    Attributes:
        text: a clause, code in backticks.
        is_remedy: it says what to do, and not only that there have to be so many versions.
    """

    text: str
    is_remedy: bool = True
