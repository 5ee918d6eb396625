"""The symbolic stack: canonical operations become ``ast`` expressions and statements.

A :class:`Machine` runs the operations of one block after the other on a :class:`State`: a stack of
syntax nodes and the statements written so far.  What is on the stack is either an expression that has
been evaluated at that point of the program, or one of the markers below for values that have no
spelling of their own (an iterator, the exit of a ``with``, a value on its way into a target).

The machine expects code as CPython compiles it: a value stays on the stack across a statement only in
the few forms the compiler has (chained assignment, tuple swap).  Anything else raises
:class:`Unliftable`, and the caller tries another form.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Callable

from ..bytecode.operations import Op
from .generics import HIDDEN, GenericBase, TypeAlias, TypeParameter, parameters_of, with_parameters
from .names import is_name
from .newer import Interpolation, template

LOAD = ast.Load()
STORE = ast.Store()
DEL = ast.Del()

BINARY_OPS: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "//": ast.FloorDiv, "%": ast.Mod,
    "@": ast.MatMult, "**": ast.Pow, "<<": ast.LShift, ">>": ast.RShift, "&": ast.BitAnd,
    "|": ast.BitOr, "^": ast.BitXor,
}
UNARY_OPS: dict[str, type[ast.unaryop]] = {
    "-": ast.USub, "+": ast.UAdd, "~": ast.Invert, "not": ast.Not,
}
COMPARE_OPS: dict[str, type[ast.cmpop]] = {
    "<": ast.Lt, "<=": ast.LtE, "==": ast.Eq, "!=": ast.NotEq, ">": ast.Gt, ">=": ast.GtE,
}


#: A call with more arguments than this (a keyword counts twice) is compiled as one with stars (3.10 and later).
_MANY_ARGUMENTS = 30


class Unliftable(Exception):
    """The operations have no direct spelling in this form."""


# --- markers on the stack -------------------------------------------------------------------------
class Marker:
    """A value that has no spelling of its own."""

    __slots__ = ()


class Input(ast.expr):
    """A value from below the block's own stack (only while a block is looked at by itself)."""

    _fields = ()

    def __init__(self, depth: int) -> None:
        self.depth = depth


class Shared(Marker):
    """A value of which the stack holds more than one copy."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Iter(Marker):
    """What ``GET_ITER`` (or ``GET_AITER``) leaves."""

    __slots__ = ("asynchronous", "value")

    def __init__(self, value: ast.expr, asynchronous: bool = False) -> None:
        self.value = value
        self.asynchronous = asynchronous


class Slot(Marker):
    """A value on its way into a target: element ``index`` of ``owner``."""

    __slots__ = ("index", "owner")

    def __init__(self, owner: Any, index: int = 0) -> None:
        self.owner = owner
        self.index = index


class Target:
    """Receives the target of a ``for`` or of ``with ... as``."""

    __slots__ = ("prefix", "target")

    def __init__(self, prefix: str = "item") -> None:
        self.target: ast.expr | None = None
        self.prefix = prefix

    def fill(self, machine: Machine, state: State, index: int, target: Any) -> None:
        self.target = target


class Unpack:
    """An unpacking whose targets are still being stored."""

    __slots__ = ("missing", "source", "star", "targets")

    def __init__(self, source: Any, count: int, star: int = -1) -> None:
        self.source = source
        self.targets: list[ast.expr | None] = [None] * count
        self.missing = count
        self.star = star

    def fill(self, machine: Machine, state: State, index: int, target: ast.expr | None) -> None:
        """``None``: a value that is dropped, because the next one is stored under the same name."""
        self.targets[index] = target
        self.missing -= 1
        if not self.missing:
            name: ast.expr | None = None
            for at in range(len(self.targets) - 1, -1, -1):
                found = self.targets[at]
                if found is None:
                    if not isinstance(name, ast.Name):
                        raise Unliftable("an unpacked value is dropped")
                    found = ast.Name(name.id, STORE)
                name = found
                self.targets[at] = ast.Starred(found, STORE) if at == self.star else found
            machine.store_value(state, ast.Tuple(self.targets, STORE), self.source)  # type: ignore[arg-type]


class Assigning(Marker):
    """``COPY 1; STORE a``: the start of ``a = b = value``, or a walrus."""

    __slots__ = ("q", "targets", "value")

    def __init__(self, targets: list[ast.expr], value: Any) -> None:
        self.targets = targets
        self.value = value


class Exit(Marker):
    """The exit of a ``with`` statement."""

    __slots__ = ("asynchronous", "manager")

    def __init__(self, manager: ast.expr, asynchronous: bool) -> None:
        self.manager = manager
        self.asynchronous = asynchronous


class Caught(Marker):
    """The exception a handler is given; ``previous``: the one below it, restored by ``POP_EXCEPT``."""

    __slots__ = ("previous",)

    def __init__(self, previous: bool) -> None:
        self.previous = previous


class Subject(Marker):
    """What a ``match`` statement looks at, while its cases are tried."""

    def __init__(self, value: ast.expr) -> None:
        self.value = value


class CaseTest(ast.expr):
    """Whether the subject matches: the test of an ``if``, until
    :func:`~depyf.decompiler.structure.patterns.cases` makes a ``match`` of it."""

    _fields = ()

    def __init__(self, subject: Any, pattern: ast.pattern) -> None:
        self.subject = subject
        self.pattern = pattern


class Capture(ast.stmt):
    """``case name:`` until :func:`~depyf.decompiler.structure.patterns.cases` makes it one."""

    _fields = ()

    def __init__(self, subject: Subject, name: str) -> None:
        self.subject = subject
        self.name = name


class Special(Marker):
    """Any other value the compiler keeps on the stack: ``lasti``, ``match`` (``CHECK_EXC_MATCH``), ``null``."""

    __slots__ = ("kind", "value")

    def __init__(self, kind: str, value: Any = None) -> None:
        self.kind = kind
        self.value = value


class Augmented(ast.expr):
    """``left op= right`` before it is stored."""

    _fields = ()

    def __init__(self, left: Any, op: str, right: ast.expr) -> None:
        self.left = left
        self.op = op
        self.right = right


class FunctionExpr(ast.expr):
    """A function that has been made but not yet named (``def``, decorators, class bodies)."""

    _fields = ()

    def __init__(self, code: Any, arguments: dict[str, Any]) -> None:
        self.code = code
        self.arguments = arguments
        self.type_parameters: list[TypeParameter] = []


class ClassExpr(ast.expr):
    """A class that has been made but not yet named."""

    _fields = ()

    def __init__(self, node: ast.ClassDef, code: Any, parameters: list[TypeParameter] | None = None) -> None:
        self.node = node
        self.code = code
        self.type_parameters = parameters or []


class Accumulator(ast.expr):
    """The list, set or dict a comprehension fills."""

    _fields = ()

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.element: Any = None


class State:
    """The stack, and the statements written so far."""

    __slots__ = ("element", "queue", "queued", "stack", "stmts", "underflow")

    def __init__(self, stack: list[Any] | None = None, inputs: bool = False) -> None:
        self.stack: list[Any] = stack if stack is not None else []
        self.stmts: list[ast.stmt] = []
        self.underflow = 0 if inputs else -1
        self.queue: list[tuple[ast.expr, Any]] = []
        self.queued: set[int] = set()
        self.element: Any = None

    def pop(self) -> Any:
        if self.stack:
            return self.stack.pop()
        if self.underflow < 0:
            raise Unliftable("the stack is empty")
        self.underflow += 1
        return Input(self.underflow)

    def need(self, count: int) -> None:
        while len(self.stack) < count:
            if self.underflow < 0:
                raise Unliftable("the stack is too short")
            self.underflow += 1
            self.stack.insert(0, Input(self.underflow))


def is_value(entry: Any) -> bool:
    """Whether a stack entry is a value somebody evaluated (not a marker of the compiler)."""
    return isinstance(entry, (ast.expr, Assigning, Shared)) and not isinstance(entry, (Input, Accumulator))


def is_none(node: Any) -> bool:
    return type(node) is ast.Constant and node.value is None


def same_node(a: Any, b: Any) -> bool:
    """Whether two expressions are the same (copies of one value included)."""
    if a is b:
        return True
    if isinstance(a, Shared):
        a = a.value
    if isinstance(b, Shared):
        b = b.value
    if a is b:
        return True
    return type(a) is type(b) and isinstance(a, ast.AST) and ast.dump(a) == ast.dump(b)


def name_store(name: str) -> ast.Name:
    return ast.Name(name, STORE)


class Scope:
    """What the machine must know about the code object around it (see ``scopes``)."""

    def function(self, expr: FunctionExpr, name: str, decorators: list[ast.expr]) -> ast.stmt:
        raise NotImplementedError

    def lambda_(self, expr: FunctionExpr) -> ast.expr:
        raise NotImplementedError

    def class_(self, expr: FunctionExpr, name: str, bases: list[Any], keywords: list[ast.keyword]) -> ast.ClassDef:
        raise NotImplementedError

    def comprehension(self, expr: FunctionExpr, iterable: Iter) -> ast.expr:
        raise NotImplementedError

    def generic(self, expr: FunctionExpr, values: list[ast.expr]) -> ast.expr:
        """The function, class or alias that a hidden function of type parameters returns."""
        raise NotImplementedError

    def later(self, expr: FunctionExpr) -> ast.expr:
        """The expression that a function of a bound, a default or a ``type`` statement returns."""
        raise NotImplementedError

    def plain_name(self, name: str) -> str:
        return name

    def constant(self, value: Any) -> ast.expr:
        raise NotImplementedError

    def dropped_constant(self, node: Any) -> ast.expr:
        """An expression statement that evaluates the constant and drops it."""
        raise NotImplementedError

    def sets_up_annotations(self) -> bool:
        """Whether the body makes ``__annotations__``."""
        return False

    def begins_a_line(self, node: ast.expr) -> None:
        """The expression must not begin on the line of the one that it is the first part of."""

    def is_one_item(self, node: ast.expr) -> None:
        """The tuple is what a ``with`` statement enters."""

    def annotation(self, node: ast.expr) -> ast.expr:
        return node

    def conditional_annotation(self, name: str, number: Any) -> tuple[str, ast.expr, int] | None:
        """Name and annotation (and the number) that the number in the set ``name`` stands for (3.14)."""
        return None

    annotates = False


class Machine:
    """Runs operations symbolically."""

    def __init__(self, scope: Scope, spill: bool = False) -> None:
        self.scope = scope
        self.spill = spill
        self.temporaries = 0
        self.line: int | None = None
        self.serial = 0
        self.caught: Target | None = None
        #: values of variables that no source can name (``.type_params``), by name
        self.hidden: dict[str, Any] = {}

    def run(self, state: State, ops: list[Op]) -> None:
        for op in ops:
            if op.line is not None:
                self.line = op.line
            method = _OPERATIONS.get(op.kind)
            if method is None:
                raise Unliftable(f"{op.kind} is not expected here")
            method(self, state, op.arg)

    # --- helpers ----------------------------------------------------------------------------------
    def push(self, state: State, node: Any) -> None:
        self.serial += 1
        node.q = self.serial
        state.stack.append(node)

    def resolve(self, entry: Any) -> ast.expr:
        """The expression a stack entry stands for when something uses it."""
        if isinstance(entry, Shared):
            value = entry.value
            if isinstance(value, (ast.Name, ast.Constant, Input)):
                return value
            raise Unliftable("a value is used twice")
        if isinstance(entry, Assigning):
            value = self.resolve(entry.value)
            if isinstance(value, TypeParameter):
                return value
            for target in entry.targets:
                if not isinstance(target, ast.Name):
                    raise Unliftable("an assignment inside an expression")
                value = ast.NamedExpr(target, value)
            return value
        if isinstance(entry, Slot) and isinstance(entry.owner, Target) and entry.owner.target is None:
            raise Unliftable("an item that is not stored")
        if isinstance(entry, Augmented):
            raise Unliftable("an in-place operation that is not stored")
        if (
            isinstance(entry, Slot) and isinstance(entry.owner, Unpack) and entry.owner.missing == 1
            and len(entry.owner.targets) == 1 and entry.owner.star < 0
        ):
            # ``def f(*args: *Ts)`` unpacks one value for the annotation (compiler_visit_argannotation, 3.11)
            return ast.Starred(self.resolve(entry.owner.source), LOAD)
        if not isinstance(entry, ast.expr):
            raise Unliftable(f"a {type(entry).__name__} is used as a value")
        return entry

    def pop(self, state: State) -> ast.expr:
        entry = state.pop()
        if isinstance(entry, ast.expr) and not isinstance(entry, Augmented):
            return entry
        if self.spill and isinstance(entry, Slot):
            return self.unstored(state, entry)
        return self.resolve(entry)

    def unstored(self, state: State, entry: Slot) -> ast.expr:
        """A name for an item that is used without being stored first."""
        self.temporaries += 1
        name = f"value_{self.temporaries}"
        entry.owner.fill(self, state, entry.index, ast.Name(name, STORE))
        made = ast.Name(name, LOAD)
        made.temporary = True  # type: ignore[attr-defined]
        return made

    def popn(self, state: State, count: int) -> list[ast.expr]:
        if not count:
            return []
        stack = state.stack
        if len(stack) < count:
            state.need(count)
        taken = stack[-count:]
        del stack[-count:]
        return [e if isinstance(e, ast.expr) and not isinstance(e, Augmented) else self.resolve(e) for e in taken]

    def temporary(self, state: State, value: ast.expr) -> ast.Name:
        """Give a value a name of its own."""
        self.temporaries += 1
        name = f"value_{self.temporaries}"
        stmt = ast.Assign([ast.Name(name, STORE)], value)
        stmt.line = self.line  # type: ignore[attr-defined]
        state.stmts.append(stmt)
        made = ast.Name(name, LOAD)
        made.temporary = True  # type: ignore[attr-defined]
        return made

    def spill_pending(self, state: State) -> None:
        """Name what is on the stack before something else happens."""
        stack = state.stack
        for index, entry in enumerate(stack):
            if isinstance(entry, ast.expr) and not isinstance(entry, (ast.Constant, Input, Accumulator)):
                if isinstance(entry, ast.Name) and hasattr(entry, "temporary"):
                    continue
                stack[index] = self.temporary(state, entry)

    def emit(self, state: State, stmt: ast.stmt) -> None:
        stack = state.stack
        if self.spill:
            self.spill_pending(state)
            stmt.line = self.line  # type: ignore[attr-defined]
            state.stmts.append(stmt)
            return
        if stack and (is_value(stack[-1]) or any(is_value(e) for e in stack)):
            raise Unliftable("a value is pending across a statement")
        if state.queue:
            raise Unliftable("an unfinished assignment")
        if self.line is not None:
            stmt.line = self.line  # type: ignore[attr-defined]
        if self.scope.annotates and type(stmt) is ast.Assign and self.annotation(state, stmt):
            return
        state.stmts.append(stmt)

    def annotation(self, state: State, stmt: ast.Assign) -> bool:
        """``x = v; __annotations__["x"] = T`` is ``x: T = v``."""
        target = stmt.targets[0]
        if not (
            len(stmt.targets) == 1 and type(target) is ast.Subscript and type(target.value) is ast.Name
            and target.value.id == "__annotations__" and type(target.slice) is ast.Constant
            and isinstance(target.slice.value, str) and is_name(target.slice.value)
        ):
            return False
        self.annotate(state, self.scope.plain_name(target.slice.value), self.scope.annotation(stmt.value))
        return True

    def annotate(self, state: State, name: str, annotation: ast.expr, number: int | None = None) -> None:
        """``name: annotation``, with the value if that was assigned right before on the same line."""
        last = state.stmts[-1] if state.stmts else None
        value = None
        if (
            type(last) is ast.Assign and len(last.targets) == 1 and type(last.targets[0]) is ast.Name
            and last.targets[0].id == name and getattr(last, "line", None) == self.line
        ):
            value = last.value
            state.stmts.pop()
        made = ast.AnnAssign(ast.Name(name, STORE), annotation, value, 1)
        made.annotation_number = number  # type: ignore[attr-defined]
        made.line = self.line  # type: ignore[attr-defined]
        state.stmts.append(made)

    # --- storing ----------------------------------------------------------------------------------
    def store(self, state: State, target: ast.expr) -> None:
        self.store_value(state, target, state.pop())

    def store_value(self, state: State, target: ast.expr, value: Any) -> None:
        stack = state.stack
        if isinstance(value, Slot):
            value.owner.fill(self, state, value.index, target)
            return
        if isinstance(value, Special):
            if value.kind == "locals" and isinstance(target, ast.Name) and target.id == "__classdict__":
                return  # what annotation scopes in a class look names up in
            if value.kind == "null" or self.store_import(state, target, value):
                return
            raise Unliftable(f"a value of the compiler is stored ({value.kind})")
        if isinstance(target, ast.Name) and target.id.startswith(".") and not target.id.startswith(".annotations"):
            self.hidden[target.id] = value
            return
        if isinstance(value, Iter) and isinstance(target, ast.Name):
            raise Unliftable("an iterator is stored")
        if isinstance(value, Shared) and stack and stack[-1] is value:
            inner = value.value
            if isinstance(inner, Assigning):
                inner.targets.append(target)
                stack[-1] = inner
            else:
                assigning = Assigning([target], inner)
                assigning.q = getattr(inner, "q", 0)  # type: ignore[attr-defined]
                stack[-1] = assigning
            return
        if isinstance(value, Caught):
            self.emit_catch(state, target)
            return
        if isinstance(value, Subject) and isinstance(target, ast.Name):
            self.emit(state, Capture(value, target.id))
            return
        if isinstance(value, Shared):
            value = value.value
            if not isinstance(value, (ast.Name, ast.Constant, Assigning)):
                raise Unliftable("a value is used twice")
        if not isinstance(value, (ast.expr, Assigning)):
            raise Unliftable(f"a {type(value).__name__} is stored")
        if self.spill:
            self.emit(state, self.assignment(state, target, value))
            return
        if stack and is_value(stack[-1]) and not state.queued:
            state.queued = {id(e) for e in stack if is_value(e)}
            state.queue.append((target, value))
            return
        if state.queued:
            if id(value) not in state.queued:
                raise Unliftable("a value is used after an assignment")
            state.queue.append((target, value))
            if stack and is_value(stack[-1]):
                return
            pairs = sorted(state.queue, key=lambda pair: getattr(pair[1], "q", 0))
            state.queue = []
            state.queued = set()
            targets = ast.Tuple([t for t, _ in pairs], STORE)
            values = ast.Tuple([self.resolve(v) for _, v in pairs], LOAD)
            self.emit(state, ast.Assign([targets], values))
            return
        self.emit(state, self.assignment(state, target, value))

    def emit_catch(self, state: State, target: ast.expr) -> None:
        if self.caught is None or self.caught.target is not None:
            raise Unliftable("an exception is stored")
        self.caught.target = target

    def assignment(self, state: State, target: ast.expr, value: Any) -> ast.stmt:
        targets = [target]
        while isinstance(value, Assigning):
            targets = value.targets + targets
            value = value.value
        kind = type(value)
        if kind is Augmented:
            if len(targets) > 1 or not self.same_target(target, value.left):
                raise Unliftable("an in-place operation stored elsewhere")
            return ast.AugAssign(target, BINARY_OPS[value.op](), value.right)  # type: ignore[arg-type]
        if len(targets) == 1 and type(target) is ast.Name:
            if kind is TypeAlias:
                if self.scope.plain_name(value.name) != target.id:
                    raise Unliftable("a type alias stored under another name")
                stmt: ast.stmt = value.statement(target.id)
                return stmt
            if kind is FunctionExpr or kind is ast.Call or kind is ClassExpr:
                made = self.definition(target.id, value)
                if made is not None:
                    return made
        value = self.resolve(value)
        return ast.Assign(targets, value)

    def same_target(self, target: ast.expr, left: Any) -> bool:
        if isinstance(target, ast.Name):
            return isinstance(left, ast.Name) and left.id == target.id
        if isinstance(target, ast.Attribute):
            return (
                isinstance(left, ast.Attribute) and left.attr == target.attr and same_node(left.value, target.value)
            )
        if isinstance(target, ast.Subscript):
            return (
                isinstance(left, ast.Subscript)
                and same_node(left.value, target.value)
                and same_node(left.slice, target.slice)
            )
        return False

    def definition(self, name: str, value: ast.expr) -> ast.stmt | None:
        """``def`` or ``class``, if ``value`` is a (decorated) new function or class called ``name``."""
        decorators: list[ast.expr] = []
        inner = value
        while type(inner) is ast.Call and len(inner.args) == 1 and not inner.keywords:
            decorators.append(inner.func)
            inner = inner.args[0]
        if type(inner) is FunctionExpr:
            made = self.scope.function(inner, name, decorators)
            return made if made is None else with_parameters(made, inner.type_parameters)  # type: ignore[no-any-return]
        if type(inner) is ClassExpr:
            if self.scope.plain_name(inner.node.name) != self.scope.plain_name(name):
                return None
            inner.node.decorator_list = decorators
            return with_parameters(inner.node, inner.type_parameters)  # type: ignore[no-any-return]
        return None

    # --- values and names -------------------------------------------------------------------------
    def op_CONST(self, state: State, value: Any) -> None:
        node = self.scope.constant(value)
        if isinstance(node, ast.expr):
            node.is_true = bool(value)  # type: ignore[attr-defined]
            self.push(state, node)
        else:
            state.stack.append(node)

    def load_name(self, state: State, name: str) -> None:
        if name == ".0":
            state.stack.append(Iter(Input(0)))
            return
        if name in self.hidden:
            state.stack.append(self.hidden[name])
            return
        self.push(state, ast.Name(self.scope.plain_name(name), LOAD))

    op_LOAD_FAST = op_LOAD_GLOBAL = op_LOAD_NAME = op_LOAD_DEREF = op_LOAD_CLASSDEREF = load_name

    def op_LOAD_FROM_DICT_OR_GLOBALS(self, state: State, name: str) -> None:
        state.pop()
        self.load_name(state, name)

    op_LOAD_FROM_DICT_OR_DEREF = op_LOAD_FROM_DICT_OR_GLOBALS

    def op_LOAD_LOCALS(self, state: State, _: Any) -> None:
        state.stack.append(Special("locals"))

    def op_LOAD_CLOSURE(self, state: State, name: str) -> None:
        self.push(state, ast.Name(name, LOAD))

    def op_MAKE_CELL(self, state: State, _: Any) -> None:
        pass

    def op_LOAD_FAST_AND_CLEAR(self, state: State, name: str) -> None:
        state.stack.append(Special("null", name))

    def store_name(self, state: State, name: str) -> None:
        self.store(state, ast.Name(self.scope.plain_name(name), STORE))

    op_STORE_FAST = op_STORE_GLOBAL = op_STORE_NAME = op_STORE_DEREF = store_name

    def delete_name(self, state: State, name: str) -> None:
        self.emit(state, ast.Delete([ast.Name(self.scope.plain_name(name), DEL)]))

    op_DELETE_FAST = op_DELETE_GLOBAL = op_DELETE_NAME = op_DELETE_DEREF = delete_name

    def op_LOAD_BUILD_CLASS(self, state: State, _: Any) -> None:
        self.push(state, ast.Name("__build_class__", LOAD))
        state.stack[-1].build_class = True

    def op_LOAD_ASSERTION_ERROR(self, state: State, _: Any) -> None:
        self.push(state, ast.Name("AssertionError", LOAD))
        state.stack[-1].assertion = True

    def op_LOAD_ATTR(self, state: State, name: str) -> None:
        entry = state.pop()
        if not isinstance(entry, Shared):
            entry = self.resolve(entry)
        self.push(state, ast.Attribute(entry, self.scope.plain_name(name), LOAD))

    def op_STORE_ATTR(self, state: State, name: str) -> None:
        owner = state.pop()
        if not isinstance(owner, Shared):
            owner = self.resolve(owner)
        self.store_checked(state, ast.Attribute(owner, self.scope.plain_name(name), STORE))

    def store_checked(self, state: State, target: Any) -> None:
        """Store to an attribute or item whose parts may be copies: then it must be an augmented one."""
        value = state.pop()
        shared = isinstance(target.value, Shared) or isinstance(getattr(target, "slice", None), (Shared, ast.Slice))
        if shared:
            if isinstance(value, Augmented) and self.same_target(target, value.left):
                target = self.unshare(target)
                value = Augmented(target, value.op, value.right)
            elif isinstance(target.value, Shared):
                target.value = self.resolve(target.value)
            if isinstance(getattr(target, "slice", None), Shared):
                target.slice = self.resolve(target.slice)
        self.store_value(state, target, value)

    def unshare(self, node: Any) -> Any:
        if isinstance(node, Shared):
            return self.unshare(node.value)
        if isinstance(node, ast.Attribute):
            node.value = self.unshare(node.value)
        elif isinstance(node, ast.Subscript):
            node.value = self.unshare(node.value)
            node.slice = self.unshare(node.slice)
        elif isinstance(node, ast.Slice):
            node.lower, node.upper, node.step = (
                self.unshare(part) for part in (node.lower, node.upper, node.step)
            )
        return node

    def op_DELETE_ATTR(self, state: State, name: str) -> None:
        self.emit(state, ast.Delete([ast.Attribute(self.pop(state), self.scope.plain_name(name), DEL)]))

    def op_LOAD_SUPER_ATTR(self, state: State, arg: Any) -> None:
        name, two = arg
        super_, class_, self_ = self.popn(state, 3)
        arguments = [class_, self_] if two else []
        self.push(state, ast.Attribute(ast.Call(super_, arguments, []), self.scope.plain_name(name), LOAD))

    def index(self, entry: Any) -> Any:
        return entry if isinstance(entry, Shared) else self.resolve(entry)

    def op_GETITEM(self, state: State, _: Any) -> None:
        index = self.index(state.pop())
        value = self.index(state.pop())
        if not isinstance(value, Shared) and not isinstance(index, Shared):
            self.push(state, ast.Subscript(value, index, LOAD))
            return
        self.push(state, ast.Subscript(value, index, LOAD))

    def op_SETITEM(self, state: State, _: Any) -> None:
        index = self.index(state.pop())
        value = self.index(state.pop())
        self.store_checked(state, ast.Subscript(value, index, STORE))

    def op_DELITEM(self, state: State, _: Any) -> None:
        index = self.pop(state)
        self.emit(state, ast.Delete([ast.Subscript(self.pop(state), index, DEL)]))

    # --- operators --------------------------------------------------------------------------------
    def op_BINARY(self, state: State, op: str) -> None:
        right = self.pop(state)
        left = self.pop(state)
        if op == "%" and would_be_formatted(left, right):
            left = ast.JoinedStr([left])
        self.push(state, ast.BinOp(left, BINARY_OPS[op](), right))

    def op_INPLACE(self, state: State, op: str) -> None:
        right = self.pop(state)
        if self.spill:
            left = self.pop(state)
            self.spill_pending(state)
            name = self.temporary(state, left)
            state.stmts.append(ast.AugAssign(ast.Name(name.id, STORE), BINARY_OPS[op](), right))
            self.push(state, name)
            return
        self.push(state, Augmented(state.pop(), op, right))

    def op_UNARY(self, state: State, op: str) -> None:
        self.push(state, ast.UnaryOp(UNARY_OPS[op](), self.pop(state)))

    def compare(self, state: State, op: ast.cmpop) -> None:
        right = state.pop()
        left = self.pop(state)
        if not isinstance(right, Shared):
            right = self.resolve(right)
        self.push(state, ast.Compare(left, [op], [right]))

    def op_COMPARE(self, state: State, op: str) -> None:
        self.compare(state, COMPARE_OPS[op]())

    def op_IS(self, state: State, inverted: bool) -> None:
        self.compare(state, ast.IsNot() if inverted else ast.Is())

    def op_IN(self, state: State, inverted: bool) -> None:
        self.compare(state, ast.NotIn() if inverted else ast.In())

    # --- building ---------------------------------------------------------------------------------
    def op_BUILD_TUPLE(self, state: State, count: int) -> None:
        node: Any = ast.Tuple(self.popn(state, count), LOAD)
        node.made = True
        self.push(state, node)

    def op_BUILD_LIST(self, state: State, count: int) -> None:
        self.push(state, ast.List(self.popn(state, count), LOAD))

    def op_BUILD_SET(self, state: State, count: int) -> None:
        self.push(state, ast.Set(self.popn(state, count)))

    def op_BUILD_MAP(self, state: State, count: int) -> None:
        items = self.popn(state, 2 * count)
        self.push(state, ast.Dict(items[::2], items[1::2]))  # type: ignore[arg-type]

    def op_BUILD_CONST_KEY_MAP(self, state: State, keys: tuple[Any, ...]) -> None:
        values = self.popn(state, len(keys))
        self.push(state, ast.Dict([self.scope.constant(k) for k in keys], values))

    def op_BUILD_UNPACK(self, state: State, arg: tuple[str, int]) -> None:
        """3.8 and before: what stands between two stars is a tuple (or dict) of its own."""
        kind, count = arg
        parts = self.popn(state, count)
        if kind in ("dict", "keywords"):
            self.push(state, self.joined_mapping(parts, kind == "keywords"))
            return
        elts: list[ast.expr] = []
        inner = ast.Set if kind == "set" else ast.Tuple
        spliced = False
        for part in parts:
            spliced = isinstance(part, inner) and bool(part.elts) and not spliced and not has_star(part)
            elts.extend(part.elts if spliced else [ast.Starred(part, LOAD)])  # type: ignore[attr-defined]
        made: Any = ast.Tuple(elts, LOAD)
        if kind == "set":
            made = ast.Set(elts)
        elif kind == "list":
            made = ast.List(elts, LOAD)
        made.display = kind == "tuple"  # a tuple of its own, not the arguments of a call
        self.push(state, made)

    def joined_mapping(self, parts: list[ast.expr], keywords: bool) -> ast.Dict:
        made: Any = ast.Dict([], [])
        made.merged = []
        spliced = False
        for part in parts:
            spliced = (
                isinstance(part, ast.Dict) and bool(part.keys) and None not in part.keys and not spliced
                and (not keywords or all(isinstance(k, ast.Constant) for k in part.keys))
            )
            if spliced:
                made.keys.extend(part.keys)  # type: ignore[attr-defined]
                made.values.extend(part.values)  # type: ignore[attr-defined]
                made.merged.append(("items", list(zip(part.keys, part.values))))  # type: ignore[attr-defined]
            else:
                made.keys.append(None)
                made.values.append(part)
                made.merged.append(("star", part))
        if not keywords:
            del made.merged
        return made

    def op_BUILD_SLICE(self, state: State, count: int) -> None:
        parts = []
        for _ in range(count):
            parts.append(self.index(state.pop()))
        parts.reverse()
        ends = [None if is_none(p) else p for p in parts[:2]]
        step = parts[2] if count == 3 else None
        self.push(state, ast.Slice(ends[0], ends[1], step))

    def op_FORMAT(self, state: State, arg: Any) -> None:
        conversion, has_spec = arg
        spec = None
        if has_spec:
            spec = self.pop(state)
            if isinstance(spec, ast.Constant):
                spec = ast.JoinedStr([spec])
            elif not isinstance(spec, ast.JoinedStr):
                spec = ast.JoinedStr([ast.FormattedValue(spec, -1, None)])
        value = ast.FormattedValue(self.pop(state), ord(conversion) if conversion else -1, spec)
        self.push(state, ast.JoinedStr([value]))

    def op_CONVERT(self, state: State, conversion: str) -> None:
        self.push(state, ast.JoinedStr([ast.FormattedValue(self.pop(state), ord(conversion), None)]))
        state.stack[-1].converted = True

    def op_BUILD_STRING(self, state: State, count: int) -> None:
        parts: list[ast.expr] = []
        for part in self.popn(state, count):
            parts.extend(part.values if isinstance(part, ast.JoinedStr) else [part])
        self.push(state, ast.JoinedStr(parts))

    def op_BUILD_INTERPOLATION(self, state: State, arg: Any) -> None:
        conversion, has_spec = arg
        spec = self.pop(state) if has_spec else None
        text = self.pop(state)
        if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
            raise Unliftable("the text of an interpolation is computed")
        self.push(state, Interpolation(self.pop(state), text.value, conversion, spec))

    def op_BUILD_TEMPLATE(self, state: State, _: Any) -> None:
        fields, strings = self.pop(state), self.pop(state)
        if (
            not isinstance(fields, ast.Tuple) or not isinstance(strings, ast.Tuple)
            or len(strings.elts) != len(fields.elts) + 1
            or not all(isinstance(f, Interpolation) for f in fields.elts)
            or not all(isinstance(s, ast.Constant) and isinstance(s.value, str) for s in strings.elts)
        ):
            raise Unliftable("a template made in another way")
        texts = tuple(s.value for s in strings.elts)  # type: ignore[attr-defined]
        self.push(state, template(texts, fields.elts))  # type: ignore[arg-type]

    def accumulate(self, state: State, depth: int, kinds: tuple[type, ...]) -> Any:
        state.need(depth)
        entry = state.stack[-depth]
        if isinstance(entry, Accumulator):
            return entry
        if isinstance(entry, kinds):
            return entry
        raise Unliftable("an element is added to something else")

    def op_LIST_APPEND(self, state: State, depth: int) -> None:
        value = self.pop(state)
        owner = self.accumulate(state, depth, (ast.List,))
        if isinstance(owner, Accumulator):
            owner.element = value
        elif state.element is None and any(isinstance(e, Iter) for e in state.stack[-depth:]):
            state.element = ("list", value)
        else:
            owner.elts.append(value)

    def op_SET_ADD(self, state: State, depth: int) -> None:
        value = self.pop(state)
        if self.scope.annotates and depth == 1 and self.reached(state, value):
            return
        owner = self.accumulate(state, depth, (ast.Set,))
        if isinstance(owner, Accumulator):
            owner.element = value
        else:
            owner.elts.append(value)

    def reached(self, state: State, number: ast.expr) -> bool:
        """3.14: ``__conditional_annotations__.add(number)``; what is popped next stands for the annotation."""
        owner = state.stack[-1] if state.stack else None
        if not isinstance(owner, ast.Name) or not isinstance(number, ast.Constant):
            return False
        annotation = self.scope.conditional_annotation(owner.id, number.value)
        if annotation is None:
            return False
        state.stack[-1] = Special("annotation", annotation)
        return True

    def op_MAP_ADD(self, state: State, depth: int) -> None:
        key, value = self.popn(state, 2)
        owner = self.accumulate(state, depth, (ast.Dict,))
        if isinstance(owner, Accumulator):
            owner.element = (key, value)
        else:
            owner.keys.append(key)
            owner.values.append(value)

    def op_LIST_EXTEND(self, state: State, depth: int) -> None:
        value = self.pop(state)
        owner = self.accumulate(state, depth, (ast.List,))
        if type(value) is ast.Constant and isinstance(value.value, tuple) and not owner.elts:
            owner.elts.extend(self.scope.constant(v) for v in value.value)
        elif type(value) is ast.Tuple and getattr(value, "folded", False) and not owner.elts:
            owner.elts.extend(value.elts)
        else:
            owner.elts.append(ast.Starred(value, LOAD))

    def op_SET_UPDATE(self, state: State, depth: int) -> None:
        value = self.pop(state)
        owner = self.accumulate(state, depth, (ast.Set,))
        folded = getattr(value, "frozen", None)
        if folded is not None and not owner.elts:
            # the compiler makes a constant of three elements or more: some of them were equal
            owner.elts.extend([*folded, *folded[-1:] * (3 - len(folded))])
        else:
            owner.elts.append(ast.Starred(value, LOAD))

    def op_DICT_UPDATE(self, state: State, depth: int) -> None:
        value = self.pop(state)
        owner = self.accumulate(state, depth, (ast.Dict,))
        if type(value) is ast.Dict and value.values and None not in value.keys:
            owner.keys.extend(value.keys)
            owner.values.extend(value.values)
        else:
            owner.keys.append(None)
            owner.values.append(value)

    def op_DICT_MERGE(self, state: State, depth: int) -> None:
        value = self.pop(state)
        owner = self.accumulate(state, depth, (ast.Dict,))
        if not hasattr(owner, "merged"):
            owner.merged = [("items", list(zip(owner.keys, owner.values)))] if owner.keys else []
        owner.merged.append(("star", value))

    def op_LIST_TO_TUPLE(self, state: State, _: Any) -> None:
        value = self.pop(state)
        if not isinstance(value, ast.List):
            raise Unliftable("LIST_TO_TUPLE of something else")
        self.push(state, ast.Tuple(value.elts, LOAD))

    def op_UNPACK(self, state: State, count: int) -> None:
        self.unpack(state, count, -1)

    def op_UNPACK_EX(self, state: State, arg: Any) -> None:
        before, after = arg
        self.unpack(state, before + 1 + after, before)

    def unpack(self, state: State, count: int, star: int) -> None:
        owner = Unpack(state.pop(), count, star)
        if not count:
            self.store_value(state, ast.Tuple([], STORE), owner.source)
            return
        state.stack.extend(Slot(owner, index) for index in range(count - 1, -1, -1))

    # --- calls ------------------------------------------------------------------------------------
    def op_CALL(self, state: State, arg: Any) -> None:
        count, names = arg
        total = count + len(names)
        state.need(total + 1)
        stack = state.stack
        function = stack[-total - 1]
        if isinstance(function, Exit):
            raise Unliftable("the exit of a with statement is called elsewhere")
        if count == 1 and not names and isinstance(function, FunctionExpr) and isinstance(stack[-1], Iter):
            iterable = stack.pop()
            stack.pop()
            self.push(state, self.scope.comprehension(function, iterable))
            return
        if isinstance(function, FunctionExpr) and function.code.name.startswith(HIDDEN) and not names:
            given = self.popn(state, total)
            stack.pop()
            self.push(state, self.scope.generic(function, given))
            return
        values = self.popn(state, total)
        keywords = [ast.keyword(n, v) for n, v in zip(names, values[count:])]  # (no version changes ``_C__x`` again)
        del values[count:]
        function = self.pop(state)
        if getattr(function, "build_class", False):
            self.build_class(state, values, keywords)
            return
        self.push(state, ast.Call(function, values, keywords))

    def build_class(self, state: State, values: list[Any], keywords: list[ast.keyword]) -> None:
        if len(values) < 2 or not isinstance(values[0], FunctionExpr) or not isinstance(values[1], ast.Constant):
            raise Unliftable("a class that is made in another way")
        parameters = [p for v in values if isinstance(v, GenericBase) for p in v.parameters]
        values = [v for v in values if not isinstance(v, GenericBase)]
        made = self.scope.class_(values[0], values[1].value, values[2:], keywords)  # type: ignore[arg-type]
        self.push(state, ClassExpr(made, values[0].code, parameters))  # type: ignore[attr-defined]

    def op_CALL_EX(self, state: State, has_keywords: bool) -> None:
        keywords = self.keywords_of(self.pop(state)) if has_keywords else []
        arguments = self.pop(state)
        function = self.pop(state)
        positional: list[ast.expr] = [ast.Starred(arguments, LOAD)]
        if isinstance(arguments, ast.Tuple) and not getattr(arguments, "display", False) and (
            has_keywords or not getattr(arguments, "folded", False)
        ):
            made = getattr(arguments, "made", False) or getattr(arguments, "folded", False)
            if has_star(arguments) or not made or any(k.arg is None for k in keywords) or (
                has_keywords and len(arguments.elts) + 2 * len(keywords) > _MANY_ARGUMENTS
            ):
                positional = list(arguments.elts)
        if getattr(function, "build_class", False):
            self.build_class(state, positional, keywords)
            return
        self.push(state, ast.Call(function, positional, keywords))

    def keywords_of(self, mapping: ast.expr) -> list[ast.keyword]:
        """The keyword arguments that a mapping was put together from."""
        if not isinstance(mapping, ast.Dict):
            return [ast.keyword(None, mapping)]
        parts = getattr(mapping, "merged", None)
        if parts is None:
            parts = [("items", list(zip(mapping.keys, mapping.values)))]
        keywords: list[ast.keyword] = []
        named = True
        for kind, value in parts:
            names: list[Any] = []
            if kind == "items":
                value = ast.Dict([key for key, _ in value], [item for _, item in value])
            # keywords behind a mapping are merged in as a mapping of their own
            if isinstance(value, ast.Dict) and not hasattr(value, "merged") and (kind == "items" or not named):
                names = [key.value if isinstance(key, ast.Constant) else None for key in value.keys]
            named = bool(names) and all(isinstance(n, str) and is_name(n) for n in names)
            if named and isinstance(value, ast.Dict):
                keywords += [ast.keyword(str(n), v) for n, v in zip(names, value.values)]
            else:
                keywords.append(ast.keyword(None, value))
        return keywords

    def op_MAKE_FUNCTION(self, state: State, flags: int) -> None:
        code = state.pop()
        arguments: dict[str, Any] = {}
        for bit, key in ((8, "closure"), (16, "annotate"), (4, "annotations"), (2, "kwdefaults"), (1, "defaults")):
            if flags & bit:
                arguments[key] = self.pop(state)
        if not (isinstance(code, Special) and code.kind == "code"):
            raise Unliftable("a function made of something else")
        expr = FunctionExpr(code.value, arguments)
        if code.value.name == "<lambda>":
            self.push(state, self.scope.lambda_(expr))
        else:
            self.push(state, expr)

    def op_IMPORT_NAME(self, state: State, name: str) -> None:
        level, names = self.popn(state, 2)
        state.stack.append(Special("import", [name, level, names, [], None]))

    def op_IMPORT_FROM(self, state: State, name: str) -> None:
        module = state.stack[-1] if state.stack else None
        if isinstance(module, Special) and module.kind == "import":
            state.stack.append(Special("from", (module, name)))
        elif isinstance(module, Special) and module.kind == "from":
            state.stack.append(Special("from", (module, name)))
        else:
            raise Unliftable("IMPORT_FROM of something else")

    def op_IMPORT_STAR(self, state: State, _: Any) -> None:
        module = state.pop()
        name, level, _, _, _ = module.value
        self.emit(state, ast.ImportFrom(name or None, [ast.alias("*", None)], level.value))

    def op_INTRINSIC_1(self, state: State, name: str) -> None:
        if name == "list_to_tuple":
            self.op_LIST_TO_TUPLE(state, None)
        elif name == "unary_positive":
            self.op_UNARY(state, "+")
        elif name == "import_star":
            self.op_IMPORT_STAR(state, None)
        elif name == "stopiteration_error" or name == "async_gen_wrap":
            pass
        else:
            self.type_parameter(state, name, self.pop(state))

    def type_parameter(self, state: State, name: str, value: ast.expr) -> None:
        if name in ("typevar", "typevartuple", "paramspec") and isinstance(value, ast.Constant):
            self.push(state, TypeParameter(name, self.scope.plain_name(value.value)))  # type: ignore[arg-type]
            return
        parameters = parameters_of(value)
        if name == "subscript_generic" and parameters:
            self.push(state, GenericBase(parameters))
            return
        if name == "typealias" and isinstance(value, ast.Tuple) and len(value.elts) == 3:
            shown, parameters_node, made = value.elts
            given = [] if is_none(parameters_node) else parameters_of(parameters_node)
            if given is not None and isinstance(shown, ast.Constant) and isinstance(made, FunctionExpr):
                self.push(state, TypeAlias(shown.value, given, self.scope.later(made)))  # type: ignore[arg-type]
                return
        raise Unliftable(f"intrinsic {name}")

    def op_INTRINSIC_2(self, state: State, name: str) -> None:
        first, second = self.popn(state, 2)
        parameters = parameters_of(second)
        if name == "set_function_type_params" and isinstance(first, FunctionExpr) and parameters:
            first.type_parameters = parameters
            self.push(state, first)
        elif name == "set_typeparam_default" and isinstance(first, TypeParameter) and isinstance(second, FunctionExpr):
            first.default = self.scope.later(second)
            self.push(state, first)
        elif name in ("typevar_with_bound", "typevar_with_constraints") and isinstance(second, FunctionExpr) and (
            isinstance(first, ast.Constant)
        ):
            shown = self.scope.plain_name(first.value)  # type: ignore[arg-type]
            self.push(state, TypeParameter("typevar", shown, self.scope.later(second)))
        else:
            raise Unliftable(f"intrinsic {name}")

    def op_SETUP_ANNOTATIONS(self, state: State, _: Any) -> None:
        pass

    # --- the stack --------------------------------------------------------------------------------
    def op_POP(self, state: State, _: Any) -> None:
        entry = state.pop()
        if isinstance(entry, Special):
            if entry.kind == "import":
                self.finish_import(state, entry)
            elif entry.kind == "annotation":
                self.annotate(state, *entry.value)
            elif entry.kind not in ("lasti", "match", "null", "from"):
                raise Unliftable(f"a value of the compiler is dropped ({entry.kind})")
            return
        if isinstance(entry, Slot):
            if isinstance(entry.owner, Unpack):
                entry.owner.fill(self, state, entry.index, None)
            return
        if isinstance(entry, (Iter, Exit, Caught, Input, Subject)):
            return
        if isinstance(entry, Shared):
            if any(e is entry for e in state.stack):
                return
            entry = entry.value
            if isinstance(entry, (ast.Name, ast.Constant)):
                return
        if isinstance(entry, Augmented):
            raise Unliftable("an in-place operation that is not stored")
        if hasattr(entry, "temporary"):
            return
        value = self.resolve(entry)
        if hasattr(value, "is_true"):
            value = self.scope.dropped_constant(value)
        elif isinstance(value, _COMPREHENSIONS) and _is_null(state.stack) and self.scope.sets_up_annotations():
            # It is dropped before the variables of the inlined comprehension are restored: the two have changed
            # places (``apply_static_swaps`` in flowgraph.c), as in annotations only they are of one place.
            self.emit(state, ast.AnnAssign(ast.Name("_", STORE), value, None, 0))
            return
        self.emit(state, ast.Expr(value))

    def finish_import(self, state: State, entry: Special) -> None:
        name, level, names, bound, _ = entry.value
        if entry.value[4] is not None:
            self.emit(state, entry.value[4])
            return
        if not bound:
            top = state.stack[-1] if state.stack else None
            if isinstance(top, Special) and top.kind == "from" and top.value[0] is entry:
                return
            raise Unliftable("an import that binds nothing")
        self.emit(state, ast.ImportFrom(name or None, [ast.alias(n, a) for n, a in bound], level.value))

    def store_import(self, state: State, target: ast.expr, entry: Special) -> bool:
        if not isinstance(target, ast.Name):
            return False
        if entry.kind == "import":
            name, level, names, bound, _ = entry.value
            if not is_none(names) or not isinstance(level, ast.Constant) or level.value:
                if isinstance(level, ast.Constant) and not level.value and not is_none(names):
                    return False
                return False
            top = name.partition(".")[0]
            self.emit(state, ast.Import([ast.alias(name, None if top == target.id else target.id)]))
            return True
        if entry.kind == "from":
            module, name = entry.value
            chain = [name]
            while module.kind == "from":
                chain.append(module.value[1])
                module = module.value[0]
            stack = state.stack
            full, level, names, bound, _ = module.value
            if stack and stack[-1] is module and is_none(names) and full.split(".")[1:] == chain[::-1]:
                # the store has changed places with the POP of the module
                module.value[4] = ast.Import([ast.alias(full, target.id)])
                return True
            if stack and stack[-1] is module and len(chain) == 1:
                module.value[3].append((name, None if self.scope.plain_name(name) == target.id else target.id))
                return True
            # ``import a.b.c as d``: IMPORT_FROM b; SWAP 2; POP; IMPORT_FROM c; STORE d; POP
            if is_none(names) and full.split(".")[1:] == chain[::-1]:
                self.emit(state, ast.Import([ast.alias(full, target.id)]))
                return True
        return False

    def op_COPY(self, state: State, depth: int) -> None:
        state.need(depth)
        stack = state.stack
        entry = stack[-depth]
        if isinstance(entry, (Iter, Slot, Exit, Caught, Special)):
            if isinstance(entry, Slot):
                raise Unliftable("an item is used twice")
            stack.append(entry)
            return
        if self.spill and isinstance(entry, ast.expr) and not isinstance(entry, Input):
            if not isinstance(entry, (ast.Constant,)) and not hasattr(entry, "temporary"):
                self.spill_pending(state)
                entry = stack[-depth]
            stack.append(entry)
            return
        if not isinstance(entry, Shared):
            shared = Shared(entry)
            stack[-depth] = shared
            entry = shared
        stack.append(entry)

    def op_SWAP(self, state: State, depth: int) -> None:
        state.need(depth)
        stack = state.stack
        stack[-1], stack[-depth] = stack[-depth], stack[-1]

    def op_ROT(self, state: State, depth: int) -> None:
        state.need(depth)
        stack = state.stack
        stack.insert(len(stack) - depth, stack.pop())

    # --- iteration, generators --------------------------------------------------------------------
    def op_GET_ITER(self, state: State, _: Any) -> None:
        state.stack.append(Iter(self.pop(state)))

    def op_GET_AITER(self, state: State, _: Any) -> None:
        state.stack.append(Iter(self.pop(state), True))

    def op_YIELD(self, state: State, _: Any) -> None:
        value = self.pop(state)
        self.push(state, ast.Yield(None if is_none(value) else value))

    def op_YIELD_FROM(self, state: State, _: Any) -> None:
        self.push(state, ast.YieldFrom(self.pop(state)))

    def op_AWAIT(self, state: State, _: Any) -> None:
        entry = state.pop()
        if isinstance(entry, Slot):
            state.stack.append(entry)
            return
        if getattr(entry, "awaited", False):
            # an asynchronous comprehension is a coroutine function that is called and awaited
            entry.awaited = False
            state.stack.append(entry)
            return
        if isinstance(entry, ast.Call) or isinstance(entry, ast.expr):
            self.push(state, ast.Await(entry))
            return
        self.push(state, ast.Await(self.resolve(entry)))

    # --- exceptions, with -------------------------------------------------------------------------
    def op_PUSH_EXC_INFO(self, state: State, _: Any) -> None:
        exception = state.pop()
        if not isinstance(exception, Caught):
            raise Unliftable("PUSH_EXC_INFO outside a handler")
        state.stack.extend((Caught(True), exception))

    def op_POP_EXCEPT(self, state: State, _: Any) -> None:
        entry = state.pop()
        if not (isinstance(entry, Caught) and entry.previous):
            raise Unliftable("POP_EXCEPT outside a handler")

    def op_CHECK_EXC_MATCH(self, state: State, _: Any) -> None:
        state.stack.append(Special("match", self.pop(state)))

    def op_BEFORE_WITH(self, state: State, _: Any) -> None:
        state.stack.extend((Exit(self.pop(state), False), Slot(Target("value"))))

    def op_BEFORE_ASYNC_WITH(self, state: State, _: Any) -> None:
        state.stack.extend((Exit(self.pop(state), True), Slot(Target("value"))))

    def op_LEAVE(self, state: State, kind: str) -> None:
        """The end of a protected body, its clean-up already taken out (see ``structure.regions``)."""
        stack = state.stack
        if kind == "with":
            for index in range(len(stack) - 1, -1, -1):
                if isinstance(stack[index], Exit):
                    del stack[index]
                    return
            raise Unliftable("the end of a with statement outside it")
        if kind == "named":
            for index in range(len(stack) - 1, -1, -1):
                if isinstance(stack[index], Caught) and stack[index].previous:
                    del stack[index]
                    return
            raise Unliftable("the end of a handler outside it")

    # --- written by ``structure.patterns`` --------------------------------------------------------
    def op_CASE(self, state: State, case: Any) -> None:
        if state.underflow >= 0:
            raise Unliftable("a pattern")  # not looked at apart from its subject
        entry = state.stack[-1] if state.stack else None
        if isinstance(entry, Subject):
            state.stack.pop()
        else:
            entry = Subject(self.pop(state))
        if case.keeps:
            state.stack.append(entry)
        state.stack.append(CaseTest(entry, self.pattern(case.pattern)))

    def pattern(self, value: Any) -> ast.pattern:
        """The pattern that a value is held against (``structure.patterns.Value``)."""
        name = None if value.store is None else self.scope.plain_name(value.store.arg)
        if len(value.copies) > 1:
            made: Any = ast.MatchOr([self.pattern(copy) for copy in value.copies])
        elif value.copies:
            made = self.pattern(value.copies[0])
        elif value.kind is None:
            return ast.MatchAs(None, name)
        elif value.kind == "value":
            made = ast.MatchValue(self.alone(value.what))
        elif value.kind == "singleton":
            made = ast.MatchSingleton(value.what)
        elif value.kind == "sequence":
            made = ast.MatchSequence(self.sequence(value))
        elif value.kind == "mapping":
            parts = self.parts(value, range(len(value.what)))
            rest = value.rest.store.arg if value.rest is not None else None
            made = ast.MatchMapping([self.alone(key) for key in value.what], parts,
                                    None if rest is None else self.scope.plain_name(rest))
        else:
            parts = self.parts(value, range(value.length + len(value.names)))
            split = value.length
            made = ast.MatchClass(self.alone(value.what), parts[:split], list(value.names), parts[split:])
        return made if name is None else ast.MatchAs(made, name)

    def sequence(self, value: Any) -> list[ast.pattern]:
        if value.star is None:
            return self.parts(value, range(value.length))
        if value.star >= 0:
            made: list[ast.pattern] = []
            for index in range(value.length + 1):
                part = self.pattern(value.parts[index])
                if index == value.star:
                    part = ast.MatchStar(part.name)  # type: ignore[attr-defined]
                made.append(part)
            return made
        # ``[a, *_, b]``: parts are looked up by index, what is between is not looked at
        after = -min([0, *value.parts])
        before = max(value.length - after, 0)
        return [*self.parts(value, range(before)), ast.MatchStar(), *self.parts(value, range(-after, 0))]

    def parts(self, value: Any, places: range) -> list[ast.pattern]:
        """Patterns of parts; those that nobody looks at are ``_``."""
        return [self.pattern(value.parts[i]) if i in value.parts else ast.MatchAs() for i in places]

    def alone(self, ops: list[Op]) -> ast.expr:
        """The expression that operations make by themselves."""
        state = State()
        self.run(state, ops)
        return self.pop(state)

    # --- written by ``structure.reduce`` ----------------------------------------------------------
    def op_EXPR(self, state: State, node: ast.expr) -> None:
        self.push(state, node)

    def fold_bool(self, state: State, op: ast.boolop, left: ast.expr, right: ast.expr) -> ast.BoolOp:
        values = [left, right]
        if isinstance(right, ast.BoolOp) and type(right.op) is type(op):
            values = [left, *right.values]
        if isinstance(left, ast.BoolOp) and type(left.op) is type(op) and getattr(left, "folded", False):
            values = left.values + values[1:]
        node = ast.BoolOp(op, values)
        node.folded = True  # type: ignore[attr-defined]
        self.push(state, node)
        return node

    def op_AND(self, state: State, right: ast.expr) -> None:
        self.fold_bool(state, ast.And(), self.pop(state), right)

    def op_OR(self, state: State, right: ast.expr) -> None:
        self.fold_bool(state, ast.Or(), self.pop(state), right)

    def value_bool(self, state: State, op: ast.boolop, right: ast.expr) -> None:
        """A value whose ways have met: ``x = a or b``."""
        left = self.pop(state)
        if hasattr(left, "met"):
            left.folded = False  # type: ignore[attr-defined]  # it is tested once more
            self.scope.begins_a_line(left)
        self.fold_bool(state, op, left, right).met = type(op)  # type: ignore[attr-defined]

    def op_VALUE_AND(self, state: State, right: ast.expr) -> None:
        self.value_bool(state, ast.And(), right)

    def op_VALUE_OR(self, state: State, right: ast.expr) -> None:
        self.value_bool(state, ast.Or(), right)

    def op_NOT_AND(self, state: State, right: ast.expr) -> None:
        self.fold_bool(state, ast.And(), negate(self.pop(state)), right)

    def op_NOT_OR(self, state: State, right: ast.expr) -> None:
        self.fold_bool(state, ast.Or(), negate(self.pop(state)), right)

    def op_IFEXP(self, state: State, arms: tuple[ast.expr, ast.expr]) -> None:
        self.push(state, ast.IfExp(self.pop(state), arms[0], arms[1]))

    def op_CHAIN(self, state: State, rest: ast.Compare) -> None:
        first = state.pop()
        kept = state.pop()
        if isinstance(first, Shared):
            first = first.value
        if not isinstance(first, ast.Compare) or not same_shared(first.comparators[-1], kept):
            raise Unliftable("not a chained comparison")
        last = self.unshare(first.comparators[-1])
        self.push(
            state,
            ast.Compare(first.left, first.ops + rest.ops, [*first.comparators[:-1], last, *rest.comparators]),
        )

    def op_COMPREHENSION(self, state: State, make: Callable[[Any], ast.expr]) -> None:
        iterable = state.pop()
        state.pop()
        self.push(state, make(iterable))


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp)


def _is_null(stack: list[Any]) -> bool:
    """Whether what an inlined comprehension has to restore lies on top."""
    return bool(stack) and isinstance(stack[-1], Special) and stack[-1].kind == "null"


#: What ``optimize_format`` in ast_opt.c (3.11) understands in a ``%`` format.
_FORMAT = re.compile(r"(?:[^%]|%%|%-?\d{0,3}(?:\.\d{0,3})?[sra])*")


def would_be_formatted(left: ast.expr, right: ast.expr) -> bool:
    """Whether the compiler makes ``"%s" % (x,)`` an f-string. (It leaves an f-string without fields as it is.)"""
    return (
        isinstance(left, ast.Constant) and isinstance(left.value, str) and isinstance(right, ast.Tuple)
        and not hasattr(right, "folded") and not any(isinstance(item, ast.Starred) for item in right.elts)
        and _FORMAT.fullmatch(left.value) is not None
        and left.value.replace("%%", "").count("%") == len(right.elts)
    )


def has_star(node: ast.Tuple | ast.Set) -> bool:
    return any(isinstance(e, ast.Starred) for e in node.elts)


def same_shared(a: Any, b: Any) -> bool:
    return a is b or (isinstance(a, Shared) and isinstance(b, Shared) and a.value is b.value)


def negate(node: ast.expr) -> ast.expr:
    """``not node``; a double negation is taken away."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    return ast.UnaryOp(ast.Not(), node)


#: What the machine does for each kind of operation.
_OPERATIONS: dict[str, Callable[[Machine, State, Any], None]] = {
    name[3:]: method for name, method in vars(Machine).items() if name.startswith("op_")
}
