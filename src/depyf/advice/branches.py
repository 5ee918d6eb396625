"""A branch on a value in a tensor, written as an operation on tensors.

    if x.sum() > 0:          ->     y = torch.where(x.sum() > 0, x + 1, x - 1)
        y = x + 1
    else:
        y = x - 1

Only sides without an effect are rewritten so, since ``torch.where`` computes both.
"""

from __future__ import annotations

import ast
import builtins
import copy
import re
from collections.abc import Sequence

from .empty import calls_of_nothing, rest_of_turn
from .handlers import without_runtime_error
from .model import Advice, Edit, indented
from .scalars import in_arithmetic, without_scalar
from .source import Site, called, last_name

_WHY = "a graph holds both sides of `torch.where`, but no branch on a value that only the data tells"
_COST = ("both sides are computed at each call, and have to broadcast to one shape and dtype; for sides that are "
         "expensive, `torch.cond` computes one")
#: Calls of methods and functions whose result is a truth value in a tensor.
TRUTHS = frozenset({"any", "all", "isnan", "isinf", "isfinite", "eq", "ne", "lt", "le", "gt", "ge", "logical_not",
                    "logical_and", "logical_or", "isclose", "signbit", "bool"})
#: Built-in functions and types of which the result is no tensor and no number.
_NO_TENSORS = frozenset({"dict", "list", "tuple", "set", "frozenset", "sorted", "reversed", "zip", "map", "filter",
                         "range", "enumerate", "str", "bytes", "repr", "iter", "object", "type"})
#: Functions that tell somebody of something.
_REPORTS = frozenset({
    "print", "debug", "info", "warning", "warning_once", "error", "critical", "exception", "log", "warn"})
#: Functions that draw random numbers.
_RANDOM = re.compile(
    r"(?:randn?|randint|randn?_like|randint_like|randperm|bernoulli|multinomial|normal|poisson|dropout\w*"
    r"|gumbel_softmax|r?sample)$")
#: Functions that join tensors.
_JOINING = frozenset({"cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"})
#: Tests for a tensor without elements.
_EMPTY = re.compile(r".+\.numel\(\) == 0|len\(.+\) == 0|not len\(.+\)|.+\.(?:shape\[0\]|size\(0\)) == 0")
#: Functions of ``math`` and numpy on a number that torch has for tensors, by the same name.
_ALSO_TORCHS = frozenset({"isnan", "isinf", "isfinite", "exp", "log", "log2", "log10", "sqrt", "floor", "ceil"})


def on_branch(site: Site) -> Advice | None:
    """Return the rewriting of the user's branch; ``None`` where it is of no form that is known to work."""
    match site.statement:
        case ast.If() as node:
            return _raising(site, node) or _choosing(site, node) or _for_empty(site, node) or _reporting(site, node)
        case ast.Assert() as node:
            return _asserting(site, node)
        case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Return() | ast.Expr() as node:
            return _conditional(site, node)
    return None


# --- conditions ---------------------------------------------------------------------------------------
def condition(node: ast.expr) -> ast.expr | None:
    """Return a test as one tensor of truth: ``not a.any() and b > 0`` is ``~a.any() & (b > 0)``.

    ``None`` where the test may not be of tensors.
    """
    truth = _truth(node)
    return _of_tensors(truth) if truth is not None else None


def _truth(node: ast.expr) -> ast.expr | None:
    tensor = without_scalar(node)
    match tensor:
        case ast.BoolOp(operator, values):
            parts = [_truth(value) for value in values]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return None
            return _joined(known, ast.BitAnd() if isinstance(operator, ast.And) else ast.BitOr())
        case ast.UnaryOp(ast.Not(), inner):
            part = _truth(inner)
            return _inverted(part) if part is not None else None
        case ast.Compare(left, [*operators], [*others]) if not any(
                isinstance(each, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for each in operators):
            if all(isinstance(each, ast.Constant) or _is_pythons(each) for each in (left, *others)):
                return None
            sides = [without_scalar(each) for each in (left, *others)]
            pairs: list[ast.expr] = [ast.Compare(sides[at], [operator], [sides[at + 1]])
                                     for at, operator in enumerate(operators)]
            return _joined(pairs, ast.BitAnd())
        case ast.Call() as call:
            return _of_call(call)
    return None


def _inverted(truth: ast.expr) -> ast.expr:
    match truth:
        case ast.UnaryOp(ast.Invert(), inner):
            return inner
    return ast.UnaryOp(ast.Invert(), truth)


def _of_tensors(node: ast.expr) -> ast.expr | None:
    """Return an expression with the tensors that it took numbers from: ``torch.isnan(x)`` for ``math.isnan(x.item())``.

    ``None`` where one of the numbers goes to a function that may not take a tensor.
    """
    changed = _OfTensors()
    result: ast.expr = changed.visit(copy.deepcopy(node))
    return result if changed.possible else None


class _OfTensors(ast.NodeTransformer):
    """Puts tensors in the place of their numbers.

    Attributes:
        possible: no number is left, nor went one to a function that may not take a tensor.
    """

    def __init__(self) -> None:
        self.possible = True
        self._numbers = 0

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(ast.Attribute(tensor, "item"), [], []):
                self._numbers += 1
                taken: ast.expr = self.visit(tensor)
                return taken
            case ast.Call(ast.Attribute(ast.Name("math" | "np" | "numpy"), name), [number], []) if name in _ALSO_TORCHS:
                function = ast.Attribute(ast.Name("torch", ast.Load()), name, ast.Load())
                return ast.Call(function, [self.visit(without_scalar(number))], [])
            case ast.Call(ast.Name("int" | "float" | "bool"), [number]) if not isinstance(number, ast.Constant):
                self.possible = False  # (``float("inf")`` is no number of a tensor)
        before = self._numbers
        self.generic_visit(node)
        if self._numbers > before and not (isinstance(node.func, ast.Name) and node.func.id == "abs"):
            self.possible = False
        return node


def _joined(parts: Sequence[ast.expr], operator: ast.operator) -> ast.expr:
    result = parts[0]
    for part in parts[1:]:
        result = ast.BinOp(result, operator, part)
    return result


def _of_call(call: ast.Call) -> ast.expr | None:
    match call:
        case ast.Call(ast.Attribute(ast.Name("torch"), "equal"), [left, right], []):
            return _all(ast.Compare(left, [ast.Eq()], [right]))
        case ast.Call(ast.Attribute(ast.Name("torch"), "allclose"), arguments, keywords):
            torch = ast.Attribute(ast.Name("torch", ast.Load()), "isclose", ast.Load())
            return _all(ast.Call(torch, arguments, keywords))
    if _is_pythons(call):
        return None
    if called(call) in TRUTHS:
        return call
    if isinstance(call.func, ast.Attribute):
        return ast.Compare(call, [ast.NotEq()], [ast.Constant(0)])
    return None


def _is_pythons(node: ast.expr) -> bool:
    """Return whether an expression is a value of Python's, or needs one: ``any(...)``, ``len(x)``, ``x.numel()``.

    (Of tensors ``abs`` and ``sum`` give a tensor, as ``max`` and ``min`` of several arguments do.)
    """
    match node:
        case ast.Call(ast.Attribute(_, "numel" | "size" | "dim" | "nelement")) | ast.Attribute(_, "shape" | "ndim"):
            return True
        case ast.Subscript(owner):
            return _is_pythons(owner)
        case ast.Call(ast.Name("abs" | "sum" | "float" | "int" | "bool")):
            return False
        case ast.Call(ast.Name("max" | "min"), [_, _, *_]):
            return False
        case ast.Call(ast.Name(name)):
            return hasattr(builtins, name)
    return False


def _all(node: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(node, "all", ast.Load()), [], [])


def is_plain(node: ast.expr) -> bool:
    """Return whether an expression has no effect, as far as its text tells, and can stand for a tensor."""
    for each in ast.walk(node):
        if isinstance(each, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, ast.Lambda)):
            return False
        if isinstance(each, ast.Call) and (called(each) == "print" or called(each).rstrip("_") != called(each)):
            return False
    match node:
        case ast.Constant(value):
            return isinstance(value, (int, float))
        case ast.Call(ast.Name(name)):
            return name not in _NO_TENSORS
    return not isinstance(node, (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.JoinedStr, ast.ListComp, ast.DictComp,
                                 ast.SetComp, ast.GeneratorExp))


def _joins(one: ast.expr, other: ast.expr) -> bool:
    """Return whether one value joins another to more, so that their sizes differ: ``torch.cat([x, y])`` and ``x``."""
    match one:
        case ast.Call(args=[ast.List(parts) | ast.Tuple(parts), *_]) if called(one) in _JOINING:
            return any(ast.dump(part) == ast.dump(other) for part in parts)
    return False


# --- forms --------------------------------------------------------------------------------------------
def _where(test: ast.expr, one: ast.expr, other: ast.expr) -> ast.expr | None:
    truth = condition(test)
    if truth is None or not is_plain(one) or not is_plain(other) or _joins(one, other) or _joins(other, one):
        return None
    where = ast.Attribute(ast.Name("torch", ast.Load()), "where", ast.Load())
    return ast.Call(where, [truth, in_arithmetic(one), in_arithmetic(other)], [])


def _choosing(site: Site, node: ast.If) -> Advice | None:
    """Return the advice on a choice of one name's value, or of what is returned."""
    target = _target(node.body)
    value = (_each_chosen(node) or _chosen(node, target)) if target is not None else None
    if target is not None and value is not None:
        return rewritten(site, [ast.Assign([ast.Name(target, ast.Store())], value)], cost=_cost(value))
    returned = _returned(node, site.following)
    if returned is None:
        return None
    value, takes_next = returned
    last = site.following.end_lineno if takes_next and site.following is not None else None
    return rewritten(site, [ast.Return(value)], last, cost=_cost(value))


def _for_empty(site: Site, node: ast.If) -> Advice | None:
    """Return the advice on a way out for tensors without elements, where the rest of the turn does nothing for them."""
    names = {each.id for each in ast.walk(node.test) if isinstance(each, ast.Name)} - {"len"}
    match node:
        case ast.If(test, [ast.Continue()], []) if (
                _EMPTY.fullmatch(unparsed(test)) and len(names) == 1 and site.function is not None):
            name = names.pop()
            calls = calls_of_nothing(rest_of_turn(site.function, node), name, site.function)
            if calls is None:
                return None
            taken = " and ".join(f"`{unparsed(call, site.text)}`" for call in calls)
            return with_lines(
                site, "empty", [], f"what follows adds and stores nothing where `{name}` has no elements, and a graph "
                "has no branch on how many there are",
                f"{taken} is then computed without elements, too: it has to take them, and do nothing else"
                if calls else "each turn is then computed, also one without elements, where a number that a sum is "
                "added to becomes a tensor")
    return None


def _cost(value: ast.expr) -> str:
    """Return what the choice costs; random numbers are drawn for both sides, so that later ones are others."""
    draws = any(isinstance(each, ast.Call) and _RANDOM.match(called(each)) for each in ast.walk(value))
    return f"{_COST}; random numbers are drawn whichever side is taken, so later ones are others" if draws else _COST


def _reporting(site: Site, node: ast.If) -> Advice | None:
    """Return the advice on a branch outside of loops that prints or logs, and does nothing else."""
    if site.function is None or any(isinstance(each, (ast.For, ast.While)) and node in ast.walk(each)
                                    for each in ast.walk(site.function)):
        return None
    calls = [statement.value for statement in node.body if isinstance(statement, ast.Expr)]
    if node.orelse or len(calls) < len(node.body) or not all(
            isinstance(call, ast.Call) and called(call) in _REPORTS for call in calls):
        return None
    return Advice(
        "report", "check it where the function is called, on what it returns: the branch only reports",
        "a graph has no branch on a value that only the data tells", "what is checked has to be returned")


def _target(block: Sequence[ast.stmt]) -> str | None:
    match block:
        case [ast.Assign([ast.Name(name)])] | [ast.AugAssign(ast.Name(name))]:
            return name
    return None


def _each_chosen(node: ast.If) -> ast.expr | None:
    """Return a choice between the items of a dictionary or list and what is computed of each.

    ``{k: torch.where(test, g / n, g) for k, g in grads.items()}``, of ``grads = {k: g / n for k, g in grads.items()}``.
    """
    match node:
        case ast.If(test, [ast.Assign([ast.Name(name)], ast.DictComp(ast.Name(key), value, [
                ast.comprehension(ast.Tuple([ast.Name(same), ast.Name(item)]),
                                  ast.Call(ast.Attribute(ast.Name(of), "items"), [], []), [], 0)]) as made)], []):
            known = of == name and same == key
        case ast.If(test, [ast.Assign([ast.Name(name)], ast.ListComp(value, [
                ast.comprehension(ast.Name(item), ast.Name(of), [], 0)]) as made)], []):
            known, key = of == name, item
        case _:
            return None
    if not known or any(isinstance(each, ast.Name) and each.id in (key, item) for each in ast.walk(test)):
        return None
    chosen = _where(test, value, ast.Name(item, ast.Load()))
    if chosen is None:
        return None
    if isinstance(made, ast.DictComp):
        return ast.DictComp(made.key, chosen, made.generators)
    return ast.ListComp(chosen, made.generators)


def _value(block: Sequence[ast.stmt], target: str) -> ast.expr | None:
    match block:
        case []:
            return ast.Name(target, ast.Load())
        case [ast.Assign([ast.Name(name)], value)] if name == target:
            return value
        case [ast.AugAssign(ast.Name(name), operator, value)] if name == target:
            return ast.BinOp(ast.Name(name, ast.Load()), operator, value)
        case [ast.If() as inner]:
            return _chosen(inner, target)
    return None


def _chosen(node: ast.If, target: str) -> ast.expr | None:
    one, other = _value(node.body, target), _value(node.orelse, target)
    return _where(node.test, one, other) if one is not None and other is not None else None


def _returned(node: ast.If, following: ast.stmt | None) -> tuple[ast.expr, bool] | None:
    match node.body, node.orelse, following:
        case [ast.Return(ast.expr() as one)], [ast.Return(ast.expr() as other)], _:
            value = _where(node.test, one, other)
            return (value, False) if value is not None else None
        case [ast.Return(ast.expr() as one)], [], ast.Return(ast.expr() as other):
            value = _where(node.test, one, other)
            return (value, True) if value is not None else None
    return None


def _conditional(site: Site, node: ast.stmt) -> Advice | None:
    """Return the advice on ``a if test else b`` in a simple statement."""
    found = [each for each in ast.walk(node) if isinstance(each, ast.IfExp)]
    if len(found) != 1:
        return None
    value = _where(found[0].test, found[0].body, found[0].orelse)
    return rewritten(site, [_replaced(node, value)], cost=_cost(value)) if value is not None else None


def _replaced(node: ast.stmt, value: ast.expr) -> ast.stmt:
    """Return a copy of a statement with a value in the place of its only conditional expression."""

    class Replaced(ast.NodeTransformer):
        def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
            return value

    result: ast.stmt = Replaced().visit(copy.deepcopy(node))
    return result


def _raising(site: Site, node: ast.If) -> Advice | None:
    match node:
        case ast.If(test, [ast.Raise(ast.Call(error, arguments))], []):
            truth = condition(test)
            if truth is None:
                return None
            return _asserted(site, _inverted(truth), arguments[0] if arguments else None, last_name(error))
    return None


def _asserting(site: Site, node: ast.Assert) -> Advice | None:
    truth = condition(node.test)
    return _asserted(site, truth, node.msg, "AssertionError") if truth is not None else None


def _asserted(site: Site, truth: ast.expr, message: ast.expr | None, raised: str) -> Advice:
    """Return the advice on a check that raises an exception of a name."""
    text = message.value if isinstance(message, ast.Constant) and isinstance(message.value, str) else ""
    if isinstance(message, ast.JoinedStr):
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in message.values)
    call = ast.Call(ast.Attribute(ast.Name("torch", ast.Load()), "_assert_async", ast.Load()), [
        truth, *([ast.Constant(text)] if text else [])], [])
    advice = rewritten(
        site, [ast.Expr(call)], rule="assert",
        why="the check is then an operation of the graph, not a branch of Python",
        cost="the error is a RuntimeError, and its text cannot hold values; on a GPU it comes later")
    handler = without_runtime_error(site.module, raised) if site.module is not None else None
    if handler is None or handler.type is None:
        return advice
    # (No edit: with values that the run does not have, the program would end where it went on.)
    caught = f"`except {unparsed(handler.type)}` of the program (line {handler.lineno})"
    change = (f"{advice.change}; but {caught} would not catch what `torch._assert_async` raises, a RuntimeError: let "
              "it catch that, too")
    return Advice(advice.rule, change, advice.why, advice.cost, after=advice.after)


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


def rewritten(site: Site, statements: Sequence[ast.stmt], last: int | None = None, rule: str = "branch",
              why: str = _WHY, cost: str = _COST) -> Advice:
    """Return the advice to write other statements in the place of the user's."""
    return with_lines(site, rule, unparsed(ast.Module(list(statements), []), site.text).splitlines(), why, cost, last)


def with_lines(site: Site, rule: str, lines: Sequence[str], why: str, cost: str, last: int | None = None) -> Advice:
    """Return the advice to write other lines in the place of the user's statement."""
    node = site.statement
    edits: tuple[Edit, ...] = ()
    if node is not None and site.editable and site.where is not None and _stands_alone(site, node):
        edits = (Edit(site.where.filename, node.lineno, last or node.end_lineno or node.lineno,
                      indented(lines, site.indentation())),)
    shown = "; ".join(f"`{line.strip()}`" for line in lines)
    out = "; ".join(f"`{line.strip()}`" for line in unparsed(node, site.text).splitlines()) if node is not None else ""
    return Advice(rule, f"write {shown}" if lines else f"take {out} out", why, cost, edits, after=tuple(lines))


def _stands_alone(site: Site, node: ast.stmt) -> bool:
    """Return whether nothing else stands on the lines of a statement: no other statement, no ``elif``, no comment."""
    first, last = site.lines[node.lineno - 1], site.lines[(node.end_lineno or node.lineno) - 1]
    before = first.encode()[: node.col_offset].decode()
    return not before.strip() and not last.encode()[node.end_col_offset or 0 :].strip() and not first.lstrip(
        ).startswith("elif")
