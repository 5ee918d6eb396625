"""What changed at a recompile, and the advice on it."""

from __future__ import annotations

import ast
import re

from ..frozen import frozen
from ..torch_text.parsed import parsed_expression

LIMIT = "`torch._dynamo.config.recompile_limit`"
#: What a version expects of an argument whose ``_base``, the tensor that it is a view of, it looks at.
A_VIEW = "a view of another tensor"
#: A number as text.
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
WHOLE_NUMBER = re.compile(r"-?\d+")
#: A variable, or an attribute of one.
DOTTED = re.compile(r"[A-Za-z_][\w.]*")


@frozen
class ValueChange:
    """What changed at a recompile.

    Attributes:
        subject: in the user's words, ``"x.shape[0]"``.
        was, now: what the versions expected, and what the call had.
        lasts: another call can have the value that a version expects; no bound method can.
        keywords: names of keyword arguments that were given or left out.
        hint: torch's own.
        cause: the user's line because of which torch guards it.
        of_global: it is reached from a global name.
    """

    subject: str
    was: tuple[str, ...]
    now: str
    lasts: bool = True
    keywords: tuple[str, ...] = ()
    hint: str = ""
    cause: str = ""
    of_global: bool = False


@frozen
class RecompileAdvice:
    """What keeps torch from compiling again.

    Attributes:
        text: a clause, code in backticks.
        comes_first: no version serves the next call as long as this is not done, whatever else is.
        is_remedy: it says what to do, and not only that there have to be so many versions.
    """

    text: str
    comes_first: bool = False
    is_remedy: bool = True


def last_part(expression: str) -> str:
    """Return ``['calls']`` of ``self.stats['calls']``, ``.calls`` of ``self.calls``; ``""`` of a variable."""
    match parsed_expression(expression):
        case ast.Attribute(_, name):
            return f".{name}"
        case ast.Subscript(_, key):
            return f"[{ast.unparse(key)}]"
    return ""
