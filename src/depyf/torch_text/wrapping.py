"""Long statements and comments of generated code, broken at a column.

Statements have the form of torch's prints: one a line, no comment after it, strings in simple quotes. The syntax tree
is unchanged. Parts that cannot be broken (a name longer than a line) remain long.
"""

from __future__ import annotations

import bisect
import io
import re
import textwrap
import tokenize
from collections.abc import Iterator
from functools import lru_cache

from ..decompiler.emit.layout import WIDTH

INDENT = 4

_MARKS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|\'[^\'\\]*(?:\\.[^\'\\]*)*\'|[()\[\]{},]')
_ASSIGNED = re.compile(r'(?P<target>\w+)(?P<annotation>: "(?:[^"\\]|\\.)*")? = (?P<value>.*)$')
_UNPACKED = re.compile(r"(?P<targets>(?:\w+, ?)+) ?= (?P<value>.*)$")


def wrapped(code: str, indent: int) -> list[str]:
    """Return the lines of one statement at an indentation."""
    line = " " * indent + code
    if len(line) <= WIDTH:
        return [line]
    opened, begin, end = 0, 0, 0  # The longest brackets: `f(` / the arguments, as many a line as fit / `)`.
    for letter, place in top_level(code):
        if letter in "([{":
            opened = place
        elif letter in ")]}" and place - opened > end - begin and indent + opened < WIDTH:
            begin, end = opened, place
    if end - begin >= 2:
        return [" " * indent + code[: begin + 1], *_filled(code[begin + 1 : end], indent + INDENT),
                *wrapped(code[end:], indent)]
    if match := _UNPACKED.match(code):  # after the targets: `a, b, = f(x)`
        return [" " * indent + "(", *_filled(match["targets"].rstrip(), indent + INDENT),
                *wrapped(f") = {match['value']}", indent)]
    return _in_parentheses(code, indent) or [line]


def comment(text: str, indent: int = 0, deeper: int = 4) -> list[str]:
    """Return a comment as lines, all but the first of them ``deeper`` columns further to the right."""
    mark = " " * indent + "# "
    return prose(text, mark, mark + " " * deeper)


def prose(text: str, first: str, others: str) -> list[str]:
    """Return words as lines that begin with these texts. A path that does not fit is broken after a folder."""
    if len(first) + len(text) <= WIDTH:
        return [first + text]
    lines: list[str] = []
    for line in textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=others, break_long_words=False,
                              break_on_hyphens=False):
        while len(line) > WIDTH:
            place = line.rfind("/", len(others) + 4, WIDTH) + 1 or WIDTH
            lines.append(line[:place])
            line = others + line[place:]
        lines.append(line)
    return lines


def top_level(text: str) -> Iterator[tuple[str, int]]:
    """Yield each comma and bracket of a text that is in no other bracket, with its place."""
    depth = 0
    for mark in _MARKS.finditer(text):
        letter = mark[0]
        closes = letter in ")]}" and depth > 0
        depth -= closes
        if depth == 0 and (closes or letter in "([{,"):
            yield letter, mark.start()
        depth += letter in "([{"


def items(text: str) -> list[str]:
    """Return the parts of a text between commas that are in no bracket."""
    commas = [place for letter, place in top_level(text) if letter == ","]
    parts = [text[begin:end].strip() for begin, end in zip([0, *(each + 1 for each in commas)], [*commas, None])]
    return parts if parts[-1] else parts[:-1]


def _filled(inner: str, indent: int) -> list[str]:
    """Return the items of brackets, as many a line as fit."""
    parts = [f"{part}," for part in items(inner)]
    if parts and not inner.rstrip().endswith(","):
        parts[-1] = parts[-1][:-1]
    lines: list[str] = []
    line = ""
    for part in parts:
        if line and indent + len(line) + 1 + len(part) <= WIDTH:
            line = f"{line} {part}"
            continue
        if line:
            lines.append(" " * indent + line)
        *before, last = broken(part, indent)
        lines += before
        line = last[indent:]
    return [*lines, " " * indent + line] if line else lines


def _in_parentheses(code: str, indent: int) -> list[str]:
    """Put the value into parentheses, and an annotation that is longer than a line."""
    margin = " " * indent
    if code.startswith("return ") and not code.startswith("return ("):
        return [f"{margin}return (", *broken(code[len("return ") :], indent + INDENT), f"{margin})"]
    match = _ASSIGNED.match(code)
    if match is None or match["annotation"] is None and match["value"][:1] == "(" and match["value"][-1:] == ")":
        return []
    target, annotation = match["target"], match["annotation"] or ""
    end = [*broken(match["value"], indent + INDENT), f"{margin})"]
    if indent + len(target) + len(annotation) + 4 <= WIDTH:
        return [f"{margin}{target}{annotation} = (", *end]
    return [f"{margin}{target}: (", *broken(annotation[2:], indent + INDENT), f"{margin}) = (", *end]


# --- graphs as Python --------------------------------------------------------------------------------
#: Above a graph that is a comment.
NOT_PYTHON = "# (torch printed this graph in a form that is not Python)"


def legal_graph(text: str) -> str:
    """Torch's print of a graph as Python: some of its classes are called ``<lambda>``.

    Text that is not Python even then becomes a comment.
    """
    if "class <" in text:
        text = re.sub(r"(?m)^(\s*)class <(\w+)>", r"\1class \2_", text)
    text = text.strip("\n") + "\n"
    try:
        # (A tree of a large graph is half a million objects, among which the collector then looks for cycles.)
        compile(text, "<graph>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return f"{NOT_PYTHON}\n" + "".join(f"# {line}\n" for line in text.splitlines())
    return text


# --- Long expressions on several lines ---------------------------------------------------------------
_OPERATORS = {"and", "or", "is", "in", "not", "if", "else", "for", "==", "!=", "<=", ">=", "<", ">"}
_ARITHMETIC = {"+", "-", "*", "**", "/", "//", "%", "@", "&", "|", "^", "<<", ">>"}
#: The cost of a break at arithmetic, at a dot or after `[` against one at another operator or a comma, in levels of
#: nesting.
_AT_ARITHMETIC, _AT_DOT, _IN_INDEX = 100, 200, 300


def broken(text: str, indent: int) -> list[str]:
    """Return an expression as lines of at most ``WIDTH`` columns, where the fewest brackets are open.

    They are inside of brackets, so that it may be broken between any two tokens. All but the first line are four
    columns further to the right, for each bracket that is open there.
    """
    if len(text) + indent <= WIDTH:
        return [" " * indent + text]
    lines: list[str] = []
    room = WIDTH - indent
    longest = room - 12  # (a longer string becomes several, which Python reads as one)
    rest = _LONG_STRING.sub(lambda match: match[0] if len(match[0]) <= longest else _parts(match[0], longest), text)
    breaks = _breaks(rest) if len(rest) > room else ()
    begin = following = 0
    margins = [indent]
    while len(rest) - begin > room:
        points = []
        while following < len(breaks) and len(rest[begin : breaks[following][1]].rstrip()) <= room:
            cost, at = breaks[following]
            points += [(cost, -at)] * (at > begin)
            following += 1
        if not points:
            break
        cost, place = min(points)
        at = -place
        lines.append(rest[begin:at].rstrip())
        begin = len(rest) - len(rest[at:].lstrip())
        following = bisect.bisect_right(breaks, begin, key=lambda each: each[1])
        margins.append(indent + INDENT * max(1, cost % _AT_ARITHMETIC))
        room = WIDTH - margins[-1]
    lines.append(rest[begin:])
    return [" " * margin + line for margin, line in zip(margins, lines)]


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
                result.append((depth + (_IN_INDEX if token.string == "[" else 0), end))
            elif token.string in (")", "]", "}"):
                depth -= 1
            elif token.string == ",":
                result.append((depth, end))
            elif token.type == tokenize.STRING and before.endswith(("'", '"')):
                result.append((depth, begin))
            elif token.string in _ARITHMETIC:
                result.append((depth + _AT_ARITHMETIC, begin))
            elif token.string == "." and token.type == tokenize.OP:
                result.append((depth + _AT_DOT, begin))
            before = token.string
    except (tokenize.TokenError, SyntaxError, IndentationError):
        pass  # what came before it counts
    return tuple(result)


_LONG_STRING = re.compile(r"(?<![\w'\"])(?P<quote>['\"])(?:\\.|(?!(?P=quote))[^\\\n])*(?P=quote)(?!['\"])")
_CHARACTER = re.compile(r"\\(?:x..|u....|U.{8}|N\{[^}]*\}|[0-7]{1,3}|.)|[^\\]")


def _parts(literal: str, longest: int) -> str:
    """Return a string literal as several next to each other."""
    quote, parts, part = literal[0], [], ""
    for each in _CHARACTER.findall(literal[1:-1]):
        if len(part) + len(each) + 2 > longest:
            parts.append(part)
            part = ""
        part += each
    return " ".join(f"{quote}{each}{quote}" for each in [*parts, part])
