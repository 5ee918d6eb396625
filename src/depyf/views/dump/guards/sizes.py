"""Open sizes: dimensions of arguments that differ from call to call, by name.

Torch calls them ``s77`` and says in several places what they are. Here it is one::

    x.shape[0]    batch    2 to 256    (torch: s77)

The name is that of the user's program (``b, t = x.shape``); otherwise ``batch`` for the first of several dimensions,
and a letter for any other.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from ....decompiler.nodes import free_name
from ....model.arithmetic import Interval, is_number, least, number, plain, polynomial, sizes_in, substituted
from ....model.guards import Comparison, Condition, Range, Tensor, orders_of_dimensions
from ....model.reading import in_shape_words
from ....records.model import Compilation, Frame, GuardFailure, SourceLocation, SymbolDecision
from ....torch_text import guard_failures
from ....torch_text.libraries import is_of, short_path_of_torch
from ....torch_text.parsed import parsed_expression, parsed_file
from ....torch_text.size_names import bound_of_symbol, is_float, symbols_in, with_symbols
from ....torch_text.user_expressions import sources_in_words, sources_of, user_expression, with_stack_names
from ....values import frozen
from ...changes import in_words
from ...markdown import code

if TYPE_CHECKING:
    from .versions import Version

#: How far above its least value a size is tried to find where a condition becomes true.
_FARTHEST = 1000
_LETTERS = "nmklpqrstuvwxyz"


@frozen
class OpenSize:
    """A size that calls may choose."""

    expression: str  # `"x.shape[0]"`
    name: str  # in shapes
    range: Interval = Interval()  # that guards leave
    symbol: str = ""  # torch's name; empty where unknown


@dataclass
class Sizes:
    """The open sizes of a version."""

    open: dict[str, OpenSize] = field(default_factory=dict)  # by expression, in the order of the arguments
    # what a shape shows for each open dimension: the name of a size, or an expression over such
    names: dict[str, str] = field(default_factory=dict)
    # of the tensors whose strides are open, what the guards fix them to: `"contiguous"` or `"channels last"`
    layouts: dict[str, str] = field(default_factory=dict)
    implied: set[str] = field(default_factory=set)  # conditions that shapes and ranges say already

    def described(self, tensor: Tensor) -> str:
        """Return a tensor with names for its open sizes."""
        names = [self.names.get(f"{tensor.subject}.shape[{k}]", "any") for k in range(len(tensor.size))]
        return tensor.described(names, self.layouts.get(tensor.subject))

    def layout(self, tensor: Tensor) -> str:
        """Return ``"contiguous"``, ``"channels last"`` or the strides of a tensor."""
        return self.layouts.get(tensor.subject) or tensor.layout() or "contiguous"

    def text(self, condition: Condition) -> str:
        """Return a condition; one on a tensor with names for its open sizes."""
        if isinstance(condition, Tensor):
            return condition.described_as(self.described(condition))
        return condition.text


def open_sizes(conditions: Sequence[Condition], frame: Frame, compilation: Compilation | None = None) -> Sizes:
    """Return the open sizes that the guards of a version leave; ``compilation`` says torch's names."""
    result = Sizes()
    tensors = {one.subject: one for one in conditions if isinstance(one, Tensor)}
    expressions = [f"{one.subject}.shape[{k}]" for one in tensors.values()
                   for k, size in enumerate(one.size) if size is None]
    same: dict[str, str] = {}  # sizes that are equal to another expression
    for one in conditions:
        # (A size that is compared with an expression of itself is open, and the comparison is a condition on it.)
        if (isinstance(one, Comparison) and one.sign == "==" and one.left in expressions and one.left not in same
                and one.left not in (sizes := sizes_in(parsed_expression(one.right))) and sizes):
            same[one.left] = one.right
            result.implied.add(one.text)
    symbols = symbol_names(compilation)
    for expression, name in _names(frame, [each for each in expressions if each not in same], tensors):
        result.open[expression] = OpenSize(expression, name, symbol=symbols.get(expression, ""))
        result.names[expression] = name
    for expression, of in same.items():
        result.names[expression] = substituted(of, result.names).replace(" ", "")
    for one in conditions:
        if isinstance(one, Range) and one.left in result.open:
            size = result.open[one.left]
            low, high = (new if new is not None else old for new, old in (
                (one.low, size.range.low), (one.high, size.range.high)))
            result.open[one.left] = replace(size, range=Interval(low, high))
            result.implied.add(one.text)
    _narrow(result, conditions, same)
    _find_layouts(result, conditions, tensors, same)
    return result


def _names(frame: Frame, expressions: Sequence[str], tensors: Mapping[str, Tensor]) -> Iterator[tuple[str, str]]:
    """Yield a name for each open size: that in the function's source, else a default."""
    if not expressions:
        return
    tree = parsed_file(textwrap.dedent(frame.original.text)) or ast.Module([], [])
    wanted = _names_in_source(tree)
    # A name that is something else in the function would mislead.
    taken = {*frame.arguments, *(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))} - {*wanted.values()}
    # Where several sizes are in first place, none of them is the batch's.
    has_batch = sum(expression.endswith(".shape[0]") for expression in expressions) == 1
    for expression in expressions:
        subject, _, number = expression.rpartition(".shape[")
        is_batch = has_batch and number == "0]" and len(tensors[subject].size) > 1
        name = wanted.get(expression) or ("batch" if is_batch else _LETTERS[0])
        if name in taken and name in ("batch", _LETTERS[0]):
            name = next((letter for letter in _LETTERS if letter not in taken), name)
        name = free_name(name, taken, first=2)
        taken.add(name)
        yield expression, name


def _narrow(sizes: Sizes, conditions: Iterable[Condition], same: Mapping[str, str]) -> None:
    """Narrow ranges by what a size must not come to.

    Of ``2 <= n`` and ``(n - 1) // 2 + 1 != 1`` follows ``3 <= n``, and then ``n * n != 1`` says nothing more.
    """
    unequal = [(one.text, node, int(one.right)) for one in conditions
               if isinstance(one, Comparison) and one.sign == "!=" and one.right.isdigit()
               and (node := parsed_expression(one.left)) is not None]
    for _, left, value in unequal:
        names = {same.get(size, size) for size in sizes_in(left)}
        size = sizes.open.get(min(names)) if len(names) == 1 else None
        if size is None or size.range.low is None:
            continue
        farthest = size.range.low + _FARTHEST
        for low in range(size.range.low, min(farthest, size.range.high or farthest) + 1):
            there = {size.expression: low} | {name: low for name, of in same.items() if of == size.expression}
            reached = least(left, there)
            if reached is None or reached < value:
                break
            if reached > value:
                sizes.open[size.expression] = replace(size, range=replace(size.range, low=low))
                break
    lows = {size.expression: size.range.low for size in sizes.open.values() if size.range.low is not None}
    lows |= {name: lows[of] for name, of in same.items() if of in lows}
    for text, left, value in unequal:
        reached = least(left, lows)
        if reached is not None and reached > value:
            sizes.implied.add(text)


def _find_layouts(
    sizes: Sizes, conditions: Iterable[Condition], tensors: Mapping[str, Tensor], same: Mapping[str, str]
) -> None:
    """Find tensors with open strides that follow from sizes: ``x.stride()[0] == x.shape[1]`` of a contiguous ``x``."""
    equal = {one.left: one for one in conditions if isinstance(one, Comparison) and one.sign == "=="}
    for subject, tensor in tensors.items():
        said = [equal.get(f"{subject}.stride()[{k}]") for k in range(len(tensor.stride))]
        strides = [str(known) if known is not None else one.right if one is not None else ""
                   for known, one in zip(tensor.stride, said)]
        shape = [str(size) if size is not None else f"{subject}.shape[{k}]" for k, size in enumerate(tensor.size)]
        for layout, order in orders_of_dimensions(len(tensor.size)) if None in tensor.stride else ():
            if all(polynomial(strides[k], same) == polynomial("*".join(["1", *(shape[i] for i in order[:at])]), same)
                   for at, k in enumerate(order)):
                sizes.layouts[subject] = layout
                sizes.implied |= {one.text for one, known in zip(said, tensor.stride) if one and known is None}
                break


def symbol_names(compilation: Compilation | None) -> dict[str, str]:
    """Return torch's names of what a compilation left open, by expression."""
    return {in_shape_words(user_expression(decision.source)): decision.symbol
            for decision in (compilation.symbols if compilation is not None else ())
            if decision.kind == "created" and decision.source}


def range_left(sizes: Sizes, conditions: Iterable[Condition], expression: str) -> Interval:
    """Return the range that the guards of a version leave for an expression, by conditions on it or a multiple of it.

    ``2 <= n``, ``16*n >= 2`` and ``n != 1`` leave 2 and more.
    """
    expression = in_shape_words(expression)
    size = sizes.open.get(expression) or next(
        (each for each in sizes.open.values() if each.name == sizes.names.get(expression)), None)
    if size is not None:
        return size.range
    left, excluded = Interval(), set()
    for one in conditions:
        match one:
            case Range():
                signs = [(sign, bound) for sign, bound in ((">=", one.low), ("<=", one.high)) if bound is not None]
            case Comparison() if (bound := number(parsed_expression(one.right))) is not None:
                signs = [(one.sign, bound)]
            case _:
                continue
        terms = polynomial(one.left) if expression in one.left else None
        factor = terms.get((expression,), 0) if terms and len(terms) == 1 else 0
        for sign, bound in signs if factor > 0 else ():
            left = left.narrowed(sign, bound, factor)
            if sign == "!=" and bound % factor == 0:
                excluded.add(bound // factor)
    low, high = left.low, left.high
    while low in excluded:
        low += 1
    while high in excluded:
        high -= 1
    return Interval(low, high)


def _names_in_source(tree: ast.Module) -> dict[str, str]:
    """Return the names of sizes in a function: ``b, t = x.shape``, ``n = x.size(0)``, ``n = len(x)``."""
    result: dict[str, str] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign([ast.Tuple(targets)], value) if (owner := _shape_of(value)):
                for k, target in enumerate(targets):
                    if isinstance(target, ast.Starred):
                        break
                    if isinstance(target, ast.Name) and target.id != "_":
                        result.setdefault(f"{owner}.shape[{k}]", target.id)
            case ast.Assign([ast.Name(name)], ast.Subscript(value, ast.Constant(int(k)))) \
                    if (owner := _shape_of(value)):
                result.setdefault(f"{owner}.shape[{k}]", name)
            case ast.Assign([ast.Name(name)], ast.Call(ast.Attribute(value, "size"), [ast.Constant(int(k))])):
                result.setdefault(f"{ast.unparse(value)}.shape[{k}]", name)
            case ast.Assign([ast.Name(name)], ast.Call(ast.Name("len"), [value])):
                result.setdefault(f"{ast.unparse(value)}.shape[0]", name)
    return result


def _shape_of(node: ast.expr) -> str:
    """Return ``x`` of ``x.shape`` and of ``x.size()``."""
    match node:
        case ast.Attribute(value, "shape") | ast.Call(ast.Attribute(value, "size"), []):
            return ast.unparse(value)
    return ""


# --- equations ----------------------------------------------------------------------------------------------
#: Operations on sizes whose results differ for nearly all sizes: no remainder. (Calls are of ``max`` and ``min``.)
_DISTINCT = (ast.expr_context, ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.UnaryOp, ast.USub, ast.BinOp,
            ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Pow, ast.Call)


def equations(sizes: Sizes, conditions: Iterable[Condition]) -> dict[str, Condition]:
    """Return the open sizes and numbers of which an expression has to be one number.

    Each has the equation on fewest of them. ``(x.shape[2] // 4)*(x.shape[3] // 4) == 36`` leaves few values of both.
    """
    equated: list[tuple[set[str], Condition]] = []
    for one in conditions:
        left = parsed_expression(one.left) if isinstance(one, Comparison) and one.sign == "==" else None
        if isinstance(one, Comparison) and left is not None and is_number(parsed_expression(one.right)) and all(
                isinstance(each, _DISTINCT) for each in ast.walk(left)):
            is_computed = isinstance(left, ast.BinOp | ast.Call | ast.UnaryOp)
            equated.append((sizes_in(left) & {*sizes.names} | ({one.subject} if is_computed else set()), one))
    found: dict[str, Condition] = {}
    for names, one in sorted(equated, key=lambda each: len(each[0])):
        for size in names:
            found.setdefault(size, one)
    # (A size that is equal to another one has the name of that in shapes.)
    named = {sizes.names.get(size, ""): one for size, one in found.items()}
    return {**{size: named[name] for size, name in sizes.names.items() if name in named}, **found}


# --- the symbols in a graph -----------------------------------------------------------------------------------
def symbol_table(
    text: str, compilation: Compilation | None, sizes: Sizes, given: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Return comments on the symbols in a graph; ``given``: its parameters in the user's words, ``""`` for unknown."""
    if compilation is None:
        return []
    ranges: dict[str, Interval] = {}  # that conditions leave
    for decision in compilation.symbols:
        if decision.kind == "guarded" and (bound := bound_of_symbol(decision.symbol)) is not None:
            symbol, sign, value = bound
            ranges[symbol] = ranges.get(symbol, Interval()).narrowed(sign, value)
    meanings: dict[str, str] = {}
    for decision in compilation.symbols:
        symbol, left = decision.symbol, None
        if decision.kind == "created" and decision.source:
            meanings[symbol] = in_shape_words(user_expression(decision.source))
            left = sizes.open[meanings[symbol]].range if meanings[symbol] in sizes.open else None
        elif decision.kind == "unbacked":
            meanings[symbol] = given[symbol] or "given to the graph" if symbol in given else _origin(decision)
            left = ranges.get(symbol)
        meanings[symbol] = meanings.get(symbol, "") + (f", {left.in_words()}" if left is not None else "")
    used = dict.fromkeys(symbols_in("\n".join(line.partition("#")[0] for line in text.splitlines())))
    return [f"# {symbol}: {meanings[symbol]}" for symbol in used if meanings.get(symbol)]


def _origin(decision: SymbolDecision) -> str:
    """Return where a data-dependent value was computed."""
    where = decision.location
    if where is None or not where.text:
        return "known only when the graph runs"
    names, _, value = where.text.partition(" = ")
    computed = value if value and names.replace(",", "").replace(" ", "").isidentifier() else where.text
    return f"what {computed} gives (line {where.line}), known only when the graph runs"


# --- Conditions on open sizes: those that Inductor made, and those that leave one value ------------------------------
# Where Inductor generates other code for a short reduction than for a long one, each range of sizes has a version. No
# line of the program requires it:
#
#     s77 <= 4096     asked for at _inductor/codegen/cpp.py:2273, need_use_acc_helper
#
# A graph that comes from torch's compile cache brings its conditions along; where they were made is not known then.
#
# Torch says of some sizes and numbers that it fixed them, though they had symbols. Others remain open by name, while a
# condition on them leaves one value:
#
#     s51 created, 1;  Eq(IntTrueDiv(-s51, 10), -0.1)       step / 10 was computed in Python, so step has to be 1


def is_made_by_inductor(decision: SymbolDecision) -> bool:
    """Return whether Inductor added a condition, rather than a user's line."""
    return decision.kind == "guarded" and decision.location is not None and is_of("backend", decision.location.filename)


def how_made(place: SourceLocation) -> str:
    """Return how a condition of Inductor's came about, as a clause of Markdown."""
    if is_of("caches", place.filename):
        return "which came with the compiled graph from torch's cache"
    where = code(f"{short_path_of_torch(place.filename)}:{place.line}")
    function = f", in {code(place.function)}" if place.function else ""
    return f"which Inductor asked for when it compiled the graph ({where}{function})"


def failed_condition(
    failure: GuardFailure, compilation: Compilation, names: Mapping[str, str]
) -> SymbolDecision | None:
    """Return the condition, a user's rather than Inductor's, for which a version did not fit a call."""
    known = {each.symbol: in_words(sources_of(each.source)[0], names)
             for each in compilation.symbols if each.kind == "created" and each.source}
    subject, text = in_words(failure.subject, names), in_words(failure.text.partition(" # ")[0], names)
    failed = [each for each in compilation.symbols if each.kind == "guarded" and (
        [known.get(symbol) for symbol in {*symbols_in(each.symbol)}] == [subject]  # (it is on that size alone)
        and holds_at(each.symbol, failure.seen) is False
        or condition_in_words(each, compilation, names) == text)]
    return min(failed, key=is_made_by_inductor, default=None)


def condition_in_words(decision: SymbolDecision, compilation: Compilation, names: Mapping[str, str]) -> str:
    """Return a condition with sizes in place of their symbols: ``x.shape[0] <= 4096``; of equal sizes the first."""
    known = {each.symbol: in_words(sources_of(each.source)[0], {}) for each in compilation.symbols if each.source}
    integers = not any(map(is_float, symbols_in(decision.symbol)))
    return with_stack_names(
        plain(with_symbols(decision.symbol, lambda symbol: known.get(symbol, symbol)), integers), names)


def with_causes(
    conditions: Sequence[Condition], compilation: Compilation | None, names: Mapping[str, str]
) -> Sequence[Condition]:
    """Return the conditions of a version, those whose upper bound is Inductor's with its place as their cause.

    (Torch names one line for a range: that at which its lower bound became known.)
    """
    bounds: dict[tuple[str, int], SourceLocation] = {}
    for each in compilation.symbols if compilation is not None else ():
        symbol, sign, bound = bound_of_symbol(each.symbol) or ("", "", 0)
        if sign in ("<", "<=") and compilation is not None and each.location is not None and is_made_by_inductor(each):
            size = condition_in_words(replace(each, symbol=symbol), compilation, names)
            bounds[size, bound - (sign == "<")] = replace(
                each.location, filename=short_path_of_torch(each.location.filename))
    return [replace(one, cause=place) if isinstance(one, Range) and one.high is not None and (
        place := bounds.get((one.left, one.high))) else one for one in conditions]


def holds_at(condition: str, value: str) -> bool | None:
    """Return whether a condition on one symbol is true for a number; ``None`` if unknown."""
    is_one = guard_failures.number(value) is not None and len({*symbols_in(condition)}) == 1
    node = parsed_expression(plain(with_symbols(condition, lambda _: f"({value})"), False)) if is_one else None
    holds = least(node, {}) if isinstance(node, ast.Compare) else None
    return None if holds is None else bool(holds)


# --- Sizes and numbers that a version fixes ----------------------------------------------------------
#: Functions of sympy's and torch's that give another result for each value.
_ONE_TO_ONE = frozenset({"IntTrueDiv", "FloatTrueDiv", "ToFloat"})
_MEMBERS = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Call, ast.expr_context, ast.unaryop, ast.Add, ast.Sub,
            ast.Mult, ast.Div)


def fixed_symbols(compilation: Compilation, version: Version | None) -> list[SymbolDecision]:
    """Return the decisions that fix a symbol; for one that a condition fixes, such a decision is made."""
    fixed = [each for each in compilation.symbols if each.kind == "fixed"]
    known = {each.symbol for each in fixed}
    created = {each.symbol: each for each in compilation.symbols if each.kind == "created"}
    for each in compilation.symbols:
        symbol = specialized_symbol(each.symbol) if each.kind == "guarded" else ""
        if symbol in created and symbol not in known and holds(each, compilation, version):
            known.add(symbol)
            fixed.append(replace(created[symbol], kind="fixed", reason="a condition leaves one value",
                                 location=each.location))
    return fixed


def holds(condition: SymbolDecision, compilation: Compilation, version: Version | None) -> bool:
    """Return whether a condition that torch tested may be true for each call of the version."""
    # (A backend tests, for a backward graph, too, whether what is open equals the numbers of the first call, and drops
    # that again: such an equation is not among the guards.)
    match parsed_expression(condition.symbol):
        case ast.Call(ast.Name("Eq"), [left, right], []) if version is not None and is_number(right):
            symbols = set(symbols_in(condition.symbol))
            created = [sources_in_words(each.source, {}) for each in compilation.symbols
                       if each.kind == "created" and each.symbol in symbols]
            # (The guards leave one value of each, as far as they say.)
            return all(version.equations.keys() & set(names) or version.sizes.names.keys().isdisjoint(names)
                       and not (isinstance(left, ast.Name) and any(
                           (fact := version.facts.get(name)) and fact.kind == "type" for name in names))
                       for names in created)
    return True


def specialized_symbol(condition: str) -> str:
    """Return the symbol of which a condition of torch's leaves one value, ``"s51"``; ``""`` where there is none."""
    symbols = set(symbols_in(condition))
    node = parsed_expression(condition) if len(symbols) == 1 else None
    match node:
        case ast.Call(ast.Name("Eq"), [left, right], []) if not symbols_in(ast.unparse(right)):
            if all(isinstance(each, _MEMBERS) for each in ast.walk(left)) and all(
                    isinstance(each.func, ast.Name) and each.func.id in _ONE_TO_ONE
                    for each in ast.walk(left) if isinstance(each, ast.Call)):
                return symbols.pop()
    return ""
