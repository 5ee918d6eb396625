"""Facts, what a version says of one object: ``3``, ``None``, ``f32[batch, 4] on cpu``, any ``float``.

Several conditions may be about one object; the fact is what they come to. Facts are what two versions are compared by,
and what a reader learns of an argument.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from .conditions import Condition
from .sizes import Sizes

#: Parts of an object that say how it was made, not what it is.
INTERNALS = re.compile(r"\.__(?:code|defaults|kwdefaults|closure|dict|mro|wrapped)__|\btype\(|\.cell_contents\b")
_QUOTES = "'\""


@dataclass(frozen=True)
class Fact:
    """A fact about an object, as a version wants it.

    Attributes:
        kind: ``"tensor"``, ``"value"``, ``"object"`` (a certain one) or ``"type"``.
        text: in words.
        condition: that says so.
    """

    kind: str
    text: str
    condition: Condition


_WEIGHT = {"tensor": 3, "value": 2, "object": 1, "type": 0}


def facts(known: Iterable[tuple[str, Fact] | None]) -> dict[str, Fact]:
    """Return what holds for each object, by its expression (``len(x)`` is one of its own).

    Args:
        known: what each condition says, as of :func:`fact_of`.
    """
    result: dict[str, Fact] = {}
    for read in known:
        if read is not None:
            subject, fact = read
            if subject not in result or _WEIGHT[result[subject].kind] < _WEIGHT[fact.kind]:
                result[subject] = fact
    return result


def fact_of(condition: Condition, sizes: Sizes) -> tuple[str, Fact] | None:
    """Return the object that a condition decides about, and what it says; ``None`` for other conditions."""
    text, subject = condition.text, condition.subject
    if condition.tensor is not None:
        return subject, Fact("tensor", sizes.described(condition), condition)
    if not subject:
        return None
    for head in (f"{subject} == ", f"{subject} is "):
        if text.startswith(head):
            value = text.removeprefix(head)
            return (subject, Fact("value", value, condition)) if is_literal(value) else None
    if text == f"not {subject}":
        return f"len({subject})", Fact("value", "0", condition)
    length = f"len({subject}) == "
    if text.startswith(length) and text[len(length) :].isdigit():
        return length[:-4], Fact("value", text[len(length) :], condition)
    for kind, words, head in (("type", "any", f"check_type({subject}, "),
                              ("object", "one certain", f"check_same_object({subject}, ")):
        if text.startswith(head):
            return subject, Fact(kind, f"{words} {text[len(head) : -1].strip(_QUOTES)}", condition)
    if text == f"check_same_object({subject})":
        return subject, Fact("object", "one certain object", condition)
    return None


def is_literal(text: str) -> bool:
    """Return whether a text is a value: a literal, a dtype, a member of an enumeration."""
    if re.fullmatch(r"torch\.\w+|torch\.device\('[\w:]+'\)|[A-Za-z_]\w*\.[A-Z]\w*|inf|-inf|nan", text):
        return True
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
    return True


def state_of(conditions: Iterable[Condition]) -> dict[str, str]:
    """Return torch's state as the guards want it: ``{"grad_mode": "False", ...}``."""
    result: dict[str, str] = {}
    for condition in conditions:
        if condition.text.startswith("check_global_state("):
            try:
                call = ast.parse(condition.text, mode="eval").body
            except (ValueError, SyntaxError, MemoryError, RecursionError):  # (records may come from anywhere)
                continue
            if isinstance(call, ast.Call):
                result.update((keyword.arg or "", ast.unparse(keyword.value)) for keyword in call.keywords)
    return result


def state_in_words(name: str, value: str) -> str:
    """Return ``grad mode off``."""
    if name == "autocast":
        return "no autocast" if value == "{}" else f"autocast {value.strip('{}')}".replace("'", "")
    shown = name.replace("_", " ")
    if value in ("True", "False"):
        return f"{shown} {'on' if value == 'True' else 'off'}"
    return f"{shown} {value.removeprefix('torch.')}"
