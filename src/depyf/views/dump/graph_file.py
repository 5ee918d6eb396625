"""The file of a graph: its head, the imports that its names need, and the view of it; the values that it saves.

The parameters of a backward graph that are no gradients are values of the forward graph, or its inputs::

    saved for the backward pass: 3 values, 8.1 KiB in all; and 4 inputs, 2.0 KiB in all
      8.0 KiB  add   2 of f32[8, 128]  model.py:20 in layers.0-1.norm: add_1, add_4
        128 B  amax  f32[8, 4]         model.py:22: amax
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from ...model.folding import layer_numbers, layer_pattern, layer_ranges
from ...model.graph import VIEWS, Node, is_gradient, shown_name
from ...provenance.graph_provenance import Provenance, StageNodes
from ...records.model import GraphInput, GraphStage
from ...records.naming import title
from ...torch_text import wrapping
from ...torch_text.global_names import operator_imports
from ...torch_text.size_names import symbols_in
from ...values import frozen, once
from ..markdown import count, some
from .graph_view import GraphView, graph_view, plain_view

_IMPORTS = "import torch\nfrom torch import device, inf, nan\n\n"


@frozen
class GraphFile:
    """A file of a graph.

    Attributes:
        view: of its text.
        first_line: at which the view begins.
    """

    title: str
    view: GraphView
    text: str
    first_line: int

    def line(self, line: int) -> int:
        """Return the line of the file for a line of torch's text; 0 where there is none."""
        number = self.view.line(line)
        return number and number + self.first_line - 1


def graph_file(
    graph: str, stage: GraphStage, inputs: tuple[GraphInput, ...] = (), failed: Sequence[str] = (),
) -> GraphFile:
    """Return the file of one stage of a graph.

    Args:
        inputs: of the captured graph.
        failed: sentences on the error with which its compilation failed (:func:`.formatting.never_called`).
    """
    ids = f", compilation {stage.compile_id}" if stage.compile_id else ""
    name = f"{graph}: {title(stage)}{ids}"
    view = stage_view(stage, inputs)
    # (Of open sizes those that explain names of others; the parameters have all. Their values are decided later.)
    used = {symbol for _, size in view.sizes for symbol in symbols_in(size)}
    symbols = [f"{symbol}: {words}" for symbol, words in view.symbols if symbol in used]
    tables = [*(line for text in symbols for line in wrapping.comment(text, 0)), *sizes_table(view), *files_table(view),
              operator_imports(view.text) + _IMPORTS] if stage.is_python else ["", ""]
    head = "\n".join([
        f"# {name}", *(line for text in failed for line in wrapping.comment(text, 0, 2)), *tables])
    return GraphFile(name, view, head + view.text, head.count("\n") + 1)


def stage_view(stage: GraphStage, inputs: tuple[GraphInput, ...] = ()) -> GraphView:
    """Return the view of a stage; arguments as of :func:`graph_file`."""
    if not stage.is_python:
        return plain_view(stage.text)
    captured = stage.stage == "Captured_Graph"
    return once(("view", stage.text, inputs, captured, stage.callers),
                lambda: graph_view(stage.text, inputs, captured, stage.callers))


def files_table(view: GraphView) -> list[str]:
    """Return the paths of the files that a view names, as comments."""
    if not view.files:
        return []
    lines = ["# files named below:"]
    for short, path in view.files:
        text = path if path == short or path.endswith((f"/{short}", f"\\{short}")) else f"{short}: {path}"
        lines += wrapping.comment(f"  {text}", 0)
    return lines


def sizes_table(view: GraphView) -> list[str]:
    """Return the meanings of the names of sizes, as comments."""
    return [line for name, size in view.sizes for line in wrapping.comment(f"{name}: {size}", 0)]


# --- Values saved for the backward pass --------------------------------------------------------------
#: Rows that are shown, the largest first.
_ROWS = 20
#: Names that are shown of a row.
_NAMES = 3


def saved_for_backward(provenance: Provenance, stage: StageNodes) -> list[str]:
    """Return what a forward graph saves, as the lines of a paragraph; none for another graph, or for no values."""
    backward = provenance.stage("Backward_graph", stage.record.index)
    if stage.record.stage != "Forward_graph" or backward is None:
        return []
    nodes = {node.name: node for node in stage.graph.nodes}
    # (A state of the random generator has a name of its own in the backward graph.)
    saved = [nodes.get(node.name, node._replace(op="call_function", target=node.name)) for node in backward.graph.nodes
             if node.op == "placeholder" and not is_gradient(node.name)]
    if not saved:
        return []
    given, computed = ([node for node in saved if (node.op == "placeholder") == is_input] for is_input in (True, False))
    # The values of one operation, type, line and place in a module; the largest first, after those of unknown size.
    alike: dict[tuple[str, str, str, str], list[tuple[Node, str]]] = {}
    for node in computed:
        # (Of a part of a result, the operation is that of the whole.)
        whole = nodes.get(node.inputs[0], node) if node.operation == "getitem" and node.inputs else node
        origin = stage.origins.get(node.name)
        module = provenance.module_path(origin.module) if origin is not None else ()
        path = module[-1].path if module else ""
        line = provenance.user_line(stage, node.name, node)
        where = f"{os.path.basename(line.filename)}:{line.line}" if line is not None else ""
        kind = node.type.short if node.type is not None else ""
        alike.setdefault((shown_name(whole.target), kind, where, layer_pattern(path)), []).append((node, path))
    sizes = {key: None if (size := _bytes(members[0][0])) is None else size * len(members)
             for key, members in alike.items()}
    ordered = sorted(alike, key=lambda key: (sizes[key] is not None, -(sizes[key] or 0)))
    parts = [f"{count(len(group), what)}{_in_all(group)}"
             for what, group in (("value", computed), ("input", given)) if group]
    lines = [f"saved for the backward pass: {'; and '.join(parts)}"]
    if any(operation in VIEWS for operation, *_ in alike):
        lines.append("  (A view takes no memory of its own where what it is a view of is there anyway.)")
    rows = []
    for key in ordered[:_ROWS]:
        operation, kind, where, _ = key
        paths = list(dict.fromkeys(path for _, path in alike[key]))
        # (A backward graph is given them in any order.)
        modules = layer_ranges(sorted(paths, key=layer_numbers)) if layer_numbers(paths[0]) else paths[0]
        place = f"{where} in {modules}" if where and modules else where or modules
        names = some([node.name for node, _ in alike[key]], _NAMES)
        rows.append((_in_words(sizes[key]), operation, f"{len(alike[key])} of {kind}" if len(alike[key]) > 1 else kind,
                     f"{place}: {names}" if place else names))
    width, wide = (max((len(row[at]) for row in rows), default=0) for at in (1, 2))
    lines += [f"  {size:>9}  {operation:<{width}}  {types:<{wide}}  {where}" for size, operation, types, where in rows]
    if len(ordered) > _ROWS:
        lines.append(f"  ... and {sum(len(alike[key]) for key in ordered[_ROWS:])} more")
    return lines


def _bytes(node: Node) -> int | None:
    return node.type.bytes if node.type is not None else None


def _in_all(nodes: Sequence[Node]) -> str:
    sizes = list(map(_bytes, nodes))
    known = [size for size in sizes if size is not None]
    left = f" and {len(sizes) - len(known)} of open size" if len(known) < len(sizes) else ""
    return f", {_in_words(sum(known))} in all{left}" if known else ""


def _in_words(size: int | None) -> str:
    if size is None:
        return "open size"
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"
