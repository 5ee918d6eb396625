"""Expressions of a text -> paths of the live objects that they give."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping

from .facts import TYPE, Facts, Path, is_member
from .global_names import MODULE_DICTIONARIES


class LivePaths:
    """A finder of the paths of expressions in one function.

    Args:
        facts: about live objects.
        parameters: variables for the function's arguments, and its free variables.
        real_names: global names as the text has them -> as they are.
        bound: variables that the text binds.
        stores: attributes that the program stores itself.
    """

    def __init__(
        self, facts: Facts, parameters: Collection[str], real_names: Mapping[str, str], bound: Collection[str],
        stores: Collection[str] = (),
    ) -> None:
        self.facts = facts
        self._stores = stores
        self._real = real_names
        #: Paths of variables, as long as they refer to an object that is known; ``None`` for others.
        self.known: dict[str, Path | None] = {name: (("local", name),) for name in parameters}
        self.known |= dict.fromkeys(bound)

    def of(self, node: ast.expr) -> Path | None:
        """Return the path of what an expression gives, in torch's long form; ``None`` where it is not known."""
        if isinstance(node, ast.Name):
            real = self._real.get(node.id, node.id)
            return self.known[node.id] if node.id in self.known else (("global", real),)
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
        return None

    def stored_buffer(self, node: ast.expr) -> Path | None:
        """Return the path of the buffer that a store to ``module.name`` replaces; ``None`` if it is any other store."""
        path = None
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr not in self._stores:
            path = self.of(node)
        return path if path is not None and is_member(path) and self.facts.stores_member(path) else None

    def member(self, owner: Path, name: str) -> Path | None:
        """Return the path through a dictionary of a module for an attribute of it; ``None`` if it is no member."""
        for dictionary in MODULE_DICTIONARIES:
            path = (*owner, ("attr", dictionary), ("item", name))
            if self.facts.unshadowed(path):
                return path
        return None


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
