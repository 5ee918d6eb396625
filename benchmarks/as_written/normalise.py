"""A function's tree without what its bytecode does not hold.

Every rule stands for one thing that the compiler drops or makes the same, so that no decompiler could know it. A rule
takes a node (whose children are normalised) or the statements of a block, and returns what stands in its place.
"""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = Function | ast.ClassDef
_Made = TypeVar("_Made", bound=ast.AST)

#: ``except*`` came in 3.11.
TryStar: type[ast.stmt] = getattr(ast, "TryStar", ast.Try)

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.BitAnd: operator.and_}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Invert: operator.invert, ast.Not: operator.not_, ast.UAdd: operator.pos, ast.USub: operator.neg}
OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}
#: More than the compiler folds in any version: what it leaves stands in both trees alike.
_MOST_BITS, _MOST_ITEMS = 4096, 20000


def normalise(function: Function, version: tuple[int, int]) -> Function:
    """The tree of a function of that version of Python, normalised in place."""
    return _Normaliser(version).visit(function)


class _Normaliser(ast.NodeTransformer):
    def __init__(self, version: tuple[int, int]) -> None:
        self.version = version
        self.scopes: list[_Scope] = []

    def visit(self, node: Any) -> Any:
        if isinstance(node, _Scope):
            return self.scope(node)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                setattr(node, name, self.block(block))
        self.visit_rest(node)
        for rule in EXPRESSION_RULES:
            node = rule(node)
        return node

    def visit_rest(self, node: ast.AST) -> None:
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and not (value and isinstance(value[0], ast.stmt)):
                setattr(node, name, [self.visit(item) if isinstance(item, ast.AST) else item for item in value])
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        in_function = bool(self.scopes) and not isinstance(self.scopes[-1], ast.ClassDef)
        done = [self.visit(statement) for statement in statements]
        for rule in BLOCK_RULES:
            done = rule(done)
        if in_function:
            done = without_annotations(done)
        return done if done or not statements else [ast.Pass()]

    def scope(self, node: _Scope) -> _Scope:
        in_function = not isinstance(node, ast.ClassDef)
        doc = take_docstring(node, self.version)
        names = declared(node)
        self.scopes.append(node)
        body = self.block(node.body)
        self.scopes.pop()
        self.visit_rest(node)
        if in_function:
            body = without_last_return(body)
        node.body = body
        body = declarations(names, bound(node) if in_function else None) + body
        if doc is not None:
            body = [doc, *(statement for statement in body if not isinstance(statement, ast.Pass))]
        node.body = body or [ast.Pass()]
        return node


# --- expressions ----------------------------------------------------------------------------------
def folded_operators(node: ast.AST) -> ast.AST:
    """``2 * 3`` is 6, ``-1`` a constant, ``(1, 2)[0]`` is 1: the compiler computes what is made of constants."""
    try:
        match node:
            case ast.BinOp(ast.Constant(left), op, ast.Constant(right)):
                if _small(op, left, right):
                    return ast.Constant(_limited(_BINARY[type(op)](left, right)))
            case ast.UnaryOp(op, ast.Constant(value)):
                return ast.Constant(_limited(_UNARY[type(op)](value)))
            case ast.Subscript(ast.Constant(value), ast.Constant(index), ast.Load()):
                return ast.Constant(value[index])
    except (TypeError, ValueError, ArithmeticError, LookupError, KeyError):
        pass
    return node


def _small(op: ast.operator, left: Any, right: Any) -> bool:
    """Whether an operation on constants has a result of moderate size."""
    if isinstance(op, ast.Pow | ast.LShift) and isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length() * right if isinstance(op, ast.Pow) else left.bit_length() + right
        return bits <= _MOST_BITS
    if isinstance(op, ast.Mult) and isinstance(left, str | bytes | tuple) != isinstance(right, str | bytes | tuple):
        items, times = (left, right) if isinstance(right, int) else (right, left)
        return isinstance(times, int) and len(items) * times <= _MOST_ITEMS
    # (A format may ask for any width.)
    return not (isinstance(op, ast.Mod) and isinstance(left, str | bytes))


def _limited(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise ValueError("too large")
    return value


def folded_tuples(node: ast.AST) -> ast.AST:
    """A tuple of constants is a constant: ``-1, 2`` may be an expression of any kind that makes it."""
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load) and _constants(node.elts):
        return ast.Constant(tuple(item.value for item in node.elts))  # type: ignore[attr-defined]
    return node


def _constants(items: Sequence[ast.expr]) -> bool:
    return all(isinstance(item, ast.Constant) for item in items)


def folded_debug(node: ast.AST) -> ast.AST:
    """``__debug__`` is ``True``."""
    return ast.Constant(True) if isinstance(node, ast.Name) and node.id == "__debug__" else node


def without_string_kinds(node: ast.AST) -> ast.AST:
    """``u'x'`` is ``'x'``."""
    if isinstance(node, ast.Constant):
        node.kind = None
    return node


def displays_searched(node: ast.AST) -> ast.AST:
    """``x in [1, 2]`` has a tuple, ``x in {1, 2}`` a frozen set, and ``for x in [1, 2]`` a tuple."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[-1], ast.In | ast.NotIn):
        node.comparators[-1] = _as_constant(node.comparators[-1])
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        node.iter = _as_constant(node.iter)
    return node


def _as_constant(display: ast.expr) -> ast.expr:
    if isinstance(display, ast.List) and not any(isinstance(item, ast.Starred) for item in display.elts):
        made = folded_tuples(ast.Tuple(display.elts, ast.Load()))
        assert isinstance(made, ast.expr)
        return made
    if isinstance(display, ast.Set) and _constants(display.elts):
        display.elts = _sorted(display.elts)
    return display


def sets_sorted(node: ast.AST) -> ast.AST:
    """``{1, 2, 3}`` is made from a frozen set, which has lost the order."""
    if isinstance(node, ast.Set) and len(node.elts) > 2 and _constants(node.elts):
        node.elts = _sorted(node.elts)
    return node


def _sorted(items: list[ast.expr]) -> list[ast.expr]:
    unique = {ast.dump(item): item for item in items}
    return [unique[key] for key in sorted(unique)]


def not_in(node: ast.AST) -> ast.AST:
    """``not x in y`` is ``x not in y``, and ``not x is y`` is ``x is not y``, which is always written."""
    match node:
        case ast.UnaryOp(ast.Not(), ast.Compare(_, [op], _) as compare) if type(op) in OPPOSITE:
            compare.ops = [OPPOSITE[type(op)]()]
            return compare
    return node


def joined_strings(node: ast.AST) -> ast.AST:
    """The constant parts of an f-string between two values are one part; one without values is a constant."""
    if isinstance(node, ast.FormattedValue) and isinstance(node.format_spec, ast.Constant):
        node.format_spec = ast.JoinedStr([node.format_spec] * bool(node.format_spec.value))
    if not isinstance(node, ast.JoinedStr):
        return node
    parts: list[ast.expr] = []
    for part in node.values:
        if isinstance(part, ast.Constant) and parts and isinstance(parts[-1], ast.Constant):
            parts[-1] = ast.Constant(str(parts[-1].value) + str(part.value))
        elif not (isinstance(part, ast.Constant) and part.value == ""):
            parts.append(part)
    node.values = parts
    if _constants(parts):
        return parts[0] if parts else ast.Constant("")
    return node


def decided_expressions(node: ast.AST) -> ast.AST:
    """``x if 1 else y`` is ``x``, ``0 or x`` is ``x``: a jump on a constant is none."""
    match node:
        case ast.IfExp(ast.Constant(value)):
            return node.body if value else node.orelse
        case ast.BoolOp(op, [ast.Constant(value) as first, *rest]):
            if bool(value) != isinstance(op, ast.And):
                return first
            return decided_expressions(ast.BoolOp(op, rest)) if len(rest) > 1 else rest[0]
    return node


def targets_as_tuples(node: ast.AST) -> ast.AST:
    """``[a, b] = x`` is ``(a, b) = x``, to the column."""
    if isinstance(node, ast.List) and isinstance(node.ctx, ast.Store | ast.Del):
        return ast.Tuple(node.elts, node.ctx)
    if isinstance(node, ast.Delete):
        node.targets = [item for target in node.targets for item in _targets(target)]
    return node


def _targets(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, ast.Tuple):
        for item in target.elts:
            yield from _targets(item)
    else:
        yield target


def endless_loops(node: ast.AST) -> ast.AST:
    """``while 1`` is ``while True``, and its ``else`` is dead."""
    if isinstance(node, ast.While) and isinstance(node.test, ast.Constant) and node.test.value:
        node.test = ast.Constant(True)
        node.orelse = []
    return node


def without_dead_else(node: ast.AST) -> ast.AST:
    """The ``else`` of a ``try`` whose body never gets to its end is dead."""
    if isinstance(node, ast.Try | TryStar) and node.orelse and never_completes(node.body):
        node.orelse = []
    return node


# --- blocks ---------------------------------------------------------------------------------------
def decided_statements(block: list[ast.stmt]) -> list[ast.stmt]:
    """``if 0``, ``while 0`` and ``if __debug__`` are what they come to; ``assert True`` is nothing."""
    done: list[ast.stmt] = []
    for statement in block:
        match statement:
            case ast.If(ast.Constant(value)):
                done += statement.body if value else statement.orelse
            case ast.While(ast.Constant(value)) if not value:
                done += statement.orelse
            case ast.Assert(ast.Constant(value)) if value:
                pass
            case _:
                done.append(statement)
    return done


def without_dead_code(block: list[ast.stmt]) -> list[ast.stmt]:
    """Nothing is compiled behind ``return``, ``raise``, ``continue``, ``break`` and what always comes to one."""
    for at, statement in enumerate(block):
        if never_completes([statement]):
            return block[: at + 1]
    return block


def without_constants(block: list[ast.stmt]) -> list[ast.stmt]:
    """A statement that is a constant (a string as a comment, ``...``) leaves nothing, and ``pass`` neither."""
    return [statement for statement in block if not isinstance(statement, ast.Pass)
            and not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))]


def without_declarations(block: list[ast.stmt]) -> list[ast.stmt]:
    """``global`` and ``nonlocal`` hold for the whole scope: they stand at its head, in order."""
    return [statement for statement in block if not isinstance(statement, ast.Global | ast.Nonlocal)]


def without_annotations(block: list[ast.stmt]) -> list[ast.stmt]:
    """Annotations of a function's variables are not compiled; ``self.x: int`` alone only evaluates ``self``."""
    done: list[ast.stmt] = []
    for statement in block:
        match statement:
            case ast.AnnAssign(target, _, None):
                if isinstance(target, ast.Attribute):
                    done.append(ast.Expr(target.value))
            case ast.AnnAssign(target, _, value):
                done.append(ast.Assign([target], value, lineno=statement.lineno))
            case _:
                done.append(statement)
    return done


def without_last_return(body: list[ast.stmt]) -> list[ast.stmt]:
    """A ``return`` of nothing at the end of a function is there anyway."""
    while body:
        match body[-1]:
            case ast.Return(None) | ast.Return(ast.Constant(None)):
                body = body[:-1]
            case _:
                break
    return body


def never_completes(block: Sequence[ast.stmt]) -> bool:
    """Whether control never gets from a block to what follows it, for reasons that the compiler sees."""
    for statement in block:
        match statement:
            case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
                return True
            case ast.Assert(ast.Constant(value)) if not value:
                return True
            case ast.If() if statement.orelse:
                if never_completes(statement.body) and never_completes(statement.orelse):
                    return True
            case ast.While(ast.Constant(value)) if value:
                if not any(_breaks(statement.body)):
                    return True
            case ast.Try() | TryStar():
                if never_completes(statement.finalbody) or (
                        (never_completes(statement.body) or never_completes(statement.orelse))
                        and all(never_completes(handler.body) for handler in statement.handlers)):
                    return True
            case ast.Match():
                if all(never_completes(case.body) for case in statement.cases) and _takes_all(statement.cases[-1]):
                    return True
    return False


def _takes_all(case: ast.match_case) -> bool:
    return case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None


def _breaks(block: Sequence[ast.stmt]) -> Iterator[bool]:
    """One item for each ``break`` out of the loop that the block belongs to."""
    for statement in block:
        if isinstance(statement, ast.Break):
            yield True
        elif isinstance(statement, ast.While | ast.For | ast.AsyncFor):
            yield from _breaks(statement.orelse)
        elif not isinstance(statement, _Scope):
            for name in ("body", "orelse", "finalbody"):
                yield from _breaks(getattr(statement, name, []))
            for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
                yield from _breaks(part.body)


# --- scopes ---------------------------------------------------------------------------------------
def take_docstring(scope: _Scope, version: tuple[int, int]) -> ast.stmt | None:
    """A docstring has lost its indentation from 3.13 on. (It is taken from its scope here.)"""
    match scope.body:
        case [ast.Expr(ast.Constant(str(text))), *rest]:
            scope.body = rest
            return ast.Expr(ast.Constant(inspect.cleandoc(text) if version >= (3, 13) else text))
    return None


def declared(scope: _Scope) -> set[tuple[type[ast.stmt], str]]:
    """The names that a scope declares, wherever in it."""
    return {(type(node), name) for node in own_nodes(scope) if isinstance(node, ast.Global | ast.Nonlocal)
            for name in node.names}


def declarations(names: set[tuple[type[ast.stmt], str]], used: set[str] | None) -> list[ast.stmt]:
    """In a function only names that it binds need ``global``: the others are read the same without."""
    done: list[ast.stmt] = []
    for kind in (ast.Global, ast.Nonlocal):
        wanted = sorted(name for which, name in names if which is kind and (used is None or name in used))
        if wanted:
            done.append(kind(wanted))
    return done


def bound(scope: _Scope) -> set[str]:
    """The names that a scope's own statements bind or delete."""
    found: set[str] = set()
    for node in own_nodes(scope):
        match node:
            case ast.Name(name, ast.Store() | ast.Del()):
                found.add(name)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(node.name)
            case ast.alias():
                found.add((node.asname or node.name).split(".")[0])
            case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
                found.add(node.name or "")
            case ast.MatchMapping():
                found.add(node.rest or "")
    return found


def own_nodes(scope: _Scope) -> Iterator[ast.AST]:
    """The nodes of a scope, without those of scopes inside; of comprehensions only what ``:=`` binds."""
    work: list[ast.AST] = list(scope.body)
    while work:
        node = work.pop()
        yield node
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            work += [inner.target for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr)]
        elif not isinstance(node, _Scope | ast.Lambda):
            work += ast.iter_child_nodes(node)


EXPRESSION_RULES: tuple[Callable[[ast.AST], ast.AST], ...] = (
    without_string_kinds, folded_debug, folded_operators, folded_tuples, not_in, joined_strings, displays_searched,
    sets_sorted, decided_expressions, targets_as_tuples, endless_loops, without_dead_else)
BLOCK_RULES: tuple[Callable[[list[ast.stmt]], list[ast.stmt]], ...] = (
    without_declarations, decided_statements, without_dead_code, without_constants)
#: All that is normalised, for the document.
RULES: tuple[Callable[..., object], ...] = (
    *EXPRESSION_RULES, *BLOCK_RULES, declarations, without_annotations, without_last_return, take_docstring)
