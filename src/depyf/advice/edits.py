"""The edits of rows of :mod:`.breaks`: each is the advice where the facts prove that it is the same, else ``None``."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import replace

from .branches import proven_for, rewritten, unparsed, with_lines
from .facts import Facts, is_number
from .model import Advice
from .source import Site, called
from .tensor_values import Values

#: Torch's settings, as lines of a program.
SCALARS = "torch._dynamo.config.capture_scalar_outputs = True"
REORDER = "torch._dynamo.config.reorderable_logging_functions.add"
#: Types of arguments that torch can print after the graph (``LoggingFunction.can_reorder_logs``).
_PRINTABLE = frozenset({"str", "bool", "NoneType", "Tensor", "dtype", "device"})
#: Types of numbers that torch may leave open, and of containers of them, which torch can format after the graph.
_FORMATTED = frozenset({"int", "float", "Size", "tuple", "list", "dict"})
_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)


def printed(at: Facts) -> Advice | None:
    """Return the advice on ``print``: let torch print when the graph is done, what it can print then."""
    call = of_statement(at.site, "print")
    if call is None or call.keywords or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    types = at.met.types if at.met.last == "print" and len(at.met.types) == len(call.args) else [""] * len(call.args)
    shown = [_shown(each, kind) for each, kind in zip(call.args, types)]
    return None if at.met.last != "print" and shown == call.args else printed_after(at.site, call, shown)


def of_statement(site: Site, name: str) -> ast.Call | None:
    """Return the call that is the whole statement, if it is of a function of that name."""
    match site.statement:
        case ast.Expr(ast.Call() as call) if called(call) == name:
            return call
    return None


def _shown(argument: ast.expr, kind: str) -> ast.expr:
    """Return an argument of a type as torch can print it after the graph."""
    match argument:
        case ast.Call(ast.Name("str"), [inner], []) if not kind:
            return _formatted(inner)
    if kind in _PRINTABLE or isinstance(argument, ast.Constant) or not kind and not _is_of_size(argument):
        return argument
    return _formatted(argument) if kind in _FORMATTED or not kind else ast.Call(
        ast.Name("str", ast.Load()), [argument], [])


def _formatted(argument: ast.expr) -> ast.expr:
    """Return an expression that gives the text of another; an f-string of an open number would make torch fix it."""
    return ast.Call(ast.Attribute(ast.Constant("{}"), "format", ast.Load()), [argument], [])


def _is_of_size(argument: ast.expr) -> bool:
    """Return whether an expression is a size of a tensor, or a tuple or list of its sizes, by its text."""
    match argument:
        case ast.Call(ast.Name("tuple" | "list"), [inner], []) | ast.Subscript(inner):
            return _is_of_size(inner)
        case ast.Attribute(_, "shape") | ast.Call(ast.Attribute(_, "size" | "numel")):
            return True
    return False


def printed_after(site: Site, call: ast.Call, shown: Sequence[ast.expr]) -> Advice:
    """Return the advice to let torch print when the graph is done, with arguments that it can print then."""
    setting = f"{REORDER}(print)"
    why = "torch then prints after the graph instead of ending it here"
    cost = ("the text comes when the graph is done, so after other output, and shows tensors that are changed in place "
            "as they are then")
    if list(shown) == call.args:
        return Advice("print", f"set `{setting}`", why, cost, settings=(setting,))
    line = unparsed(ast.Expr(ast.Call(call.func, list(shown), [])), site.text)
    advice = with_lines(site, "print", [line], why, cost)
    return replace(advice, change=f"{advice.change}, and set `{setting}`", settings=(setting,))


# --- texts ------------------------------------------------------------------------------------------------
def formatted(at: Facts) -> Advice | None:
    """Return the advice on an f-string of a number that torch keeps open: ``.format``, whose text it makes later.

    (``StringFormatVariable`` in torch. A dictionary in which the text is looked up before that does not find it.)
    """
    why = "torch makes the text of `.format` when the graph is done; an f-string and `%` need the number before that"
    cost = "nothing in the compiled function finds the text in a dictionary"
    changed = _WithFormat().visit(copy.deepcopy(at.statement))
    if at.text(changed) == at.text(at.statement):
        by_percent = any(isinstance(each, ast.Mod) for each in ast.walk(at.statement))
        return Advice("text", "format the text with `.format(...)` in place of `%`", why, cost) if by_percent else None
    call = of_statement(at.site, "print")
    if call is not None and not call.keywords:
        return printed_after(at.site, call, changed.value.args)
    return rewritten(at.site, [changed], rule="text", why=why, cost=cost)


class _WithFormat(ast.NodeTransformer):
    """Writes ``"{:.3f}".format(x)`` for ``f"{x:.3f}"``."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        text, given = "", []
        for part in node.values:
            match part:
                case ast.Constant(str(value)):
                    text += value.replace("{", "{{").replace("}", "}}")
                case ast.FormattedValue(value, conversion, spec) if (written := _written(spec)) is not None:
                    text += "{" + (f"!{chr(conversion)}" if conversion != -1 else "") + written + "}"
                    given.append(value)
                case _:
                    return node  # (what a placeholder says of the format is computed, too)
        return ast.Call(ast.Attribute(ast.Constant(text), "format", ast.Load()), given, []) if given else node


def _written(spec: ast.expr | None) -> str | None:
    """Return a format as it is written in a placeholder, ``":.3f"``; ``None`` where it is computed, too."""
    match spec:
        case None | ast.JoinedStr([]):
            return ""
        case ast.JoinedStr([ast.Constant(str(text))]):
            return f":{text}"
    return None


# --- numbers out of tensors -----------------------------------------------------------------------------
def detached(at: Facts) -> Advice | None:
    """Return the rewriting of a simple statement all of whose numbers meet tensors in arithmetic: ``x / x.max()``."""
    if not isinstance(at.statement, _SIMPLE):
        return None
    changed: ast.stmt = _Detached(at.values).visit(copy.deepcopy(at.statement))
    if at.text(changed) == at.text(at.statement) or any(is_number(each) for each in ast.walk(changed)):
        return None
    return rewritten(at.site, [changed], rule="number",
                     why="a tensor of one number does in arithmetic what its number does, and stays in the graph",
                     cost="none: no gradient flows through a number either", proven=proven_for(at.site))


class _Detached(ast.NodeTransformer):
    def __init__(self, values: Values) -> None:
        self.values = values

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        node.left, node.right = self._beside(node.left, node.right), self._beside(node.right, node.left)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        self.generic_visit(node)
        if isinstance(node.target, ast.Name):
            node.value = self._beside(node.value, ast.Name(node.target.id, ast.Load()))
        return node

    def _beside(self, number: ast.expr, other: ast.expr) -> ast.expr:
        """Return an operand of arithmetic as its tensor, if with the other one that gives the same type."""
        tensor = number_of(number)
        if tensor is None:
            return number
        one, beside = self.values.infer(tensor), self.values.infer(other)
        same = one.dtype in _FLOATS and (one.dtype == beside.dtype or bool(beside.shape) and (
            beside.dtype in _FLOATS or one.dtype == "float32"))  # (float32: what Python's number gives beside integers)
        if one.shape != () or beside.is_python or beside.shape is None or one.effect or not same:
            return number
        return ast.Call(ast.Attribute(tensor, "detach", ast.Load()), [], [])


def number_of(node: ast.AST) -> ast.expr | None:
    """Return the tensor that a number is taken from: ``x.sum()`` of ``float(x.sum().item())``; ``None`` for others."""
    match node:
        case ast.Call(ast.Attribute(inner, "item"), [], []):
            return inner
        case ast.Call(ast.Name("float"), [inner], []) if not isinstance(inner, ast.Constant):
            return number_of(inner) or inner
    return None


def element(at: Facts) -> Advice | None:
    """Return the rewriting of ``x[i]``, an operand, by a tensor of one whole number: ``x[i.view(1)][0]``."""
    if not isinstance(at.statement, _SIMPLE):
        return None
    changed = copy.deepcopy(at.statement)
    for node in ast.walk(changed):
        if isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare)):
            for item in ast.iter_child_nodes(node):
                if isinstance(item, ast.Subscript) and _is_element(at.values, item):
                    one = ast.Call(ast.Attribute(item.slice, "view", ast.Load()), [ast.Constant(1)], [])
                    item.value, item.slice = ast.Subscript(item.value, one, ast.Load()), ast.Constant(0)
    return None if at.text(changed) == at.text(at.statement) else rewritten(
        at.site, [changed], rule="element", why="a graph can index with a tensor of one element, and has no number",
        cost="none: what it is an operand of does not change it", proven=proven_for(at.site))


def _is_element(values: Values, item: ast.Subscript) -> bool:
    """Return whether an item of a tensor is chosen by a tensor of one whole number."""
    index = values.infer(item.slice)
    return isinstance(item.value, ast.Name) and values.is_tensor(item.value.id) and index.shape == () and (
        index.dtype in ("int64", "int32"))
