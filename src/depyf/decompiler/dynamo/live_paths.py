"""Expressions of a text -> paths of the live objects that they give; stores to buffers of modules."""

from __future__ import annotations

import ast
import collections
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from ..nodes import nodes_of
from .facts import TYPE, Facts, Path, is_member
from .global_names import MODULE_DICTIONARIES


class LivePaths:
    """A finder of the paths of expressions in one function.

    Args:
        facts: about live objects.
        parameters: variables for the function's arguments, and its free variables.
        real_names: global names as the text has them -> as they are.
        bound: variables that the text binds.
    """

    def __init__(
        self, facts: Facts, parameters: Collection[str], real_names: Mapping[str, str], bound: Collection[str],
    ) -> None:
        self.facts = facts
        self._parameters = set(parameters) - set(bound)
        self._real = real_names
        self._bound = set(bound)
        #: Variables that are bound once, to an object that is known.
        self._known: dict[str, Path] = {}
        #: Variables that refer to an object for a while, as those of a comprehension that is expanded.
        self.meanwhile: dict[str, Path] = {}

    def bind(self, name: str, path: Path | None = None) -> None:
        """Take note of a variable that is bound, once and to this object if there is one."""
        self._bound.add(name)
        if path is not None:
            self._known[name] = path

    def of(self, node: ast.expr) -> Path | None:
        """Return the path of what an expression gives, in torch's long form; ``None`` where it is not known."""
        if isinstance(node, ast.Name):
            if node.id in self.meanwhile:
                return self.meanwhile[node.id]
            if node.id in self._parameters:
                return (("local", node.id),)
            if node.id in self._known:
                return self._known[node.id]
            return None if node.id in self._bound else (("global", self._real.get(node.id, node.id)),)
        if isinstance(node, ast.Attribute):
            owner = self.of(node.value)
            if owner is None:
                return None
            return self.member(owner, node.attr) or (*owner, ("attr", node.attr))
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            key = node.slice.value
            owner = self.of(node.value)
            if owner is None or not isinstance(key, (str, int)):
                return None
            return self.facts.element(owner, key) or (*owner, ("item", key))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1 and not node.keywords:
            known = self.of(node.func)
            owner = self.of(node.args[0]) if known is not None and self.facts.well_known(known) == TYPE else None
            return self.facts.class_path(owner) if owner is not None else None
        if isinstance(node, ast.Call) and (name := attribute_asked(node)):
            owner = self.of(node.args[0])
            return self.member(owner, name) if owner is not None else None
        return None

    def member(self, owner: Path, name: str) -> Path | None:
        """Return the path through a dictionary of a module for an attribute of it; ``None`` if it is no member."""
        for dictionary in MODULE_DICTIONARIES:
            path = (*owner, ("attr", dictionary), ("item", name))
            if self.facts.unshadowed(path):
                return path
        return None


def attribute_asked(node: ast.Call) -> str:
    """Return ``"name"`` for ``getattr(x, 'name')``; empty for other calls."""
    if not (isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) == 2):
        return ""
    name = node.args[1].value if isinstance(node.args[1], ast.Constant) and not node.keywords else None
    return name if isinstance(name, str) else ""


def root_name(node: ast.expr) -> str:
    """Return the variable that a chain of attributes and calls begins with; empty where it begins with none."""
    while isinstance(node, (ast.Attribute, ast.Call)):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""


def text_of(node: ast.expr) -> str:
    """Return the text that ``ast.unparse`` gives, faster for the paths that most arguments of graphs are."""
    parts: list[str] = []
    inner = node
    while not isinstance(inner, ast.Name):
        if isinstance(inner, ast.Attribute):
            parts.append(f".{inner.attr}")
        elif isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Constant) \
                and type(inner.slice.value) in (int, str):
            parts.append(f"[{inner.slice.value!r}]")
        else:
            return ast.unparse(node)
        inner = inner.value
    return inner.id + "".join(reversed(parts))


def is_plain_path(node: ast.expr) -> bool:
    """Return whether an expression is a variable with attributes and constant items only."""
    while not isinstance(node, ast.Name):
        if not (isinstance(node, ast.Attribute) or isinstance(node, ast.Subscript) and isinstance(
                node.slice, ast.Constant)):
            return False
        node = node.value
    return True


# --- buffers with new values: stores to attributes of their modules ----------------------------------
# ::
#
#     update = self.norm._buffers.update            self.norm.mean = out[1]
#     update({'mean': out[1], 'count': out[2]})     self.norm.count = out[2]
#
# Dynamo reads all dictionaries before it changes the first, so the reads are above the consecutive statements that
# change something. :mod:`.written_out` puts them there again, and what it gives is proven.
_METHOD = "update"


class _Update(NamedTuple):
    """A call that fills the dictionary of a module.

    Attributes:
        at: the number of its statement.
        read_at: the number of the statement that reads its method.
        owner: the module.
        display: what it is given.
    """

    at: int
    read_at: int
    owner: ast.expr
    display: ast.Dict


def store_members(body: list[ast.stmt], paths: LivePaths) -> frozenset[int]:
    """Write the updates of modules' dictionaries in a body as stores, in place.

    Returns:
        The identities of the stores.
    """
    nodes = [node for statement in body for node in nodes_of(statement)]
    if any(isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) and stored_member(node, paths)
           for node in nodes):
        return frozenset()  # the program stores one itself: it would not be known which is meant
    updates = list(_updates(body, paths, collections.Counter(node.id for node in nodes if isinstance(node, ast.Name))))
    if not updates:
        return frozenset()
    reads = {update.read_at for update in updates}
    by_statement = {update.at: update for update in updates}
    first, last = min(reads), max(by_statement)
    between = [index for index in range(first, last + 1) if index not in reads and index not in by_statement]
    if first and changes_something(body[first - 1]) or not all(changes_something(body[index]) for index in between):
        return frozenset()
    row: list[ast.stmt] = []
    stores: list[ast.stmt] = []
    for index in range(first, last + 1):
        if index in by_statement:
            written = list(_stores(by_statement[index]))
            stores += written
            row += written
        elif index not in reads:
            row.append(body[index])
    body[first : last + 1] = row
    return frozenset(map(id, stores))


def changes_something(statement: ast.stmt) -> bool:
    """Return whether a statement is there only for what it changes, and binds no variable."""
    if isinstance(statement, ast.For):
        return all(map(changes_something, statement.body))
    if isinstance(statement, ast.Assign):
        return not any(isinstance(target, ast.Name) for target in statement.targets)
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)


def stored_member(target: ast.Attribute, paths: LivePaths) -> Path | None:
    """Return the path of the buffer that ``module.name = value`` stores; ``None`` if it is no such store."""
    path = paths.of(target)
    return path if path is not None and is_member(path) and paths.facts.stores_member(path) else None


def _updates(body: list[ast.stmt], paths: LivePaths, uses: collections.Counter[str]) -> Iterator[_Update]:
    held: dict[str, tuple[int, ast.expr]] = {}
    for at, statement in enumerate(body):
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1 \
                and isinstance(target := statement.targets[0], ast.Name) and uses[target.id] == 2:
            held[target.id] = at, statement.value
        if not (isinstance(statement, ast.Expr) and isinstance(call := statement.value, ast.Call)
                and len(call.args) == 1 and not call.keywords and isinstance(display := call.args[0], ast.Dict)):
            continue
        read_at, method = at, call.func
        if isinstance(method, ast.Name) and method.id in held:
            read_at, method = held[method.id]
        if not (isinstance(method, ast.Attribute) and method.attr == _METHOD
                and isinstance(method.value, ast.Attribute)):
            continue
        owner, dictionary = method.value.value, method.value.attr
        path = paths.of(owner)
        if path is None or path[0][0] != "local" or not display.keys:
            continue
        if all(isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isidentifier()
               and paths.facts.stores_member((*path, ("attr", dictionary), ("item", key.value)))
               for key in display.keys):
            yield _Update(at, read_at, owner, display)


def _stores(update: _Update) -> Iterator[ast.stmt]:
    for key, value in zip(update.display.keys, update.display.values):
        assert isinstance(key, ast.Constant) and isinstance(key.value, str)
        target = ast.Attribute(update.owner, key.value, ast.Store())
        yield ast.fix_missing_locations(ast.Assign([target], value, lineno=1, col_offset=0))


class StoresWrittenOut:
    """The updates that stores to members mean, while a function is expanded."""

    def __init__(self) -> None:
        #: The reads of methods for the current row of statements, to be placed above it.
        self.reads: list[ast.stmt] = []
        self._last: tuple[Path, ast.Dict] | None = None

    def write(self, path: Path, value: ast.expr, method: str, place: ast.stmt) -> list[ast.stmt]:
        """Return the statements for one store; none where the store before it is to the same module."""
        key = ast.Constant(path[-1][1])
        if self._last is not None and self._last[0] == path[:-1]:
            self._last[1].keys.append(ast.copy_location(key, place))
            self._last[1].values.append(value)
            return []
        display = ast.Dict([key], [value])
        self._last = path[:-1], display
        read = ast.Attribute(_long_form(path[:-1]), _METHOD, ast.Load())
        self.reads.insert(0, ast.Assign([ast.Name(method, ast.Store())], read))
        return [ast.Expr(ast.Call(ast.Name(method, ast.Load()), [display], []))]

    def end(self) -> None:
        """End the row of stores: the next one begins another update."""
        self._last = None


def _long_form(path: Path) -> ast.expr:
    result: ast.expr = ast.Name(path[0][1], ast.Load())
    for kind, key in path[1:]:
        result = ast.Attribute(result, key, ast.Load()) if kind == "attr" else ast.Subscript(
            result, ast.Constant(key), ast.Load())
    return result
