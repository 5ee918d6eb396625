"""Edits that keep torch from compiling a function again: where a size, a number or a counter of the program changes.

self.steps = 0                  ->  self.register_buffer("steps", torch.tensor(0), persistent=False)
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
    if location is None or not change.lasts:
        return
    if ".shape[" in change.subject:
        if change.now in ("0", "1") or set(change.was) & {"0", "1"}:
            line = 'torch._dynamo.config.automatic_dynamic_shapes_mark_as = "unbacked"'
            yield Advice("unbacked", f"set `{line}`", "sizes 0 and 1 are then served by the version for all sizes",
                         "nothing in the function may depend on such a size", settings=(line,))
        yield from _dynamic(location, sources, program)
    elif NUMBER.fullmatch(change.now):
        yield from _tensor_state(change, location, sources)
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


def _tensor_state(change: ValueChange, location: SourceLocation, sources: Sources) -> Iterator[Advice]:
    """Yield a tensor in the place of a number that the program keeps and changes."""
    tree = sources.tree(location.filename)
    if tree is None or not is_own(location.filename):
        return
    # (A module of another name counts in its own methods: `model.steps` is `self.steps` there.)
    _, dot, attribute = change.subject.rpartition(".")
    names = {change.subject, f"self.{attribute}" if dot else change.subject}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and len(node.targets) == 1
             and unparsed(node.targets[0]) in names and isinstance(node.value, ast.Constant)
             and type(node.value.value) in (int, float)]
    if len(found) != 1 or found[0].lineno != found[0].end_lineno or unparsed(found[0].targets[0]) not in _changed(tree):
        return
    node = found[0]
    value = f"torch.tensor({unparsed(node.value)})"
    target = node.targets[0]
    name = unparsed(target)
    if isinstance(target, ast.Attribute) and name.startswith("self."):
        new = f'self.register_buffer("{target.attr}", {value}, persistent=False)'
    else:
        new = f"{name} = {value}"
    line = sources.text(location.filename).splitlines()[node.lineno - 1]
    yield Advice("counter", f"write `{new}`", "the value of a tensor is no part of the guards",
                 f"`{name}` is a tensor where a number was",
                 (Edit(location.filename, node.lineno, node.lineno, (line[: len(line) - len(line.lstrip())] + new,)),),
                 after=(new,))


def _changed(tree: ast.Module) -> set[str]:
    """Return the names and attributes that the program counts up."""
    return {unparsed(node.target) for node in ast.walk(tree) if isinstance(node, ast.AugAssign)} | {
        unparsed(node.targets[0]) for node in ast.walk(tree) if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.BinOp)}
