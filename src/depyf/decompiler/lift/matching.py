"""Patterns of ``match``, as :mod:`~depyf.decompiler.structure.patterns` found them. Changes with its operation."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...bytecode.operations import Op
from ..rules import registrar
from .rule import Rule
from .stack import CaseTest, State, Subject, Unliftable

if TYPE_CHECKING:
    from .executor import SymbolicExecutor

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule("CASE")
def _(executor: SymbolicExecutor, state: State, case: Any) -> None:
    if state.underflow >= 0:
        raise Unliftable("a pattern")  # not looked at apart from its subject
    entry = state.stack[-1] if state.stack else None
    if isinstance(entry, Subject):
        state.stack.pop()
    else:
        entry = Subject(executor.pop(state))
    if case.keeps:
        state.stack.append(entry)
    state.stack.append(CaseTest(entry, pattern(executor, case.pattern), case.never))


def pattern(executor: SymbolicExecutor, value: Any) -> ast.pattern:
    """The pattern that a value is held against (``structure.patterns.Value``)."""
    name = None if value.store is None else executor.scope.plain_name(value.store.arg)
    if len(value.copies) > 1:
        made: Any = ast.MatchOr([pattern(executor, copy) for copy in value.copies])
    elif value.copies:
        made = pattern(executor, value.copies[0])
    elif value.kind is None:
        return ast.MatchAs(None, name)
    elif value.kind == "value":
        made = ast.MatchValue(alone(executor, value.what))
    elif value.kind == "singleton":
        made = ast.MatchSingleton(value.what)
    elif value.kind == "sequence":
        made = ast.MatchSequence(sequence(executor, value))
    elif value.kind == "mapping":
        parts = part_patterns(executor, value, range(len(value.what)))
        rest = value.rest.store.arg if value.rest is not None else None
        made = ast.MatchMapping([alone(executor, key) for key in value.what], parts,
                                None if rest is None else executor.scope.plain_name(rest))
    else:
        parts = part_patterns(executor, value, range(value.length + len(value.names)))
        split = value.length
        made = ast.MatchClass(alone(executor, value.what), parts[:split], list(value.names), parts[split:])
    return made if name is None else ast.MatchAs(made, name)


def sequence(executor: SymbolicExecutor, value: Any) -> list[ast.pattern]:
    if value.star is None:
        return part_patterns(executor, value, range(value.length))
    if value.star >= 0:
        made: list[ast.pattern] = []
        for index in range(value.length + 1):
            part = pattern(executor, value.parts[index])
            if index == value.star:
                if not isinstance(part, ast.MatchAs):
                    raise Unliftable("a pattern of the rest of a sequence")
                part = ast.MatchStar(part.name)
            made.append(part)
        return made
    # ``[a, *_, b]``: parts are looked up by index, what is between is not looked at
    after = -min([0, *value.parts])
    before = max(value.length - after, 0)
    first, last = range(before), range(-after, 0)
    return [*part_patterns(executor, value, first), ast.MatchStar(), *part_patterns(executor, value, last)]


def part_patterns(executor: SymbolicExecutor, value: Any, places: range) -> list[ast.pattern]:
    """Patterns of parts; those that nobody looks at are ``_``."""
    return [pattern(executor, value.parts[i]) if i in value.parts else ast.MatchAs() for i in places]


def alone(executor: SymbolicExecutor, ops: list[Op]) -> ast.expr:
    """The expression that operations make by themselves."""
    state = State()
    executor.run(state, ops)
    return executor.pop(state)
