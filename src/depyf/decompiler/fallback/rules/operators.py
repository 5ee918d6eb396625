"""Operators and comparisons."""

from __future__ import annotations

from ....bytecode import operations as o
from ....bytecode.operations import Op
from ...rules import registrar
from ..writer import PLAIN, Rule, Writer

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


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
