"""Code that may run in place of Dynamo's, and that a debugger can show.

Dynamo's bytecode for a frame has no source. Its decompiled source, compiled again, is proven to be the same program,
and that code has lines in a file and a live local for every name in the text. What source cannot express is added
before it runs: constants that are objects (:func:`with_constants`), and deletes after last uses (``lifetimes``).

Torch checks a hook's result against the user's function (argument names, free variables and cell variables, in order)
and fails if they differ, so that is checked here first. Where they differ, or nothing is proven, Dynamo's own bytecode
runs, with a line table that points at the text.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from types import CodeType
from typing import TYPE_CHECKING, Any

from ..bytecode.code import Code, Instruction, decode, table
from ..bytecode.linetable import relocate
from ..decompiler import Fidelity
from ..decompiler.constants import CellOf, constant_values
from ..decompiler.dynamo.global_names import CONSTANT_PREFIX
from ..decompiler.nodes import copied
from ..decompiler.proof.parts import first_mismatch
from .functions import global_names, named_like, nested_codes
from .lifetimes import free_unused, on_line

if TYPE_CHECKING:
    from ..decompiler import Decompiled
    from ..decompiler.dynamo.facts import Facts

CO_KINDS = 0x4 | 0x8 | 0x20 | 0x80 | 0x100 | 0x200  # *args, **kwargs, generators and coroutines
CO_FUTURE = 0x1FE0000  # what ``from __future__ import ...`` sets

PROVEN = ("exact", "equivalent")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def linked_code(
    original: CodeType, transformed: CodeType, decompiled: Decompiled, path: str, first_line: int = 1,
    rename: Mapping[str, str] | None = None, facts: Facts | None = None,
) -> tuple[CodeType | None, str]:
    """Return the code to run for ``transformed``, tied to its text, and what it lacks, in words.

    It is compiled from the text, so that every name in it is a live local; else it is Dynamo's own, with lines that
    point at the text. ``None`` where no line of the text is known to belong to any instruction.

    Args:
        original: the frame's own code, with whose argument and variable names torch compares the result.
        first_line: the line of that file at which the text begins.
        rename: shown names of globals by real name, as given to ``decompile_code``.
        facts: those given to ``decompile_code``.
    """
    try:
        if decompiled.fidelity not in PROVEN:
            raise CannotStandIn(f"the source is not proven ({Fidelity(decompiled.fidelity).value})")
        return _recompiled(original, transformed, decompiled, path, first_line, rename or {}, facts)
    except CannotStandIn as why:
        lines = {offset: line + first_line - 1 for offset, line in decompiled.line_map.items()}
        if not lines:  # a code object without any line is worse than one of another file
            return None, f"runs Dynamo's own bytecode, not linked: {why}, and no instruction is known to be of a line"
        return relocate(transformed, lines, path, first_line), f"runs Dynamo's own bytecode, relocated: {why}"


def _recompiled(
    original: CodeType, transformed: CodeType, decompiled: Decompiled, path: str, first_line: int,
    rename: Mapping[str, str], facts: Facts | None,
) -> tuple[CodeType, str]:
    tree = decompiled.runs or decompiled.tree
    if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], Function):
        raise CannotStandIn("the source is not one function definition")
    lacking, code = "", None
    if decompiled.fidelity != "exact":
        try:
            code = _freed(copied(tree.body[0], first_line - 1), path, transformed, rename, facts)
        except CannotStandIn as why:
            lacking = f"runs recompiled; values may live until it returns: {why}"
    if code is None:
        code = _compiled(copied(tree.body[0], first_line - 1), path, transformed)
    code = _with_real_names(code, transformed, rename)
    values = constant_values(transformed) if CONSTANT_PREFIX in decompiled.text or decompiled.runs is not None else {}
    used = global_names(code)
    unknown = [name for name in used if name.startswith(CONSTANT_PREFIX) and name not in values]
    if unknown:
        raise CannotStandIn(f"the value of {unknown[0]} is not known")
    if used & values.keys():
        code = with_constants(code, values)
    code = named_like(code, transformed)
    _check_accepted(original, transformed, code)
    return code, lacking


def _freed(
    definition: Function, path: str, transformed: CodeType, rename: Mapping[str, str], facts: Facts | None
) -> CodeType | None:
    """Return the function with deletes; ``None`` if nothing has to be added."""
    freed = free_unused(definition, (*transformed.co_cellvars, *transformed.co_freevars))
    if not freed.changed:
        return None
    code = _compiled(definition, path, transformed)
    if freed.mark is not None:
        code = with_moves(code, freed.mark)
    if different := first_mismatch(transformed, code, rename, facts):
        raise CannotStandIn(f"not proven ({different})")
    return code


def _compiled(definition: Function, path: str, transformed: CodeType) -> CodeType:
    """Return the code of a definition, which is changed, compiled inside a function that owns its free variables.

    A frame has cell and free variables even if Dynamo's code does not use them. So the text names them where it can
    never run: ``if 0: lambda: x`` makes the compiler reserve a cell for ``x`` and emit nothing; a cell variable is
    assigned there, so that it belongs to this function.
    """
    cells, free = transformed.co_cellvars, transformed.co_freevars
    if cells or free:
        stores = "".join(f" {name} = None\n" for name in cells if name not in free)
        never = ast.parse(f"if 0:\n{stores} lambda: ({', '.join((*cells, *free))},)").body[0]
        definition.body.append(on_line(never, definition.body[-1].lineno))
    tree: Any = ast.Module([definition], [])
    if free:
        tree = ast.parse("def __depyf_owner__():\n" + "".join(f" {name} = None\n" for name in free))
        tree.body[0].body.append(definition)
    try:
        code = compile(tree, path, "exec", transformed.co_flags & CO_FUTURE, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise CannotStandIn(f"the source does not compile here ({error})") from None
    return next(each for each in nested_codes(code)
                if each.co_name == definition.name and each.co_firstlineno >= definition.lineno)


def _with_real_names(code: CodeType, transformed: CodeType, rename: Mapping[str, str]) -> CodeType:
    """Give back their real names to globals that the text shows by others."""
    used = global_names(transformed)
    real: dict[str, str] = {}
    for name, shown in rename.items():
        if name in used and name != shown:
            if shown in used or shown in real:
                raise CannotStandIn(f"{shown} is the shown name of several names")
            real[shown] = name

    def renamed(code: CodeType) -> CodeType:
        consts = tuple(renamed(each) if isinstance(each, CodeType) else each for each in code.co_consts)
        return code.replace(co_names=tuple(real.get(name, name) for name in code.co_names), co_consts=consts)

    return renamed(code) if real else code


def _check_accepted(original: CodeType, transformed: CodeType, code: CodeType) -> None:
    """Check what torch asserts of a hook's result, and what its evaluator relies on unasked."""
    for name in ("co_argcount", "co_posonlyargcount", "co_kwonlyargcount"):
        if getattr(code, name) != getattr(transformed, name):
            raise CannotStandIn(f"{name} would change")
    if (code.co_flags ^ transformed.co_flags) & CO_KINDS:
        raise CannotStandIn("it would be another kind of function")
    for owner in (original, transformed):
        if inspect.getargs(owner) != inspect.getargs(code):
            raise CannotStandIn("the parameters have other names")
        if owner.co_freevars != code.co_freevars:
            raise CannotStandIn("the free variables would have another order")
        if owner.co_cellvars != code.co_cellvars:
            raise CannotStandIn("the cell variables would have another order")


# --- Instructions of a compiled function replaced by others of the same size -------------------------
# Source cannot express some instructions of Dynamo's code: to pass a variable's value on and unbind it at once, and
# constants that are objects (``torch.float32``). Source with a placeholder is compiled, and its instruction is
# overwritten in place: no jump, no handler and no line moves.
_OPERATIONS = {ast.Invert: "UNARY_INVERT", ast.USub: "UNARY_NEGATIVE"}

#: Loads of one variable -> how to read its index from the argument.
_LOADS = {"LOAD_FAST": 0xFF, "LOAD_FAST_CHECK": 0xFF, "LOAD_FAST_BORROW": 0xFF, "LOAD_FAST_LOAD_FAST": 15,
          "LOAD_FAST_BORROW_LOAD_FAST_BORROW": 15, "STORE_FAST_LOAD_FAST": 15}
#: From 3.14 a load may borrow its reference from the variable, which a move unbinds.
_OWNING = {"LOAD_FAST_BORROW": "LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW": "LOAD_FAST_LOAD_FAST"}


class CannotStandIn(Exception):
    """No code can be made of the source that takes the place of Dynamo's."""


def with_moves(code: CodeType, mark: type[ast.unaryop]) -> CodeType:
    """Replace each ``mark(variable)``: the value is on the stack, and the variable is unbound.

    Args:
        code: a function of the running interpreter in which ``mark`` is applied to nothing else.
        mark: a unary operator.

    Raises:
        CannotStandIn: an operator is applied to something else, or to a variable whose index needs two bytes.
    """
    raw = bytearray(code.co_code)
    numbers = table(sys.version_info[:2]).opcodes
    instructions = decode(Code.of(code))
    previous: Instruction | None = None
    for instruction in instructions:
        if instruction.opname == _OPERATIONS[mark]:
            if previous is None or previous.opname not in _LOADS or previous.arg > 0xFF:
                raise CannotStandIn("a moved value does not come from a variable")
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
        CannotStandIn: a name is also bound, is used by a function inside, or there is no room for the index.
    """
    if any(values.keys() & inner.co_names for inner in nested_codes(code)):
        raise CannotStandIn("a function inside uses such a constant")
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
            raise CannotStandIn(f"{name} is more than read")
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
            raise CannotStandIn(f"no room for {name}")
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
        raise CannotStandIn(f"{name} is no cell")
    if sys.version_info < (3, 11):
        return (*code.co_cellvars, *code.co_freevars).index(name)
    # One row of variables: locals (some of them cells), other cells, free variables.
    others = [cell for cell in code.co_cellvars if cell not in code.co_varnames]
    return (*code.co_varnames, *others, *code.co_freevars).index(name)
