"""Constants that have no literal form, given names.

A compiler puts only literals and code into ``co_consts``; Dynamo also puts objects there: the module's
globals, code objects that it passes on as values, sentinels.  Source cannot say them, so the program is
read as if each were a global variable with a descriptive name, and the text says what the name means.
Cells that are passed on as values (not to build a closure) are treated in the same way: source has no
word for the cell of a variable.  What is proven is the program with those names; before it replaces
running code, the objects are put back (:func:`constant_values`).
"""

from __future__ import annotations

from types import CodeType
from typing import Any

from ..bytecode import limits
from ..bytecode import operations as o
from ..bytecode.canonical import builds_closure, canonicalise
from ..bytecode.code import Code
from ..bytecode.operations import NO_FALL_THROUGH, Op, Program, effect
from ..bytecode.packed import ObjectConstant
from .dynamo.global_names import CONSTANT_PREFIX

_LITERALS = frozenset({int, float, complex, str, bytes, bool, type(None), type(...)})
#: What may load an object that source cannot say.
_LOADS = frozenset({o.CONST, o.LOAD_CLOSURE})
_SUBSCRIPTS = (o.GETITEM, o.SETITEM, o.DELITEM)


def is_literal(value: Any) -> bool:
    """Return whether source can say a constant."""
    if type(value) in (tuple, frozenset):
        return all(is_literal(item) for item in value)
    if type(value) is slice:
        return all(is_literal(item) for item in (value.start, value.stop, value.step))
    return type(value) in _LITERALS


def name_constants(program: Program) -> tuple[Program, dict[str, str]]:
    """Return the program with such constants as globals, and ``{name: what it means}``.

    Raises:
        UnsupportedBytecode: its constants nest too deeply or are too large.
    """
    named, names, _ = _name_constants(program)
    return named, names


def constant_values(code: CodeType) -> dict[str, Any]:
    """Return ``{name: object}`` of the constants of a code object; for a cell a :class:`CellOf`."""
    _, _, values = _name_constants(canonicalise(Code.of(code)))
    return {name: value.origin if isinstance(value, Code) else value for name, value in values.items()}


class CellOf(str):
    """A marker for the cell of the variable of that name."""


def _name_constants(program: Program) -> tuple[Program, dict[str, str], dict[str, Any]]:
    """Return the program, the meaning of each name in words, and the object itself."""
    limits.check(program)
    code = program.code
    if _LITERALS.issuperset(map(type, code.consts)) and not code.cellvars and not code.freevars:
        return program, {}, {}
    ops = program.ops
    names: dict[str, str] = {}
    cells: dict[str, Any] = {}
    known: dict[str, Any] = {}
    meanings: dict[str, str] = {}  # of those that mean the same, wherever they are: the name
    for index, op in enumerate(program.ops):
        if op.kind not in _LOADS or type(op.arg) in _LITERALS and op.kind is o.CONST:
            continue
        if ops is program.ops:
            ops = list(ops)
        if op.kind is o.LOAD_CLOSURE:
            if not _builds_closure(program.ops, index):
                name = f"{CONSTANT_PREFIX}cell_of_{op.arg}"
                names[name] = f"the cell of the variable {op.arg}"
                cells[name] = CellOf(op.arg)
                ops[index] = Op(o.LOAD_GLOBAL, name, op.offset, op.line, op.target, op.handler)
            continue
        value = op.arg
        if isinstance(value, Code):
            following = ops[index + 1] if index + 1 < len(ops) else None
            if following is not None and following.kind is o.MAKE_FUNCTION:
                continue
        elif type(value) is slice:
            # Only a subscript has a form for it.
            if is_literal(value) and _subscripts(ops, index):
                continue
        elif is_literal(value):
            continue
        name = next((n for n, v in known.items() if v is value), "")
        if not name:
            described = _described(value)
            name = meanings.get(described.meaning, "") or f"{CONSTANT_PREFIX}{len(known)}_{described.kind}"
            if described.meaning:
                meanings[described.meaning] = name
            known.setdefault(name, value)
            names[name] = described.text
        ops[index] = Op(o.LOAD_GLOBAL, name, op.offset, op.line, op.target, op.handler)
    if not names:
        return program, {}, {}
    return Program(program.code, ops, program.handlers), names, {**cells, **known}


def _subscripts(ops: list[Op], index: int) -> bool:
    """Return whether something is subscripted with the constant at ``index``, by itself or in a tuple."""
    above = 0
    for at in range(index + 1, len(ops)):
        op = ops[at]
        popped, pushed = effect(op)
        if popped <= above:
            above += pushed - popped
        elif op.kind is o.BUILD_TUPLE:
            above = 0
        else:
            # ``a[1:2] += b`` subscripts with a copy first
            augmented = op.kind is o.COPY and op.arg == 2 and [x.kind for x in ops[at + 1 : at + 3]] == [
                o.COPY, o.GETITEM]
            return op.kind in _SUBSCRIPTS or (augmented and not above)
        if op.kind in NO_FALL_THROUGH:
            break
    return False


def _builds_closure(ops: list[Op], index: int) -> bool:
    """Return whether a cell goes into a closure next, or is used through ``cell_contents``."""
    after = ops[index + 1 : index + 2]
    if after and after[0].kind in (o.LOAD_ATTR, o.STORE_ATTR) and after[0].arg == "cell_contents":
        return True
    return builds_closure(ops, index)


def _described(value: Any) -> ObjectConstant:
    """Describe a constant that source cannot say."""
    if isinstance(value, ObjectConstant):
        return value
    if isinstance(value, (Code, CodeType)):
        return ObjectConstant("code", f"the code of {value.name if isinstance(value, Code) else value.co_name}")
    if type(value) is slice and is_literal(value):
        return ObjectConstant("slice", repr(value), repr(value))
    if type(value) is tuple:
        text = _of_items(value)
        return ObjectConstant("tuple", text, f"tuple {text}") if text else ObjectConstant.of(value)
    return ObjectConstant.of(value)


def _of_items(value: tuple[Any, ...]) -> str:
    """Return a tuple of literals, and of objects whose text is their meaning, as Python; ``""`` for any other."""
    texts = []
    for item in value:
        if type(item) in _LITERALS or type(item) is tuple and is_literal(item):
            text = repr(item)
        elif type(item) is tuple:
            text = _of_items(item)
        else:
            described = _described(item)
            text = described.text if described.meaning == f"{described.kind} {described.text}" else ""
        if not text:
            return ""
        texts.append(text)
    return f"({', '.join(texts)}{',' * (len(texts) == 1)})"
