"""Instructions of a compiled function replaced by others of the same size.

Source cannot express some instructions of Dynamo's code: to pass a variable's value on and unbind it at once, and
constants that are objects (``torch.float32``). Source with a placeholder is compiled, and its instruction is
overwritten in place: no jump, no handler and no line moves.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Mapping
from types import CodeType, ModuleType
from typing import Any

from ..bytecode.code import Code, Instruction, decode, table
from ..decompiler.constants import CellOf
from ..decompiler.dynamo.global_names import GRAPH_PREFIX, PROFILER_FLAGS, PROFILER_MARKERS, module_of_import
from ..decompiler.nodes import nodes_of
from .graph_code import nested_codes

_OPERATIONS = {ast.Invert: "UNARY_INVERT", ast.USub: "UNARY_NEGATIVE"}

#: Loads of one variable -> how to read its index from the argument.
_LOADS = {"LOAD_FAST": 0xFF, "LOAD_FAST_CHECK": 0xFF, "LOAD_FAST_BORROW": 0xFF, "LOAD_FAST_LOAD_FAST": 15,
          "LOAD_FAST_BORROW_LOAD_FAST_BORROW": 15, "STORE_FAST_LOAD_FAST": 15}
#: From 3.14 a load may borrow its reference from the variable, which a move unbinds.
_OWNING = {"LOAD_FAST_BORROW": "LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW": "LOAD_FAST_LOAD_FAST"}


class CannotPatch(Exception):
    """The instructions are not those that were expected."""


def with_moves(code: CodeType, mark: type[ast.unaryop]) -> CodeType:
    """Replace each ``mark(variable)``: the value is on the stack, and the variable is unbound.

    Args:
        code: a function of the running interpreter in which ``mark`` is applied to nothing else.
        mark: a unary operator.

    Raises:
        CannotPatch: an operator is applied to something else, or to a variable whose index needs two bytes.
    """
    raw = bytearray(code.co_code)
    numbers = table(sys.version_info[:2]).opcodes
    instructions = decode(Code.of(code))
    previous: Instruction | None = None
    for instruction in instructions:
        if instruction.opname == _OPERATIONS[mark]:
            if previous is None or previous.opname not in _LOADS or previous.arg > 0xFF:
                raise CannotPatch("a moved value does not come from a variable")
            raw[instruction.offset] = numbers["DELETE_FAST"]
            raw[instruction.offset + 1] = previous.arg & _LOADS[previous.opname]
        elif instruction.opname in _OWNING:
            raw[instruction.offset] = numbers[_OWNING[instruction.opname]]
        previous = instruction
    return code.replace(co_code=bytes(raw))


def with_constants(code: CodeType, values: Mapping[str, Any]) -> CodeType:
    """Replace each read of a global that is the name of a constant by a read of that constant.

    Args:
        values: ``{name: constant}``; a :class:`~depyf.decompiler.constants.CellOf` for the cell of a variable.

    Raises:
        CannotPatch: a name is also bound, is used by a function inside, or there is no room for the index.
    """
    if any(values.keys() & inner.co_names for inner in nested_codes(code)):
        raise CannotPatch("a function inside uses such a constant")
    raw = bytearray(code.co_code)
    version = table(sys.version_info[:2])
    numbers = version.opcodes
    consts = list(code.co_consts)
    places: dict[str, int] = {}
    for instruction in decode(Code.of(code)):
        if not instruction.opname.endswith(("_GLOBAL", "_NAME")):
            continue
        called = sys.version_info >= (3, 11) and instruction.opname == "LOAD_GLOBAL" and bool(instruction.arg & 1)
        index = instruction.arg >> 1 if sys.version_info >= (3, 11) and instruction.opname == "LOAD_GLOBAL" \
            else instruction.arg
        name = code.co_names[index]
        if name not in values:
            continue
        if instruction.opname != "LOAD_GLOBAL":
            raise CannotPatch(f"{name} is more than read")
        value = values[name]
        if isinstance(value, CellOf):
            load = _extended("LOAD_FAST" if sys.version_info >= (3, 13) else "LOAD_CLOSURE", _cell(code, value))
        else:
            if name not in places:
                places[name] = len(consts)
                consts.append(value)
            load = _extended("LOAD_CONST", places[name])
        if called:
            null = [(numbers["PUSH_NULL"], 0)]
            load = load + null if sys.version_info >= (3, 13) else null + load
        room = (instruction.offset - instruction.start) // 2 + 1 + version.caches[instruction.opcode]
        if len(load) > room:
            raise CannotPatch(f"no room for {name}")
        load += [(numbers["NOP"], 0)] * (room - len(load))
        raw[instruction.start : instruction.start + 2 * room] = bytes(part for unit in load for part in unit)
    return code.replace(co_code=bytes(raw), co_consts=tuple(consts))


def _extended(opname: str, arg: int) -> list[tuple[int, int]]:
    """Return an instruction in code units, ``EXTENDED_ARG`` before it where it is needed."""
    numbers = table(sys.version_info[:2]).opcodes
    units = [(numbers[opname], arg & 0xFF)]
    while arg := arg >> 8:
        units.insert(0, (numbers["EXTENDED_ARG"], arg & 0xFF))
    return units


def _cell(code: CodeType, name: str) -> int:
    """Return the index by which instructions of this version reach a cell."""
    if name not in (*code.co_cellvars, *code.co_freevars):
        raise CannotPatch(f"{name} is no cell")
    if sys.version_info < (3, 11):
        return (*code.co_cellvars, *code.co_freevars).index(name)
    # One row of variables: locals (some of them cells), other cells, free variables.
    others = [cell for cell in code.co_cellvars if cell not in code.co_varnames]
    return (*code.co_varnames, *others, *code.co_freevars).index(name)


# --- torch's marks for its profiler, which the text leaves out ---------------------------------------
# Dynamo's code notifies the profiler when it reaches a graph (``Pregraph bytecode`` in a profile). The code that runs
# does so before each statement that calls a graph, on its line, if a profiler is on. (Dynamo's code tests that since
# torch 2.15; before, it calls two functions each time, into which a debugger would step.)
_ENTER, _EXIT = "record_pregraph_bytecode_enter", "record_pregraph_bytecode_exit"


def add_marks(definition: ast.FunctionDef | ast.AsyncFunctionDef, names: Collection[str]) -> bool:
    """Mark calls of graphs in a function, in place; return whether there is anything to mark.

    Args:
        names: the names that Dynamo's code uses: they say whether this torch marks.
    """
    owner = next((m for m, known in PROFILER_MARKERS.items() if m in names and {_ENTER, _EXIT} <= known), "")
    if not owner or _ENTER not in names or _EXIT not in names:
        return False
    flag = next((f"{module}.{flag}" for module in flag_modules() for flag in PROFILER_FLAGS[module]), "")
    if not flag:
        return False
    return _mark_in(definition, f"if {flag}:\n    {owner}.{_EXIT}({owner}.{_ENTER}())")


def _mark_in(owner: ast.AST, text: str) -> bool:
    """Put ``text`` before each statement in the blocks of ``owner`` that itself calls a graph."""
    result = False
    for block in list(owner.__dict__.values()):
        if not isinstance(block, list):
            continue
        for part in list(block):
            if isinstance(part, ast.stmt):
                if _calls_graph(part):
                    mark = ast.parse(text).body[0]
                    for node in nodes_of(mark):
                        ast.copy_location(node, part)
                    block.insert(block.index(part), mark)
                    result = True
                if hasattr(part, "body") or hasattr(part, "cases"):
                    result |= _mark_in(part, text)
            elif isinstance(part, (ast.excepthandler, ast.match_case)):
                result |= _mark_in(part, text)
    return result


def flag_modules() -> dict[str, ModuleType]:
    """Return the modules with torch's flag, by the names that Dynamo's code has for them.

    Dynamo puts them among a function's globals only where its own code reads them; here they are constants.
    """
    modules = {alias: sys.modules.get(module_of_import(alias) or "") for alias in PROFILER_FLAGS}
    return {alias: module for alias, module in modules.items()
            if module is not None and all(hasattr(module, flag) for flag in PROFILER_FLAGS[alias])}


def _calls_graph(stmt: ast.stmt) -> bool:
    """Return whether a statement itself calls a graph, not one inside it."""
    parts = [child for child in ast.iter_child_nodes(stmt) if isinstance(child, ast.expr)]
    return any(isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith(GRAPH_PREFIX)
               for node in nodes_of(*parts))
