"""Why a graph broke, in one sentence, in the words of the program that did it.

Torch names the kind of each break (``GB0170``, "Data-dependent branching") and explains it in general. Here the kinds
that programs meet most are said of the line at hand; for every other kind torch's heading is the sentence.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable

from ..capture.records import GraphBreak

_QUOTED = r"`(?P<what>[^`]+)`"


def cause(found: GraphBreak) -> str:
    """Return why the graph broke, as the end of a sentence: "its branch depends on values in a tensor".

    Names of the program stand in backticks, as in torch's sentences.
    """
    for heading, say in _KINDS:
        if re.search(heading, found.reason):
            said = say(found)
            if said:
                return said
    return found.reason.rstrip(".") or "torch gives no reason"


def statement(line: str) -> str:
    """A line of the user's as it reads in a sentence: ``if x.abs().max() > 3.0``."""
    text = line.strip()
    return text[:-1].rstrip() if text.endswith(":") else text


def _in(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found["what"] if found else ""


def _named(template: str, pattern: str = _QUOTED) -> Callable[[GraphBreak], str]:
    """A sentence with the name that torch's explanation gives; none where it gives none."""

    def say(found: GraphBreak) -> str:
        name = _in(pattern, found.explanation)
        return template.format(name) if name else ""

    return say


def _always(sentence: str) -> Callable[[GraphBreak], str]:
    return lambda found: sentence


def _graph_break(found: GraphBreak) -> str:
    message = found.explanation.partition("Message: ")[2].strip().rstrip(".")
    asked = "the program asks for a graph break here (`torch._dynamo.graph_break()`)"
    return asked if message in ("", "None") else f"{asked}: {message}"


def _method(found: GraphBreak) -> str:
    names = re.search(r"method `([^`]+)` of class `([^`]+)`", found.explanation)
    return f"torch cannot trace the method `{names[1]}` of `{names[2]}`" if names else ""


def _builtin(found: GraphBreak) -> str:
    name = _in(_QUOTED, found.explanation)
    if name == "print":
        return "a graph cannot `print`"
    return f"torch cannot trace the built-in `{name}`" if name else ""


#: Torch's headings (torch/_dynamo/graph_break_registry.json), and what to say of each.
_KINDS: tuple[tuple[str, Callable[[GraphBreak], str]], ...] = (
    (r"^Data-dependent (branching|jump)", _always(
        "which branch is taken depends on values in a tensor, and a graph has none while it is captured")),
    (r"^Unsupported Tensor\.item\(\)", _always(
        "`.item()` needs a value out of a tensor, and a graph has none while it is captured")),
    (r"^Unsupported Tensor\.backward\(\)", _always("torch does not trace `.backward()`")),
    (r"^Data-dependent", _always("it depends on values in a tensor, and a graph has none while it is captured")),
    (r"^Call to `torch\._dynamo\.graph_break\(\)`", _graph_break),
    (r"^Failed to trace builtin operator", _builtin),
    (r"^Attempted to (call|inline) function marked as skipped",
     _named("torch does not trace `{}`", r"function `(?P<what>[^`]+)`")),
    (r"^Unsupported method call", _method),
    (r"^Unsupported context manager", _named("torch cannot enter the context manager `{}`")),
    (r"^Dynamic shape operator", _named("the size of what `{}` returns depends on values in a tensor")),
    (r"^Attempted to copy\.deepcopy a tensor", _always("torch cannot trace `copy.deepcopy` of a tensor")),
    (r"^Attempted to wrap RNN", _always("torch does not trace `nn.RNN`, `nn.GRU` and `nn.LSTM`")),
    (r"^Backend compiler exception|^Backend compiler failed", _always("the backend could not compile the graph")),
)


def sentences(breaks: Iterable[GraphBreak]) -> list[str]:
    """Where and why a graph ends before the function does, a sentence for each break."""
    found = []
    for each in breaks:
        where = each.location
        at = f" at {os.path.basename(where.filename)}:{where.line} ({statement(where.text)})" if where else ""
        found.append(f"graph break{at}: {cause(each)}")
    return found
