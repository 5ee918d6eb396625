"""Open sizes: dimensions of arguments that differ from call to call, under names that a reader knows.

Torch calls them ``s77`` and says in several places what they are. Here it is one::

    x.shape[0]    batch    2 to 256    (torch: s77)

The name is the one that the user gave it (``b, t = x.shape``); otherwise ``batch`` for the first of several dimensions,
and a letter for any other.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ....decompiler.free_names import free_name
from ....records.model import Compilation, Frame
from ....torch_text.parsed import parsed_expression
from ....torch_text.user_expressions import user_expression
from .arithmetic import least, polynomial
from .conditions import Condition, Tensor, orders_of_dimensions, tensor_check

#: (An array of numpy's is compared as the tensor that torch takes it for.)
_SIZE = r"(?:torch\.as_tensor\([^\s()]*\)|[A-Za-z_][^\s()]*)\.shape\[\d+\]"
_LOW = re.compile(rf"(?P<low>-?\d+) <= (?P<size>{_SIZE})(?: <= (?P<high>\d+))?")
_HIGH = re.compile(rf"(?P<size>{_SIZE}) <= (?P<high>\d+)")
_SAME = re.compile(rf"(?P<size>{_SIZE}) == (?P<of>.*\.shape\[\d+\].*)")
_STRIDE = re.compile(r"(?P<of>[A-Za-z_].*?)\.stride\(\)\[(?P<k>\d+)\] == (?P<product>.*)")
#: How far a range is looked through for where a condition begins to hold.
_FARTHEST = 1000
_LETTERS = "nmklpqrstuvwxyz"


@dataclass(frozen=True)
class OpenSize:
    """A size that calls may choose.

    Attributes:
        expression: that gives it, ``"x.shape[0]"``.
        name: in shapes.
        low, high: the range that guards leave; ``None`` where there is no bound.
        symbol: torch's name; empty where unknown.
    """

    expression: str
    name: str
    low: int | None = None
    high: int | None = None
    symbol: str = ""

    def range_in_words(self) -> str:
        """Return the range: ``"2 to 256"``, ``"2 or more"``, ``"any"``."""
        if self.low is None and self.high is None:
            return "any"
        if self.high is None:
            return f"{self.low} or more"
        return f"{self.low} to {self.high}" if self.low is not None else f"at most {self.high}"


@dataclass
class Sizes:
    """The open sizes of a version.

    Attributes:
        open: by expression, in the order of the arguments.
        names: what stands in a shape for each open dimension: the name of a size, or an expression over such.
        layouts: of the tensors whose strides are open, what the guards fix them to: ``"contiguous"`` or
            ``"channels last"``.
        implied: conditions that shapes and ranges say already.
    """

    open: dict[str, OpenSize] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    layouts: dict[str, str] = field(default_factory=dict)
    implied: set[str] = field(default_factory=set)

    def described(self, condition: Condition) -> str:
        """Return the tensor of a condition with names for its open sizes."""
        tensor = condition.tensor
        assert tensor is not None
        names = [self.names.get(f"{condition.subject}.shape[{k}]", "any") for k in range(len(tensor.size))]
        return tensor.described(names, self.layouts.get(condition.subject))

    def layout(self, condition: Condition) -> str:
        """Return ``"contiguous"``, ``"channels last"`` or the strides of the tensor of a condition."""
        assert condition.tensor is not None
        return self.layouts.get(condition.subject) or condition.tensor.layout() or "contiguous"

    def check(self, condition: Condition) -> str:
        """Return the condition on a tensor, with names for its open sizes."""
        return tensor_check(condition.subject, self.described(condition))


def open_sizes(conditions: Sequence[Condition], frame: Frame, compilation: Compilation | None = None) -> Sizes:
    """Return the open sizes that the guards of a version leave.

    Args:
        conditions: of the version.
        frame: whose version it is.
        compilation: of the version; says torch's names.
    """
    result = Sizes()
    tensors = {one.subject: one for one in conditions if one.tensor is not None}
    expressions = [f"{one.subject}.shape[{k}]" for one in tensors.values() if one.tensor is not None
                   for k, size in enumerate(one.tensor.size) if size is None]
    about = [one for one in conditions if ".shape[" in one.text or ".stride()[" in one.text]
    same = _equal_sizes(about, expressions)
    symbols = symbol_names(compilation)
    for expression, name in _names(frame, [each for each in expressions if each not in same], tensors):
        result.open[expression] = OpenSize(expression, name, symbol=symbols.get(expression, ""))
        result.names[expression] = name
    for expression, (of, text) in same.items():
        shown = re.sub(_SIZE, lambda match: result.names.get(match[0], match[0]), of)
        result.names[expression] = shown.replace(" ", "")
        result.implied.add(text)
    _bound(result, about)
    equal = {expression: of for expression, (of, _) in same.items()}
    _narrow(result, about, equal)
    _find_layouts(result, about, tensors, equal)
    return result


def _equal_sizes(conditions: Iterable[Condition], expressions: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return the sizes that are equal to another expression: that, and the condition that says so."""
    result: dict[str, tuple[str, str]] = {}
    for one in conditions:
        match = _SAME.fullmatch(one.text)
        # (A size that is compared with an expression of itself is open, and the comparison is a condition on it.)
        if match is not None and match["size"] in expressions and match["size"] not in match["of"]:
            result.setdefault(match["size"], (match["of"], one.text))
    return result


def _names(frame: Frame, expressions: Iterable[str], tensors: dict[str, Condition]) -> Iterator[tuple[str, str]]:
    """Yield a name for each open size: that of the function's own text, else a usual one."""
    expressions = list(expressions)
    if not expressions:
        return
    tree = _tree(frame)
    wanted = _names_in_source(tree)
    # A name that stands for something else in the function would mislead.
    taken = {*frame.arguments, *(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))} - {*wanted.values()}
    # Where several sizes stand in first place, none of them is the batch's.
    has_batch = sum(expression.endswith(".shape[0]") for expression in expressions) == 1
    for expression in expressions:
        name = _free(wanted.get(expression) or (_usual(expression, tensors) if has_batch else _LETTERS[0]), taken)
        taken.add(name)
        yield expression, name


def _bound(sizes: Sizes, conditions: Iterable[Condition]) -> None:
    """Give open sizes the bounds that conditions name."""
    for one in conditions:
        match = _LOW.fullmatch(one.text) or _HIGH.fullmatch(one.text)
        if match is not None and match["size"] in sizes.open:
            size = sizes.open[match["size"]]
            parts = match.groupdict()
            sizes.open[match["size"]] = replace(
                size, low=int(parts["low"]) if parts.get("low") else size.low,
                high=int(parts["high"]) if parts.get("high") else size.high)
            sizes.implied.add(one.text)


def _narrow(sizes: Sizes, conditions: Iterable[Condition], same: Mapping[str, str]) -> None:
    """Narrow ranges by what a size must not come to.

    Of ``2 <= n`` and ``(n - 1) // 2 + 1 != 1`` follows ``3 <= n``, and then ``n * n != 1`` says nothing more.
    """
    unequal = []
    for one in conditions:
        match parsed_expression(one.text) if one.text.rpartition(" != ")[2].isdigit() else None:
            case ast.Compare(left, [ast.NotEq()], [ast.Constant(int(value))]):
                unequal.append((one.text, left, value))

    for text, left, value in unequal:
        names = {same.get(size, size) for size in re.findall(_SIZE, text)}
        size = sizes.open.get(min(names)) if len(names) == 1 else None
        if size is None or size.low is None:
            continue
        for low in range(size.low, min(size.low + _FARTHEST, size.high or size.low + _FARTHEST) + 1):
            there = {size.expression: low} | {name: low for name, of in same.items() if of == size.expression}
            reached = least(left, there)
            if reached is None or reached < value:
                break
            if reached > value:
                sizes.open[size.expression] = replace(size, low=low)
                break
    lows = {size.expression: size.low for size in sizes.open.values() if size.low is not None}
    lows |= {name: lows[of] for name, of in same.items() if of in lows}
    for text, left, value in unequal:
        reached = least(left, lows)
        if reached is not None and reached > value:
            sizes.implied.add(text)


def _find_layouts(
    sizes: Sizes, conditions: Iterable[Condition], tensors: dict[str, Condition], same: Mapping[str, str]
) -> None:
    """Strides that are open like the sizes: ``x.stride()[0] == x.shape[1]`` of a contiguous ``x``."""
    strides: dict[str, dict[int, tuple[str, str]]] = {}
    for one in conditions:
        match = _STRIDE.fullmatch(one.text)
        if match is not None:
            strides.setdefault(match["of"], {})[int(match["k"])] = match["product"], one.text
    for subject, condition in tensors.items():
        tensor = condition.tensor
        assert tensor is not None
        if None not in tensor.stride:
            continue
        for layout, order in orders_of_dimensions(len(tensor.size)):
            implied = _implied_by_layout(subject, tensor, order, strides.get(subject, {}), same)
            if implied is not None:
                sizes.layouts[subject] = layout
                sizes.implied |= implied
                break


def _implied_by_layout(
    subject: str, tensor: Tensor, order: Iterable[int], strides: Mapping[int, tuple[str, str]], same: Mapping[str, str]
) -> set[str] | None:
    """Return the conditions by which strides grow in an order of dimensions, the innermost first.

    ``None`` if they do not.
    """
    wanted, implied = "1", set()
    for k in order:
        known, (product, text) = tensor.stride[k], strides.get(k, ("", ""))
        if polynomial(str(known) if known is not None else product, same) != polynomial(wanted, same):
            return None
        implied |= {text} if known is None else set()
        size = tensor.size[k]
        wanted += f"*{size}" if size is not None else f"*{subject}.shape[{k}]"
    return implied


def symbol_names(compilation: Compilation | None) -> dict[str, str]:
    """Return torch's names of what a compilation left open, by expression."""
    return {in_shape_words(user_expression(decision.source)): decision.symbol
            for decision in (compilation.symbols if compilation is not None else ())
            if decision.kind == "created" and decision.source}


def in_shape_words(text: str) -> str:
    """Return ``x.shape[0]`` for ``x.size()[0]``."""
    return re.sub(r"\.size\(\)(?=\[)", ".shape", text)


def range_left(sizes: Sizes, conditions: Iterable[Condition], expression: str) -> str:
    """Return the range that the guards of a version leave for what it keeps open: ``"2 to 256"``.

    ``""`` where they leave it any value, or one.

    Args:
        sizes, conditions: of the version.
        expression: as the guards have it.
    """
    expression = in_shape_words(expression)
    size = sizes.open.get(expression) or next(
        (each for each in sizes.open.values() if each.name == sizes.names.get(expression)), None)
    if size is not None:
        return "" if size.range_in_words() == "any" else size.range_in_words()
    low, high = _bounds(expression, [one.text for one in conditions if expression in one.text])
    if low is None:
        return f"at most {high}" if high is not None else ""
    return f"{low} to {high}" if high is not None else f"{low} or more"


def _bounds(expression: str, texts: Iterable[str]) -> tuple[int | None, int | None]:
    """Return the least and the greatest whole number that conditions on it, or on a multiple of it, leave.

    ``2 <= n``, ``16*n >= 2`` and ``n != 1`` leave 2 and more.
    """
    times = rf"\(?(?:(?P<times>[1-9]\d*)\*)?{re.escape(expression)}\)?"
    patterns = (re.compile(rf"(?:(?P<low>-?\d+) <= )?{times}(?: <= (?P<high>-?\d+))?"),
                re.compile(rf"{times} (?P<sign>>=|<=|>|<|!=) (?P<bound>-?\d+)"))
    lows: list[int] = []
    highs: list[int] = []
    excluded: set[int] = set()
    for text in texts:
        between, compared = (pattern.fullmatch(text) for pattern in patterns)
        if between is not None:
            factor = int(between["times"] or 1)
            lows += [-(-int(between["low"]) // factor)] if between["low"] else []
            highs += [int(between["high"]) // factor] if between["high"] else []
        elif compared is not None:
            factor, bound, sign = int(compared["times"] or 1), int(compared["bound"]), compared["sign"]
            if sign == "!=":
                excluded |= {bound // factor} if bound % factor == 0 else set()
            elif sign[0] == ">":
                lows.append(-(-bound // factor) if sign == ">=" else bound // factor + 1)
            else:
                highs.append(bound // factor if sign == "<=" else -(-bound // factor) - 1)
    low, high = max(lows, default=None), min(highs, default=None)
    while low in excluded:
        low += 1
    while high in excluded:
        high -= 1
    return low, high


def range_in_sentence(words: str) -> str:
    """Return a range as it stands in a sentence: ``"from 2 to 256"``, ``"from 2 on"``."""
    if words.endswith(" or more"):
        return f"from {words.removesuffix(' or more')} on"
    return f"up to {words.removeprefix('at most ')}" if words.startswith("at most ") else f"from {words}"


def _usual(expression: str, tensors: dict[str, Condition]) -> str:
    subject, _, number = expression.rpartition(".shape[")
    tensor = tensors[subject].tensor
    assert tensor is not None
    return "batch" if number == "0]" and len(tensor.size) > 1 else _LETTERS[0]


def _free(wanted: str, taken: set[str]) -> str:
    if wanted not in taken:
        return wanted
    if wanted == _LETTERS[0] or wanted == "batch":
        for letter in _LETTERS:
            if letter not in taken:
                return letter
    return free_name(wanted, taken, first=2)


def _tree(frame: Frame) -> ast.Module:
    try:
        return ast.parse(textwrap.dedent(frame.original.text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _names_in_source(tree: ast.Module) -> dict[str, str]:
    """Return the names that the function itself gives to sizes.

    ``b, t = x.shape``, ``n = x.size(0)``, ``n = len(x)``.
    """
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
