"""Constants of ``co_consts``: as expressions that compile to them, limits on them, and names for those without.

A compiler puts only literals and code into ``co_consts``; Dynamo also puts objects there: the module's
globals, code objects that it passes on as values, sentinels.  Source cannot say them, so the program is
read as if each were a global variable with a descriptive name, and the text says what the name means.
Cells that are passed on as values (not to build a closure) are treated in the same way: source has no
word for the cell of a variable.  What is proven is the program with those names; before it replaces
running code, the objects are put back (:func:`constant_values`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import CodeType
from typing import Any

from .. import budgets
from ..bytecode import operations as o
from ..bytecode.canonical import builds_closure, canonicalise
from ..bytecode.code import Code, UnsupportedBytecode
from ..bytecode.operations import NO_FALL_THROUGH, Op, Program, effect
from ..bytecode.packed import ObjectConstant
from .dynamo.global_names import CONSTANT_PREFIX
from .errors import LIFT, CannotDecompile


class _Hexadecimal(int):
    """An integer that is written in base 16: base 10 takes quadratic time, and Python refuses it above 4300 digits."""

    def __repr__(self) -> str:
        return hex(self)


#: Larger integers are written in base 16.
_DECIMAL_BITS = 2000

#: Smaller whole numbers are the same as integers and as floats.
_EXACT = 2**53


def constant(value: Any) -> ast.expr:
    """Return a constant as an expression that compiles to it."""
    kind = type(value)
    if kind is int and value.bit_length() > _DECIMAL_BITS:
        positive = ast.Constant(_Hexadecimal(abs(value)))
        return ast.UnaryOp(ast.USub(), positive) if value < 0 else positive
    if kind in (int, float):
        if kind is float and value != value:
            return ast.BinOp(ast.Constant(1e309), ast.Sub(), ast.Constant(1e309))
        if value < 0 or (kind is float and str(value)[0] == "-"):
            return ast.UnaryOp(ast.USub(), ast.Constant(-value))
        return ast.Constant(value)
    if kind is complex:
        return complex_constant(value)
    if kind is tuple:
        return ast.Tuple([constant(v) for v in value], ast.Load())
    if kind is frozenset:
        return ast.Set([constant(v) for v in sorted(value, key=repr)])
    if kind is slice:
        # 3.14 and later; only a subscript has a form for it
        lower, upper, step = (None if v is None else constant(v) for v in (value.start, value.stop, value.step))
        return ast.Slice(lower, upper, step)
    if value is None or value is Ellipsis or kind in (bool, str, bytes):
        return ast.Constant(value)
    raise CannotDecompile(LIFT, f"a constant of type {kind.__name__}")


def complex_constant(value: complex) -> ast.expr:
    """Return a complex number as an expression that preserves the signs of its zeros."""
    real, imag = value.real, value.imag
    imaginary: ast.expr = ast.Constant(complex(0, abs(imag)))
    negative = str(imag)[0] == "-"
    if real == 0 and str(real)[0] != "-" and not negative:
        return imaginary
    if negative and real == 0 and str(real)[0] == "-":
        return ast.UnaryOp(ast.USub(), imaginary)
    if imag == 0 and negative:
        return ast.UnaryOp(ast.USub(), complex_constant(-value))  # ``a - 0j`` has a zero without a sign
    whole = int(real) if real and abs(real) < _EXACT and real.is_integer() else real  # (``2 + 3j`` is more common)
    return ast.BinOp(constant(whole), ast.Sub() if negative else ast.Add(), imaginary)


# --- limits ------------------------------------------------------------------------------------------
# Constants and nested code objects are shared: a file of one kilobyte can contain a tuple of two references to a tuple
# of two references to ... thirty times over, and source has to write all of them out. The same goes for a nested
# function that is made in many places. What is bounded is what sharing adds: a large file may become a large text.
#: Brackets that CPython's parser lets nest, minus those that may be around a constant.
_MAX_CONSTANT_DEPTH = 150
#: Functions and classes inside each other: CPython lets 100 indentations nest.
_MAX_CODE_DEPTH = 90
#: The allowance beyond ``_SHARING`` times the original size.
_ALLOWANCE = 500_000
_SHARING = 8
#: Characters of a string that count as one operation.
_CHARACTERS = 64
_CONTAINERS = (tuple, frozenset)

#: ``(expanded size, depth of containers, depth of code)``
_Size = tuple[int, int, int]


def check_limits(program: Program) -> None:
    """Refuse a program that nests too deeply, or expands to too much, before it is written."""
    _Meter(program.code).size(program.code)


def _is_one(value: Any) -> bool:
    """Return whether a part of a constant counts as one operation."""
    kind = type(value)
    return value is None or kind is bool or kind is str and len(value) < _CHARACTERS or (
        kind is int and bool(value.bit_length() < _CHARACTERS))


class _Meter:
    """Measures everything once, the contents of an object before the object."""

    def __init__(self, code: Code) -> None:
        self.code = code
        #: by id, with the object, so that the id remains its own
        self.known: dict[int, tuple[_Size, Any]] = {}
        #: The original size, everything shared counted once.
        self.distinct = 0

    def size(self, value: Any, is_made: bool = True, depth: int = 0) -> _Size:
        """Return the size of a constant or code object; ``is_made``: a function is made of it, its text counts."""
        if _is_one(value):
            return 1, 0, 0
        if id(value) in self.known:
            return self.known[id(value)][0]
        is_code = isinstance(value, Code)
        if depth > _MAX_CODE_DEPTH + _MAX_CONSTANT_DEPTH:
            raise self.refused("nests too deeply to be written as source")
        own = 1
        if isinstance(value, (str, bytes)):
            own += len(value) // _CHARACTERS
        elif isinstance(value, int):
            own += value.bit_length() // (4 * _CHARACTERS)
        elif is_code:
            own += len(canonicalise(value).ops) if is_made else len(value.bytecode) // 2
        parts = [self.size(part, made, depth + 1) for part, made in _parts(value, is_made)]
        own += len(parts)
        self.distinct += own if own > 1 else 0
        expanded = own + sum(size for size, _, _ in parts)
        container = max((depth for _, depth, _ in parts), default=0) + 1
        nested = max((depth for _, _, depth in parts), default=0) + is_code
        if not is_code and type(value) not in _CONTAINERS:
            expanded, container, nested = own, 0, 0
        constants = sum(size for size, _, code in parts if not code) if is_code else expanded if container else 0
        if too_many := budgets.CONSTANTS.exceeded(constants // 2):  # (each counts once itself, once its place)
            raise self.refused(too_many)
        if is_code:
            container = 0
        if container > _MAX_CONSTANT_DEPTH:
            raise self.refused("a constant nests too deeply to be written as source")
        if nested > _MAX_CODE_DEPTH:
            raise self.refused("functions nest too deeply to be written as source")
        if container + is_code and expanded > _ALLOWANCE + _SHARING * self.distinct:
            raise self.refused("it shares its constants so often that it would become an enormous text")
        self.known[id(value)] = (expanded, container, nested), value
        return expanded, container, nested

    def refused(self, message: str) -> UnsupportedBytecode:
        return UnsupportedBytecode(message, self.code, "code object", 0)


def _parts(value: Any, is_made: bool) -> Iterator[tuple[Any, bool]]:
    """Yield the parts in the text of something, as often as they occur there, and whether they are made functions."""
    if not isinstance(value, Code):
        parts = value if type(value) in _CONTAINERS else ()
        yield from ((part, True) for part in parts if not isinstance(part, Code))  # (an object like any other)
        return
    made = set()
    ops = canonicalise(value).ops if is_made else []
    for op, following in zip(ops, [*ops[1:], None]):
        if op.kind is o.BUILD_CONST_KEY_MAP:
            yield from ((key, True) for key in op.arg)
        elif op.kind is o.CONST and not isinstance(op.arg, Code):
            yield op.arg, True
        elif op.kind is o.CONST and following is not None and following.kind is o.MAKE_FUNCTION:
            made.add(op.arg)
            yield op.arg, True
    yield from ((const, False) for const in value.consts if isinstance(const, Code) and const not in made)


# --- names for constants without literal form -------------------------------------------------------
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
    """Return the program with such constants as globals, and ``{name: what it means}``, if it is within the limits."""
    return _name_constants(program)[:2]


def constant_values(code: CodeType) -> dict[str, Any]:
    """Return ``{name: object}`` of the constants of a code object; for a cell a :class:`CellOf`."""
    values = _name_constants(canonicalise(Code.of(code)))[2]
    return {name: value.origin if isinstance(value, Code) else value for name, value in values.items()}


class CellOf(str):
    """A marker for the cell of the variable of that name."""


def _name_constants(program: Program) -> tuple[Program, dict[str, str], dict[str, Any]]:
    """Return the program, the meaning of each name in words, and the object itself."""
    check_limits(program)
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
        value = op.arg
        following = ops[index + 1] if index + 1 < len(ops) else Op("")
        if op.kind is o.LOAD_CLOSURE:
            if builds_closure(ops, index) or (
                    following.kind in (o.LOAD_ATTR, o.STORE_ATTR) and following.arg == "cell_contents"):
                continue
            name = f"{CONSTANT_PREFIX}cell_of_{value}"
            names[name] = f"the cell of the variable {value}"
            cells[name] = CellOf(value)
        elif isinstance(value, Code) and following.kind is o.MAKE_FUNCTION or is_literal(value) and (
                type(value) is not slice or _subscripts(ops, index)):  # (Only a subscript has a form for a slice.)
            continue
        else:
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


def _described(value: Any) -> ObjectConstant:
    """Describe a constant that source cannot say."""
    if isinstance(value, ObjectConstant):
        return value
    if isinstance(value, (Code, CodeType)):
        return ObjectConstant("code", f"the code of {value.name if isinstance(value, Code) else value.co_name}")
    if type(value) is slice and is_literal(value):
        return ObjectConstant("slice", repr(value), repr(value))
    if type(value) is tuple:
        text = _tuple_text(value)
        return ObjectConstant("tuple", text, f"tuple {text}") if text else ObjectConstant.of(value)
    return ObjectConstant.of(value)


def _tuple_text(value: tuple[Any, ...]) -> str:
    """Return a tuple of literals, and of objects whose text is their meaning, as Python; ``""`` for any other."""
    texts = []
    for item in value:
        if type(item) in _LITERALS or type(item) is tuple and is_literal(item):
            text = repr(item)
        elif type(item) is tuple:
            text = _tuple_text(item)
        else:
            described = _described(item)
            text = described.text if described.meaning == f"{described.kind} {described.text}" else ""
        if not text:
            return ""
        texts.append(text)
    return f"({', '.join(texts)}{',' * (len(texts) == 1)})"
