"""Import statements. Changes with how they are compiled."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...bytecode import operations as o
from ..rules import registrar
from .rule import Rule
from .stack import Special, State, Unliftable, is_none

if TYPE_CHECKING:
    from .machine import Machine

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule(o.IMPORT_NAME)
def _(machine: Machine, state: State, name: str) -> None:
    level, names = machine.popn(state, 2)
    if not isinstance(level, ast.Constant) or type(level.value) is not int:
        raise Unliftable("an import of a level that is no number")
    state.stack.append(Special("import", [name, level, names, [], None]))


@rule(o.IMPORT_FROM)
def _(machine: Machine, state: State, name: str) -> None:
    module = state.stack[-1] if state.stack else None
    if isinstance(module, Special) and module.kind == "import":
        state.stack.append(Special("from", (module, name)))
    elif isinstance(module, Special) and module.kind == "from":
        state.stack.append(Special("from", (module, name)))
    else:
        raise Unliftable("IMPORT_FROM of something else")


@rule(o.IMPORT_STAR)
def import_star(machine: Machine, state: State, _: Any) -> None:
    module = state.pop()
    if not isinstance(module, Special) or module.kind != "import":
        raise Unliftable("import * of something else")
    name, level, _, _, _ = module.value
    machine.emit(state, ast.ImportFrom(name or None, [ast.alias("*", None)], level.value))


def finish_import(machine: Machine, state: State, entry: Special) -> None:
    name, level, names, bound, _ = entry.value
    if entry.value[4] is not None:
        machine.emit(state, entry.value[4])
        return
    if not bound:
        top = state.stack[-1] if state.stack else None
        if isinstance(top, Special) and top.kind == "from" and top.value[0] is entry:
            return
        raise Unliftable("an import that binds nothing")
    machine.emit(state, ast.ImportFrom(name or None, [ast.alias(n, a) for n, a in bound], level.value))


def store_import(machine: Machine, state: State, target: ast.expr, entry: Special) -> bool:
    if not isinstance(target, ast.Name):
        return False
    if entry.kind == "import":
        name, level, names, bound, _ = entry.value
        if not is_none(names) or not isinstance(level, ast.Constant) or level.value:
            return False
        top = name.partition(".")[0]
        machine.emit(state, ast.Import([ast.alias(name, None if top == target.id else target.id)]))
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
            module.value[3].append((name, None if machine.scope.plain_name(name) == target.id else target.id))
            return True
        # ``import a.b.c as d``: IMPORT_FROM b; SWAP 2; POP; IMPORT_FROM c; STORE d; POP
        if is_none(names) and full.split(".")[1:] == chain[::-1]:
            machine.emit(state, ast.Import([ast.alias(full, target.id)]))
            return True
    return False
