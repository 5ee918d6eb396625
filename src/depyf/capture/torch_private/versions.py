"""Versions of torch that the tool was tried with, and what is said about others.

What works on a torch is decided by what it has (:mod:`depyf.capture.torch_private.private_api`), never by its
number. The numbers are here for people: results on an untried torch are worth a second look.
"""

from __future__ import annotations

import string

#: The oldest and the newest of them, and some between.
TESTED: tuple[tuple[int, int], ...] = ((2, 6), (2, 9), (2, 11), (2, 13), (2, 15))
#: Older ones are refused: up to 2.1 Dynamo keeps its list of what not to compile elsewhere, and our own functions
#: would be compiled with the user's.
OLDEST = (2, 2)

_warned: set[str] = set()


class TorchTooOld(RuntimeError):
    """The torch that is installed cannot be watched; the message says what to do."""


def numbers(version: str) -> tuple[int, int] | None:
    """``2.13.0+cpu`` -> ``(2, 13)``; ``None`` for what is no version."""
    major, _, rest = version.partition(".")
    minor = rest[: len(rest) - len(rest.lstrip(string.digits))]
    return (int(major), int(minor)) if major.isdecimal() and minor else None


def support_status(version: str) -> str:
    """One line about a torch that the tool was not tried with; ``""`` for one that it was.

    Raises:
        TorchTooOld: it is older than :data:`OLDEST`.
    """
    release = numbers(version)
    if release is None or release in TESTED:
        return ""
    if release < OLDEST:
        raise TorchTooOld(
            f"depyf cannot watch torch {version}: it needs {_text(OLDEST)} or later, and is tested with "
            f"{_text(TESTED[0])} to {_text(TESTED[-1])}. Run: pip install --upgrade torch")
    if release > TESTED[-1]:
        return (f"torch {version} is newer than the newest that this depyf was tested with "
                f"({_text(TESTED[-1])}); `depyf doctor` shows what is different")
    if release < TESTED[0]:
        return (f"torch {version} is older than the oldest that this depyf was tested with "
                f"({_text(TESTED[0])}); `depyf doctor` shows what is missing")
    return ""  # between two that were


def warn_once(text: str) -> bool:
    """Note that a text is said; return whether it had not been said in this process."""
    new = text not in _warned
    _warned.add(text)
    return new


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
