"""A branch on a value in a tensor: as one operation of the graph, for a trial to judge, or the reason why not.

    if x.sum() > 0:          ->     y = torch.where(x.sum() > 0, x + 1, x - 1)
        y = x + 1
    else:
        y = x - 1

``torch.where`` computes both sides at each call, so that effects, exceptions and gradients of the side that is not
taken count, too. What is known to differ (values of Python's, effects) prevents the rewriting; the rest ``depyf fix``
finds out by running both, and advice gives no such change without that.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..values import frozen
from .model import Advice, Edit, indented
from .source import Site, called, own_parts
from .tensor_values import Unproven, Values, effect, truth

_WHY = "a graph holds both sides of `torch.where`, but no branch on a value that only the data tells"
_COST = "both sides are computed at each call; if the side that is not taken has no finite gradient, gradients are NaN"
_BOTH = "`torch.where`, which a graph can hold, computes both sides at each call"
_MAY_BE_SAME = (f"{_BOTH}: that is the same only where both are free of effects and of what can raise, give tensors of "
                "one shape and dtype, and have finite gradients")
_CHECK = ("`torch._assert_async(condition, 'text')` is a check that a graph can hold: it raises a `RuntimeError`, "
          "whose text is fixed, on a GPU later")
_MASKED = ("where `{}` is true nowhere, the assignment sets nothing: without the `if` it needs no value and does the "
           "same, unless computing or setting what is assigned raises or has another effect")
#: Methods of containers that change them.
_CHANGING = frozenset({"append", "extend", "insert", "pop", "popitem", "remove", "add", "discard", "update", "clear",
                       "setdefault", "put", "write"})
#: Functions that report something.
_REPORTS = frozenset({
    "print", "debug", "info", "warning", "warning_once", "error", "critical", "exception", "log", "warn"})


@frozen
class Choice:
    """A choice between two values.

    Attributes:
        test: by which it is made.
        one, other: the values, where it is true and where not.
        target: the variable, item or attribute that gets the value; ``""``: it is returned, or a part of the statement.
        statement: what the choice becomes, with ``Name("depyf_choice")`` in the place of the value.
        last: the last line that it replaces.
    """

    test: ast.expr
    one: ast.expr | Choice
    other: ast.expr | Choice
    target: str
    statement: ast.stmt
    last: int


def on_branch(site: Site) -> Advice | None:
    """Return why a statement that branches on a value in a tensor is none of a graph; ``None``: it has no branch."""
    node = site.statement
    match node:
        case ast.Assert() | ast.If(body=[ast.Raise()], orelse=[]):
            return Advice("check", _CHECK, is_change=False)
        case None:
            return None
    found = _rewritten(site, node)
    if found is None:
        return None
    if isinstance(found, str):
        return Advice("branch", f"{_BOTH} and gives one of two values; this statement does something else: {found}",
                      is_change=False)
    tried = " (`depyf fix` tries it)" if found.edits and site.is_tried else ""
    return Advice("branch", (_MAY_BE_SAME if found.condition else found.why) + tried, is_change=False)


def candidates(site: Site) -> list[Advice]:
    """Return the rewriting of a branch that a trial may find to be the same, with its edit."""
    found = _rewritten(site, site.statement) if site.statement is not None else None
    return [found] if isinstance(found, Advice) and found.edits else []


def _rewritten(site: Site, node: ast.stmt) -> Advice | str | None:
    """Return the rewriting of a branch, or why it is not the same, as a clause; ``None`` where there is no branch."""
    match node:
        case ast.If(test, [ast.Assign([ast.Subscript(_, at)]) | ast.AugAssign(ast.Subscript(_, at)) as only], []) if (
                Values(site.values).dtype(at) == "bool" and ast.unparse(test) in (
                    form.format(ast.unparse(at)) for form in ("{}.any()", "torch.any({})", "{}.sum() > 0"))):
            return with_lines(site, "branch", [unparsed(only, site.text)], _MASKED.format(ast.unparse(at)),
                              "what is assigned is computed at each call")
    choice = _choice(site, node)
    if choice is None and not isinstance(node, ast.If):
        filters = [each for each in own_parts(node) if isinstance(each, ast.comprehension) and each.ifs]
        return "how many elements are taken depends on the values" if filters else None
    why_not = _prevented(site, node, choice)
    if why_not or choice is None:
        return why_not or "its sides do more than choose one value"
    try:
        return _as_where(site, choice)
    except Unproven as error:
        return str(error)


# --- what a branch does -------------------------------------------------------------------------------
def _choice(site: Site, node: ast.stmt) -> Choice | None:
    """Return the choice of one value that a statement makes; ``None`` where it does anything else."""
    last = node.end_lineno or node.lineno
    match node:
        case ast.If(ast.BoolOp(ast.And(), parts), body, []) if _is_of_python(parts[0], Values(site.values)):
            others = ast.BoolOp(ast.And(), parts[1:]) if len(parts) > 2 else parts[1]
            inner = _choice(site, ast.copy_location(ast.If(others, body, []), node))
            return replace(inner, statement=ast.If(parts[0], [inner.statement], [])) if inner is not None and (
                inner.target) else None
        case ast.If(test, body, orelse):
            target = _target(body) or _target(orelse)
            if target:
                one, other = _value(body, target), _value(orelse, target)
                if one is not None and other is not None:
                    assigned = ast.Assign([ast.parse(target, mode="eval").body], _hole())
                    return Choice(test, one, other, target, assigned, last)
            rest = [] if orelse or site.following is None else [site.following]
            one, other = _value(body, ""), _value([*orelse, *rest], "")
            if one is not None and other is not None:
                return Choice(test, one, other, "", ast.Return(_hole()), rest[0].end_lineno or last if rest else last)
        case ast.Assign() | ast.AnnAssign() | ast.Return() | ast.AugAssign() | ast.Expr():
            found = [each for each in ast.walk(node) if isinstance(each, ast.IfExp)]
            if len(found) == 1:
                target = node.targets[0].id if isinstance(node, ast.Assign) and node.value is found[0] and isinstance(
                    node.targets[0], ast.Name) else ""
                statement = _Filled(_hole()).visit(copy.deepcopy(node))
                return Choice(found[0].test, found[0].body, found[0].orelse, target, statement, last)
    return None


def _is_of_python(test: ast.expr, values: Values) -> bool:
    """Return whether a test, or a part of it, is none of values, so that torch evaluates it while it traces."""
    match test:
        case ast.Compare(_, [ast.Is() | ast.IsNot()]) | ast.Call(ast.Name("isinstance" | "hasattr" | "callable")):
            return True
        case ast.Compare(left, _, others):
            return all(_is_of_python(each, values) for each in (left, *others))
        case ast.UnaryOp(ast.Not(), inner) | ast.Subscript(ast.Attribute(attr="shape") as inner, ast.Constant()):
            return _is_of_python(inner, values)
        case ast.Name(name):
            return values.is_number(name)
        case ast.Attribute(_, name):
            return name == "training" or values.is_python(test)
    return isinstance(test, ast.Constant)


def _hole() -> ast.Name:
    return ast.Name("depyf_choice", ast.Load())


class _Filled(ast.NodeTransformer):
    def __init__(self, value: ast.expr) -> None:
        self.value = value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.value if node.id == "depyf_choice" else node

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


def _prevented(site: Site, node: ast.stmt, choice: Choice | None) -> str:
    """Return what prevents that both sides are computed, as a clause; ``""`` for nothing."""
    values = Values(site.values)
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and values.type_of(each.id) == "ndarray":  # (torch traces it as a tensor)
            return f"`{each.id}` is NumPy's, and `torch.where` takes and returns tensors"
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
            case ast.Return(None):
                return "one side leaves the function, so what comes after it has to run on the other side only"
            case ast.Return(ast.Constant(value)) if not isinstance(value, float):
                return f"one side returns `{value!r}`, which is no tensor"
            case ast.Return(ast.Tuple() | ast.List() | ast.Dict()):
                return "what the sides return is no single tensor"
            case ast.Raise():
                return "one side raises an exception"
            case ast.Break() | ast.Continue():
                return "one side goes to another turn of the loop, so what is computed after it depends on the values"
            case ast.For() | ast.While() | ast.With() | ast.Try():
                return "one side contains statements that have to run on that side only"
        for call in (each for each in ast.walk(statement) if isinstance(each, ast.Call)):
            name = called(call)
            if name in _REPORTS and call.args and not _is_of_tensors(call, values):
                return f"`{unparsed(call, site.text)}` has to happen on one side only"
            if name in _CHANGING and isinstance(call.func, ast.Attribute):
                return f"`{unparsed(call.func.value, site.text)}` is changed on one side only"
            if name.endswith("_") and not name.startswith("_"):
                return f"`{unparsed(call, site.text)}` changes a tensor in place on one side only"
    return ""


def _one_sided(node: ast.stmt) -> Iterator[ast.AST]:
    """Yield the statements, or the values, of which only one side has each."""
    if not isinstance(node, ast.If):
        for each in ast.walk(node):
            if isinstance(each, ast.IfExp):
                yield from (each.body, each.orelse)
        return
    for statement in (*node.body, *node.orelse):
        if isinstance(statement, ast.If):
            yield from _one_sided(statement)
        else:
            yield statement


def _is_of_tensors(call: ast.Call, values: Values) -> bool:
    """Return whether a call is of torch's or of a tensor's: ``torch.log(x)`` reports nothing."""
    match call.func:
        case ast.Attribute(ast.Name(owner)):
            return owner in ("torch", "math") or values.is_tensor(owner)
        case ast.Attribute(ast.Call() | ast.BinOp()):
            return True
    return False


# --- torch.where --------------------------------------------------------------------------------------
def _as_where(site: Site, choice: Choice) -> Advice:
    """Return the rewriting.

    Raises:
        Unproven: it is known not to be the same.
    """
    values = Values(site.values)
    for side in _sides(choice):
        if values.is_python(side):
            raise Unproven(f"`{unparsed(side, site.text)}` is a value of Python's, and `torch.where` gives a tensor")
    for part in _evaluated_sometimes(choice):
        if what := effect(part):
            raise Unproven(f"`{unparsed(part, site.text)}` {what}, which not every call does")
    chosen = _where(site, choice, values)
    filled = _Filled(chosen).visit(copy.deepcopy(choice.statement))
    lines = unparsed(ast.Module([filled], []), site.text).splitlines()
    return replace(with_lines(site, "branch", lines, _WHY, _COST, choice.last),
                   condition=(unparsed(choice.test, site.text), unparsed(chosen.args[0], site.text)))


def _sides(choice: Choice) -> Iterator[ast.expr]:
    for side in (choice.one, choice.other):
        if isinstance(side, Choice):
            yield from _sides(side)
        else:
            yield side


def _evaluated_sometimes(choice: Choice) -> Iterator[ast.expr]:
    """Yield what the statement does not evaluate at each call: its sides, tests in them, the parts of tests."""
    for node in ast.walk(choice.test):
        if isinstance(node, ast.BoolOp):
            yield from node.values[1:]
    for side in (choice.one, choice.other):
        yield side.test if isinstance(side, Choice) else side
        if isinstance(side, Choice):
            yield from _evaluated_sometimes(side)


def _where(site: Site, choice: Choice, values: Values) -> ast.Call:
    test = truth(choice.test, values, lambda node: unparsed(node, site.text))
    sides = [_where(site, side, values) if isinstance(side, Choice) else side for side in (choice.one, choice.other)]
    return ast.Call(ast.Attribute(ast.Name("torch", ast.Load()), "where", ast.Load()), [test, *sides], [])


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
