"""Lift's executor on the stack of a loop: what waits on it is in variables, one for each place.

A value remains an expression only while the operations evaluate one expression, from its first part to its last: such
an expression is evaluated in their order. Before anything else happens (a statement, a copy, the end of the block) all
that waits is assigned to the variables of its place, from below::

    LOAD_FAST a; LOAD_FAST b; CALL; COPY 1; STORE_FAST c    ->    __s0 = a(b); __s1 = __s0; c = __s1

What an operation means, :mod:`..lift` says. In :data:`TEXTS` are those that it leaves to structure (``with``, handlers,
``match``) and those on what it cannot name; in :data:`RULES` those that move values about, and functions.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Sequence

from ...bytecode import operations as o
from ...bytecode.code import Code
from ...bytecode.operations import KEEPS, ON_LOCALS, UPDATES, Op, effect, registrar
from ..annotations import HIDDEN
from ..errors import FALLBACK, CannotDecompile, why
from ..lift.definitions import as_annotation, new_function
from ..lift.executor import SymbolicExecutor
from ..lift.stack import LOAD, STORE, Entry, FunctionExpr, ImportedModule, ImportedName, Iter, Special, State
from ..names import is_name, is_private, legal
from ..nodes import BuildClassName
from ..result import Tier
from ..scopes import CodeScope, make_function
from ..structure.comprehensions import BUILDS
from .helpers import SOURCES

#: Raises an exception again and leaves ``__context__`` alone; a plain ``raise e`` would set it (CPython's
#: Python/errors.c, ``_PyErr_SetObject``).
RAISE_AGAIN = "{context} = {0}.__context__\ntry: raise {0}\nfinally: {0}.__context__ = {context}"
_WITH = ("{{1}} = {{methods}}({{0}}, '__{0}enter__', '__{0}exit__')\nif {{1}} is None:\n"
         "    {1}with {{0}}: pass\n"  # (raises the error)
         "{{0}}, {{1}} = {{1}}[1], {{1}}[0]()")
_MATCH = "match {{0}}:\n    case {0}: {{1}} = True\n    case _: {{1}} = False"
_SHOW = "{py}.__import__('sys').displayhook({0})"
#: Operations that lift does not say, on variables of the stack: ``{0}`` is the lowest that is read or written,
#: ``{owner}`` the container that is updated, ``{names}`` the mapping of the names of a module or class.
TEXTS: dict[str, str] = {
    o.LOAD_ASSERTION_ERROR: "{0} = {py}.AssertionError",
    o.LOAD_COMMON_CONSTANT: "{0} = {py}.{arg}",
    o.LOAD_FAST_AND_CLEAR: "try: {0} = {arg}; del {arg}\nexcept {py}.NameError: {0} = {unbound}",
    # names that cannot be written
    o.LOAD_NAME: "{0} = {load_name}({arg!r}, {names}, {py}.globals())",
    o.STORE_NAME: "{names}[{arg!r}] = {0}",
    o.DELETE_NAME: "{delete_name}({arg!r}, {names})",
    o.LOAD_GLOBAL: "{0} = {load_name}({arg!r}, {py}.globals())",
    o.STORE_GLOBAL: "{py}.globals()[{arg!r}] = {0}",
    o.DELETE_GLOBAL: "{delete_name}({arg!r}, {py}.globals())",
    o.LOAD_ATTR: "{0} = {py}.getattr({0}, {arg!r})",
    o.STORE_ATTR: "{py}.setattr({1}, {arg!r}, {0})",
    o.DELETE_ATTR: "{py}.delattr({0}, {arg!r})",
    # containers that are in variables
    o.LIST_APPEND: "{owner}.append({0})",
    o.SET_ADD: "{owner}.add({0})",
    o.MAP_ADD: "{owner}[{0}] = {1}",
    o.LIST_EXTEND: "{owner}.extend([*{0}])",
    o.SET_UPDATE: "{owner}.update({{*{0}}})",
    o.DICT_UPDATE: "{owner}.update({{**{0}}})",
    o.DICT_MERGE: "{owner} = {merge}({function}, {owner}, {0})",
    o.LIST_TO_TUPLE: "{0} = {py}.tuple({0})",
    # interactive input
    o.PRINT_EXPR: _SHOW,
    o.INTRINSIC_1: "{0} = " + _SHOW,
    # handlers, contexts, asynchronous iteration
    o.PUSH_EXC_INFO: "{1} = {0}\n{0} = None",
    o.POP_EXCEPT: "",
    o.CHECK_EXC_MATCH: "try: raise {0}\nexcept {1}: {1} = True\nexcept {py}.BaseException: {1} = False",
    o.CHECK_EG_MATCH: "{0}, {1} = {split_group}({0}, {1})",
    o.PREP_RERAISE_STAR: "{0} = {join_groups}({0}, {1})",
    o.BEFORE_WITH: _WITH.format("", ""),
    o.BEFORE_ASYNC_WITH: _WITH.format("a", "async "),
    o.WITH_EXCEPT_START: "{2} = {exit}({py}.type({1}), {1}, {1}.__traceback__)",
    o.GET_ANEXT_AWAIT: "{1} = await {py}.anext({0})",
    o.END_ASYNC_FOR: "if not {py}.isinstance({1}, {py}.StopAsyncIteration):\n    "
                     + RAISE_AGAIN.replace("{0}", "{1}").replace("\n", "\n    "),
    # match
    o.GET_LEN: "{1} = {py}.len({0})",
    o.MATCH_MAPPING: _MATCH.format("{{}}"),
    o.MATCH_SEQUENCE: _MATCH.format("[*_]"),
    o.MATCH_KEYS: "{2} = {match_keys}({0}, {1})",
    o.COPY_DICT_WITHOUT_KEYS: "{1} = {without_keys}({0}, {1})",
}
#: The loop's own names in texts.
_WORDS = ("py", "unbound", "context", *SOURCES)
#: What is on the stack below an exception and says where it was raised.
LASTI = Special("lasti")
#: The beginning of the variables that a module or class has for those of its inlined comprehensions.
LOCAL = "local_"

Rule = Callable[["SlotExecutor", State, Op], None]
RULES: dict[str, Rule] = {}
rule = registrar(RULES)


def is_marker(entry: Entry) -> bool:
    """Return whether an entry of the stack is nothing that is evaluated, and in no variable."""
    return isinstance(entry, (Special, FunctionExpr, BuildClassName))


class SlotExecutor(SymbolicExecutor):
    """Runs operations on values in variables.

    Attributes:
        prefix: the beginning of the names of all variables that the loop adds. In a module or class, where they are
            deleted in the end, two underscores are after them: a class would change private names.
        words: the names of the variables that the loop adds, without the prefix.
        following: the operations after the present one, in its block.
    """

    def __init__(self, scope: CodeScope, prefix: str, ops: list[Op]) -> None:
        super().__init__(scope, True)
        self.namespace = scope.kind in ("module", "class")
        self.prefix = prefix
        self.words: set[str] = set()
        self.variables = {*scope.code.varnames, *scope.code.cellvars, *scope.code.freevars}
        #: the variables that inlined comprehensions clear, and restore
        self.cleared = {self.local(op.arg) for op in ops if op.kind is o.LOAD_FAST_AND_CLEAR}
        #: those of them that functions share
        self.shared = {op.arg for op in ops if op.kind is o.MAKE_CELL}
        #: the variables that are bound outside of their comprehensions, too, which have three stores each: of an
        #: element, and of the earlier value in the end and in their handler
        stored = Counter(op.arg if op.kind in (o.STORE_FAST, o.STORE_DEREF) else None for op in ops)
        times = Counter(op.arg for op in ops if op.kind is o.LOAD_FAST_AND_CLEAR)
        self.bound_outside = {self.local(name) for name, count in times.items()
                              if name in scope.code.arguments or stored[name] > 3 * count}
        self.following: Sequence[Op] = ()
        #: stores of imports under names that source cannot have, by the variables that they get first
        self.imported: dict[str | None, str] = {}

    def run(self, state: State, ops: list[Op], to_statement: bool = False) -> None:
        """Run the operations of a block."""
        for at, op in enumerate(ops):
            self.following = ops[at + 1 :]
            before, (pops, pushes) = len(state.stack), effect(op)
            if before < pops + (op.arg if op.kind in UPDATES else 0):
                raise CannotDecompile(FALLBACK, "the stack is too short")
            if op.kind in ON_LOCALS:
                op = Op(op.kind, self.local(op.arg), op.offset, op.line)
            RULES.get(op.kind, SlotExecutor.usual)(self, state, op)
            if len(state.stack) - before != pushes - pops:
                raise CannotDecompile(FALLBACK, f"{op!r} at offset {op.offset} left {len(state.stack)} values")

    def usual(self, state: State, op: Op) -> None:
        """Run an operation by lift's rule, or by its text."""
        if self.lifts(state, op):
            super().run(state, [op])
        else:
            self.write(state, op, TEXTS[op.kind])

    def lifts(self, state: State, op: Op) -> bool:
        """Return whether lift can say an operation."""
        kind = op.kind
        if kind not in TEXTS:
            return True
        if kind in (o.LOAD_ATTR, o.STORE_ATTR, o.DELETE_ATTR, o.LOAD_NAME, o.STORE_NAME, o.DELETE_NAME):
            return self.is_writable_name(op.arg)
        if kind in (o.LOAD_GLOBAL, o.STORE_GLOBAL, o.DELETE_GLOBAL):
            return self.is_writable_name(op.arg) and (self.namespace or op.arg not in self.variables)
        if kind in UPDATES:
            return not isinstance(state.stack[-effect(op)[0] - op.arg], ast.Name)
        if kind is o.LIST_TO_TUPLE:
            return isinstance(state.stack[-1], ast.List)
        return kind is o.INTRINSIC_1 and op.arg != "print"

    def is_writable_name(self, name: str) -> bool:
        """Return whether a name can be written and means itself here: as a global, an attribute, a keyword."""
        return is_name(name) and not (self.scope.prefix and is_private(name))

    # --- the loop's variables ---------------------------------------------------------------------
    def name(self, word: str) -> str:
        """Return the name of a variable of the loop."""
        self.words.add(word)
        return f"{self.prefix}{word}{'__' if self.namespace else ''}"

    def slot(self, place: int) -> str:
        """Return the variable of a place on the stack, 0 for the lowest."""
        return self.name(f"s{place}")

    def local(self, name: str) -> str:
        """Return a variable of the function; in a module or class it is one of an inlined comprehension."""
        shown = self.name(LOCAL + legal(name)) if self.namespace else legal(self.scope.plain_name(name))
        if not is_name(shown):
            raise CannotDecompile(FALLBACK, f"{name!r} is not the name of a variable")
        return shown

    def builtin(self, name: str, *arguments: ast.expr) -> ast.expr:
        """Return the call of a built-in function, whatever the program calls so."""
        return ast.Call(ast.Attribute(ast.Name(self.name("py"), LOAD), name, LOAD), [*arguments], [])

    def assign(self, state: State, name: str, value: ast.expr) -> None:
        """Assign a value to a variable of the loop."""
        state.stmts.append(ast.Assign([ast.Name(name, STORE)], value))

    def write(self, state: State, op: Op, text: str) -> None:
        """Write an operation as statements on the variables of the stack."""
        slots = self.settle(state)
        pops, pushes = effect(op)
        base = len(slots) - pops
        slots += [self.slot(len(slots) + more) for more in range(pushes - pops)]
        words = {word: self.name(word) for word in _WORDS if f"{{{word}}}" in text}
        if "{names}" in text:  # (a class body that was given alone is written as a function)
            words["names"] = f"{self.name('py')}.locals()" if self.namespace else self.name("names")
        if op.kind in UPDATES:
            words["owner"] = slots[base - op.arg]
            words["function"] = slots[max(base - op.arg - 2, 0)]  # (``callable, args, dict``)
        if op.kind is o.WITH_EXCEPT_START:
            words["exit"] = slots[max(base - 1 - (state.stack[base - 1] is LASTI), 0)]
        state.stmts += ast.parse(text.format(*slots[base:], arg=op.arg, **words)).body
        kept = base + KEEPS.get(op.kind, 0)
        state.stack[kept:] = [ast.Name(slot, LOAD) for slot in slots[kept : base + pushes]]

    def settle(self, state: State, constants: bool = True) -> list[str]:
        """Assign what waits to the variables of its places (``constants``, too), and return these."""
        slots = [self.slot(place) for place in range(len(state.stack))]
        for place, entry in enumerate(state.stack):
            is_settled = type(entry) is ast.Name and entry.id == slots[place]
            if not is_settled and not is_marker(entry) and (constants or not isinstance(entry, ast.Constant)):
                self.assign(state, slots[place], self.value(entry))
                state.stack[place] = ast.Name(slots[place], LOAD)
        return slots

    def push(self, state: State, value: ast.expr) -> None:
        """Assign a value to the variable of the next place."""
        name = self.slot(len(state.stack))
        self.assign(state, name, value)
        state.stack.append(ast.Name(name, LOAD))

    # --- what lift asks ---------------------------------------------------------------------------
    def value(self, entry: Entry) -> ast.expr:
        """Return an entry as an expression for any place: a slice has a form in brackets only."""
        value = self.resolve(entry)
        if isinstance(value, ast.Slice):
            parts = (value.lower, value.upper, value.step)
            return self.builtin("slice", *(ast.Constant(None) if part is None else part for part in parts))
        if isinstance(value, ast.Tuple):
            return ast.Tuple([self.value(element) for element in value.elts], LOAD)
        return value

    def resolve(self, entry: Entry) -> ast.expr:
        """Return the expression of an entry when something uses it."""
        if isinstance(entry, Iter):
            return self.builtin("aiter" if entry.asynchronous else "iter", entry.value)
        return super().resolve(entry)

    def spill_pending(self, state: State) -> None:
        """Assign what waits to its variables, before a statement."""
        if any(isinstance(entry, (ImportedModule, ImportedName)) for entry in state.stack):
            raise CannotDecompile(FALLBACK, "something else happens in the middle of an import")
        self.settle(state, constants=False)

    def temporary(self, state: State, value: ast.expr) -> ast.Name:  # type: ignore[override]
        """Assign a value that is no longer on the stack to the variable of its place, and return that."""
        self.push(state, value)
        entry = state.stack.pop()
        assert isinstance(entry, ast.Name)
        return entry

    def emit(self, state: State, stmt: ast.stmt, before: bool = False) -> None:
        """Append a statement, after what was evaluated before it."""
        if isinstance(stmt, (ast.Import, ast.ImportFrom)):
            self.settle(state, constants=False)
            state.stmts.append(stmt)
            for alias in stmt.names:
                state.stmts += ast.parse(self.imported.pop(alias.asname, "")).body
            return
        self.spill_pending(state)
        if not (self.scope.annotates and type(stmt) is ast.Assign and as_annotation(self, state, stmt)):
            state.stmts.append(stmt)

    def store_value(self, state: State, target: ast.expr, value: Entry) -> None:
        """Store an entry to ``target``."""
        super().store_value(state, target, self.resolve(value) if isinstance(value, Iter) else value)

    # --- functions --------------------------------------------------------------------------------
    def as_part(self, expr: FunctionExpr) -> ast.expr | None:
        """Return a lambda, or the function of a comprehension; ``None`` if it cannot be written as such."""
        code, tiers = expr.code, self.scope.options.tiers
        while tiers.of(code) is not Tier.DISPATCH:
            try:
                if code.name == "<lambda>":
                    return self.scope.lambda_(expr)
                self.scope.comprehension(FunctionExpr(code, {}), Iter(ast.Name("_", LOAD)))
                return expr
            except Exception as error:
                tiers.demote(code, why(error))
        return None

    def is_definition(self, state: State, expr: FunctionExpr) -> bool:
        """Return whether the operations that follow make a statement of a function, or a part of one."""
        code = expr.code
        if any(isinstance(part, ast.Name) for part in expr.arguments.values()):
            return False  # (one that was evaluated before a jump)
        if state.stack and isinstance(state.stack[-1], BuildClassName):
            return True
        after = next((op for op in self.following if op.kind is not o.CALL or op.arg != (1, ())), None)  # (decorators)
        if after is not None and after.kind in (o.STORE_FAST, o.STORE_DEREF, o.STORE_NAME, o.STORE_GLOBAL):
            return self.scope.plain_name(after.arg) == self.scope.plain_name(code.name) and self.lifts(state, after)
        return code in self.scope.options.tiers.parts  # (of annotations, type parameters)

    def define(self, state: State, expr: FunctionExpr) -> None:
        """Write the definition of a function that is no statement by itself, and push it."""
        code, name = expr.code, self.name("function")
        scope = self.scope.nested(code, "function")
        arguments, _ = self.scope.arguments(code, {}, scope)
        self.emit(state, make_function(code, name, arguments, scope.statements()))
        values = {"name": ast.Constant(code.name), "qualname": ast.Constant(code.qualname), **expr.arguments}
        if isinstance(annotations := values.get("annotations"), ast.Tuple):
            values["annotations"] = ast.Dict([*annotations.elts[::2]], annotations.elts[1::2])
        elif isinstance(annotations, ast.Name) and code.version >= (3, 10):  # (a dictionary before)
            pairs = ast.parse(f"{self.name('py')}.zip({annotations.id}[::2], {annotations.id}[1::2])", mode="eval").body
            values["annotations"] = self.builtin("dict", pairs)
        values.pop("closure", None)
        for key, value in reversed(values.items()):  # (lift has taken them from the stack: the last comes first)
            attribute = ast.Attribute(ast.Name(name, LOAD), f"__{key}__", STORE)
            state.stmts.append(ast.Assign([attribute], value))
        self.push(state, ast.Name(name, LOAD))


# --- Constants, variables ------------------------------------------------------------------------------
@rule(o.CONST)
def _(executor: SlotExecutor, state: State, op: Op) -> None:
    is_searched = executor.following and executor.following[0].kind in (o.IN, o.GET_ITER, o.SET_UPDATE)
    if isinstance(op.arg, frozenset) and not is_searched:
        executor.usual(state, Op(o.CONST, (*sorted(op.arg, key=repr),)))
        state.stack[-1] = executor.builtin("frozenset", executor.resolve(state.stack[-1]))
    else:
        executor.usual(state, op)


@rule(o.STORE_FAST)
def _(executor: SlotExecutor, state: State, op: Op) -> None:
    if op.arg not in executor.cleared:
        executor.usual(state, op)
    elif op.arg in executor.shared:  # (what shares it may still be called)
        executor.write(state, op, "if {0} is not {unbound}: {arg} = {0}")
    else:
        executor.write(state, op, "{arg} = {0}\nif {0} is {unbound}: del {arg}")


@rule(o.STORE_GLOBAL, o.STORE_NAME)
def _(executor: SlotExecutor, state: State, op: Op) -> None:
    top = state.stack[-1] if state.stack else None
    if isinstance(top, Special) and top.kind == "cell" or isinstance(top, ast.Name) and top.id == ".type_params":
        state.stack.pop()  # (the compiler's own, which the class statement stores)
    elif isinstance(top, (ImportedModule, ImportedName)) and not executor.lifts(state, op):
        name = executor.name(f"import{len(executor.imported)}")
        own = "locals" if op.kind is o.STORE_NAME else "globals"
        executor.imported[name] = f"{executor.name('py')}.{own}()[{op.arg!r}] = {name}"
        executor.store_value(state, ast.Name(name, STORE), state.pop())
    else:
        executor.usual(state, op)


@rule(o.LOAD_CLOSURE)
def _(executor: SlotExecutor, state: State, op: Op) -> None:
    state.stack.append(Special("cell", op.arg))


@rule(o.MAKE_CELL)
def _(executor: SlotExecutor, state: State, op: Op) -> None:
    # (In a function the comprehension has the variable, and its cell, of that.)
    if executor.namespace or op.arg in executor.bound_outside:
        raise CannotDecompile(FALLBACK, "a function shares a variable of a comprehension, another one than around it")


# --- Values dropped, copied, moved on the stack, unpacked ----------------------------------------------
@rule(o.POP)
def _(executor: SlotExecutor, state: State, op: Op) -> None:
    place = len(state.stack) - 1
    entry = state.stack[-1] if state.stack else None
    if isinstance(entry, ast.Name) and entry.id == executor.slot(place):
        state.stack.pop()
        executor.assign(state, entry.id, ast.Constant(None))  # so that it lives no longer than on the stack
    elif isinstance(entry, ast.Constant) or entry is LASTI:
        state.stack.pop()
    elif isinstance(entry, Iter):
        executor.emit(state, ast.Expr(executor.pop(state)))
    else:
        executor.usual(state, op)


@rule(o.COPY)
def _(executor: SlotExecutor, state: State, op: Op) -> None:
    executor.spill_pending(state)
    entry = state.stack[-op.arg]
    if is_marker(entry) or isinstance(entry, ast.Constant):
        state.stack.append(entry)
    else:
        executor.push(state, executor.resolve(entry))


@rule(o.SWAP, o.ROT)
def _(executor: SlotExecutor, state: State, op: Op) -> None:
    if op.arg < 2:
        return
    stack, after = state.stack, executor.following[0] if executor.following else op
    if isinstance(after.arg, Code) and after.arg.name.startswith(HIDDEN):
        return  # (two values for a function with type parameters: the SWAP 3 below undoes it, ``compiler_function``)
    if isinstance(top := stack[-1], FunctionExpr) and after.kind is o.CALL and (
        op.kind is o.ROT or op.arg == 2 or top.code.name.startswith(HIDDEN)
    ):
        stack.insert(len(stack) - op.arg, stack.pop())  # (it is called next, with what was evaluated before it)
        return
    slots = executor.settle(state)[-op.arg :]
    moved = stack[-op.arg :]
    moved = moved[-1:] + (moved[:-1] if op.kind is o.ROT else moved[1:-1] + moved[:1])
    stack[-op.arg :] = [entry if is_marker(entry) else ast.Name(slot, LOAD) for slot, entry in zip(slots, moved)]
    targets: list[ast.expr] = [ast.Name(slot, STORE) for slot, entry in zip(slots, moved) if not is_marker(entry)]
    values = [entry for entry in moved if isinstance(entry, ast.expr) and not is_marker(entry)]
    if values:
        state.stmts.append(ast.Assign([ast.Tuple(targets, STORE)], ast.Tuple(values, LOAD)))


@rule(o.UNPACK, o.UNPACK_EX)
def _(executor: SlotExecutor, state: State, op: Op) -> None:
    value = executor.pop(state)
    executor.spill_pending(state)
    base, count = len(state.stack), effect(op)[1]
    slots = [executor.slot(base + place) for place in range(count)]
    targets: list[ast.expr] = [ast.Name(slot, STORE) for slot in reversed(slots)]
    if op.kind is o.UNPACK_EX:
        targets[op.arg[0]] = ast.Starred(targets[op.arg[0]], STORE)
    state.stmts.append(ast.Assign([ast.List(targets, STORE)], value))
    state.stack += [ast.Name(slot, LOAD) for slot in slots]


@rule(o.BUILD_TUPLE)
def _(executor: SlotExecutor, state: State, op: Op) -> None:
    cells = [entry for entry in state.stack[len(state.stack) - op.arg :]
             if isinstance(entry, Special) and entry.kind == "cell"]
    if op.arg and len(cells) == op.arg:
        state.stack[-op.arg :] = [Special("cells", tuple(entry.value for entry in cells))]
    else:
        executor.usual(state, op)


@rule(o.FORMAT)
def _(executor: SlotExecutor, state: State, op: Op) -> None:
    executor.settle(state)  # (up to 3.11 a field can have no backslash and none of the quotes around it)
    executor.usual(state, op)


@rule(o.MATCH_CLASS)
def _(executor: SlotExecutor, state: State, op: Op) -> None:
    names = state.pop()
    attributes = [str(name.value) for name in names.elts if isinstance(name, ast.Constant)] if isinstance(
        names, ast.Tuple) else [""]
    if not all(map(is_name, attributes)):
        raise CannotDecompile(FALLBACK, "the attributes of a class pattern are computed, or have no names")
    parts = [executor.name(f"part{place}") for place in range(op.arg + len(attributes))]
    pattern = ", ".join([*parts[: op.arg], *map("{}={}".format, attributes, parts[op.arg :])])
    values = "".join(part + ", " for part in parts)
    executor.write(state, Op(o.BINARY), f"match {{0}}:\n    case {{1}}({pattern}): {{0}} = ({values})\n"
                                        f"    case _: {{0}} = None")


# --- Calls and functions -------------------------------------------------------------------------------
@rule(o.CALL)
def _(executor: SlotExecutor, state: State, op: Op) -> None:
    count, keywords = op.arg
    if not all(map(is_name, keywords)):
        raise CannotDecompile(FALLBACK, "a keyword that source cannot have")
    at = len(state.stack) - 1 - count - len(keywords)
    function = state.stack[at]
    if isinstance(function, FunctionExpr) and function.code.name in BUILDS and not isinstance(state.stack[-1], Iter):
        state.stack[-1] = Iter(executor.resolve(state.stack[-1]))
    if isinstance(function, BuildClassName) and count > 1 and isinstance(body := state.stack[at + 1], FunctionExpr):
        state.stack[at + 2] = ast.Constant(body.code.name)
    executor.usual(state, op)
    is_own = isinstance(function, ast.Name) and function.id in ("dir", "locals", "vars")
    if is_own and op.arg == (0, ()) and not executor.namespace:
        executor.write(state, Op(o.INTRINSIC_1, executor.prefix), "{0} = {own}({0}, {arg!r})")


@rule(o.MAKE_FUNCTION)
def _(executor: SlotExecutor, state: State, op: Op) -> None:
    closure: tuple[str, ...] = ()
    if op.arg & 8:
        cells = state.stack[-2]
        if not isinstance(cells, Special) or cells.kind != "cells":
            raise CannotDecompile(FALLBACK, "a closure of cells from elsewhere")
        closure = cells.value
        state.stack[-2] = ast.Tuple([], LOAD)
    expr = new_function(executor, state, op.arg)
    if closure != expr.code.freevars:
        raise CannotDecompile(FALLBACK, "a closure of cells from elsewhere")
    is_expression = expr.code.name == "<lambda>" or expr.code.name in BUILDS
    written = executor.as_part(expr) if is_expression else None
    if written is not None:
        state.stack.append(written)
    elif not is_expression and executor.is_definition(state, expr):
        state.stack.append(expr)
    else:
        executor.define(state, expr)
