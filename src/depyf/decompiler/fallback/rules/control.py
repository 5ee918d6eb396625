"""Iterators, generators, handlers, ``with``."""

from __future__ import annotations

from ....bytecode import operations as o
from ....bytecode.operations import Op
from ...rules import registrar
from ..writer import LASTI, PLAIN, Rule, Writer

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


@rule(o.GET_ITER)
def _(w: Writer, op: Op) -> None:
    w.result(1, f"{w.py('iter')}({w.slot(1)})")


@rule(o.YIELD)
def _(w: Writer, op: Op) -> None:
    w.result(1, f"yield {w.slot(1)}")


@rule(o.YIELD_FROM)
def _(w: Writer, op: Op) -> None:
    w.result(1, f"yield from {w.slot(1)}")


@rule(o.AWAIT)
def _(w: Writer, op: Op) -> None:
    w.result(1, f"await {w.slot(1)}")


@rule(o.GET_AITER)
def _(w: Writer, op: Op) -> None:
    w.result(1, f"{w.py('aiter')}({w.slot(1)})")


@rule(o.GET_ANEXT_AWAIT)
def _(w: Writer, op: Op) -> None:
    w.new(f"await {w.py('anext')}({w.slot(1)})")


@rule(o.END_ASYNC_FOR)
def _(w: Writer, op: Op) -> None:
    exception = w.slot(1)
    w.write(f"if not {w.py('isinstance')}({exception}, {w.py('StopAsyncIteration')}):")
    w.indent += 1
    raise_again(w, exception)
    w.indent -= 1
    w.drop(2)


def raise_again(w: Writer, exception: str) -> None:
    """Write a raise that leaves ``__context__`` alone.

    A plain ``raise e`` would set it (CPython's Python/errors.c, ``_PyErr_SetObject``).
    """
    w.write(f"{w.prefix}context = {exception}.__context__")
    w.write("try:")
    w.write(f"    raise {exception}")
    w.write("finally:")
    w.write(f"    {exception}.__context__ = {w.prefix}context")


@rule(o.PUSH_EXC_INFO)
def _(w: Writer, op: Op) -> None:
    exception = w.slot(1)
    w.tags.append(PLAIN)
    w.write(f"{w.slot(1)} = {exception}")
    w.write(f"{w.slot(2)} = None")


@rule(o.POP_EXCEPT)
def _(w: Writer, op: Op) -> None:
    w.drop(1)


@rule(o.CHECK_EXC_MATCH)
def _(w: Writer, op: Op) -> None:
    w.write(f"{w.slot(1)} = {w.helper('matches')}({w.slot(2)}, {w.slot(1)})")


@rule(o.CHECK_EG_MATCH)
def _(w: Writer, op: Op) -> None:
    w.write(f"{w.slot(2)}, {w.slot(1)} = {w.helper('split_group')}({w.slot(2)}, {w.slot(1)})")


@rule(o.PREP_RERAISE_STAR)
def _(w: Writer, op: Op) -> None:
    w.result(2, f"{w.helper('join_groups')}({w.slot(2)}, {w.slot(1)})")


_PLAIN = ("__enter__", "__exit__", "context manager")
_ASYNC = ("__aenter__", "__aexit__", "asynchronous context manager")


def _enter(w: Writer, asynchronous: bool) -> None:
    enter, leave, protocol = _ASYNC if asynchronous else _PLAIN
    if w.code.version >= (3, 14):
        _enter_later(w, asynchronous)
        return
    error = f"{{!r}} object does not support the {protocol} protocol"
    manager, special = w.slot(1), w.helper("special")
    missing = (enter, leave)
    kind = "AttributeError"
    if w.code.version >= (3, 11):
        kind, missing = "TypeError", (error, f"{error} (missed {leave} method)")
    method = f"{w.prefix}method"
    w.write(f"{method} = {special}({manager}, {enter!r}, {w.py(kind)}, {missing[0]!r})")
    w.tags.append(PLAIN)
    w.write(f"{w.slot(1)} = {special}({manager}, {leave!r}, {w.py(kind)}, {missing[1]!r})")
    w.write(f"{w.slot(2)}, {w.slot(1)} = {w.slot(1)}, {method}()")


def _enter_later(w: Writer, asynchronous: bool) -> None:
    """From 3.14 on the exit is asked for first (``codegen_with_inner`` in codegen.c)."""
    enter, leave, protocol = _ASYNC if asynchronous else _PLAIN
    *others, other = _PLAIN if asynchronous else _ASYNC
    hint = f" but it supports the {other} protocol. Did you mean to use '{'with' if asynchronous else 'async with'}'?"
    manager = w.slot(1)
    more = f"{protocol!r}, {tuple(others)!r}, {hint!r}"
    w.write(f"{w.prefix}method = {w.helper('manager_method')}({manager}, {leave!r}, {more})")
    w.tags.append(PLAIN)
    w.write(f"{w.slot(1)} = {w.helper('manager_method')}({manager}, {enter!r}, {more})()")
    w.write(f"{w.slot(2)} = {w.prefix}method")


@rule(o.BEFORE_WITH)
def _(w: Writer, op: Op) -> None:
    _enter(w, False)


@rule(o.BEFORE_ASYNC_WITH)
def _(w: Writer, op: Op) -> None:
    _enter(w, True)


@rule(o.WITH_EXCEPT_START)
def _(w: Writer, op: Op) -> None:
    leave = w.slot(4 if LASTI in w.tags[-3:-2] else 3)  # (hostile code may have nothing there)
    exception = w.slot(1)
    w.new(f"{leave}({w.py('type')}({exception}), {exception}, {exception}.__traceback__)")
