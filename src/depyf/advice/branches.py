"""A branch on a value in a tensor: one operation of the graph where that is proven, or the reason why not.

    if x.sum() > 0:          ->     y = torch.where(x.sum() > 0, x + 1, x - 1)
        y = x + 1
    else:
        y = x - 1

``torch.where`` computes both sides at each call. So the edit is proven only where both sides are elementwise arithmetic
with finite gradients on the same tensors, of one shape and dtype (recorded at the break), and where a new tensor cannot
be distinguished from the old one. Unknown facts become conditions of the sentence; known differences prevent it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .model import Advice, Edit, indented
from .source import Function, Site, called, own_parts, path_to
from .tensor_values import NAN_OF_NAN, Unproven, Values, is_total, may_be_steep, to_compute, truth

_WHY = "a graph holds both sides of `torch.where`, but no branch on a value that only the data tells"
_COST = "both sides are computed at each call"
_WHY_NOT = ("in a graph `torch.where` would compute both sides at each call, so both have to be free of effects and of "
            "one type, shape and dtype")
_LEFT = "the graph ends here; what computes with tensors before and after the branch is compiled by itself"
_GIVEN_UP = "torch gives up the function for it, which then runs in plain Python"
_IN_CALLER = ("where what comes after the check neither fails nor does anything for input that it rejects, return what "
              "is checked, and check it outside of what is compiled")
#: With more conditions than these a rewriting is no advice.
_FEW = 2
#: Methods of containers that change them.
_CHANGING = frozenset({"append", "extend", "insert", "pop", "popitem", "remove", "add", "discard", "update", "clear",
                       "setdefault", "put", "write"})
#: Functions that report something.
REPORTS = frozenset({
    "print", "debug", "info", "warning", "warning_once", "error", "critical", "exception", "log", "warn"})


@dataclass(frozen=True)
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
    """Return the advice on a statement that branches on a value in a tensor; ``None`` where it has no branch."""
    node = site.statement
    if isinstance(node, ast.Assert):
        return _on_check(site, "AssertionError", node.test, node.msg)
    if isinstance(node, ast.If) and len(node.body) == 1 and not node.orelse and isinstance(node.body[0], ast.Raise):
        if _is_caught(site, node.body[0]):
            return _left_alone(site, "one side raises an exception that the function may catch")
        raised = node.body[0].exc
        name = called(raised) if isinstance(raised, ast.Call) else ""
        holds = node.test.operand if isinstance(node.test, ast.UnaryOp) and isinstance(node.test.op, ast.Not) else (
            ast.UnaryOp(ast.Not(), node.test))
        return _on_check(site, name or "exception", holds, raised)
    if isinstance(node, ast.If) and all(isinstance(each, ast.Pass) for each in (*node.body, *node.orelse)):
        return Advice("branch", "take the branch out: it does nothing, unless its test raises an exception",
                      "the test alone ends the graph", "none")
    choice = _choice(site, node) if node is not None else None
    if choice is None and not isinstance(node, ast.If):
        filters = [each for each in own_parts(node or ast.Pass()) if isinstance(each, ast.comprehension) and each.ifs]
        return _left_alone(site, "how many elements are taken depends on the values") if filters else None
    assert node is not None
    prevented = _prevented(site, node, choice)
    if prevented:
        return _left_alone(site, prevented)
    if choice is None:
        return _left_alone(site, "its sides do more than choose one value")
    advice, conditions = _as_where(site, choice)
    if advice is None:
        return _left_alone(site, conditions[0])
    if not conditions:
        of_nan = any(isinstance(each, ast.Call) and called(each) in NAN_OF_NAN
                     for side in _sides(choice) for each in ast.walk(side))
        but = "; where it contains NaN, its gradient may be NaN, too" if of_nan else ""
        return replace(advice, cost=f"{advice.cost}{but}", proven=proven_for(site))
    if len(conditions) > _FEW:
        return _left_alone(site, "it is not known whether `torch.where` would be the same: that depends on whether "
                           f"{conditions[0]}, and on {len(conditions) - 1} facts more")
    return replace(advice, change=f"if {_listed(conditions)}: {advice.change}; otherwise leave the branch as it is",
                   edits=())


def _is_caught(site: Site, raised: ast.stmt) -> bool:
    """Return whether a statement is in a ``try`` of its function that has an ``except``."""
    return site.function is not None and any(
        isinstance(holder, ast.Try) and holder.handlers and block is holder.body
        for holder, block, _ in path_to(site.function, raised.lineno))


def _left_alone(site: Site, why: str) -> Advice:
    cost = _GIVEN_UP if site.broken.skips_function else _LEFT
    return Advice("branch", f"leave the branch as it is: {why}", _WHY_NOT, cost, leaves=True)


def _listed(clauses: Sequence[str]) -> str:
    return f"{', '.join(clauses[:-1])} and {clauses[-1]}" if len(clauses) > 1 else clauses[0]


def proven_for(site: Site) -> str:
    """Return for which tensors a rewriting of a site is proven, as a clause: for those of this run."""
    names = {each.id for each in ast.walk(site.statement or ast.Pass()) if isinstance(each, ast.Name)}
    known = [f"`{each.name}` {each.dtype} [{', '.join(each.shape)}]" for each in site.values
             if each.name in names and each.shape is not None]
    return f"; proven for the shapes and dtypes of this run ({', '.join(known)})" if known else ""


def candidates(site: Site) -> list[Advice]:
    """Return rewritings of a branch that a trial may find to be the same, best first; each with its edit."""
    node = site.statement
    choice = _choice(site, node) if node is not None else None
    if choice is None or node is None or _prevented(site, node, choice):
        return []
    guarded = _guarded(site, choice)
    site = replace(site, broken=replace(site.broken, values=tuple(
        replace(each, requires_grad=False) for each in site.values)))  # (gradients are compared in the trial)
    tried = [_as_where(site, each)[0] for each in (choice, guarded) if each is not None]
    return [each for each in tried if each is not None and each.edits]


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
            body = _inlined(site.function, node, body)
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
                return Choice(found[0].test, found[0].body, found[0].orelse, target, _with_hole(node), last)
    return None


def _is_of_python(test: ast.expr, values: Values) -> bool:
    """Return whether a test, or a part of it, is none of values, so that torch evaluates it while it traces."""
    match test:
        case ast.Compare(_, [ast.Is() | ast.IsNot()]) | ast.Call(ast.Name("isinstance" | "hasattr" | "callable")):
            return True
        case ast.Attribute(_, "training" | "shape" | "ndim" | "dtype" | "device") | ast.Attribute(ast.Name("torch")):
            return True
        case ast.Subscript(ast.Attribute(_, "shape"), ast.Constant()) | ast.Constant():
            return True
        case ast.Compare(left, _, others):
            return all(_is_of_python(each, values) for each in (left, *others))
        case ast.Name(name):
            return values.is_number(name)
        case ast.UnaryOp(ast.Not(), inner):
            return _is_of_python(inner, values)
    return False


def _hole() -> ast.Name:
    return ast.Name("depyf_choice", ast.Load())


class _Filled(ast.NodeTransformer):
    def __init__(self, value: ast.expr) -> None:
        self.value = value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.value if node.id == "depyf_choice" else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        return self.value


def _with_hole(node: ast.stmt) -> ast.stmt:
    filled: ast.stmt = _Filled(_hole()).visit(copy.deepcopy(node))
    return filled


def _inlined(function: Function | None, branch: ast.If, block: list[ast.stmt]) -> list[ast.stmt]:
    """Return a block of assignments as its last one, with the values of the names that only the block uses."""
    *before, last = block
    values: dict[str, ast.expr] = {}
    inside = {id(each) for each in ast.walk(branch)}
    for statement in before:
        match statement:
            case ast.Assign([ast.Name(name)], value) if function is not None and all(
                    id(each) in inside for each in ast.walk(function)
                    if isinstance(each, ast.Name) and each.id == name):
                values[name] = _Replaced(values).visit(copy.deepcopy(value))
            case _:
                return block
    return [_Replaced(values).visit(copy.deepcopy(last))] if values else block


class _Replaced(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self.values.get(node.id) if isinstance(node.ctx, ast.Load) else None
        return copy.deepcopy(value) if value is not None else node


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


def _of_arrays(node: ast.AST, values: Values) -> str:
    """Return that a branch is on NumPy arrays, which torch traces as tensors, as a clause; ``""`` for others."""
    arrays = [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and values.type_of(each.id) == "ndarray"]
    return f"`{arrays[0]}` is an array of NumPy's, and `torch.where` would give a tensor" if arrays else ""


def _prevented(site: Site, node: ast.stmt, choice: Choice | None) -> str:
    """Return what prevents that both sides are computed, as a clause; ``""`` for nothing."""
    values = Values(site.values)
    if (of_arrays := _of_arrays(node, values)):
        return of_arrays
    sides = {ast.unparse(side) for side in _sides(choice)} if choice is not None else set()
    both = choice.target if choice is not None and (
        choice.target not in sides or _is_own_item(site, node, choice.target, values)) else ""
    for statement in _one_sided(node):
        match statement:
            case ast.AugAssign(ast.Name(name)) if not values.is_number(name) and (
                    not values.is_alone(name) or _is_stored(site.function, name, node)):
                whose = "changes the caller's tensor" if values.is_given(name) else "may change another's tensor"
                return f"`{unparsed(statement, site.text)}` {whose} in place, and `torch.where` makes a new one"
            case ast.Assign([ast.Subscript() | ast.Attribute() as target]) | ast.AugAssign(
                    ast.Subscript() | ast.Attribute() as target) if ast.unparse(target) != both:
                return f"a side sets `{unparsed(target, site.text)}`, which may happen only where that side is taken"
            case ast.Return(None):
                return "one side leaves the function, so what comes after it has to run on the other side only"
            case ast.Return(ast.Constant(value)) if not isinstance(value, float):
                return f"one side returns `{value!r}`, which is no tensor, so the result has no single type"
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
            if name in REPORTS and call.args and not _is_of_tensors(call, values):
                return (f"`{unparsed(call, site.text)}` has to happen on one side only; where its place among other "
                        "output does not matter, return what it says and report it where the function is called")
            if name in _CHANGING and isinstance(call.func, ast.Attribute):
                return f"`{unparsed(call.func.value, site.text)}` is changed on one side only"
            if name.endswith("_") and not name.startswith("_"):
                return f"`{unparsed(call, site.text)}` changes a tensor in place on one side only"
    return ""


def _is_own_item(site: Site, branch: ast.stmt, target: str, values: Values) -> bool:
    """Return whether a target is an item of a tensor that nothing else refers to: to set it is unobservable."""
    match ast.parse(target, mode="eval").body:
        case ast.Subscript(ast.Name(name)):
            return values.is_tensor(name) and values.is_alone(name) and not _is_stored(site.function, name, branch)
    return False


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
def _as_where(site: Site, choice: Choice) -> tuple[Advice | None, list[str]]:
    """Return the rewriting, and the conditions that are not known to hold; no rewriting where one is known not to."""
    values = Values(site.values)
    conditions: dict[str, None] = {}
    item = not choice.target.isidentifier() and values.item(ast.parse(choice.target or "0", mode="eval").body)
    sides = [side for side in _sides(choice) if not (item and item.takes(side))]
    try:
        conditions.update(dict.fromkeys(_unknown_of_sides(site, sides, values)))
        value = _where(site, choice, values, conditions)
    except Unproven as error:
        return None, [str(error)]
    if choice.target and not item and _may_tell_copy(site, choice, values):
        conditions[f"nothing but the lines after it needs `{choice.target}` to be the same object as before"] = None
    elif not choice.target and any(isinstance(side, ast.Name) for side in _sides(choice)):
        conditions["no caller needs the result to be the very tensor that was passed"] = None
    if _is_only_part(choice):
        conditions.setdefault("the rest of the line takes a tensor", None)
    filled = _Filled(value).visit(copy.deepcopy(choice.statement))
    return replace(rewritten(site, [filled], choice.last), condition=unparsed(choice.test, site.text)), list(conditions)


def _sides(choice: Choice) -> Iterator[ast.expr]:
    for side in (choice.one, choice.other):
        if isinstance(side, Choice):
            yield from _sides(side)
        else:
            yield side


def _is_only_part(choice: Choice) -> bool:
    match choice.statement:
        case ast.Assign(_, ast.Name("depyf_choice")) | ast.Return(ast.Name("depyf_choice")) | ast.If():
            return False
    return True


def _where(site: Site, choice: Choice, values: Values, conditions: dict[str, None]) -> ast.expr:
    test, unknown = truth(choice.test, values, lambda node: unparsed(node, site.text))
    conditions.update(dict.fromkeys(unknown))
    parts = []
    for side in (choice.one, choice.other):
        if isinstance(side, Choice):
            conditions.update(dict.fromkeys(to_compute(side.test, values)))
        parts.append(_where(site, side, values, conditions) if isinstance(side, Choice) else side)
    return _call_of_where(test, *parts)


def _call_of_where(*arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name("torch", ast.Load()), "where", ast.Load()), list(arguments), [])


def _unknown_of_sides(site: Site, sides: Sequence[ast.expr], values: Values) -> Iterator[str]:
    """Yield what has to hold of the sides, as clauses.

    Raises:
        Unproven: they are known not to be of one kind.
    """
    kinds = [values.infer(side) for side in sides]
    for side, kind in zip(sides, kinds):
        if kind.is_python:
            raise Unproven(f"`{unparsed(side, site.text)}` is a value of Python's, and `torch.where` gives a tensor")
        if kind.effect:
            raise Unproven(f"`{unparsed(side, site.text)}` {kind.effect}, which has to happen on one side only")
        yield from kind.unknown
    unknown = []
    for word, known in (("shape", [kind.shape for kind in kinds]), ("dtype", [kind.dtype or None for kind in kinds])):
        different = list(dict.fromkeys(each for each in known if each is not None))
        if len(different) > 1:
            raise Unproven(f"the sides differ in {word}: {_in_words(different[0])} and {_in_words(different[1])}")
        unknown += [word] if None in known else []
    if unknown:
        yield f"both sides always have the same {' and '.join(unknown)}"
    gradient = [each for kind in kinds for each in kind.gradient]
    one_sided = frozenset[str]().union(*(kind.leaves for kind in kinds)) - frozenset.intersection(
        *(kind.leaves for kind in kinds))
    for side, kind in zip(sides, kinds):
        learned = sorted(filter(values.requires_grad, kind.leaves if kind.gradient else kind.leaves & one_sided))
        if learned:
            what = "zeros where there was none" if not kind.gradient else "NaN"
            raise Unproven(f"`{learned[0]}` requires a gradient, and that of `{unparsed(side, site.text)}` may be "
                           f"{what} where that side is not taken")
    if one_sided:
        yield "no gradient is needed"
    else:
        yield from gradient


def _in_words(of: str | tuple[str, ...] | None) -> str:
    return f"`{of}`" if isinstance(of, str) else f"`[{', '.join(of or ())}]`"


def _may_tell_copy(site: Site, choice: Choice, values: Values) -> bool:
    """Return whether the program may observe that a side that is a variable is copied now."""
    sides = {side.id for side in _sides(choice) if isinstance(side, ast.Name)}
    if not sides or site.function is None or not choice.target.isidentifier():
        return bool(sides)
    if sides == {choice.target} and values.is_alone(choice.target) and not _is_stored(
            site.function, choice.target, site.statement):
        return False
    return not all(_is_only_read(site.function, name, choice) for name in {choice.target, *sides})


def _is_stored(function: Function | None, name: str, branch: ast.stmt | None) -> bool:
    """Return whether a variable's object, or its memory, may be reachable otherwise than by its name at a branch.

    ``y.view(-1)``, ``g(y)``, ``self.y = y`` make it so; an operand, and a result of the function, do not. Only uses
    since the assignment in the block of the branch count, where there is one: before it the name was another object's.
    """
    if function is None or branch is None:
        return True
    *_, (_, block, _) = path_to(function, branch.lineno)
    before = block[:block.index(branch)] if branch in block else []
    made = [each for each in before if isinstance(each, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == name for target in each.targets)]
    fine = _reads(function) | {id(node.value) for node in ast.walk(function) if isinstance(node, ast.Return)}
    return not all(id(each) in fine for each in _loads(function, name)
                   if not made or made[-1].lineno < each.lineno < branch.lineno)


def _is_only_read(function: Function, name: str, choice: Choice) -> bool:
    """Return whether each use of a variable is an operand, a side, or goes to a function that gives a new tensor."""
    fine = _reads(function) | {id(side) for side in _sides(choice)}
    in_place = [node for node in ast.walk(function) if isinstance(node, ast.AugAssign)
                and isinstance(node.target, ast.Name) and node.target.id == name]
    return not in_place and all(id(each) in fine for each in _loads(function, name))


def _loads(function: Function, name: str) -> list[ast.Name]:
    return [each for each in ast.walk(function)
            if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)]


def _reads(function: Function) -> set[int]:
    """Return the ids of expressions that are operands, or go to functions of which the result is a new tensor."""
    inner = [node for node in ast.walk(function)
             if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and node is not function]
    captured = {id(each) for node in inner for each in ast.walk(node)}
    fine: set[int] = set()
    for node in ast.walk(function):
        match node:
            case ast.BinOp() | ast.UnaryOp() | ast.Compare():
                fine.update(id(each) for each in ast.iter_child_nodes(node))
            case ast.AugAssign(_, _, value) | ast.Attribute(value, "shape" | "ndim" | "dtype" | "device"):
                fine.add(id(value))
            case ast.Call(ast.Attribute(ast.Name("torch"), method), arguments) if is_total(method):
                fine.update(map(id, arguments))
            case ast.Call(ast.Attribute(owner, method)) if is_total(method):
                fine.add(id(owner))
    return fine - captured


class _Guarded(ast.NodeTransformer):
    """Divides by 1, and takes the logarithm of 1, where a side is not taken, so that its gradient is finite there."""

    def __init__(self, test: ast.expr, side: bool) -> None:
        self.test, self.side = test, side

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Div) and not isinstance(node.right, ast.Constant):
            node.right = self._guarded(node.right)
        elif isinstance(node.op, ast.Pow) and not isinstance(node.left, ast.Constant):
            node.left = self._guarded(node.left)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Attribute(ast.Name("torch"), name), [of, *_]) if may_be_steep(name):
                node.args[0] = self._guarded(of)
            case ast.Call(ast.Attribute(of, name) as method) if may_be_steep(name):
                method.value = self._guarded(of)
        return node

    def _guarded(self, value: ast.expr) -> ast.expr:
        sides = (value, ast.Constant(1))
        return _call_of_where(self.test, *(sides if self.side else sides[::-1]))


def _guarded(site: Site, choice: Choice) -> Choice | None:
    """Return a choice in which operations whose gradient may be infinite are guarded; ``None`` where there are none."""
    if isinstance(choice.one, Choice) or isinstance(choice.other, Choice):
        return None
    try:
        test, _ = truth(choice.test, Values(site.values), lambda node: unparsed(node, site.text))
    except Unproven:
        return None
    one, other = (_Guarded(test, side is choice.one).visit(copy.deepcopy(side)) for side in (choice.one, choice.other))
    same = ast.dump(one) == ast.dump(choice.one) and ast.dump(other) == ast.dump(choice.other)
    return None if same else replace(choice, one=one, other=other)


# --- checks -------------------------------------------------------------------------------------------
def _on_check(site: Site, raised: str, holds: ast.expr, text: ast.expr | None) -> Advice:
    """Return the advice on a check of values that raises an exception of this name.

    Args:
        site: the statement.
        raised: the exception.
        holds: a test that is true if nothing is raised.
        text: the exception, or its text.
    """
    of_values = any(isinstance(each, ast.FormattedValue) or isinstance(each, ast.Call) and called(each) == "format"
                    for each in ast.walk(text or ast.Pass()))
    if of_values or _of_arrays(holds, Values(site.values)):
        of = "cannot make a text of values" if of_values else "`torch._assert_async` takes no array of NumPy's"
        return Advice("check", f"{_IN_CALLER}; else leave it as it is",
                      f"a graph has no branch on the value of a tensor, and {of}",
                      "what comes after the check is computed before it")
    try:
        test, unknown = truth(holds, Values(site.values), lambda node: unparsed(node, site.text))
        call, where = unparsed(test, site.text), ""
    except Unproven:
        unknown = [""]
    if unknown:
        call, where = "fine", ", where `fine` is a tensor of one truth value, true where nothing is to be raised"
    is_same = raised == "RuntimeError"
    replaced = "" if is_same else f"a `RuntimeError` may come in the place of the {raised}, and "
    return Advice(
        "check", f"where {replaced}{'the text of the exception' if is_same else 'its text'} needs no values, call "
        f"`torch._assert_async({call}, 'text')`{where}; {_IN_CALLER}",
        "a graph has no branch on a value that only the data tells, and this check is an operation of the graph",
        f"{'' if is_same else 'another type of exception reaches the caller; '}on a GPU it comes later")


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
              why: str = _WHY, cost: str = _COST, proven: str = "") -> Advice:
    """Return the advice to replace the user's statement by other statements."""
    lines = unparsed(ast.Module(list(statements), []), site.text).splitlines()
    return replace(with_lines(site, rule, lines, why, cost, last), proven=proven)


def with_lines(site: Site, rule: str, lines: Sequence[str], why: str, cost: str, last: int | None = None) -> Advice:
    """Return the advice to replace the user's statement by other lines."""
    node = site.statement
    edits: tuple[Edit, ...] = ()
    if node is not None and site.editable and site.where is not None and stands_alone(site, node):
        edits = (Edit(site.where.filename, node.lineno, last or node.end_lineno or node.lineno,
                      indented(lines, site.indentation())),)
    shown = "; ".join(f"`{line.strip()}`" for line in lines)
    return Advice(rule, f"write {shown}", why, cost, edits)


def stands_alone(site: Site, node: ast.stmt, with_comment: bool = False) -> bool:
    """Return whether a statement is alone on its lines: no other statement, no ``elif``, no comment."""
    first, last = site.lines[node.lineno - 1], site.lines[(node.end_lineno or node.lineno) - 1]
    before = first.encode()[: node.col_offset].decode()
    after = last.encode()[node.end_col_offset or 0 :].decode().strip()
    return not before.strip() and (not after or with_comment and after.startswith("#")) and not first.lstrip(
        ).startswith("elif")
