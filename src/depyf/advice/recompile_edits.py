"""The edits that keep torch from compiling a function again where a size or a number changes.

@torch.compile                  ->  @torch.compile(dynamic=True)
self.step += 1 in a module      ->  torch._dynamo.config.allow_unspec_int_on_nn_module = True
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..records.model import SourceLocation
from ..torch_text.guard_failures import number
from .branches import unparsed
from .model import Advice, Edit
from .recompiles import DYNAMIC, MODULE, PARAMETER, ValueChange
from .source import Sources, called, is_own

#: The settings by which torch leaves a value open, in the order to be tried, by the kind of its owner.
_SETTINGS = {
    MODULE: (("torch._dynamo.config.allow_unspec_int_on_nn_module = True",),),
    PARAMETER: (("torch._dynamo.config.force_parameter_static_shapes = False",),
                  ("torch._dynamo.config.force_parameter_static_shapes = False",
                   "torch._dynamo.config.force_nn_module_property_static_shapes = False")),
}


def proposals(
    change: ValueChange, location: SourceLocation | None, sources: Sources, program: str = ""
) -> Iterator[Advice]:
    """Yield the changes to try for a recompile, the most local first; a trial decides which of them help.

    Args:
        change: what changed.
        location: of the function.
        sources: the user's files.
        program: the file of the program, which may compile a library's function.
    """
    if location is None or not change.lasts:
        return
    if ".shape[" in change.subject or number(change.now) is not None:
        yield from _dynamic(location, sources, program)
    if isinstance(number(change.now), int) and not change.of_global:
        for settings in _SETTINGS.get(change.owner, ()):
            yield Advice(change.owner, f"set {' and '.join(f'`{line}`' for line in settings)}",
                         f"torch fixes such numbers of a {change.owner}; then it opens one that changes",
                         "what is compiled for all numbers can be slower than for one", settings=settings)


def _dynamic(location: SourceLocation, sources: Sources, program: str) -> Iterator[Advice]:
    """Yield ``dynamic=True`` at the ``torch.compile`` that made a function, or at each that may have."""
    if not is_own(location.filename):
        location = SourceLocation(program, 0)
    tree = sources.tree(location.filename)
    if tree is None:
        return
    text = sources.text(location.filename)
    for node in _compiled_at(tree, location.line) or [
            node for node in ast.walk(tree) if isinstance(node, ast.Call) and is_compile(node)]:
        old = ast.get_source_segment(text, node) or ""
        match [each for each in getattr(node, "keywords", ()) if each.arg in ("dynamic", None)]:
            case []:
                arguments = old[:-1].rstrip().removesuffix(",")
                new = f"{old}(dynamic=True)" if not isinstance(node, ast.Call) else (
                    f"{arguments}{', ' if node.args or node.keywords else ''}dynamic=True)")
            case [ast.keyword("dynamic", ast.Constant(False)) as given]:
                new = old.replace(ast.get_source_segment(text, given) or "", "dynamic=True")
            case _:
                continue
        last = node.end_lineno or node.lineno
        lines = "\n".join(text.splitlines()[node.lineno - 1 : last]).replace(old, new, 1).splitlines()
        yield Advice(DYNAMIC, f"write `{' '.join(new.split())}`",
                     "the first version then serves many sizes and numbers",
                     "what is compiled for all sizes can be slower than for one",
                     (Edit(location.filename, node.lineno, last, tuple(lines)),))


def _compiled_at(tree: ast.Module, line: int) -> list[ast.expr]:
    """Return the decorators by which the function or class at a line is compiled."""
    return [decorator for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))
            for decorator in node.decorator_list
            if is_compile(decorator) and min(node.lineno, decorator.lineno) <= line <= (node.end_lineno or 0)]


def is_compile(node: ast.expr) -> bool:
    """Return whether an expression is a call of ``torch.compile``, or the function itself as a decorator."""
    if isinstance(node, ast.Call):
        of = unparsed(node.func)
        of_module = not node.args and bool(node.keywords) and of != "re.compile"  # `model.compile(backend=...)`
        return called(node) == "compile" and (of == "torch.compile" or "." in of and of_module)
    return isinstance(node, ast.Attribute) and unparsed(node) == "torch.compile"
