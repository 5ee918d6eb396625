"""Insertion of deletes (liveness): the code that runs frees what its text no longer uses, and so do graphs.

Dynamo's code drops a graph's result as soon as it can, and passes values on from its stack. Source gives them names,
and a name keeps its value until the function returns: with many graph breaks all intermediate results would pile up. So
the tree that is compiled to run (not the text that is shown) gets

* ``del name`` before the first statement after the last use, on that statement's line: a debugger that stops there
  still shows the name, and the value is free when the statement calls something;
* a *move* where the last use is part of a statement that calls something (``return __resume_at_30_1(x)``): the value
  goes on the stack and the name is unbound (:func:`depyf.link.transformed.with_moves` makes it of a marked operand).

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

_Names = frozenset[str]
_NO_NAMES: _Names = frozenset()
#: Operators that can mark a move; the first that the text does not use is taken.
MARKS: tuple[type[ast.unaryop], ...] = (ast.Invert, ast.USub)

#: Nodes with variables of their own; comprehensions have them before 3.12.
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp,
           ast.DictComp, ast.GeneratorExp)
#: Nodes that only move values.
_QUIET = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return, ast.Delete, ast.Pass, ast.Name, ast.Constant, ast.Tuple,
          ast.List, ast.Subscript)
#: Further nodes, and functions, of statements that make an object again (:mod:`depyf.decompiler.dynamo`).
_MAKES = (ast.Attribute, ast.NamedExpr, ast.Dict)
_MAKING = frozenset({"__new__", "object_setattr_ignore_descriptor", "__setattr__", "__setitem__", "extend"})
#: Functions that see the names of a frame.
_SHOWS_NAMES = frozenset({"locals", "vars", "dir", "eval", "exec", "super"})


class Freed(NamedTuple):
    """The outcome for a tree."""

    mark: type[ast.unaryop] | None  # the operator that marks moves, or `None` if there are none
    changed: bool  # whether anything is freed


def free_unused(definition: ast.FunctionDef | ast.AsyncFunctionDef, cells: Collection[str]) -> Freed:
    """Change a function to free its variables after their last use, but for parameters and these cells."""
    nodes = list(nodes_of(*definition.body))
    if any(isinstance(node, ast.Name) and node.id in _SHOWS_NAMES and isinstance(node.ctx, ast.Load) for node in nodes):
        return Freed(None, False)
    applied = {type(node.op) for node in nodes if isinstance(node, ast.UnaryOp)}
    mark = next((mark for mark in MARKS if mark not in applied), None)
    freeing = _Freeing((_own_variables(definition, nodes) - _imported(definition)).difference(cells), mark)
    definition.body, _ = freeing.block(definition.body, _NO_NAMES, _NO_NAMES, _NO_NAMES, outermost=True)
    return Freed(mark if freeing.moved else None, freeing.changed)


def _imported(definition: ast.FunctionDef | ast.AsyncFunctionDef) -> _Names:
    """Return the variables for imports at the beginning: modules refer to these values anyway."""
    result = _NO_NAMES
    for stmt in definition.body:
        value = stmt.value if isinstance(stmt, ast.Assign) else None
        while isinstance(value, ast.Attribute):
            value = value.value
        if not (isinstance(value, ast.Name) and value.id.startswith(IMPORT_PREFIXES)):
            break
        result |= _bound_by(stmt)
    return result


def _own_variables(definition: ast.FunctionDef | ast.AsyncFunctionDef, nodes: Sequence[ast.AST]) -> _Names:
    """Return the variables that only the function's own statements bind: no parameters, handlers or inner scopes."""
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
            case ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                bound |= _bound_by(node)
    return frozenset(bound - shared)


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

    def __init__(self, local: _Names, mark: type[ast.unaryop] | None) -> None:
        self.local = local
        self.mark = mark
        self.changed = False
        self.moved = False
        self._reads: dict[ast.AST, _Names] = {}

    def reads(self, node: ast.AST) -> _Names:
        """Return every name that is read or deleted in a node, at any depth."""
        if node not in self._reads:
            self._reads[node] = frozenset(
                part.id for part in nodes_of(node) if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Store)
            ).union(part.target.id for part in nodes_of(node)
                    if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name))
        return self._reads[node]

    # --- what is live ------------------------------------------------------------------------------
    def lives(self, block: Sequence[ast.stmt], after: _Names, always: _Names) -> list[_Names]:
        """Return the names that are live before each statement of a block, and after the last one."""
        result = [after | always]
        for stmt in reversed(block):
            live = result[-1]
            if isinstance(stmt, ast.If):
                live = self.lives(stmt.body, live, always)[0] | self.lives(stmt.orelse, live, always)[0]
                live |= self.reads(stmt.test)
            elif isinstance(stmt, (ast.Return, ast.Raise)):
                live = self.reads(stmt)
            else:  # (loops, handlers and the like need all that is read in them)
                live = (live - _bound_by(stmt) if _is_simple(stmt) else live) | self.reads(stmt)
            result.append(live | always)
        return result[::-1]

    # --- freeing -----------------------------------------------------------------------------------
    def block(
        self, block: Sequence[ast.stmt], after: _Names, always: _Names, bound: _Names, outermost: bool = False,
    ) -> tuple[list[ast.stmt], _Names | None]:
        """Return the statements with deletes, and what is certainly bound after them; ``None``: that is not reached."""
        result: list[ast.stmt] = []
        end: _Names | None = bound
        unused = _NO_NAMES
        for stmt, later in zip(block, self.lives(block, after, always)[1:]):
            result += self.delete(unused, stmt)
            end = self.statement(stmt, later, always, bound - unused)
            bound = end or _NO_NAMES
            unused = (self.reads(stmt) | _bound_by(stmt)) & bound & self.local - later
            result.append(stmt)
        if unused and not outermost and _is_simple(block[-1]):
            result += self.delete(unused, block[-1])
            end = bound - unused
        return result, end

    def delete(self, names: _Names, at: ast.stmt) -> list[ast.stmt]:
        """Return the statement that deletes names, on the line of another one; nothing where there are none."""
        if not names:
            return []
        self.changed = True
        delete = ast.Delete([ast.Name(name, ast.Del()) for name in sorted(names)])
        for node in nodes_of(delete):
            ast.copy_location(node, at)
        return [delete]

    def statement(self, stmt: ast.stmt, after: _Names, always: _Names, bound: _Names) -> _Names | None:
        """Free in a statement what it no longer needs; return as :meth:`block`."""
        if isinstance(stmt, ast.If):
            return self.branches(stmt, after, always, bound)
        if _is_simple(stmt):
            bound -= self.move(stmt, after - _bound_by(stmt))
            if isinstance(stmt, (ast.Return, ast.Raise)):
                return None
            if isinstance(stmt, ast.Delete):
                bound -= {target.id for target in stmt.targets if isinstance(target, ast.Name)}
        elif isinstance(stmt, (ast.With, ast.AsyncWith)):  # (a context may catch what is raised in it)
            inside = always | after
            named = _stored(*(item.optional_vars for item in stmt.items if isinstance(item.optional_vars, ast.Name)))
            stmt.body, end = self.block(stmt.body, inside, inside, bound | named & self.local)
            return bound if end is None else bound & end
        return bound | _bound_by(stmt) & self.local

    def branches(self, stmt: ast.If, after: _Names, always: _Names, bound: _Names) -> _Names | None:
        """Free at the start of each branch what only the other one needs."""
        lives = [self.lives(block, after, always)[0] for block in (stmt.body, stmt.orelse)]
        bound -= self.move(stmt.test, lives[0] | lives[1])
        needed = (lives[0] | lives[1] | self.reads(stmt.test)) & bound & self.local
        blocks, ends = list[list[ast.stmt]](), list[_Names]()
        for block, live in zip((stmt.body, stmt.orelse), lives):
            first = self.delete(needed - live, block[0] if block else stmt)
            rest, end = self.block(block, after, always, bound - (needed - live))
            blocks.append([*first, *rest])
            if end is not None:
                ends.append(end)
        stmt.body, stmt.orelse = blocks
        return ends[0].intersection(*ends) if ends else None

    def move(self, owner: ast.stmt | ast.expr, needed: _Names) -> _Names:
        """Mark the last uses in a statement that calls something as moves, where they surely happen; return them."""
        names = self.reads(owner) & self.local - needed
        parts = list(nodes_of(owner))
        calls = [part for part in parts if isinstance(part, ast.Call)]
        quiet = _QUIET + _MAKES if any(map(_makes, calls)) else _QUIET
        if self.mark is None or not names or all(
                _makes(part) if isinstance(part, ast.Call) else isinstance(part, quiet) for part in parts):
            return _NO_NAMES
        inside = _stored(*(part.target for part in parts if isinstance(part, ast.NamedExpr)))
        marking = _Marking(names - inside, Counter(_read(owner)), self.mark)
        marking.visit(owner)
        if marking.moved:
            self.moved = self.changed = True
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
            case ast.Dict(keys, values):
                for index, key in enumerate(keys):
                    keys[index], values[index] = key and self.visit(key), self.visit(values[index])
            case ast.Assign(targets, value):
                node.value = self.visit(value)
                targets[:] = map(self.visit, targets)
            case ast.Compare(ops=[_]):
                return self.generic_visit(node)
            case ast.IfExp() | ast.Assert() | ast.BoolOp() | ast.Compare() | ast.AnnAssign():
                self.remaining.subtract(_read(node))
            case _ if isinstance(node, _SCOPES):
                self.remaining.subtract(_read(node))
            case _:
                return self.generic_visit(node)
        return node


def _read(node: ast.AST) -> Iterator[str]:
    """Yield the names that are read in a node, each as often as it is."""
    return (part.id for part in nodes_of(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load))


def _stored(*nodes: ast.AST) -> _Names:
    return frozenset(node.id for node in nodes_of(*nodes)
                     if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def _bound_by(stmt: ast.AST) -> _Names:
    """Return the names that a statement itself certainly binds."""
    match stmt:
        case ast.Import(names) | ast.ImportFrom(names=names):
            return frozenset((alias.asname or alias.name).partition(".")[0] for alias in names)
        case ast.Assign(targets):
            return _stored(*targets)
        case ast.AnnAssign(target, value=ast.expr()) | ast.AugAssign(target):
            return _stored(target)
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            return frozenset({name})
    return _NO_NAMES


def _is_simple(stmt: ast.stmt) -> bool:
    return not hasattr(stmt, "body") and not hasattr(stmt, "cases")


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
        match body[last]:
            # (Torch removes neither ``args_iter = iter(args_list)`` nor ``x = next(args_iter)``, even if unread.)
            case ast.Return() | ast.Assign(value=ast.Call(ast.Name("iter" | "next"))):
                continue
        if released:
            body.insert(last + 1, on_line(ast.parse(" = ".join((*released, "None"))).body[0], body[last].lineno))


def on_line(statement: ast.stmt, line: int) -> ast.stmt:
    """Return a statement, all of which is moved to the beginning of a line."""
    place = {"lineno": line, "end_lineno": line, "col_offset": 0, "end_col_offset": 0}
    for node in nodes_of(statement):
        vars(node).update(place)
    return statement


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
    match changing, statement:
        case (ast.AugAssign(ast.Name(changed)) | ast.Assign([ast.Subscript(ast.Name(changed)), *_]),
              ast.Assign(value=ast.Name(name)) | ast.AnnAssign(value=ast.Name(name))):
            return name == changed
    return False
