"""The roles of the graphs within a graph: the checkpointed function, a branch of ``torch.cond``, ...

Torch names them by a counter (``wrap_body_0``) and calls them by a higher-order operator::

    # File: model.py:12 in forward, code: h = checkpoint(self.block, x)
    wrap_body_0 = self.wrap_body_0
    tag_activation_checkpoint = torch.ops.higher_order.tag_activation_checkpoint(wrap_body_0, l_x_)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_CALL = re.compile(r" = torch\.ops\.higher_order\.(?P<operator>\w+)\((?P<arguments>.*)\)")
_GRAPH = re.compile(r" *(?P<name>\w+) = self\.(?P=name)(?:$|;)")
_WORD = re.compile(r"\w+")
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


def roles(lines: Sequence[str]) -> Iterator[tuple[str, str, int]]:
    """Return ``(name of an inner graph, what it is, number of the line that calls it)`` for each inner graph.

    Args:
        lines: torch's print of a graph.
    """
    names: set[str] = set()
    for number, line in enumerate(lines, 1):
        graph = _GRAPH.match(line)
        if graph is not None:
            names.add(graph["name"])
            continue
        call = _CALL.search(line) if names and "torch.ops.higher_order." in line else None
        if call is not None:
            # (The graph of a mask is an item of the tuple that a block mask is handed on as.)
            taken = [item for item in dict.fromkeys(_WORD.findall(call["arguments"])) if item in names]
            known = _ROLES.get(call["operator"], (f"a function that {call['operator']} calls",))
            for at, name in enumerate(taken):
                yield name, known[min(at, len(known) - 1)], number
