"""Constants, variables, attributes, items."""

from __future__ import annotations

from ....bytecode import operations as o
from ....bytecode.code import Code
from ....bytecode.operations import Op
from ...errors import FALLBACK, CannotDecompile
from ...rules import registrar
from ..helpers import OF_THE_FRAME
from ..writer import CELL, CODE, MAYBE_UNBOUND, Rule, Writer

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule(o.CONST)
def _(w: Writer, op: Op) -> None:
    if isinstance(op.arg, Code):
        w.nested.append(("function", op.arg))
        w.tags.append(f"{CODE}{len(w.nested) - 1}")
        return
    w.new(w.constant(op.arg))


@rule(o.LOAD_FAST, o.LOAD_DEREF, o.LOAD_CLASSDEREF)
def _(w: Writer, op: Op) -> None:
    w.new(w.name(op.arg))


@rule(o.LOAD_NAME)
def _(w: Writer, op: Op) -> None:
    if w.can_say(op.arg):
        w.new(w.name(op.arg))
    else:
        w.new(f"{w.helper('load_name')}({op.arg!r}, {w.names_aside()}, {w.py('globals')}())")


@rule(o.LOAD_GLOBAL)
def _(w: Writer, op: Op) -> None:
    if op.arg in w.fast or not w.can_say(op.arg):
        value = f"{w.helper('global_value')}({op.arg!r}, {w.py('globals')}())"
    else:
        value = w.name(op.arg)
    if op.arg in OF_THE_FRAME:
        # ``locals`` and the like see the function's own locals, not what the loop keeps.
        own = f"{w.helper('own_locals')}({w.py('locals')}(), {tuple(sorted(w.fast))!r})"
        value = f"{w.helper('frame_builtin')}({value}, {own}, {w.py('globals')}())"
    w.new(value)


@rule(o.LOAD_FROM_DICT_OR_GLOBALS, o.LOAD_FROM_DICT_OR_DEREF)
def _(w: Writer, op: Op) -> None:
    top, name = w.slot(1), op.arg
    if op.kind is o.LOAD_FROM_DICT_OR_GLOBALS and not w.can_say(name):
        value = f"{w.helper('global_value')}({name!r}, {w.py('globals')}())"
    else:
        value = w.name(name)
    w.write(f"{top} = {top}[{name!r}] if {name!r} in {top} else {value}")


def _outside(w: Writer, op: Op) -> str:
    """Return the dictionary to write for a name that cannot be written: ``globals()`` or our own; else ``""``."""
    if w.can_say(op.arg):
        return ""
    if op.kind in (o.STORE_GLOBAL, o.DELETE_GLOBAL):
        return f"{w.py('globals')}()"
    return w.names_aside() if op.kind in (o.STORE_NAME, o.DELETE_NAME) else ""


@rule(o.STORE_FAST, o.STORE_DEREF, o.STORE_NAME, o.STORE_GLOBAL)
def _(w: Writer, op: Op) -> None:
    outside, value = _outside(w, op), w.slot(1)
    name = f"{outside}[{op.arg!r}]" if outside else w.name(op.arg)
    if w.tags[-1] == MAYBE_UNBOUND:
        w.write(f"if {value} is {w.prefix}unbound:")
        w.indent += 1
        w.write("try:")
        w.write(f"    del {name}")
        w.write(f"except {w.py('NameError')}:")
        w.write("    pass")
        w.indent -= 1
        w.write("else:")
        w.write(f"    {name} = {value}")
    elif w.tags[-1].startswith(CODE):
        raise CannotDecompile(FALLBACK, f"a code object is stored in {op.arg}")
    else:
        w.write(f"{name} = {value}")
    w.drop(1)


@rule(o.DELETE_FAST, o.DELETE_DEREF, o.DELETE_NAME, o.DELETE_GLOBAL)
def _(w: Writer, op: Op) -> None:
    if outside := _outside(w, op):
        w.write(f"{w.helper('delete_name')}({op.arg!r}, {outside})")
    else:
        w.write(f"del {w.name(op.arg)}")


@rule(o.LOAD_FAST_AND_CLEAR)
def _(w: Writer, op: Op) -> None:
    w.tags.append(MAYBE_UNBOUND)
    value, name = w.slot(1), w.name(op.arg)
    w.write("try:")
    w.write(f"    {value} = {name}")
    w.write(f"    del {name}")
    w.write(f"except {w.py('NameError')}:")
    w.write(f"    {value} = {w.prefix}unbound")


@rule(o.MAKE_CELL)
def _(w: Writer, op: Op) -> None:
    pass  # the variable of an inlined comprehension: its cell is the function's own here


@rule(o.LOAD_CLOSURE)
def _(w: Writer, op: Op) -> None:
    w.new(f"(lambda: {w.name(op.arg)}).__closure__[0]", CELL + op.arg)


@rule(o.LOAD_LOCALS)
def _(w: Writer, op: Op) -> None:
    w.new(f"{w.py('locals')}()")


@rule(o.LOAD_BUILD_CLASS)
def _(w: Writer, op: Op) -> None:
    w.new(w.py("__build_class__"))


@rule(o.LOAD_ASSERTION_ERROR)
def _(w: Writer, op: Op) -> None:
    w.new(w.py("AssertionError"))


@rule(o.LOAD_COMMON_CONSTANT)
def _(w: Writer, op: Op) -> None:
    w.new(w.py(op.arg))


def _attribute(w: Writer, obj: str, name: str) -> str | None:
    return f"{obj}.{name}" if w.can_say(name) else None


@rule(o.LOAD_ATTR)
def _(w: Writer, op: Op) -> None:
    obj = w.slot(1)
    w.result(1, _attribute(w, obj, op.arg) or f"{w.py('getattr')}({obj}, {op.arg!r})")


@rule(o.STORE_ATTR)
def _(w: Writer, op: Op) -> None:
    target = _attribute(w, w.slot(1), op.arg)
    value = w.slot(2)
    w.write(f"{target} = {value}" if target else f"{w.py('setattr')}({w.slot(1)}, {op.arg!r}, {value})")
    w.drop(2)


@rule(o.DELETE_ATTR)
def _(w: Writer, op: Op) -> None:
    target = _attribute(w, w.slot(1), op.arg)
    w.write(f"del {target}" if target else f"{w.py('delattr')}({w.slot(1)}, {op.arg!r})")
    w.drop(1)


@rule(o.LOAD_SUPER_ATTR)
def _(w: Writer, op: Op) -> None:
    name = op.arg[0]
    obj = f"{w.slot(3)}({w.slot(2)}, {w.slot(1)})"
    w.result(3, _attribute(w, obj, name) or f"{w.py('getattr')}({obj}, {name!r})")
