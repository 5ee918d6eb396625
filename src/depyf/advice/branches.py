"""A branch on a value in a tensor: as one operation of the graph, for a trial to judge, or the reason why not.

    if x.sum() > 0:          ->     y = torch.where(x.sum() > 0, x + 1, x - 1)
        y = x + 1
    else:
        y = x - 1

``torch.where`` computes both sides at each call, so that effects, exceptions and gradients of the side that is not
taken count, too. What is known to differ prevents the rewriting (values of Python's, a tensor that others see change);
the rest ``depyf fix`` finds out by running both, and advice gives no such change without that.
"""

from __future__ import annotations

import ast
import copy
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from ..records.model import NamedValue
from ..values import frozen
from .model import Advice, Edit, indented
from .source import Site, own_parts

_WHY = "a graph holds both sides of `torch.where`, but no branch on a value that only the data tells"
_COST = "both sides are computed at each call; if the side that is not taken has no finite gradient, gradients are NaN"
_BOTH = "`torch.where`, which a graph can hold, computes both sides at each call"
_MAY_BE_SAME = (f"{_BOTH}: that is the same only where the condition is a tensor, and both are free of effects and of "
                "what can raise, give tensors of one shape and dtype, and have finite gradients")
_CHECK = ("`torch._assert_async(condition, 'text')` is a check that a graph can hold: it raises a `RuntimeError`, "
          "whose text is fixed, on a GPU later")
_OTHER_CLASS = "; an `except` may catch what the program raises here now, and not that one"
_MASKED = ("where `{}` has truth values, none of them true, the assignment sets nothing: without the `if` it needs no "
           "value and does the same, unless computing or setting what is assigned raises or has another effect")
#: Operations of tensors that give truth values.
_TRUTHS = frozenset({"any", "all", "isnan", "isinf", "isfinite", "logical_not"})
#: Functions and methods that give Python values, and builtin functions that do.
_OF_PYTHON = frozenset({"item", "tolist", "size", "dim", "numel", "len", "int", "float", "bool", "list", "dict", "str",
                        "equal", "allclose", "is_nonzero"})
_BUILTINS = frozenset({"any", "all", "isinstance", "hasattr", "callable", "sorted"})
_NUMBERS = frozenset({"int", "float", "bool", "str", "NoneType", "SymInt", "SymFloat", "SymBool"})


@frozen
class Choice:
    """A choice between two values."""

    test: ast.expr  # by which it is made
    one: ast.expr | Choice  # the value where it is true
    other: ast.expr | Choice  # the value where it is not
    target: str  # the variable, item or attribute that gets the value; `""`: it is returned, or a part of the statement
    statement: ast.stmt  # what the choice becomes, with `Name("depyf_choice")` in the place of the value
    last: int  # the last line that it replaces


def on_branch(site: Site) -> Advice | None:
    """Return why a statement that branches on a value in a tensor is none of a graph; ``None``: it has no branch."""
    match site.statement:
        case ast.If(body=[ast.Raise(ast.Call(ast.Name("RuntimeError")))], orelse=[]):
            return Advice("check", _CHECK, is_change=False)
        case ast.Assert() | ast.If(body=[ast.Raise()], orelse=[]):
            return Advice("check", _CHECK + _OTHER_CLASS, is_change=False)
    found = _rewritten(site)
    if found is None:
        return None
    if isinstance(found, str):
        return Advice("branch", f"{_BOTH} and gives one of two values; this statement does something else: {found}",
                      is_change=False)
    tried = " (`depyf fix` tries it)" if found.edits and site.is_tried else ""
    return Advice("branch", (_MAY_BE_SAME if found.condition else found.why) + tried, is_change=False)


def candidates(site: Site) -> list[Advice]:
    """Return the rewriting of a branch that a trial may find to be the same, with its edit."""
    found = _rewritten(site)
    return [found] if isinstance(found, Advice) and found.edits else []


def _rewritten(site: Site) -> Advice | str | None:
    """Return the rewriting of a branch, or why it is not the same, as a clause; ``None`` where there is no branch."""
    node, values = site.statement, Values(site.broken.values)
    match node:
        case None:
            return None
        case ast.If(test, [ast.Assign([ast.Subscript(_, at)]) | ast.AugAssign(ast.Subscript(_, at)) as only], []) if (
                values.dtype(at) == "bool" and ast.unparse(test) in (
                    form.format(ast.unparse(at)) for form in ("{}.any()", "torch.any({})", "{}.sum() > 0"))):
            return with_lines(site, "branch", [unparsed(only, site.text)], _MASKED.format(ast.unparse(at)),
                              "what is assigned is computed at each call")
    choice = _choice(node, site.following, values)
    if choice is None and not isinstance(node, ast.If):
        filters = [each for each in own_parts(node) if isinstance(each, ast.comprehension) and each.ifs]
        return "how many elements are taken depends on the values" if filters else None
    if why_not := _prevented(site, node, choice, values):
        return why_not
    if choice is None:
        return "its sides do more than choose one value"
    try:
        for side in filter(values.is_python, _sides(choice)):
            raise Unproven(f"`{unparsed(side, site.text)}` is a value of Python's, and `torch.where` gives a tensor")
        chosen = _where(site, choice, values)
    except Unproven as error:
        return str(error)
    lines = unparsed(ast.Module([_Filled(chosen).visit(copy.deepcopy(choice.statement))], []), site.text).splitlines()
    return replace(with_lines(site, "branch", lines, _WHY, _COST, choice.last),
                   condition=(unparsed(choice.test, site.text), unparsed(chosen.args[0], site.text)))


# --- what a branch does -------------------------------------------------------------------------------
def _choice(node: ast.stmt, following: ast.stmt | None, values: Values) -> Choice | None:
    """Return the choice of one value that a statement makes; ``None`` where it does anything else."""
    last = node.end_lineno or node.lineno
    match node:
        case ast.If(ast.BoolOp(ast.And(), [known, *tests]), body, []) if values.is_python(known):
            others = ast.BoolOp(ast.And(), tests) if tests[1:] else tests[0]
            inner = _choice(ast.copy_location(ast.If(others, body, []), node), following, values)
            return replace(inner, statement=ast.If(known, [inner.statement], [])) if inner and inner.target else None
        case ast.If(test, body, orelse):
            target = _target(body) or _target(orelse)
            if target:
                one, other = _value(body, target), _value(orelse, target)
                if one is not None and other is not None:
                    assigned = ast.Assign([ast.parse(target, mode="eval").body], _HOLE)
                    return Choice(test, one, other, target, assigned, last)
            rest = [] if orelse or following is None else [following]
            one, other = _value(body, ""), _value([*orelse, *rest], "")
            if one is not None and other is not None:
                return Choice(test, one, other, "", ast.Return(_HOLE), rest[0].end_lineno or last if rest else last)
        case ast.Assign() | ast.AnnAssign() | ast.Return() | ast.AugAssign() | ast.Expr():
            found = [each for each in ast.walk(node) if isinstance(each, ast.IfExp)]
            if len(found) == 1:
                statement = _Filled(_HOLE).visit(copy.deepcopy(node))
                return Choice(found[0].test, found[0].body, found[0].orelse, "", statement, last)
    return None


_HOLE = ast.Name("depyf_choice", ast.Load())


class _Filled(ast.NodeTransformer):
    def __init__(self, value: ast.expr) -> None:
        self.value = value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.value if node.id == _HOLE.id else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        return self.value


def _target(block: Sequence[ast.stmt]) -> str:
    match block:
        case [ast.AugAssign(target)] | [ast.Assign([ast.Name() | ast.Subscript() | ast.Attribute() as target])]:
            return ast.unparse(target)
        case [ast.If(_, body)]:
            return _target(body)
    return ""


def _value(block: Sequence[ast.stmt], target: str) -> ast.expr | Choice | None:
    """Return what a block sets a target to, or returns if it is ``""``; ``None`` where it does anything else."""
    match block:
        case [ast.Return(ast.expr() as value)] if not target:
            return value
        case [] if target:
            return ast.parse(target, mode="eval").body
        case [ast.Assign([to], value)] if ast.unparse(to) == target:
            return value
        case [ast.AugAssign(to, operator, value)] if ast.unparse(to) == target:
            return ast.BinOp(ast.parse(target, mode="eval").body, operator, value)
        case [ast.If(test, body, orelse) as inner]:
            one, other = _value(body, target), _value(orelse, target)
            if one is not None and other is not None:
                return Choice(test, one, other, target, inner, inner.end_lineno or 0)
    return None


def _prevented(site: Site, node: ast.stmt, choice: Choice | None, values: Values) -> str:
    """Return which statement of one side prevents that both are computed, as a clause; ``""`` for none."""
    sides = {ast.unparse(side) for side in _sides(choice)} if choice is not None else set()
    both = choice.target if choice is not None and choice.target not in sides else ""
    for statement in _one_sided(node):
        match statement:
            case ast.AugAssign(ast.Name(name)) if not values.is_alone(name):
                whose = "changes the caller's tensor" if values.is_given(name) else "may change another's tensor"
                return f"`{unparsed(statement, site.text)}` {whose} in place, and `torch.where` makes a new one"
            case ast.Assign([ast.Subscript() | ast.Attribute() as target]) | ast.AugAssign(
                    ast.Subscript() | ast.Attribute() as target) if ast.unparse(target) != both:
                return f"a side sets `{unparsed(target, site.text)}`"
            case ast.Return(ast.expr()) | ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Pass():
                continue
        return f"`{unparsed(statement, site.text).splitlines()[0]}` runs on one side only"
    return ""


def _one_sided(node: ast.stmt) -> Iterator[ast.stmt]:
    """Yield the statements that only one side of a branch has."""
    for statement in (*node.body, *node.orelse) if isinstance(node, ast.If) else ():
        yield from _one_sided(statement) if isinstance(statement, ast.If) else (statement,)


# --- torch.where --------------------------------------------------------------------------------------
def _sides(choice: Choice) -> Iterator[ast.expr]:
    for side in (choice.one, choice.other):
        yield from _sides(side) if isinstance(side, Choice) else (side,)


def _where(site: Site, choice: Choice, values: Values) -> ast.Call:
    """Return the call that makes a choice; raise :class:`Unproven` where it is known not to be the same."""
    test = truth(choice.test, values, lambda node: unparsed(node, site.text))
    sides = [_where(site, side, values) if isinstance(side, Choice) else side for side in (choice.one, choice.other)]
    return ast.Call(ast.Attribute(ast.Name("torch", ast.Load()), "where", ast.Load()), [test, *sides], [])


# --- what expressions are, as far as the facts recorded at a break say it ------------------------------
#     x: float32        len(x)                     ->  a value of Python's
#                       x.sum().item() > 0         ->  x.sum() > 0, a tensor of truth
class Unproven(Exception):
    """A rewriting is known not to be the same; the text says why, as a clause."""


class Values:
    """The local variables at a graph break."""

    def __init__(self, values: Iterable[NamedValue]) -> None:
        self._by_name = {each.name: each for each in values}
        self._shared = {name for each in values if each.same_as for name in (each.name, each.same_as)}
        self._shared |= {each.name for each in values if each.shares_memory}

    def is_tensor(self, name: str) -> bool:
        """Return whether a variable is known to be a tensor."""
        return name in self._by_name and self._by_name[name].shape is not None

    def is_given(self, name: str) -> bool:
        """Return whether a variable came from outside of the function."""
        return name in self._by_name and bool(self._by_name[name].source)

    def is_number(self, name: str) -> bool:
        """Return whether a variable is known to be a number, a text or ``None``, which nothing changes in place."""
        return name in self._by_name and self._by_name[name].type in _NUMBERS

    def is_alone(self, name: str) -> bool:
        """Return whether nothing else refers to a variable's object, or its memory; numbers are alone."""
        return self.is_number(name) or name in self._by_name and not self.is_given(name) and name not in self._shared

    def is_python(self, node: ast.expr) -> bool:
        """Return whether an expression is known to give a value of Python's."""
        match node:
            case ast.Constant() | ast.Attribute(_, "shape" | "ndim" | "dtype" | "device" | "training") | ast.Attribute(
                    ast.Name("torch")) | ast.Attribute(ast.Call(ast.Attribute(ast.Name("torch"), "finfo" | "iinfo"))):
                return True
            case ast.List() | ast.Tuple() | ast.Dict() | ast.Set() | ast.ListComp() | ast.DictComp() | ast.JoinedStr():
                return True
            case ast.Compare(_, [ast.Is() | ast.IsNot()]):
                return True
            case ast.Name(name):
                return name in self._by_name and bool(self._by_name[name].type) and not self.is_tensor(name)
            case ast.UnaryOp(ast.USub() | ast.Not(), inner) | ast.Subscript(
                    ast.Attribute(attr="shape") as inner, ast.Constant()):
                return self.is_python(inner)
            case ast.BinOp(left, _, right) | ast.Compare(left, _, [right]):
                return self.is_python(left) and self.is_python(right)
            case ast.Call(ast.Name(name)):
                return name in _OF_PYTHON | _BUILTINS
            case ast.Call(ast.Attribute(ast.Name("np" | "numpy" | "math"))):
                return True
            case ast.Call(ast.Attribute(owner, name)):
                return name in _OF_PYTHON or isinstance(owner, ast.Name) and self.is_number(owner.id)
        return False

    def dtype(self, node: ast.expr) -> str:
        """Return the type of the elements of a tensor; ``""`` where it is not known."""
        match node:
            case ast.Name(name) if self.is_tensor(name):
                return self._by_name[name].dtype
            case ast.Call(ast.Attribute(ast.Name("torch"), name), [of, *_]) | ast.Call(ast.Attribute(of, name)) if (
                    name in _TRUTHS and self.dtype(of) != "uint8"):  # (of `uint8` torch gives no truth values)
                return "bool"
        return ""


def truth(test: ast.expr, values: Values, text: Callable[[ast.expr], str]) -> ast.expr:
    """Return a test as one tensor of truth.

    Raises:
        Unproven: the test needs a value of Python's, or as a tensor it may compare otherwise than numbers do.
    """
    match test:
        case ast.BoolOp(operator, parts):
            first, *others = (truth(part, values, text) for part in parts)
            for part in others:
                first = ast.BinOp(first, ast.BitAnd() if isinstance(operator, ast.And) else ast.BitOr(), part)
            return first
        case ast.UnaryOp(ast.Not(), inner):
            return ast.UnaryOp(ast.Invert(), truth(inner, values, text))
        case ast.Compare(left, [operator], [right]) if not isinstance(operator, (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
            sides = [_tensor_of(left), _tensor_of(right)]
            if all(map(values.is_python, sides)):
                raise Unproven(f"`{text(test)}` is computed with values of Python's")
            for side, tensor, beside in ((left, sides[0], right), (right, sides[1], left)):
                if tensor is not side and not _is_exact(beside):
                    raise Unproven(f"`{text(side)}` is compared as a number of Python's, in double precision")
            return ast.Compare(sides[0], [operator], [sides[1]])
    tensor = _tensor_of(test)
    if isinstance(test, ast.Compare):
        raise Unproven(f"`{text(test)}` asks for a truth value of Python's")
    if values.is_python(tensor):
        raise Unproven(f"`{text(test)}` is no tensor")
    return tensor if values.dtype(tensor) == "bool" else ast.Compare(tensor, [ast.NotEq()], [ast.Constant(0)])


def _tensor_of(node: ast.expr) -> ast.expr:
    """Return the tensor of a number: ``x.sum()`` for ``x.sum().item()``."""
    match node:
        case ast.Call(ast.Attribute(inner, "item"), [], []):
            return inner
        case ast.Call(ast.Name("float" | "bool"), [inner], []) if not isinstance(inner, ast.Constant):
            return _tensor_of(inner)
    return node


def _is_exact(node: ast.expr) -> bool:
    """Return whether it is a number that single precision has, so that a comparison in it gives the same."""
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, int):
        return abs(value) < 2**24
    return isinstance(value, float) and abs(value) < 3e38 and struct.unpack("f", struct.pack("f", value))[0] == value


# --- the result ---------------------------------------------------------------------------------------
def unparsed(node: ast.AST, text: str = "") -> str:
    """Return the text of a node that was put together; its constants as they are written in ``text``."""
    return ast.unparse(_AsWritten(text).visit(copy.deepcopy(ast.fix_missing_locations(node))) if text else (
        ast.fix_missing_locations(node)))


class _AsWritten(ast.NodeTransformer):
    """Writes numbers and texts as the user did: ``1e9``, not ``1000000000.0``."""

    def __init__(self, text: str) -> None:
        self.text = text

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.JoinedStr:
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        written = ast.get_source_segment(self.text, node) or ""
        try:
            same = "\n" not in written and ast.literal_eval(written) == node.value
        except (SyntaxError, ValueError):
            same = False
        return ast.Name(written, ast.Load()) if same else node


def with_lines(site: Site, rule: str, lines: Sequence[str], why: str, cost: str, last: int | None = None) -> Advice:
    """Return the advice to replace the user's statement by other lines."""
    node = site.statement
    edits: tuple[Edit, ...] = ()
    if node is not None and site.editable and site.where is not None and stands_alone(site, node):
        blanks = site.lines[node.lineno - 1][: node.col_offset]
        edits = (Edit(site.where.filename, node.lineno, last or node.end_lineno or node.lineno,
                      indented(lines, blanks)),)
    shown = "; ".join(f"`{line.strip()}`" for line in lines)
    return Advice(rule, f"write {shown}", why, cost, edits)


def stands_alone(site: Site, node: ast.stmt, with_comment: bool = False) -> bool:
    """Return whether a statement is alone on its lines: no other statement, no ``elif``, no comment."""
    first, last = site.lines[node.lineno - 1], site.lines[(node.end_lineno or node.lineno) - 1]
    before = first.encode()[: node.col_offset].decode()
    after = last.encode()[node.end_col_offset or 0 :].decode().strip()
    return not before.strip() and (not after or with_comment and after.startswith("#")) and not first.lstrip(
        ).startswith("elif")
