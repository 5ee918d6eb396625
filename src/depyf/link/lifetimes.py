"""Insertion of deletes (liveness): the code that runs frees what its text no longer uses, and so do graphs.

Dynamo's code drops a graph's result as soon as it can, and passes values on from its stack. Source gives them names,
and a name keeps its value until the function returns: with many graph breaks all intermediate results would pile up. So
the tree that is compiled to run (not the text that is shown) gets

* ``del name`` before the first statement after the last use, on that statement's line: a debugger that stops there
  still shows the name, and the value is free when the statement calls something;
* a *move* where the last use is part of a statement that calls something (``return __resume_at_30_1(x)``): the value
  goes on the stack and the name is unbound (:func:`depyf.link.patches.with_moves` makes it of a marked operand).

Only variables that the text itself binds are freed, never parameters. Where it is unclear whether a name is bound or
still needed (loops, handlers), it is left alone. The caller proves the result.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from ..decompiler.dynamo.global_names import IMPORT_PREFIXES
from ..decompiler.nodes import Transformer, nodes_of
from ..torch_text.parsed import as_printed

#: Operators that can mark a move; the first that the text does not use is taken.
MARKS: tuple[type[ast.unaryop], ...] = (ast.Invert, ast.USub)

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
#: Nodes with variables of their own; comprehensions have them before 3.12.
_SCOPES = (*_DEFINITIONS, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
#: Nodes that only move values.
_QUIET = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return, ast.Delete, ast.Pass, ast.Name, ast.Constant, ast.Tuple,
          ast.List, ast.Subscript)
#: Further nodes, and functions, of statements that make an object again (:mod:`depyf.decompiler.dynamo`).
_MAKES = (ast.Attribute, ast.NamedExpr, ast.Dict)
_MAKING = frozenset({"__new__", "object_setattr_ignore_descriptor", "__setattr__", "__setitem__", "extend"})
#: Functions that see the names of a frame.
_SHOWS_NAMES = frozenset({"locals", "vars", "dir", "eval", "exec", "super"})


class Freed(NamedTuple):
    """The outcome for a tree.

    Attributes:
        mark: the operator that marks moves, or ``None`` if there are none.
        changed: whether anything is freed.
    """

    mark: type[ast.unaryop] | None
    changed: bool


def free_unused(definition: ast.FunctionDef | ast.AsyncFunctionDef, cells: Collection[str]) -> Freed:
    """Change a function to free its variables after their last use, but for parameters and these cells."""
    nodes = list(nodes_of(*definition.body))
    if any(isinstance(node, ast.Name) and node.id in _SHOWS_NAMES and isinstance(node.ctx, ast.Load) for node in nodes):
        return Freed(None, False)
    applied = {type(node.op) for node in nodes if isinstance(node, ast.UnaryOp)}
    mark = next((mark for mark in MARKS if mark not in applied), None)
    freeing = _Freeing((_own_variables(definition) - _imported(definition)).difference(cells), mark)
    definition.body, _ = freeing.block(definition.body, frozenset(), frozenset(), frozenset(), outermost=True)
    return Freed(mark if freeing.moves else None, bool(freeing.freed))


def _imported(definition: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """Return the variables for imports at the beginning: modules refer to these values anyway."""
    result: frozenset[str] = frozenset()
    for stmt in definition.body:
        value = stmt.value if isinstance(stmt, ast.Assign) else None
        while isinstance(value, ast.Attribute):
            value = value.value
        if not (isinstance(stmt, ast.Assign) and isinstance(value, ast.Name) and value.id.startswith(IMPORT_PREFIXES)):
            break
        result |= _stored(*stmt.targets)
    return result


def _own_variables(definition: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """Return the variables that only the function's own statements bind: no parameters, handlers or inner scopes."""
    nodes = list(nodes_of(*definition.body))
    inner = {id(part) for node in nodes if isinstance(node, _SCOPES) for part in nodes_of(node) if part is not node}
    bound = set[str]()
    shared = {node.arg for node in nodes_of(definition.args) if isinstance(node, ast.arg)}
    for node in nodes:
        match node:
            case ast.Name(name, ast.Store()):
                (shared if id(node) in inner else bound).add(name)
            case ast.ExceptHandler(name=str(name)):
                shared.add(name)
            case ast.Global(names) | ast.Nonlocal(names):
                shared.update(names)
            case ast.Import() | ast.ImportFrom():
                bound |= _bound_by(node)
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                bound.add(name)
    return frozenset(bound - shared)


class _Facts(NamedTuple):
    """Facts of a statement or an expression.

    Attributes:
        reads: every name that is read or deleted in it, at any depth.
        quiet: it only moves values.
    """

    reads: frozenset[str]
    quiet: bool


def _facts_of(node: ast.AST) -> _Facts:
    parts = list(nodes_of(node))
    reads = {part.id for part in parts if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Store)}
    reads |= {part.target.id for part in parts if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name)}
    quiet: tuple[type[ast.AST], ...] = _QUIET
    if any(isinstance(part, ast.Call) and _makes(part) for part in parts):
        quiet += _MAKES
    return _Facts(frozenset(reads), all(
        _makes(part) if isinstance(part, ast.Call) else isinstance(part, quiet) for part in parts))


def _makes(call: ast.Call) -> bool:
    """Return whether a call helps to make an object again: nothing long runs meanwhile."""
    function = call.func
    return isinstance(function, ast.Attribute) and function.attr in _MAKING or isinstance(
        function, ast.Name) and function.id == "type"


class _Freeing:
    """Liveness backwards and certainly bound names forwards, over structured statements.

    In all methods, ``after`` are the names that are live after a statement or block, ``always`` those that may be read
    at any time (by a handler, by the next turn of a loop), ``bound`` those that are certainly bound before.
    """

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
        """Return the statements with deletes, and the names that are certainly bound after them."""
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
        """Return the statement, the names that are bound after it, and those of them that are no longer live."""
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
        if isinstance(stmt, (ast.For, ast.AsyncFor, ast.While)):
            inside = always | after | self.reads(stmt)
            stmt.body, _ = self.block(stmt.body, inside, inside, bound)
            stmt.orelse, _ = self.block(stmt.orelse, after, always, bound) if stmt.orelse else ([], bound)
        elif isinstance(stmt, (ast.With, ast.AsyncWith)):  # (a context may catch what is raised in it)
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
        parts = list(nodes_of(owner))
        inside = _stored(*(part.target for part in parts if isinstance(part, ast.NamedExpr)))
        marking = _Marking(self.local - needed - inside, Counter(_read(owner)), self.mark)
        marking.visit(owner)
        self.moves += len(marking.moved)
        self.freed += marking.moved
        return frozenset(marking.moved)


class _Marking(Transformer):
    """Marks the last read of variables, in the order of evaluation.

    No read of a part that may not be evaluated, or that is another scope, is marked.
    """

    def __init__(self, names: Collection[str], reads: Counter[str], mark: type[ast.unaryop]) -> None:
        self.names = names
        self.remaining = reads
        self.mark = mark
        self.moved: list[str] = []

    def visit(self, node: ast.AST) -> Any:
        """Return the node with marks."""
        match node:
            case ast.Name(name, ast.Load()):
                self.remaining[name] -= 1
                if name in self.names and not self.remaining[name]:
                    self.moved.append(name)
                    return ast.copy_location(ast.UnaryOp(self.mark(), node), node)
            case ast.IfExp():
                node.test = self.visit(node.test)
                self.skip(node.body, node.orelse)
            case ast.Assert():
                node.test = self.visit(node.test)
                self.skip(*filter(None, [node.msg]))
            case ast.BoolOp(_, values):
                values[0] = self.visit(values[0])
                self.skip(*values[1:])
            case ast.Compare(left, _, others):
                node.left, others[0] = self.visit(left), self.visit(others[0])
                self.skip(*others[1:])
            case ast.Dict(keys, values):
                for index, key in enumerate(keys):
                    keys[index], values[index] = key and self.visit(key), self.visit(values[index])
            case ast.Assign(targets, value):
                node.value = self.visit(value)
                targets[:] = map(self.visit, targets)
            case ast.AnnAssign(target, _, value):  # (in a function the annotation is not evaluated)
                node.value, node.target = value and self.visit(value), self.visit(target)
            case _ if isinstance(node, _SCOPES):
                self.skip(node)
            case _:
                return self.generic_visit(node)
        return node

    def skip(self, *nodes: ast.AST) -> None:
        """Count the reads of parts that may not be evaluated."""
        self.remaining.subtract(_read(*nodes))


def _read(*nodes: ast.AST) -> Iterator[str]:
    """Yield the names that are read in nodes, each as often as it is."""
    return (part.id for part in nodes_of(*nodes) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load))


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
    """Return whether control never reaches the end of a block."""
    if not block:
        return False
    last = block[-1]
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    return isinstance(last, (ast.Return, ast.Raise, ast.Break, ast.Continue))


# --- releases of a graph's values --------------------------------------------------------------------
# Torch writes them into the text of a graph, after each node (torch/fx/graph.py, ``delete_unused_values``)::
#
#     y = x.sin();  x = None
#
# The file of a graph leaves them out. What runs is the text of the file with the same assignments, after the last
# statement that mentions a value and on the line on which that statement begins, so that no debugger stops for them.
# Parameters are not released: torch has two names for each, and releases one.
#: A line that may have a slice or an ellipsis in a subscript.
_SLICE = re.compile(r"\w\[[^\"\n]*(?::|\.\.\.)")


def node_groups(body: Sequence[ast.stmt]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last statement of each node of a graph, as indices.

    A node is a statement, with all others on its line. An operation in place (``x += 1``) is followed by another
    name for what it changed (``y = x``).
    """
    first = 0
    while first < len(body):
        last = first
        while last + 1 < len(body) and (body[last + 1].lineno == body[first].lineno
                                        or last == first and _is_second_name(body[last + 1], body[first])):
            last += 1
        yield first, last
        first = last + 1


def release_values(function: ast.FunctionDef, parameters: bool = False) -> None:
    """Insert the releases of the values of a graph into its ``forward``.

    Args:
        parameters: also of its parameters, as in a graph without second names for them.
    """
    arguments = function.args
    given = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)} - {"self"}
    body = function.body
    groups = [(last, [node for node in nodes_of(*body[first : last + 1]) if isinstance(node, ast.Name)])
              for first, last in node_groups(body)]
    values = {name.id for _, names in groups for name in names if isinstance(name.ctx, ast.Store)}
    values = values | given if parameters else values - given
    for last, names in reversed(groups):
        released = dict.fromkeys(name.id for name in names if name.id in values)
        values.difference_update(released)
        if released and not isinstance(body[last], ast.Return) and not _takes_arguments(body[last]):
            body.insert(last + 1, _release(list(released), body[last].lineno))


def running_graph(text: str, path: str, parameters: bool = False) -> ast.Module:
    """Return the syntax tree of a graph's file as it runs; arguments as of :func:`release_values`.

    Raises:
        SyntaxError: and what else ``ast.parse`` raises.
    """
    tree = ast.parse(text, path)
    if _SLICE.search(text):
        tree = as_printed(tree)
    pending: list[ast.stmt] = list(tree.body)
    for statement in pending:
        if isinstance(statement, ast.ClassDef):
            pending += statement.body
        elif isinstance(statement, ast.FunctionDef):
            release_values(statement, parameters)
    return tree


def releases_parameters(function: ast.FunctionDef) -> bool:
    """Return whether a graph, as torch writes it, releases its parameters themselves."""
    return any(is_release(each) and _stored(each) & {given.arg for given in function.args.args}
               for each in function.body)


def is_release(statement: ast.stmt) -> bool:
    """Return whether a statement is ``a = b = None``."""
    return isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant) \
        and statement.value.value is None


def _is_second_name(statement: ast.stmt, changing: ast.stmt) -> bool:
    """Return whether a statement gives another name to what the one before it changed in place."""
    if isinstance(changing, ast.AugAssign):
        target: ast.expr = changing.target
    elif isinstance(changing, ast.Assign) and isinstance(changing.targets[0], ast.Subscript):
        target = changing.targets[0].value
    else:
        return False
    value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
    return isinstance(value, ast.Name) and isinstance(target, ast.Name) and value.id == target.id


def _takes_arguments(statement: ast.stmt) -> bool:
    """Return whether it is ``args_iter = iter(args_list)`` or ``x = next(args_iter)``: not removed even if unread."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("iter", "next")


def _release(names: Sequence[str], line: int) -> ast.stmt:
    """Return ``a = b = None``, all of it on a line."""
    place: dict[str, Any] = {"lineno": line, "end_lineno": line, "col_offset": 0, "end_col_offset": 0}
    return ast.Assign([ast.Name(name, ast.Store(), **place) for name in names], ast.Constant(None, **place), **place)
