"""A body as a person writes it: without what the compiler puts at its beginning and its end.

Names and cells of a class and the stores of annotations go; docstrings, ``from __future__`` and declarations
(``global``, ``nonlocal``, statements that the compiler drops but counts) take their places.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeGuard

from ..bytecode import operations as o
from ..bytecode.canonical import canonicalise
from ..bytecode.code import CO_ASYNC_GENERATOR, CO_GENERATOR, Code
from ..bytecode.operations import Op, Program
from ..cfg.graph import build
from . import annotations as deferred
from .annotations import HIDDEN
from .lift.stack import LOAD, STORE
from .names import is_name
from .nodes import AnnotateDefinition
from .result import Tier, codes_in, inside, lazy
from .structure.analysis import RegionCfg
from .structure.comprehensions import BUILDS, NO_ARGUMENTS
from .structure.evidence import Evidence
from .structure.search import Search

if TYPE_CHECKING:
    from .lift.executor import SymbolicExecutor
    from .scopes import CodeScope
    from .structure.fold_expressions import Reducer


_CELLS_OF_ANNOTATIONS = frozenset({"__classdict__", deferred.CONDITIONAL})


@dataclass
class Unfinished:
    """The statements of a body, with those that the compiler added; the passes change them."""

    scope: CodeScope
    statements: list[ast.stmt]


def drop_annotation_stores(body: Unfinished) -> None:
    """Drop the statements by which 3.14 stores annotations."""
    if body.scope.annotates and body.scope.code.version >= (3, 14):
        named = [(stmt, *deferred.assignment(stmt)) for stmt in body.statements]
        body.statements = [stmt for stmt, name, value in named if not isinstance(stmt, AnnotateDefinition) and not (
            name == deferred.CONDITIONAL and isinstance(value, ast.Set) and not value.elts)]  # (no source says that)


def strip_preamble(body: Unfinished) -> None:
    """Drop the names and cells that the compiler stores in a class; make an expression of the docstring's store."""
    statements = body.statements
    if body.scope.kind == "class":
        body.statements = _class_body(body.scope, statements)
    elif body.scope.kind == "module" and statements:
        name, value = deferred.assignment(statements[0])
        if name == "__doc__" and _is_text(value):
            statements[0] = ast.Expr(value)


def place_annotations(body: Unfinished) -> None:
    """Put annotations that 3.14 keeps in a function of their own back in their places."""
    scope = body.scope
    if scope.annotate is not None:
        body.statements = deferred.placed(body.statements, scope.annotations, scope.plain_name)


def declare(body: Unfinished) -> None:
    """Put the docstring and the declarations at the beginning, after the docstring and future imports of a module."""
    scope, statements = body.scope, body.statements
    head: list[ast.stmt] = []
    docstring = scope.code.docstring if scope.kind == "function" else None
    if docstring is not None and not scope.options.is_readable(scope.code):
        head.append(ast.Expr(ast.Constant(docstring)))
    head += declarations(scope) + _dead_annotation(scope, statements)
    at = 0
    if scope.kind in ("class", "module"):
        while at < len(statements):
            match statements[at]:
                case ast.Expr(ast.Constant()) | ast.ImportFrom(module="__future__"):
                    at += 1
                case _:
                    break
    statements[at:at] = head


def _class_body(scope: CodeScope, body: list[ast.stmt]) -> list[ast.stmt]:
    if body and isinstance(body[-1], ast.Return):
        body.pop()
    out: list[ast.stmt] = []
    started = False
    own = {"__module__", "__qualname__"}  # the compiler stores them first; later ones are the user's
    for index, stmt in enumerate(body):
        name, value = deferred.assignment(stmt)
        if index < 3 and name in own:
            own.remove(name)
        elif name == "__doc__" and index < 5 and not started and _is_text(value):
            out.append(ast.Expr(value))
            started = True
        elif not _stored_by_compiler(scope.code, name, value, index, index >= len(body) - 2):
            out.append(stmt)
            started = True
    return out


def _is_text(value: ast.expr | None) -> TypeGuard[ast.Constant]:
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _stored_by_compiler(code: Code, name: str, value: ast.expr | None, index: int, is_last: bool) -> bool:
    """Return whether the compiler added ``name = value`` at an index of a class body, or as one of the last two."""
    if name == "__type_params__":
        return isinstance(value, ast.Name) and value.id == ".type_params"
    if name == "__firstlineno__":
        return index < 4 and code.version >= (3, 13)
    if name == "__static_attributes__":
        return is_last and code.version >= (3, 12)
    if name == "__classdictcell__":
        return code.version >= (3, 12)
    return name == "__classcell__" and isinstance(value, ast.Name) and is_last


def _dead_annotation(scope: CodeScope, body: list[ast.stmt]) -> list[ast.stmt]:
    """Return an annotation for a body that makes ``__annotations__`` and puts nothing into it.

    (3.14 leaves the cells of these; a class with a method has such cells as well.)
    """
    if not scope.annotates:
        return []
    if scope.code.version >= (3, 14):
        captured = {name for inner in codes_in(scope.code) for name in inner.freevars}
        if not set(scope.code.cellvars) & _CELLS_OF_ANNOTATIONS - captured:
            return []
    elif scope.program is None or not any(op.kind == "SETUP_ANNOTATIONS" for op in scope.program.ops):
        return []
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        if isinstance(node, ast.AnnAssign) or is_function and scope.code.version >= (3, 14) \
                and deferred.CONDITIONAL not in scope.code.cellvars:
            return []
        if not is_function and not isinstance(node, ast.ClassDef):
            pending += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
    nothing: ast.stmt = ast.AnnAssign(ast.Name("_", STORE), ast.Constant(None), None, 0)
    if scope.code.version >= (3, 14) and deferred.CONDITIONAL not in scope.code.cellvars:
        return [nothing]
    return [ast.If(ast.Constant(False), [nothing], [])]


# --- declarations of variables ------------------------------------------------------------------------
# The compiler decides for the whole of a body which variables are local, global, or cells (symtable.c). A text in which
# a variable lost all its uses needs one more, where nothing runs.
_READS_CELL = frozenset({"LOAD_DEREF", "LOAD_CLOSURE", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
#: of classes, and of 3.14's modules
_CELLS_OF_THE_COMPILER = frozenset({"__class__", "__classdict__", deferred.CONDITIONAL})


class _Uses:
    """Uses of variables by operations.

    Attributes:
        loaded: names that are looked up as globals.
        globals, nonlocals: names of variables outside that are bound here.
        used: locals and cells that are read, and the cells that the code makes.
        own: variables of an inlined comprehension, which has a cell of its own for them while it runs (3.12+).
    """

    def __init__(self, code: Code, shown: Iterable[Op]) -> None:
        self.loaded: dict[str, None] = {}
        self.globals: dict[str, None] = {}
        self.nonlocals: dict[str, None] = {}
        self.stored: dict[str, None] = {}
        self.used: dict[str, None] = dict.fromkeys(code.cellvars)
        self.own: dict[str, None] = {}
        places = {
            "LOAD_FAST": self.used, "LOAD_CLOSURE": self.used, "LOAD_GLOBAL": self.loaded, "MAKE_CELL": self.own,
            "STORE_GLOBAL": self.globals, "DELETE_GLOBAL": self.globals,
            **dict.fromkeys(("STORE_FAST", "DELETE_FAST", "STORE_DEREF", "DELETE_DEREF"), self.stored)}
        for op in [op for op in shown if op.kind in places]:
            places[op.kind][op.arg] = None
            if op.kind in ("STORE_FAST", "DELETE_FAST"):
                self.own.pop(op.arg, None)
            elif op.kind in ("STORE_DEREF", "DELETE_DEREF") and op.arg in code.freevars and op.arg not in self.own:
                self.nonlocals[op.arg] = None


def declarations(scope: CodeScope) -> list[ast.stmt]:
    """Return the declarations at the beginning of a scope's body."""
    code = scope.code
    program = scope.program if scope.program is not None else canonicalise(code)
    graph = scope.options.graph(code)
    shown = program.ops if graph is None else [op for block in graph.blocks.values() for op in block.ops]
    uses = _Uses(code, shown)
    # Variables from outside of which the compiler dropped every use (no ``nonlocal``: it could be a type parameter).
    read = {op.arg for op in program.ops if op.kind in _READS_CELL} if code.freevars else set()
    unread = [n for n in code.freevars if n not in read and n not in uses.nonlocals and n.isidentifier()]
    if "__class__" in unread and any(op.arg == "super" and op.kind.startswith("LOAD_") for op in program.ops):
        unread.remove("__class__")  # ``super`` alone makes it a free variable
    uses.globals.update(_declared_global(scope, program, shown, uses.loaded))
    if scope.kind == "function" and code.holds_code:
        for op in _bound_by_comprehensions(shown):
            if op.kind == "STORE_GLOBAL":
                uses.globals[op.arg] = None
            elif op.arg in code.freevars and op.arg not in uses.own:
                uses.nonlocals[op.arg] = None
    if scope.kind == "module" and uses.globals:
        # (Functions in a module that declare a name as global make it global in all of the module: symtable.c.)
        inner = [each for each in inside(code) if scope.options.tiers.of(each) is not Tier.DISPATCH]
        for op in (op for each in inner if not uses.globals.keys().isdisjoint(each.names)
                   for op in canonicalise(each).ops if op.kind in (o.STORE_GLOBAL, o.DELETE_GLOBAL)):
            uses.globals.pop(op.arg, None)
    out: list[ast.stmt] = []
    # (the others go through ``globals()``)
    if uses.globals and (declared := [scope.plain_name(n) for n in uses.globals if is_name(n)]):
        out.append(ast.Global(declared))
    if uses.nonlocals:
        out.append(ast.Nonlocal([scope.plain_name(n) for n in uses.nonlocals]))
    # Names, what captured them, or a yield, whose only statement the compiler has dropped.
    dead: list[ast.stmt] = []
    if not scope.options.is_readable(code):
        dead += [ast.Expr(ast.Name(scope.plain_name(n), LOAD)) for n in unread]
        if scope.kind == "function":
            dead += _lost_in_function(scope, shown, uses) + _dead_closures(scope, shown)
            if code.flags & (CO_GENERATOR | CO_ASYNC_GENERATOR) and not any(
                    op.kind in ("YIELD", "YIELD_FROM") for op in shown):
                dead.append(ast.Expr(ast.Yield(None)))
        elif scope.kind == "class":
            # Names that it looks up as its own, though a function around it has such a variable.
            reached = [op for block in build(program).blocks.values() for op in block.ops]
            bound = {op.arg for op in reached if op.kind in ("STORE_NAME", "DELETE_NAME")}
            own = dict.fromkeys(op.arg for op in program.ops if op.kind == "LOAD_NAME")
            dead += _bound(scope, [n for n in own if n not in bound and _enclosing_local(scope, n)])
    if scope.annotates and code.cellvars:
        dead += _cells_of_comprehensions(scope, program)
    return [*out, ast.If(ast.Constant(False), dead, [])] if dead else out


def _bound(scope: CodeScope, names: Iterable[str]) -> list[ast.stmt]:
    return [ast.Assign([ast.Name(scope.plain_name(n), STORE)], ast.Constant(None)) for n in names]


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
        # Scopes of type parameters, bounds and aliases in a class see the names of the class, unless they are declared
        # there (``analyze_name`` in symtable.c).
        pending = [inner for inner in codes_in(scope.code) if inner.name.startswith(HIDDEN)] + lazy(scope.code)
        for each in pending:  # (grows on the way)
            pending += lazy(each)
            names = [*names, *(op.arg for op in canonicalise(each).ops if op.kind == "LOAD_GLOBAL")]
        return dict.fromkeys(names)
    if scope.kind == "module":
        return dict.fromkeys(loaded)  # names there are looked up in the namespace first
    if scope.parent is None:
        return {}
    return dict.fromkeys(n for n in loaded if _enclosing_local(scope, n))


def _lost_in_function(scope: CodeScope, shown: Sequence[Op], uses: _Uses) -> list[ast.stmt]:
    """Return bindings for locals whose own ones the compiler has dropped."""
    code = scope.code
    lost = set(uses.used).difference(uses.stored, code.arguments, code.freevars, ("__class__",))
    if not lost:
        return []
    # (A comprehension that is written as a dispatch loop is a function, whose ``nonlocal`` needs a binding here.)
    lost = lost.difference(op.arg for op in _bound_by_comprehensions(shown, scope))
    variables = dict.fromkeys((*code.varnames, *code.cellvars))
    return _bound(scope, [n for n in variables if n in lost and n.isidentifier()])


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


def _dead_closures(scope: CodeScope, shown: Sequence[Op]) -> list[ast.stmt]:
    """Return closures over cells that no function shares: the compiler dropped the functions that did."""
    if not scope.code.cellvars or not Tier.SIMPLIFIED < scope.options.tiers.of(scope.code) < Tier.DISPATCH:
        return []
    captured = {name for op in shown if type(op.arg) is Code for name in op.arg.freevars}
    return [
        ast.Expr(ast.Lambda(NO_ARGUMENTS, ast.Name(scope.plain_name(name), LOAD)))
        for name in scope.code.cellvars if name not in captured and name.isidentifier()
    ]


def _enclosing_local(scope: CodeScope, name: str) -> bool:
    enclosing = scope.parent
    while enclosing is not None:
        code = enclosing.code
        if enclosing.kind in ("function", "lambda") and name in (*code.varnames, *code.cellvars, *code.freevars):
            return True
        enclosing = enclosing.parent
    return False


def _bound_by_comprehensions(ops: Sequence[Op], natural_in: CodeScope | None = None) -> Iterator[Op]:
    """Yield stores of comprehensions (by walrus) to variables outside, but for dispatch loops in ``natural_in``."""
    for op in ops:
        if type(op.arg) is Code and op.arg.name in BUILDS and not (
                natural_in is not None and natural_in.options.tiers.of(op.arg) is Tier.DISPATCH):
            inside = canonicalise(op.arg).ops
            yield from (store for store in inside if store.kind == "STORE_GLOBAL"
                        or store.kind == "STORE_DEREF" and store.arg in op.arg.freevars)
            yield from _bound_by_comprehensions(inside, natural_in)


# --- a body on its way from operations to statements -------------------------------------------------
@dataclass(eq=False, slots=True)
class Body:
    """One body that is being restructured.

    Attributes:
        reducer: folds the control flow of expressions; set by that pass.
        arranged: whether its statements are arranged by the line table.
        has_patterns: whether patterns of ``match`` were found.
        search: chooses among the forms that the graph allows.
    """

    scope: CodeScope
    cfg: RegionCfg
    executor: SymbolicExecutor
    search: Search
    reducer: Reducer | None = None
    arranged: bool = True
    has_patterns: bool = False
    statements: list[ast.stmt] = field(default_factory=list)
    _facts: Evidence | None = None

    @property
    def facts(self) -> Evidence:
        """The evidence of the line table on the source text; it is read at first use."""
        if self._facts is None:
            code = self.scope.code
            self._facts = Evidence(code, self.scope.has_places, code in self.scope.options.resuming)
        return self._facts

    @property
    def evidence(self) -> Evidence | None:
        """The same, for the choice of a form; ``None`` where that is not to follow it."""
        return self.facts if self.arranged and self.scope.kind != "lambda" else None

    @property
    def is_namespace(self) -> bool:
        """True for the body of a module or class, which has no ``return``."""
        return self.scope.kind in ("module", "class")
