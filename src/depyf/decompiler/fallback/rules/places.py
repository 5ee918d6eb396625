"""Constants, variables, attributes, items; operators; tuples, lists, sets, dicts and strings."""

from __future__ import annotations

from ....bytecode import operations as o
from ....bytecode.code import Code
from ....bytecode.operations import Op
from ...errors import FALLBACK, CannotDecompile
from ...rules import registrar
from ..helpers import OF_THE_FRAME
from ..writer import CELL, CELLS, CODE, MAYBE_UNBOUND, PLAIN, Rule, Writer

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


# --- Operators and comparisons -----------------------------------------------------------------------
@rule(o.GETITEM)
def _(w: Writer, op: Op) -> None:
    w.result(2, f"{w.slot(2)}[{w.slot(1)}]")


@rule(o.SETITEM)
def _(w: Writer, op: Op) -> None:
    w.write(f"{w.slot(2)}[{w.slot(1)}] = {w.slot(3)}")
    w.drop(3)


@rule(o.DELITEM)
def _(w: Writer, op: Op) -> None:
    w.write(f"del {w.slot(2)}[{w.slot(1)}]")
    w.drop(2)


@rule(o.BINARY, o.COMPARE)
def _(w: Writer, op: Op) -> None:
    w.result(2, f"{w.slot(2)} {op.arg} {w.slot(1)}")


@rule(o.INPLACE)
def _(w: Writer, op: Op) -> None:
    w.write(f"{w.slot(2)} {op.arg}= {w.slot(1)}")
    w.drop(1)
    w.tags[-1] = PLAIN


@rule(o.UNARY)
def _(w: Writer, op: Op) -> None:
    w.result(1, f"{op.arg} {w.slot(1)}")


@rule(o.IS)
def _(w: Writer, op: Op) -> None:
    w.result(2, f"{w.slot(2)} is{' not' * op.arg} {w.slot(1)}")


@rule(o.IN)
def _(w: Writer, op: Op) -> None:
    w.result(2, f"{w.slot(2)} {'not ' * op.arg}in {w.slot(1)}")


# --- Tuples, lists, sets, dicts and strings: built, filled, unpacked ---------------------------------
@rule(o.BUILD_TUPLE)
def _(w: Writer, op: Op) -> None:
    cells = bool(op.arg) and all(tag.startswith(CELL) for tag in w.tags[-op.arg :])
    names = ",".join(tag[len(CELL) :] for tag in w.tags[-op.arg :]) if cells else ""
    w.result(op.arg, f"({''.join(v + ', ' for v in w.slots(op.arg))})", f"{CELLS} {names}" if cells else PLAIN)


@rule(o.BUILD_LIST)
def _(w: Writer, op: Op) -> None:
    w.result(op.arg, f"[{', '.join(w.slots(op.arg))}]")


@rule(o.BUILD_SET)
def _(w: Writer, op: Op) -> None:
    values = w.slots(op.arg)
    w.result(op.arg, f"{{{', '.join(values)}}}" if values else f"{w.py('set')}()")


@rule(o.BUILD_MAP)
def _(w: Writer, op: Op) -> None:
    values = w.slots(2 * op.arg)
    pairs = ", ".join(f"{k}: {v}" for k, v in zip(values[::2], values[1::2]))
    w.result(2 * op.arg, f"{{{pairs}}}")


@rule(o.BUILD_CONST_KEY_MAP)
def _(w: Writer, op: Op) -> None:
    pairs = ", ".join(f"{w.constant(k)}: {v}" for k, v in zip(op.arg, w.slots(len(op.arg))))
    w.result(len(op.arg), f"{{{pairs}}}")


@rule(o.BUILD_STRING)
def _(w: Writer, op: Op) -> None:
    w.result(op.arg, f"''.join(({''.join(v + ', ' for v in w.slots(op.arg))}))")


@rule(o.BUILD_SLICE)
def _(w: Writer, op: Op) -> None:
    w.result(op.arg, f"{w.py('slice')}({', '.join(w.slots(op.arg))})")


@rule(o.FORMAT)
def _(w: Writer, op: Op) -> None:
    conversion, has_spec = op.arg
    value = w.slot(1 + has_spec) + (f"!{conversion}" if conversion else "")
    w.result(1 + has_spec, f"f'{{{value}:{{{w.slot(1)}}}}}'" if has_spec else f"f'{{{value}}}'")


@rule(o.CONVERT)
def _(w: Writer, op: Op) -> None:
    w.result(1, f"{w.py({'s': 'str', 'r': 'repr', 'a': 'ascii'}[op.arg])}({w.slot(1)})")


_TEMPLATES = "__import__('string.templatelib').templatelib"


@rule(o.BUILD_INTERPOLATION)
def _(w: Writer, op: Op) -> None:
    conversion, has_spec = op.arg
    value, text, *spec = w.slots(2 + has_spec)
    more = "".join(f", {s}" for s in spec)
    w.result(2 + has_spec, f"{w.py(_TEMPLATES)}.Interpolation({value}, {text}, {conversion or None!r}{more})")


@rule(o.BUILD_TEMPLATE)
def _(w: Writer, op: Op) -> None:
    strings, parts = w.slot(2), w.slot(1)
    w.result(2, f"{w.py(_TEMPLATES)}.Template(*[x for p in {w.py('zip')}({strings}, (*{parts}, '')) for x in p])")


@rule(o.LIST_APPEND)
def _(w: Writer, op: Op) -> None:
    w.write(f"{w.py('list')}.append({w.slot(op.arg + 1)}, {w.slot(1)})")
    w.drop(1)


@rule(o.SET_ADD)
def _(w: Writer, op: Op) -> None:
    w.write(f"{w.py('set')}.add({w.slot(op.arg + 1)}, {w.slot(1)})")
    w.drop(1)


@rule(o.MAP_ADD)
def _(w: Writer, op: Op) -> None:
    w.write(f"{w.slot(op.arg + 2)}[{w.slot(2)}] = {w.slot(1)}")
    w.drop(2)


@rule(o.LIST_EXTEND)
def _(w: Writer, op: Op) -> None:
    w.write(f"{w.slot(op.arg + 1)}.extend([*{w.slot(1)}])")
    w.drop(1)


@rule(o.SET_UPDATE)
def _(w: Writer, op: Op) -> None:
    w.write(f"{w.slot(op.arg + 1)}.update({{*{w.slot(1)}}})")
    w.drop(1)


@rule(o.DICT_UPDATE)
def _(w: Writer, op: Op) -> None:
    w.write(f"{w.slot(op.arg + 1)}.update({{**{w.slot(1)}}})")
    w.drop(1)


@rule(o.DICT_MERGE)
def _(w: Writer, op: Op) -> None:
    function = w.slot(op.arg + 3)  # ``callable, args, dict``, with the mapping already popped
    w.write(f"{w.helper('merge')}({w.slot(op.arg + 1)}, {w.slot(1)}, {function})")
    w.drop(1)


@rule(o.BUILD_UNPACK)
def _(w: Writer, op: Op) -> None:
    kind, count = op.arg
    values = w.slots(count)
    if kind == "keywords" and values:  # ``callable, args, mappings``: a key that comes twice raises
        function = w.slot(count + 2)
        w.write(f"{values[0]} = {{**{values[0]}}}")
        for value in values[1:]:
            w.write(f"{w.helper('merge')}({values[0]}, {value}, {function})")
        w.drop(count - 1)
        return
    items = "".join(f"{'**' if kind == 'dict' else '*'}{value}, " for value in values)
    braces = f"{{{items}}}"
    w.result(count, {"list": f"[{items}]", "set": braces, "dict": braces, "keywords": "{}"}.get(kind, f"({items})"))


@rule(o.LIST_TO_TUPLE)
def _(w: Writer, op: Op) -> None:
    w.result(1, f"{w.py('tuple')}({w.slot(1)})")


def _unpack(w: Writer, before: int, after: int | None) -> None:
    sequence = w.slot(1)
    w.drop(1)
    count = before + (0 if after is None else 1 + after)
    w.tags.extend([PLAIN] * count)
    targets = [w.slot(place) for place in range(1, count + 1)]
    if after is not None:
        targets[before] = "*" + targets[before]
    w.write(f"[{', '.join(targets)}] = {sequence}")


@rule(o.UNPACK)
def _(w: Writer, op: Op) -> None:
    _unpack(w, op.arg, None)


@rule(o.UNPACK_EX)
def _(w: Writer, op: Op) -> None:
    _unpack(w, *op.arg)
