"""One canonical operation -> statements on the slot variables, as text.

A value never remains an expression, so nothing has to be known of the order of evaluation::

    GET_ITER, stack depth 1    ->    __s0 = iter(__s0)

Most operations are the expression that :mod:`..lift` writes (:data:`LIFTED`), or one row of :data:`TEMPLATES`; the
others have a function in :data:`RULES`. In the bodies of modules and classes names are items of a mapping.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from ...bytecode import operations as o
from ...bytecode.code import Code
from ...bytecode.operations import Op
from ...bytecode.opspec import KEPT, UPDATES, effect, registrar
from ..errors import FALLBACK, CannotDecompile
from ..generics import HIDDEN
from ..lift import LOAD, Scope, State, SymbolicExecutor
from ..names import legal
from ..unparse import unparse
from .helpers import OF_THE_FRAME
from .writer import BOUND, CELL, CELLS, CODE, CONSTRAINED, LASTI, MAYBE_UNBOUND, PLAIN, Writer

Rule = Callable[[Writer, Op], None]
RULES: dict[str, Rule] = {}
rule = registrar(RULES)


def translate(writer: Writer, op: Op) -> None:
    """Write one operation.

    Raises:
        CannotDecompile: it has no form in Python source.
    """
    rule = RULES.get(op.kind)
    if rule is None:
        raise cannot(op)
    before = len(writer.tags)
    rule(writer, op)
    pops, pushes = effect(op)
    if len(writer.tags) - before != pushes - pops:
        raise CannotDecompile(FALLBACK, f"{op!r} at offset {op.offset} left {len(writer.tags)} values")


def cannot(op: Op, why: str = "") -> CannotDecompile:
    """Return the error for an operation without a form in Python source."""
    return CannotDecompile(FALLBACK, f"{op!r} at offset {op.offset}" + (f": {why}" if why else ""))


# --- Operations as lift writes them ------------------------------------------------------------------
LIFTED = (
    o.YIELD, o.YIELD_FROM, o.AWAIT, o.GETITEM, o.SETITEM, o.DELITEM, o.BINARY, o.COMPARE, o.UNARY, o.IS, o.IN,
    o.BUILD_LIST, o.BUILD_SET, o.BUILD_MAP, o.CALL_EX,
)


@rule(*LIFTED)
def lifted(w: Writer, op: Op) -> None:
    """Write an operation as :mod:`..lift` does, on the slots."""
    pops, _ = effect(op)
    state = State([ast.Name(slot, LOAD) for slot in w.slots(pops)])
    SymbolicExecutor(Scope()).run(state, [op])
    w.drop(pops)
    for statement in state.stmts:
        w.write(unparse(statement))
    for value in state.stack:
        assert isinstance(value, ast.expr)
        w.new(unparse(value))


# --- Operations as templates -------------------------------------------------------------------------
#: The value that an operation pushes, or its statement: ``{0}`` is the lowest of the values that it takes, ``{owner}``
#: the container that it updates, ``{p}`` the prefix of helpers and ``{py}`` that of builtins.
TEMPLATES: dict[str, str] = {
    o.LOAD_LOCALS: "{names}",
    o.LOAD_FROM_DICT_OR_GLOBALS: "{p}load_name({arg!r}, {0}, {py}globals())",
    o.LOAD_BUILD_CLASS: "{py}__build_class__",
    o.LOAD_ASSERTION_ERROR: "{py}AssertionError",
    o.LOAD_COMMON_CONSTANT: "{py}{arg}",
    o.BUILD_SLICE: "{py}slice({all})",
    o.BUILD_STRING: "''.join([{all}])",
    o.BUILD_TEMPLATE: "{templates}.Template(*[x for p in {py}zip({0}, (*{1}, '')) for x in p])",
    o.LIST_APPEND: "{py}list.append({owner}, {0})",
    o.SET_ADD: "{py}set.add({owner}, {0})",
    o.MAP_ADD: "{owner}[{0}] = {1}",
    o.LIST_EXTEND: "{owner}.extend([*{0}])",
    o.SET_UPDATE: "{owner}.update({{*{0}}})",
    o.DICT_UPDATE: "{owner}.update({{**{0}}})",
    o.LIST_TO_TUPLE: "{py}tuple({0})",
    o.GET_ITER: "{py}iter({0})",
    o.GET_AITER: "{py}aiter({0})",
    o.GET_ANEXT_AWAIT: "await {py}anext({0})",
    o.CHECK_EXC_MATCH: "{p}matches({0}, {1})",
    o.PREP_RERAISE_STAR: "{p}join_groups({0}, {1})",
    o.GET_LEN: "{py}len({0})",
    o.MATCH_MAPPING: "{p}matched({0}, '{{}}') is not None",
    o.MATCH_SEQUENCE: "{p}matched({0}, '[*_]') is not None",
    o.MATCH_KEYS: "{p}match_keys({0}, {1})",
    o.MATCH_CLASS: "{p}match_class({0}, {1}, {arg}, {2})",
    o.COPY_DICT_WITHOUT_KEYS: "{{k: v for k, v in {0}.items() if k not in {1}}}",
    o.IMPORT_NAME: "{py}__import__({arg!r}, {py}globals(), None, {1}, {0})",
    o.IMPORT_STAR: "{names}.update({p}imported({0}, '*'))",
    o.SETUP_ANNOTATIONS: "if '__annotations__' not in {names}: {names}['__annotations__'] = {{}}",
    o.PRINT_EXPR: "{py}__import__('sys').displayhook({0})",
}
#: Those of attributes: where the name can be written, and where it cannot.
ATTRIBUTES: dict[str, tuple[str, str]] = {
    o.LOAD_ATTR: ("{0}.{arg}", "{py}getattr({0}, {arg!r})"),
    o.STORE_ATTR: ("{1}.{arg} = {0}", "{py}setattr({1}, {arg!r}, {0})"),
    o.DELETE_ATTR: ("del {0}.{arg}", "{py}delattr({0}, {arg!r})"),
    o.IMPORT_FROM: ("{p}imported({0}, {arg!r})[{arg!r}]", "{py}getattr({0}, {arg!r})"),
    o.LOAD_SUPER_ATTR: ("{0}({1}, {2}).{arg}", "{py}getattr({0}({1}, {2}), {arg!r})"),
}
#: Those of the interpreter's functions of one value.
INTRINSICS: dict[str, str] = {
    "import_star": "{names}.update({p}imported({0}, '*'))",
    "print": "{py}__import__('sys').displayhook({0})",
    "typealias": "{p}type_alias({0})",
    "subscript_generic": "{p}generic_base({0})",
    "typevar": "{p}type_parameter('', {0})",
    "typevartuple": "{p}type_parameter('*', {0})",
    "paramspec": "{p}type_parameter('**', {0})",
}
#: The module of template strings.
_TEMPLATES = "__import__('string.templatelib').templatelib"


def fill(w: Writer, op: Op, template: str, arg: object) -> None:
    """Write an operation by its template."""
    pops, pushes = effect(op)
    kept = KEPT.get(op.kind, 0)
    values = w.slots(pops)
    owner = w.slot(op.arg + pops) if op.kind in UPDATES else ""
    text = template.format(*values, all=", ".join(values), owner=owner, arg=arg, p=w.prefix, py=w.py,
                           names=w.mapping(), templates=f"{w.py}{_TEMPLATES}")
    w.drop(pops - kept)
    if pushes > kept:
        w.new(text)
    else:
        w.write(text)


@rule(*TEMPLATES)
def _(w: Writer, op: Op) -> None:
    fill(w, op, TEMPLATES[op.kind], op.arg)


@rule(*ATTRIBUTES)
def _(w: Writer, op: Op) -> None:
    name = op.arg[0] if op.kind is o.LOAD_SUPER_ATTR else op.arg
    plain, otherwise = ATTRIBUTES[op.kind]
    fill(w, op, plain if w.can_say(name) else otherwise, name)


@rule(o.CONVERT)
def _(w: Writer, op: Op) -> None:
    # (An f-string would format the result, too: that of ``str(x)`` may be of a class with its own ``__format__``.)
    fill(w, op, "{py}{arg}({0})", {"s": "str", "r": "repr", "a": "ascii"}[op.arg])


@rule(o.INTRINSIC_1)
def _(w: Writer, op: Op) -> None:
    if op.arg not in INTRINSICS:
        raise cannot(op)
    fill(w, op, INTRINSICS[op.arg], None)


@rule(o.INTRINSIC_2)
def _(w: Writer, op: Op) -> None:
    if op.arg == "set_function_type_params":
        w.write(f"{w.slot(2)}.__type_params__ = {w.slot(1)}")
        w.drop(1)
    elif op.arg in ("typevar_with_bound", "typevar_with_constraints"):
        kind = BOUND if op.arg == "typevar_with_bound" else CONSTRAINED
        w.result(2, f"{w.prefix}type_parameter('', {w.slot(2)}, {kind!r}, {w.slot(1)})", kind)
    elif op.arg == "set_typeparam_default":
        kind = w.tags[-2]
        w.result(2, f"{w.prefix}with_default({w.slot(2)}, {kind!r}, {w.slot(1)})", kind)
    else:
        raise cannot(op)


# --- Constants and variables -------------------------------------------------------------------------
@rule(o.CONST)
def _(w: Writer, op: Op) -> None:
    if isinstance(op.arg, Code):
        w.nested.append(("function", op.arg))
        w.tags.append(f"{CODE}{len(w.nested) - 1}")
        return
    w.new(w.constant(op.arg))


@rule(o.LOAD_FAST, o.LOAD_DEREF)
def _(w: Writer, op: Op) -> None:
    w.new(w.name(op.arg))


@rule(o.LOAD_CLASSDEREF)
def _(w: Writer, op: Op) -> None:
    if w.namespace and op.arg == ".type_params":  # the class statement has put them there already
        w.new(f"{w.mapping()}['__type_params__']")
    elif w.namespace:
        w.new(f"{w.mapping()}[{op.arg!r}] if {op.arg!r} in {w.mapping()} else {w.name(op.arg)}")
    else:
        w.new(w.name(op.arg))


@rule(o.LOAD_NAME, o.LOAD_GLOBAL)
def _(w: Writer, op: Op) -> None:
    name, is_global = op.arg, op.kind is o.LOAD_GLOBAL
    if w.namespace or not w.can_say(name) or is_global and name in w.fast:
        value = f"{w.prefix}load_name({name!r}, {'' if is_global else w.names + ', '}{w.py}globals())"
    else:
        value = w.name(name)
    if name in OF_THE_FRAME and (w.namespace or is_global):
        # ``locals`` and the like see the function's own locals, not the loop's variables.
        own = w.mapping() if w.namespace else f"{w.prefix}own_locals({w.py}locals(), {tuple(sorted(w.fast))!r})"
        value = f"{w.prefix}frame_builtin({value}, {own}, {w.py}globals())"
    w.new(value)


@rule(o.LOAD_FROM_DICT_OR_DEREF)
def _(w: Writer, op: Op) -> None:
    top, name = w.slot(1), op.arg
    w.write(f"{top} = {top}[{name!r}] if {name!r} in {top} else {w.name(name)}")


def outside(w: Writer, op: Op) -> str:
    """Return the dictionary to write for a name that is no variable here: ``globals()`` or the loop's; else ``""``."""
    if not w.namespace and w.can_say(op.arg):
        return ""
    if op.kind in (o.STORE_GLOBAL, o.DELETE_GLOBAL):
        return f"{w.py}globals()"
    return w.names if op.kind in (o.STORE_NAME, o.DELETE_NAME) else ""


@rule(o.STORE_FAST, o.STORE_DEREF, o.STORE_NAME, o.STORE_GLOBAL)
def _(w: Writer, op: Op) -> None:
    dictionary, value = outside(w, op), w.slot(1)
    name = f"{dictionary}[{op.arg!r}]" if dictionary else w.name(op.arg)
    if w.tags[-1] == MAYBE_UNBOUND:
        w.write(f"if {value} is {w.prefix}unbound:\n"
                f"    try: del {name}\n"
                f"    except {w.py}NameError: pass\n"
                f"else: {name} = {value}")
    elif w.tags[-1].startswith(CODE):
        raise CannotDecompile(FALLBACK, f"a code object is stored in {op.arg}")
    else:
        w.write(f"{name} = {value}")
    w.drop(1)


@rule(o.DELETE_FAST, o.DELETE_DEREF, o.DELETE_NAME, o.DELETE_GLOBAL)
def _(w: Writer, op: Op) -> None:
    dictionary = outside(w, op)
    w.write(f"{w.prefix}delete_name({op.arg!r}, {dictionary})" if dictionary else f"del {w.name(op.arg)}")


@rule(o.LOAD_FAST_AND_CLEAR)
def _(w: Writer, op: Op) -> None:
    w.tags.append(MAYBE_UNBOUND)
    value, name = w.slot(1), w.name(op.arg)
    w.write(f"try: {value} = {name}; del {name}\n"
            f"except {w.py}NameError: {value} = {w.prefix}unbound")


@rule(o.MAKE_CELL)
def _(w: Writer, op: Op) -> None:
    pass  # the variable of an inlined comprehension: its cell is the function's own here


@rule(o.LOAD_CLOSURE)
def _(w: Writer, op: Op) -> None:
    w.new(f"(lambda: {w.name(op.arg)}).__closure__[0]", CELL + op.arg)


# --- Tuples, dictionaries, strings, unpacking --------------------------------------------------------
@rule(o.INPLACE)
def _(w: Writer, op: Op) -> None:
    w.write(f"{w.slot(2)} {op.arg}= {w.slot(1)}")
    w.drop(1)
    w.tags[-1] = PLAIN


@rule(o.BUILD_TUPLE)
def _(w: Writer, op: Op) -> None:
    cells = bool(op.arg) and all(tag.startswith(CELL) for tag in w.tags[-op.arg :])
    names = ",".join(tag[len(CELL) :] for tag in w.tags[-op.arg :]) if cells else ""
    w.result(op.arg, f"({''.join(v + ', ' for v in w.slots(op.arg))})", f"{CELLS} {names}" if cells else PLAIN)


@rule(o.BUILD_CONST_KEY_MAP)
def _(w: Writer, op: Op) -> None:
    pairs = ", ".join(f"{w.constant(k)}: {v}" for k, v in zip(op.arg, w.slots(len(op.arg))))
    w.result(len(op.arg), f"{{{pairs}}}")


@rule(o.FORMAT)
def _(w: Writer, op: Op) -> None:
    conversion, has_spec = op.arg
    value = w.slot(1 + has_spec) + (f"!{conversion}" if conversion else "")
    w.result(1 + has_spec, f"f'{{{value}:{{{w.slot(1)}}}}}'" if has_spec else f"f'{{{value}}}'")


@rule(o.BUILD_INTERPOLATION)
def _(w: Writer, op: Op) -> None:
    conversion, has_spec = op.arg
    value, text, *spec = w.slots(2 + has_spec)
    more = "".join(f", {s}" for s in spec)
    w.result(2 + has_spec, f"{w.py}{_TEMPLATES}.Interpolation({value}, {text}, {conversion or None!r}{more})")


@rule(o.DICT_MERGE)
def _(w: Writer, op: Op) -> None:
    function = w.slot(op.arg + 3)  # ``callable, args, dict``, with the mapping already popped
    w.write(f"{w.prefix}merge({w.slot(op.arg + 1)}, {w.slot(1)}, {function})")
    w.drop(1)


@rule(o.BUILD_UNPACK)
def _(w: Writer, op: Op) -> None:
    kind, count = op.arg
    if kind != "keywords" or not count:
        lifted(w, op)
        return
    # ``callable, args, mappings``: a key that comes twice raises
    (first, *others), function = w.slots(count), w.slot(count + 2)
    w.write(f"{first} = {{**{first}}}")
    for other in others:
        w.write(f"{w.prefix}merge({first}, {other}, {function})")
    w.drop(count - 1)


@rule(o.UNPACK, o.UNPACK_EX)
def _(w: Writer, op: Op) -> None:
    sequence = w.slot(1)
    _, count = effect(op)
    w.drop(1)
    w.tags.extend([PLAIN] * count)
    targets = w.slots(count)[::-1]
    if op.kind is o.UNPACK_EX:
        targets[op.arg[0]] = "*" + targets[op.arg[0]]
    w.write(f"[{', '.join(targets)}] = {sequence}")


# --- Exceptions and contexts -------------------------------------------------------------------------
def raise_again(prefix: str, exception: str) -> str:
    """Return a raise that leaves ``__context__`` alone.

    A plain ``raise e`` would set it (CPython's Python/errors.c, ``_PyErr_SetObject``).
    """
    return (f"{prefix}context = {exception}.__context__\n"
            f"try: raise {exception}\n"
            f"finally: {exception}.__context__ = {prefix}context")


@rule(o.END_ASYNC_FOR)
def _(w: Writer, op: Op) -> None:
    exception = w.slot(1)
    again = raise_again(w.prefix, exception).replace("\n", "\n    ")
    w.write(f"if not {w.py}isinstance({exception}, {w.py}StopAsyncIteration):\n    {again}")
    w.drop(2)


@rule(o.PUSH_EXC_INFO)
def _(w: Writer, op: Op) -> None:
    w.new(w.slot(1))
    w.write(f"{w.slot(2)} = None")


@rule(o.POP_EXCEPT)
def _(w: Writer, op: Op) -> None:
    w.drop(1)


@rule(o.CHECK_EG_MATCH)
def _(w: Writer, op: Op) -> None:
    w.write(f"{w.slot(2)}, {w.slot(1)} = {w.prefix}split_group({w.slot(2)}, {w.slot(1)})")


@rule(o.BEFORE_WITH, o.BEFORE_ASYNC_WITH)
def _(w: Writer, op: Op) -> None:
    is_async = op.kind is o.BEFORE_ASYNC_WITH
    enter, leave = methods = ("__aenter__", "__aexit__") if is_async else ("__enter__", "__exit__")
    if w.code.version >= (3, 14):  # the exit is looked up first (``codegen_with_inner`` in codegen.c)
        methods = methods[::-1]
    manager = w.slot(1)
    w.new(f"{w.prefix}methods({manager}, {methods!r})")
    found = w.slot(1)
    w.write(f"if {found} is None:\n"
            f"    {'async ' * is_async}with {manager}: pass\n"  # (raises the error)
            f"{manager}, {found} = {found}[{leave!r}], {found}[{enter!r}]()")


@rule(o.WITH_EXCEPT_START)
def _(w: Writer, op: Op) -> None:
    leave = w.slot(4 if LASTI in w.tags[-3:-2] else 3)  # (hostile code may have nothing there)
    exception = w.slot(1)
    w.new(f"{leave}({w.py}type({exception}), {exception}, {exception}.__traceback__)")


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


# --- Calls and functions -----------------------------------------------------------------------------
@rule(o.CALL)
def _(w: Writer, op: Op) -> None:
    positional, keywords = op.arg
    function, *values = w.slots(1 + positional + len(keywords))
    arguments = values[:positional]
    for name, value in zip(keywords, values[positional:]):
        arguments.append(f"{name}={value}" if w.can_say(name) else f"**{{{name!r}: {value}}}")
    w.result(1 + len(values), f"{function}({', '.join(arguments)})")


@rule(o.MAKE_FUNCTION)
def _(w: Writer, op: Op) -> None:
    if not w.tags[-1].startswith(CODE):
        raise cannot(op, "the code is not a constant")
    index = int(w.tags[-1][len(CODE) :])
    _, code = w.nested[index]
    place = 2
    parts: dict[int, str] = {}
    for flag in (8, 16, 4, 2, 1):
        if op.arg & flag:
            parts[flag] = w.slot(place)
            if flag == 8 and w.tags[-place] != f"{CELLS} {','.join(code.freevars)}":
                raise cannot(op, "a closure of cells from elsewhere")
            place += 1
    if not code.flags & 0x2 and not code.flags & 0x1:  # neither NEWLOCALS nor OPTIMIZED: a class body
        # A class statement in a function that never runs: only its body is wanted. The names that the statement would
        # bind are declared, so that they mean the same in the body.
        w.nested[index] = ("class", code)
        w.write(f"def {w.prefix}class():\n"
                f"    {'nonlocal' if code.name in w.fast else 'global'} {legal(code.name)}\n"
                f"    class {legal(code.name)}:\n"
                f"        {w.prefix}define_{index}")
        w.result(place - 1, f"{w.prefix}class_body({w.prefix}class, {code.qualname!r}, {w.py}globals())")
        return
    function = f"{w.prefix}function"
    w.write(f"{w.prefix}define_{index}\n{function} = {w.prefix}defined_{index}")
    if code.name.startswith(HIDDEN):
        # What it defines is called as if that were around it.
        outer = code.qualname.rpartition(".")[0]
        w.write(f"{function}.__code__ = {w.prefix}requalified({function}.__code__, "
                f"{function}.__qualname__ + '.<locals>', {outer!r})")
    w.write(f"{w.prefix}named({function}, {code.name!r}, {code.qualname!r})")
    if 4 in parts:  # a tuple of names and values on 3.10 and later, a dictionary before
        parts[4] = (f"{w.py}dict({w.py}zip({parts[4]}[::2], {parts[4]}[1::2])) "
                    f"if {w.py}isinstance({parts[4]}, {w.py}tuple) else {parts[4]}")
    for flag, attribute in (1, "defaults"), (2, "kwdefaults"), (4, "annotations"), (16, "annotate"):
        if flag in parts:
            w.write(f"{function}.__{attribute}__ = {parts[flag]}")
    w.result(place - 1, function)
