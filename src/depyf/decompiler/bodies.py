"""A body as a person writes it: without what the compiler puts at its beginning and its end.

Names and cells of a class and the stores of annotations go; docstrings, ``from __future__`` and
declarations take their places.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from ..bytecode.code import CO_FUTURE_ANNOTATIONS, Code
from . import annotations as deferred
from .declarations import declarations
from .lift.stack import STORE
from .nodes import AnnotateDefinition
from .result import codes_in
from .structure.analysis import RegionCfg
from .structure.evidence import Evidence
from .structure.search import Search

if TYPE_CHECKING:
    from .lift.executor import SymbolicExecutor
    from .scopes import CodeScope
    from .structure.fold_expressions import Reducer


_CELLS_OF_ANNOTATIONS = frozenset({"__classdict__", deferred.CONDITIONAL})


@dataclass
class Unfinished:
    """The statements of a body, with those that the compiler added; the passes change them."""

    scope: CodeScope
    statements: list[ast.stmt]


def drop_annotation_stores(body: Unfinished) -> None:
    """Drop the statements by which 3.14 stores annotations."""
    if body.scope.annotates and body.scope.code.version >= (3, 14):
        body.statements = [stmt for stmt in body.statements if not _makes_annotations(stmt)]


def strip_preamble(body: Unfinished) -> None:
    """Drop the names and cells that the compiler stores in a class; make an expression of the docstring's store."""
    if body.scope.kind == "class":
        body.statements = _class_body(body.scope, body.statements)
    elif body.scope.kind == "module":
        _show_docstring(body.statements)


def place_annotations(body: Unfinished) -> None:
    """Put annotations that 3.14 keeps in a function of their own back in their places."""
    scope = body.scope
    if scope.annotate is not None:
        body.statements = deferred.placed(body.statements, scope.annotations, scope.plain_name)


def declare(body: Unfinished) -> None:
    """Put the docstring and the declarations at the beginning, after the docstring and future imports of a module."""
    scope, statements = body.scope, body.statements
    head: list[ast.stmt] = []
    doc = scope.docstring()
    if doc is not None:
        head.append(ast.Expr(ast.Constant(doc)))
    head += declarations(scope) + _dead_annotation(scope, statements)
    at = 0
    while scope.kind in ("class", "module") and at < len(statements) and _comes_first(statements[at]):
        at += 1
    statements[at:at] = head


def _comes_first(stmt: ast.stmt) -> bool:
    return (isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)
            or isinstance(stmt, ast.ImportFrom) and stmt.module == "__future__")


def _class_body(scope: CodeScope, body: list[ast.stmt]) -> list[ast.stmt]:
    if body and isinstance(body[-1], ast.Return):
        body.pop()
    out: list[ast.stmt] = []
    started = False
    own = {"__module__", "__qualname__"}  # the compiler stores them first; later ones are the user's
    for index, stmt in enumerate(body):
        name, value = _assignment(stmt)
        if index < 3 and name in own:
            own.remove(name)
        elif name == "__doc__" and index < 5 and not started and _is_text(value):
            out.append(ast.Expr(value))
            started = True
        elif not _stored_by_compiler(scope.code, name, value, index, index >= len(body) - 2):
            out.append(stmt)
            started = True
    return out


def _assignment(stmt: ast.stmt) -> tuple[str, ast.expr | None]:
    """Return name and value of a statement ``name = value``; no name for any other."""
    if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 and isinstance(stmt.targets[0], ast.Name):
        return stmt.targets[0].id, stmt.value
    return "", None


def _is_text(value: ast.expr | None) -> TypeGuard[ast.Constant]:
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _stored_by_compiler(code: Code, name: str, value: ast.expr | None, index: int, is_last: bool) -> bool:
    """Return whether the compiler added the statement ``name = value`` at an index of a class body.

    ``is_last``: it is one of the last two.
    """
    if name == "__type_params__":
        return isinstance(value, ast.Name) and value.id == ".type_params"
    if name == "__firstlineno__":
        return index < 4 and code.version >= (3, 13)
    if name == "__static_attributes__":
        return is_last and code.version >= (3, 12)
    if name == "__classdictcell__":
        return code.version >= (3, 12)
    return name == "__classcell__" and isinstance(value, ast.Name) and is_last


def _show_docstring(body: list[ast.stmt]) -> None:
    """Write ``__doc__ = "..."`` at the beginning of a module as a docstring."""
    name, value = _assignment(body[0]) if body else ("", None)
    if name == "__doc__" and _is_text(value):
        body[0] = ast.Expr(value)


def future_imports(scope: CodeScope) -> list[ast.stmt]:
    """Return the ``from __future__`` import of a module, for a text that does not begin with the module's own."""
    if scope.kind != "module" or not scope.code.flags & CO_FUTURE_ANNOTATIONS:
        return []
    return [ast.ImportFrom("__future__", [ast.alias("annotations", None)], 0)]


def _makes_annotations(stmt: ast.stmt) -> bool:
    """Return whether the compiler wrote a statement to store annotations (3.14)."""
    if isinstance(stmt, AnnotateDefinition):
        return True
    value = deferred.assigned(stmt, deferred.CONDITIONAL)
    return isinstance(value, ast.Set) and not value.elts  # no source says it: the empty set is ``set()``


def _dead_annotation(scope: CodeScope, body: list[ast.stmt]) -> list[ast.stmt]:
    """Return an annotation for a body that makes ``__annotations__`` and puts nothing into it.

    Its annotations were of ``(x): int``, or in unreachable code. (3.14 leaves the cells of these; a class with a method
    has such cells as well.)
    """
    if not scope.annotates:
        return []
    if scope.code.version >= (3, 14):
        captured = {name for held in codes_in(scope.code) for name in held.freevars}
        if not set(scope.code.cellvars) & _CELLS_OF_ANNOTATIONS - captured:
            return []
    elif scope.program is None or not any(op.kind == "SETUP_ANNOTATIONS" for op in scope.program.ops):
        return []
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if isinstance(node, ast.AnnAssign) or is_function and scope.code.version >= (3, 14) \
                and deferred.CONDITIONAL not in scope.code.cellvars:
            return []
        if not is_function and not isinstance(node, ast.ClassDef):
            pending += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
    nothing: ast.stmt = ast.AnnAssign(ast.Name("_", STORE), ast.Constant(None), None, 0)
    if scope.code.version >= (3, 14) and deferred.CONDITIONAL not in scope.code.cellvars:
        return [nothing]
    return [ast.If(ast.Constant(False), [nothing], [])]


# --- a body on its way from operations to statements -------------------------------------------------
class Body:
    """One body that is being restructured.

    Attributes:
        scope: the code object with its surroundings.
        cfg: its control-flow graph, which the passes change.
        executor: runs operations symbolically.
        reducer: folds the control flow of expressions; set by that pass.
        arranged: whether its statements are arranged by the line table.
        has_patterns: whether patterns of ``match`` were found.
        search: chooses among the forms that the graph allows.
        statements: the result.
    """

    __slots__ = (
        "_facts", "arranged", "cfg", "has_patterns", "executor", "reducer", "scope", "search", "statements",
    )

    def __init__(self, scope: CodeScope, cfg: RegionCfg, executor: SymbolicExecutor, search: Search) -> None:
        self.scope = scope
        self.cfg = cfg
        self.executor = executor
        self.reducer: Reducer | None = None
        self.has_patterns = False
        self.arranged = True
        self._facts: Evidence | None = None
        self.search = search
        self.statements: list[ast.stmt] = []

    @property
    def has_places(self) -> bool:
        """True if its operations are at their places in the code, not written anew."""
        return self.scope.has_places

    @property
    def facts(self) -> Evidence:
        """The evidence of the line table on the source text; it is read at first use."""
        if self._facts is None:
            code = self.scope.code
            self._facts = Evidence(code, self.has_places, code in self.scope.options.resuming)
        return self._facts

    @property
    def evidence(self) -> Evidence | None:
        """The same, for the choice of a form; ``None`` where that is not to follow it."""
        return self.facts if self.arranged and self.scope.kind != "lambda" else None

    @property
    def is_namespace(self) -> bool:
        """True for the body of a module or class, which has no ``return``."""
        return self.scope.kind in ("module", "class")
