"""The steps of ``match``."""

from __future__ import annotations

from ....bytecode import operations as o
from ....bytecode.operations import Op
from ...rules import registrar
from ..writer import Rule, Writer

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule(o.GET_LEN)
def _(w: Writer, op: Op) -> None:
    w.new(f"{w.py('len')}({w.slot(1)})")


@rule(o.MATCH_MAPPING)
def _(w: Writer, op: Op) -> None:
    w.new(f"{w.helper('is_mapping')}({w.slot(1)})")


@rule(o.MATCH_SEQUENCE)
def _(w: Writer, op: Op) -> None:
    w.new(f"{w.helper('is_sequence')}({w.slot(1)})")


@rule(o.MATCH_KEYS)
def _(w: Writer, op: Op) -> None:
    w.new(f"{w.helper('match_keys')}({w.slot(2)}, {w.slot(1)})")


@rule(o.MATCH_CLASS)
def _(w: Writer, op: Op) -> None:
    w.result(3, f"{w.helper('match_class')}({w.slot(3)}, {w.slot(2)}, {op.arg}, {w.slot(1)})")


@rule(o.COPY_DICT_WITHOUT_KEYS)
def _(w: Writer, op: Op) -> None:
    keys = w.slot(1)
    w.write(f"{keys} = {{k: v for k, v in {w.slot(2)}.items() if k not in {keys}}}")
