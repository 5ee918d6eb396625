"""Calls, functions, imports, intrinsics."""

from __future__ import annotations

from ....bytecode import operations as o
from ....bytecode.operations import Op
from ...errors import FALLBACK, CannotDecompile
from ...generics import HIDDEN
from ...names import legal
from ...rules import registrar
from ..writer import BOUND, CELLS, CODE, CONSTRAINED, Rule, Writer

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule(o.CALL)
def _(w: Writer, op: Op) -> None:
    positional, keywords = op.arg
    count = positional + len(keywords)
    values = w.slots(count)
    arguments = values[:positional]
    for name, value in zip(keywords, values[positional:]):
        arguments.append(f"{name}={value}" if w.can_say(name) else f"**{{{name!r}: {value}}}")
    w.result(count + 1, f"{w.slot(count + 1)}({', '.join(arguments)})")


@rule(o.CALL_EX)
def _(w: Writer, op: Op) -> None:
    if op.arg:
        w.result(3, f"{w.slot(3)}(*{w.slot(2)}, **{w.slot(1)})")
    else:
        w.result(2, f"{w.slot(2)}(*{w.slot(1)})")


@rule(o.MAKE_FUNCTION)
def _(w: Writer, op: Op) -> None:
    if not w.tags[-1].startswith(CODE):
        raise CannotDecompile(FALLBACK, f"{op!r} at offset {op.offset}: the code is not a constant")
    index = int(w.tags[-1][len(CODE) :])
    _, code = w.nested[index]
    flags, place = op.arg, 2
    parts: dict[int, str] = {}
    for flag in (8, 16, 4, 2, 1):
        if flags & flag:
            parts[flag] = w.slot(place)
            if flag == 8 and w.tags[-place] != f"{CELLS} {','.join(code.freevars)}":
                raise CannotDecompile(FALLBACK, f"{op!r} at offset {op.offset}: a closure of cells from elsewhere")
            place += 1
    if not code.flags & 0x2 and not code.flags & 0x1:  # neither NEWLOCALS nor OPTIMIZED: a class body
        # A class statement in a function that never runs: only its body is wanted. What the statement would
        # bind is declared, so that the body means by that name what it meant.
        w.nested[index] = ("class", code)
        w.write(f"def {w.prefix}class():")
        w.write(f"    {'nonlocal' if code.name in w.fast else 'global'} {legal(code.name)}")
        w.write(f"    class {legal(code.name)}:")
        w.write(f"        {w.prefix}define_{index}")
        w.result(place - 1, f"{w.helper('class_body')}({w.prefix}class, {code.qualname!r}, {w.py('globals')}())")
        return
    w.write(f"{w.prefix}define_{index}")
    function = f"{w.prefix}function"
    w.write(f"{function} = {w.prefix}defined_{index}")
    if code.name.startswith(HIDDEN):
        # What it defines is called as if it stood around it.
        outer = code.qualname.rpartition(".")[0]
        w.write(f"{function}.__code__ = {w.helper('requalified')}({function}.__code__, "
                f"{function}.__qualname__ + '.<locals>', {outer!r})")
    w.write(f"{w.helper('named')}({function}, {code.name!r}, {code.qualname!r})")
    for flag, attribute in ((1, "__defaults__"), (2, "__kwdefaults__")):
        if flag in parts:
            w.write(f"{function}.{attribute} = {parts[flag]}")
    if 4 in parts:
        # A tuple of names and values on 3.10 and later, a dictionary before.
        w.write(f"{function}.__annotations__ = {w.py('dict')}({w.py('zip')}({parts[4]}[::2], "
                f"{parts[4]}[1::2])) if {w.py('isinstance')}({parts[4]}, {w.py('tuple')}) else {parts[4]}")
    if 16 in parts:
        w.write(f"{function}.__annotate__ = {parts[16]}")
    w.result(place - 1, function)


@rule(o.IMPORT_NAME)
def _(w: Writer, op: Op) -> None:
    w.result(2, f"{w.py('__import__')}({op.arg!r}, {w.py('globals')}(), None, {w.slot(1)}, {w.slot(2)})")


@rule(o.IMPORT_FROM)
def _(w: Writer, op: Op) -> None:
    w.new(f"{w.helper('import_from')}({w.slot(1)}, {op.arg!r})")


@rule(o.IMPORT_STAR)
def _(w: Writer, op: Op) -> None:
    w.write(f"{w.helper('import_star')}({w.slot(1)}, {w.mapping()})")
    w.drop(1)


_INTRINSICS_1 = {
    "unary_positive": "+ {0}",
    "list_to_tuple": "{py}tuple({0})",
}
_STARS = {"typevar": "", "typevartuple": "*", "paramspec": "**"}


@rule(o.INTRINSIC_1)
def _(w: Writer, op: Op) -> None:
    if op.arg == "import_star":
        w.write(f"{w.helper('import_star')}({w.slot(1)}, {w.mapping()})")
        w.write(f"{w.slot(1)} = None")
    elif op.arg == "print":
        w.result(1, f"{w.py('__import__')}('sys').displayhook({w.slot(1)})")
    elif op.arg == "typealias":
        w.result(1, f"{w.helper('type_alias')}({w.slot(1)})")
    elif op.arg == "subscript_generic":
        w.result(1, f"{w.helper('generic_base')}({w.slot(1)})")
    elif op.arg in _STARS:
        w.result(1, f"{w.helper('type_parameter')}({_STARS[op.arg]!r}, {w.slot(1)})")
    elif op.arg in _INTRINSICS_1:
        w.result(1, _INTRINSICS_1[op.arg].format(w.slot(1), py=f"{w.prefix}py."))
    else:
        raise CannotDecompile(FALLBACK, f"{op!r} at offset {op.offset}")


@rule(o.INTRINSIC_2)
def _(w: Writer, op: Op) -> None:
    if op.arg == "prep_reraise_star":
        w.result(2, f"{w.helper('join_groups')}({w.slot(2)}, {w.slot(1)})")
    elif op.arg == "set_function_type_params":
        w.write(f"{w.slot(2)}.__type_params__ = {w.slot(1)}")
        w.drop(1)
    elif op.arg in ("typevar_with_bound", "typevar_with_constraints"):
        kind = BOUND if op.arg == "typevar_with_bound" else CONSTRAINED
        w.result(2, f"{w.helper('type_parameter')}('', {w.slot(2)}, {kind!r}, {w.slot(1)})", kind)
    elif op.arg == "set_typeparam_default":
        kind = w.tags[-2]
        w.result(2, f"{w.helper('with_default')}({w.slot(2)}, {kind!r}, {w.slot(1)})", kind)
    else:
        raise CannotDecompile(FALLBACK, f"{op!r} at offset {op.offset}")


@rule(o.SETUP_ANNOTATIONS)
def _(w: Writer, op: Op) -> None:
    w.write(f"{w.py('locals')}().setdefault('__annotations__', {{}})")


@rule(o.PRINT_EXPR)
def _(w: Writer, op: Op) -> None:
    w.write(f"{w.py('__import__')}('sys').displayhook({w.slot(1)})")
    w.drop(1)
