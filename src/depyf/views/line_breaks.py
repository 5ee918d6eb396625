"""Long expressions on several lines."""

from __future__ import annotations

import io
import re
import tokenize
from functools import lru_cache

from ..decompiler.emit.layout import WIDTH

_OPERATORS = {"and", "or", "is", "in", "not", "if", "else", "for", "==", "!=", "<=", ">=", "<", ">"}
#: What a break at a dot costs against one at an operator or a comma, in levels of nesting.
_DOT = 100


def broken(text: str, indent: int) -> list[str]:
    """Return an expression as lines of at most ``WIDTH`` columns.

    They stand inside of parentheses, so that it may be broken between any two tokens; it is where the fewest brackets
    are open.

    Args:
        indent: of the first line; the others have four columns more.
    """
    if len(text) + indent <= WIDTH:
        return [" " * indent + text]
    lines: list[str] = []
    room = WIDTH - indent
    longest = room - 12  # (a longer string becomes several, which Python reads as one)
    rest = _LONG_STRING.sub(lambda match: match[0] if len(match[0]) <= longest else _parts(match[0], longest), text)
    while len(rest) > room:
        points = [point for point in _breaks(rest) if 0 < point[1] and len(rest[: point[1]].rstrip()) <= room]
        if not points:
            break
        cost = min(cost for cost, _ in points)
        at = max(at for each, at in points if each == cost)
        lines.append(rest[:at].rstrip())
        rest = rest[at:].lstrip()
        room = WIDTH - indent - 4
    lines.append(rest)
    return [" " * (indent + 4 * (number > 0)) + line for number, line in enumerate(lines)]


@lru_cache(maxsize=4096)
def _breaks(text: str) -> tuple[tuple[int, int], ...]:
    """Return ``(cost, position)`` of the places where a text may be broken."""
    result: list[tuple[int, int]] = []
    depth, before = 0, ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.start[0] > 1:
                break
            begin, end = token.start[1], token.end[1]
            if token.string in _OPERATORS and not (token.string in ("in", "not") and before in ("not", "is", "and")):
                result.append((depth, begin))
            elif token.string in ("(", "[", "{"):
                depth += 1
                if token.string != "[":
                    result.append((depth, end))
            elif token.string in (")", "]", "}"):
                depth -= 1
            elif token.string == ",":
                result.append((depth, end))
            elif token.type == tokenize.STRING and before.endswith(("'", '"')):
                result.append((depth, begin))
            elif token.string == "." and token.type == tokenize.OP:
                result.append((depth + _DOT, begin))
            before = token.string
    except (tokenize.TokenError, SyntaxError, IndentationError):
        pass  # what came before it counts
    return tuple(result)


_LONG_STRING = re.compile(r"(?<![\w'\"])(?P<quote>['\"])(?:\\.|(?!(?P=quote))[^\\\n])*(?P=quote)(?!['\"])")
_CHARACTER = re.compile(r"\\(?:x..|u....|U.{8}|N\{[^}]*\}|[0-7]{1,3}|.)|[^\\]")


def _parts(literal: str, longest: int) -> str:
    quote, parts, part = literal[0], [], ""
    for each in _CHARACTER.findall(literal[1:-1]):
        if len(part) + len(each) + 2 > longest:
            parts.append(part)
            part = ""
        part += each
    return " ".join(f"{quote}{each}{quote}" for each in [*parts, part])
