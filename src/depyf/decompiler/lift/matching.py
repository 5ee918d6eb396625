"""Patterns of ``match``, as :mod:`~depyf.decompiler.undo.match_patterns` found them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ...bytecode.operations import Op
from ..errors import LIFT, CannotDecompile
from ..rules import registrar
from .stack import CaseTest, Rule, State, Subject

if TYPE_CHECKING:
    from ..undo.match_patterns import Case, Value
    from .executor import SymbolicExecutor

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule("CASE")
def _(executor: SymbolicExecutor, state: State, case: Case) -> None:
    if state.parameters:
        raise CannotDecompile(LIFT, "a pattern")  # not looked at apart from its subject
    entry = state.stack[-1] if state.stack else None
    if isinstance(entry, Subject):
        state.stack.pop()
    else:
        entry = Subject(executor.pop(state))
    if case.keeps:
        state.stack.append(entry)
    state.stack.append(CaseTest(entry, pattern(executor, case.pattern), case.never))


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
        result = _plain(executor, value, value.kind.value)
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
    # ``[a, *_, b]``: parts are looked up by index, what is between is not looked at
    after = -min([0, *value.parts])
    before = max(value.length - after, 0)
    first, last = range(before), range(-after, 0)
    return [*part_patterns(executor, value, first), ast.MatchStar(), *part_patterns(executor, value, last)]


def part_patterns(executor: SymbolicExecutor, value: Value, places: range) -> list[ast.pattern]:
    """Return the patterns of parts; those that are not looked at are ``_``."""
    return [pattern(executor, value.parts[i]) if i in value.parts else ast.MatchAs() for i in places]


def alone(executor: SymbolicExecutor, ops: list[Op]) -> ast.expr:
    """Return the expression that operations leave on an empty stack."""
    state = State()
    executor.run(state, ops)
    return executor.pop(state)
