"""Operations as graphs and as generated modules call them."""

from __future__ import annotations

from ...model.graph import Node
from ...model.operations import VIEWS, last_name

#: Reductions and the like: they are computed once and stored.
STORED = frozenset(
    "sum mean amax amin max min prod var var_mean std std_mean argmax argmin any all cumsum cumprod logsumexp "
    "sort topk".split())
#: Operations that write into what another one has laid out: the memory of their first argument's copy.
SCATTERS = frozenset("index_put _unsafe_index_put index_add scatter scatter_add scatter_reduce".split())
#: Operations that Inductor calls by another name (torch/_inductor/lowering.py, kernel/mm.py).
CALLED = {
    "scatter_reduce": "scatter_add scatter scatter_reduce scatter_reduce_two", "randint": "inductor_seeds",
    "bias_addmm": "addmm", "mm": "mm addmm", "addmm": "addmm mm", "bmm": "bmm baddbmm", "baddbmm": "baddbmm bmm",
    "index_put": "index_put _unsafe_index_put index_put_", "convolution": "convolution _convolution",
    "linear_pointwise": "addmm mm linear", "convolution_pointwise": "convolution"}


def bare_name(operation: str) -> str:
    """Return the plain name of an operation.

    ``aten.copy_`` and ``copy`` are both ``copy``; ``_softmax`` keeps its underscore.
    """
    name = operation.rpartition(".")[2]
    return name.rstrip("_") or name


def is_view(node: Node) -> bool:
    """Return whether a node gives its input's memory in another shape."""
    return node.is_call and (bare_name(node.operation) in VIEWS or last_name(node.target) in VIEWS)
