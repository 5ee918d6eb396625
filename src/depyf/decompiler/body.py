"""The body of one code object on its way from operations to statements: what the passes work on."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from .structure.evidence import Evidence
from .structure.region_cfg import RegionCfg
from .structure.search import Search

if TYPE_CHECKING:
    from .lift import SymbolicExecutor
    from .scopes import CodeScope
    from .structure.fold_expressions import Reducer


class Body:
    """One body that is being restructured.

    Attributes:
        scope: the code object with what is around it.
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
        """What the line table tells of the source text; it is read when it is first asked for."""
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
