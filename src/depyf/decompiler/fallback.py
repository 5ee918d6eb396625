"""The total fallback as a form of a scope's body: ``dispatch``, with what is nested in the usual way."""

from __future__ import annotations

import ast

from ..bytecode.canonical import canonicalise
from ..bytecode.code import CO_ASYNC_GENERATOR, CO_COROUTINE, Code
from ..flow.graph import build
from .dispatch import dispatch
from .dispatch.translate import legal
from .forms import Form
from .lift import FunctionExpr, Iter
from .scopes import FAILURES, CodeScope, make_function


def dispatch_loop(code: Code, scope: CodeScope) -> list[ast.stmt]:
    """The total fallback (``dispatch``), as the body of a function, class or module."""
    graph = scope.options.graph(code)
    return dispatch(graph if graph is not None else build(canonicalise(code)), _Nested(scope),
                    namespace=scope.kind in ("class", "module"))


class _Nested:
    """What a function written as a dispatch loop holds is decompiled in the usual way."""

    def __init__(self, scope: CodeScope) -> None:
        self.scope = scope

    def function(self, code: Code, name: str) -> list[ast.stmt]:
        asynchronous = bool(code.flags & (CO_COROUTINE | CO_ASYNC_GENERATOR))
        if code.arguments[:1] == (".0",):
            only = ast.arguments([], [ast.arg(legal(".0"))], None, [], [], None, [])
            return [make_function(name, only, *self.comprehension(code, asynchronous))]
        scope = self.scope.nested(code, "function")
        arguments, _ = scope.arguments(code, {}, scope)
        return [make_function(name, arguments, scope.statements(), [], None, asynchronous)]

    def comprehension(self, code: Code, asynchronous: bool) -> tuple[list[ast.stmt], list[ast.expr], None, bool]:
        """The body of a comprehension's function: the comprehension, or a loop like that of any function.

        An asynchronous one is given an iterator that need not be iterable itself: it is always a loop.
        """
        forms = self.scope.options.forms
        while not asynchronous and forms.of(code) is not Form.DISPATCH:
            try:
                iterator = Iter(ast.Name(legal(".0"), ast.Load()))
                return [ast.Return(self.scope.comprehension(FunctionExpr(code, {}), iterator))], [], None, False
            except FAILURES as error:
                forms.give_up(code, f"{type(error).__name__}: {error}")
        while forms.of(code) is not Form.DISPATCH:
            forms.give_up(code, "an asynchronous comprehension inside one that fell back")
        return self.scope.nested(code, "function").statements(), [], None, asynchronous

    def class_body(self, code: Code) -> list[ast.stmt]:
        body = self.scope.nested(code, "class", code.name).statements()
        # The class statement stands in a function of its own.
        at = int(bool(body) and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant))
        return [*body[:at], *_qualified_name(code), *body[at:]]


def _qualified_name(code: Code) -> list[ast.stmt]:
    ops = canonicalise(code).ops
    for before, op in zip(ops, ops[1:]):
        if op.kind == "STORE_NAME" and op.arg == "__qualname__":
            return [ast.Assign([ast.Name("__qualname__", ast.Store())], ast.Constant(before.arg))]
    return []
