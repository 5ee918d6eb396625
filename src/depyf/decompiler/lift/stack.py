"""The symbolic stack, and its entries.

An entry is either an expression that has been evaluated at that point of the program, or one of the markers below
for values that have no spelling of their own (an iterator, the exit of a ``with``, a value on its way into a target).
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeGuard

from ..annotations import TypeParameter
from ..errors import LIFT, CannotDecompile
from ..nodes import LiteralConstant

if TYPE_CHECKING:
    from ...bytecode.code import Code
    from ..scopes import CodeScope
    from .executor import SymbolicExecutor

LOAD = ast.Load()
STORE = ast.Store()
DEL = ast.Del()
#: Expressions that anything may use, as they are: most of the entries of a stack.
AS_THEY_ARE = frozenset({
    ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp, ast.Compare, ast.Constant, LiteralConstant})
#: Those that are inlined from 3.12 on.
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp)


class Marker:
    """A value that has no spelling of its own."""

    __slots__ = ()


@dataclass(eq=False, repr=False)
class StackParameter(ast.expr):
    """A value from below the block's own stack (only while a block is executed separately)."""

    depth: int


@dataclass(eq=False, slots=True)
class Duplicate(Marker):
    """A value with more than one copy on the stack."""

    value: Value


@dataclass(eq=False, slots=True)
class Iter(Marker):
    """The iterator that ``GET_ITER`` (or ``GET_AITER``) leaves."""

    value: ast.expr
    asynchronous: bool = False


@dataclass(eq=False, slots=True)
class PendingTarget(Marker):
    """A value on its way into a target: element ``index`` of ``owner``."""

    owner: Target | Unpack
    index: int = 0


@dataclass(eq=False, slots=True)
class Target:
    """A receiver of the target of a ``for`` or of ``with ... as``."""

    prefix: str = "item"
    target: ast.expr | None = None

    def fill(self, executor: SymbolicExecutor, state: State, index: int, target: ast.expr | None) -> None:
        """Set the target."""
        self.target = target


class Unpack:
    """An unpacking whose targets are still being stored; ``offset`` is that of its operation."""

    __slots__ = ("missing", "offset", "source", "star", "targets")

    def __init__(self, source: Entry, count: int, star: int | None, offset: int) -> None:
        self.source, self.offset = source, offset
        self.targets: list[ast.expr | None] = [None] * count
        self.missing = count
        self.star = star

    def fill(self, executor: SymbolicExecutor, state: State, index: int, target: ast.expr | None) -> None:
        """Set target ``index``, and store the whole unpacking when that was the last."""
        self.targets[index] = target
        self.missing -= 1
        if not self.missing:
            name: ast.expr | None = None
            elements: list[ast.expr] = []
            is_inner = isinstance(self.source, PendingTarget) and isinstance(self.source.owner, Unpack)
            for at, element in reversed([*enumerate(self.targets)]):
                # (3.13 drops a value whose variable gets another one at once: ``a, (b, _), _ = c``.)
                dropped = element or ast.Name("", STORE)
                if isinstance(name, ast.Name):
                    _name_dropped(dropped, name.id)
                elif not is_inner and _name_dropped(dropped, ""):
                    raise CannotDecompile(LIFT, "an unpacked value is dropped")
                name = dropped
                elements.append(ast.Starred(dropped, STORE) if at == self.star else dropped)
            target = ast.Tuple(elements[::-1], STORE)
            target.end_col_offset = self.offset
            executor.store_value(state, target, self.source)


def _name_dropped(target: ast.expr, name: str) -> bool:
    """Give the dropped variables that a target ends in a name; return whether it ends in one."""
    if isinstance(target, ast.Starred):
        return _name_dropped(target.value, name)
    if isinstance(target, ast.Tuple):
        ends = [*itertools.takewhile(lambda each: _name_dropped(each, name), reversed(target.elts))]
        return bool(ends)
    if not isinstance(target, ast.Name) or target.id:
        return False
    target.id = name
    return True


@dataclass(eq=False, slots=True)
class Assigning(Marker):
    """``COPY 1; STORE a``: the start of ``a = b = value``, or a walrus."""

    targets: list[ast.expr]
    value: Value


@dataclass(eq=False, slots=True)
class Exit(Marker):
    """The exit of a ``with`` statement."""

    manager: ast.expr
    asynchronous: bool


@dataclass(eq=False, slots=True)
class Caught(Marker):
    """The exception a handler is given; ``previous``: the one below it, restored by ``POP_EXCEPT``."""

    previous: bool


@dataclass(eq=False, slots=True)
class Subject(Marker):
    """The subject of a ``match`` statement, while its cases are tried."""

    value: ast.expr


@dataclass(eq=False, repr=False)
class CaseTest(ast.expr):
    """A test whether the subject matches, as the condition of an ``if`` that becomes a ``match``."""

    subject: Subject
    pattern: ast.pattern
    never: bool  # its guard was decided


@dataclass(eq=False, repr=False)
class Capture(ast.stmt):
    """``case name:`` until :func:`~depyf.decompiler.undo.match_patterns.cases` makes it one."""

    subject: Subject
    name: str


@dataclass(eq=False, slots=True)
class Special(Marker):
    """Any other value the compiler keeps on the stack: ``lasti``, ``match`` (``CHECK_EXC_MATCH``), ``null``."""

    kind: str
    value: Any = None


@dataclass(eq=False, slots=True)
class ImportedModule(Special):
    """The module that ``IMPORT_NAME`` leaves, with the names bound from it, and its statement, if known."""

    kind: str = field(default="import", init=False)
    value: Any = field(default=None, init=False)
    name: str
    level: int
    names: ast.expr
    bound: list[tuple[str, str | None]] = field(default_factory=list)
    statement: ast.stmt | None = None


@dataclass(eq=False, slots=True)
class ImportedName(Special):
    """The value of a name that ``IMPORT_FROM`` leaves: of a module, or of another such value."""

    kind: str = field(default="from", init=False)
    value: Any = field(default=None, init=False)
    module: ImportedModule | ImportedName
    name: str


@dataclass(eq=False, repr=False)
class Augmented(ast.expr):
    """``left op= right`` before it is stored."""

    left: Entry
    op: str
    right: ast.expr


@dataclass(eq=False, repr=False)
class FunctionExpr(ast.expr):
    """A function that has been made but not yet named (``def``, decorators, class bodies)."""

    code: Code
    arguments: dict[str, ast.expr]
    type_parameters: list[TypeParameter] = field(default_factory=list)
    #: the scope of the type parameters, if it has any
    scope: CodeScope | None = None


@dataclass(eq=False, repr=False)
class ClassExpr(ast.expr):
    """A class that has been made but not yet named."""

    node: ast.ClassDef
    code: Code
    type_parameters: list[TypeParameter]


@dataclass(eq=False, repr=False)
class Accumulator(ast.expr):
    """The list, set or dict a comprehension fills, with the elements (one), or the keys and values, that it gets."""

    kind: str
    elts: list[ast.expr] = field(default_factory=list)
    keys: list[ast.expr] = field(default_factory=list)
    values: list[ast.expr] = field(default_factory=list)

    @property
    def element(self) -> Element | None:
        """What it gets; ``None`` before."""
        return (self.keys[-1], self.values[-1]) if self.keys else self.elts[-1] if self.elts else None


#: A value that the program evaluated.
Value = ast.expr | Assigning | Subject
#: The entries.
Entry = ast.expr | Assigning | Duplicate | Iter | PendingTarget | Exit | Caught | Subject | Special
#: The element of a comprehension: an expression, or a key and a value.
Element = ast.expr | tuple[ast.expr, ast.expr]


@dataclass(eq=False, slots=True)
class State:
    """The stack, and the statements written so far."""

    stack: list[Entry] = field(default_factory=list)
    #: missing entries of the stack are parameters of the block; how many there are
    parameters: bool = False
    underflow: int = 0
    stmts: list[ast.stmt] = field(default_factory=list)
    queue: list[tuple[ast.expr, ast.expr | Assigning]] = field(default_factory=list)
    queued: set[int] = field(default_factory=set)

    def pop(self) -> Entry:
        """Pop the top entry; below the block's own stack, a new stack parameter if those are allowed."""
        if self.stack:
            return self.stack.pop()
        if not self.parameters:
            raise CannotDecompile(LIFT, "the stack is empty")
        self.underflow += 1
        return StackParameter(self.underflow)

    def need(self, count: int) -> None:
        """Make the stack at least ``count`` deep, with stack parameters at its bottom if those are allowed."""
        while len(self.stack) < count:
            if not self.parameters:
                raise CannotDecompile(LIFT, "the stack is too short")
            self.underflow += 1
            self.stack.insert(0, StackParameter(self.underflow))


def is_value(entry: Entry) -> bool:
    """Return whether a stack entry is a value of the program (not a marker of the compiler)."""
    return isinstance(entry, (ast.expr, Assigning, Duplicate)) and not isinstance(entry, (StackParameter, Accumulator))


def values(stack: list[Entry]) -> int:
    """Return the number of values of the program (not of the compiler) on a stack."""
    return sum(map(is_value, stack))


def is_none(node: object) -> bool:
    """Return whether a node is the constant ``None``."""
    return isinstance(node, ast.Constant) and node.value is None


# --- The type of a rule: a function that does one operation on the symbolic stack --------------------
#: Does one operation: the executor, the stack, and the operation's argument. It returns the expression that is to be
#: pushed; ``None`` where there is none, or where what it pushed itself is no expression.
Rule = Callable[["SymbolicExecutor", "State", Any], "ast.expr | None"]


# --- Copies of one value: which expressions are the same, and one expression where there were two ----
def same_node(a: Any, b: Any) -> bool:
    """Return whether two expressions are the same (duplicates of one value included)."""
    a, b = (each.value if isinstance(each, Duplicate) else each for each in (a, b))
    return a is b or type(a) is type(b) and isinstance(a, ast.AST) and ast.dump(a) == ast.dump(b)


def same_duplicate(a: Any, b: Any) -> bool:
    """Return whether two entries are the same one, or duplicates of one value."""
    return a is b or (isinstance(a, Duplicate) and isinstance(b, Duplicate) and a.value is b.value)


def same_target(target: ast.expr, left: Entry) -> TypeGuard[ast.Name | ast.Attribute | ast.Subscript]:
    """Return whether ``target``, which is stored to, is the place that ``left`` was read from."""
    match target, left:
        case ast.Name(name), ast.Name(other):
            return name == other
        case ast.Attribute(owner, name), ast.Attribute(of, other):
            return name == other and same_node(owner, of)
        case ast.Subscript(owner, index), ast.Subscript(of, other):
            return same_node(owner, of) and same_node(index, other)
    return False


def operand(executor: SymbolicExecutor, entry: Entry) -> Any:
    """Return the expression of an operand; a duplicate as it is, as it may belong to ``a.b += c``."""
    if entry.__class__ in AS_THEY_ARE or isinstance(entry, Duplicate):
        return entry
    return executor.resolve(entry)


def walrus(assigned: Assigning, value: ast.expr) -> ast.expr:
    """Return an assignment inside an expression, of a value, which may be to variables."""
    for target in assigned.targets:
        if not isinstance(target, ast.Name):
            raise CannotDecompile(LIFT, "an assignment inside an expression")
        value = ast.NamedExpr(target, value)
    return value


def deduplicated(node: Any) -> Any:
    """Return an expression with each duplicate in it replaced by its value, in place."""
    if isinstance(node, Duplicate):
        return deduplicated(node.value)
    if isinstance(node, Assigning):  # a walrus, of whose value there are copies
        return walrus(node, deduplicated(node.value))
    if isinstance(node, ast.Attribute):
        node.value = deduplicated(node.value)
    elif isinstance(node, ast.Subscript):
        node.value = deduplicated(node.value)
        node.slice = deduplicated(node.slice)
    elif isinstance(node, ast.Slice):
        node.lower, node.upper, node.step = (
            deduplicated(part) for part in (node.lower, node.upper, node.step)
        )
    return node
