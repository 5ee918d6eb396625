"""Functions and classes: made, decorated, named."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...bytecode import operations as o
from ...bytecode.operations import registrar
from ..annotations import CONDITIONAL, GenericBase, with_parameters
from ..errors import LIFT, CannotDecompile
from ..names import is_name
from ..nodes import NumberedAnnotation, at_line, line_of
from .stack import STORE, ClassExpr, FunctionExpr, ImportedModule, ImportedName, Rule, Special, State, is_none

if TYPE_CHECKING:
    from .executor import SymbolicExecutor

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


def build_class(executor: SymbolicExecutor, values: list[ast.expr], keywords: list[ast.keyword]) -> ast.expr:
    """Return the class that ``__build_class__(function, name, *bases, **keywords)`` makes."""
    function, name = values[:2] if len(values) > 1 else (None, None)
    if not isinstance(function, FunctionExpr) or not isinstance(name, ast.Constant) or not isinstance(name.value, str):
        raise CannotDecompile(LIFT, "a class that is made in another way")
    parameters = [p for v in values if isinstance(v, GenericBase) for p in v.parameters]
    bases = [v for v in values[2:] if not isinstance(v, GenericBase)]
    class_node = executor.scope.class_(function, name.value, bases, keywords)
    return ClassExpr(class_node, function.code, parameters)


def new_function(executor: SymbolicExecutor, state: State, flags: int) -> FunctionExpr:
    """Pop the code of a function and what else it is made of, and return the function."""
    code = state.pop()
    arguments: dict[str, ast.expr] = {}
    for bit, key in ((8, "closure"), (16, "annotate"), (4, "annotations"), (2, "kwdefaults"), (1, "defaults")):
        if flags & bit:
            arguments[key] = executor.pop(state)
    if not (isinstance(code, Special) and code.kind == "code"):
        raise CannotDecompile(LIFT, "a function made of something else")
    return FunctionExpr(code.value, arguments)


@rule(o.MAKE_FUNCTION)
def _(executor: SymbolicExecutor, state: State, flags: int) -> ast.expr:
    expr = new_function(executor, state, flags)
    return executor.scope.lambda_(expr) if expr.code.name == "<lambda>" else expr


def definition(executor: SymbolicExecutor, name: str, value: ast.expr) -> ast.stmt | None:
    """Return the ``def`` or ``class`` if ``value`` is a (decorated) new one called ``name``, else ``None``."""
    decorators: list[ast.expr] = []
    inner = value
    while type(inner) is ast.Call and len(inner.args) == 1 and not inner.keywords:
        decorators.append(inner.func)
        inner = inner.args[0]
    if type(inner) is FunctionExpr:
        statement = executor.scope.function(inner, name, decorators)
        return statement if statement is None else with_parameters(statement, inner.type_parameters)
    if type(inner) is ClassExpr:
        if executor.scope.plain_name(inner.node.name) != executor.scope.plain_name(name):
            return None
        inner.node.decorator_list = decorators
        return with_parameters(inner.node, inner.type_parameters)
    return None


# --- ``name: annotation`` in modules and classes -----------------------------------------------------
def as_annotation(executor: SymbolicExecutor, state: State, stmt: ast.Assign) -> bool:
    """Write ``__annotations__["x"] = T`` as ``x: T``, and return whether ``stmt`` is such a store."""
    target = stmt.targets[0]
    if not (
        len(stmt.targets) == 1 and type(target) is ast.Subscript and type(target.value) is ast.Name
        and target.value.id == "__annotations__" and isinstance(target.slice, ast.Constant)
        and isinstance(target.slice.value, str) and is_name(target.slice.value)
    ):
        return False
    annotate(executor, state, executor.scope.plain_name(target.slice.value), executor.scope.annotation(stmt.value))
    return True


def annotate(
    executor: SymbolicExecutor, state: State, name: str, annotation: ast.expr, number: int | None = None
) -> None:
    """Write ``name: annotation``, with the value if that was assigned right before on the same line."""
    last = state.stmts[-1] if state.stmts else None
    value = None
    if (
        type(last) is ast.Assign and len(last.targets) == 1 and type(last.targets[0]) is ast.Name
        and last.targets[0].id == name and line_of(last) == executor.line
    ):
        value = last.value
        state.stmts.pop()
    target = ast.Name(name, STORE)
    state.stmts.append(at_line(
        ast.AnnAssign(target, annotation, value, 1) if number is None else
        NumberedAnnotation(target, annotation, value, number), executor.line))


def reached(executor: SymbolicExecutor, state: State, number: ast.expr) -> bool:
    """Replace ``__conditional_annotations__`` on the stack by annotation ``number``, written when it is popped (3.14).

    It is that of ``__conditional_annotations__.add(number)``; return whether there is such an annotation.
    """
    owner = state.stack[-1] if state.stack else None
    if not isinstance(owner, ast.Name) or owner.id != CONDITIONAL or not isinstance(number, ast.Constant):
        return False
    scope = executor.scope
    for known in scope.annotations if type(number.value) is int else ():
        if known.index == number.value:
            state.stack[-1] = Special("annotation", (scope.plain_name(known.name), known.value, known.index))
            return True
    return False


# --- Import statements -------------------------------------------------------------------------------
@rule(o.IMPORT_NAME)
def _(executor: SymbolicExecutor, state: State, name: str) -> None:
    level, names = executor.popn(state, 2)
    if not isinstance(level, ast.Constant) or type(level.value) is not int:
        raise CannotDecompile(LIFT, "an import of a level that is no number")
    state.stack.append(ImportedModule(name, level.value, names))


@rule(o.IMPORT_FROM)
def _(executor: SymbolicExecutor, state: State, name: str) -> None:
    module = state.stack[-1] if state.stack else None
    if not isinstance(module, (ImportedModule, ImportedName)):
        raise CannotDecompile(LIFT, "IMPORT_FROM of something else")
    state.stack.append(ImportedName(module, name))


@rule(o.IMPORT_STAR)
def _(executor: SymbolicExecutor, state: State, _: Any) -> None:
    module = state.pop()
    if not isinstance(module, ImportedModule):
        raise CannotDecompile(LIFT, "import * of something else")
    executor.emit(state, ast.ImportFrom(module.name or None, [ast.alias("*", None)], module.level))


def finish_import(executor: SymbolicExecutor, state: State, module: ImportedModule) -> None:
    """Write the import of a module that is dropped."""
    top = state.stack[-1] if state.stack else None
    if module.statement is not None:
        executor.emit(state, module.statement)
    elif module.bound:
        names = [ast.alias(name, shown) for name, shown in module.bound]
        executor.emit(state, ast.ImportFrom(module.name or None, names, module.level))
    elif not isinstance(top, ImportedName) or top.module is not module:
        raise CannotDecompile(LIFT, "an import that binds nothing")


def store_import(executor: SymbolicExecutor, state: State, shown: str, entry: Special) -> bool:
    """Write or note the import that a store of a module, or of a name of one, belongs to; return whether it is one."""
    if isinstance(entry, ImportedModule) and is_none(entry.names) and not entry.level:
        top = entry.name.partition(".")[0]
        executor.emit(state, ast.Import([ast.alias(entry.name, None if top == shown else shown)]))
        return True
    if not isinstance(entry, ImportedName):
        return False
    path = [entry.name]
    module = entry.module
    while isinstance(module, ImportedName):
        path.append(module.name)
        module = module.module
    below = state.stack[-1] if state.stack else None
    is_whole = is_none(module.names) and module.name.split(".")[1:] == path[::-1]
    if is_whole:
        # ``import a.b.c as d``: IMPORT_FROM b; SWAP 2; POP; IMPORT_FROM c; STORE d; POP
        statement = ast.Import([ast.alias(module.name, shown)])
        if below is module:  # the store has changed places with the POP of the module
            module.statement = statement
        else:
            executor.emit(state, statement)
    elif below is module and len(path) == 1:
        module.bound.append((entry.name, None if executor.scope.plain_name(entry.name) == shown else shown))
    else:
        return False
    return True
