"""Iterators, generators, handlers, ``with``, ``match``, and expressions with branches in them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ...bytecode import operations as o
from ...bytecode.operations import Op, registrar
from ..errors import LIFT, CannotDecompile
from ..nodes import Comprehension, FoldedBool, Literal, TemporaryName, decided
from . import stack as s
from .definitions import annotate, finish_import
from .spelling import negate, spelled

if TYPE_CHECKING:
    from ..undo.match_patterns import Case, Value
    from .executor import SymbolicExecutor


#: Operations that are one expression, or leave one entry, of what they take off the stack.
RULES: dict[str, s.Rule] = {
    "EXPR": lambda executor, state, node: node,
    "IFEXP": lambda executor, state, arms: ast.IfExp(spelled(executor.scope, executor.pop(state)), *arms),
    "NOT_IFEXP": lambda executor, state, arms: ast.IfExp(spelled(executor.scope, negate(executor.pop(state))), *arms),
    o.GET_ITER: lambda executor, state, _: state.stack.append(
        s.Iter(executor.scope.looked_through(executor.pop(state)))),
    o.GET_AITER: lambda executor, state, _: state.stack.append(s.Iter(executor.pop(state), True)),
    o.CHECK_EXC_MATCH: lambda executor, state, _: state.stack.append(s.Special("match", executor.pop(state))),
    o.BEFORE_WITH: lambda executor, state, _: state.stack.extend(
        (s.Exit(executor.pop(state), False), s.PendingTarget(s.Target("value")))),
    o.BEFORE_ASYNC_WITH: lambda executor, state, _: state.stack.extend(
        (s.Exit(executor.pop(state), True), s.PendingTarget(s.Target("value")))),
}
rule = registrar(RULES)


@rule(o.YIELD)
def _(executor: SymbolicExecutor, state: s.State, _: Any) -> ast.expr:
    value = executor.pop(state)
    place = executor.scope.position(executor.offset)
    is_wide = place is not None and (place.line, place.column) != (
        place.end_line, (place.end_column or 0) - len("yield"))  # as ``yield None`` is
    return ast.Yield(None if s.is_none(value) and not is_wide else value)


@rule(o.AWAIT)
def _(executor: SymbolicExecutor, state: s.State, _: Any) -> ast.expr | None:
    entry = state.pop()
    if isinstance(entry, s.PendingTarget):
        state.stack.append(entry)
        return None
    if isinstance(entry, Comprehension) and entry.awaited:
        # an asynchronous comprehension is a coroutine function that is called and awaited
        entry.awaited = False
        state.stack.append(entry)
        return None
    return ast.Await(entry if isinstance(entry, ast.expr) else executor.resolve(entry))


@rule(o.PUSH_EXC_INFO)
def _(executor: SymbolicExecutor, state: s.State, _: Any) -> None:
    exception = state.pop()
    if not isinstance(exception, s.Caught):
        raise CannotDecompile(LIFT, "PUSH_EXC_INFO outside a handler")
    state.stack.extend((s.Caught(True), exception))


@rule(o.POP_EXCEPT)
def _(executor: SymbolicExecutor, state: s.State, _: Any) -> None:
    entry = state.pop()
    if not (isinstance(entry, s.Caught) and entry.previous):
        raise CannotDecompile(LIFT, "POP_EXCEPT outside a handler")


@rule("LEAVE")
def _(executor: SymbolicExecutor, state: s.State, kind: str) -> None:
    """End a protected body, whose clean-up was already taken out (see ``structure.region_cfg``)."""
    if kind in ("with", "named"):
        for index, entry in reversed([*enumerate(state.stack)]):
            if isinstance(entry, s.Exit) if kind == "with" else isinstance(entry, s.Caught) and entry.previous:
                del state.stack[index]
                return
        raise CannotDecompile(LIFT, "the end of a with statement or handler outside it")


# --- Values dropped, copied, moved on the stack ------------------------------------------------------
@rule(o.POP)
def _(executor: SymbolicExecutor, state: s.State, _: Any) -> None:
    entry = state.pop()
    top = state.stack[-1] if state.stack else None
    if isinstance(entry, s.Special):
        if isinstance(entry, s.ImportedModule):
            finish_import(executor, state, entry)
        elif entry.kind == "annotation":
            annotate(executor, state, *entry.value)
        elif entry.kind not in ("lasti", "match", "null", "from"):
            raise CannotDecompile(LIFT, f"a value of the compiler is dropped ({entry.kind})")
        return
    if isinstance(entry, s.PendingTarget):
        if isinstance(entry.owner, s.Unpack):
            entry.owner.fill(executor, state, entry.index, None)
        return
    if isinstance(entry, s.Duplicate):
        if any(e is entry for e in state.stack):
            return
        entry = entry.value
        if isinstance(entry, (ast.Name, ast.Constant)):
            return
    if isinstance(entry, (s.Iter, s.Exit, s.Caught, s.StackParameter, s.Subject, TemporaryName)):
        return
    value = executor.resolve(entry)
    version = executor.scope.code.version
    if isinstance(value, Literal):
        # Only an f-string without fields (before 3.12) and a constant that decides a condition (3.10) leave that.
        is_text = isinstance(value, ast.Constant) and isinstance(value.value, str) and version < (3, 12)
        value = ast.JoinedStr([value]) if is_text else decided(value)
    elif isinstance(value, Comprehension):
        # 3.13 drops the value of an inlined one before it restores the variables, unless a jump leads there; 3.12 only
        # for an annotation (``apply_static_swaps`` in flowgraph.c).
        if value.restored is None and isinstance(top, s.Special) and top.kind == "null" and version < (3, 13):
            executor.emit(state, ast.AnnAssign(ast.Name("_", s.STORE), value, None, 0))
            return
        if value.restored is not None and version >= (3, 13):
            value = ast.BoolOp(ast.Or(), [ast.Constant(0), value])
    executor.emit(state, ast.Expr(value))


@rule(o.COPY)
def _(executor: SymbolicExecutor, state: s.State, depth: int) -> None:
    state.need(depth)
    stack = state.stack
    entry = stack[-depth]
    if isinstance(entry, (s.Iter, s.PendingTarget, s.Exit, s.Caught, s.Special)):
        if isinstance(entry, s.PendingTarget):
            raise CannotDecompile(LIFT, "an item is used twice")
        stack.append(entry)
        return
    if executor.spill and isinstance(entry, ast.expr) and not isinstance(entry, s.StackParameter):
        if not isinstance(entry, (ast.Constant, TemporaryName)):
            executor.spill_pending(state)
            entry = stack[-depth]
        stack.append(entry)
        return
    if not isinstance(entry, s.Duplicate):
        shared = s.Duplicate(entry)
        stack[-depth] = shared
        entry = shared
    stack.append(entry)


@rule(o.SWAP)
def _(executor: SymbolicExecutor, state: s.State, depth: int) -> None:
    state.need(depth)
    stack = state.stack
    stack[-1], stack[-depth] = stack[-depth], stack[-1]


@rule(o.ROT)
def _(executor: SymbolicExecutor, state: s.State, depth: int) -> None:
    state.need(depth)
    stack = state.stack
    stack.insert(len(stack) - depth, stack.pop())


# --- patterns of ``match`` ---------------------------------------------------------------------------
@rule("CASE")
def _(executor: SymbolicExecutor, state: s.State, case: Case) -> ast.expr:
    if state.parameters:
        raise CannotDecompile(LIFT, "a pattern")  # not looked at apart from its subject
    entry = state.stack[-1] if state.stack else None
    if isinstance(entry, s.Subject):
        state.stack.pop()
    else:
        entry = s.Subject(executor.pop(state))
    if case.keeps:
        state.stack.append(entry)
    return s.CaseTest(entry, pattern(executor, case.pattern), case.never)


def pattern(executor: SymbolicExecutor, value: Value) -> ast.pattern:
    """Return the pattern of a value: by its kind, of several alternatives, and with the name that it binds."""
    name = None if value.store is None else executor.scope.plain_name(value.store.arg)
    if len(value.copies) > 1:
        result: ast.pattern = ast.MatchOr([pattern(executor, copy) for copy in value.copies])
    elif value.copies:
        result = pattern(executor, value.copies[0])
    elif value.kind is None:
        return ast.MatchAs(None, name)
    else:
        result = _plain(executor, value, value.kind)
    return result if name is None else ast.MatchAs(result, name)


def _plain(executor: SymbolicExecutor, value: Value, kind: str) -> ast.pattern:
    if kind == "value":  # ``case 1:``, compared by ``==``
        return ast.MatchValue(alone(executor, value.ops))
    if kind == "singleton":  # ``case None:``, compared by ``is``
        return ast.MatchSingleton(value.constant)
    if kind == "sequence":
        return ast.MatchSequence(sequence(executor, value))
    if kind == "mapping":
        parts = part_patterns(executor, value, range(len(value.keys)))
        rest = value.rest.store if value.rest is not None else None
        return ast.MatchMapping([alone(executor, key) for key in value.keys], parts,
                                None if rest is None else executor.scope.plain_name(rest.arg))
    parts = part_patterns(executor, value, range(value.length + len(value.names)))
    split = value.length
    return ast.MatchClass(alone(executor, value.ops), parts[:split], list(value.names), parts[split:])


def sequence(executor: SymbolicExecutor, value: Value) -> list[ast.pattern]:
    """Return the patterns of the elements of a sequence, with a star where its length is open."""
    if not value.is_open:
        return part_patterns(executor, value, range(value.length))
    if value.star is not None:
        patterns: list[ast.pattern] = []
        for index in range(value.length + 1):
            part = pattern(executor, value.parts[index])
            if index == value.star:
                if not isinstance(part, ast.MatchAs):
                    raise CannotDecompile(LIFT, "a pattern of the rest of a sequence")
                part = ast.MatchStar(part.name)
            patterns.append(part)
        return patterns
    # ``[a, *_, b]``: parts are looked up by index, those between are not looked at
    after = -min([0, *value.parts])
    before = max(value.length - after, 0)
    first, last = range(before), range(-after, 0)
    return [*part_patterns(executor, value, first), ast.MatchStar(), *part_patterns(executor, value, last)]


def part_patterns(executor: SymbolicExecutor, value: Value, places: range) -> list[ast.pattern]:
    """Return the patterns of parts; those that are not looked at are ``_``."""
    return [pattern(executor, value.parts[i]) if i in value.parts else ast.MatchAs() for i in places]


def alone(executor: SymbolicExecutor, ops: list[Op]) -> ast.expr:
    """Return the expression that operations leave on an empty stack."""
    state = s.State()
    executor.run(state, ops)
    return executor.pop(state)


# --- expressions with branches in them ---------------------------------------------------------------
def fold_bool(executor: SymbolicExecutor, op: ast.boolop, left: ast.expr, right: ast.expr) -> FoldedBool:
    """Return ``left and right`` (or ``or``), joined with operands of the same operator."""
    values = [left, right]
    if isinstance(right, ast.BoolOp) and type(right.op) is type(op) and not (
        isinstance(right, FoldedBool) and right.tested_again
    ):
        values = [left, *right.values]
    if isinstance(left, FoldedBool) and type(left.op) is type(op) and left.folded:
        values = left.values + values[1:]
    if (3, 10) <= executor.scope.code.version < (3, 14):  # (whose compilers decide conditions of one constant)
        values[:-1] = map(executor.scope.in_barrier, values[:-1])
    return FoldedBool(op, values)


def condition(executor: SymbolicExecutor, state: s.State, right: ast.expr, op: ast.boolop) -> ast.expr:
    """Return a condition of the test on the stack and ``right``; one that is a merged value is tested once more."""
    if isinstance(right, FoldedBool) and right.merged:
        right.tested_again = True
        executor.scope.begins_a_line(right)
    return fold_bool(executor, op, tested(executor, executor.pop(state)), right)


def value_bool(executor: SymbolicExecutor, state: s.State, right: ast.expr, op: ast.boolop) -> ast.expr:
    """Return ``left or right`` (or ``and``) as a value that is merged from both, as in ``x = a or b``."""
    node = fold_bool(executor, op, tested(executor, executor.pop(state)), right)
    node.merged = True
    return node


def tested(executor: SymbolicExecutor, left: ast.expr) -> ast.expr:
    """Return the value that is tested first, prepared to be tested once more if it comes from a merge."""
    if isinstance(left, FoldedBool) and left.merged:
        left.folded = False
        executor.scope.begins_a_line(left)
    return left


def negated(executor: SymbolicExecutor, state: s.State, right: ast.expr, op: ast.boolop) -> ast.expr:
    """Return a condition of the contrary of the test on the stack and ``right``."""
    return fold_bool(executor, op, negate(executor.pop(state)), right)


for _name, _op in (("AND", ast.And()), ("OR", ast.Or())):
    RULES[_name] = partial(condition, op=_op)
    RULES[f"VALUE_{_name}"] = partial(value_bool, op=_op)
    RULES[f"NOT_{_name}"] = partial(negated, op=_op)


@rule("CHAIN")
def _(executor: SymbolicExecutor, state: s.State, rest: ast.Compare) -> ast.expr:
    first = state.pop()
    kept = state.pop()
    if isinstance(first, s.Duplicate):
        first = first.value
    if not isinstance(first, ast.Compare) or not s.same_duplicate(first.comparators[-1], kept):
        raise CannotDecompile(LIFT, "not a chained comparison")
    last = s.deduplicated(first.comparators[-1])
    return ast.Compare(first.left, first.ops + rest.ops, [*first.comparators[:-1], last, *rest.comparators])


@rule("COMPREHENSION")
def _(executor: SymbolicExecutor, state: s.State, make: Callable[[s.Entry], ast.expr]) -> ast.expr:
    iterable = state.pop()
    state.pop()
    return make(iterable)
