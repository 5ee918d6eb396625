"""Insertion of deletes (liveness): what the text no longer uses is freed where it runs.

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
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from ..decompiler.dynamo.global_names import IMPORT_PREFIXES
from ..decompiler.trees import KINDS, nodes_of

#: Operators that can mark a move; the first that the text applies to nothing is taken.
MARKS: tuple[type[ast.unaryop], ...] = (ast.Invert, ast.USub)

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SCOPES = (*_DEFINITIONS, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_WITH = (ast.With, ast.AsyncWith)
#: Nodes that nobody sees happen: only values move.
_QUIET = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return, ast.Delete, ast.Pass, ast.Name, ast.Constant, ast.Tuple,
          ast.List, ast.Subscript)
#: What making an object again consists of, besides such nodes.
_MAKES = (ast.Attribute, ast.NamedExpr, ast.Dict)
_MAKING = frozenset({"__new__", "object_setattr_ignore_descriptor", "__setattr__", "__setitem__", "extend"})
#: What shows the names of a frame.
_SHOWS_NAMES = frozenset({"locals", "vars", "dir", "eval", "exec", "super"})


class Freed(NamedTuple):
    """The outcome for a tree.

    Attributes:
        mark: the operator that marks moves, or ``None`` if there are none.
        changed: whether anything is freed.
    """

    mark: type[ast.unaryop] | None
    changed: bool


def free_unused(definition: ast.FunctionDef | ast.AsyncFunctionDef, kept: Collection[str]) -> Freed:
    """Has the function free what it no longer uses.

    Args:
        definition: the function, changed in place.
        kept: variables that may not be freed: cells. (Parameters are not, either.)
    """
    own = _Names(definition)
    if not own.shown:
        return Freed(None, False)
    mark = next((mark for mark in MARKS if mark not in own.applied), None)
    walk = _Freeing(frozenset(own.bound - own.shared).difference(kept, _imported(definition)), mark)
    definition.body, _ = walk.block(definition.body, frozenset(), frozenset(), frozenset(), outermost=True)
    return Freed(mark if walk.moves else None, bool(walk.freed))


def _imported(definition: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Variables for what the text imports: that lives in its module anyway."""
    result: set[str] = set()
    for stmt in definition.body:
        value = stmt.value if isinstance(stmt, ast.Assign) else None
        while isinstance(value, ast.Attribute):
            value = value.value
        if not (isinstance(stmt, ast.Assign) and isinstance(value, ast.Name) and value.id.startswith(IMPORT_PREFIXES)):
            break
        result |= _stored(*stmt.targets)
    return result


class _Names:
    """The names of a function and their uses, found in one walk.

    Attributes:
        bound: those that its statements bind.
        shared: those that are not its own alone: declared, in comprehensions (which have variables of their own before
            3.12), of handlers (which Python frees itself), parameters.
        applied: the unary operators that it applies.
        shown: whether all its names are seen in its text, and by nobody else.
    """

    def __init__(self, definition: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.bound: set[str] = set()
        self.shared = {node.arg for node in nodes_of(definition.args) if isinstance(node, ast.arg)}
        self.applied: set[type[ast.unaryop]] = set()
        self.shown = True
        pending: list[tuple[ast.AST, bool]] = [(statement, True) for statement in definition.body]
        while pending:
            node, ours = pending.pop()
            if isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Store):
                    (self.bound if ours else self.shared).add(node.id)
                elif node.id in _SHOWS_NAMES:
                    self.shown = False
            elif isinstance(node, ast.UnaryOp):
                self.applied.add(type(node.op))
            elif isinstance(node, ast.ExceptHandler):
                self.shared.add(node.name or "")
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                self.shared.update(node.names)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                self.bound.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
            if isinstance(node, (*_SCOPES, *_COMPREHENSIONS)):
                self.bound.update([node.name] if isinstance(node, _DEFINITIONS) else ())
                ours = False
            for value in node.__dict__.values():
                if isinstance(value, ast.AST):
                    if not isinstance(value, KINDS):
                        pending.append((value, ours))
                elif isinstance(value, list):
                    pending += [(item, ours) for item in value
                                if isinstance(item, ast.AST) and not isinstance(item, KINDS)]


class _Facts(NamedTuple):
    """Facts that liveness asks for of a statement or an expression.

    Attributes:
        reads: every name that is read or deleted in there, however deep.
        quiet: whether nobody sees it happen: only values move.
    """

    reads: frozenset[str]
    quiet: bool


def _facts_of(node: ast.AST) -> _Facts:
    reads = set()
    quiet = True
    makes = any(isinstance(part, ast.Call) and _makes(part) for part in nodes_of(node))
    for part in nodes_of(node):
        if isinstance(part, ast.Name):
            if not isinstance(part.ctx, ast.Store):
                reads.add(part.id)
        elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            reads.add(part.target.id)
        quiet = quiet and (isinstance(part, _QUIET) or makes and (
            _makes(part) if isinstance(part, ast.Call) else isinstance(part, _MAKES)))
    return _Facts(frozenset(reads), quiet)


def _makes(call: ast.Call) -> bool:
    """Return whether a call helps to make an object again (:mod:`depyf.decompiler.dynamo`).

    Nothing long runs meanwhile.
    """
    function = call.func
    return isinstance(function, ast.Attribute) and function.attr in _MAKING or isinstance(
        function, ast.Name) and function.id == "type"


class _Freeing:
    """Liveness backwards, what is certainly bound forwards, over structured statements."""

    def __init__(self, local: frozenset[str], mark: type[ast.unaryop] | None) -> None:
        self.local = local
        self.mark = mark
        self.freed: list[str] = []
        self.moves = 0
        self._facts: dict[ast.AST, _Facts] = {}

    def facts(self, node: ast.AST) -> _Facts:
        result = self._facts.get(node)
        if result is None:
            result = self._facts[node] = _facts_of(node)
        return result

    def reads(self, *nodes: ast.AST) -> frozenset[str]:
        return frozenset().union(*(self.facts(node).reads for node in nodes))

    # --- what is live ------------------------------------------------------------------------------
    def live_before(self, stmt: ast.stmt, after: frozenset[str], always: frozenset[str]) -> frozenset[str]:
        if isinstance(stmt, ast.If):
            live = self.live(stmt.body, after, always) | self.live(stmt.orelse, after, always)
            return live | self.reads(stmt.test) | always
        if isinstance(stmt, (ast.Return, ast.Raise)):
            return self.reads(stmt) | always
        if _is_simple(stmt):
            return (after - _bound_by(stmt)) | self.reads(stmt) | always
        return after | self.reads(stmt) | always  # loops, handlers and the like: all of theirs

    def live(self, block: list[ast.stmt], after: frozenset[str], always: frozenset[str]) -> frozenset[str]:
        for stmt in reversed(block):
            after = self.live_before(stmt, after, always)
        return after | always

    # --- freeing -----------------------------------------------------------------------------------
    def block(
        self, block: list[ast.stmt], after: frozenset[str], always: frozenset[str], bound: frozenset[str],
        outermost: bool = False,
    ) -> tuple[list[ast.stmt], frozenset[str]]:
        """Return the statements with what is freed in between, and what is certainly bound at their end.

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
        for node in (delete, *targets):
            ast.copy_location(node, at)
        return [delete]

    def statement(
        self, stmt: ast.stmt, after: frozenset[str], always: frozenset[str], bound: frozenset[str]
    ) -> tuple[ast.stmt, frozenset[str], frozenset[str]]:
        """Return the statement, what is bound after it, and what of that nobody needs any more."""
        freed_before = len(self.freed)
        if isinstance(stmt, ast.If):
            return self.branches(stmt, after, always, bound)
        if _is_simple(stmt):
            defined = _bound_by(stmt) & self.local
            if not self.facts(stmt).quiet:
                bound -= self.move(stmt, after - defined)
            if isinstance(stmt, ast.Delete):
                bound -= {t.id for t in stmt.targets if isinstance(t, ast.Name)}
            bound |= defined
            if isinstance(stmt, (ast.Return, ast.Raise)):
                return stmt, bound, frozenset()
            return stmt, bound, ((self.reads(stmt) | defined) & bound & self.local) - after
        if isinstance(stmt, _LOOPS):
            inside = always | after | self.reads(stmt)
            stmt.body, _ = self.block(stmt.body, inside, inside, bound)
            stmt.orelse, _ = self.block(stmt.orelse, after, always, bound) if stmt.orelse else ([], bound)
        elif isinstance(stmt, _WITH):  # a context may swallow what is raised inside: then it goes on behind it
            inside = always | after
            targets = [item.optional_vars for item in stmt.items if item.optional_vars is not None]
            named = frozenset(t.id for t in targets if isinstance(t, ast.Name)) & self.local
            stmt.body, _ = self.block(stmt.body, inside, inside, bound | named)
        elif isinstance(stmt, ast.Try):
            later = self.reads(*stmt.handlers, *stmt.orelse, *stmt.finalbody)
            ending = self.reads(*stmt.finalbody)
            stmt.body, _ = self.block(stmt.body, after | later, always | after | later, bound)
            for handler in stmt.handlers:
                handler.body, _ = self.block(handler.body, after | ending, always | after | ending, frozenset())
        elif isinstance(stmt, _DEFINITIONS):
            bound |= frozenset({stmt.name}) & self.local
        bound -= frozenset(self.freed[freed_before:])
        return stmt, bound, (self.reads(stmt) & bound & self.local) - after

    def branches(
        self, stmt: ast.If, after: frozenset[str], always: frozenset[str], bound: frozenset[str]
    ) -> tuple[ast.stmt, frozenset[str], frozenset[str]]:
        """Free at the start of each branch what only the other one needs."""
        lives = [self.live(stmt.body, after, always), self.live(stmt.orelse, after, always)]
        if not self.facts(stmt.test).quiet:
            bound -= self.move(stmt.test, lives[0] | lives[1])
        needed = (lives[0] | lives[1] | self.reads(stmt.test)) & bound & self.local
        ends: list[frozenset[str]] = []
        for field, live in zip(("body", "orelse"), lives):
            block: list[ast.stmt] = getattr(stmt, field)
            unused = needed - live
            first = self.delete(unused, block[0] if block else stmt)
            new, end = self.block(block, after, always, bound - unused) if block else ([], bound - unused)
            setattr(stmt, field, [*first, *new])
            if not _ends(block):
                ends.append(end)
        return stmt, (ends[0].intersection(*ends[1:]) if ends else frozenset()), frozenset()

    def move(self, owner: ast.stmt | ast.expr, needed: frozenset[str]) -> frozenset[str]:
        """Mark the last uses in a statement that calls something as moves, where they surely happen."""
        if self.mark is None or not (self.reads(owner) & self.local) - needed:
            return frozenset()
        last: dict[str, _Use] = {}
        unsure: set[str] = set()
        for use in _uses(owner):
            if use.certain and use.field:
                last[use.name.id] = use
                unsure.discard(use.name.id)
            else:
                unsure.add(use.name.id)
        inside = _stored(*(node.target for node in nodes_of(owner) if isinstance(node, ast.NamedExpr)))
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
    """Yield the reads of a statement or expression in the order in which they happen."""
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
    """Yield the parts of a node in the order in which they are evaluated: ``(field, index in it or -1, part)``."""
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


def _stored(*nodes: ast.AST) -> frozenset[str]:
    return frozenset(node.id for node in nodes_of(*nodes)
                     if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def _bound_by(stmt: ast.stmt) -> frozenset[str]:
    """Return the names that a simple statement certainly binds."""
    if isinstance(stmt, (ast.Import, ast.ImportFrom)):
        return frozenset((alias.asname or alias.name).partition(".")[0] for alias in stmt.names)
    if isinstance(stmt, ast.Assign):
        return _stored(*stmt.targets)
    if isinstance(stmt, (ast.AnnAssign, ast.AugAssign)):
        return _stored(stmt.target) if stmt.value is not None else frozenset()
    return frozenset()


def _is_simple(stmt: ast.stmt) -> bool:
    return not hasattr(stmt, "body") and not hasattr(stmt, "cases")


def _ends(block: list[ast.stmt]) -> bool:
    """Return whether no edge leads past the end of a block."""
    if not block:
        return False
    last = block[-1]
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    return isinstance(last, (ast.Return, ast.Raise, ast.Break, ast.Continue))
