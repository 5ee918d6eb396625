"""The facts at a graph break that the rows of :mod:`.breaks` require (:class:`Facts`) and name (:data:`NAMED`).

They are read from the records: what torch met, what it knew of the variables, the break's stack. Only facts that no
record can contain, as what the lines after the break do with a value, are read from the user's text.
"""

from __future__ import annotations

import ast
import functools
import logging
from collections.abc import Callable, Iterator, Mapping, Set

from ..torch_text.libraries import installed_module
from ..torch_text.met import is_drawn, met, what_blocks
from .branches import unparsed
from .source import (
    Loop,
    Site,
    called,
    is_own,
    last_name,
    loops_around,
    names_set,
    own_parts,
    parameters,
    path_to,
    qualified_name,
    variables,
)
from .tensor_values import Values

#: Functions that take a number out of a tensor, as its method ``item`` does.
_NUMBERS = frozenset({"int", "float", "bool"})
#: Functions of ``random`` that torch calls itself; it then represents the number as a tensor.
_DRAWS = frozenset({"random", "randint", "randrange", "uniform"})
#: Methods of a list, set or dictionary that change it.
_CHANGING = frozenset({"append", "appendleft", "extend", "insert", "add", "update", "setdefault", "pop", "popleft",
                       "popitem", "remove", "discard", "clear", "sort", "reverse"})
#: Methods whose result has as many elements, and functions whose result has a size that depends on the data.
_SAME_SIZE = frozenset({"flatten", "squeeze", "view", "reshape", "cpu", "long", "int", "float", "detach", "clone"})
_OF_DATA = frozenset({"nonzero", "where", "unique", "unique_consecutive", "masked_select", "argwhere",
                      "repeat_interleave", "bincount"})
#: Functions and methods that tell something of a tensor's elements.
_TESTS = frozenset({"any", "all", "item", "equal", "allclose"})
_SIZES = frozenset({"shape", "size", "numel", "nelement"})
#: Parts of lines of libraries that make modules, parameters and hooks.
_SETS_UP = ("RemovableHandle.", "Parameter(", "super().__init__(", "_hook_installation_lock", "recordable_keys")


#: Torch's setting for sizes that depend on the data, as a line of a program.
SHAPES = "torch._dynamo.config.capture_dynamic_output_shape_ops = True"
_NOTHING = ast.Pass(lineno=0, end_lineno=0, col_offset=0, end_col_offset=0)

#: A use of a value that depends on the data: ``"test"``, ``"fixed"`` (an index, a bound, a size), ``"text"`` (its text
#: is looked up), ``"compared"`` (numbers of a list) or ``"numbers"`` (``.tolist()``), with the expression around it.
Use = tuple[str, ast.expr]


class Facts:
    """The facts at one break."""

    def __init__(self, site: Site) -> None:
        self.site, self.broken, self.function, self.where = site, site.broken, site.function, site.where
        self.statement: ast.stmt = site.statement or _NOTHING
        self.met = met(site.broken)
        self.values = Values(site.values)

    def text(self, node: ast.AST | None) -> str:
        """Return the text of an expression, its constants as the user wrote them; ``""`` for none."""
        return unparsed(node, self.site.text) if node is not None else ""

    # --- places -----------------------------------------------------------------------------------------
    @property
    def is_of_compiled(self) -> bool:
        """Whether the line is in the function that torch compiled, as far as is known."""
        return self.site.compiled_site is None or self.site.compiled_site.function is self.function

    @property
    def is_called_by_library(self) -> bool:
        """Whether a library calls the function of the line, or the one that torch compiled, with arguments of its own.

        Then nobody can pass either of them another argument; nor if the line is in a caller of what was compiled.
        """
        stack, compiled = self.broken.stack, len(self.broken.stack) - self.broken.depth
        first = max((at for at, place in enumerate(stack[:compiled]) if is_own(place.filename)), default=compiled)
        here = next((at for at, place in enumerate(stack) if place is self.where), 0)
        return here < compiled < len(stack) or any(
            not is_own(place.filename) and place.text and "**" not in place.text for place in stack[first:here])

    @property
    def is_generator(self) -> bool:
        """Whether the line is in a generator, which cannot return what it shows."""
        return any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(self.function or _NOTHING))

    @property
    def is_inlined(self) -> bool:
        """Whether another function than the compiled one has the line: what it prints after the graph is lost (2.13).

        (``InstructionTranslatorBase.debug_locals``; torch's own function around the call of an object is one, too.)
        """
        return self.broken.depth > 1

    @functools.cached_property
    def loops(self) -> list[Loop]:
        """The loops that repeat the line, the outermost first."""
        return loops_around(self.function, self.where.line) if self.function and self.where else []

    @property
    def turned_loop(self) -> Loop | None:
        """The loop of which the line is a part, or which begins there."""
        return self.statement if isinstance(self.statement, ast.For) else self.loops[-1] if self.loops else None

    @property
    def test(self) -> ast.expr | None:
        """The test of the statement."""
        return self.statement.test if isinstance(self.statement, (ast.If, ast.While, ast.Assert)) else None

    @property
    def loop_test(self) -> ast.expr | None:
        """The test of the innermost loop, a ``while``."""
        return self.loops[-1].test if self.loops and isinstance(self.loops[-1], ast.While) else None

    @property
    def is_in_loop_of_data(self) -> bool:
        """Whether the innermost loop around the line goes over a tensor whose size depends on the data."""
        loop = self.loops[-1] if self.loops else None
        return isinstance(loop, ast.For) and _is_of_data(loop.iter)

    @property
    def is_of_data(self) -> bool:
        """Whether a part of the statement has a size that depends on the data, as its text shows."""
        return any(map(_is_made_of_data, own_parts(self.statement)))

    @property
    def is_conditional(self) -> bool:
        """Whether a call, or a turn of the loop around the line, may not come to it."""
        if self.function is None or self.where is None:
            return False
        around: ast.AST = self.loops[-1] if self.loops else self.function
        for holder, block, statement in path_to(around, self.where.line):
            if holder is not around and not isinstance(holder, (ast.With, ast.AsyncWith)):
                return True
            if any(isinstance(each, (ast.Return, ast.Raise, ast.Break, ast.Continue))
                   for before in block[:block.index(statement)] for each in ast.walk(before)):
                return True
        return False

    @property
    def is_outer_call_alone(self) -> bool:
        """Whether the call in the compiled function that leads to the line is of a function without arguments."""
        match self.outer_call:
            case ast.Call(ast.Name(), [], []):
                return True
        return False

    @property
    def is_lazy(self) -> bool:
        """Whether another part of the statement decides if the call is made: ``n > 0 and draw()``."""
        return any(inner is self.call for each in own_parts(self.statement) if isinstance(each, ast.BoolOp)
                   for part in each.values[1:] for inner in ast.walk(part))

    @property
    def ends_turn(self) -> bool:
        """Whether a branch of the statement may end a turn of the loop, or the loop; also the test of a ``while``."""
        turn = [part for loop in self.loops[-1:] for part in loop.body]
        return any(map(self.computes, turn)) and (
            isinstance(self.statement, ast.While) or self.skips_rest or isinstance(self.statement, ast.If) and any(
                isinstance(each, (ast.Break, ast.Return)) for part in self.statement.body for each in ast.walk(part)))

    @property
    def warns_of_class(self) -> bool:
        """Whether the statement gives ``warnings.warn`` more than texts and numbers: a class."""
        return any(not isinstance(each, ast.Constant) for call in self.calls("warn")
                   for each in (*call.args[1:], *(keyword.value for keyword in call.keywords)))

    @property
    def may_be_packed(self) -> bool:
        """Whether the statement calls something with a packed sequence, as far as is known."""
        given = [each.id for call in own_parts(self.statement) if isinstance(call, ast.Call)
                 for each in call.args if isinstance(each, ast.Name)]
        return any(not self.values.is_tensor(name) for name in given)

    @property
    def divides_turn(self) -> bool:
        """Whether a turn of the innermost loop computes both before the statement and after it."""
        body: list[ast.stmt] = self.loops[-1].body if self.loops else []
        at = body.index(self.statement) if self.statement in body else 0
        return any(map(self.computes, body[:at])) and any(map(self.computes, body[at + 1:]))

    @property
    def skips_rest(self) -> bool:
        """Whether the branch goes to the next turn of the loop."""
        return isinstance(self.statement, ast.If) and isinstance(self.statement.body[-1], ast.Continue)

    @property
    def skip_of_size(self) -> ast.If | None:
        """The branch on a later line that goes to the next turn of the loop for a size that the statement makes."""
        test = self.first("test", of_size=True) if self.loops else None
        return next((each for each in ast.walk(self.loops[-1]) if isinstance(each, ast.If) and each.test is test
                     and isinstance(each.body[-1], ast.Continue) and not each.orelse), None) if test else None

    @property
    def sets_loop_test(self) -> bool:
        """Whether the statement sets what the innermost loop, a ``while``, tests."""
        return self.loop_test is not None and _reads(self.loop_test, names_set(self.statement))

    @property
    def sets_up(self) -> bool:
        """Whether a line of a library makes modules, parameters or hooks."""
        return self.where is not None and not is_own(self.where.filename) and any(
            each in place.text for place in self.broken.stack[-1:] for each in _SETS_UP)

    # --- calls ------------------------------------------------------------------------------------------
    def calls(self, name: str) -> list[ast.Call]:
        """Return the calls of a function or method of this name in the statement."""
        return [each for each in own_parts(self.statement) if isinstance(each, ast.Call) and called(each) == name]

    @functools.cached_property
    def call(self) -> ast.Call | None:
        """The call in the user's statement that torch names, that draws a random number, or that leads to the break."""
        drawn = [each for each in own_parts(self.statement) if isinstance(each, ast.Call) and _draws(each)]
        stack = self.broken.stack
        inner = [each.function for before, each in zip(stack, stack[1:]) if before is self.where]
        taken = "next" if self.met.kind == "next" else ""
        named = [each for name in (self.met.last, taken, *inner[-1:]) if name for each in self.calls(name)]
        return next(iter([*named[:1], *drawn, *named]), None)

    @property
    def outer_call(self) -> ast.Call | None:
        """The call in the user's compiled function, in no loop, that leads to the line in another function."""
        outer, stack = self.site.compiled_site, self.broken.stack
        if outer is None or outer.where is None or outer.statement is None or self.is_of_compiled or (
                not is_own(outer.where.filename) or outer.function and loops_around(outer.function, outer.where.line)):
            return None
        inner = [each.function for before, each in zip(stack, stack[1:]) if before is outer.where]
        calls = [each for each in own_parts(outer.statement) if isinstance(each, ast.Call)]
        named = [each for each in calls if called(each) in inner]
        return named[0] if len(named) == 1 else calls[0] if len(calls) == 1 else None

    @property
    def draws(self) -> list[ast.Call]:
        """The calls in the function that draw a Python random number, in their order."""
        found = [each for each in ast.walk(self.function or _NOTHING) if isinstance(each, ast.Call) and _draws(each)]
        return sorted(found, key=lambda each: (each.lineno, each.col_offset))

    @property
    def numpy_draw(self) -> ast.Call | None:
        """The call in the statement that draws a random number of NumPy's, which torch makes a number at once."""
        return next((each for each in own_parts(self.statement) if self.met.name == "_local_scalar_dense"
                     and isinstance(each, ast.Call)
                     and ast.unparse(each.func).startswith(("np.random.", "numpy.random."))), None)

    @property
    def reads_drawn(self) -> bool:
        """Whether the statement reads a Python random number, which torch represents as a tensor."""
        drawn = {each.name for each in self.site.values if is_drawn(each)}
        return any(isinstance(each, ast.Name) and each.id in drawn for each in own_parts(self.statement))

    @property
    def is_whole(self) -> bool:
        """Whether this call is the whole statement."""
        return isinstance(self.statement, ast.Expr) and self.statement.value is self.call is not None

    @property
    def is_first(self) -> bool:
        """Whether the statement is the first of the function that torch compiled."""
        body = self.function.body if self.function is not None else []
        body = [each for each in body if not isinstance(each, ast.Expr) or not isinstance(each.value, ast.Constant)]
        return body[:1] == [self.statement] and self.is_of_compiled

    @property
    def given_test(self) -> ast.expr | None:
        """The part of the statement's test that has the call, where it reads nothing that the function makes."""
        parts = [each for each in ast.walk(self.test or _NOTHING) if isinstance(each, (ast.Compare, ast.Call))
                 and any(inner is self.call for inner in ast.walk(each))]
        return parts[0] if parts and not self.made_of(parts[0]) else None

    @property
    def entered(self) -> ast.expr | None:
        """The context that the statement enters, if it is one."""
        items = self.statement.items if isinstance(self.statement, ast.With) else []
        return items[0].context_expr if len(items) == 1 else None

    @property
    def entered_as(self) -> ast.expr | None:
        """The variable that the context gives."""
        return self.statement.items[0].optional_vars if isinstance(self.statement, ast.With) else None

    @property
    def copied(self) -> ast.expr | None:
        """What ``copy.deepcopy`` copies."""
        calls = self.calls("deepcopy")
        return calls[0].args[0] if len(calls) == len(calls[0].args if calls else ()) == 1 else None

    @property
    def loss(self) -> ast.expr | None:
        """What ``.backward()`` is called on."""
        return next((each.func.value for each in self.calls("backward") if isinstance(each.func, ast.Attribute)), None)

    @property
    def returns_gradients(self) -> bool:
        """Whether the function returns a tensor that requires a gradient and that it has made before this line."""
        returned = [each for node in ast.walk(self.function or _NOTHING) if isinstance(node, ast.Return) and node.value
                    for each in ast.walk(node.value)]
        cut_off = {id(each.value) for each in returned if isinstance(each, ast.Attribute) and each.attr in (
            "detach", "item", "tolist", "shape")}
        return any(isinstance(each, ast.Name) and id(each) not in cut_off and self.values.requires_grad(
            each.id) and not self.values.is_given(each.id) for each in returned)

    def made_of(self, node: ast.expr | None) -> str:
        """Return what an expression reads and compiled lines before it make or change, as Markdown; ``""`` for nothing.

        (What a function is given that the compiled one calls may be made there.)
        """
        if self.function is None or node is None:
            return ""
        given = {*parameters(self.function)} - {"self", "cls"}
        changed, parts = set() if self.is_of_compiled else given, set()
        for part in own_parts(self.statement):
            changed |= names_set(part.target) if isinstance(part, ast.comprehension) else set()
            changed |= {each.arg for each in part.args.args} if isinstance(part, ast.Lambda) else set()
        for each in ast.walk(self.function):
            if not self.loops and getattr(each, "lineno", 0) >= self.statement.lineno:
                continue  # (In a loop the lines after it come before it, too.)
            match each:
                case ast.Name(name, ast.Store()) | ast.Call(ast.Name("setattr"), [_, ast.Constant(str(name)), _]):
                    changed.add(name)
                case ast.Attribute(owner, name, ast.Store()):
                    changed.add(name)
                    parts.add(_last(owner))
                case ast.Subscript(owner, _, ast.Store() | ast.Del()):
                    changed.add(_last(owner))
                case ast.Call(ast.Attribute(owner, method)) if method in _CHANGING or (
                        method.endswith("_") and not method.startswith("_")):
                    changed.add(_last(owner))
        owners = {id(each.value) for each in ast.walk(node) if isinstance(each, ast.Attribute)}
        own = names_set(node) | {name.arg for each in ast.walk(node) if isinstance(each, ast.Lambda)
                                 for name in each.args.args}
        return ", ".join(dict.fromkeys(
            f"`{self.text(each)}`" for each in ast.walk(node) if isinstance(each, (ast.Name, ast.Attribute)) and (
                _last(each) in changed - own or _last(each) in parts and id(each) not in owners)))

    def computes(self, statement: ast.AST, known: bool = False) -> bool:
        """Return whether a statement computes with variables that may be tensors, or are known to be (``known``)."""
        operations = [node for node in ast.walk(statement) if isinstance(node, (ast.BinOp, ast.Call, ast.AugAssign))]
        names = {each.id for node in operations for each in ast.walk(node) if isinstance(each, ast.Name)}
        names.intersection_update(variables(self.function) if self.function is not None else ())
        return any(self.values.is_tensor(name) if known else not self.values.is_number(name) for name in names)

    # --- values that depend on the data ----------------------------------------------------------------
    @property
    def is_number(self) -> bool:
        """Whether torch needs a number out of a tensor."""
        return self.met.name == "_local_scalar_dense" or self.met.kind == "item" or (
            not self.broken.registry_id)

    @property
    def is_number_given(self) -> bool:
        """Whether the number can be computed before the call: it is of nothing that the function makes."""
        numbers: list[ast.expr | None] = [
            each for each in own_parts(self.statement) if isinstance(each, ast.Call) and is_number(each)]
        return self.is_of_compiled and not self.is_called_by_library and not any(
            map(self.made_of, numbers or [self.first("fixed")]))

    @property
    def next_test(self) -> str:
        """Where a test on one of the next lines depends on the number."""
        match self.statement:
            case ast.Assign(_, ast.Call(ast.Name(), [ast.Name(name)], []) | ast.Call(ast.Attribute(
                    ast.Name(name), "item"), [], [])) if self.values.is_given(name):
                return ""  # (Of the number of an argument torch may compile a version for each value instead.)
        return self.use("test") or self._next_test_of_library

    @property
    def _next_test_of_library(self) -> str:
        """Where a library tests a tensor on a later line, which nobody changes; of the user's there is a break."""
        if self.where is None or is_own(self.where.filename) or self.function is None:
            return ""
        tests = [test for each in ast.walk(self.function) if isinstance(each, ast.stmt) for test in _tests(each)]
        return next((f"line {test.lineno} (`{self.text(test)}`)" for test in tests if test.lineno > self.where.line
                     and any(isinstance(each, ast.Call) and called(each) in _TESTS for each in ast.walk(test))), "")

    @property
    def _is_taken_by_torch(self) -> bool:
        """Whether torch itself takes the number of a tensor that is an index or a size."""
        return self.met.name == "_local_scalar_dense" and not any(
            is_number(each) or isinstance(each, ast.Call) and called(each) == "tolist"
            for each in own_parts(self.statement))

    @property
    def index(self) -> ast.expr | None:
        """The tensor of one number that torch takes as an index: ``best`` of ``boxes[best, :2]``."""
        item = self.first("fixed") if self._is_taken_by_torch else None
        return next((each for each in _parts(item.slice) if each is not None and self.values.infer(each).shape == ()),
                    None) if isinstance(item, ast.Subscript) else None

    @property
    def adds_text(self) -> bool:
        """Whether the statement adds to an object from outside of the function: ``self.log.append(f"step {n}")``."""
        match self.statement:
            case ast.Expr(ast.Call(ast.Attribute(owner, "append" | "appendleft" | "add" | "extend" | "insert"))):
                own = names_set(self.function or _NOTHING)
                return not isinstance(owner, ast.Name) or owner.id not in own
        return False

    @property
    def uses_loss_again(self) -> bool:
        """Whether lines after ``loss.backward()`` read the variable ``loss``."""
        return isinstance(self.loss, ast.Name) and any(
            isinstance(each, ast.Name) and each.id == self.loss.id and each.lineno > self.statement.lineno
            for each in ast.walk(self.function or _NOTHING))

    def _is_of_tensor(self, node: ast.AST, numbers: set[str]) -> bool:
        """Return whether an expression is arithmetic with a known tensor, so that it gives a tensor.

        Args:
            node: the expression.
            numbers: variables that are numbers by now.
        """
        match node:
            case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right):
                return any(isinstance(each, ast.Name) and each.id not in numbers and self.values.is_tensor(each.id)
                           or self._is_of_tensor(each, numbers) for each in (left, right))
        return False

    def first(self, kind: str, of_size: bool = False) -> ast.expr | None:
        """Return the first use of a kind.

        Args:
            kind: as in :data:`Use`.
            of_size: of the size of what the statement computes, not of a number that it takes out of a tensor.
        """
        return next((node for each, node in self._uses(of_size) if each == kind), None)

    def use(self, kind: str, of_size: bool = False) -> str:
        """Return where the first use of a kind is, ``"line 30 (`token > 0`)"``; ``""`` for none."""
        found = self.first(kind, of_size)
        if found is None:
            return ""
        line = found.lineno if self.function is not None else self.where.line if self.where is not None else 0
        return f"line {line} (`{self.text(found)}`)"

    def _uses(self, of_size: bool) -> Iterator[Use]:
        """Yield the uses in the statement, then those on the lines after it."""
        first = self.statement
        body: list[ast.stmt] = getattr(first, "body", [])
        end = body[0].lineno - 1 if body else first.end_lineno or first.lineno
        following = [each for each in ast.walk(self.function or _NOTHING) if isinstance(each, ast.stmt)
                     and each.lineno > end] if self.site.statement else []
        names: set[str] = set()
        sizes: set[str] = set()
        texts: set[str] = set()
        for statement in (first, *sorted(following, key=lambda each: each.lineno)):
            if not isinstance(statement, (ast.Assert, ast.FunctionDef, ast.ClassDef)):  # (Torch traces assertions.)
                yield from _uses_of_size(statement, names, sizes) if of_size else self._uses_of_number(statement, names)
            made = [each for each in own_parts(statement)
                    if _is_text(each) and (statement is first or _reads(each, names))]
            yield from (("text", search) for search, key in _searches(statement)
                        if any(key is each for each in made) or isinstance(key, ast.Name) and key.id in texts)
            if made and isinstance(statement, ast.Assign):
                texts |= names_set(statement)
            match statement:
                case ast.Assign(targets, value) if (
                        (statement is first or _reads(value, names)) and _is_of_data(value) if of_size else
                        is_number(value, names) and not self._is_of_tensor(value, names)):
                    names.update(each.id for target in targets for each in (
                        target.elts if isinstance(target, ast.Tuple) else [target]) if isinstance(each, ast.Name))
                case ast.Assign([ast.Name(name)], value) if not of_size and _is_list_of_numbers(value, names):
                    names.add(name)
                case ast.Assign(targets, value) if any(_is_size(each, names) for each in ast.walk(value)):
                    sizes.update(each.id for each in targets if isinstance(each, ast.Name))
                case ast.For(target, ast.Call(ast.Attribute(_, "tolist"))) if not of_size:
                    names.update(each.id for each in ast.walk(target) if isinstance(each, ast.Name))
                case ast.AugAssign() | ast.AnnAssign():
                    pass
                case _:
                    names -= {each.id for each in own_parts(statement)
                              if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}

    def _uses_of_number(self, statement: ast.stmt, names: set[str]) -> Iterator[Use]:
        is_fixed: Callable[[ast.AST | None], bool] = functools.partial(is_number, names=names)
        if statement is self.statement:
            yield from (("test", each) for each in own_parts(statement)
                        if isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.Not) and each is not self.test)
        if statement is not self.statement:
            yield from (("test", test) for test in _tests(statement) if _reads(test, names))
            is_fixed = functools.partial(_is_of_number, names=names)
        elif self._is_taken_by_torch:
            is_fixed = self._is_element
        for each in own_parts(statement):
            match each:
                case ast.Subscript(ast.Name(owner), index) if self.values.is_tensor(owner) and is_number(index, names):
                    pass  # (A symbol may be the only index of a tensor.)
                case ast.Subscript(_, index) if any(map(is_fixed, _parts(index))):
                    yield "fixed", each
                case ast.keyword("size", value) if any(map(is_fixed, ast.walk(value))):
                    yield "fixed", value
                case ast.Call(ast.Name("range"), bounds) if any(map(is_fixed, bounds)):
                    yield "fixed", each
                case ast.Call(ast.Name("set" | "frozenset" | "tuple"), [items]) if _is_list_of_numbers(items, names):
                    yield from (("fixed", each), ("compared", each))  # (a set and a key compare them)
                case ast.Compare(_, [ast.In() | ast.NotIn()], [items]) if _is_list_of_numbers(items, names):
                    yield "compared", each
                case ast.Set(items) if any(map(is_fixed, items)):
                    yield "fixed", each
                case ast.Call(_, _, [ast.keyword("key", ast.Lambda(_, value))]) if any(map(is_fixed, ast.walk(value))):
                    yield "fixed", each
                case ast.Call(ast.Attribute(ast.Name("torch"), "tensor" | "as_tensor"), [ast.List(items)]) if any(
                        map(is_fixed, items)):
                    yield "fixed", each

    def _is_element(self, node: ast.AST | None) -> bool:
        """Return whether an expression may be a tensor of one number: a variable, ``order[0]``, ``t.argmax()``."""
        match node:
            case ast.Name(name):
                return self.values.infer(node).shape == () or not self.values.type_of(name)
            case ast.Subscript(_, index):
                return not isinstance(index, (ast.Slice, ast.Compare))
            case ast.Call(ast.Attribute(_, "argmax" | "argmin"), [], []):
                return True
        return False


def _is_of_number(node: ast.AST | None, names: set[str]) -> bool:
    """Return whether an expression is a number that is computed of one of some names."""
    return node is not None and is_number(node, names) and _reads(node, names)


def _is_list_of_numbers(node: ast.expr, names: set[str]) -> bool:
    """Return whether an expression is a list of numbers out of a tensor, or a part of one: ``x.tolist()[:2]``."""
    match node:
        case ast.Subscript(inner, ast.Slice()) | ast.Call(ast.Name("list" | "sorted"), [inner]):
            return _is_list_of_numbers(inner, names)
        case ast.Call(ast.Attribute(_, "tolist"), [], []):
            return True
        case ast.ListComp(value) | ast.GeneratorExp(value):
            return is_number(value, names)
        case ast.List(items):
            return any(is_number(each, names) for each in items)
        case ast.Name(name):
            return name in names
    return False


def _uses_of_size(statement: ast.stmt, names: set[str], sizes: set[str]) -> Iterator[Use]:
    for test in _tests(statement):
        if _reads(test, sizes) or any(_is_size(each, names) for each in ast.walk(test)):
            yield "test", test
    for each in own_parts(statement):
        match each:
            case ast.Call(ast.Attribute(owner, "tolist"), [], []) if _is_of_data(owner) or _last(owner) in names:
                yield "numbers", each


def _is_size(node: ast.AST, names: set[str]) -> bool:
    match node:
        case ast.Attribute(ast.Name(name), attribute) if attribute in _SIZES:
            return name in names
        case ast.Call(ast.Name("len"), [ast.Name(name)], []):
            return name in names
    return False


def _is_text(node: ast.AST) -> bool:
    """Return whether an expression is a text with places for values."""
    match node:
        case ast.JoinedStr(values):
            return any(isinstance(each, ast.FormattedValue) for each in values)
        case ast.Call(ast.Attribute(ast.Constant(str()), "format")) | ast.BinOp(ast.Constant(str()), ast.Mod()):
            return True
    return False


def _searches(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the expressions of a statement that look something up, with the keys."""
    for node in own_parts(statement):
        match node:
            case ast.Subscript(_, key) if isinstance(node.ctx, ast.Load) or isinstance(statement, ast.AugAssign):
                yield node, key
            case ast.Call(ast.Attribute(_, "get" | "pop" | "setdefault"), [key, *_]):
                yield node, key
            case ast.Compare(key, [ast.In() | ast.NotIn()]) | ast.Call(ast.Name("getattr" | "hasattr"), [_, key, *_]):
                yield node, key


def _parts(index: ast.expr) -> list[ast.expr | None]:
    """Return the parts of an index: the bounds of a slice, the items of a tuple."""
    if isinstance(index, ast.Slice):
        return [index.lower, index.upper]
    return [part for each in index.elts for part in _parts(each)] if isinstance(index, ast.Tuple) else [index]


def _last(node: ast.AST) -> str:
    """Return the name under which an object is changed: ``seen`` of ``self.seen[k]``."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return last_name(node)


def _draws(node: ast.AST) -> bool:
    """Return whether a node is a call that draws a Python random number, as far as its text shows."""
    match node:
        case ast.Call(ast.Attribute(ast.Name(owner), name)) if name in _DRAWS:
            return owner not in ("torch", "np", "numpy")
    return False


def _tests(statement: ast.stmt) -> Iterator[ast.expr]:
    """Yield the tests of a statement, but for those of ``None`` or of a type."""
    found = [statement.test] if isinstance(statement, (ast.If, ast.While)) else []
    for test in [*found, *(each.test for each in own_parts(statement) if isinstance(each, ast.IfExp))]:
        match test:
            case ast.Compare(_, [ast.Is() | ast.IsNot()]) | ast.Call(ast.Name("isinstance")):
                pass
            case _:
                yield test


def _is_of_data(node: ast.expr) -> bool:
    """Return whether the size of an expression depends on the data: ``x[x > 0]``, ``x.nonzero().flatten()``."""
    match node:
        case ast.Subscript(owner, ast.Constant() | ast.Slice() | ast.Tuple()):
            return _is_of_data(owner)
        case ast.Subscript():
            return True
        case ast.Call(ast.Attribute(owner, name)) if name in _SAME_SIZE:
            return _is_of_data(owner)
        case ast.Call():
            return called(node) in _OF_DATA and (called(node) != "where" or len(node.args) == 1)
    return False


def _is_made_of_data(node: ast.AST) -> bool:
    """Return whether an operation gives a size that depends on the data: ``x[x > 0]``, ``x.nonzero()``."""
    match node:
        case ast.Subscript(_, ast.Compare() | ast.BinOp(_, ast.BitAnd() | ast.BitOr())):
            return True
        case ast.Call():
            return called(node) in _OF_DATA and _is_of_data(node)
    return False


def _reads(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(node))


def is_number(node: ast.AST | None, names: Set[str] = frozenset()) -> bool:
    """Return whether an expression is a number out of a tensor: ``x.max().item() - 1``, ``int(x)``, a name of it."""
    match node:
        case ast.Name(name):
            return name in names
        case ast.BinOp(left, _, right):
            return is_number(left, names) or is_number(right, names)
        case ast.UnaryOp(_, inner):
            return is_number(inner, names)
        case ast.Call(ast.Name("max" | "min" | "abs" | "round"), arguments):
            return any(is_number(each, names) for each in arguments)
        case ast.Call(ast.Attribute(_, "item"), [], []):
            return True
        case ast.Call(ast.Name(name), [inner], []) if name in _NUMBERS:
            return not isinstance(inner, ast.Constant)
    return False


# --- facts that sentences name ----------------------------------------------------------------------------
def _compiled(at: Facts) -> str:
    place = at.site.compiled_site or at.site
    return qualified_name(place.module, place.function) if place.function is not None else ""


def _grown(at: Facts) -> str:
    loop = at.turned_loop
    counts = names_set(loop.target) if isinstance(loop, ast.For) else set()
    own, clauses = [*own_parts(at.statement)], dict[str, None]()
    for each in (node for statement in (loop.body if loop else ()) for node in ast.walk(statement)):
        match each:
            case ast.JoinedStr() if _reads(each, counts):
                clauses[f"what looks up `{at.text(each)}`, whose text needs the value of a number"] = None
            case ast.Call(ast.Attribute(owner, "append" | "extend")):
                clauses[f"what adds to `{at.text(owner)}` or takes all of it: each length of it would be another "
                        "graph"] = None
            case ast.Call(ast.Attribute(_, "item"), [], []) if each not in own:
                clauses[f"what takes the number `{at.text(each)}` out of a tensor"] = None
    return "".join(f"; so does {each}" for each in clauses)


def _logger(at: Facts) -> str:
    """Return the function that logs, as Python; a method that the program gives to its loggers is of their class."""
    within = at.broken.location.function.rpartition(".")[2] if at.broken.location is not None else ""
    method = at.met.last if at.calls(at.met.last) else within
    owner = at.call.func.value if at.call is not None and isinstance(at.call.func, ast.Attribute) else None
    if owner is None or getattr(vars(logging.Logger).get(method), "__module__", "") == "logging":
        return f"logging.Logger.{method}"
    return f"type({at.text(owner)}).{method}"


def _how_often(at: Facts) -> str:
    """Return how often a line is run in a call, where that is not once, as a clause that begins with a comma."""
    if at.loops:
        which = " that comes to it" * at.is_conditional
        return f", once for each turn of the loop at line {at.loops[-1].lineno}{which}"
    return ", in calls that come to it" if at.is_lazy else ", in calls that come to this line" * at.is_conditional


def _in_turn(at: Facts) -> str:
    """Return what else a turn of a loop needs to be a graph, as clauses that begin with a semicolon."""
    loop = at.turned_loop
    variable = loop.target.id if isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) and not (
        _is_list_of_numbers(loop.iter, set())) else ""
    clauses: dict[str, None] = {}
    for each in (node for statement in (loop.body if loop else ()) for node in ast.walk(statement)):
        match each:
            case ast.Subscript(owner, ast.Name(index), ast.Load()) if index == variable or (
                    at.values.infer(each.slice).shape == () and not at.values.is_number(index)):
                instead = f"`{at.text(owner)}[{index}.view(1)][0]` for `{at.text(each)}`"
                clauses[f"; in it write {instead}, where `{index}` is one whole number"] = None
            case ast.Subscript() | ast.Call() if _is_made_of_data(each):
                clauses[f"; set `{SHAPES}` for it"] = None
    return "".join(clauses)


def _given(at: Facts) -> list[str]:
    """Return tensors from outside through which gradients may flow on; torch 2.13 does not check that."""
    return [f"`{each.name}`" for each in at.site.values
            if each.source and each.requires_grad and each.type != "Parameter"]


def _none(at: Facts) -> str:
    """Return the argument that is ``None`` where the line takes a part of it: the only one that it takes parts of."""
    names = {each.value.id for each in ast.walk(at.statement)
             if isinstance(each, (ast.Subscript, ast.Attribute)) and isinstance(each.value, ast.Name)}
    given = {*parameters(at.function)} if at.function else names
    return names.pop() if at.met.is_none and len(names) == 1 and names <= given else ""


def _library_method(at: Facts) -> str:
    if not at.broken.skips_function or at.broken.depth != 1 or at.function is None:
        return ""
    name = qualified_name(at.site.module, at.function)
    return name if "." in name else ""


#: How each is read. A row of whose sentence one is ``""`` is silent, but for those whose names begin with ``also_``,
#: which are clauses that may be left out.
NAMED: Mapping[str, Callable[[Facts], str]] = {
    "function": lambda at: qualified_name(at.site.module, at.function) if at.function is not None else "",
    "compiled": _compiled,  # (what torch compiled, if that is known)
    "call_of": lambda at: "" if at.is_called_by_library else f"the call of `{_compiled(at)}`" * bool(_compiled(at)),
    "passed_to": lambda at: "" if at.is_called_by_library else f"`{_compiled(at)}`" if (
        at.is_of_compiled or at.function is None) else (
        f"`{_compiled(at)}` and on to `{qualified_name(at.site.module, at.function)}`"),
    "plain": lambda at: f"`{_compiled(at)}`" if at.is_of_compiled or at.function is None else (
        f"`{qualified_name(at.site.module, at.function)}`, so `{_compiled(at)}`,"),
    "line": lambda at: at.where.text.strip() if at.where is not None else "",
    "loop": lambda at: str(loop.lineno) if (loop := at.turned_loop if at.met.event == "size" else (
        at.loops[-1] if at.loops else None)) else "",
    "test": lambda at: at.text(at.test),
    "skip_of_size": lambda at: at.text(at.skip_of_size.test) if at.skip_of_size is not None else "",
    "loop_test": lambda at: at.text(at.loop_test),
    "also_if_computes": lambda at: "" if any(at.computes(part, known=True) for part in getattr(
        at.loops[-1] if at.loops else at.statement, "body", ())) else ", if it computes with tensors",
    "also_if_padded": lambda at: ", if the input is no packed sequence" if at.may_be_packed else "",
    "also_grown": _grown,
    "call": lambda at: at.text(at.call),
    "made": lambda at: at.made_of(at.call),
    "outer_call": lambda at: at.text(at.outer_call),
    "outer_line": lambda at: str(at.outer_call.lineno) if at.outer_call is not None else "",
    "given_test": lambda at: at.text(at.given_test),
    "numpy_draw": lambda at: at.text(at.numpy_draw),
    "draws": lambda at: ", ".join(dict.fromkeys(f"`{at.text(each)}`" for each in at.draws)),
    "also_each_turn": _how_often,
    "also_in_order": lambda at: _how_often(at) if len(at.draws) < 2 else ", in the order and as often as they are here",
    "also_of_data": lambda at: f"; set `{SHAPES}` for it" if any(
        map(_is_made_of_data, ast.walk(at.loops[-1] if at.loops else _NOTHING))) else "",
    "also_in_turn": lambda at: _grown(at) + _in_turn(at),
    "copied": lambda at: at.text(at.copied),
    "entered": lambda at: at.text(at.entered),
    "also_named": lambda at: "".join(
        f" (under the name that `{each.id}` has there)" for each in ast.walk(at.entered or _NOTHING)
        if isinstance(each, ast.Name) and each.id in ("self", "cls")),
    "also_as": lambda at: f" as {at.text(at.entered_as)}" if at.entered_as is not None else "",
    "also_passed": lambda at: f", and pass it what its lines need of `{at.text(at.entered_as)}`" if (
        at.entered_as is not None) else "",
    "logger": _logger,
    "also_logs": lambda at: "; where it is `True`, what logs breaks the graph" * (at.met.event == "logger"),
    "operator": lambda at: f"{at.met.module}.{at.met.name}" if at.met.module else "",
    "fixed_use": lambda at: at.use("fixed"),
    "compared": lambda at: at.use("compared"),
    "comparing": lambda at: at.text(at.first("compared")),
    "next_test": lambda at: at.next_test,
    "next_test_of_size": lambda at: at.use("test", of_size=True),
    "numbers_of_size": lambda at: at.use("numbers", of_size=True),
    "also_in_loop": lambda at: ", and no other line of the loop breaks the graph" if (
        what_blocks(at.broken) == "loop") else "",
    "looked_up": lambda at: at.text(at.first("text")),
    "none": _none,
    "raised": lambda at: at.met.raised,
    "added": lambda at: at.text(at.statement) if at.adds_text else "",
    "loss": lambda at: at.text(at.loss),
    "also_used": lambda at: (f"; before this line write `kept = {at.text(at.loss)}.detach()`, and use `kept` for "
                             f"`{at.text(at.loss)}` after it") if at.uses_loss_again else "",
    "also_item": lambda at: (f" (`{at.text(at.index)}.item()` for `{at.text(at.index)}`)"
                             if at.index is not None else ""),
    "also_if_leaves": lambda at: (f"if {' and '.join(_given(at))} {'are' if _given(at)[1:] else 'is'} not computed of "
                                  "what requires a gradient: ") if _given(at) else "",
    "also_lost": lambda at: "; through such a tensor no gradient flows on, without an error" * bool(_given(at)),
    "library_method": _library_method,
    "library_class": lambda at: _library_method(at).partition(".")[0],
    "library_module": lambda at: installed_module(at.where.filename) if at.where is not None else "",
}
