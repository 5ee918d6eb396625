"""The edit that keeps torch from compiling a function again where a size or a number changes.

@torch.compile                  ->  @torch.compile(dynamic=True)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..records.model import SourceLocation
from .branches import unparsed
from .model import Advice, Edit
from .recompile_changes import NUMBER, ValueChange
from .source import Sources, called, is_own


def proposals(
    change: ValueChange, location: SourceLocation | None, sources: Sources, program: str = ""
) -> Iterator[Advice]:
    """Yield the changes to try for a recompile, the most local first; a trial tells which of them help.

    Args:
        change: what changed.
        location: where the function stands.
        sources: the user's files.
        program: the file of the program, which may compile what stands in a library.
    """
    if location is not None and change.lasts and (".shape[" in change.subject or NUMBER.fullmatch(change.now)):
        yield from _dynamic(location, sources, program)


def _dynamic(location: SourceLocation, sources: Sources, program: str) -> Iterator[Advice]:
    """Yield ``dynamic=True`` at the ``torch.compile`` that made a function."""
    if not is_own(location.filename):
        location = SourceLocation(program, 0)
    tree = sources.tree(location.filename)
    if tree is None:
        return
    places = _compiled_at(tree, location.line) or _all_compiled(tree)
    if len(places) != 1:
        return
    node = places[0]
    if node.end_lineno != node.lineno or isinstance(node, ast.Call) and any(
            keyword.arg in ("dynamic", None) for keyword in node.keywords):
        return
    line = sources.text(location.filename).splitlines()[node.lineno - 1].encode()
    old = line[node.col_offset : node.end_col_offset].decode()
    new = f"{old}(dynamic=True)" if not isinstance(node, ast.Call) else (
        f"{old[:-1]}{', ' if node.args or node.keywords else ''}dynamic=True)")
    whole = line[: node.col_offset].decode() + new + line[node.end_col_offset :].decode()
    yield Advice("dynamic", f"write `{new}`", "the first version then serves many sizes and numbers",
                 "what is compiled for all sizes can be slower than for one",
                 (Edit(location.filename, node.lineno, node.lineno, (whole,)),), after=(whole.strip(),))


def _compiled_at(tree: ast.Module, line: int) -> list[ast.expr]:
    """Return the decorators by which the function or class at a line is compiled."""
    return [decorator for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))
            for decorator in node.decorator_list
            if _is_compile(decorator) and min(node.lineno, decorator.lineno) <= line <= (node.end_lineno or 0)]


def _all_compiled(tree: ast.Module) -> list[ast.expr]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_compile(node)]


def _is_compile(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        of = unparsed(node.func)
        of_module = not node.args and bool(node.keywords) and of != "re.compile"  # `model.compile(backend=...)`
        return called(node) == "compile" and (of == "torch.compile" or "." in of and of_module)
    return isinstance(node, ast.Attribute) and unparsed(node) == "torch.compile"
