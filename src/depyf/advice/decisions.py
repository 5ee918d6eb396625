"""Calls that decide by a number out of a tensor, of which the rest of the compiled function needs nothing.

    stop = plateau.step(loss.item())    ->    have the function return `loss`; where it is called:
    return prediction, stop                   stop = plateau.step(loss.item())

With ``capture_scalar_outputs`` the number is a symbol, by which nothing inside of a graph can be decided.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from dataclasses import replace

from ..torch_text.resumes import plain_name
from .branches import unparsed
from .later_tests import may_be_number, test_of
from .made import changed_from, made_for, path_of
from .model import Advice
from .moving import ends_before
from .scalars import has_scalars
from .source import Function, Site, called


def on_decision(site: Site) -> Advice | None:
    """Return the advice on a break inside of a call in the compiled function; ``None`` where it has to stay there."""
    place = site.compiled_site
    if place is None or place.where is None or place.function is None or not place.editable or (
            place.statement not in place.function.body) or place.function.name != plain_name(place.where.function):
        return None
    return _behind(place)


def on_skipped_decision(site: Site) -> Advice | None:
    """Return the advice on a call that torch skips, where it is given a number out of a tensor; else ``None``."""
    advice = on_decision(site)
    return replace(advice, why="torch does not trace what it calls, and outside of a graph the number has a value") if (
        advice is not None and ".item()" in advice.change) else None


def on_tested_number(site: Site) -> Advice | None:
    """Return the advice on a call with a number out of a tensor, where the file tells that a branch depends on it."""
    call = _call(site.statement)
    if call is None or site.module is None or site.compiled_site is None or site.compiled_site.where != site.where:
        return None
    return on_decision(site) if any(
        test_of(function, name) is not None for function, name in _receivers(call, site.module)
        if function is not site.function) else None


def _behind(place: Site) -> Advice | None:
    """Return the advice to do a statement of the compiled function where that is called."""
    statement, function = place.statement, place.function
    call = _call(statement)
    if statement is None or function is None or call is None or ends_before(function, statement):
        return None
    with_numbers = _WithNumbers(function)
    moved = with_numbers.visit(copy.deepcopy(statement))
    numbers = [each for each in _arguments(moved) if has_scalars(each)]
    needed = list(dict.fromkeys(name for each in numbers for name in made_for(each, function)))
    others = [call.func, *(each for each in _arguments(moved) if each not in numbers)]
    if not numbers or not all(name.isidentifier() for name in needed) or any(
            made_for(each, function) or isinstance(each, ast.Lambda) for each in others) or any(
            changed_from(function, each, needed) for each in (statement, *with_numbers.taken)) or not _is_last_use(
            statement, others, function):
        return None
    names = " and ".join(f"`{name}`" for name in needed if not all(
        any(isinstance(part, ast.Name) and part.id == name for part in _parts(each)) for each in _returns(function)))
    return Advice(
        "decision", f"run `{unparsed(moved, place.text)}` where `{function.name}` is called"
        + (f", and have that return {names}" if names else ""),
        "outside of a graph the number has a value, by which Python can decide",
        f"it runs after all of `{function.name}`: nothing behind the line may need what it changes")


def _call(statement: ast.stmt | None) -> ast.Call | None:
    """Return the call that is all of a statement, but for a variable that its result is assigned to."""
    match statement:
        case ast.Expr(ast.Call() as call) | ast.Assign([ast.Name()], ast.Call() as call):
            return call
    return None


def _arguments(statement: ast.stmt) -> list[ast.expr]:
    """Return the arguments of the call that is all of a statement."""
    call = _call(statement)
    return [*call.args, *(each.value for each in call.keywords)] if call is not None else []


def _is_last_use(statement: ast.stmt, others: list[ast.expr], function: Function) -> bool:
    """Return whether the rest of a function leaves alone what a call changes and returns, but for returning it.

    Args:
        statement: the one that the call is all of, with what its result is assigned to.
        others: what is called, and its arguments but for the numbers: the call may change them.
        function: the compiled one.
    """
    results = {each.id for each in getattr(statement, "targets", ())}
    method, *arguments = map(path_of, others)
    owner = method.rpartition(".")[0]
    changed = {owner, *arguments} - {""}
    later = [each for after in function.body[function.body.index(statement) + 1:] for each in ast.walk(after)]
    returned = {id(part) for each in _returns(function) for part in _parts(each)}
    for each in later:
        match each:
            case ast.Name(name) if name in results and id(each) not in returned:
                return False
            case ast.Call(ast.Attribute(ast.Name("self"))) if owner.startswith("self."):
                return False  # (Another method may need what changed.)
            case ast.Name() | ast.Attribute() if ast.unparse(each) in changed:
                return False
    return True


def _returns(function: Function) -> list[ast.Return]:
    """Return the statements by which a function returns; without any it returns ``None``."""
    return [each for each in ast.walk(function) if isinstance(each, ast.Return)] or [ast.Return(None)]


def _parts(statement: ast.Return) -> list[ast.expr]:
    """Return what is returned, item by item where it is a tuple."""
    value = statement.value
    return value.elts if isinstance(value, ast.Tuple) else [value] if value is not None else []


class _WithNumbers(ast.NodeTransformer):
    """Writes what a number is taken from for the variable that it is assigned to: ``loss.item()`` for ``value``.

    Attributes:
        taken: the assignments of these variables.
    """

    def __init__(self, function: Function) -> None:
        self.taken: list[ast.stmt] = []
        self._set = Counter(each.id for each in ast.walk(function)
                            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store))
        self._assigned = {each.targets[0].id: each for each in ast.walk(function) if isinstance(each, ast.Assign)
                          and isinstance(each.targets[0], ast.Name)}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        found = self._assigned.get(node.id) if isinstance(node.ctx, ast.Load) and self._set[node.id] == 1 else None
        if found is None or not may_be_number(found.value):
            return node
        self.taken.append(found)
        return copy.deepcopy(found.value)


def _receivers(call: ast.Call, module: ast.Module) -> list[tuple[Function, str]]:
    """Return the parameters that numbers out of tensors are given to, where the file has one function of that name."""
    found = [each for each in ast.walk(module) if isinstance(each, Function) and each.name == called(call)]
    if len(found) != 1:
        return []
    (function,) = found
    parameters = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if isinstance(call.func, ast.Attribute) and parameters[:1] == ["self"]:
        del parameters[0]
    given = [*zip(parameters, call.args), *((each.arg, each.value) for each in call.keywords if each.arg)]
    return [(function, name) for name, value in given if may_be_number(value)]
