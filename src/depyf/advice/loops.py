"""The loops that repeat a line: those in whose body it is, and a ``while`` in whose condition it is.

What a ``for`` goes over is computed once, and so is what stands in an ``else``.
"""

from __future__ import annotations

import ast

from .source import Function, Site, blocks

Loop = ast.For | ast.AsyncFor | ast.While


def loops_of(site: Site) -> list[Loop]:
    """Return the loops that repeat the line of a break, the outermost first."""
    return loops_around(site.function, site.where.line) if site.function is not None and site.where is not None else []


def loops_around(function: Function, line: int) -> list[Loop]:
    """Return the loops of a function that repeat a line of it, the outermost first."""
    found: list[Loop] = []
    around: ast.AST | None = function
    while around is not None:
        inner, block = next(((statement, block) for block in blocks(around) for statement in block
                             if statement.lineno <= line <= (statement.end_lineno or statement.lineno)), (None, None))
        if isinstance(around, Loop) and (block is around.body or isinstance(around, ast.While)
                                         and around.lineno <= line < around.body[0].lineno):
            found.append(around)
        around = inner
    return found
