"""A copy of the user's source of which every line fits.

Comments, docstrings and statements that are too long are broken, and the content is unchanged.

::

    x = f(  # a comment that is too long for the line that it stands behind
        "a string that is too long for its line")

    # a comment that is too long for the
    # line that it stands behind
    x = f(
        "a string that is too long "
        "for its line",
    )

The syntax tree is the same, but for line breaks in docstrings; else the text is left as it is.
"""

from __future__ import annotations

import ast
import copy
import io
import textwrap
import tokenize
from collections.abc import Iterator

from ...decompiler.emit.layout import laid_out
from ...torch_text.wrapping import WIDTH, comment


def with_short_lines(text: str) -> str:
    """Return the source with its long lines broken; one that this Python cannot read is left as it is."""
    if max(map(len, text.splitlines()), default=0) <= WIDTH:
        return text
    try:
        broken = text
        for breaks in (_break_comments, _break_texts, _break_statements):
            lines = broken.split("\n")
            breaks(broken, lines)
            broken = "\n".join(lines)
        return broken if _meaning(broken) == _meaning(text) else text
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
        return text


def _meaning(text: str) -> str:
    """Return the syntax tree of a text, with the whitespace in its docstrings normalised."""
    tree = ast.parse(text)
    for constant in _texts(tree):
        constant.value = " ".join(str(constant.value).split())
    return ast.dump(tree)


def _texts(tree: ast.AST) -> Iterator[ast.Constant]:
    """Docstrings, and other strings that are statements of their own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def _break_comments(text: str, lines: list[str]) -> None:
    """Move comments at the ends of lines that are too long above these lines."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    for token in reversed([token for token in tokens if token.type == tokenize.COMMENT]):
        (row, column), line = token.start, lines[token.start[0] - 1]
        if len(line) <= WIDTH or len(line) != token.end[1]:
            continue
        code = line[:column].rstrip()
        indent = column if not code else len(code) - len(code.lstrip())
        above = comment(token.string[1:].strip(), indent, 0)
        lines[row - 1 : row] = [*above, code] if code else above


def _break_texts(text: str, lines: list[str]) -> None:
    """Break lines of docstrings between words."""
    for constant in sorted(_texts(ast.parse(text)), key=lambda each: -each.lineno):
        if not (ast.get_source_segment(text, constant) or "").rstrip().endswith(('"""', "'''")):
            continue
        for row in reversed(range(constant.lineno - 1, constant.end_lineno or constant.lineno)):
            line = lines[row]
            if len(line) > WIDTH:
                lines[row : row + 1] = textwrap.wrap(
                    line, WIDTH, subsequent_indent=line[: len(line) - len(line.lstrip())], break_long_words=False,
                    break_on_hyphens=False)


def _break_statements(text: str, lines: list[str]) -> None:
    """Lay statements with a line that is too long out anew; comments in them go above."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    comments = {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}
    statements = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
    for statement in sorted(statements, key=lambda each: (-each.lineno, -each.col_offset)):
        first, last = statement.lineno, _last_line_of_head(statement)
        written = lines[first - 1 : last]
        if max(map(len, written), default=0) <= WIDTH:
            continue
        column = len(written[0]) - len(written[0].lstrip())
        if len(written[0][:column].encode()) != statement.col_offset:
            continue  # after another statement, or an ``if`` after an ``else``
        laid = _laid_out(statement, column)
        if not laid:
            continue
        is_elif = written[0].lstrip().startswith("elif")
        kept = [line for row in range(first, last + 1) if row in comments
                for line in comment(comments[row][1:].strip(), column + 4 * is_elif, 0)]
        if is_elif:
            laid[0] = f"{' ' * column}el{laid[0].lstrip()}"
        lines[first - 1 : last] = [*laid, *kept] if is_elif else [*kept, *laid]


def _last_line_of_head(statement: ast.stmt) -> int:
    """Return the last line of a statement, without the blocks in it."""
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body:
        inner = body[0]
        first = min([inner.lineno, *(each.lineno for each in getattr(inner, "decorator_list", ()))])
        return first - 1
    return 0 if isinstance(statement, ast.Match) else statement.end_lineno or statement.lineno


def _laid_out(statement: ast.stmt, column: int) -> list[str]:
    """Return the lines of a statement, of a compound one those of its head; none where there is no such text."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return []
    alone = copy.copy(statement)
    compound = hasattr(alone, "body")
    for name in ("decorator_list", "body", "orelse", "finalbody", "handlers"):
        if compound and hasattr(alone, name):
            setattr(alone, name, [ast.Pass()] if name == "body" else [])
    text = laid_out(ast.Module([alone], []), WIDTH - column).rstrip("\n").split("\n")
    if compound:
        text.pop()
    if any(isinstance(node, (ast.Constant, ast.JoinedStr)) and "\n" in ast.unparse(node) for node in ast.walk(alone)):
        return []  # lines of a string cannot be moved
    return [" " * column + line for line in text]
