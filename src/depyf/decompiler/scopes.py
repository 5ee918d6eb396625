"""Code objects as definitions: ``def``, ``lambda``, ``class``, comprehensions, whole modules."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from .. import budgets
from ..bytecode.canonical import canonicalise
from ..bytecode.code import (
    CO_ASYNC_GENERATOR,
    CO_COROUTINE,
    CO_FUTURE_ANNOTATIONS,
    CO_VARARGS,
    CO_VARKEYWORDS,
    Code,
)
from ..bytecode.linetable import Position, positions
from ..bytecode.operations import Program
from ..cfg.graph import build
from . import annotations as deferred
from . import passes
from .annotations import TypeAlias
from .bodies import Body, Unfinished, declare
from .dynamo.simplify.values import is_torch_name
from .errors import LIFT, STRUCTURE, CannotDecompile, why
from .lift.executor import SymbolicExecutor
from .lift.stack import LOAD, Accumulator, ClassExpr, FunctionExpr, Iter, State
from .names import legal
from .nodes import AnnotateDefinition, Comprehension, FoldedBool, Literal, decided
from .result import Options, Tier
from .structure.analysis import RegionCfg
from .structure.comprehensions import BUILDS, build_comprehension, name_dropped, parse_loops
from .structure.fold_expressions import SET_ASIDE

_TYPE_PARAMS = "type_params" in ast.FunctionDef._fields


class CodeScope:
    """One code object being written, and the scopes around it."""

    def __init__(self, code: Code, options: Options, parent: CodeScope | None = None, kind: str = "function",
                 class_name: str | None = None) -> None:
        self.code = code
        self.options = options
        #: whether operations are at their places in the code, not written anew
        self.has_places = True
        self.parent = parent
        self.kind = kind
        self.class_name = class_name
        self.prefix = ""
        if class_name is not None and class_name.strip("_"):
            self.prefix = f"_{class_name.lstrip('_')}"
        self.annotates = kind in ("class", "module")
        self.program: Program | None = None
        #: 3.14: the function of a class or module that makes its annotations, and those
        self.annotate = deferred.find(code) if self.annotates else None
        self.annotations: list[deferred.Annotation] = []

    # --- names and constants ----------------------------------------------------------------------
    def plain_name(self, name: str) -> str:
        """Return a name as the text has it: renamed, or without the mangling of its class."""
        rename = self.options.rename
        if rename and name in rename:
            return rename[name]
        prefix = self.prefix
        if prefix and name.startswith(prefix + "__") and not name.endswith("__"):
            return name[len(prefix):]
        return name

    def is_handed_over(self, node: ast.expr) -> bool:
        """Return whether an expression is a value that was on the stack when the graph broke (``___stack0``)."""
        return self.code in self.options.resuming and isinstance(node, ast.Name) and is_torch_name(node.id)

    def annotation(self, node: ast.expr) -> ast.expr:
        """Return an annotation as an expression; under ``from __future__ import annotations`` it is text."""
        if self.options.future_annotations and isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.removeprefix("*")  # ``*args: *Ts``
            try:
                parsed = ast.parse(text, mode="eval").body
            except (SyntaxError, ValueError):  # (half a surrogate pair is no source)
                return node
            return parsed if text == node.value else ast.Starred(parsed, LOAD)
        return node

    # --- places -----------------------------------------------------------------------------------
    def position(self, offset: int) -> Position | None:
        """Return the place in the source of the operation at a byte offset; ``None`` where its column is not known."""
        position = self._position(offset)
        return position if position is not None and position.column is not None else None

    def line_of_jump(self, offset: int) -> int | None:
        """Return the line of the jump after the operation at a byte offset; before 3.11 it is that of the statement."""
        return self.line(offset + 2) if offset >= 0 and self.code.version < (3, 11) else None

    def line(self, offset: int) -> int | None:
        """Return the line of the operation at a byte offset; ``None`` where it is not known."""
        position = self._position(offset)
        return None if position is None else position.line

    def has_columns(self) -> bool:
        """Return whether columns of the source are known."""
        return self.has_places and any(place is not None and place.column is not None for place in positions(self.code))

    def _position(self, offset: int) -> Position | None:
        known = positions(self.code) if self.has_places else []
        return known[offset // 2] if 0 <= offset < 2 * len(known) else None

    # --- the compiler's quirks with expressions, by version ------------------------------------------
    # Which constants it folds, drops and tests, what it iterates over instead, which jumps it threads across lines: so
    # that the text of an expression becomes the same code again.
    def in_barrier(self, node: ast.expr) -> ast.expr:
        """Keep a constant from being folded with others, if the text is exact: from 3.10 on as a condition's."""
        needs_one = self.code.version >= (3, 10) and self.options.tiers.of(self.code) > Tier.SIMPLIFIED
        return decided(node) if needs_one and isinstance(node, Literal) else node

    def looked_through(self, node: ast.expr) -> ast.expr:
        """Write a list or set that is iterated over or searched so that the compiler leaves it (``fold_iter``)."""
        is_changed = (isinstance(node, ast.List) and not any(isinstance(item, ast.Starred) for item in node.elts)
                      or isinstance(node, ast.Set) and not isinstance(node, Literal)
                      and all(isinstance(item, ast.Constant) for item in node.elts))
        return ast.BoolOp(ast.And(), [ast.Constant(1), node]) if is_changed else node

    def begins_a_line(self, node: FoldedBool) -> None:
        """Have an expression begin on another line than the whole, where jumps are threaded within a line only.

        ``(a or b) and c`` tests ``a or b`` again then (``JUMP_IF_TRUE_OR_POP`` in ``optimize_basic_block``).
        """
        node.begins_a_line = not (3, 12) <= self.code.version < (3, 14)

    # --- bodies -----------------------------------------------------------------------------------
    def restructured(self, hidden: dict[str, Any] | None = None) -> Body:
        """Return the body with what the compiler does to structured code undone; ``hidden``: its parameters."""
        if self.program is None:
            self.program = canonicalise(self.code)
        if too_many := budgets.JUMPS.exceeded(len([op for op in self.program.ops if op.target >= 0])):
            raise CannotDecompile(STRUCTURE, too_many)
        graph = self.options.graph(self.code)
        cfg = RegionCfg(graph) if graph is not None else RegionCfg(build(self.program), is_shared=False)
        executor = SymbolicExecutor(self, self.options.tiers.of(self.code) is Tier.SPILLED)
        executor.hidden.update(hidden or {})
        body = Body(self, cfg, executor, self.options.search(self.code))
        self.has_places = self.options.has_places(self.code)
        body.arranged = self.code not in self.options.unarranged
        passes.run(passes.RESTRUCTURE, body, self.options.trace)
        return body

    def structured(self) -> list[ast.stmt]:
        """Write the body with statements, in the first form that can be written."""
        if self.annotate is not None and not self.annotations:
            self.annotations = deferred.body_annotations(self.annotate, self)
        search = self.options.search(self.code)
        while True:
            body = self.restructured()
            try:
                passes.run(passes.STRUCTURE, body, self.options.trace)
                return body.statements
            except CannotDecompile:  # (of lifting, too: another form takes other values off the stack)
                if not search.advance():
                    if not self.options.arrange_no_more(self.code):
                        raise
                    search = self.options.search(self.code)

    def body(self) -> list[ast.stmt]:
        """Return the body in the first of its tiers that can be written."""
        options = self.options
        if options.fallback is None:
            return self.structured()
        while options.tiers.of(self.code) is not Tier.DISPATCH:
            try:
                return self.structured()
            except Exception as error:
                options.tiers.demote(self.code, why(error))
        return options.fallback(self.code, self)

    def statements(self) -> list[ast.stmt]:
        """Return the statements of the body, declarations and docstring included."""
        unfinished = Unfinished(self, self.body())
        if self.kind in ("class", "module") and self.options.tiers.of(self.code) is Tier.DISPATCH:
            # (What the compiler puts at the beginning and the end is done once more.)
            declare(unfinished)
            future = self.kind == "module" and self.code.flags & CO_FUTURE_ANNOTATIONS
            imports = [ast.ImportFrom("__future__", [ast.alias("annotations", None)], 0)] if future else []
            return imports + unfinished.statements
        passes.run(passes.FINISH, unfinished, self.options.trace)
        return unfinished.statements or [ast.Pass()]

    # --- definitions ------------------------------------------------------------------------------
    def nested(self, code: Code, kind: str, class_name: str | None = None) -> CodeScope:
        """Return the scope of a code object nested in this one."""
        return CodeScope(code, self.options, self, kind, class_name if class_name is not None else self.class_name)

    def arguments(self, code: Code, parts: dict[str, Any], scope: CodeScope) -> tuple[ast.arguments, ast.expr | None]:
        """Return the parameters of a function, and the annotation of what it returns."""
        names = list(code.arguments)
        if (annotate := _part(parts, "annotate", FunctionExpr)) is not None:
            parts = {**parts, "annotations": deferred.expression(annotate.code, self)}
        annotations: dict[str, ast.expr] = {}
        node = _part(parts, "annotations", ast.Tuple, ast.Dict)
        given: Iterable[tuple[Any, ast.expr]] = () if node is None else zip(node.keys, node.values) if isinstance(
            node, ast.Dict) else zip(node.elts[::2], node.elts[1::2])
        for key, value in given:
            if not isinstance(key, ast.Constant):
                raise CannotDecompile(LIFT, "annotations made in another way")
            annotations[str(key.value)] = self.annotation(value)
        args = []
        for name in names:
            shown = scope.plain_name(name)
            # ``.0`` of a comprehension that is a function of its own
            args.append(ast.arg(legal(shown), annotations.get(name) or annotations.get(shown)))
        positional = args[: code.argcount]
        keyword_only = args[code.argcount : code.argcount + code.kwonlyargcount]
        rest = args[code.argcount + code.kwonlyargcount :]
        vararg = rest.pop(0) if code.flags & CO_VARARGS else None
        kwarg = rest.pop(0) if code.flags & CO_VARKEYWORDS else None
        node = _part(parts, "defaults", ast.Tuple)
        defaults: list[ast.expr] = [] if node is None else list(node.elts)
        node = _part(parts, "kwdefaults", ast.Dict)
        by_name = {} if node is None else {
            scope.plain_name(key.value): value for key, value in zip(node.keys, node.values)
            if isinstance(key, ast.Constant) and isinstance(key.value, str)}
        split, kw_defaults = code.posonlyargcount, [by_name.get(each.arg) for each in keyword_only]
        shown_ones = ast.arguments(
            positional[:split], positional[split:], vararg, keyword_only, kw_defaults, kwarg, defaults)
        return shown_ones, annotations.get("return")

    def function(self, expr: FunctionExpr, name: str, decorators: list[ast.expr]) -> ast.stmt | None:
        """Write the definition of a function; ``None`` where its name is another than the variable's."""
        code = expr.code
        if code is self.annotate and name in deferred.FUNCTION_NAMES:
            return AnnotateDefinition()
        if self.plain_name(code.name) != self.plain_name(name) or not name.isidentifier():
            if decorators or not code.name.startswith("<"):
                return None
        # (one with type parameters was made inside their scope)
        around = expr.scope if expr.scope is not None and expr.type_parameters else self
        scope = around.nested(code, "function")
        arguments, returns = around.arguments(code, expr.arguments, scope)
        return make_function(code, self.plain_name(name), arguments, scope.statements(), decorators, returns)

    def lambda_(self, expr: FunctionExpr) -> ast.expr:
        """Write a lambda."""
        scope = self.nested(expr.code, "lambda")
        arguments, _ = self.arguments(expr.code, expr.arguments, scope)
        return ast.Lambda(arguments, as_expression(scope.structured()))

    def class_(self, expr: FunctionExpr, name: str, bases: list[ast.expr], keywords: list[ast.keyword]) -> ast.ClassDef:
        """Write the definition of a class."""
        scope = self.nested(expr.code, "class", expr.code.name)
        fields: dict[str, Any] = {"type_params": []} if _TYPE_PARAMS else {}
        return ast.ClassDef(self.plain_name(name), bases, keywords, scope.statements(), [], **fields)

    def generic(self, expr: FunctionExpr, values: list[ast.expr]) -> ast.expr:
        """Write what a hidden function of type parameters returns."""
        scope = self.nested(expr.code, "generic")
        body = scope.restructured(dict(zip(expr.code.arguments, values)))
        executor = body.executor
        node = body.cfg.blocks[body.cfg.entry]
        state = State()
        executor.run(state, node.ops)
        if node.end != "return" or len(state.stack) != 1 or state.stmts:
            raise CannotDecompile(LIFT, "type parameters made in another way")
        result = executor.pop(state)
        if not isinstance(result, (FunctionExpr, ClassExpr, TypeAlias)):
            raise CannotDecompile(LIFT, "type parameters of something else")
        if isinstance(result, FunctionExpr):
            result.scope = scope
        return result

    def comprehension(self, expr: FunctionExpr, iterable: Iter) -> ast.expr:
        """Write a comprehension that is a function of its own."""
        code = expr.code
        build_kind = BUILDS.get(code.name)
        if build_kind is None:
            raise CannotDecompile(LIFT, "a function that is called with an iterator")
        scope = self.nested(code, "comprehension")
        body = scope.restructured()
        head = body.cfg.entry  # (where nothing ever comes back to the loop it begins with its head)
        node = body.cfg.blocks[head]
        state = State()
        if node.end == "jump":
            body.executor.run(state, node.ops)
            head = node.successors[0]
        stack = state.stack
        accumulator = None
        if build_kind != "YIELD":
            accumulator = Accumulator(build_kind)
            stack[:1] = [accumulator]
        loops = None
        if body.reducer is not None and len(stack) == 1 + (accumulator is not None):
            loops = parse_loops(body.reducer, head, stack, accumulator)
        if loops is None:
            raise CannotDecompile(STRUCTURE, "a comprehension" if accumulator is not None else "a generator expression")
        generators, element, _ = loops
        captured = {name for op in canonicalise(code).ops if type(op.arg) is Code for name in op.arg.freevars}
        # (comprehensions that are inlined in this one set theirs aside)
        foreign = {*code.arguments, *(op.arg for op in canonicalise(code).ops if op.kind in SET_ASIDE)}
        names = [self.plain_name(n) for n in (*code.varnames, *code.cellvars) if n not in foreign]
        name_dropped(generators, names, [self.plain_name(n) for n in code.cellvars if n not in captured])
        result = build_comprehension(build_kind, element, generators, iterable)
        # up to 3.11 the function of an asynchronous comprehension is a coroutine, and the compiler adds the await
        # (``compiler_comprehension`` in compile.c)
        if isinstance(result, Comprehension):
            result.awaited = bool(code.flags & CO_COROUTINE)
        return result


def _part(parts: dict[str, Any], key: str, *kinds: type[ast.expr]) -> Any:
    """Return what a function is made of besides its code, which must be of these kinds; ``None`` without it."""
    node = parts.get(key)
    if node is None or isinstance(node, kinds):
        return node
    raise CannotDecompile(LIFT, f"{key} made in another way")


def make_function(
    code: Code, name: str, arguments: ast.arguments, body: list[ast.stmt], decorators: Iterable[ast.expr] = (),
    returns: ast.expr | None = None,
) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """Return the definition of a function."""
    fields: dict[str, Any] = {"type_params": []} if _TYPE_PARAMS else {}
    kind = ast.AsyncFunctionDef if code.flags & (CO_COROUTINE | CO_ASYNC_GENERATOR) else ast.FunctionDef
    return kind(name, arguments, body, [*decorators], returns, None, **fields)


def as_expression(stmts: list[ast.stmt]) -> ast.expr:
    """Return the expression of a lambda's body."""
    if stmts and isinstance(stmts[0], ast.Return):
        return stmts[0].value or ast.Constant(None)
    if len(stmts) == 2 and isinstance(stmts[0], ast.Expr) and isinstance(stmts[1], ast.Return):
        return stmts[0].value  # a generator's lambda: ``lambda: (yield)``
    if stmts and isinstance(stmts[0], ast.If):
        test = stmts[0]
        return ast.IfExp(test.test, as_expression(test.body), as_expression(test.orelse or stmts[1:]))
    raise CannotDecompile(LIFT, "a lambda with statements")


def top_level(code: Code, options: Options, name: str | None = None) -> ast.Module:
    """Return a module that contains the definition of ``code`` (or is it)."""
    if code.name == "<module>":
        options.future_annotations = bool(code.flags & CO_FUTURE_ANNOTATIONS)
        if options.form == "eval" and options.tiers.of(code) is not Tier.DISPATCH:
            return ast.Module([ast.Expr(as_expression(CodeScope(code, options, None, "lambda").structured()))], [])
        return ast.Module(CodeScope(code, options, None, "module").statements(), [])
    scope = CodeScope(code, options, None, "function")
    arguments, _ = scope.arguments(code, {}, scope)
    return ast.Module([make_function(code, legal(name or code.name), arguments, scope.statements())], [])
