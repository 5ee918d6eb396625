"""What operations are called, and what is known of them: whether they give a view, write to what they take, set a mode.

One operation has many names: ``x.add(y)``, ``torch.add(x, y)``, ``operator.add``, ``torch.ops.aten.add.Tensor``.
"""

from __future__ import annotations

import ast
import functools

from ..torch_text.parsed import parsed_expression

#: Operations that give the same memory in another shape, as ATen and Inductor call them.
VIEWS = frozenset(
    "view reshape _unsafe_view unsafe_view permute t transpose expand squeeze unsqueeze slice select alias detach "
    "as_strided split split_with_sizes chunk unbind diagonal view_as_real view_as_complex unfold getitem "
    "inductor_force_stride_order".split())
#: The same as a program calls them. (``reshape`` does where it can.)
PROGRAM_VIEWS = VIEWS - frozenset("_unsafe_view unsafe_view inductor_force_stride_order".split()) | frozenset(
    "view_as flatten unflatten movedim swapaxes expand_as narrow tensor_split real imag T mT H mH data".split())
#: Reductions and the like: they are computed once and stored.
STORED = frozenset(
    "sum mean amax amin max min prod var var_mean std std_mean argmax argmin any all cumsum cumprod logsumexp "
    "sort topk".split())
#: Operations that write into a copy of their first argument.
SCATTERS = frozenset("index_put _unsafe_index_put index_add scatter scatter_add scatter_reduce".split())
#: Operations that Inductor calls by another name (torch/_inductor/lowering.py, kernel/mm.py).
CALLED = {
    "scatter_reduce": "scatter_add scatter scatter_reduce scatter_reduce_two", "randint": "inductor_seeds",
    "bias_addmm": "addmm", "mm": "mm addmm", "addmm": "addmm mm", "bmm": "bmm baddbmm", "baddbmm": "baddbmm bmm",
    "index_put": "index_put _unsafe_index_put index_put_", "convolution": "convolution _convolution",
    "linear_pointwise": "addmm mm linear", "convolution_pointwise": "convolution"}
#: Methods that give the tensor itself where it is of the wanted type, and in the wanted place and layout, already.
CONVERSIONS = frozenset(
    "to type type_as float double half bfloat16 int long short char byte bool cfloat cdouble cpu cuda "
    "contiguous".split())
#: What the graphs are that an operator takes, in the order in which it takes them; the last goes for all further ones.
ROLES: dict[str, tuple[str, ...]] = {
    "tag_activation_checkpoint": ("the checkpointed function, which the backward pass runs again",),
    "autograd_function_apply": ("forward of the autograd.Function", "backward of the autograd.Function"),
    "cond": ("what torch.cond runs if its condition is true", "what torch.cond runs if its condition is false"),
    "while_loop": ("the condition of the while_loop", "the body of the while_loop"),
    "wrap": ("a function that torch keeps as a graph of its own",),
    "invoke_subgraph": ("the nested_compile_region",),
    "flex_attention": ("score_mod of flex_attention", "mask_mod of flex_attention"),
    "map_impl": ("the function that map calls for each element",),
    "scan": ("the function that scan calls for each element",),
    "associative_scan": ("the function that associative_scan combines by",),
}
#: Functions that set modes.
_OF_MODES = frozenset(
    "_set_grad_enabled _enter_inference_mode _exit_inference_mode _enter_autocast _exit_autocast".split())
_QUOTE = "'"


@functools.lru_cache(65536)
def operation_of(target: str) -> str:
    """Return an operation with its namespace: ``"aten.mm"`` of ``"torch.ops.aten.mm.default"``; ``"linear"``."""
    parts = target.split(".")
    if parts[:2] == ["torch", "ops"] and len(parts) >= 4:
        return ".".join(parts[2:4])
    return parts[-1]


@functools.lru_cache(65536)
def last_name(target: str) -> str:
    """Return an operation's name as torch writes it, without namespace and overload: ``"_softmax"``, ``"copy_"``."""
    return operation_of(target).rpartition(".")[2]


@functools.lru_cache(65536)
def bare_name(target: str) -> str:
    """Return a name without the mark of an operation in place: ``"copy"`` of ``"aten.copy_"``; ``"_softmax"``."""
    name = last_name(target)
    return name.rstrip("_") or name


@functools.lru_cache(65536)
def shown_name(target: str) -> str:
    """Return ``"mm"`` of ``"torch.ops.aten.mm.default"``, ``"softmax_backward_data"`` of ``"aten._softmax_..."``.

    The underscore of an operation in place, ``"add_"``, stays.
    """
    name = last_name(target)
    return name.strip("_") if target.startswith("operator.") else name.lstrip("_")


@functools.lru_cache(65536)
def plain_name(target: str) -> str:
    """Return a name without what differs from stage to stage: ``"softmax"`` of ``"aten._softmax_backward_data"``."""
    name = last_name(target)
    for part in ("_backward_data", "_backward", "_copy"):
        if name != "to_copy" and name != "_to_copy":
            name = name.removesuffix(part)
    return name.strip("_")


def is_in_place(target: str) -> bool:
    """Return whether an operation changes its first argument: ``x.add_(1)``, ``x += 1``, ``x[0] = 1``."""
    name = last_name(target)
    return name == "setitem" or name.endswith("_") and not name.endswith("__") or (
        target.startswith("operator.i") and name not in ("invert", "is_", "is_not", "index", "inv"))


def is_view(target: str) -> bool:
    """Return whether an operation gives its input's memory in another shape, as ATen and Inductor call it."""
    return bare_name(target) in VIEWS or last_name(target) in VIEWS


def mode_set(target: str, call: str) -> str:
    """Return the change that a call, an expression, makes to the modes of torch, in words; ``""`` for other calls."""
    if last_name(target) not in _OF_MODES:
        return ""
    tree = parsed_expression(call)
    arguments = [ast.unparse(each) for each in tree.args] if isinstance(tree, ast.Call) else []
    match last_name(target), arguments:
        case "_set_grad_enabled", ["True" | "False" as on]:
            return f"grad mode {'on' if on == 'True' else 'off'}"
        case "_enter_inference_mode", ["True" | "False" as on]:
            return f"inference mode {'on' if on == 'True' else 'off'}"
        case "_exit_inference_mode", _:
            return "inference mode as before"
        case "_enter_autocast", [device, dtype, "True", *_]:
            return f"autocast on for {device.strip(_QUOTE)}" + f": {dtype.removeprefix('torch.')}" * (dtype != "None")
        case "_enter_autocast", [device, _, "False", *_]:
            return f"autocast off for {device.strip(_QUOTE)}"
        case "_exit_autocast", _:
            return "autocast as before"
    return ""
