"""Declarations of variables: ``global``, ``nonlocal``, and statements that the compiler drops but counts.

The compiler decides for the whole of a body which variables are local, global, or cells (symtable.c). A text in which
a variable lost all its uses needs one more, where nothing runs.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from ..bytecode import operations as o
from ..bytecode.canonical import canonicalise
from ..bytecode.code import CO_ASYNC_GENERATOR, CO_GENERATOR, Code
from ..bytecode.operations import Op, Program
from ..cfg.graph import build
from . import annotations as deferred
from .generics import HIDDEN
from .lift.stack import LOAD, STORE
from .names import is_name
from .result import Tier, codes_in, inside, lazy
from .structure.comprehensions import BUILDS, NO_ARGUMENTS

if TYPE_CHECKING:
    from .scopes import CodeScope

_READS_CELL = frozenset({"LOAD_DEREF", "LOAD_CLOSURE", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
#: The kinds of operations that :class:`_Uses` counts.
_USES = frozenset({
    "LOAD_FAST", "LOAD_CLOSURE", "LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF",
    "STORE_FAST", "DELETE_FAST", "MAKE_CELL", "YIELD", "YIELD_FROM",
})
#: of classes, and of 3.14's modules
_CELLS_OF_THE_COMPILER = frozenset({"__class__", "__classdict__", deferred.CONDITIONAL})


class _Uses:
    """Uses of variables by operations.

    Attributes:
        loaded: names that are looked up as globals.
        globals, nonlocals: names of variables outside that are bound here.
        stored: locals and cells that are bound.
        used: locals and cells that are read, and the cells that the code makes.
        own: variables of an inlined comprehension, which has a cell of its own for them while it runs (3.12+).
        yields: whether there is a ``yield``.
    """

    def __init__(self, code: Code, shown: Iterable[Op]) -> None:
        self.loaded: dict[str, None] = {}
        self.globals: dict[str, None] = {}
        self.nonlocals: dict[str, None] = {}
        self.stored: set[str] = set()
        self.used: set[str] = set(code.cellvars)
        self.own: set[str] = set()
        self.yields = False
        for op in [op for op in shown if op.kind in _USES]:
            kind = op.kind
            if kind == "LOAD_FAST" or kind == "LOAD_CLOSURE":
                self.used.add(op.arg)
            elif kind == "LOAD_GLOBAL":
                self.loaded[op.arg] = None
            elif kind == "STORE_GLOBAL" or kind == "DELETE_GLOBAL":
                self.globals[op.arg] = None
            elif kind == "STORE_DEREF" or kind == "DELETE_DEREF":
                self.stored.add(op.arg)
                if op.arg in code.freevars and op.arg not in self.own:
                    self.nonlocals[op.arg] = None
            elif kind == "STORE_FAST" or kind == "DELETE_FAST":
                self.stored.add(op.arg)
                self.own.discard(op.arg)
            elif kind == "MAKE_CELL":
                self.own.add(op.arg)
            elif kind in ("YIELD", "YIELD_FROM"):
                self.yields = True


def declarations(scope: CodeScope) -> list[ast.stmt]:
    """Return the declarations at the beginning of a scope's body."""
    code = scope.code
    program = scope.program if scope.program is not None else canonicalise(code)
    graph = scope.options.graph(code)
    shown = program.ops if graph is None else [op for block in graph.blocks.values() for op in block.ops]
    uses = _Uses(code, shown)
    unread = _unread(code, program, uses)
    uses.globals.update(_declared_global(scope, program, shown, uses.loaded))
    if scope.kind == "function" and code.holds_code:
        for op in _bound_by_comprehensions(shown):
            if op.kind == "STORE_GLOBAL":
                uses.globals[op.arg] = None
            elif op.arg in code.freevars and op.arg not in uses.own:
                uses.nonlocals[op.arg] = None
    out: list[ast.stmt] = []
    if scope.kind == "module" and uses.globals:
        for name in _declared_inside(scope, uses.globals):
            del uses.globals[name]
    # (the others go through ``globals()``)
    if uses.globals and (declared := [scope.plain_name(n) for n in uses.globals if is_name(n)]):
        out.append(ast.Global(declared))
    if uses.nonlocals:
        out.append(ast.Nonlocal([scope.plain_name(n) for n in uses.nonlocals]))
    dead = [] if scope.options.is_readable(code) else _dead(scope, program, shown, uses, unread)
    if scope.annotates and code.cellvars:
        dead += _cells_of_comprehensions(scope, program)
    if dead:
        # names, what captured them, or a yield, whose only statement the compiler has dropped
        out.append(ast.If(ast.Constant(False), dead, []))
    return out


def _unread(code: Code, program: Program, uses: _Uses) -> list[str]:
    """Return the variables from outside of which the compiler has dropped every use."""
    if not code.freevars:
        return []
    read = {op.arg for op in program.ops if op.kind in _READS_CELL}
    # (no ``nonlocal``: it could be a type parameter)
    unread = [n for n in code.freevars if n not in read and n not in uses.nonlocals and n.isidentifier()]
    if "__class__" in unread and any(op.arg == "super" and op.kind.startswith("LOAD_") for op in program.ops):
        unread.remove("__class__")  # ``super`` alone makes it a free variable
    return unread


def _dead(
    scope: CodeScope, program: Program, shown: Sequence[Op], uses: _Uses, unread: Sequence[str]
) -> list[ast.stmt]:
    """Return statements for what the compiler counted, and dropped."""
    dead: list[ast.stmt] = [ast.Expr(ast.Name(scope.plain_name(n), LOAD)) for n in unread]
    if scope.kind == "function":
        dead += _lost_in_function(scope, shown, uses) + _dead_closures(scope, shown)
        if scope.code.flags & (CO_GENERATOR | CO_ASYNC_GENERATOR) and not uses.yields:
            dead.append(ast.Expr(ast.Yield(None)))
    elif scope.kind == "class":
        dead += _own_in_class(scope, program)
    return dead


def _declared_global(
    scope: CodeScope, program: Program, shown: Sequence[Op], loaded: Iterable[str]
) -> dict[str, None]:
    """Return names that are read as globals, and would not be without a declaration."""
    if scope.kind == "class":
        names: Iterable[str] = loaded
        if any(op.kind == "LOAD_FAST_AND_CLEAR" for op in shown):
            # (Code in an inlined comprehension of a class belongs to a function.)
            bound = {op.arg for op in program.ops if op.kind == "STORE_NAME"}
            names = [n for n in loaded if n not in bound and _enclosing_local(scope, n)]
        return dict.fromkeys([*names, *_declared_for_annotations(scope.code)])
    if scope.kind == "module":
        return dict.fromkeys(loaded)  # names there are looked up in the namespace first
    if scope.parent is None:
        return {}
    return dict.fromkeys(n for n in loaded if _enclosing_local(scope, n))


def _declared_inside(scope: CodeScope, names: Container[str]) -> set[str]:
    """Return names that functions in a module declare as global, which makes them global in all of it (symtable.c)."""
    return {op.arg for code in inside(scope.code) if scope.options.tiers.of(code) is not Tier.DISPATCH
            and any(name in names for name in code.names) for op in canonicalise(code).ops
            if op.kind in (o.STORE_GLOBAL, o.DELETE_GLOBAL) and op.arg in names}


def _lost_in_function(scope: CodeScope, shown: Sequence[Op], uses: _Uses) -> list[ast.stmt]:
    """Return bindings for locals whose own ones the compiler has dropped."""
    code = scope.code
    lost = uses.used.difference(uses.stored, code.arguments, code.freevars, ("__class__",))
    if not lost:
        return []
    # (A comprehension that is written as a dispatch loop is a function, whose ``nonlocal`` needs a binding here.)
    lost = lost.difference(op.arg for op in _bound_by_comprehensions(shown, scope))
    return [
        ast.Assign([ast.Name(scope.plain_name(n), STORE)], ast.Constant(None))
        for n in dict.fromkeys((*code.varnames, *code.cellvars)) if n in lost and n.isidentifier()
    ]


def _own_in_class(scope: CodeScope, program: Program) -> list[ast.stmt]:
    """Return bindings for names that a class looks up as its own, though a function around it has such a variable."""
    reached = [op for block in build(program).blocks.values() for op in block.ops]
    bound = {op.arg for op in reached if op.kind in ("STORE_NAME", "DELETE_NAME")}
    own_names = dict.fromkeys(op.arg for op in program.ops if op.kind == "LOAD_NAME")
    return [ast.Assign([ast.Name(scope.plain_name(n), STORE)], ast.Constant(None)) for n in own_names
            if n not in bound and _enclosing_local(scope, n)]


def _cells_of_comprehensions(scope: CodeScope, program: Program) -> list[ast.stmt]:
    """Return statements that make the cells which inlined comprehensions left in a class or module (3.12 on)."""
    code = scope.code
    have_cells = {op.arg for op in program.ops if op.kind in ("MAKE_CELL", "LOAD_CLOSURE")}
    by_name = {op.arg for op in program.ops if op.kind in ("LOAD_NAME", "STORE_NAME", "DELETE_NAME")}
    cells = [n for n in code.cellvars if n not in have_cells and n.isidentifier() and n not in _CELLS_OF_THE_COMPILER]
    return [
        # (a variable of the body too, unless it is found to be the cell first)
        *(ast.Expr(ast.Name(scope.plain_name(n), LOAD)) for n in cells if n in by_name),
        *(ast.Expr(ast.ListComp(ast.Lambda(NO_ARGUMENTS, ast.Name(scope.plain_name(n), LOAD)), [
            ast.comprehension(ast.Name(scope.plain_name(n), STORE), ast.Tuple([], LOAD), [], 0)])) for n in cells),
    ]


def _declared_for_annotations(code: Code) -> Iterator[str]:
    """Yield names that scopes of type parameters, bounds and aliases in a class read as globals.

    Such a scope sees the names of the class, unless they are declared there (``analyze_name`` in symtable.c).
    """
    pending = [held for held in codes_in(code) if held.name.startswith(HIDDEN)] + lazy(code)
    while pending:
        current = pending.pop()
        pending += lazy(current)
        yield from (op.arg for op in canonicalise(current).ops if op.kind == "LOAD_GLOBAL")


def _dead_closures(scope: CodeScope, shown: Sequence[Op]) -> list[ast.stmt]:
    """Return closures over cells that no function shares: the compiler dropped the functions that did."""
    if not Tier.SIMPLIFIED_SPILLED < scope.options.tiers.of(scope.code) < Tier.DISPATCH:
        return []
    if not scope.code.cellvars:
        return []
    captured = {name for op in shown if type(op.arg) is Code for name in op.arg.freevars}
    return [
        ast.Expr(ast.Lambda(NO_ARGUMENTS, ast.Name(scope.plain_name(name), LOAD)))
        for name in scope.code.cellvars if name not in captured and name.isidentifier()
    ]


def _enclosing_local(scope: CodeScope, name: str) -> bool:
    enclosing = scope.parent
    while enclosing is not None:
        if enclosing.kind in ("function", "lambda"):
            code = enclosing.code
            if name in code.varnames or name in code.cellvars or name in code.freevars:
                return True
        enclosing = enclosing.parent
    return False


def _bound_by_comprehensions(ops: Sequence[Op], natural_in: CodeScope | None = None) -> Iterator[Op]:
    """Yield stores of comprehensions (by walrus) to variables outside of them.

    Args:
        ops: of the code that has the comprehensions.
        natural_in: leave out those that this scope writes as dispatch loops.
    """
    for op in ops:
        if type(op.arg) is Code and op.arg.name in BUILDS and not (
                natural_in is not None and natural_in.options.tiers.of(op.arg) is Tier.DISPATCH):
            inside = canonicalise(op.arg).ops
            yield from (store for store in inside if store.kind == "STORE_GLOBAL"
                        or store.kind == "STORE_DEREF" and store.arg in op.arg.freevars)
            yield from _bound_by_comprehensions(inside, natural_in)
