"""Syntax tree -> text: names and depth are checked, and some expressions are written as people write them.

``ast.unparse`` writes ``if a and (not b) and (c > d):``, ``any((a for b in c))``, ``a = (yield (b + 1))``,
``a: int=0``. From 3.12 on, it uses the quotes of an f-string inside its fields too: ``f'{a['b']}'``. Before 3.12 that
is a syntax error, so code of an older Python could not be written on a newer one. Here a field decides which quotes
remain for the f-string around it: ``f"{a['b']}"``.
"""

from __future__ import annotations

import ast
import copy
import functools
import sys
from dataclasses import dataclass
from typing import Any

from ...bytecode.errors import shown
from .. import nodes
from ..errors import EMIT, CannotDecompile
from ..names import is_name


def too_new(tree: ast.AST) -> bool:
    """Return whether a tree's text is of a newer Python than this one."""
    host = sys.version_info[:2]
    return any(isinstance(node, nodes.Newer) and node.since > host for node in nodes.nodes_of(tree))


def number(stmts: list[ast.stmt]) -> None:
    """Give statements the line numbers that compilers require."""
    for node in nodes.nodes_of(*stmts):
        if isinstance(node, ast.stmt):
            nodes.at_line(node, nodes.line_of(node) or 1)


def emit(tree: ast.Module) -> tuple[str, ast.Module]:
    """Return the text of a tree, and the tree of that text."""
    text = text_of(tree)
    try:
        return text, ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        if isinstance(error, SyntaxError) and too_new(tree):
            number(tree.body)
            return text, tree
        raise CannotDecompile(EMIT, f"{type(error).__name__}: {error}") from error


def text_of(tree: ast.Module) -> str:
    """Return the text of a tree (see :func:`emit`), which may not be valid: that is for the compiler to say."""
    try:
        check(tree)
        return unparse(tree) + "\n"
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise CannotDecompile(EMIT, f"{type(error).__name__}: {error}") from error


# --- what is refused ---------------------------------------------------------------------------------
#: Deeper trees are not written: CPython's parser and compiler recurse in C, and up to 3.11 they count only
#: roughly how much of the stack that takes. Half of what a thread with a stack of 512 KB survives.
MAX_NESTING = 1000


_DOTTED = (ast.alias, ast.ImportFrom)


@functools.cache
def _fields(kind: type) -> tuple[str, ...]:
    """Return the fields of a type of node in which names, or nodes with fields of their own, can be."""
    if kind.__module__ not in ("ast", "_ast", "builtins") and kind not in nodes.REFINEMENTS:
        raise CannotDecompile(EMIT, f"a {kind.__name__} is left in the tree")
    leaves = ("ctx", "op", "ops", "kind", "type_comment", "type_ignores", "tag")
    fields: tuple[str, ...] = getattr(kind, "_fields", ())
    return () if issubclass(kind, ast.Constant) else tuple(field for field in fields if field not in leaves)


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
            for field in _fields(node.__class__):
                value = getattr(node, field, None)
                for each in value if value.__class__ is list else (value,):
                    if each.__class__ is str:
                        if not is_name(each) and not _is_name_in(each, node):
                            raise CannotDecompile(EMIT, f"{shown(each)} is not a name")
                    elif each is not None and each.__class__ is not int:
                        below.append(each)
        level = below


def _is_name_in(name: str, node: ast.AST) -> bool:
    """Return whether a name is allowed in this node, though not everywhere."""
    if isinstance(node, nodes.AsText):
        return True
    if name == "__debug__" and isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        return True  # read as an attribute it is a name like any other (``forbidden_name`` in compile.c)
    if isinstance(node, nodes.Newer):  # (``f[T: int]``, which is how type parameters are written: see :func:`newer`)
        name = name.partition("[")[0]
    return is_name(name, isinstance(node, _DOTTED))


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


# --- the text of a tree ------------------------------------------------------------------------------
#: Whether the host repeats quotes in fields.
_REPEATS_QUOTES = sys.version_info >= (3, 12)
_QUOTES = ("'", '"', '"""', "'''")
#: Levels of an expression that are written at once, where all of it are too many for Python's limit of recursion.
_LEVELS = 40
#: Expressions that cannot be in parentheses everywhere.
_BARE = (ast.Starred, ast.Slice, ast.Tuple, ast.FormattedValue, ast.JoinedStr)


def unparse(tree: ast.AST) -> str:
    """Return the text of a tree, whose statements need no line numbers."""
    try:
        return str(_unparser()().visit(tree))
    except RecursionError:
        return str(_unparser()().visit(_shallow(tree)))


def _shallow(tree: ast.AST) -> ast.AST:
    """Return a tree in which parts of deep expressions are names: their texts, in parentheses."""
    results: dict[int, tuple[ast.AST, int]] = {}  # of each node the one in its place, and its height
    for node in reversed([*ast.walk(tree)]):  # (children come before their parents)
        result, height = copy.copy(node), 0
        for field, value in ast.iter_fields(node):
            values = value if isinstance(value, list) else [value]
            found = [results[id(each)] if isinstance(each, ast.AST) else (each, 0) for each in values]
            height = max([height, *(1 + below for _, below in found)])
            setattr(result, field, [each for each, _ in found] if isinstance(value, list) else found[0][0])
        is_whole = isinstance(result, ast.expr) and not isinstance(result, _BARE) and isinstance(
            getattr(result, "ctx", None), (ast.Load, type(None)))
        if height >= _LEVELS and is_whole:
            result, height = ast.Name(f"({unparse(result)})", ast.Load()), 0
        results[id(node)] = result, height
    return results[id(tree)][0]


@functools.cache
def _unparser() -> Any:
    """Return the visitor of ``ast.unparse`` that writes some expressions in other ways."""
    Host: Any
    write_part: Any
    if sys.version_info >= (3, 14):
        from _ast_unparse import Unparser as Host
    else:
        Host = ast._Unparser  # type: ignore[attr-defined]
    write_part = getattr(Host, "_write_ftstring_inner", getattr(Host, "_write_fstring_inner", None))  # (3.14; before)

    levels: Any = type(Host().get_precedence(ast.Pass()))

    class Unparser(Host):  # type: ignore[misc]
        def get_type_comment(self, node: ast.stmt) -> None:
            """Return nothing: bytecode has no type comments, which are looked up by line."""

        def traverse(self, node: ast.AST | list[ast.AST]) -> None:
            """Write a node; by its class, where Python's own builds the name of a method for each."""
            for each in node if isinstance(node, list) else [node]:
                visitors[each.__class__](self, each)

        def _write_docstring(self, node: Any) -> None:
            """Write a docstring; as it is, where Python's own looks at each character and escapes none."""
            text = node.value
            if text.replace("\n", "").isprintable() and not text.endswith('"') and not (
                    "\\" in text or '"""' in text or node.kind):
                self.fill(f'"""{text}"""')
            else:
                super()._write_docstring(node)

        def visit_If(self, node: ast.If | ast.While) -> None:
            """Write an assignment that is a whole test without parentheses: ``if a := b():``."""
            inner: ast.stmt | None = node
            while isinstance(inner, (ast.If, ast.While)):
                if isinstance(inner.test, ast.NamedExpr):
                    self.set_precedence(min(levels), inner.test)
                inner = inner.orelse[0] if isinstance(inner, ast.If) and len(inner.orelse) == 1 else None
            getattr(super(), f"visit_{type(node).__name__}")(node)

        visit_While = visit_If

        def visit_Assign(self, node: ast.Assign) -> None:
            if isinstance(node.value, (ast.Yield, ast.YieldFrom)):
                self.set_precedence(levels.YIELD, node.value)
            super().visit_Assign(node)

        def visit_Call(self, node: ast.Call) -> None:
            """Write one pair of parentheses in ``any(a for b in c)``."""
            only = node.args[0] if len(node.args) == 1 and not node.keywords else None
            if not isinstance(only, ast.GeneratorExp):
                super().visit_Call(node)
                return
            self.set_precedence(levels.ATOM, node.func)
            self.traverse(node.func)
            self.traverse(only)

        def visit_Yield(self, node: ast.Yield | ast.YieldFrom) -> None:
            """Write ``yield a + b``, whose operand Python's own puts in parentheses."""
            with self.require_parens(levels.YIELD, node):
                self.write("yield from " if isinstance(node, ast.YieldFrom) else "yield " if node.value else "yield")
                if node.value:
                    self.traverse(node.value)

        visit_YieldFrom = visit_Yield

        def visit_arguments(self, node: ast.arguments) -> None:
            if texts := parameters(node):  # (``lambda: 0`` has no blank)
                self.write(", ".join(texts))

        def visit_BoolOp(self, node: ast.BoolOp) -> None:
            """Write ``a and not b and c > d``, where Python's own adds parentheses to the operands after the first."""
            word = self.boolops[type(node.op).__name__]
            own = self.boolop_precedence[word]
            begins_a_line = isinstance(node, nodes.FoldedBool) and node.begins_a_line
            with self.delimit("(\n", ")") if begins_a_line else self.require_parens(own, node):
                for at, value in enumerate(node.values):
                    self.write(f" {word} " if at else "")
                    level = own.next()
                    self.set_precedence(level.next() if at and isinstance(value, ast.BoolOp) else level, value)
                    self.traverse(value)

        def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
            if not _REPEATS_QUOTES:
                super().visit_JoinedStr(node)
                return
            parts = []
            for value in node.values:
                with self.buffered() as buffer:
                    write_part(self, value)
                parts.append((isinstance(value, ast.Constant), "".join(buffer)))
            self.write(join_parts(parts))

    class Visitors(dict[type[ast.AST], Any]):
        """The method for each class of nodes."""

        def __missing__(self, kind: type[ast.AST]) -> Any:
            self[kind] = getattr(Unparser, f"visit_{kind.__name__}", Unparser.generic_visit)
            return self[kind]

    visitors = Visitors()
    return Unparser


def parameters(arguments: ast.arguments) -> list[str]:
    """Return the texts of parameters, in order, with blanks around the ``=`` of one that has an annotation (PEP 8)."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults += arguments.defaults
    texts = []
    for index, (each, default) in enumerate(zip(positional, defaults)):
        texts.append(_parameter(each, default))
        if arguments.posonlyargs and index == len(arguments.posonlyargs) - 1:
            texts.append("/")
    if arguments.vararg is not None:
        texts.append("*" + _parameter(arguments.vararg, None))
    elif arguments.kwonlyargs:
        texts.append("*")
    texts += [_parameter(each, default) for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    if arguments.kwarg is not None:
        texts.append("**" + _parameter(arguments.kwarg, None))
    return texts


def _parameter(each: ast.arg, default: ast.expr | None) -> str:
    text = each.arg + (f": {unparse(each.annotation)}" if each.annotation is not None else "")
    if default is None:
        return text
    return f"{text} = {unparse(default)}" if each.annotation is not None else f"{text}={unparse(default)}"


def join_parts(parts: list[tuple[bool, str]]) -> str:
    """Return an f-string; where quotes allow it, one that Pythons before 3.12 can read.

    ``parts``: of each, whether it is text (with braces doubled), and it or the field in braces.
    """
    def escaped(text: str, quote: str) -> str:
        text = "".join(c if c.isprintable() and c != "\\" else c.encode("unicode_escape").decode() for c in text)
        return text.replace(quote[0], "\\" + quote[0]) if quote in text or text.endswith(quote[0]) else text

    fields = "".join(part for is_text, part in parts if not is_text)
    quotes = [quote for quote in _QUOTES if quote not in fields] if "\\" not in fields and "\n" not in fields else []
    texts = [(quote, "".join(escaped(part, quote) if is_text else part for is_text, part in parts))
             for quote in quotes or _QUOTES[2:]]  # (three quotes, in case that a field has several lines)
    quote, text = min(texts, key=lambda each: len(each[1]))  # (the first of those with as few escapes)
    return f"f{quote}{text}{quote}"


# --- syntax that the running interpreter's :mod:`ast` may not have ------------------------------------
# Code of a newer Python can contain what the host has no nodes for: template strings (3.14), type parameters (3.12),
# ``except*`` (3.11). Such syntax is put into the tree as its own text, in the place of a name: ``ast.unparse`` writes a
# name unchanged. The text says from which Python on it can be read; where the host is older the tree is left as it was
# made (see :func:`emit`), and nothing can be compiled, so nothing is ever called proven there.
TEMPLATES = (3, 14)
TYPE_PARAMETERS = (3, 12)
TYPE_PARAMETER_DEFAULTS = (3, 13)
EXCEPT_STAR = (3, 11)


def written(text: str, since: tuple[int, int]) -> ast.Name:
    """Return an expression that is written as ``text``; Pythons before ``since`` cannot read it."""
    node = nodes.NewerName(text, ast.Load())
    node.since = since
    return node


def newer(node: ast.stmt, text: str, since: tuple[int, int]) -> ast.stmt:
    """Return a definition with text after its name that Pythons before ``since`` cannot read."""
    result: Any = nodes.refined(node, nodes.NEWER[type(node)])
    result.name = checked(result.name) + text
    result.since = since
    definition: ast.stmt = result
    return definition


# --- template strings -------------------------------------------------------------------------------
@dataclass(eq=False, repr=False)
class Interpolation(ast.expr):
    """One replacement field of a template string, while it is on the stack."""

    value: ast.expr
    text: str
    conversion: str
    spec: ast.expr | None


def template(strings: list[str], fields: list[Interpolation]) -> ast.Name:
    """Return a template string, ``t"..."``, whose expressions are written as the code object says they were."""
    for field in fields if sys.version_info >= TEMPLATES else ():
        try:  # a string of the code object: it may be anything (and an older host cannot decide)
            check(ast.parse(field.text.strip(), mode="eval"))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise CannotDecompile(EMIT, f"{shown(field.text)} is no expression") from None
    parts = [_in_quotes(strings[0])]
    for field, after in zip(fields, strings[1:]):
        text = (" " if field.text.startswith("{") else "") + field.text
        if field.conversion:
            text += f"!{field.conversion}"
        if field.spec is not None:
            text += ":" + "".join(
                _in_quotes(part.value) if isinstance(part, ast.Constant) and isinstance(part.value, str) else
                checked_text(ast.JoinedStr([part]))[2:-1]
                for part in (field.spec.values if isinstance(field.spec, ast.JoinedStr) else [field.spec]))
        parts += [f"{{{text}}}", _in_quotes(after)]
    return written(f"t'{''.join(parts)}'", TEMPLATES)


def _in_quotes(text: str) -> str:
    """Return a text as it is written between single quotes of an f-string or t-string."""
    # With a double quote in it, ``repr`` always writes single quotes around.
    return repr('"' + text)[2:-1].replace("{", "{{").replace("}", "}}")


# --- except* ----------------------------------------------------------------------------------------
#: The statements with handlers.
TRY = (ast.Try, ast.TryStar) if sys.version_info >= EXCEPT_STAR else (ast.Try,)


def try_star(
    body: list[ast.stmt], handlers: list[ast.ExceptHandler], orelse: list[ast.stmt], finalbody: list[ast.stmt]
) -> ast.stmt:
    """Return a ``try`` statement with ``except*``; where the host has none, with the star in the text of the types."""
    if sys.version_info >= EXCEPT_STAR:
        return ast.TryStar(body, handlers, orelse, finalbody)
    for handler in handlers:
        if handler.type is not None:
            handler.type = written(f"*({checked_text(handler.type)})", EXCEPT_STAR)
    return ast.Try(body, handlers, orelse, finalbody)
