"""A graph of torch as typed values, which name nothing of the text that they may have been read from; its operations.

:func:`.graph_text.read_graph` makes them of torch's print of a graph; nodes of a live ``torch.fx.Graph`` have the
same fields. A statement of the print and its node::

    # File: model.py:12 in forward, code: x = self.q(x)
    linear: "f32[2, 8][8, 1]cpu" = torch._C._nn.linear(l_x_, l_w_, None);  l_w_ = None

    Node("linear", "call_function", "torch._C._nn.linear", ("l_x_", "l_w_"), TensorType(...),
         SourceLocation("model.py", 12, "forward", "x = self.q(x)"),
         value="torch._C._nn.linear(l_x_, l_w_, None)")
"""

from __future__ import annotations

import ast
import functools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ..records.model import SourceLocation
from ..torch_text.parsed import parsed_expression

# --- operations --------------------------------------------------------------------------------------
# One operation has many names: ``x.add(y)``, ``torch.add(x, y)``, ``operator.add``, ``torch.ops.aten.add.Tensor``.
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
    name = last_name(target)
    if not name.startswith(("_set_grad_", "_enter_", "_exit_")):
        return ""
    tree = parsed_expression(call)
    arguments = [ast.unparse(each) for each in tree.args] if isinstance(tree, ast.Call) else []
    match name, arguments:
        case "_set_grad_enabled" | "_enter_inference_mode", ["True" | "False" as on]:
            mode = "grad" if name == "_set_grad_enabled" else "inference"
            return f"{mode} mode {'on' if on == 'True' else 'off'}"
        case "_enter_autocast", [device, dtype, "True" | "False" as on, *_]:
            to = f": {dtype.removeprefix('torch.')}" if on == "True" and dtype != "None" else ""
            return f"autocast {'on' if on == 'True' else 'off'} for {device.strip(_QUOTE)}{to}"
        case ("_exit_inference_mode" | "_exit_autocast"), _:
            return f"{name.removeprefix('_exit_').replace('_', ' ')} as before"
    return ""


#: Torch's short names of dtypes (torch/utils/_dtype_abbrs.py). Others stay as they are.
DTYPES = {
    "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u16": "uint16", "u32": "uint32",
    "u64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "c32": "complex32",
    "c64": "complex64", "c128": "complex128", "bc32": "bcomplex32", "b8": "bool", "b1x8": "bits1x8",
    "b2x4": "bits2x4", "b4x2": "bits4x2", "b8x1": "bits8", "b16x1": "bits16", "f8e5m2": "float8_e5m2",
    "f8e4m3fn": "float8_e4m3fn", "f8e5m2fnuz": "float8_e5m2fnuz", "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e8m0fnu": "float8_e8m0fnu", "f4e2m1fnx2": "float4_e2m1fn_x2"}
SHORT_DTYPES = {name: short for short, name in DTYPES.items()}
_ARGUMENT = re.compile(r"(?:primals_(?P<from_one>\d+)|arg(?P<from_zero>\d+)_1)$")
_NAME_OR_STRING = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"|\'[^\'\\\n]*(?:\\.[^\'\\\n]*)*\'|(?<![\w.])[A-Za-z_]\w*')


@dataclass(frozen=True, slots=True)
class TensorType:
    """The type that torch prints for a value: ``"f32[2, s27][s27, 1]cpu"``.

    Texts are empty, and shape and stride ``None``, where torch says nothing.
    """

    text: str
    dtype: str = ""  # "float32"
    shape: tuple[str, ...] | None = None  # sizes as text, so that symbols stay: ("2", "s27")
    stride: tuple[str, ...] | None = None
    device: str = ""  # "cuda:0"
    number: str = ""  # the expression of a number: "s27 + 1" of "Sym(s27 + 1)"

    @property
    def bytes(self) -> int | None:
        """The bytes of the tensor; ``None`` where a size is open or its type is not known. A number takes none."""
        if self.shape is None:
            return 0
        bits = 8 if self.dtype == "bool" else int((re.findall(r"\d+", self.dtype) or [0])[0])
        if not bits or not all(size.isdigit() for size in self.shape):
            return None
        return math.prod(map(int, self.shape)) * max(1, bits // 8)

    @property
    def short(self) -> str:
        """Dtype and shape in torch's form: ``"f32[2, s27]"``."""
        dtype = SHORT_DTYPES.get(self.dtype, self.dtype)
        return self.text if self.shape is None else f"{dtype}[{', '.join(self.shape)}]"


@dataclass(frozen=True, slots=True)
class AotValue:
    """The role of a value, as AOTAutograd describes it: ``GradAOTOutput(grad_of=PlainAOTInput(idx=2))``.

    All but the text are empty where the text has another form.
    """

    text: str
    kind: str = ""  # the class: "GradAOTOutput"
    index: int | None = None  # 2 of idx=2
    name: str = ""  # "a.w" of target='a.w'
    of: AotValue | None = None  # the value that it belongs to


class Node(NamedTuple):
    """One node of a graph; a tuple, which is cheap to make: a large model has tens of thousands of nodes."""

    name: str
    # `"placeholder"`, `"call_function"`, `"call_method"`, `"call_module"`, `"get_attr"` or `"output"`, as in `torch.fx`
    op: str
    # what is called, `"torch.ops.aten.mm.default"`; `"operator.add"` for `a + b`; the method's name; the path of a
    # module or an attribute; the parameter's name of a placeholder
    target: str
    inputs: tuple[str, ...] = ()  # names of the nodes that it takes, each once, in order
    type: TensorType | None = None  # torch's annotation; nodes that give tuples have none
    location: SourceLocation | None = None  # the user's line; nodes of one user stack share it
    line: int = 0  # of the text that it was read from, from 1; 0 for none
    # the operator that a higher-order call is given: `"torch.ops.aten.mm.default"` of
    # `torch.ops.higher_order.run_with_rng_state(state, torch.ops.aten.mm.default, a, b)`; empty for others
    runs: str = ""
    value: str = ""  # the Python expression of its value, on several lines where torch breaks it; empty for a parameter
    statement: str = ""  # what is run before its value is read: "x += y", "x[0] = 1"
    notes: tuple[AotValue | None, ...] = ()  # the role of each line of the value
    remark: str = ""  # more that torch says of the nodes of a user stack: "Annotation: {'call_id': 3}"
    unused: bool = False  # nothing reads its value

    @property
    def is_call(self) -> bool:
        """Return whether the node calls something."""
        return self.op[:5] == "call_"

    @property
    def is_view(self) -> bool:
        """Return whether the node gives its input's memory in another shape."""
        return self.is_call and is_view(self.target)

    @property
    def item(self) -> int:
        """The index of what ``operator.getitem`` takes out of several results; -1 for others."""
        index = self.value.rpartition("[")[2].removesuffix("]") if self.target == "operator.getitem" else ""
        return int(index) if index.isdecimal() else -1

    @property
    def operation(self) -> str:
        """The operation in short: ``"aten.mm"``, ``"linear"``, ``"add"``, ``"view"``."""
        return operation_of(self.target)


@dataclass(frozen=True, slots=True)
class Input:
    """A parameter of a graph."""

    name: str  # torch's, as in ``GraphInput.name``; the target of a placeholder
    text: str  # as torch prints it, with its annotation: 'L_x_: "f32[2]"'
    type: TensorType | None = None
    note: AotValue | None = None


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph, with those that it contains for ``torch.cond`` and the like."""

    name: str  # of its class ("GraphModule"), or the attribute by which the outer graph calls it
    nodes: tuple[Node, ...] = ()  # placeholders first
    subgraphs: tuple[Graph, ...] = ()
    inputs: tuple[Input, ...] = ()  # the parameters of its ``forward``, without ``self``
    results: tuple[str, ...] = ()  # names of the nodes that it returns in a tuple or list; "" for what is no node
    unread: tuple[Node, ...] = ()  # comments and statements that make no node, as nodes with a value and without a name
    is_module: bool = False  # it was printed as the class of a module, and nothing else was

    def walk(self, prefix: str = "") -> list[tuple[str, Graph]]:
        """Return this graph and all within it, each with the prefix of its nodes' names in records: ``"body."``."""
        found = [(prefix, self)]
        for inner in self.subgraphs:
            found += inner.walk(f"{prefix}{inner.name}.")
        return found

    def named_nodes(self) -> list[tuple[str, Node]]:
        """Return ``(name in records, node)`` of all nodes; those of inner graphs after the others."""
        return [(prefix + node.name, node) for prefix, graph in self.walk() for node in graph.nodes]

    def node(self, name: str) -> Node | None:
        """Return a node by its name."""
        return next((node for node in self.nodes if node.name == name), None)


def users_of(nodes: Iterable[Node]) -> dict[str, list[str]]:
    """Return the nodes that take each node, in order; nothing of one that none takes."""
    users: dict[str, list[str]] = {}
    for node in nodes:
        for name in node.inputs:
            users.setdefault(name, []).append(node.name)
    return users


def is_gradient(name: str) -> bool:
    """Return whether a name is of a gradient that a backward graph is given."""
    return name.startswith("tangents_")


def argument_index(name: str) -> int | None:
    """Return the place among the captured graph's inputs of what AOTAutograd calls ``primals_3`` or ``arg2_1``."""
    match = _ARGUMENT.match(name)
    if match is None:
        return None
    return int(match["from_one"]) - 1 if match["from_one"] else int(match["from_zero"])


def with_names(value: str, names: Mapping[str, str]) -> str:
    """Return an expression or a statement of a node with other names of nodes."""
    return _NAME_OR_STRING.sub(lambda match: names.get(match[0], match[0]), value) if names else value
