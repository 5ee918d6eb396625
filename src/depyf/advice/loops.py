"""The loops that repeat a line: those in whose body it is, and a ``while`` in whose condition it is.

What a ``for`` goes over is computed once, and so is what stands in an ``else``.
"""

from __future__ import annotations

import ast

from .source import Function, Site, path_to

Loop = ast.For | ast.AsyncFor | ast.While


def loops_of(site: Site) -> list[Loop]:
    """Return the loops that repeat the line of a break, the outermost first."""
    return loops_around(site.function, site.where.line) if site.function is not None and site.where is not None else []


def loops_around(function: Function, line: int) -> list[Loop]:
    """Return the loops of a function that repeat a line of it, the outermost first."""
    steps = list(path_to(function, line))
    found: list[Loop] = [around for around, block, _ in steps if isinstance(around, Loop) and block is around.body]
    last = steps[-1][-1] if steps else None
    if isinstance(last, ast.While) and line < last.body[0].lineno:
        found.append(last)
    return found
