"""A graph as a function that is called as the transformed code calls it: without the module that torch makes of it.

Torch prints a graph as a module, and graphs within it as modules in that one, behind what calls them::

    class GraphModule(torch.nn.Module):
        def forward(
            self,
            x: "f32[3]",
        ):
            # model.py:12 in forward: h = checkpoint(self.block, x)
            wrap_body_0 = self.wrap_body_0
            tag_activation_checkpoint = torch.ops.higher_order.tag_activation_checkpoint(wrap_body_0, x)
            return (tag_activation_checkpoint,)

        # the checkpointed function, which the backward pass runs again (model.py:12)
        class wrap_body_0(torch.nn.Module):
            def forward(
                ...

As a function it has no ``self``; a graph within it is a function above the statements that call it::

    def __compiled_fn_1(
        x: "f32[3]",
    ):
        # the checkpointed function, which the backward pass runs again (model.py:12)
        def wrap_body_0(
            ...

        # model.py:12 in forward: h = checkpoint(self.block, x)
        tag_activation_checkpoint = torch.ops.higher_order.tag_activation_checkpoint(wrap_body_0, x)
        return (tag_activation_checkpoint,)

Anything else that a graph reads of its module (a module that an old torch calls, a constant) is read of the function:
``__compiled_fn_1.linear(x)``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...records.naming import legal_identifier

_CLASS = re.compile(r"(?P<indent> *)class (?P<name>\w+)\b.*:$")
_SIGNATURE = re.compile(r" *def forward\(")
_INNER = re.compile(r" *(?P<name>\w+) = self\.(?P<member>\w+)$")
_SELF = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|#.*|(?P<self>(?<![\w.])self\b(?:\.(?P<member>[A-Za-z_]\w*))?)')


@dataclass
class _Graph:
    """A class of the view.

    Attributes:
        name: of the class.
        indent: of the class.
        role: comments above it.
        lines: what stands in it but for other classes.
        inner: the classes in it.
    """

    name: str
    indent: int
    role: Sequence[str] = ()
    lines: list[str] = field(default_factory=list)
    inner: list[_Graph] = field(default_factory=list)


def graph_as_function(name: str, text: str) -> str:
    """Return a graph as a function.

    Args:
        name: of the graph.
        text: its view.
    """
    graph = _parsed(text)
    function = _function(graph, legal_identifier(name))
    return "\n".join(function or [f"# {line}" for line in text.strip("\n").splitlines()])


def _parsed(text: str) -> _Graph:
    """Return the outermost class of a view."""
    graphs = [_Graph("", -1)]
    for line in text.splitlines():
        match = _CLASS.match(line)
        if match is None:
            graphs[-1].lines.append(line)
            continue
        above, indent = graphs[-1].lines, len(match["indent"])
        role: list[str] = []
        while above and above[-1].startswith("#", indent) and not above[-1][:indent].strip():
            role.insert(0, above.pop().strip())
        while graphs[-1].indent >= indent:
            graphs.pop()
        graph = _Graph(match["name"], indent, role)
        graphs[-1].inner.append(graph)
        graphs.append(graph)
    return graphs[0].inner[0] if graphs[0].inner else graphs[0]


def _function(graph: _Graph, name: str) -> list[str]:
    """Return the lines of a graph as a function; none if it has no ``forward``."""
    first = next((at for at, line in enumerate(graph.lines) if _SIGNATURE.match(line)), None)
    if first is None:
        return []
    indent = len(graph.lines[first]) - len(graph.lines[first].lstrip())
    lines = [line[indent:].rstrip() for line in graph.lines[first:]]
    while not lines[-1]:
        lines.pop()
    end = next((at for at, line in enumerate(lines) if line.startswith(")")), 0) if lines[0].endswith("(") else 0
    signature = [line for line in lines[: end + 1] if line != "    self,"]
    signature[0] = re.sub(r"^def forward\((self(, )?)?", f"def {name}(", signature[0])
    if signature == [f"def {name}(", "):"]:
        signature = [f"def {name}():"]
    return [*signature, *_body(lines[end + 1 :], {inner.name: inner for inner in graph.inner}, name)]


def _body(lines: Sequence[str], inner: Mapping[str, _Graph], name: str) -> list[str]:
    """Return the statements of a graph, each inner graph above the first paragraph that names it."""
    body: list[str] = []
    members: dict[str, str] = {}  # inner graphs that are defined -> the names of their functions

    def define(member: str, function: str) -> None:
        members[member] = function
        if body and body[-1]:
            body.append("")
        body.extend(f"    {line}" if line else "" for line in [
            *inner[member].role, *_function(inner[member], function), ""])

    named = {match["member"] for line in lines if " = self." in line and (match := _INNER.match(line))}
    for member in inner:
        if member not in named:
            define(member, member)
    paragraph: list[str] = []
    for line in lines:
        match = _INNER.match(line) if inner else None
        if match is not None and match["member"] in inner:
            if match["member"] not in members:
                define(match["member"], match["name"])
                continue
            if members[match["member"]] == match["name"]:
                continue
        if not line:
            body += [*paragraph, line]
            paragraph = []
        else:
            paragraph.append(
                _SELF.sub(lambda part: _without_self(part, members, name), line) if "self" in line else line)
    return [*body, *paragraph]


def _without_self(match: re.Match[str], members: Mapping[str, str], name: str) -> str:
    if not match["self"]:
        return match[0]
    member = match["member"]
    return members.get(member) or f"{name}.{member}" if member else name
