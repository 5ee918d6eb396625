"""Iterators, generators, handlers, ``with``, ``match``; calls; values moved on the stack."""

from __future__ import annotations

from ....bytecode import operations as o
from ....bytecode.operations import Op
from ...errors import FALLBACK, CannotDecompile
from ...generics import HIDDEN
from ...names import legal
from ...rules import registrar
from ..writer import BOUND, CELLS, CODE, CONSTRAINED, LASTI, PLAIN, Rule, Writer

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


# --- The steps of ``match`` --------------------------------------------------------------------------
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


# --- Values dropped, copied, moved on the stack ------------------------------------------------------
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


# --- Calls, functions, imports, intrinsics -----------------------------------------------------------
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
