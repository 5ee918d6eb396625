"""The rules for graph breaks: one row for each kind, by the id in torch's registry of graph breaks.

``tests/advice`` has a program for each row but that of ``set up``, which is run before and after the change.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace

from ..frozen import frozen
from . import backward, branches, calls, errors, libraries, lists, texts
from .branches import on_branch as on_data_branch
from .branches import rewritten, unparsed, with_lines
from .data_loops import on_numbers, on_shrinking, on_turn
from .decisions import on_decision, on_skipped_decision, on_tested_number
from .keys import on_key
from .later_tests import Depends, later_index, later_item, later_test, numbers_of, on_number, test_in_loop
from .masks import on_number_of_chosen
from .model import Advice
from .random_numbers import is_number, on_drawn
from .readings import on_reading
from .recurrent import on_packed, on_packing, on_recurrent
from .scalars import has_scalars, in_arithmetic, without_scalar
from .shapes import on_numbers_taken, on_refused_numbers, on_shape
from .source import Site, called, is_own
from .tensor_indices import in_steps, is_indexed_by_tensors, numbers_among_indices, on_count, on_elements
from .uses import names_set


@frozen
class Rule:
    """One row.

    Attributes:
        ids: of torch's registry (``graph_break_registry.json``).
        heading: pattern of torch's heading, for versions of torch without ids.
        propose: gives the advice, or ``None`` where it does not fit.
    """

    ids: tuple[str, ...]
    heading: str
    propose: Callable[[Site], Advice | None]


def on_break(site: Site) -> Advice | None:
    """Return the advice on a graph break; ``None`` where no rule fits."""
    for rule in RULES:
        known = site.broken.registry_id
        if known in rule.ids if known else re.search(rule.heading, site.broken.reason):
            advice = rule.propose(site)
            if advice is not None and (advice.names_setting or advice.elsewhere or site.where is None
                                       or is_own(site.where.filename)):  # (who can change a line of a library?)
                return advice
    return libraries.on_given_up(site)


def candidates(site: Site) -> list[Advice]:
    """Return the changes of a graph break that a trial may find to be the same, best first; each can be made."""
    advice = on_break(site)
    tried = branches.candidates(site) if advice is not None and advice.rule == "branch" else [advice]
    return [each for each in tried if each is not None and each.is_mechanical]


def _setting(
    name: str, value: str, why: str, cost: str, depends: Depends | None = None,
) -> Callable[[Site], Advice | None]:
    """Return the rule that a setting helps.

    Args:
        name, value: of the setting.
        why: it helps.
        cost: in general.
        depends: whether a test depends on what torch computes then; a line with such a test is named as the cost.
    """
    line = f"torch._dynamo.config.{name} = {value}"

    def propose(site: Site) -> Advice | None:
        test = later_test(site, depends) if depends is not None else ""
        told = f"{test} depends on it, and breaks the graph next" if test else cost
        return Advice(name, f"set `{line}`", why, told, settings=(line,), next_break=test)

    return propose


# --- values taken out of tensors --------------------------------------------------------------------------
_scalars = _setting(
    "capture_scalar_outputs", "True", "the number is then a symbol of the graph",
    "a branch, a `range` or a key that depends on the number still ends the graph", on_number)


def _on_item(site: Site) -> Advice | None:
    """Return the advice on a number that is taken out of a tensor."""
    if isinstance(site.statement, (ast.If, ast.While, ast.Assert)):
        test = site.statement.test
        return (on_turn(site) or on_data_branch(site)) if (
            without_scalar(test) is not test or not _indexes(site)) else None
    if _indexes(site):  # (torch raises an error for it where the setting is on)
        return texts.on_looked_up(site) or lists.on_index(site)
    return _on_scalar(site)


def _on_scalar(site: Site) -> Advice | None:
    """Return the advice to set the setting for numbers, with what it costs where a loop behind the line breaks."""
    as_key = texts.on_looked_up(site)
    if as_key is not None:
        return as_key
    taken = on_numbers_taken(site)
    if taken is not None:
        return taken
    if site.statement is not None and numbers_among_indices(site.statement):
        return _on_indices(site, site.statement)
    bound = _bound_by_number(site)
    if bound:
        return Advice(
            "number_as_bound", "compute the number before the compiled function is called, and pass it as an argument",
            f"{bound} needs it as a size or as a bound of a slice; with a symbol of the graph there (the setting "
            "`capture_scalar_outputs`) torch 2.13 may end in an error",
            "what it is computed of is needed outside, too")
    advice, behind = _scalars(site), test_in_loop(site)
    later = later_index(site)
    if advice is not None and later is not None:
        return replace(advice, change=f"{advice.change}, and {later}") if later else None
    item = later_item(site)
    if advice is not None and item is not None:
        return replace(advice, change=f"{advice.change}; where `{item[0]}` is a list, make it a tensor first: with a "
                                      f"symbol for its index torch raises an error at {item[1]}; so also where it is "
                                      "a dictionary, for which the graph breaks there")
    if advice is None or behind is None or site.function is None:
        return advice
    test, loop = behind
    name = site.function.name
    return replace(
        advice, next_break=test, cost=f"{test} breaks the graph next, inside the loop at line {loop}: torch then gives "
                                      f"up all of `{name}`, also what is before the loop; mend that line first")


def _bound_by_number(site: Site) -> str:
    """Return the line on which a number out of a tensor is the bound of a slice or a ``size``; ``""`` for none."""
    if site.function is None or site.statement is None:
        return ""
    names = names_set(site.statement)
    for node in ast.walk(site.function):  # (in the order of the text, as far as one block goes)
        if isinstance(node, ast.Assign) and _has(node.value, names):
            names |= names_set(node)
    for node in ast.walk(site.function):
        bounds: list[ast.expr | None] = []
        if isinstance(node, ast.Slice):
            bounds = [node.lower, node.upper]
        elif isinstance(node, ast.Call):
            bounds = [each.value for each in node.keywords if each.arg == "size"]
        for bound in bounds:
            if bound is not None and (
                    _has(bound, names) or site.statement.lineno == bound.lineno and has_scalars(bound)):
                return f"line {bound.lineno} (`{unparsed(bound, site.text)}`)"
    return ""


def _has(node: ast.expr, names: set[str]) -> bool:
    return any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(node))


def _on_indices(site: Site, node: ast.stmt) -> Advice | None:
    """Return the advice on a line that takes a number out of a tensor and chooses an item by it and other indices."""
    changed = in_steps(node) if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)) \
        else None
    if changed is None:
        return None
    return _with_symbols(rewritten(
        site, [changed], rule="numbers_as_indices",
        why="the number is then a symbol of the graph, which may be an index alone and not beside others",
        cost="what is indexed has to be a tensor; a branch that depends on the number still ends the graph"))


def _on_refused_index(site: Site) -> Advice | None:
    """Return the advice on a number out of a tensor that torch refused beside other indices; it is a symbol already."""
    node = site.statement
    names = numbers_of(site.function) if site.function is not None else set()
    if not isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)) \
            or not numbers_among_indices(node, names):
        return None
    changed = in_steps(node, names)
    return rewritten(
        site, [changed], rule="numbers_as_indices", why="a symbol may be an index alone and not beside others",
        cost="what is indexed has to be a tensor") if changed is not None else None


def _with_symbols(advice: Advice) -> Advice:
    """Return the advice to write other lines, with the setting that makes symbols of numbers out of tensors."""
    setting = "torch._dynamo.config.capture_scalar_outputs = True"
    return replace(advice, change=f"{advice.change}, and set `{setting}`", settings=(setting,))


def _on_arithmetic(site: Site) -> Advice | None:
    """Return the rewriting of a simple statement all of whose numbers go into arithmetic with their tensors."""
    node = site.statement
    if not isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)):
        return None
    changed = in_arithmetic(node)
    if not has_scalars(node) or has_scalars(changed):  # (the line may hold another statement, which has them)
        return None
    return rewritten(
        site, [changed], rule="number",
        why="a tensor of one element does in arithmetic what its number does, and stays in the graph",
        cost="beside integers, the result can have another dtype than with the number; `.detach()`, since no gradient "
             "flows through a number")


def _indexes(site: Site) -> bool:
    """Return whether the statement may take an item of a list or dictionary by a value in a tensor."""
    if site.statement is None:
        return False
    for each in ast.walk(site.statement):
        if isinstance(each, ast.Subscript) and not isinstance(each.slice, (ast.Constant, ast.Slice, ast.Tuple)) and any(
                isinstance(inner, ast.Call) and called(inner) in (
                    "item", "int", "argmax", "argmin", "long", "sum", "max", "min") for inner in ast.walk(each.slice)):
            return True
    return False


def _on_tolist(site: Site) -> Advice | None:
    """Return the advice on ``.tolist()`` of a tensor of floats."""
    match site.statement:
        case ast.Assign([_], ast.Call(ast.Attribute(tensor, "tolist"), [], [])) | ast.Return(
                ast.Call(ast.Attribute(tensor, "tolist"), [], [])) as node:
            head = f"{ast.unparse(node.targets[0])} =" if isinstance(node, ast.Assign) else "return"
            line = f"{head} [value.item() for value in {ast.unparse(tensor)}]"
            return _with_symbols(with_lines(
                site, "tolist", [line], "torch traces `.item()` of each element then",
                "for a tensor of one dimension only"))
    return None


def _on_tolist_inside(site: Site) -> Advice | None:
    """Return the advice on ``.tolist()`` of a tensor of floats that is a part of a longer expression."""
    for node in ast.walk(site.statement) if site.statement is not None else ():
        if isinstance(node, ast.Call) and called(node) == "tolist" and isinstance(node.func, ast.Attribute):
            return Advice(
                "tolist", f"compute what this line needs of `{site.segment(node.func.value)}` in torch, without "
                "`.tolist()`", "what torch computes of a tensor stays in the graph",
                "what becomes of it is a tensor where a number was")
    return None


def _on_data_operator(site: Site) -> Advice | None:
    if "_local_scalar_dense" in site.broken.explanation:
        if ".tolist()" in (site.where.text if site.where else ""):
            return _on_tolist(site) or on_numbers(site) or _on_scalar(site)
        advice = on_count(site) or on_elements(site)
        if advice is not None or is_indexed_by_tensors(site):
            return advice
        return lists.on_index(site) if _indexes(site) else _on_scalar(site)
    return calls.on_data_operator(site)


def _on_drawn(site: Site) -> Advice | None:
    """Return the advice on a random number of Python's, where that is what broke the graph."""
    # (Of a `range` up to such a number torch does not say what it is of.)
    return on_drawn(site) if is_number(site) or site.broken.registry_id == "GB4841" else None


def _of_tensor(propose: Callable[[Site], Advice | None]) -> Callable[[Site], Advice | None]:
    """Return a rule that holds for values in tensors, and not for numbers of Python's that torch holds as such."""
    return lambda site: None if is_number(site) else propose(site)


def _on_attribute(site: Site) -> Advice | None:
    """Return the advice on a counter that is an attribute of a function."""
    match site.statement:
        case ast.AugAssign(ast.Attribute(ast.Name(owner), name), ast.Add(), value):
            text = ast.unparse(value)
            return Advice(
                "attribute", f"count in a tensor: `{name} = torch.tensor(0)` beside `{owner}`, and here "
                f"`{name}.add_({text})`", "torch does not trace the setting of attributes of this object",
                f"`{name}` is a tensor where a number was")
    return None


RULES: tuple[Rule, ...] = (
    Rule(("GB0264", "GB0119", "GB0467", "GB0142", "GB4347"),
         r"Parameter\(\)|^Uninitialized nn|^setattr|^Unsupported context|^Missing tp_iternext", libraries.on_set_up),
    Rule(("GB0170", "GB0035", "GB0124", "GB0178", "GB0213", "GB4841"),
         r"^Data-dependent (branching|jump)|^Unsupported (Tensor\.item|python_type)\(\)|^unimplemented builtin op|"
         r"^constant fold", _on_drawn),
    Rule(("GB0170", "GB0035"), r"^Data-dependent (branching|jump)", _of_tensor(on_turn)),
    Rule(("GB0170", "GB0035"), r"^Data-dependent (branching|jump)", on_number_of_chosen),
    Rule(("GB0170", "GB0035"), r"^Data-dependent (branching|jump)", _of_tensor(on_data_branch)),
    Rule(("GB0034",), r"^Data-dependent assertion", on_data_branch),
    Rule(("GB0124",), r"^Unsupported Tensor\.item\(\)", _on_arithmetic),
    Rule(("GB0124",), r"^Unsupported Tensor\.item\(\)", on_tested_number),
    Rule(("GB0124",), r"^Unsupported Tensor\.item\(\)", _on_item),
    Rule(("GB0109",), r"^Tensor\.tolist\(\) with non-integer", _on_tolist),
    Rule(("GB0109",), r"^Tensor\.tolist\(\) with non-integer", _on_tolist_inside),
    Rule(("GB0033", "GB0036", "GB0037"), r"^(Data dependent|Dynamic shape) operator", on_shrinking),
    Rule((), r"^Could not (extract specialized integer from|guard on) data-dependent expression", on_shrinking),
    Rule(("GB0033",), r"^Data dependent operator", on_packed),
    Rule(("GB0033",), r"^Data dependent operator", _on_data_operator),
    Rule((), r"^Could not extract specialized integer from data-dependent expression",
         lambda site: on_count(site) or on_elements(site, wants_number=False)),
    Rule((), r"^Could not guard on data-dependent expression", on_refused_numbers),
    Rule((), r"^Could not (extract specialized integer from|guard on) data-dependent expression", on_key),
    Rule((), r"^only integers, slices .*\(got SymInt\)", _on_refused_index),
    Rule((), r"^Could not guard on data-dependent expression", on_turn),
    Rule((), r"^Could not (extract specialized integer from|guard on) data-dependent expression", on_decision),
    Rule(("GB0036", "GB0037"), r"^Dynamic shape operator", on_shape),
    Rule(("GB0059",), r"^Failed to trace builtin operator", calls.on_print),
    Rule(("GB0059", "GB0296"), r"^Failed to trace builtin operator|^attempted to reorder", calls.on_text_of_number),
    Rule(("GB0291",), r"^logging\.Logger method", calls.on_logger),
    Rule(("GB0025",), r"^Call to `torch\._dynamo\.graph_break\(\)`", calls.on_graph_break),
    Rule(("GB0098", "GB0099"), r"^Skip (calling|inlining) `torch\.compiler\.disable", calls.on_disabled),
    Rule(("GB4198",), r"^Attempted to copy\.deepcopy a tensor", calls.on_deepcopy),
    Rule(("GB0007", "GB0008", "GB0156", "GB0208"), r"marked as skipped|^Unsupported method call|returned non-Tensor$",
         on_reading),
    Rule(("GB0007", "GB0008"), r"^Attempted to (call|inline) function marked as skipped", on_packing),
    Rule(("GB0007", "GB0008"), r"^Attempted to (call|inline) function marked as skipped", on_skipped_decision),
    Rule(("GB0007", "GB0008"), r"^Attempted to (call|inline) function marked as skipped", calls.on_skipped),
    Rule(("GB0059",), r"^Failed to trace builtin operator", calls.on_skipped),
    Rule(("GB0294",), r"^attempted to trace numpy function", calls.on_skipped),
    Rule((), r"^Guard failed on the same frame it was created", calls.on_array_in_inference_mode),
    Rule(("GB0147", "GB0808"), r"^Unsupported function call|^vectorcall_maybe on C method", calls.on_dates),
    Rule(("GB0142",), r"^Unsupported context manager", calls.on_context),
    Rule(("GB0811",), r"^missing tp_iter$", calls.on_generator),
    Rule(("GB0467",), r"^setattr\(\) on unsupported type", _on_attribute),
    Rule(("GB0088", "GB0021"), r"^Observed exception|^BUILD_STRING type error", texts.on_text),
    Rule(("GB0088",), r"^Observed exception", errors.on_none),
    Rule(("GB0088", "GB0021"), r"^Observed exception|^BUILD_STRING type error", errors.on_raise),
    Rule(("GB4315",), r"^RuntimeError when making fake tensor call", errors.on_failing),
    Rule(("GB0006",), r"^Attempted to call a super\(\) attribute that is not a function", errors.on_exception_made),
    Rule(("GB0091",), r"^Read uninitialized cell", calls.on_named_in_comprehension),
    Rule(("GB0123",), r"^Unsupported Tensor\.backward\(\)", backward.on_backward),
    Rule(("GB9186",), r"^using `torch\.autograd\.grad`", backward.on_gradients),
    Rule(("GB8985",), r"^requires_grad_\(\) intermediate leaked", backward.on_requires_grad),
    Rule(("GB0014",), r"^Attempted to wrap RNN", on_recurrent),
    Rule(("GB8977",), r"^Invalid call to __build_class__", _setting(
        "enable_trace_load_build_class", "True", "torch then traces the definition of the class",
        "a class outside of the function is made once only, and costs nothing in a call")),
    Rule(("GB0264",), r"^Attempted to use `torch\.nn\.Parameter\(\)`", _setting(
        "graph_break_on_nn_param_ctor", "False", "torch then makes the parameter in the graph",
        "better is a parameter that is made once, outside of what is compiled")),
)
