"""The outline of a generated module: its kernel calls in order, each with the user's lines that it computes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...model.folding import layer_numbers, layer_pattern, layer_ranges, up_to_layer
from ...model.graph import Node
from ...provenance.graph_provenance import Provenance
from ...records.model import Kernel, KernelCall
from ..markdown import count
from .outline import operations, repeated_rows

#: The kind of a library's call.
_LIBRARY = "extern"
#: The longest row of calls that is looked for when repeated ones are folded.
_LONGEST = 400


@dataclass(frozen=True)
class _Call:
    """A call.

    Attributes:
        lines: ``(user's line, module, operations)``.
        copies: it only copies arguments or results of library calls, mostly into another layout.
    """

    call: KernelCall
    lines: tuple[tuple[str, str, str], ...]
    copies: bool = False

    @property
    def like(self) -> tuple[str, tuple[tuple[str, str, str], ...]]:
        """The parts that repeated calls have in common: all but the numbers of layers."""
        return self.call.name, tuple(
            (where, layer_pattern(module, every=True), done) for where, module, done in self.lines)


def kernel_outline(provenance: Provenance, kernel: Kernel, title: str, failed: Sequence[str] = ()) -> str:
    """Return the outline of one generated module.

    Args:
        provenance: its graph.
        kernel: one of ``provenance.kernels``.
        title: of the outline.
        failed: sentences on the error with which its compilation failed.
    """
    kinds = Counter(call.kind for call in kernel.calls)
    counted = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or _why_none(provenance, kernel)
    head = [f"# {title}, call by call", *(f"# {sentence}" for sentence in failed), f"# calls of kernels: {counted}"]
    if kernel.stage:
        head.append(f"# made of the graph {kernel.stage}")
    head += [
        f"# Left: the line of {kernel.file or 'the generated module'} that calls it. (line n): where the kernel is "
        "defined there; extern: a library's.",
        "# Below each call: the user's line, the module that it ran in, what of it is done there, what that gives.",
        "# (Lines that only reshape are left out.)"]
    if any(call.inferred for call in kernel.calls):
        head.append("# Torch does not say what C++ kernels compute: it is inferred from the graph and from what flows. "
                    "Where torch says it,")
        head.append('# the call is marked "said by torch".')
    of_libraries = {name for call in kernel.calls if call.kind == _LIBRARY for name in call.nodes}
    calls = [_Call(call, tuple(_lines(provenance, kernel, call)),
                   call.kind != _LIBRARY and bool(call.nodes) and of_libraries.issuperset(call.nodes))
             for call in kernel.calls]
    return "\n".join([*head, "", *_folded(calls)]).rstrip() + "\n"


def _why_none(provenance: Provenance, kernel: Kernel) -> str:
    stage = provenance.kernel_stage(kernel)
    calls = [node for node in stage.graph.nodes if node.is_call] if stage is not None else []
    if calls and all(node.is_view for node in calls):
        return "none: the graph only reshapes what it takes, or takes parts of it"
    return "none that could be read"


def _lines(provenance: Provenance, kernel: Kernel, call: KernelCall) -> Iterator[tuple[str, str, str]]:
    groups: dict[tuple[str, str], list[Node]] = {}
    computed: set[tuple[str, str]] = set()
    for stage, name in provenance.nodes_of(kernel, call):
        origin = stage.origins[name]
        place = origin.location
        node = stage.graph.node(name)
        if node is not None:
            where = f"{os.path.basename(place.filename)}:{place.line}" if place is not None else "no user line"
            key = where, provenance.modules[origin.module].path if origin.module >= 0 else ""
            groups.setdefault(key, []).append(node)
            if not node.is_view:
                computed.add(key)
    for key, nodes in groups.items():
        if key in computed or not computed:
            yield *key, operations(nodes)


def _folded(calls: Sequence[_Call]) -> Iterator[str]:
    """Yield the lines of all calls, repeated rows once."""
    for at, length, times in repeated_rows([call.like for call in calls], _LONGEST):
        for call in calls[at : at + length]:
            yield from _shown(call)
        if times > 1:
            first, last = calls[at + length].call.call_line, calls[at + length * times - 1].call.call_line
            what = "the call above" if length == 1 else f"the {length} calls above"
            layers = _layers([[module for call in calls[at + number * length : at + (number + 1) * length]
                               for _, module, _ in call.lines] for number in range(times)])
            yield f"{first:>6}  ... {what}, {count(times - 1, 'more time')}{layers}, to line {last}"


def _layers(rows: Sequence[Sequence[str]]) -> str:
    """Return ``", for layers.1-31"`` of modules in rows that repeat; ``""`` where all have the same module."""
    for modules in zip(*rows):
        paths = {layer_numbers(module) for module in modules}
        if len(paths) > 1:
            # The outermost number that differs is the layer's.
            at = next(index for index, each in enumerate(zip(*paths)) if len(set(each)) > 1)
            layers = [up_to_layer(module, at) for module in modules[1:]]
            return f", for {layer_ranges(layers)}"
    return ""


def _shown(call: _Call) -> Iterator[str]:
    where = _LIBRARY if call.call.kind == _LIBRARY else f"{call.call.kind}, line {call.call.line}"
    source = "; copies values for or of these, and computes none" if call.copies else \
        "" if call.call.inferred else ", said by torch"
    yield f"{call.call.call_line:>6}  {call.call.name}  ({where}{source})"
    for where, module, done in call.lines:
        yield f"          {where}{f' in {module}' if module else ''}  {done}"
