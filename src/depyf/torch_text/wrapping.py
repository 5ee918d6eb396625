"""Long statements and comments of generated code, broken at a column.

Only the form of torch's prints is known here: one statement a line, no comment behind it, strings in simple quotes. The
text that comes out is the same syntax tree. What cannot be broken (a name longer than a line) stays long.
"""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Callable, Iterator
from functools import lru_cache

from ..decompiler.emit.layout import WIDTH

INDENT = 4

_MARKS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|\'[^\'\\]*(?:\\.[^\'\\]*)*\'|[()\[\]{},]')
_STRING = re.compile(r'(?P<before>\w+ = )?(?P<string>"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\')(?P<after>,?)$')
_ASSIGNED = re.compile(r'(?P<target>\w+)(?P<annotation>: "(?:[^"\\]|\\.)*")? = (?P<value>.*)$')
_UNPACKED = re.compile(r"(?P<targets>(?:\w+, ?)+) ?= (?P<value>.*)$")
_OPERATOR = re.compile(r" (?:[-+*/%@&|^<>]|//|\*\*|<<|>>|[<>=!]=) ")


def wrapped(code: str, indent: int) -> list[str]:
    """Return the lines of one statement at an indentation."""
    if indent + len(code) <= WIDTH:  # (most do)
        return [" " * indent + code]
    return _first(code, indent, _in_brackets, _of_names, _in_parentheses)


def _inside(code: str, indent: int) -> list[str]:
    """Return the same for a part of a statement that stands in brackets already, a comma behind it."""
    return _first(code, indent, _in_brackets, _of_string, _at_operator)


def _first(code: str, indent: int, *forms: Callable[[str, int], list[str]]) -> list[str]:
    if indent + len(code) <= WIDTH:
        return [" " * indent + code]
    return next(filter(None, (form(code, indent) for form in forms)), [" " * indent + code])


def comment(text: str, indent: int = 0, deeper: int = 4) -> list[str]:
    """Return a comment as lines.

    Args:
        text: without the mark.
        indent: of the comment.
        deeper: how much deeper all lines but the first are.
    """
    mark = " " * indent + "# "
    return prose(text, mark, mark + " " * deeper)


def prose(text: str, begin: str, behind: str) -> list[str]:
    """Return words as lines. A path that does not fit is broken behind one of its folders.

    Args:
        text: the words.
        begin: what the first line begins with.
        behind: what the others begin with.
    """
    if len(begin) + len(text) <= WIDTH:
        return [begin + text]
    lines: list[str] = []
    for line in textwrap.wrap(text, WIDTH, initial_indent=begin, subsequent_indent=behind, break_long_words=False,
                              break_on_hyphens=False):
        while len(line) > WIDTH:
            place = line.rfind("/", len(behind) + 4, WIDTH) + 1 or WIDTH
            lines.append(line[:place])
            line = behind + line[place:]
        lines.append(line)
    return lines


def top_level(text: str) -> Iterator[tuple[str, int]]:
    """Yield each comma and each bracket of a text that lies in no other bracket, with its place."""
    depth = 0
    for mark in _MARKS.finditer(text):
        letter = mark[0]
        if letter in "([{":
            if depth == 0:
                yield letter, mark.start()
            depth += 1
        elif letter in ")]}" and depth:
            depth -= 1
            if depth == 0:
                yield letter, mark.start()
        elif letter == "," and depth == 0:
            yield letter, mark.start()


def items(text: str) -> list[str]:
    """Return the parts of a text between commas that lie in no bracket."""
    parts, begin = [], 0
    for letter, place in top_level(text):
        if letter == ",":
            parts.append(text[begin:place].strip())
            begin = place + 1
    last = text[begin:].strip()
    return [*parts, last] if last else parts


def _in_brackets(code: str, indent: int) -> list[str]:
    """Break the longest brackets that begin on the line.

    ``f(`` / the arguments, as many a line as fit / ``)``.
    """
    opened, longest = 0, (0, 0)
    for letter, place in top_level(code):
        if letter in "([{":
            opened = place
        elif letter in ")]}" and place - opened > longest[1] - longest[0] and indent + opened < WIDTH:
            longest = opened, place
    begin, end = longest
    if end - begin < 2:
        return []
    inner = code[begin + 1 : end]
    return [" " * indent + code[: begin + 1], *_filled(inner, indent + INDENT), *wrapped(code[end:], indent)]


def _filled(inner: str, indent: int) -> list[str]:
    parts = items(inner)
    comma = "," if inner.rstrip().endswith(",") else ""
    lines: list[str] = []
    line = ""
    for number, part in enumerate(parts):
        part += "," if number + 1 < len(parts) else comma
        longer = f"{line} {part}" if line else part
        if indent + len(longer) <= WIDTH:
            line = longer
            continue
        if line:
            lines.append(" " * indent + line)
        line = part
        if indent + len(part) > WIDTH:
            lines += _inside(part, indent)
            line = ""
    return [*lines, " " * indent + line] if line else lines


def _of_names(code: str, indent: int) -> list[str]:
    """Break behind the targets: ``a, b, = f(x)``."""
    match = _UNPACKED.match(code)
    if match is None:
        return []
    return [" " * indent + "(", *_filled(match["targets"].rstrip(), indent + INDENT),
            *wrapped(f") = {match['value']}", indent)]


def _in_parentheses(code: str, indent: int) -> list[str]:
    """Break behind the annotation.

    ``x: "f32[2]" = (`` / the value / ``)``; the annotation in parts where it is longer than a line.
    """
    match = _ASSIGNED.match(code)
    if match is None:
        if not code.startswith("return ") or code.startswith("return ("):
            return []
        return [" " * indent + "return (", *_inside(code[len("return ") :], indent + INDENT), " " * indent + ")"]
    target, annotation, value = match["target"], match["annotation"] or "", match["value"]
    if value.startswith("(") and value.endswith(")") and not annotation:
        return []
    end = [*_inside(value, indent + INDENT), " " * indent + ")"]
    if indent + len(target) + len(annotation) + 4 <= WIDTH:
        return [f"{' ' * indent}{target}{annotation} = (", *end]
    parts = _of_string(annotation[2:], indent + INDENT) or [" " * (indent + INDENT) + annotation[2:]]
    return [f"{' ' * indent}{target}: (", *parts, " " * indent + ") = (", *end]


def _of_string(code: str, indent: int) -> list[str]:
    """Break one string into several that follow each other."""
    match = _STRING.match(code)
    if match is None:
        return []
    inner = indent + INDENT if match["before"] else indent
    text, size = ast.literal_eval(match["string"]), WIDTH - inner - 12
    pieces, begin = [], 0
    while begin < len(text):
        end = begin + size
        while len(repr(text[begin:end])) > size + 10 and end > begin + 1:
            end -= 1
        pieces.append(_quoted(text[begin:end], match["string"][0]))
        begin = end
    if match["before"]:
        return [f"{' ' * indent}{match['before']}(", *(" " * inner + piece for piece in pieces),
                f"{' ' * indent}){match['after']}"]
    return [" " * inner + piece for piece in pieces[:-1]] + [" " * inner + pieces[-1] + match["after"]]


def _quoted(text: str, quote: str) -> str:
    shown = repr(text)
    return f'"{shown[1:-1]}"' if quote == '"' and shown[0] == "'" and '"' not in shown else shown


def _at_operator(code: str, indent: int) -> list[str]:
    """Break before an operator: ``a`` / ``+ b``."""
    depth, cut = 0, 0
    for mark in re.finditer(rf"{_MARKS.pattern}|{_OPERATOR.pattern}", code):
        letter = mark[0]
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0 and letter.startswith(" ") and indent + mark.start() <= WIDTH:
            cut = mark.start()
    if not cut:
        return []
    return [" " * indent + code[:cut], *_inside(code[cut + 1 :], indent)]


# --- graphs as Python --------------------------------------------------------------------------------
#: Above a graph that is a comment.
NOT_PYTHON = "# (torch printed this graph in a form that is not Python)"


def legal_graph(text: str) -> str:
    """Torch's print of a graph as Python: some of its classes are called ``<lambda>``.

    What is not Python even then becomes a comment.
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
#: What a break at a dot costs against one at an operator or a comma, in levels of nesting.
_DOT = 100


def broken(text: str, indent: int) -> list[str]:
    """Return an expression as lines of at most ``WIDTH`` columns.

    They are inside of parentheses, so that it may be broken between any two tokens; it is where the fewest brackets
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
