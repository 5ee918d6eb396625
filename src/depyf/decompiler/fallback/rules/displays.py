"""Tuples, lists, sets, dicts and strings: built, filled, unpacked."""

from __future__ import annotations

from ....bytecode import operations as o
from ....bytecode.operations import Op
from ...rules import registrar
from ..writer import CELL, CELLS, PLAIN, Rule, Writer

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


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
