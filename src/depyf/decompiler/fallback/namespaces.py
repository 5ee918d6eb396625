"""The bodies of modules and classes as dispatch loops.

Such a body has no ``return``, its names are items of a mapping (``locals()``), and what a loop needs for
itself would become attributes of the module or class.  So its loop is the body of a function that is given
the mapping, called once and forgotten::

    def __body(__names):
        ...
        __names['x'] = __s0
    __body(locals())
    del __body

What the compiler keeps in fast locals there (the variables of inlined comprehensions, 3.12+) is local to
that function, cells of functions around a class and ``__class__`` are reached through it, and builtins that
look at the frame of their caller (``exec``, ``locals``) are given the mapping.
"""

from __future__ import annotations

import ast

from ...bytecode import operations as o
from ...bytecode.canonical import canonicalise
from ...bytecode.code import Code
from ...bytecode.operations import Op
from ..rules import registrar
from .helpers import OF_THE_FRAME
from .writer import Rule, Writer

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


def run_in_function(body: list[ast.stmt], code: Code, prefix: str) -> list[ast.stmt]:
    """Statements that run ``body`` in the namespace they stand in."""
    statements = ast.parse(
        f"def {prefix}body({prefix}names): pass\n"
        f"{prefix}body(__import__('builtins').locals())\n"
        f"del {prefix}body"
    ).body
    stored = {op.arg for op in canonicalise(code).ops if op.kind in (o.STORE_DEREF, o.DELETE_DEREF)}
    free = [name for name in code.freevars if name in stored and not name.startswith("__class")]
    outer: list[ast.stmt] = [ast.Nonlocal(free)] if free else []
    function = statements[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = outer + body
    return statements


def _frame(w: Writer, name: str, value: str) -> str:
    if name in OF_THE_FRAME:
        return f"{w.helper('frame_builtin')}({value}, {w.mapping()}, {w.py('globals')}())"
    return value


@rule(o.LOAD_NAME)
def _load_name(w: Writer, op: Op) -> None:
    value = f"{w.helper('load_name')}({op.arg!r}, {w.mapping()}, {w.py('globals')}())"
    w.new(_frame(w, op.arg, value))


@rule(o.LOAD_GLOBAL)
def _load_global(w: Writer, op: Op) -> None:
    value = f"{w.helper('load_name')}({op.arg!r}, {w.py('globals')}())"
    w.new(_frame(w, op.arg, value))


@rule(o.LOAD_CLASSDEREF)
def _load_class_deref(w: Writer, op: Op) -> None:
    names = w.mapping()
    if op.arg == ".type_params":
        # the class statement has put them there already
        w.new(f"{names}['__type_params__']")
        return
    w.new(f"{names}[{op.arg!r}] if {op.arg!r} in {names} else {w.name(op.arg)}")


@rule(o.LOAD_LOCALS)
def _load_locals(w: Writer, op: Op) -> None:
    w.new(w.mapping())


@rule(o.LOAD_FROM_DICT_OR_GLOBALS)
def _load_from_dict_or_globals(w: Writer, op: Op) -> None:
    w.result(1, f"{w.helper('load_name')}({op.arg!r}, {w.slot(1)}, {w.py('globals')}())")


@rule(o.STORE_NAME)
def _store_name(w: Writer, op: Op) -> None:
    w.write(f"{w.mapping()}[{op.arg!r}] = {w.slot(1)}")
    w.drop(1)


@rule(o.STORE_GLOBAL)
def _store_global(w: Writer, op: Op) -> None:
    w.write(f"{w.py('globals')}()[{op.arg!r}] = {w.slot(1)}")
    w.drop(1)


@rule(o.DELETE_NAME)
def _delete_name(w: Writer, op: Op) -> None:
    w.write(f"{w.helper('delete_name')}({op.arg!r}, {w.mapping()})")


@rule(o.DELETE_GLOBAL)
def _delete_global(w: Writer, op: Op) -> None:
    w.write(f"{w.helper('delete_name')}({op.arg!r}, {w.py('globals')}())")


@rule(o.SETUP_ANNOTATIONS)
def _setup_annotations(w: Writer, op: Op) -> None:
    names = w.mapping()
    w.write(f"if '__annotations__' not in {names}:")
    w.write(f"    {names}['__annotations__'] = {{}}")
