"""Calls that a graph cannot hold: printing, logging, breaks that the program asks for, functions that torch skips."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..records.model import GraphBreak
from .branches import unparsed, with_lines
from .calls_in_loops import on_call_in_loop
from .made import made_for, reads_made
from .model import Advice, Edit
from .moving import moved
from .source import Function, Site, called

#: Types of arguments that torch can print after the graph (``LoggingFunction.can_reorder_logs``).
_PRINTABLE = frozenset({"str", "bool", "NoneType", "Tensor", "dtype", "device"})
#: Types that are or hold numbers that torch may keep open: torch can format these after the graph, but not call `str`.
_FORMATTED = frozenset({"int", "float", "Size", "tuple", "list", "dict"})
#: The rule on what an earlier break in the same line makes.
FOLLOWS = "follows"
_REORDER = "torch._dynamo.config.reorderable_logging_functions.add"


def of_statement(site: Site, name: str) -> ast.Call | None:
    """Return the call that is the whole statement, if it is of a function of that name."""
    match site.statement:
        case ast.Expr(ast.Call() as call) if called(call) == name:
            return call
    return None


# --- output -------------------------------------------------------------------------------------------
def on_print(site: Site) -> Advice | None:
    """Return the advice on ``print``: let torch print when the graph is done; else move it."""
    if "`print`" not in site.broken.explanation or "Higher Order" in site.broken.reason:
        return None
    call = of_statement(site, "print")
    if call is None or call.keywords or any(isinstance(each, ast.Starred) for each in call.args) or _is_generator(site):
        return Advice(
            "print out", "print outside of what is compiled: return what it shows, and print it where the function is "
            "called", "a graph cannot print; torch can print after it, but only what `print(a, b, ...)` shows without "
            "keywords", "the text comes after the call")
    types = re.findall(r"'([^']+)'", site.broken.explanation.partition("argument types")[2].partition("]")[0])
    shown = [_shown(argument, each) for argument, each in zip(call.args, types)] if (
        len(types) == len(call.args)) else list(call.args)
    return printed_after(site, call, shown)


def _is_generator(site: Site) -> bool:
    """Return whether the function is a generator: of what those print after the graph, torch 2.13 loses the text."""
    return site.function is not None and any(
        isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(site.function))


def on_text_of_number(site: Site) -> Advice | None:
    """Return the advice on ``print``, which is set to come after the graph, of what may hold open sizes."""
    call = of_statement(site, "print")
    if call is None or call.keywords or _is_generator(site) or not (
            "`str`" in site.broken.explanation or site.broken.reason.startswith("attempted to reorder")):
        return None
    shown = [_formatted(each.args[0]) if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)
             and each.func.id == "str" and len(each.args) == 1 else _formatted(each) if _is_of_size(each) else each
             for each in call.args]
    return printed_after(site, call, shown) if shown != call.args else None


def _shown(argument: ast.expr, kind: str) -> ast.expr:
    """Return an argument of a type as torch can print it after the graph."""
    if kind in _PRINTABLE or isinstance(argument, ast.Constant):
        return argument
    return _formatted(argument) if kind in _FORMATTED else ast.Call(ast.Name("str", ast.Load()), [argument], [])


def _formatted(argument: ast.expr) -> ast.expr:
    """Return an expression that gives the text of another, and torch can evaluate after the graph.

    An f-string of an open number makes torch fix it.
    """
    return ast.Call(ast.Attribute(ast.Constant("{}"), "format", ast.Load()), [argument], [])


def _is_of_size(argument: ast.expr) -> bool:
    """Return whether an expression is a size of a tensor, or a tuple or list of its sizes, by its text."""
    match argument:
        case ast.Call(ast.Name("tuple" | "list"), [inner], []) | ast.Subscript(inner):
            return _is_of_size(inner)
        case ast.Attribute(_, "shape") | ast.Call(ast.Attribute(_, "size" | "numel")):
            return True
    return False


def printed_after(site: Site, call: ast.Call, shown: list[ast.expr]) -> Advice:
    """Return the advice to let torch print when the graph is done, with arguments that it can print then."""
    setting = f"{_REORDER}(print)"
    why = "torch then prints after the graph instead of ending it here"
    cost = ("the text comes when the graph is done, so after other output, and shows tensors that are changed in place "
            "as they are then")
    if shown == call.args:
        return Advice("print", f"set `{setting}`", why, cost, settings=(setting,))
    line = unparsed(ast.Expr(ast.Call(call.func, shown, [])), site.text)
    advice = with_lines(site, "print", [line], why, cost)
    return Advice("print", f"{advice.change}, and set `{setting}`", why, cost, advice.edits, (setting,), advice.after)


def on_logger(site: Site) -> Advice | None:
    """Return the advice on a call of a logger."""
    match = re.search(r"\.(?P<method>debug|info|warning|warning_once|error|critical|exception|log)\(",
                      site.where.text if site.where is not None else "")
    method = match["method"] if match is not None else "info"
    known = method if method != "warning_once" else "warning"
    setting = f"torch._dynamo.config.ignore_logging_functions.add(logging.Logger.{known})"
    return Advice(  # (no setting to be tried: it loses messages, which no run shows)
        "logger", f"set `{setting}`, or log where the function is called",
        "torch then leaves the call out instead of ending the graph here",
        "compiled code does not log it at all")


def on_warning(site: Site) -> Advice | None:
    """Return the advice on ``warnings.warn``."""
    if of_statement(site, "warn") is None:
        return None
    setting = f"{_REORDER}(warnings.warn)"
    return Advice("warning", f"set `{setting}`", "torch then warns after the graph instead of ending it here",
                  "the warning comes when the graph is done", settings=(setting,) if _imports(site, "warnings") else ())


def _imports(site: Site, name: str) -> bool:
    return site.module is not None and site.editable and any(
        isinstance(node, ast.Import) and any((alias.asname or alias.name) == name for alias in node.names)
        for node in site.module.body)


# --- what the program asks for --------------------------------------------------------------------------
def on_graph_break(site: Site) -> Advice | None:
    """Return the advice on a graph break that the program asks for."""
    if of_statement(site, "graph_break") is None:
        return None
    lines = ["pass"] if _is_only_one(site) else []
    advice = with_lines(site, "graph_break", lines, "the program itself asks for the break",
                        "none, unless the break was put there to keep something out of the graph")
    text = (site.where.text if site.where is not None else "").strip()
    return Advice("graph_break", f"take the line `{text}` out", advice.why, advice.cost, advice.edits)


def _is_only_one(site: Site) -> bool:
    """Return whether a statement is the only one of its block."""
    if site.module is None:
        return False
    return any(isinstance(block, list) and len(block) == 1 and block[0] is site.statement
               for node in ast.walk(site.module) for block in (getattr(node, "body", 0), getattr(node, "orelse", 0)))


def on_disabled(site: Site) -> Advice | None:
    """Return the advice on a function that the program keeps from being compiled."""
    match = re.search(r"[Ff]unction `?<function (?P<name>[\w.<>]+) at|function `(?P<quoted>[\w.]+)`",
                      site.broken.explanation)
    name = ((match["name"] or match["quoted"]) if match is not None else "").rpartition(".")[2]
    if not name or site.module is None or site.where is None:
        return None
    for node in ast.walk(site.module):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            for decorator in node.decorator_list:
                text = unparsed(decorator)
                if re.search(r"\bdisable\b", text):
                    edits = (Edit(site.where.filename, decorator.lineno, decorator.end_lineno or decorator.lineno,
                                  ()),) if site.editable else ()
                    return Advice(
                        "disable", f"take `@{text}` off `{name}`, or call it before or after what is compiled",
                        "the program itself keeps the function out of the graph",
                        "none, unless it was put there since torch compiles the function wrongly", edits)
    return None


# --- other calls ----------------------------------------------------------------------------------------
def on_deepcopy(site: Site) -> Advice | None:
    """Return the advice on ``copy.deepcopy`` of a tensor: a copy has its values, and is no part of its gradients."""
    if site.statement is None:
        return None
    calls = [each for each in ast.walk(site.statement) if isinstance(each, ast.Call) and called(each) == "deepcopy"]
    if len(calls) != 1 or len(calls[0].args) != 1 or calls[0].keywords:
        return None
    argument = calls[0].args[0]
    shape = next((each.shape for each in site.values if isinstance(argument, ast.Name) and each.name == argument.id),
                 None)
    why, text = "torch does not trace `copy.deepcopy` of a tensor", unparsed(argument, site.text)
    if shape is None:
        return Advice("deepcopy", f"where the function is called, make the copy of `{text}` first, and pass both", why,
                      "the copy is made outside of the graph")
    return Advice(
        "deepcopy", f"if nothing needs the copy to be a `Parameter`, or to have a gradient of its own: "
        f"`{text}.detach().clone()` in the place of `{unparsed(calls[0], site.text)}`", why,
        "the copy does not require a gradient, which a copy of a parameter does")


def on_array_in_inference_mode(site: Site) -> Advice | None:
    """Return the advice on an array of numpy's that torch 2.13 cannot take as an argument in inference mode."""
    array = re.search(r"'___from_numpy\((?P<name>[A-Za-z_]\w*)\)' dispatch key set mismatch\. expected [^)]*"
                      r"\bADInplaceOrView\)", site.broken.reason)
    if array is None:
        return None
    return Advice(
        "array", f"pass `torch.from_numpy({array['name']})` in place of the array, or call the function in "
        "`torch.no_grad()` rather than `torch.inference_mode()`", "torch's guards take the array for a tensor that "
        "`torch.inference_mode()` made, and it traced another",
        "what the function does with the array has to be possible with a tensor: its own `torch.from_numpy` is not")


def on_dates(site: Site) -> Advice | None:
    """Return the advice on dates and times of ``datetime``: torch traces neither their making nor their arithmetic."""
    if not re.search(r"<class 'datetime\.|'datetime\.(?:datetime|date|time|timedelta)' objects", site.broken.context):
        return None
    return Advice(
        "dates", "compute what is made of dates and times before the compiled function is called, and pass that to it, "
        "as tensors where it changes", "torch does not trace `datetime`: neither the making of its objects nor "
        "arithmetic with them", "the compiled function has one more parameter for each")


def on_skipped(site: Site) -> Advice | None:
    """Return the advice on a function that torch does not trace: call it before the compiled function."""
    special = on_warning(site) or on_deepcopy(site)
    if special is not None or is_step_of_scheduler(site.broken):  # (torch's documents have the program so)
        return special
    if bound_method(site.broken):
        return None  # (called before the compiled function or in its graph, torch has nothing against it)
    match = re.search(r"qualname: (?P<what>[\w.]+)", site.broken.context) or re.search(
        r"(?:function|method|builtin|operator) `(?P<what>[^`]+?)\.?`", site.broken.explanation) or re.search(
        r"numpy function <(?:bound method|built-in method|function) (?P<what>[\w.]+)", site.broken.explanation)
    name = (match["what"] if match is not None else "").rpartition(".")[2]
    if site.statement is None or not name:
        return None
    calls = [each for each in ast.walk(site.statement) if isinstance(each, ast.Call) and called(each) == name]
    if not calls or site.where is None or not site.editable:
        return None
    shown, function = unparsed(calls[0]), site.function.name if site.function is not None else "the function"
    if isinstance(site.statement, ast.Expr) and site.statement.value is calls[0]:
        return moved(site, calls[0])
    # (A test or a ``range`` of a tensor would break the graph.)
    as_tensor = "" if isinstance(site.statement, (ast.If, ast.For)) else ", as a tensor if {}"
    in_loop = on_call_in_loop(site, calls[0], "skipped", "torch does not trace what it calls",
                              as_tensor.format("they are numbers that change"))
    if in_loop is not None:
        return in_loop
    if isinstance(site.statement, ast.If):
        test = test_of_call(site.statement.test, calls[0], site.function)
        if test is not None:
            return Advice(
                "skipped", f"evaluate `{unparsed(test, site.text)}` before the compiled function is called, and pass "
                f"the result to `{function}`: `True` or `False`", "torch does not trace what it calls",
                f"a version for each of the two; `{function}`, and each compiled function that calls it, has one more "
                "parameter")
    made = _made_before(site, calls[0])
    if made:
        return Advice(
            "skipped", f"divide `{function}` here: compile what comes before this line and what comes after it as "
            f"functions of their own, and call `{shown}` between them", f"torch does not trace what it calls, and "
            f"`{function}` makes or changes {', '.join(f'`{name}`' for name in made)}, which the call reads",
            "two compiled functions in place of one; what both need is returned by the first")
    inputs = ". Where its arguments are made in the function, end the compiled function there" if _needs_names(
        site, calls[0]) else ""
    return Advice(
        "skipped", f"call `{shown}` before the compiled function is called, and pass the result to `{function}`"
        f"{as_tensor.format('it is a number that changes')}{inputs}",
        "torch does not trace what it calls; a value from outside is an input of the graph",
        f"`{function}`, and each compiled function that calls it, has one more parameter")


def _made_before(site: Site, call: ast.Call) -> list[str]:
    """Return the variables and attributes among what a call reads that the function makes on lines before it.

    (None where the call stands in a loop or the like: there a function cannot be divided.)
    """
    if site.function is None or site.statement is None or site.statement not in site.function.body:
        return []
    return made_for(call, site.function, before=site.statement.lineno)


def _needs_names(site: Site, call: ast.Call) -> bool:
    """Return whether a call may need what the function makes: a name is an argument, or its lines make one of it."""
    return any(isinstance(each, ast.Name) for each in call.args) or (
        site.function is not None and reads_made(call, site.function))


def test_of_call(test: ast.expr, call: ast.Call, function: Function | None) -> ast.expr | None:
    """Return the part of a test that has a call and needs nothing that the function makes; ``None`` for none."""
    parts = [each for each in ast.walk(test) if isinstance(each, (ast.Compare, ast.Call))
             and any(inner is call for inner in ast.walk(each))]
    outer = parts[0] if parts else None
    if outer is None or not any(isinstance(each, ast.Name) for each in ast.walk(outer)):
        return None
    return None if function is not None and reads_made(outer, function) else outer


def is_step_of_scheduler(broken: GraphBreak) -> bool:
    """Return whether a graph broke at ``optimizer.step()``, which a learning-rate scheduler wraps."""
    return re.search(r"torch[\\/]optim[\\/]lr_scheduler\.py", broken.explanation) is not None and "step" in (
        broken.location.text if broken.location is not None else "")


def bound_method(broken: GraphBreak) -> str:
    """Return the method of a tensor, or of its shape, that torch met as a value: ``Tensor.index_fill``; else ``""``.

    Torch traces ``x.index_fill(...)`` as a call of a method. A bound method that comes into what it compiles as a value
    (on the stack of a resume function, in a variable) is to it a built-in of no module, which it skips
    (``torch/_dynamo/variables/builder.py``, ``bound_builtin_method_descriptor``).
    """
    match = re.match(r"module: (?:<unknown module>|None), qualname: (?P<what>(?:Tensor|Parameter|Size)\.\w+),",
                     broken.context) if broken.registry_id == "GB0007" else None
    return match["what"] if match is not None else ""


def on_left_method(method: str, before: Advice | None) -> Advice:
    """Return the advice on a bound method of a tensor that the break before it in its line left on the stack.

    Args:
        method: as the program writes it, ``probs.index_fill``.
        before: the advice on the break before it.
    """
    if before is not None and before.rule == FOLLOWS:  # (the line broke twice before: the first of them is meant)
        change, cost = before.change, before.cost
    else:
        change = "mend the break before it in this line, and this one goes with it" + (
            f": {before.change}" if before is not None else "")
        cost = before.cost if before is not None else "what the change there costs"
    return Advice(
        FOLLOWS, change, f"this break follows from that one, which leaves the bound method `{method}` on the stack for "
        "its resume function: torch does not trace a tensor's method that is looked up before the graph begins", cost)


def on_context(site: Site) -> Advice | None:
    """Return the advice on a context manager that torch cannot enter."""
    match site.statement:
        case ast.With(items) if items:
            entered = unparsed(items[0])
            function = site.function.name if site.function is not None else "the function"
            return Advice("context", f"write `with {entered}:` around the call of `{function}`, not in it",
                          "torch does not trace how this context is entered and left",
                          "the context then holds for all of the function")
    return None


def on_generator(site: Site) -> Advice | None:
    """Return the advice on a generator that is given as an argument."""
    match site.statement:
        case ast.For(_, ast.Name(name)):
            edits = tuple(_as_lists(site, name))
            return Advice("generator", f"pass a list: call the function with `list({name})`",
                          "torch can unroll a loop over a list, not over a generator that runs already",
                          "all items are made before the call", edits,
                          after=tuple(line.strip() for edit in edits for line in edit.lines))
    return None


def _as_lists(site: Site, name: str) -> Iterator[Edit]:
    """Yield the edits of calls of the site's function in which a parameter is a generator: it becomes a list."""
    if site.module is None or site.function is None or site.where is None or not site.editable:
        return
    parameters = [each.arg for each in site.function.args.args]
    if name not in parameters:
        return
    for call in ast.walk(site.module):
        if not isinstance(call, ast.Call) or called(call) != site.function.name:
            continue
        given = {**dict(zip(parameters, call.args)), **{each.arg or "": each.value for each in call.keywords}}.get(name)
        if given is None or not _makes_iterator(given) or given.lineno != given.end_lineno or len(call.args) < 2:
            continue
        line = site.lines[given.lineno - 1].encode()
        old = line[given.col_offset : given.end_col_offset].decode()
        new = f"list{old}" if isinstance(given, ast.GeneratorExp) else f"list({old})"
        text = line[: given.col_offset].decode() + new + line[given.end_col_offset :].decode()
        yield Edit(site.where.filename, given.lineno, given.lineno, (text,))


def _makes_iterator(node: ast.expr) -> bool:
    return isinstance(node, ast.GeneratorExp) or isinstance(node, ast.Call) and isinstance(
        node.func, ast.Name) and node.func.id in ("map", "filter", "zip", "iter", "enumerate", "reversed")


def on_data_operator(site: Site) -> Advice | None:
    """Return the advice on an operator whose result is a Python number."""
    match = re.search(r"`aten\.(?P<name>\w+)", site.broken.explanation)
    name = match["name"] if match is not None else ""
    if name in ("equal", "allclose"):
        return _comparison(site, name)
    return None


def _comparison(site: Site, name: str) -> Advice | None:
    if site.statement is None:
        return None
    calls = [each for each in ast.walk(site.statement) if isinstance(each, ast.Call) and called(each) == name]
    if len(calls) != 1:
        return None
    same = "`(a == b).all()`" if name == "equal" else "`torch.isclose(a, b).all()`"
    return Advice(
        name, f"if both always have one shape and the line can take a tensor: {same}; otherwise leave it as it is",
        f"`{unparsed(calls[0], site.text)}` gives a truth value of Python's, which only the data tells",
        "a tensor of one truth value, where a Python value was; a branch on it breaks the graph, too")


def on_named_in_comprehension(site: Site) -> Advice | None:
    """Return the advice on ``:=`` in a comprehension, whose name belongs to the function around it."""
    if site.statement is None:
        return None
    for each in ast.walk(site.statement):
        if isinstance(each, (ast.ListComp, ast.SetComp, ast.DictComp)):
            named = next((inner.target.id for inner in ast.walk(each) if isinstance(inner, ast.NamedExpr)), "")
            if named:
                return Advice("named", f"write the comprehension as a `for` loop, in which `{named}` is set",
                              "torch does not trace a name that a comprehension sets in the function around it", "none")
    return None
