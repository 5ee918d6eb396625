"""The roles of the graphs within a graph: the checkpointed function, a branch of ``torch.cond``, ...

Torch names them by a counter (``wrap_body_0``) and calls them by a higher-order operator::

    # File: model.py:12 in forward, code: h = checkpoint(self.block, x)
    wrap_body_0 = self.wrap_body_0
    tag_activation_checkpoint = torch.ops.higher_order.tag_activation_checkpoint(wrap_body_0, l_x_)
"""

from __future__ import annotations

from ...model.graph import Graph, Node
from ...model.operations import last_name

#: What the graphs are that an operator takes, in the order in which it takes them; the last goes for all further ones.
_ROLES: dict[str, tuple[str, ...]] = {
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


def roles(graph: Graph) -> dict[str, tuple[str, Node]]:
    """Return for each inner graph, by name, ``(what it is, the node that calls it)``."""
    inner = {each.name for each in graph.subgraphs}
    read = {node.name: node.target for node in graph.nodes if node.op == "get_attr" and node.target in inner}
    result: dict[str, tuple[str, Node]] = {}
    for node in graph.nodes if read else ():
        if node.target.startswith("torch.ops.higher_order."):
            operator = last_name(node.target)
            known = _ROLES.get(operator, (f"a function that {operator} calls",))
            # (The graph of a mask is an item of the tuple that a block mask is handed on as.)
            for at, name in enumerate(name for name in node.inputs if name in read):
                result.setdefault(read[name], (known[min(at, len(known) - 1)], node))
    return result
