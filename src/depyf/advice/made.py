"""What the lines of a function make or change, and what reads it: it is not there, or not as it will be, before a call.

::

    seen = {}                        seen
    seen[key] = 1                    seen
    self.log.append(x)               self.log
    self.n += 1                      self.n
    total.add_(x)                    total
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set

from .source import Function
from .uses import ADDING, SETTING, own_variables

#: Methods that change a list, set or dictionary. (What is done with a result may be ``torch.add(x, y)``.)
_CHANGING = ADDING | {"update", "remove", "discard", "clear", "sort", "reverse"}
#: Methods that change one and return something of it.
_TAKING = frozenset({"pop", "popleft", "popitem"}) | SETTING - {"update"}
#: Stands for all attributes, of which ``setattr`` sets one whose name the text does not tell.
_ANY = "."


def reads_made(node: ast.expr, function: Function) -> bool:
    """Return whether an expression reads what a line of the function makes or changes."""
    return bool(made_for(node, function))


def made_for(node: ast.expr, function: Function, before: int | None = None) -> list[str]:
    """Return the variables and attributes that an expression reads and a line of the function makes or changes.

    Args:
        node: the expression. What it changes by calls of its own does not count.
        function: the one around it. What its parameters are is there before.
        before: lines from this one on do not count.
    """
    made = _made_in(function, node, before)
    return list(dict.fromkeys(text for read, names in _read_in(node) if (text := path_of(read)) and _is_of(
        text, names, made)))


def changed_from(function: Function, statement: ast.stmt, names: Sequence[str]) -> bool:
    """Return whether a function sets or changes variables or attributes behind a statement of it, as far as it tells.

    Args:
        function: the one around the statement.
        statement: what stands on its lines or before it does not count.
        names: the variables and attributes.
    """
    roots = {name.partition(".")[0] for name in names}
    for node in ast.walk(function):
        if getattr(node, "lineno", 0) <= (statement.end_lineno or statement.lineno):
            continue
        match node:
            case ast.Name(name, ast.Store() | ast.Del()) if name in roots:
                return True
            case ast.Attribute(_, _, ast.Store() | ast.Del()) | ast.Subscript(_, _, ast.Store() | ast.Del()) if (
                    path_of(node).partition(".")[0] in roots):
                return True
            case ast.Call(ast.Attribute(owner, method)) if is_in_place(method) and path_of(owner).partition(
                    ".")[0] in roots:
                return True
    return False


def _is_of(text: str, names: Set[str], made: Set[str]) -> bool:
    """Return whether what is read is made, is a part of what is made, or has a part that is.

    An attribute that is set of one object may be that of another name for it.
    """
    return bool(names & made) or bool(names) and _ANY in made or any(
        text == each or text.startswith(f"{each}.") or each.startswith(f"{text}.") for each in made)


def _made_in(function: Function, besides: ast.expr, before: int | None) -> set[str]:
    """Return what the lines of a function make or change; of attributes also ``.n``, for that of any object."""
    own, calls = own_variables(function), {id(each) for each in ast.walk(besides)}
    alone = {id(each.value) for each in ast.walk(function) if isinstance(each, ast.Expr)}
    made: set[str] = set()
    for node in ast.walk(function):
        if node is function or before is not None and getattr(node, "lineno", 0) >= before:
            continue
        match node:
            case ast.Name(name, ast.Store() | ast.Del()) | ast.FunctionDef(name) | ast.AsyncFunctionDef(name) \
                    | ast.ClassDef(name) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) \
                    | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                made.add(name)  # (A module that is imported here is the same outside.)
            case ast.Attribute(_, _, ast.Store() | ast.Del()) | ast.Subscript(_, _, ast.Store() | ast.Del()):
                made |= _texts(node)
            case ast.Call(ast.Name("setattr"), [_, ast.Constant(str(name)), _]):
                made.add(f".{name}")
            case ast.Call(ast.Name("setattr")):
                made.add(_ANY)
            case ast.Call(ast.Attribute(owner, method)) if id(node) not in calls and (
                    method in _TAKING or method in _CHANGING and id(node) in alone
                    or is_in_place(method) and path_of(owner).partition(".")[0] in own):
                made |= _texts(owner)
    return made


def is_in_place(method: str) -> bool:
    """Return whether a method changes a tensor in place, by its name."""
    return method.endswith("_") and not method.startswith("_")


def _texts(target: ast.expr) -> set[str]:
    """Return the texts for what is set: of an item for the object that has it."""
    while isinstance(target, ast.Subscript):
        target = target.value
    named = {f".{target.attr}"} if isinstance(target, ast.Attribute) else set()
    return named | {path} if (path := path_of(target)) else named


def path_of(node: ast.expr) -> str:
    """Return the text of a variable or attribute, up to an index: ``self.seen`` of ``self.seen[k].n``; else ``""``."""
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(owner, name):
            path = path_of(owner)
            return f"{path}.{name}" if path and path == ast.unparse(owner) else path
        case ast.Subscript(owner):
            return path_of(owner)
    return ""


def _read_in(node: ast.AST) -> Iterator[tuple[ast.expr, set[str]]]:
    """Yield the variables and attributes that an expression reads, with the names of these attributes, ``.n``.

    Of a method the object is read: ``self.log`` of ``self.log.add(x)``.
    """
    match node:
        case ast.Call(ast.Attribute(owner)):
            children: list[ast.AST] = [owner, *node.args, *node.keywords]
        case ast.Name() | ast.Attribute() | ast.Subscript():
            inner: ast.expr = node
            names, children = set(), []
            while isinstance(inner, (ast.Attribute, ast.Subscript)):
                if isinstance(inner, ast.Attribute):
                    names.add(f".{inner.attr}")
                else:
                    children.append(inner.slice)
                inner = inner.value
            if isinstance(inner, ast.Name):
                yield node, names
            else:
                children.append(inner)
        case _:
            children = list(ast.iter_child_nodes(node))
    for child in children:
        yield from _read_in(child)
