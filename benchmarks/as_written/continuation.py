"""What is left of a function when it goes on behind a line: the statements that a resume function stands for.

Example: in ``def f(x): ... if a: / print(x) / return x ... / return b`` the rest behind ``print(x)`` is ``return x``
alone, and behind the test of the ``if``, where it does not hold, what stands behind the ``if``.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

from .normalise import Function, TryStar, never_completes

Suite = list[ast.stmt]
#: What a context manager is called where torch entered it again: the statement is another one.
RESTORED = "the_context_that_is_entered_again"


def function_at(tree: ast.Module, line: int) -> Function | ast.Lambda | None:
    """The innermost function around a line."""
    found = [node for node in ast.walk(tree) if isinstance(node, Function | ast.Lambda)
             and node.lineno <= line <= (node.end_lineno or node.lineno)]
    return max(found, key=lambda node: node.lineno, default=None)


def continuations(function: Function | ast.Lambda, line: int) -> list[Suite]:
    """The ways in which a function may go on behind a break on a line.

    The line does not say what of a statement has been done: it may be finished, it may have to be done with values that
    are at hand, and of a test either branch may follow.
    """
    body = function.body if isinstance(function, Function) else [ast.Return(function.body, lineno=function.lineno)]
    return [[*suite] for suite in _behind(body, line)]


def _behind(suite: Suite, line: int) -> Iterator[Suite]:
    for at, stmt in enumerate(suite):
        if stmt.lineno <= line <= (stmt.end_lineno or stmt.lineno):
            for way in _ways(stmt, line):
                yield way if never_completes(way) else [*way, *suite[at + 1:]]
            return


def _ways(stmt: ast.stmt, line: int) -> Iterator[Suite]:
    """How a statement may be continued: each way is what is still to be done of it."""
    for suite, around in _suites(stmt):
        if suite and suite[0].lineno <= line <= (suite[-1].end_lineno or line):
            for way in _behind(suite, line):
                yield around(way)
            return
    yield [stmt]
    yield []
    match stmt:
        case ast.If(test, body, orelse):
            yield body
            yield orelse
            for rest in _rests(test):
                yield [ast.copy_location(ast.If(rest, body, orelse), stmt)]
        case ast.While(test, body):
            leave = ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], [])
            yield [ast.copy_location(ast.While(ast.Constant(True), [*body, leave], stmt.orelse), stmt)]
        case ast.With(_, body):
            yield _entered(stmt, body)
    for at, node in enumerate(ast.walk(stmt)):
        if isinstance(node, ast.IfExp):
            yield [_decided(stmt, at, "body")]
            yield [_decided(stmt, at, "orelse")]


def _decided(stmt: ast.stmt, at: int, branch: str) -> ast.stmt:
    """A statement in which a conditional expression, that of a number in ``ast.walk``, is one of its branches."""
    made = copy.deepcopy(stmt)
    chosen = list(ast.walk(made))[at]

    class Decide(ast.NodeTransformer):
        def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
            return getattr(node, branch) if node is chosen else self.generic_visit(node)

    decided = Decide().visit(made)
    assert isinstance(decided, ast.stmt)
    return decided


def _suites(stmt: ast.stmt) -> Iterator[tuple[Suite, Callable[[Suite], Suite]]]:
    """The suites of a statement, each with what makes the rest of the statement of the rest of the suite."""
    same = lambda way: way
    match stmt:
        case ast.If():
            yield stmt.body, same
            yield stmt.orelse, same
        case ast.For() | ast.While() | ast.AsyncFor():
            yield stmt.body, lambda way: [*way, stmt]
            yield stmt.orelse, same
        case ast.With():
            yield stmt.body, lambda way: _entered(stmt, way)
        case ast.Try() | TryStar():
            def protected(way: Suite) -> Suite:
                inner = copy.copy(stmt)
                inner.body = way or [ast.Pass()]
                return [inner]

            yield stmt.body, protected
            for handler in stmt.handlers:
                yield handler.body, same
            yield stmt.orelse, same
            yield stmt.finalbody, same
        case ast.Match():
            for case in stmt.cases:
                yield case.body, same


def _entered(stmt: ast.With, body: Suite) -> Suite:
    names = [ast.withitem(ast.Name(RESTORED, ast.Load()), None) for _ in stmt.items]
    return [ast.copy_location(ast.With(names, body or [ast.Pass()]), stmt)]


def _rests(test: ast.expr) -> Iterator[ast.expr]:
    """What is left of a test whose first parts are known."""
    if isinstance(test, ast.BoolOp):
        for at, value in enumerate(test.values):
            rest = test.values[at + 1:]
            for left in _rests(value):
                yield ast.BoolOp(test.op, [left, *rest]) if rest else left
            if rest:
                yield ast.BoolOp(test.op, rest) if len(rest) > 1 else rest[0]
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        for left in _rests(test.operand):
            yield ast.UnaryOp(test.op, left)


def with_user_words(ours: Suite, user: Suite, given: frozenset[str]) -> Suite:
    """The statements of a text with the user's expressions for what torch hands over.

    Args:
        ours: the statements of the text; they are changed.
        user: those of the user's function.
        given: the names of values that lay on the stack.
    """
    inner, other = ours, user
    while inner and other and _is_restored(other[0]) and isinstance(inner[0], ast.With):
        assert isinstance(other[0], ast.With)
        inner[0].items = copy.deepcopy(other[0].items)
        inner, other = inner[0].body, other[0].body
    if inner and other:
        inner[0] = _filled(inner[0], other[0], given)
    return ours


def _is_restored(stmt: ast.stmt) -> bool:
    match stmt:
        case ast.With([ast.withitem(ast.Name(name)), *_]):
            return name == RESTORED
    return False


def _filled(ours: ast.AST, user: ast.AST, given: frozenset[str]) -> ast.AST:
    """A tree with the user's part for each name of a value that was given."""
    name = ours.func if _calls_next(ours) else ours
    if isinstance(name, ast.Name) and name.id in given and isinstance(user, ast.expr):
        return copy.deepcopy(user)
    if type(ours) is not type(user):
        return ours
    for name, value in ast.iter_fields(ours):
        theirs = getattr(user, name)
        if isinstance(value, ast.AST) and isinstance(theirs, ast.AST):
            setattr(ours, name, _filled(value, theirs, given))
        elif isinstance(value, list) and isinstance(theirs, list) and len(value) == len(theirs) \
                and not (value and isinstance(value[0], ast.stmt)):
            setattr(ours, name, [_filled(one, two, given) if isinstance(one, ast.AST) and isinstance(two, ast.AST)
                                 else one for one, two in zip(value, theirs)])
    return ours


def _calls_next(node: ast.AST) -> bool:
    """Whether a node is a call of the resume function of an inlined function: ``f(*values)``."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.func.id.startswith("___stack") \
        and len(node.args) == 1 and isinstance(node.args[0], ast.Starred)
