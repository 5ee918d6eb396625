"""Syntax that the running interpreter's :mod:`ast` may not have.

Code of a newer Python can contain what the host has no nodes for: template strings (3.14), type parameters
(3.12), ``except*`` (3.11).  Such syntax is put into the tree as its own text, in the place of a name:
``ast.unparse`` writes a name unchanged.  The text says from which Python on it can be read; where the
host is older the tree is left as it was made (see :func:`depyf.decompiler.emit.text.emit`), and nothing can be
compiled, so nothing is ever called proven there.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass

from ...bytecode.errors import shown
from ..errors import EMIT, CannotDecompile
from ..nodes import NewerAsyncFunction, NewerClass, NewerFunction, NewerName, refined
from .text import check, checked_text

TEMPLATES = (3, 14)
TYPE_PARAMETERS = (3, 12)
TYPE_PARAMETER_DEFAULTS = (3, 13)
EXCEPT_STAR = (3, 11)


def written(text: str, since: tuple[int, int]) -> ast.Name:
    """Return an expression that is written as ``text``; Pythons before ``since`` cannot read it."""
    node = NewerName(text, ast.Load())
    node.since = since
    return node


def newer(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, text: str, since: tuple[int, int]
) -> NewerFunction | NewerAsyncFunction | NewerClass:
    """Return a definition with text after its name that Pythons before ``since`` cannot read."""
    result: NewerFunction | NewerAsyncFunction | NewerClass
    if isinstance(node, ast.ClassDef):
        result = refined(node, NewerClass)
    elif isinstance(node, ast.AsyncFunctionDef):
        result = refined(node, NewerAsyncFunction)
    else:
        result = refined(node, NewerFunction)
    result.name += text
    result.since = since
    return result


# --- template strings -------------------------------------------------------------------------------
@dataclass(eq=False, repr=False)
class Interpolation(ast.expr):
    """One replacement field of a template string, while it is on the stack."""

    value: ast.expr
    text: str
    conversion: str
    spec: ast.expr | None


def template(strings: list[str], fields: list[Interpolation]) -> ast.Name:
    """Return a template string, ``t"..."``, whose expressions are written as the code object says they were."""
    for field in fields if sys.version_info >= TEMPLATES else ():
        try:  # a string of the code object: it may be anything (and an older host cannot decide)
            check(ast.parse(field.text.strip(), mode="eval"))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise CannotDecompile(EMIT, f"{shown(field.text)} is no expression") from None
    parts = [_escaped(strings[0])]
    for field, after in zip(fields, strings[1:]):
        parts += [_field(field), _escaped(after)]
    return written(f"t'{''.join(parts)}'", TEMPLATES)


def _field(field: Interpolation) -> str:
    text = field.text
    if text.startswith("{"):
        text = " " + text
    if field.conversion:
        text += f"!{field.conversion}"
    if field.spec is not None:
        text += ":" + _spec(field.spec)
    return f"{{{text}}}"


def _spec(spec: ast.expr) -> str:
    parts = spec.values if isinstance(spec, ast.JoinedStr) else [spec]
    out = []
    for part in parts:
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            out.append(_escaped(part.value))
        else:
            out.append(checked_text(ast.JoinedStr([part]))[2:-1])
    return "".join(out)


def _escaped(text: str) -> str:
    """Return a text as it is written between single quotes of an f-string or t-string."""
    # With a double quote in it, ``repr`` always writes single quotes around.
    return repr('"' + text)[2:-1].replace("{", "{{").replace("}", "}}")


# --- except* ----------------------------------------------------------------------------------------
#: The statements with handlers.
TRY = (ast.Try, ast.TryStar) if sys.version_info >= EXCEPT_STAR else (ast.Try,)


def try_star(
    body: list[ast.stmt], handlers: list[ast.ExceptHandler], orelse: list[ast.stmt], finalbody: list[ast.stmt]
) -> ast.stmt:
    """Return a ``try`` statement with ``except*``; where the host has none, with the star in the text of the types."""
    if sys.version_info >= EXCEPT_STAR:
        return ast.TryStar(body, handlers, orelse, finalbody)
    for handler in handlers:
        if handler.type is not None:
            handler.type = written(f"*({checked_text(handler.type)})", EXCEPT_STAR)
    return ast.Try(body, handlers, orelse, finalbody)
