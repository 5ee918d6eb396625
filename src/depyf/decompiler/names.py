"""Limits of what may be written: names of a code object can be any string, and trees can nest without end."""

from __future__ import annotations

import ast
import itertools
import keyword
import unicodedata
from collections.abc import Container
from functools import cache, lru_cache
from typing import Any

from ..bytecode.errors import shown
from .errors import EMIT, CannotDecompile
from .nodes import REFINEMENTS, AsText
from .unparse import unparse

#: Deeper trees are not written: CPython's parser and compiler recurse in C, and up to 3.11 they count only
#: roughly how much of the stack that takes. Half of what a thread with a stack of 512 KB survives.
MAX_NESTING = 1000


#: Fields that are written as they are, by type of node.
_NAMES = {
    "Name": ("id",), "Attribute": ("attr",), "arg": ("arg",), "keyword": ("arg",), "FunctionDef": ("name",),
    "AsyncFunctionDef": ("name",), "ClassDef": ("name",), "ExceptHandler": ("name",), "Global": ("names",),
    "Nonlocal": ("names",), "alias": ("name", "asname"), "ImportFrom": ("module",), "MatchAs": ("name",),
    "MatchStar": ("name",), "MatchMapping": ("rest",), "MatchClass": ("kwd_attrs",), "TypeVar": ("name",),
    "ParamSpec": ("name",), "TypeVarTuple": ("name",),
}
_DOTTED = (ast.alias, ast.ImportFrom)
_GENERIC = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Name)
#: Fields in which no names and no nodes are that have fields of their own.
_LEAVES = frozenset({
    "ctx", "op", "ops", "level", "kind", "simple", "conversion", "is_async", "type_comment", "type_ignores", "tag",
})


@cache
def _fields(kind: type) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the fields of a type of node that are names, and those that hold nodes.

    Raises:
        CannotDecompile: the type is internal and has no text.
    """
    if kind.__module__ not in ("ast", "_ast", "builtins") and kind not in REFINEMENTS:
        raise CannotDecompile(EMIT, f"a {kind.__name__} is left in the tree")
    names = _NAMES.get(kind.__name__, ())
    if issubclass(kind, ast.Constant):
        return names, ()
    fields: tuple[str, ...] = getattr(kind, "_fields", ())
    return names, tuple(field for field in fields if field not in names and field not in _LEAVES)


def check(tree: ast.AST) -> None:
    """Refuse what would be read as something else: invalid names, trees that are too deep.

    A name in a code object can be any string. As text, ``x): import os #`` would be a program, and the compiler takes
    ``ﬁ`` for ``fi``.
    """
    level: list[Any] = [tree]
    depth = 0
    while level:
        depth += 1
        if depth > MAX_NESTING:
            raise CannotDecompile(EMIT, "expressions or statements nest too deeply")
        below: list[Any] = []
        for node in level:
            names, inner = _fields(node.__class__)
            for field in names:
                value = getattr(node, field)
                for name in value if value.__class__ is list else (value,):
                    if name is not None and not is_name(name):
                        _check_in_node(name, node)
            for field in inner:
                value = getattr(node, field, None)
                if value.__class__ is list:
                    below += value
                elif value is not None:
                    below.append(value)
        level = below


def _check_in_node(name: str, node: ast.AST) -> None:
    """Refuse a name that cannot stand in this node, though another could."""
    if isinstance(node, AsText):
        return
    if name == "__debug__" and isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        return  # read as an attribute it is a name like any other (``forbidden_name`` in compile.c)
    if isinstance(node, _GENERIC) and name:
        name = _without_parameters(name)
    if not is_name(name, isinstance(node, _DOTTED)):
        raise CannotDecompile(EMIT, f"{shown(name)} is not a name")


def _without_parameters(name: str) -> str:
    """Return ``f`` for ``f[T: int]``, which is how type parameters are written; depyf made the text in brackets."""
    base, bracket, inside = name.partition("[")
    depth = len(bracket)
    for place, character in enumerate(inside):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            return base if place == len(inside) - 1 and not set(name) & set("\n\r#") else name
    return name


@lru_cache(maxsize=1024)
def is_name(name: str, dotted: bool = False) -> bool:
    """Return whether a name can be written, and is read as itself."""
    if name.isascii() and name.isidentifier() and not keyword.iskeyword(name):
        return name != "__debug__"
    if dotted:
        return name in ("", "*") or "." in name and all(is_name(part) for part in name.split("."))
    return name.isidentifier() and not keyword.iskeyword(name) and unicodedata.normalize("NFKC", name) == name


def is_private(name: str) -> bool:
    """Return whether a class would mangle a name."""
    return name.startswith("__") and not name.endswith("__")


def of_the_compiler(name: str) -> bool:
    """Return whether the compiler gives variables such a name (``.0``, ``.type_params``), which no source says."""
    return name[:1] == "." and (name[1:].isdecimal() or is_name(name[1:]))


def legal(name: str) -> str:
    """Return a name that can be written, for one that may not: ``_lambda_`` for ``<lambda>``.

    Names that the compiler begins with a dot (``.0``, ``.defaults``) begin with two underscores. Where they are words
    they end so too, or a class would mangle them.
    """
    if is_name(name):
        return name
    if name[:1] == "." and is_name(name[1:]):
        return f"__dot_{name[1:]}__"
    result = unicodedata.normalize("NFKC", "__" + name[1:] if name[:1] == "." else name)
    result = "".join(c if f"_{c}".isidentifier() else "_" for c in result)
    return result if is_name(result) else f"_{result}"


def checked(name: str) -> str:
    """Return the name; raise CannotDecompile if it cannot be written, or is read as another."""
    if not is_name(name):
        raise CannotDecompile(EMIT, f"{shown(name)} is not a name")
    return name


def checked_text(node: ast.expr) -> str:
    """Return the text of an expression that is put into other text, which :func:`check` does not see."""
    check(node)
    try:
        return unparse(node)
    except ValueError as error:  # (a number of more digits than are converted, an f-string without quotes left)
        raise CannotDecompile(EMIT, str(error)) from error


# --- Names that are not taken yet --------------------------------------------------------------------
def free_name(wanted: str, taken: Container[str], first: int = 1) -> str:
    """Return the wanted name, or that with the first free number from ``first`` on, so that it is not taken."""
    name = wanted
    for number in itertools.count(first):
        if name not in taken:
            break
        name = f"{wanted}_{number}"
    return name
