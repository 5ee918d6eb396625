"""The total fallback as a form of a scope's body: ``dispatch``, with what is nested in the usual way."""

from __future__ import annotations

import ast

from ..bytecode.canonical import canonicalise
from ..bytecode.code import CO_ASYNC_GENERATOR, CO_COROUTINE, Code
from ..flow.graph import build
from .dispatch import dispatch
from .lift import FunctionExpr, Iter
from .scopes import CodeScope, make_function


def dispatch_loop(code: Code, scope: CodeScope) -> list[ast.stmt]:
    """The total fallback (``dispatch``), as the body of a function."""
    graph = scope.options.graph(code)
    return dispatch(graph if graph is not None else build(canonicalise(code)), _Nested(scope))


class _Nested:
    """What a function written as a dispatch loop holds is decompiled in the usual way."""

    def __init__(self, scope: CodeScope) -> None:
        self.scope = scope

    def function(self, code: Code, name: str) -> list[ast.stmt]:
        if code.arguments[:1] == (".0",):
            # a comprehension: a function of the iterator
            iterator = ast.Name("iterator", ast.Load())
            made = self.scope.comprehension(FunctionExpr(code, {}), Iter(iterator))
            only = ast.arguments([], [ast.arg("iterator")], None, [], [], None, [])
            return [make_function(name, only, [ast.Return(made)], [], None, False)]
        scope = self.scope.nested(code, "function")
        arguments, _ = scope.arguments(code, {}, scope)
        asynchronous = bool(code.flags & (CO_COROUTINE | CO_ASYNC_GENERATOR))
        return [make_function(name, arguments, scope.statements(), [], None, asynchronous)]

    def class_body(self, code: Code) -> list[ast.stmt]:
        return self.scope.nested(code, "class", code.name).statements()
