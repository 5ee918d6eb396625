"""One canonical operation -> statements on the slot variables, as text.

``RULES[kind]`` is a function of a :class:`~depyf.decompiler.dispatch.writer.Writer` and the op. The writer
knows the depth of the stack and, for the few operations that need it, what kind of value a slot holds.
"""

from __future__ import annotations

from ...bytecode import operations as o
from ...bytecode.code import Code
from ...bytecode.operations import Op
from ...flow.stack import effect
from ..generics import HIDDEN
from ..names import is_name, legal
from ..rules import registrar
from . import namespaces
from .helpers import OF_THE_FRAME
from .writer import BOUND, CELL, CELLS, CODE, CONSTRAINED, LASTI, MAYBE_UNBOUND, PLAIN, Rule, Untranslatable, Writer

RULES: dict[str, Rule] = {}
rule = registrar(RULES)


def translate(writer: Writer, op: Op) -> None:
    """Writes one operation.

    Raises:
        Untranslatable: it has no form in Python source.
    """
    found = namespaces.RULES.get(op.kind) if writer.namespace else None
    found = found or RULES.get(op.kind)
    if found is None:
        raise Untranslatable(f"{op!r} at offset {op.offset}")
    before = len(writer.tags)
    found(writer, op)
    pops, pushes = effect(op)
    if len(writer.tags) - before != pushes - pops:
        raise Untranslatable(f"{op!r} at offset {op.offset} left {len(writer.tags)} values")


# --- names ----------------------------------------------------------------------------------------
@rule(o.CONST)
def _(w: Writer, op: Op) -> None:
    if isinstance(op.arg, Code):
        w.nested.append(("function", op.arg))
        w.tags.append(f"{CODE}{len(w.nested) - 1}")
        return
    w.new(w.constant(op.arg))


@rule(o.LOAD_FAST, o.LOAD_DEREF, o.LOAD_NAME, o.LOAD_CLASSDEREF)
def _(w: Writer, op: Op) -> None:
    w.new(w.name(op.arg))


@rule(o.LOAD_GLOBAL)
def _(w: Writer, op: Op) -> None:
    value = w.name(op.arg)
    if op.arg in w.fast:
        value = f"{w.helper('global_value')}({op.arg!r}, {w.py('globals')}())"
    if op.arg in OF_THE_FRAME:
        # ``locals`` and the like see the function's own locals, not what the loop keeps.
        own = f"{w.helper('own_locals')}({w.py('locals')}(), {tuple(sorted(w.fast))!r})"
        value = f"{w.helper('frame_builtin')}({value}, {own}, {w.py('globals')}())"
    w.new(value)


@rule(o.LOAD_FROM_DICT_OR_GLOBALS, o.LOAD_FROM_DICT_OR_DEREF)
def _(w: Writer, op: Op) -> None:
    top = w.slot(1)
    w.write(f"{top} = {top}[{op.arg!r}] if {op.arg!r} in {top} else {w.name(op.arg)}")


@rule(o.STORE_FAST, o.STORE_DEREF, o.STORE_NAME, o.STORE_GLOBAL)
def _(w: Writer, op: Op) -> None:
    name, value = w.name(op.arg), w.slot(1)
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
        raise Untranslatable(f"a code object is stored in {op.arg}")
    else:
        w.write(f"{name} = {value}")
    w.drop(1)


@rule(o.DELETE_FAST, o.DELETE_DEREF, o.DELETE_NAME, o.DELETE_GLOBAL)
def _(w: Writer, op: Op) -> None:
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


def _attribute(obj: str, name: str) -> str | None:
    plain = is_name(name)
    return f"{obj}.{name}" if plain else None


@rule(o.LOAD_ATTR)
def _(w: Writer, op: Op) -> None:
    obj = w.slot(1)
    w.result(1, _attribute(obj, op.arg) or f"{w.py('getattr')}({obj}, {op.arg!r})")


@rule(o.STORE_ATTR)
def _(w: Writer, op: Op) -> None:
    target = _attribute(w.slot(1), op.arg)
    value = w.slot(2)
    w.write(f"{target} = {value}" if target else f"{w.py('setattr')}({w.slot(1)}, {op.arg!r}, {value})")
    w.drop(2)


@rule(o.DELETE_ATTR)
def _(w: Writer, op: Op) -> None:
    target = _attribute(w.slot(1), op.arg)
    w.write(f"del {target}" if target else f"{w.py('delattr')}({w.slot(1)}, {op.arg!r})")
    w.drop(1)


@rule(o.LOAD_SUPER_ATTR)
def _(w: Writer, op: Op) -> None:
    name = op.arg[0]
    obj = f"{w.slot(3)}({w.slot(2)}, {w.slot(1)})"
    w.result(3, _attribute(obj, name) or f"{w.py('getattr')}({obj}, {name!r})")


# --- operators ------------------------------------------------------------------------------------
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


# --- building -------------------------------------------------------------------------------------
def _slots(w: Writer, count: int) -> list[str]:
    return [w.slot(place) for place in range(count, 0, -1)]


@rule(o.BUILD_TUPLE)
def _(w: Writer, op: Op) -> None:
    cells = bool(op.arg) and all(tag.startswith(CELL) for tag in w.tags[-op.arg :])
    names = ",".join(tag[len(CELL) :] for tag in w.tags[-op.arg :]) if cells else ""
    w.result(op.arg, f"({''.join(v + ', ' for v in _slots(w, op.arg))})", f"{CELLS} {names}" if cells else PLAIN)


@rule(o.BUILD_LIST)
def _(w: Writer, op: Op) -> None:
    w.result(op.arg, f"[{', '.join(_slots(w, op.arg))}]")


@rule(o.BUILD_SET)
def _(w: Writer, op: Op) -> None:
    values = _slots(w, op.arg)
    w.result(op.arg, f"{{{', '.join(values)}}}" if values else f"{w.py('set')}()")


@rule(o.BUILD_MAP)
def _(w: Writer, op: Op) -> None:
    values = _slots(w, 2 * op.arg)
    pairs = ", ".join(f"{k}: {v}" for k, v in zip(values[::2], values[1::2]))
    w.result(2 * op.arg, f"{{{pairs}}}")


@rule(o.BUILD_CONST_KEY_MAP)
def _(w: Writer, op: Op) -> None:
    pairs = ", ".join(f"{w.constant(k)}: {v}" for k, v in zip(op.arg, _slots(w, len(op.arg))))
    w.result(len(op.arg), f"{{{pairs}}}")


@rule(o.BUILD_STRING)
def _(w: Writer, op: Op) -> None:
    w.result(op.arg, f"''.join(({''.join(v + ', ' for v in _slots(w, op.arg))}))")


@rule(o.BUILD_SLICE)
def _(w: Writer, op: Op) -> None:
    w.result(op.arg, f"{w.py('slice')}({', '.join(_slots(w, op.arg))})")


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
    value, text, *spec = _slots(w, 2 + has_spec)
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
    values = _slots(w, count)
    if kind == "keywords":  # ``callable, args, mappings``: a key that comes twice raises
        function = w.slot(count + 2)
        w.write(f"{values[0]} = {{**{values[0]}}}")
        for value in values[1:]:
            w.write(f"{w.helper('merge')}({values[0]}, {value}, {function})")
        w.drop(count - 1)
        return
    items = "".join(f"{'**' if kind == 'dict' else '*'}{value}, " for value in values)
    w.result(count, {"list": f"[{items}]", "set": f"{{{items}}}", "dict": f"{{{items}}}"}.get(kind, f"({items})"))


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


# --- calls, functions, imports --------------------------------------------------------------------
@rule(o.CALL)
def _(w: Writer, op: Op) -> None:
    positional, keywords = op.arg
    count = positional + len(keywords)
    values = _slots(w, count)
    arguments = values[:positional]
    for name, value in zip(keywords, values[positional:]):
        plain = is_name(name)
        arguments.append(f"{name}={value}" if plain else f"**{{{name!r}: {value}}}")
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
        raise Untranslatable(f"{op!r} at offset {op.offset}: the code is not a constant")
    index = int(w.tags[-1][len(CODE) :])
    _, code = w.nested[index]
    flags, place = op.arg, 2
    parts: dict[int, str] = {}
    for flag in (8, 16, 4, 2, 1):
        if flags & flag:
            parts[flag] = w.slot(place)
            if flag == 8 and w.tags[-place] != f"{CELLS} {','.join(code.freevars)}":
                raise Untranslatable(f"{op!r} at offset {op.offset}: a closure of cells from elsewhere")
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
        raise Untranslatable(f"{op!r} at offset {op.offset}")


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
        raise Untranslatable(f"{op!r} at offset {op.offset}")


@rule(o.SETUP_ANNOTATIONS)
def _(w: Writer, op: Op) -> None:
    w.write(f"{w.py('locals')}().setdefault('__annotations__', {{}})")


@rule(o.PRINT_EXPR)
def _(w: Writer, op: Op) -> None:
    w.write(f"{w.py('__import__')}('sys').displayhook({w.slot(1)})")
    w.drop(1)


# --- the stack ------------------------------------------------------------------------------------
@rule(o.POP)
def _(w: Writer, op: Op) -> None:
    if not w.tags[-1].startswith(CODE):
        w.write(f"{w.slot(1)} = None")  # so that it lives no longer than on the stack
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
    places = _slots(w, op.arg)
    w.write(f"{', '.join(places)} = {', '.join(places[-1:] + places[:-1])}")
    w.tags[-op.arg :] = w.tags[-1:] + w.tags[-op.arg : -1]


# --- iteration, generators ------------------------------------------------------------------------
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


# --- exceptions, with -----------------------------------------------------------------------------
def raise_again(w: Writer, exception: str) -> None:
    """Raises without touching ``__context__``, which a plain ``raise e`` would set."""
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


def _enter(w: Writer, enter: str, leave: str, error: str) -> None:
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


@rule(o.BEFORE_WITH)
def _(w: Writer, op: Op) -> None:
    _enter(w, "__enter__", "__exit__", "{!r} object does not support the context manager protocol")


@rule(o.BEFORE_ASYNC_WITH)
def _(w: Writer, op: Op) -> None:
    _enter(w, "__aenter__", "__aexit__", "{!r} object does not support the asynchronous context manager protocol")


@rule(o.WITH_EXCEPT_START)
def _(w: Writer, op: Op) -> None:
    leave = w.slot(4 if w.tags[-3] == LASTI else 3)
    exception = w.slot(1)
    w.new(f"{leave}({w.py('type')}({exception}), {exception}, {exception}.__traceback__)")


# --- match ----------------------------------------------------------------------------------------
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
