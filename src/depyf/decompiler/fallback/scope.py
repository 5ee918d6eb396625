"""The total fallback as a form of a scope's body: ``dispatch``, with nested code in the usual way."""

from __future__ import annotations

import ast
from typing import Any

from ...bytecode import operations as o
from ...bytecode.canonical import canonicalise
from ...bytecode.code import CO_ASYNC_GENERATOR, CO_COROUTINE, Code
from ...bytecode.opspec import ON_CELLS, ON_GLOBALS, ON_NAMES
from ...cfg.graph import build
from ..errors import LIFT, CannotDecompile, why
from ..generics import HIDDEN, TypeAlias
from ..lift import ClassExpr, FunctionExpr, Iter, SymbolicExecutor, definition
from ..names import legal
from ..scopes import CodeScope, make_function
from ..tiers import Tier, inside
from .driver import dispatch


def dispatch_loop(code: Code, scope: CodeScope) -> list[ast.stmt]:
    """Write a code object as a dispatch loop, as the body of a function, class or module."""
    graph = scope.options.graph(code)
    return dispatch(graph if graph is not None else build(canonicalise(code)), _Nested(scope).statements,
                    scope.kind in ("class", "module"), bool(scope.prefix))


#: Operations on variables that another scope may bind.
_VARIABLES = (ON_GLOBALS | ON_NAMES | ON_CELLS) - {o.STORE_NAME, o.DELETE_NAME, o.MAKE_CELL}
#: Operations that look a name up in a class first.
_OF_THE_CLASS = frozenset({o.LOAD_FROM_DICT_OR_GLOBALS, o.LOAD_FROM_DICT_OR_DEREF})


class _Nested:
    """Writer of the code nested in a function written as a dispatch loop, which is decompiled in the usual way."""

    def __init__(self, scope: CodeScope) -> None:
        self.scope = scope

    def statements(self, kind: str, code: Code, name: str) -> list[ast.stmt]:
        """Return the body of a class, or the definition of a function called ``name``."""
        return self.class_body(code) if kind == "class" else self.function(code, name)

    def function(self, code: Code, name: str) -> list[ast.stmt]:
        asynchronous = bool(code.flags & (CO_COROUTINE | CO_ASYNC_GENERATOR))
        if code.arguments[:1] == (".0",):
            only = ast.arguments([], [ast.arg(legal(".0"))], None, [], [], None, [])
            return [make_function(name, only, *self.comprehension(code, asynchronous))]
        if code.name.startswith(HIDDEN):
            tiers = self.scope.options.tiers
            while tiers.of(code) is not Tier.DISPATCH:
                try:
                    return [self.generic(code, name)]
                except Exception as error:
                    tiers.demote(code, why(error))
        scope = self.scope.nested(code, "function")
        arguments, _ = scope.arguments(code, {}, scope)
        return [make_function(name, arguments, scope.statements(), [], None, asynchronous)]

    def comprehension(self, code: Code, asynchronous: bool) -> tuple[list[ast.stmt], list[ast.expr], None, bool]:
        """Return the body of a comprehension's function: the comprehension, or a loop like that of any function.

        An asynchronous one is given an iterator that need not be iterable itself: it is always a loop.
        """
        tiers = self.scope.options.tiers
        while not asynchronous and tiers.of(code) is not Tier.DISPATCH:
            try:
                iterator = Iter(ast.Name(legal(".0"), ast.Load()))
                return [ast.Return(self.scope.comprehension(FunctionExpr(code, {}), iterator))], [], None, False
            except Exception as error:
                tiers.demote(code, why(error))
        while tiers.of(code) is not Tier.DISPATCH:
            tiers.demote(code, "an asynchronous comprehension inside one that fell back")
        return self.scope.nested(code, "function").statements(), [], None, asynchronous

    def generic(self, code: Code, name: str) -> ast.stmt:
        """Return a function that contains a definition with type parameters, for the hidden one that makes them.

        Where that is impossible (the proof may refuse it too), it is a loop like any function, whose parameters are
        made one by one. Defaults are the arguments of the function.
        """
        passed: list[ast.expr] = [ast.Name(legal(parameter), ast.Load()) for parameter in code.arguments]
        generic: Any = self.scope.generic(FunctionExpr(code, {}), passed)
        if isinstance(generic, TypeAlias):
            shown = generic.name
            body = [generic.statement(shown)]
        elif isinstance(generic, (FunctionExpr, ClassExpr)):
            shown = self.scope.plain_name(generic.code.name)
            # (3.13 may call keyword defaults by the name of the others)
            defaults = {key: generic.arguments.pop(key) for key in ("defaults", "kwdefaults")
                        if key in generic.arguments} if isinstance(generic, FunctionExpr) else {}
            defined = definition(SymbolicExecutor(self.scope), shown, generic)
            if defined is None:
                raise CannotDecompile(LIFT, "type parameters of something that is called otherwise")
            body = [defined]
            for key, value in defaults.items():
                target = ast.Attribute(ast.Name(shown, ast.Load()), f"__{key}__", ast.Store())
                body.append(ast.Assign([target], value))
        else:
            raise CannotDecompile(LIFT, "type parameters of something else")
        body[:0] = self.declared(code, shown)
        body.append(ast.Return(ast.Name(shown, ast.Load())))
        parameters = ast.arguments([], [ast.arg(legal(name)) for name in code.arguments], None, [], [], None, [])
        return make_function(name, parameters, body, [], None, False)

    def declared(self, code: Code, name: str) -> list[ast.stmt]:
        """Return the declaration of a definition's name, if the definition means something by it.

        It binds its name in its own function now: the declaration means the variable that the program binds next, and
        no other.
        """
        ops = [op for inner in (code, *inside(code)) for op in canonicalise(inner).ops]
        used = any(op.arg == name and op.kind in _VARIABLES for op in ops)
        around = self.scope.code
        if self.scope.kind == "class":
            # The names of a class written as a loop are in a mapping; only class statements look names up in one.
            bound = {op.arg for op in canonicalise(around).ops if op.kind is o.STORE_NAME}
            if used or any(op.kind in _OF_THE_CLASS and op.arg in bound for op in ops):
                raise CannotDecompile(LIFT, "type parameters beside names of a class that is written as a loop")
        if not used:
            return []
        if name in (*around.varnames, *around.cellvars, *around.freevars):
            return [ast.Nonlocal([name])]
        return [ast.Global([name])]

    def class_body(self, code: Code) -> list[ast.stmt]:
        body = self.scope.nested(code, "class", code.name).statements()
        # The class statement is in a function of its own.
        at = int(bool(body) and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant))
        return [*body[:at], *_qualified_name(code), *_type_parameters(code), *body[at:]]


def _qualified_name(code: Code) -> list[ast.stmt]:
    ops = canonicalise(code).ops
    for before, op in zip(ops, ops[1:]):
        if op.kind == "STORE_NAME" and op.arg == "__qualname__":
            return [ast.Assign([ast.Name("__qualname__", ast.Store())], ast.Constant(before.arg))]
    return []


def _type_parameters(code: Code) -> list[ast.stmt]:
    """Without brackets the class statement does not bind them: they are a variable of the loop around it."""
    if ".type_params" not in code.freevars:
        return []
    return [ast.Assign([ast.Name("__type_params__", ast.Store())], ast.Name(legal(".type_params"), ast.Load()))]
