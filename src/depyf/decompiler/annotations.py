"""Deferred annotations (3.14, PEP 649) -> annotations; type parameters.

3.14 compiles the annotations of a function, class or module into a function ``__annotate__`` of their own::

    def __annotate__(format, /):
        if format > 2: raise NotImplementedError       # 2: VALUE_WITH_FAKE_GLOBALS
        return {"a": int, "return": str}

That of a class or module fills a dictionary, one name after the other, and tests for annotations under an
``if`` (in a module: for all) whether the statement was reached: it leaves its number in the set
``__conditional_annotations__``.  This module takes such a function apart again; ``scopes`` puts the
annotations where they came from.  Functions that are written otherwise (a user may define an
``__annotate__``) are no business of it: they have no ``LOAD_COMMON_CONSTANT``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..bytecode import operations as o
from ..bytecode.canonical import canonicalise
from ..bytecode.operations import Handler, Op, Program
from ..cfg.graph import build
from .emit.text import TYPE_PARAMETER_DEFAULTS, TYPE_PARAMETERS, checked, checked_text, newer, written
from .errors import LIFT, CannotDecompile
from .nodes import NumberedAnnotation, at_line, line_of, nodes_of

if TYPE_CHECKING:
    from ..bytecode.code import Code
    from .scopes import CodeScope

#: Names that the compiler stores the function and the set under.
FUNCTION_NAMES = ("__annotate__", "__annotate_func__")
CONDITIONAL = "__conditional_annotations__"
#: What the dictionary is called while it is lifted: nothing else can be called so.
_RESULT = ".annotations"
_LOADS = frozenset({o.LOAD_NAME, o.LOAD_GLOBAL, o.LOAD_DEREF, o.LOAD_FAST})


@dataclass
class Annotation:
    """One annotated name (mangled) of a class or module, with its line, and its number if it is a conditional one."""

    name: str
    value: ast.expr
    index: int | None
    line: int | None


def deferred(code: Code) -> Program | None:
    """Return the program of a compiled annotation scope without its test of ``format``; ``None`` for other code."""
    if code.version < (3, 14) or code.argcount != 1 or code.posonlyargcount != 1:
        return None
    ops = canonicalise(code).ops
    kinds = [op.kind for op in ops[:6]]
    if kinds != [o.LOAD_FAST, o.CONST, o.COMPARE, o.BRANCH, o.LOAD_COMMON_CONSTANT, o.RAISE]:
        return None
    if ops[1].arg != 2 or ops[2].arg != ">" or ops[3].arg or ops[4].arg != "NotImplementedError":
        return None
    return _without(canonicalise(code), {*range(6)}) if ops[3].target == 6 else None


def expression(code: Code, parent: CodeScope) -> ast.expr:
    """Return the one expression that an annotation scope returns (a function's annotations, a bound, an alias)."""
    from .scopes import as_expression

    program = deferred(code) if code.version >= (3, 14) else canonicalise(code)
    if program is None:
        raise CannotDecompile(LIFT, "an __annotate__ that no compiler wrote")
    return _merged(as_expression(_statements(code, program, parent)))


def _merged(node: ast.expr) -> ast.expr:
    """Return ``{"a": x, "return": y if t else z}``, of which the compiler makes two dictionaries."""
    if isinstance(node, ast.IfExp):
        one, other = _merged(node.body), _merged(node.orelse)
        if isinstance(one, ast.Dict) and isinstance(other, ast.Dict) and one.keys and (
            [ast.dump(k) for k in one.keys if k] == [ast.dump(k) for k in other.keys if k]
        ):
            last = ast.IfExp(node.test, one.values[-1], other.values[-1])
            return ast.Dict(one.keys, [*one.values[:-1], last])
    return node


def find(code: Code) -> Code | None:
    """Return the annotation function of a class or module body."""
    if code.version < (3, 14):
        return None
    ops = canonicalise(code).ops
    for function, stored in zip(ops[1:], ops[2:]):
        if stored.kind is o.STORE_NAME and stored.arg in FUNCTION_NAMES and function.kind is o.MAKE_FUNCTION:
            loaded: Code = ops[ops.index(stored) - 2].arg
            if deferred(loaded) is not None:
                return loaded
    return None


def body_annotations(code: Code, parent: CodeScope) -> list[Annotation]:
    """Return the annotations that the function of a class or module body makes, in order."""
    program = deferred(code)
    if program is None:
        raise CannotDecompile(LIFT, "an __annotate__ that no compiler wrote")
    program, entries = _linear(program)
    result: list[Annotation] = []
    for stmt in _statements(code, program, parent):
        if isinstance(stmt, ast.Return):
            break
        if not isinstance(stmt, ast.Assign) or not isinstance(stmt.targets[0], ast.Subscript):
            raise CannotDecompile(LIFT, "an __annotate__ that does something else")
        name, index, line = entries[len(result)]
        result.append(Annotation(name, stmt.value, index, line))
    if len(result) != len(entries):
        raise CannotDecompile(LIFT, "an __annotate__ that does something else")
    return result


def _statements(code: Code, program: Program, parent: CodeScope) -> list[ast.stmt]:
    scope = parent.nested(code, "annotate")
    scope.program = program
    options = parent.options
    before = options.graphs.get(code)
    options.graphs[code] = build(program)
    try:
        return scope.structured()
    finally:
        if before is None:
            del options.graphs[code]
        else:
            options.graphs[code] = before


def _linear(program: Program) -> tuple[Program, list[tuple[str, int | None, int | None]]]:
    """Return the program of an annotation function in a form that can be lifted: a named dictionary, no conditions.

    Also its annotations, each with its name, the number that was tested, and its line.
    """
    ops = list(program.ops)
    dropped: set[int] = set()
    entries: list[tuple[str, int | None, int | None]] = []
    number: int | None = None
    added: dict[int, Op] = {}
    for at, op in enumerate(ops):
        kinds = [x.kind for x in ops[at : at + 4]]
        if at == 0:
            if op.kind is not o.BUILD_MAP or op.arg:
                raise CannotDecompile(LIFT, "an __annotate__ that starts with something else")
            dropped.add(0)
        elif (
            kinds[:1] == [o.CONST] and kinds[2:] == [o.IN, o.BRANCH] and ops[at + 1].kind in _LOADS
            and ops[at + 1].arg == CONDITIONAL and type(op.arg) is int
        ):
            number = op.arg
            dropped.update(range(at, at + 4))
        elif op.kind is o.COPY and op.arg == 2 and kinds[1:3] == [o.CONST, o.SETITEM]:
            entries.append((ops[at + 1].arg, number, op.line))
            number = None
            ops[at] = Op(o.LOAD_FAST, _RESULT, op.offset, op.line, -1, op.handler)
        elif op.kind is o.RETURN:
            added[at] = Op(o.LOAD_FAST, _RESULT, op.offset, op.line, -1, op.handler)
    # The dictionary was below all else.
    handlers = [Handler(h.target, h.depth - 1, h.lasti) for h in program.handlers]
    return _without(Program(program.code, ops, handlers), dropped, added), entries


def _without(program: Program, dropped: set[int], added: dict[int, Op] | None = None) -> Program:
    """Return the program without some operations, and with others before some; jumps go to what is there now."""
    places: list[int] = []
    ops: list[Op] = []
    for at, op in enumerate(program.ops):
        places.append(len(ops))
        if added and at in added:
            ops.append(added[at])
        if at not in dropped:
            ops.append(Op(op.kind, op.arg, op.offset, op.line, op.target, op.handler))
    for op in ops:
        if op.target >= 0:
            op.target = places[op.target]
    handlers = [Handler(places[h.target], h.depth, h.lasti) for h in program.handlers]
    return Program(program.code, ops, handlers)


def placed(body: list[ast.stmt], annotations: list[Annotation], plain_name: Callable[[str], str]) -> list[ast.stmt]:
    """Return the body with the annotations that left no trace in it, in their order, which alone matters.

    An assignment to the name on the annotation's line becomes an annotated one; else the annotation is a statement. A
    numbered one that no statement reaches was in code that the compiler dropped.
    """
    homes = {node.number: stmt for stmt in body for node in nodes_of(stmt) if isinstance(node, NumberedAnnotation)}
    out = list(body)
    at = 0
    for position, annotation in enumerate(annotations):
        if annotation.index in homes:
            at = max(at, out.index(homes[annotation.index]))
            continue
        following = next((homes[a.index] for a in annotations[position:] if a.index in homes), None)
        limit = out.index(following) if following is not None else len(out)
        annotated = ast.AnnAssign(ast.Name(plain_name(annotation.name), ast.Store()), annotation.value, None, 1)
        statement = annotated if annotation.index is None else ast.If(ast.Constant(False), [annotated], [])
        lines = [line_of(stmt) or 0 for stmt in out]
        line = annotation.line or max(lines, default=0) + 1
        place = next((k for k in range(at, limit) if lines[k] >= line), max(at, limit))
        if place < limit and lines[place] == line and (
            annotation.index is None and assignment(out[place])[0] == plain_name(annotation.name)
        ):
            annotated.value = assignment(out[place])[1]
            del out[place]
        out.insert(place, at_line(statement, annotation.line))
        at = place + 1
    return out


def assignment(stmt: ast.stmt) -> tuple[str, ast.expr | None]:
    """Return name and value of a statement ``name = value``; no name for any other."""
    if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1 and isinstance(stmt.targets[0], ast.Name):
        return stmt.targets[0].id, stmt.value
    return "", None


# --- type parameters and ``type`` statements (3.12, PEP 695) -------------------------------------------
# ``def f[T: int](x: T): ...`` is compiled as the call of a hidden function ``<generic parameters of f>`` that makes the
# parameters, then the function (or class), and returns it. Bounds, constraints, defaults and the value of a ``type``
# statement are functions of their own, evaluated on demand. Here are the values these hidden functions keep on the
# stack, and what they are written as.
#: What the name of a hidden function starts with.
HIDDEN = "<generic parameters of "
_STARS = {"typevar": "", "typevartuple": "*", "paramspec": "**"}


@dataclass(eq=False, repr=False)
class TypeParameter(ast.expr):
    """A type parameter on the stack."""

    kind: str
    name: str
    bound: ast.expr | None = None
    default: ast.expr | None = None

    def text(self) -> str:
        """Return the parameter as it is written in brackets."""
        text = _STARS[self.kind] + checked(self.name)
        if self.bound is not None:
            text += f": {checked_text(self.bound)}"
        if self.default is not None:
            text += f" = {checked_text(self.default)}"
        return text


@dataclass(eq=False, repr=False)
class GenericBase(ast.expr):
    """``Generic[T]``, the base that a class with type parameters gets."""

    parameters: list[TypeParameter]


@dataclass(eq=False, repr=False)
class TypeAlias(ast.expr):
    """The value that a ``type`` statement stores."""

    name: str
    parameters: list[TypeParameter]
    value: ast.expr

    def statement(self, name: str) -> ast.stmt:
        """Return the ``type`` statement that stores the alias under a name."""
        text = f"type {checked(name)}{bracket(self.parameters)} = {checked_text(self.value)}"
        return ast.Expr(written(text, _since(self.parameters)))


def parameters_of(node: Any) -> list[TypeParameter] | None:
    """Return the type parameters in a tuple of them; ``None`` if it contains anything else."""
    if not isinstance(node, ast.Tuple):
        return None
    parameters = [element for element in node.elts if isinstance(element, TypeParameter)]
    return parameters if len(parameters) == len(node.elts) else None


def bracket(parameters: list[TypeParameter]) -> str:
    """Return the type parameters in their brackets; empty without any."""
    return f"[{', '.join(p.text() for p in parameters)}]" if parameters else ""


def _since(parameters: list[TypeParameter]) -> tuple[int, int]:
    return TYPE_PARAMETER_DEFAULTS if any(p.default is not None for p in parameters) else TYPE_PARAMETERS


def with_parameters(node: ast.stmt, parameters: list[TypeParameter]) -> ast.stmt:
    """Write type parameters after the name of a ``def`` or ``class``."""
    return newer(node, bracket(parameters), _since(parameters)) if parameters else node
