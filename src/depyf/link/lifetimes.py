"""What the text no longer uses is freed where it runs.

Dynamo's code drops what it holds at once: it lets go of a graph's result before it goes on, and hands values over
from its stack. Source gives them names, and a name holds its value until the function returns: with many graph breaks
all intermediate results would pile up. So the tree that is compiled to run (not the text that is shown) gets

* ``del name`` before the first statement after the last use, on that statement's line: whoever stops there still sees
  the name, and what the statement calls no longer holds the value;
* a *move* where the last use is part of a statement that calls something (``return __resume_at_30_1(x)``): the value
  goes on the stack and the name is unbound (:func:`depyf.link.patches.with_moves` makes it of a marked operand).

Freed are only variables that the text itself binds, never parameters. Where it is unclear whether a name is bound or
still needed (loops, handlers), it is left alone. Nothing is trusted here: the caller proves the result.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from .trees import copied

#: Operators that can mark a move; the first that the text applies to nothing is taken.
MARKS: tuple[type[ast.unaryop], ...] = (ast.Invert, ast.USub)

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_WITH = (ast.With, ast.AsyncWith)
#: Nodes that nobody sees happen: only values move.
_QUIET = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return, ast.Delete, ast.Pass, ast.Name, ast.Constant, ast.Tuple,
          ast.List, ast.Subscript, ast.expr_context)
#: What shows the names of a frame.
_SHOWS_NAMES = frozenset({"locals", "vars", "dir", "eval", "exec", "super"})


class Freed(NamedTuple):
    """A tree in which names are freed.

    Attributes:
        definition: the function, changed.
        mark: the operator that marks moves, or ``None`` if there are none.
        changed: whether anything is freed.
    """

    definition: ast.FunctionDef | ast.AsyncFunctionDef
    mark: type[ast.unaryop] | None
    changed: bool


def free_unused(definition: ast.FunctionDef | ast.AsyncFunctionDef, local: Iterable[str]) -> Freed:
    """A copy of the function that frees what it no longer uses.

    Args:
        definition: the function.
        local: the variables that may be freed: fast locals that are no parameters.
    """
    definition = copied(definition)
    nodes = list(ast.walk(definition))
    if any(isinstance(node, ast.Name) and node.id in _SHOWS_NAMES for node in nodes):
        return Freed(definition, None, False)
    applied = {type(node.op) for node in nodes if isinstance(node, ast.UnaryOp)}
    mark = next((mark for mark in MARKS if mark not in applied), None)
    shared = {node.name for node in nodes if isinstance(node, ast.ExceptHandler)}  # Python frees them itself
    for node in nodes:
        if isinstance(node, _COMPREHENSIONS):  # before 3.12 they have variables of their own
            shared |= _stored(node)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            shared |= set(node.names)
    walk = _Freeing(frozenset(local) - shared, mark)
    definition.body, _ = walk.block(definition.body, frozenset(), frozenset(), frozenset(), outermost=True)
    return Freed(definition, mark if walk.moves else None, bool(walk.freed))


class _Freeing:
    """Liveness backwards, what is certainly bound forwards, over structured statements."""

    def __init__(self, local: frozenset[str], mark: type[ast.unaryop] | None) -> None:
        self.local = local
        self.mark = mark
        self.freed: list[str] = []
        self.moves = 0

    # --- what is live ------------------------------------------------------------------------------
    def live_before(self, stmt: ast.stmt, after: frozenset[str], always: frozenset[str]) -> frozenset[str]:
        if isinstance(stmt, ast.If):
            ways = self.live(stmt.body, after, always) | self.live(stmt.orelse, after, always)
            return ways | _mentioned(stmt.test) | always
        if isinstance(stmt, (ast.Return, ast.Raise)):
            return _mentioned(stmt) | always
        if _is_simple(stmt):
            return (after - _bound_by(stmt)) | _used(stmt) | always
        return after | _mentioned(stmt) | always  # loops, handlers and the like: all of theirs

    def live(self, block: list[ast.stmt], after: frozenset[str], always: frozenset[str]) -> frozenset[str]:
        for stmt in reversed(block):
            after = self.live_before(stmt, after, always)
        return after | always

    # --- freeing -----------------------------------------------------------------------------------
    def block(
        self, block: list[ast.stmt], after: frozenset[str], always: frozenset[str], bound: frozenset[str],
        outermost: bool = False,
    ) -> tuple[list[ast.stmt], frozenset[str]]:
        """The statements with what is freed in between, and what is certainly bound at their end.

        Args:
            after: what is live behind them.
            always: what may be asked for at any time (by a handler, by the next turn of a loop).
            bound: what is certainly bound before them.
        """
        lives = [after | always]
        for stmt in reversed(block):
            lives.append(self.live_before(stmt, lives[-1], always))
        lives.reverse()
        result: list[ast.stmt] = []
        pending: frozenset[str] = frozenset()
        for index, stmt in enumerate(block):
            result += self.delete(pending, stmt)
            bound -= pending
            stmt, bound, pending = self.statement(stmt, lives[index + 1], always, bound)
            result.append(stmt)
        last = block[-1] if block else None
        if pending and not outermost and last is not None and _is_simple(last):
            result += self.delete(pending, last)
            bound -= pending
        return result, bound

    def delete(self, names: frozenset[str], at: ast.stmt) -> list[ast.stmt]:
        if not names:
            return []
        self.freed += names
        targets: list[ast.expr] = [ast.Name(name, ast.Del()) for name in sorted(names)]
        delete = ast.Delete(targets)
        for node in ast.walk(delete):
            ast.copy_location(node, at)
        return [delete]

    def statement(
        self, stmt: ast.stmt, after: frozenset[str], always: frozenset[str], bound: frozenset[str]
    ) -> tuple[ast.stmt, frozenset[str], frozenset[str]]:
        """The statement, what is bound after it, and what of that nobody needs any more."""
        freed_before = len(self.freed)
        if isinstance(stmt, ast.If):
            return self.branches(stmt, after, always, bound)
        if _is_simple(stmt):
            defined = _bound_by(stmt) & self.local
            if not _is_quiet(stmt):
                bound -= self.move(stmt, after - defined)
            if isinstance(stmt, ast.Delete):
                bound -= {t.id for t in stmt.targets if isinstance(t, ast.Name)}
            bound |= defined
            if isinstance(stmt, (ast.Return, ast.Raise)):
                return stmt, bound, frozenset()
            return stmt, bound, ((_used(stmt) | defined) & bound & self.local) - after
        if isinstance(stmt, _LOOPS):
            inside = always | after | _mentioned(stmt)
            stmt.body, _ = self.block(stmt.body, inside, inside, bound)
            stmt.orelse, _ = self.block(stmt.orelse, after, always, bound) if stmt.orelse else ([], bound)
        elif isinstance(stmt, _WITH):  # a context may swallow what is raised inside: then it goes on behind it
            inside = always | after
            targets = [item.optional_vars for item in stmt.items if item.optional_vars is not None]
            named = frozenset(t.id for t in targets if isinstance(t, ast.Name)) & self.local
            stmt.body, _ = self.block(stmt.body, inside, inside, bound | named)
        elif isinstance(stmt, ast.Try):
            later = _mentioned(*stmt.handlers, *stmt.orelse, *stmt.finalbody)
            ending = _mentioned(*stmt.finalbody)
            stmt.body, _ = self.block(stmt.body, after | later, always | after | later, bound)
            for handler in stmt.handlers:
                handler.body, _ = self.block(handler.body, after | ending, always | after | ending, frozenset())
        elif isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound |= frozenset({stmt.name}) & self.local
        bound -= frozenset(self.freed[freed_before:])
        return stmt, bound, (_mentioned(stmt) & bound & self.local) - after

    def branches(
        self, stmt: ast.If, after: frozenset[str], always: frozenset[str], bound: frozenset[str]
    ) -> tuple[ast.stmt, frozenset[str], frozenset[str]]:
        """What only the other branch needs is freed where a branch begins."""
        ways = [self.live(stmt.body, after, always), self.live(stmt.orelse, after, always)]
        if not _is_quiet(stmt.test):
            bound -= self.move(stmt.test, ways[0] | ways[1])
        needed = (ways[0] | ways[1] | _mentioned(stmt.test)) & bound & self.local
        ends: list[frozenset[str]] = []
        for field, live in zip(("body", "orelse"), ways):
            block: list[ast.stmt] = getattr(stmt, field)
            unused = needed - live
            first = self.delete(unused, block[0] if block else stmt)
            new, end = self.block(block, after, always, bound - unused) if block else ([], bound - unused)
            setattr(stmt, field, [*first, *new])
            if not _ends(block):
                ends.append(end)
        return stmt, (ends[0].intersection(*ends[1:]) if ends else frozenset()), frozenset()

    def move(self, owner: ast.stmt | ast.expr, needed: frozenset[str]) -> frozenset[str]:
        """The last uses in a statement that calls something become moves, where they surely happen."""
        if self.mark is None:
            return frozenset()
        last: dict[str, _Use] = {}
        unsure: set[str] = set()
        for use in _uses(owner):
            if use.certain and use.field:
                last[use.name.id] = use
                unsure.discard(use.name.id)
            else:
                unsure.add(use.name.id)
        inside = _stored(ast.Tuple([n.target for n in ast.walk(owner) if isinstance(n, ast.NamedExpr)], ast.Load()))
        moved = []
        for name, use in last.items():
            if name in self.local and name not in needed and name not in unsure and name not in inside:
                marked = ast.copy_location(ast.UnaryOp(self.mark(), use.name), use.name)
                _put(use, marked)
                moved.append(name)
        self.moves += len(moved)
        self.freed += moved
        return frozenset(moved)


class _Use(NamedTuple):
    """A variable that is read, where it stands in its parent, and whether that surely happens, once."""

    name: ast.Name
    parent: ast.AST
    field: str
    place: int
    certain: bool


def _uses(owner: ast.AST) -> Iterator[_Use]:
    """The reads of a statement or expression in the order in which they happen."""
    def visit(node: Any, parent: ast.AST, field: str, index: int, certain: bool) -> Iterator[_Use]:
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                yield _Use(node, parent, field, index, certain)
            return
        if isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
            certain = False
        for name, position, child in _in_order(node):
            sure = certain and not (
                (isinstance(node, ast.IfExp) and name != "test")
                or (isinstance(node, ast.BoolOp) and position > 0)
                or (isinstance(node, ast.Compare) and position > 0)
                or (isinstance(node, ast.Assert) and name == "msg"))
            yield from visit(child, node, name, position, sure)

    yield from visit(owner, owner, "", -1, True)


def _in_order(node: ast.AST) -> Iterator[tuple[str, int, ast.AST]]:
    """The parts of a node in the order in which they are evaluated: ``(field, index in it or -1, part)``."""
    if isinstance(node, ast.Dict):
        for index, (key, item) in enumerate(zip(node.keys, node.values)):
            if key is not None:
                yield "keys", index, key
            yield "values", index, item
        return
    fields = list(node._fields)
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        fields.sort(key=lambda field: field != "value")
    elif isinstance(node, ast.IfExp):
        fields = ["test", "body", "orelse"]
    for field in fields:
        value = getattr(node, field, None)
        if isinstance(value, ast.AST):
            yield field, -1, value
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, ast.AST):
                    yield field, index, item


def _put(use: _Use, node: ast.expr) -> None:
    if use.place < 0:
        setattr(use.parent, use.field, node)
    else:
        getattr(use.parent, use.field)[use.place] = node


def _names(nodes: Iterable[ast.AST], *contexts: type[ast.expr_context]) -> frozenset[str]:
    return frozenset(node.id for top in nodes for node in ast.walk(top)
                     if isinstance(node, ast.Name) and isinstance(node.ctx, contexts))


def _mentioned(*nodes: ast.AST) -> frozenset[str]:
    """Every name that is read or deleted in there, however deep."""
    augmented = (n.target for top in nodes for n in ast.walk(top) if isinstance(n, ast.AugAssign))
    return _names(nodes, ast.Load, ast.Del) | _names(augmented, ast.Store)


_used = _mentioned


def _stored(node: ast.AST) -> frozenset[str]:
    return _names([node], ast.Store)


def _bound_by(stmt: ast.stmt) -> frozenset[str]:
    """The names that a simple statement certainly binds."""
    if isinstance(stmt, (ast.Import, ast.ImportFrom)):
        return frozenset((alias.asname or alias.name).partition(".")[0] for alias in stmt.names)
    if isinstance(stmt, ast.Assign):
        return _names(stmt.targets, ast.Store)
    if isinstance(stmt, (ast.AnnAssign, ast.AugAssign)):
        return _stored(stmt.target) if stmt.value is not None else frozenset()
    return frozenset()


def _is_simple(stmt: ast.stmt) -> bool:
    return not hasattr(stmt, "body") and not hasattr(stmt, "cases")


def _is_quiet(node: ast.AST) -> bool:
    return all(isinstance(part, _QUIET) for part in ast.walk(node))


def _ends(block: list[ast.stmt]) -> bool:
    """Whether no way leads past the end of a block."""
    if not block:
        return False
    last = block[-1]
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    return isinstance(last, (ast.Return, ast.Raise, ast.Break, ast.Continue))
