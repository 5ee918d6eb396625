"""Values dropped, copied, moved on the stack."""

from __future__ import annotations

from ....bytecode import operations as o
from ....bytecode.operations import Op
from ...rules import registrar
from ..writer import CODE, Rule, Writer

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule(o.POP)
def _(w: Writer, op: Op) -> None:
    top = w.slot(1)
    if not w.tags[-1].startswith(CODE):
        w.write(f"{top} = None")  # so that it lives no longer than on the stack
    w.drop(1)


@rule(o.COPY)
def _(w: Writer, op: Op) -> None:
    w.new(w.slot(op.arg), w.tags[-op.arg])


@rule(o.SWAP)
def _(w: Writer, op: Op) -> None:
    if op.arg < 2:
        return
    a, b = w.slot(1), w.slot(op.arg)
    w.write(f"{a}, {b} = {b}, {a}")
    w.tags[-1], w.tags[-op.arg] = w.tags[-op.arg], w.tags[-1]


@rule(o.ROT)
def _(w: Writer, op: Op) -> None:
    places = w.slots(op.arg)
    w.write(f"{', '.join(places)} = {', '.join(places[-1:] + places[:-1])}")
    w.tags[-op.arg :] = w.tags[-1:] + w.tags[-op.arg : -1]
