"""``ast.unparse``, faster: what most nodes of a tree pass through is written out, the rest is the host's.

Names are checked as they are written, and a tree that nests deeper than Python's own limit is refused by that:
each of its levels takes a call.

The text is that of ``ast.unparse``, character by character. Up to 3.13 that is a visitor, which looks its methods up by
name for each node, and makes a generator for each bracket and block; here both are done without. Where ``ast`` has no
such visitor (3.14), ``ast.unparse`` itself writes the text.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from ..names import MAX_NESTING, check, check_name, fields_of_names

#: The visitor of ``ast.unparse``, private as it is.
_Host: Any = getattr(ast, "_Unparser", object)
#: Its precedences, and the next higher of each. (Up to 3.11 an attribute of an enumeration takes a call.)
_PRECEDENCES: Any = getattr(ast, "_Precedence", ())
_TEST, _YIELD, _COMPARISON, _ATOM = (
    getattr(_PRECEDENCES, name, None) for name in ("TEST", "YIELD", "CMP", "ATOM"))
_ABOVE: dict[Any, Any] = {each: each.next() for each in _PRECEDENCES}
#: Nodes that no precedence puts into parentheses.
_ATOMS = frozenset({ast.Name, ast.Attribute, ast.Subscript, ast.Call})
#: Whether statements must have line numbers: ``ast.unparse`` looks for type comments by them.
NEEDS_LINES = _Host is object
#: Whether :func:`unparse` does what :func:`depyf.decompiler.names.check` does, where Python's limit of recursion is
#: at most ``MAX_NESTING``.
CHECKS_NAMES = _Host is not object
#: Types of constants that are written as ``repr`` has them (strings inside of f-strings are not).
_PLAIN = frozenset({int, bool, type(None), bytes})


def unparse(tree: ast.AST) -> str:
    """Return what ``ast.unparse`` returns for a tree without type comments.

    Raises:
        CannotDecompile: a name in it is none (where :data:`CHECKS_NAMES`).
    """
    text: str = _Unparser().visit(tree) if _Host is not object else ast.unparse(tree)
    return text


class _Methods(dict[type, Callable[[Any, Any], None]]):
    """The method that writes a node, by class of node; before that it checks the names in the node."""

    def __missing__(self, kind: type) -> Callable[[Any, Any], None]:
        write = getattr(_Unparser, f"visit_{kind.__name__}", None) or _Unparser.generic_visit
        fields = fields_of_names(kind)
        self[kind] = _checking(fields, write) if fields and not issubclass(kind, _CHECKED_BY_METHODS) else write
        return self[kind]


def _checking(fields: Sequence[str], write: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Return a method that checks the names in a node and then writes it."""

    def check_and_write(unparser: _Unparser, node: ast.AST) -> None:
        for field in fields:
            value: Any = getattr(node, field)
            for name in value if isinstance(value, list) else (value,):
                check_name(name, node, unparser._good)
        write(unparser, node)

    return check_and_write


#: Nodes whose own method checks the name.
_CHECKED_BY_METHODS = (ast.Name, ast.Attribute)

_METHODS = _Methods()
_nothing = nullcontext()


class _Delimited:
    """A context that writes one text when it is entered and another when it is left."""

    __slots__ = ("end", "start", "unparser")

    def __init__(self, unparser: _Unparser, start: str, end: str) -> None:
        self.unparser = unparser
        self.start = start
        self.end = end

    def __enter__(self) -> None:
        self.unparser._source.append(self.start)

    def __exit__(self, *error: object) -> None:
        self.unparser._source.append(self.end)


class _Block:
    """A context in which statements are indented by one more level."""

    __slots__ = ("unparser",)

    def __init__(self, unparser: _Unparser) -> None:
        self.unparser = unparser

    def __enter__(self) -> None:
        self.unparser._indent += 1

    def __exit__(self, *error: object) -> None:
        self.unparser._indent -= 1


class _Unparser(_Host):  # type: ignore[misc]
    """The host's visitor, with its own way to find methods, and to open and close brackets and blocks."""

    _source: list[str]
    _indent: int

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        #: Names that are good anywhere: most stand in a tree many times.
        self._good: set[str | None] = {None}
        self._elifs = 0

    def visit(self, node: Any) -> str:
        """Return the text of a tree."""
        self._tree = node
        text: str = super().visit(node)
        return text

    # --- how it writes ----------------------------------------------------------------------------
    def traverse(self, node: Any) -> None:
        """Write a node, or nodes."""
        if node.__class__ is list:
            for item in node:
                _METHODS[item.__class__](self, item)
        else:
            _METHODS[node.__class__](self, node)

    def write(self, *text: str) -> None:
        """Add text."""
        self._source += text

    def fill(self, text: str = "") -> None:
        """Begin a line."""
        source = self._source
        if source:
            source.append("\n")
        source.append("    " * self._indent + text)

    def delimit(self, start: str, end: str) -> _Delimited:
        """Write something between two texts."""
        return _Delimited(self, start, end)

    def delimit_if(self, start: str, end: str, condition: bool) -> Any:
        """Write something between two texts, or without them."""
        return _Delimited(self, start, end) if condition else _nothing

    def block(self, *, extra: str | None = None) -> _Block:
        """Write a suite."""
        self._source.append(":" + extra if extra else ":")
        return _Block(self)

    def get_precedence(self, node: Any) -> Any:
        """Return the precedence that was set for a node."""
        return self._precedences.get(node, _TEST)

    def items_view(self, traverser: Callable[[Any], None], items: Sequence[Any]) -> None:
        """Write nodes with commas between them; behind one alone, too."""
        source = self._source
        separator = ""
        for item in items:
            source.append(separator)
            traverser(item)
            separator = ", "
        if len(items) == 1:
            source.append(",")

    def get_type_comment(self, node: ast.stmt) -> None:
        """Return nothing: no type comment is in bytecode."""

    # --- the most frequent nodes ------------------------------------------------------------------
    def visit_Name(self, node: ast.Name) -> None:
        """Write a name."""
        name = node.id
        if name not in self._good:
            check_name(name, node, self._good)
        self._source.append(name)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Write an attribute; that of a name at once."""
        value = node.value
        if node.attr not in self._good:
            check_name(node.attr, node, self._good)
        if isinstance(value, ast.Name):
            if value.id not in self._good:
                check_name(value.id, value, self._good)
            self._source += (value.id, ".", node.attr)
        elif value.__class__ in _ATOMS:
            _METHODS[value.__class__](self, value)
            self._source += (".", node.attr)
        else:
            super().visit_Attribute(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Write a constant; most are as ``repr`` has them."""
        value: Any = node.value
        if node.kind is None and (
            type(value) in _PLAIN or type(value) is str and not getattr(self, "_avoid_backslashes", False)
        ):
            self._source.append(repr(value))
        else:
            super().visit_Constant(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Write a call."""
        source = self._source
        function = node.func
        if function.__class__ not in _ATOMS:
            self._precedences[function] = _ATOM
        _METHODS[function.__class__](self, function)
        separator = "("
        for argument in (*node.args, *node.keywords):
            source.append(separator)
            _METHODS[argument.__class__](self, argument)
            separator = ", "
        source.append(")" if separator == ", " else "()")

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """Write an item; the versions differ in how they write several indices."""
        if isinstance(node.slice, ast.Tuple):
            super().visit_Subscript(node)
            return
        source = self._source
        self._precedences[node.value] = _ATOM
        _METHODS[node.value.__class__](self, node.value)
        source.append("[")
        _METHODS[node.slice.__class__](self, node.slice)
        source.append("]")

    def visit_Compare(self, node: ast.Compare) -> None:
        """Write a comparison."""
        source, precedences = self._source, self._precedences
        in_parentheses = precedences.get(node, _TEST) > _COMPARISON
        if in_parentheses:
            source.append("(")
        precedences[node.left] = _ABOVE[_COMPARISON]
        _METHODS[node.left.__class__](self, node.left)
        for sign, operand in zip(node.ops, node.comparators):
            source += (" ", self.cmpops[sign.__class__.__name__], " ")
            precedences[operand] = _ABOVE[_COMPARISON]
            _METHODS[operand.__class__](self, operand)
        if in_parentheses:
            source.append(")")

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Write an operator between its operands."""
        source, precedences = self._source, self._precedences
        sign = self.binop[node.op.__class__.__name__]
        left = right = self.binop_precedence[sign]
        in_parentheses = precedences.get(node, _TEST) > left
        if in_parentheses:
            source.append("(")
        if sign in self.binop_rassoc:
            left = _ABOVE[left]
        else:
            right = _ABOVE[right]
        precedences[node.left] = left
        _METHODS[node.left.__class__](self, node.left)
        source += (" ", sign, " ")
        precedences[node.right] = right
        _METHODS[node.right.__class__](self, node.right)
        if in_parentheses:
            source.append(")")

    # --- bodies -----------------------------------------------------------------------------------
    def visit_Module(self, node: ast.Module) -> None:
        """Write a module; without type comments there is nothing to note of it."""
        self._write_docstring_and_traverse_body(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Write a function; the versions differ in how they write decorators and type parameters."""
        if node.decorator_list or node.returns is not None or getattr(node, "type_params", None):
            super().visit_FunctionDef(node)
            return
        if self._source:
            self._source.append("\n")
        self.fill(f"def {node.name}(")
        self.visit_arguments(node.args)
        self._source.append("):")
        self._indent += 1
        self._write_docstring_and_traverse_body(node)
        self._indent -= 1

    def _write_docstring_and_traverse_body(self, node: ast.Module | ast.FunctionDef) -> None:
        """Write the statements of a body, of which the first may be a docstring."""
        stmts = node.body
        first = stmts[0].value if stmts and isinstance(stmts[0], ast.Expr) else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            self._write_docstring(first)
            stmts = stmts[1:]
        for stmt in stmts:
            _METHODS[stmt.__class__](self, stmt)

    # --- the most frequent statements --------------------------------------------------------------
    def suite(self, stmts: list[ast.stmt]) -> None:
        """Write the statements of a suite, and the colon before it."""
        self._source.append(":")
        self._indent += 1
        for stmt in stmts:
            _METHODS[stmt.__class__](self, stmt)
        self._indent -= 1

    def visit_Expr(self, node: ast.Expr) -> None:
        """Write an expression as a statement."""
        value = node.value
        self.fill()
        if value.__class__ not in _ATOMS:
            self._precedences[value] = _YIELD
        _METHODS[value.__class__](self, value)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Write an assignment; the versions differ in how they write tuples of targets."""
        target = node.targets[0]
        if len(node.targets) > 1 or target.__class__ not in _ATOMS:
            super().visit_Assign(node)
            return
        self.fill()
        _METHODS[target.__class__](self, target)
        self._source.append(" = ")
        _METHODS[node.value.__class__](self, node.value)

    def visit_Return(self, node: ast.Return) -> None:
        """Write a ``return``."""
        value = node.value
        if value is None:
            self.fill("return")
        else:
            self.fill("return ")
            _METHODS[value.__class__](self, value)

    def visit_If(self, node: ast.If) -> None:
        """Write an ``if``; one that is all of an ``else`` is an ``elif``."""
        word = "if "
        while True:
            self.fill(word)
            _METHODS[node.test.__class__](self, node.test)
            self.suite(node.body)
            inner = node.orelse[0] if len(node.orelse) == 1 else None
            if not isinstance(inner, ast.If):
                break
            node, word = inner, "elif "
            self._elifs += 1
            if self._elifs == MAX_NESTING // 2:  # (These levels take no calls.)
                check(self._tree)
        if node.orelse:
            self.fill("else")
            self.suite(node.orelse)

    def visit_arguments(self, node: ast.arguments) -> None:
        """Write parameters; most have neither stars nor defaults."""
        if node.posonlyargs or node.defaults or node.vararg or node.kwonlyargs or node.kwarg:
            for starred in (node.vararg, node.kwarg):
                if starred is not None:
                    check_name(starred.arg, starred, self._good)
            super().visit_arguments(node)
            return
        source = self._source
        separator = ""
        for each in node.args:
            check_name(each.arg, each, self._good)
            source += (separator, each.arg)
            if each.annotation is not None:
                source.append(": ")
                _METHODS[each.annotation.__class__](self, each.annotation)
            separator = ", "

    def _write_docstring(self, node: ast.Constant) -> None:
        """Write a docstring; most need no escapes."""
        value: Any = node.value
        if node.kind is None and "\\" not in value and '"""' not in value and value[-1:] != '"' and (
            value.replace("\n", "").replace("\t", "").isprintable()
        ):
            self.fill('"""')
            self._source += (value, '"""')
        else:
            super()._write_docstring(node)
