"""The outline of a graph: its operations under the modules that they were called in, repeated layers folded.

That of a generated module has its kernel calls in order, each with the user's lines that it computes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ...model.folding import fold, layer_numbers, layer_pattern, layer_ranges, up_to_layer
from ...model.graph import VIEWS, Graph, Node, is_gradient, shown_name, users_of
from ...provenance.graph_provenance import Provenance, StageNodes
from ...records.model import Kernel, KernelCall
from ...values import Same, frozen, once
from ..markdown import count, some

_BORDER = 60  #: Columns for the types of a module's inputs, and of its results.
_ROW = 110  #: Columns for the operations of a line.
_LONGEST = 40  #: The longest row of operations that is folded.


@dataclass
class _Block:
    """A call of a module, with what was done in it."""

    path: str
    cls: str
    outer: _Block | None = None
    items: list[_Block | Node] = field(default_factory=list)
    inside: list[Node] = field(default_factory=list)  # all that call something, those of inner calls included


@frozen
class Line:
    """A line of an outline."""

    depth: int
    text: str
    place: int = 0  # where its module begins in the graph's file; 0: no module
    first: int = 0  # where its first operation is


def outline(
    provenance: Provenance, stage: StageNodes, title: str, shown_line: Callable[[int], int] = int,
    failed: Sequence[str] = (),
) -> str:
    """Return the outline of a stage; ``shown_line``: of torch's line the file's; ``failed``: sentences on an error."""
    inputs, calls, results = counts(stage.graph)
    head = [f"# {title}, by module", *(f"# {sentence}" for sentence in failed),
            f"# {count(calls, 'operation')} on {count(inputs, 'input')}, {count(results, 'result')}"]
    if stage is not provenance.captured:
        head.append("# The print of this graph names user lines only: modules are inferred from them and from the "
                    "order.")
    head.append("# Under each module: the user's line, its operations in order, what the last of them gives. "
                "(n) counts operations.")
    located = [node.location is not None for node in stage.graph.nodes if node.is_call]
    if True in located and False in located[located.index(True) :]:
        head.append("# An operation of which torch names no line is written to the line before it where that goes on "
                    "after it.")
    head.append("# On the right: the line of the graph's file at which a module begins (of layers that are alike, the "
                "first).")
    lines = outline_lines(provenance, stage, shown_line)
    width = max((2 * line.depth + len(line.text) for line in lines if line.place), default=0)
    body = []
    for line in lines:
        text = "  " * line.depth + line.text
        body.append(f"{text:<{min(width, 100)}}  line {line.place}" if line.place else text)
    return "\n".join([*head, "", *body]).rstrip() + "\n"


def outline_lines(provenance: Provenance, stage: StageNodes, shown_line: Callable[[int], int] = int) -> list[Line]:
    """Return the outline of one stage as lines; arguments as of :func:`outline`."""
    lines = once(("outline", Same(stage)), lambda: [
        line for prefix, inner in stage.graph.walk() for line in (
            *([Line(0, ""), Line(0, f"graph within the graph: {prefix[:-1]}")] if prefix else []),
            *_graph(provenance, stage, inner, prefix))])
    return [replace(line, place=shown_line(line.place) if line.place else 0, first=shown_line(line.first))
            if line.first else line for line in lines]


def counts(graph: Graph) -> tuple[int, int, int]:
    """Return the numbers of inputs, operations and results."""
    kinds = [node.op.partition("_")[0] for node in graph.nodes]
    results = len(graph.nodes[kinds.index("output")].inputs) if "output" in kinds else 0
    return kinds.count("placeholder"), kinds.count("call"), results


def _graph(provenance: Provenance, stage: StageNodes, graph: Graph, prefix: str) -> Iterator[Line]:
    root = _Block("", "")
    calls: dict[int, _Block] = {-1: root}
    seen: Counter[str] = Counter()

    def block(index: int) -> _Block:
        if index not in calls:
            call = provenance.modules[index]
            outer = block(call.outer if call.outer < index else -1)
            seen[call.path] += 1
            cls = call.cls if seen[call.path] == 1 else f"{call.cls} (call {seen[call.path]})"
            calls[index] = _Block(call.path or "the module", cls, outer)
            outer.items.append(calls[index])
        return calls[index]

    for node in graph.nodes:
        if node.is_call:
            origin = stage.origins.get(prefix + node.name)
            place = provenance.user_line(stage, prefix + node.name, node)
            called_in = block(origin.module if origin is not None else -1)
            called_in.items.append(node if place is node.location else node._replace(location=place))
            around: _Block | None = called_in
            while around is not None:
                around.inside.append(node)
                around = around.outer
    names = {node.name: node for node in graph.nodes if node.op != "placeholder" or provenance.is_argument(node.name)}
    yield from _items(root.items, 0, names, users_of(graph.nodes))


def _items(
    items: Sequence[_Block | Node], depth: int, names: dict[str, Node], users: dict[str, list[str]]
) -> Iterator[Line]:
    written: list[tuple[_Block | None, list[Line]]] = []
    at = 0
    while at < len(items):
        item = items[at]
        if isinstance(item, _Block):
            at += 1
            written.append((item, list(_block(item, depth, names, users))))
        else:
            place = _place(item)
            end = _end_of_line(items, at)
            chunk = [node for node in items[at:end] if isinstance(node, Node)]
            at = end
            text = f"{place or 'no user line'}  {operations(chunk)}"
            written.append((None, [Line(depth, text, 0, chunk[0].line)]))
    for (first, lines), *alike in fold(written, lambda each: _like(*each)).values():
        yield from lines
        if first is not None and alike:
            paths = [block.path for block, _ in alike if block is not None]
            begin = alike[0][1][0].place
            yield Line(depth, f"{layer_ranges(paths)}: {first.cls}, like {first.path}", begin, begin)


def _end_of_line(items: Sequence[_Block | Node], at: int) -> int:
    """Return the end of the operations of one line; those without a line belong to the line around them."""
    first = items[at]
    assert isinstance(first, Node)
    place, end = _place(first), at + 1
    for number in range(at + 1, len(items)):
        node = items[number]
        if not isinstance(node, Node):
            break
        if node.location is first.location or _place(node) == place:
            end = number + 1
        elif node.location is not None:
            break
    return end


def _like(block: _Block | None, lines: Sequence[Line]) -> Hashable:
    """Return the key that blocks share which differ only in the number of their layer; others have one of their own."""
    if block is None or not layer_numbers(block.path):
        return id(lines)
    pattern = layer_pattern(block.path)
    return pattern, tuple((line.depth, line.text.replace(block.path, pattern, 1)) for line in lines)


def _block(block: _Block, depth: int, names: dict[str, Node], users: dict[str, list[str]]) -> Iterator[Line]:
    inside = {node.name for node in block.inside}
    taken = [names[name] for node in block.inside for name in node.inputs if name not in inside and name in names]
    given = [node for node in block.inside if not inside.issuperset(users.get(node.name, ()))]
    first = min((node.line for node in block.inside), default=1)
    takes = f"{_types(taken)} " if taken else ""
    yield Line(depth, f"{block.path}: {block.cls} ({len(block.inside)})  {takes}-> {_types(given)}", first, first)
    yield from _items(block.items, depth + 1, names, users)


def _types(nodes: Sequence[Node]) -> str:
    """Return the types of values, each once; of many the first, and how many more there are."""
    # (Values of one type share it.)
    known = {id(node.type): node.type for node in nodes if node.type is not None}
    types = list(dict.fromkeys(kind.short for kind in known.values()))
    text, shown = ", ".join(types), len(types)
    while len(text) > _BORDER and shown > 1:
        shown -= 1
        text = f"{', '.join(types[:shown])}, ... ({len(types) - shown} more)"
    return text or "..."


def _place(node: Node) -> str:
    place = node.location
    return "" if place is None else f"{os.path.basename(place.filename)}:{place.line}"


def operations(nodes: Sequence[Node]) -> str:
    """Return ``"view, (mul, add) x2 -> f32[2, 3]"``: the operations in order and the type of the last."""
    names = [shown_name(node.target) if not node.runs else f"{shown_name(node.target)}({shown_name(node.runs)})"
             for node in nodes]
    shown = _joined(_folded(names))
    last = nodes[-1].type
    return f"{shown} -> {last.short}" if last is not None else shown


def _folded(names: Sequence[str]) -> list[tuple[str, int]]:
    """Return words for operations, repeated rows once, each with the number of operations that it means."""
    result: list[tuple[str, int]] = []
    for at, length, times in repeated_rows(names, _LONGEST):
        if length > 1:
            row = ", ".join(word for word, _ in _folded(names[at : at + length]))
            result.append((f"({row}) x{times}", length * times))
        else:
            result.append((f"{names[at]} x{times}" if times > 1 else names[at], times))
    return result


def repeated_rows(keys: Sequence[Hashable], longest: int) -> Iterator[tuple[int, int, int]]:
    """Yield ``(begin, length, times)`` of rows that repeat, and ``(begin, 1, 1)`` of other entries.

    Of the rows that begin at an entry, the one that covers most entries is taken; ``longest`` is their maximal length.
    """
    numbers: dict[Hashable, int] = {}
    likes = [numbers.setdefault(key, len(numbers)) for key in keys]
    at = 0
    while at < len(likes):
        best = (1, 1)
        for length in range(1, min(longest, (len(likes) - at) // 2) + 1):
            row, times = likes[at : at + length], 1
            while likes[at + times * length : at + (times + 1) * length] == row:
                times += 1
            if times > 1 and length * (times - 1) > best[0] * (best[1] - 1):
                best = length, times
        yield at, *best
        at += best[0] * best[1]


def _joined(words: Sequence[tuple[str, int]]) -> str:
    """Return words in a row; of a long row the first, and how many operations there are."""
    text = ", ".join(word for word, _ in words)
    if len(text) <= _ROW:
        return text
    shown = 1
    while shown < len(words) and len(", ".join(word for word, _ in words[: shown + 1])) <= _ROW - 20:
        shown += 1
    if shown == len(words):
        return text
    return f"{', '.join(word for word, _ in words[:shown])}, ... ({sum(count for _, count in words)} operations)"


# --- Outline of a generated module -------------------------------------------------------------------
#: The kind of a library's call.
_LIBRARY = "extern"
_LONGEST_ROW = 400  #: The longest row of calls that is looked for when repeated ones are folded.


@frozen
class _Call:
    """A call: ``(user's line, module, operations)``, and whether it only copies what library calls take or give."""

    call: KernelCall
    lines: tuple[tuple[str, str, str], ...]
    copies: bool = False

    @property
    def like(self) -> tuple[str, tuple[tuple[str, str, str], ...]]:
        """The parts that repeated calls have in common: all but the numbers of layers."""
        return self.call.name, tuple(
            (where, layer_pattern(module, every=True), done) for where, module, done in self.lines)


def kernel_outline(provenance: Provenance, kernel: Kernel, title: str, failed: Sequence[str] = ()) -> str:
    """Return the outline of a module, one of ``provenance.kernels``; ``failed``: sentences on an error."""
    kinds = Counter(call.kind for call in kernel.calls)
    made_of = provenance.kernel_stage(kernel)
    nodes = [node for node in made_of.graph.nodes if node.is_call] if made_of is not None else []
    counted = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or (
        "none: the graph only reshapes what it takes, or takes parts of it"
        if nodes and all(node.is_view for node in nodes) else "none that could be read")
    head = [f"# {title}, call by call", *(f"# {sentence}" for sentence in failed), f"# calls of kernels: {counted}"]
    if kernel.stage:
        head.append(f"# made of the graph {kernel.stage}")
    head += [
        f"# Left: the line of {kernel.file or 'the generated module'} that calls it. (line n): where the kernel is "
        "defined there; extern: a library's.",
        "# Below each call: the user's line, the module that it ran in, what of it is done there, what that gives.",
        "# (Lines that only reshape are left out.)"]
    if any(call.inferred for call in kernel.calls):
        which = "C++ kernels" if "C++" in kinds else "calls of libraries" if _LIBRARY in kinds else "later calls"
        head += [f"# Torch does not say what {which} compute: it is inferred from the graph and from the values that "
                 "they read and write.", '# Where torch says it, the call is marked "said by torch".']
    of_libraries = {name for call in kernel.calls if call.kind == _LIBRARY for name in call.nodes}
    calls = [_Call(call, tuple(_lines(provenance, kernel, call)),
                   call.kind != _LIBRARY and bool(call.nodes) and of_libraries.issuperset(call.nodes))
             for call in kernel.calls]
    tuned = {each.name: each for each in provenance.graph.triton}
    tunings = []
    for each in (tuned[name] for name in dict.fromkeys(call.name for call in kernel.calls) if name in tuned):
        configurations = count(each.configurations, "configuration")
        tuning = {"hit": "the fastest configuration from the cache",
                  "miss": f"{configurations}, measured at the first call"}.get(each.tuning, configurations)
        chosen = f" ({', '.join(each.chosen)})" if each.chosen else ""
        tunings.append(f"    {each.name}: compiled in {each.seconds:.2f} s, {tuning}{chosen}")
    below = ["", "Triton kernels:", *tunings] if tunings else []
    return "\n".join([*head, "", *_folded_calls(calls), *below]).rstrip() + "\n"


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


def _folded_calls(calls: Sequence[_Call]) -> Iterator[str]:
    """Yield the lines of all calls, repeated rows once."""
    for at, length, times in repeated_rows([call.like for call in calls], _LONGEST_ROW):
        for each in calls[at : at + length]:
            call = each.call
            where = _LIBRARY if call.kind == _LIBRARY else f"{call.kind}, line {call.line}"
            source = "; copies what these take or give, and computes nothing" if each.copies else \
                "" if call.inferred else ", said by torch"
            yield f"{call.call_line:>6}  {call.name}  ({where}{source})"
            for where, module, done in each.lines:
                yield f"          {where}{f' in {module}' if module else ''}  {done}"
        if times > 1:
            first, last = calls[at + length].call.call_line, calls[at + length * times - 1].call.call_line
            what = "the call above" if length == 1 else f"the {length} calls above"
            # The modules at one place of all rows; of numbers in their paths the outermost that differs is the layer's.
            columns = zip(*([module for each in calls[begin : begin + length] for _, module, _ in each.lines]
                            for begin in range(at, at + length * times, length)))
            modules = next((column for column in columns if len({layer_numbers(path) for path in column}) > 1), None)
            layers = ""
            if modules is not None:
                outermost = next(index for index, numbers in enumerate(zip(*map(layer_numbers, modules)))
                                 if len(set(numbers)) > 1)
                layers = f", for {layer_ranges([up_to_layer(module, outermost) for module in modules[1:]])}"
            yield f"{first:>6}  ... {what}, {count(times - 1, 'more time')}{layers}, to line {last}"


# --- Values saved for the backward pass --------------------------------------------------------------
# The parameters of a backward graph that are no gradients are values of the forward graph, or its inputs:
#
#     saved for the backward pass: 3 values, 8.1 KiB in all; and 4 inputs, 2.0 KiB in all
#       8.0 KiB  add   2 of f32[8, 128]  model.py:20 in layers.0-1.norm: add_1, add_4
#         128 B  amax  f32[8, 4]         model.py:22: amax
#: Rows that are shown, the largest first.
_SAVED = 20
_NAMED = 3  #: Names that are shown of a row.


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
    for key in ordered[:_SAVED]:
        operation, kind, where, _ = key
        modules = _modules([path for _, path in alike[key]])
        place = f"{where} in {modules}" if where and modules else where or modules
        names = some([node.name for node, _ in alike[key]], _NAMED)
        rows.append((_in_words(sizes[key]), operation, f"{len(alike[key])} of {kind}" if len(alike[key]) > 1 else kind,
                     f"{place}: {names}" if place else names))
    width, wide = (max((len(row[at]) for row in rows), default=0) for at in (1, 2))
    lines += [f"  {size:>9}  {operation:<{width}}  {types:<{wide}}  {where}" for size, operation, types, where in rows]
    if len(ordered) > _SAVED:
        lines.append(f"  ... and {sum(len(alike[key]) for key in ordered[_SAVED:])} more")
    return lines


def _bytes(node: Node) -> int | None:
    return node.type.bytes if node.type is not None else None


def _modules(paths: Sequence[str]) -> str:
    """Return the modules of values that are alike, ``layers.0-3.norm``: a backward graph is given them in any order."""
    return layer_ranges(sorted(dict.fromkeys(paths), key=layer_numbers)) if layer_numbers(paths[0]) else paths[0]


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
