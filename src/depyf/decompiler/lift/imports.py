"""Import statements."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...bytecode import operations as o
from ..errors import LIFT, CannotDecompile
from ..rules import registrar
from .rule import Rule
from .stack import ImportedModule, ImportedName, Special, State, is_none

if TYPE_CHECKING:
    from .executor import SymbolicExecutor

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


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
def import_star(executor: SymbolicExecutor, state: State, _: Any) -> None:
    """Write ``from module import *``."""
    module = state.pop()
    if not isinstance(module, ImportedModule):
        raise CannotDecompile(LIFT, "import * of something else")
    executor.emit(state, ast.ImportFrom(module.name or None, [ast.alias("*", None)], module.level))


def finish_import(executor: SymbolicExecutor, state: State, module: ImportedModule) -> None:
    """Write the import of a module that is dropped."""
    if module.statement is not None:
        executor.emit(state, module.statement)
        return
    if not module.bound:
        top = state.stack[-1] if state.stack else None
        if isinstance(top, ImportedName) and top.module is module:
            return
        raise CannotDecompile(LIFT, "an import that binds nothing")
    names = [ast.alias(name, shown) for name, shown in module.bound]
    executor.emit(state, ast.ImportFrom(module.name or None, names, module.level))


def store_import(executor: SymbolicExecutor, state: State, target: ast.expr, entry: Special) -> bool:
    """Write the import that a store of a module, or of a name of one, belongs to; return whether it is an import."""
    if not isinstance(target, ast.Name):
        return False
    if isinstance(entry, ImportedModule):
        if not is_none(entry.names) or entry.level:
            return False
        top = entry.name.partition(".")[0]
        executor.emit(state, ast.Import([ast.alias(entry.name, None if top == target.id else target.id)]))
        return True
    return isinstance(entry, ImportedName) and _store_name(executor, state, target.id, entry)


def _store_name(executor: SymbolicExecutor, state: State, shown: str, entry: ImportedName) -> bool:
    """Write or note ``from module import name``, or ``import a.b as c``; return whether it is one of them."""
    path = [entry.name]
    module = entry.module
    while isinstance(module, ImportedName):
        path.append(module.name)
        module = module.module
    below = state.stack[-1] if state.stack else None
    is_whole = is_none(module.names) and module.name.split(".")[1:] == path[::-1]
    if below is module and is_whole:
        # the store has changed places with the POP of the module
        module.statement = ast.Import([ast.alias(module.name, shown)])
    elif below is module and len(path) == 1:
        module.bound.append((entry.name, None if executor.scope.plain_name(entry.name) == shown else shown))
    elif is_whole:
        # ``import a.b.c as d``: IMPORT_FROM b; SWAP 2; POP; IMPORT_FROM c; STORE d; POP
        executor.emit(state, ast.Import([ast.alias(module.name, shown)]))
    else:
        return False
    return True
