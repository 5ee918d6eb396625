"""The arguments that a graph writes to.

A graph that was captured has the program's own operations in place::

    steps += 1                                # writes to steps
    k.index_copy_(1, pos, x)                  # writes to k
    x[0].mul_(2)                              # writes to x: x[0] is a view of it
    batch_norm(y, mean, var, w, b, True)      # writes to mean and var, when training
    x.to(torch.float32).mul_(2)               # writes to x where torch prints that type for it already

Operators that are not torch's own are not known to write.
"""

from __future__ import annotations

import ast

from ...model.graph import CONVERSIONS, PROGRAM_VIEWS, Graph, Node, is_in_place, last_name
from ...torch_text.parsed import parsed_expression

#: Functions that update running statistics: ``name: (places of these, place and name of the switch)``.
_STATISTICS = {"batch_norm": ((1, 2), 5, "training"), "instance_norm": ((1, 2), 5, "use_input_stats")}
_NOTHING: frozenset[str] = frozenset()


def written_arguments(graph: Graph) -> list[str]:
    """Return the parameters and attributes that a graph writes to.

    Parameters come first, each by its name in the signature; an attribute by the node that reads it.
    """
    writes = _Writes(graph)
    for node in graph.nodes:
        if node.statement:
            writes.written |= writes.named(node.inputs[0]) if node.inputs else _NOTHING
        elif node.is_call and (is_in_place(node.target) or last_name(node.target) in _STATISTICS
                               or "inplace" in node.value or "out=" in node.value or "out =" in node.value):
            writes.seen_through(parsed_expression(node.value))
    names = [*(given.name for given in graph.inputs), *map(str, writes.attributes)]
    return [name for name in names if name in writes.written]


class _Writes:
    """The writes of a graph. Only the values that matter are parsed: a large graph has tens of thousands."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = {node.name: node for node in graph.nodes}
        # nodes that read a tensor of the graph's module
        self.attributes = [node.name for node in graph.nodes if node.op == "get_attr" and node.type is not None
                           and node.type.shape is not None and "." not in node.target]
        self.written: set[str] = set()  # parameters and attributes that were written to
        self._views = {name: frozenset({name}) for name in self.attributes} | {
            node.name: frozenset({node.target}) for node in graph.nodes if node.op == "placeholder"}

    def named(self, name: str) -> frozenset[str]:
        """Return the parameters that a value is a view of."""
        if name not in self._views:
            self._views[name] = _NOTHING
            node = self.nodes.get(name)
            if node is not None:
                self._views[name] = self.seen_through(parsed_expression(node.value), _type(node))
        return self._views[name]

    def seen_through(self, value: ast.expr | None, result: str = "") -> frozenset[str]:
        """Return the parameters that an expression is a view of; ``result`` is what torch prints of its type."""
        match value:
            case ast.Name(name):
                return self.named(name)
            case ast.Subscript(base):
                return self.seen_through(base)
            case ast.Attribute(base, name) if name in PROGRAM_VIEWS:
                return self.seen_through(base)
            case ast.Call():
                return self._called(value, result)
            case ast.List(items) | ast.Tuple(items):
                return frozenset().union(*map(self.seen_through, items))
        return _NOTHING

    def _called(self, call: ast.Call, result: str) -> frozenset[str]:
        target = ast.unparse(call.func)
        operation, of_torch = last_name(target), target.startswith("torch.")
        arguments = list(call.args)
        if isinstance(call.func, ast.Attribute) and not of_torch:
            arguments.insert(0, call.func.value)
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        if operation in _STATISTICS:
            places, switch, word = _STATISTICS[operation]
            if _is_true(keywords.get(word) or (arguments[switch] if len(arguments) > switch else None)):
                self.written |= {name for place in places for name in self.seen_through(arguments[place])}
        written = keywords.get("out")
        if written is None and arguments and (is_in_place(target) or _is_true(keywords.get("inplace"))):
            written = arguments[0]
        if written is not None:
            views = self.seen_through(written)
            self.written |= views
            return views
        if not arguments:
            return _NOTHING
        if operation in CONVERSIONS and not of_torch and not _is_true(keywords.get("copy")):
            # (A type with strides has the layout and the device too: such a conversion gives the tensor itself.)
            node = self.nodes.get(arguments[0].id) if isinstance(arguments[0], ast.Name) else None
            is_same = node is not None and "][" in result and _type(node) == result
            return self.seen_through(arguments[0]) if is_same else _NOTHING
        return self.seen_through(arguments[0]) if operation in PROGRAM_VIEWS else _NOTHING


def _type(node: Node) -> str:
    return node.type.text if node.type is not None else ""


def _is_true(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is True
