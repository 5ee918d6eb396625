"""The captured node of each node of a later stage, found by lines and by the order in which nodes are computed.

1. Consecutive captured nodes of one user line are a *run*. A line that each layer executes has a run in each. A node
   belongs to a run of its line that its inputs allow: a forward node to the first one from the runs of its inputs on; a
   node that computes a gradient to the last one up to the runs of the gradients that it takes, not before those of the
   saved values. Parallel runs and parts of runs are distinguished by data flow (:mod:`.branches`), or not at all.
2. Within a run, the nodes (for gradients, in reverse) are aligned with the captured nodes in order, so that names of
   operations, shapes and parameters fit best.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..model.folding import fold
from ..model.graph import Graph, Node, argument_index, is_gradient, plain_name
from .branches import Pieces, PossiblePieces, united
from .decompositions import BACKWARD, FORWARD

_Line = tuple[str, int, str]


class CapturedRuns:
    """Captured nodes in the order in which they run, inner graphs where they are called, and runs of one line."""

    def __init__(self, captured: Graph, calls: Mapping[str, tuple[int, ...]]) -> None:
        self._calls = calls  # for the name of a node the calls of modules that it was made in, outermost first
        self.names: list[str] = []
        self.positions: dict[str, int] = {}
        self.nodes: list[Node] = []
        self.lines: dict[_Line, list[int]] = {}  # line -> runs, in order
        self.runs: list[list[int]] = []  # positions in ``nodes``
        self.run_of: list[int] = []
        self.types: dict[str, tuple[str, ...] | None] = {}
        self.placeholders = [node.name for node in captured.nodes if node.op == "placeholder"]
        self.users: dict[str, list[int]] = {}  # placeholder -> positions
        #: Placeholders that an inner graph reads, of which it is not known under which name.
        self._lost: set[str] = set()
        self._flatten(captured, "", {name: name for name in self.placeholders})
        self.operations = [plain_operation(node) for node in self.nodes]
        before: _Line | None = None
        for position, node in enumerate(self.nodes):
            line = line_of(node)
            if line is not None:
                if line != before:
                    self.lines.setdefault(line, []).append(len(self.runs))
                    self.runs.append([])
                    before = line
                self.runs[-1].append(position)
            self.run_of.append(len(self.runs) - 1)

    def _flatten(self, graph: Graph, prefix: str, outermost: Mapping[str, str]) -> None:
        """Add the nodes of a graph; ``prefix`` of their names; ``outermost``: captured placeholders, by its own."""
        inner = {sub.name: sub for sub in graph.subgraphs}
        readers = {node.name: node.target for node in graph.nodes if node.op == "get_attr" and node.target in inner}
        for node in graph.nodes:
            self.types[prefix + node.name] = node.type.shape if node.type is not None else None
            subgraph = inner.pop(node.target, None) if node.op == "get_attr" else None
            if subgraph is not None:
                passed = _passed(graph, node.name, subgraph, readers)
                self._flatten(subgraph, f"{prefix}{subgraph.name}.", {
                    name: outermost[value] for name, value in passed.items() if value in outermost})
            elif node.is_call:
                taken = [outermost[name] for name in node.inputs if name in outermost]
                graphs = [name for name in node.inputs if name in readers]
                if not graphs:
                    for name in taken:
                        self.users.setdefault(name, []).append(len(self.nodes))
                elif not all(_passed(graph, name, sub, readers) for name in graphs for sub in graph.subgraphs
                             if sub.name == readers[name]):
                    self._lost.update(taken)
                self.positions[prefix + node.name] = len(self.nodes)
                self.names.append(prefix + node.name)
                self.nodes.append(node)

    @functools.cached_property
    def pieces(self) -> Pieces:
        """The runs, and parts of runs that are parallel."""
        return Pieces(self.names, self.nodes, self.runs, self._calls)

    @functools.cached_property
    def reading(self) -> dict[str, int]:
        """The pieces that read each placeholder."""
        return {name: united(self.pieces.of[position] for position in positions)
                for name, positions in self.users.items() if name not in self._lost}

    @functools.cached_property
    def pieces_at(self) -> dict[_Line, int]:
        """The pieces of each line."""
        return {line: united(self.pieces.in_run[run] for run in runs) for line, runs in self.lines.items()}

    @functools.cached_property
    def input_shapes(self) -> list[frozenset[tuple[str, ...] | None]]:
        """The shapes of the inputs of captured nodes."""
        return [frozenset(self.types.get("".join(name.rpartition(".")[:2]) + each) for each in node.inputs)
                for name, node in zip(self.names, self.nodes)]

    def parameter(self, name: str) -> str:
        """Return the captured placeholder that AOTAutograd calls ``primals_3`` or ``arg2_1``; else ``""``."""
        index = argument_index(name)
        return self.placeholders[index] if index is not None and 0 <= index < len(self.placeholders) else ""


def _passed(graph: Graph, name: str, inner: Graph, readers: Mapping[str, str]) -> dict[str, str]:
    """Return what the call of an inner graph passes for its placeholders; nothing where that is not clear."""
    call = next((node for node in graph.nodes if node.is_call and name in node.inputs), None)
    values = [value for value in call.inputs if value not in readers] if call is not None else []
    names = [node.name for node in inner.nodes if node.op == "placeholder"]
    return dict(zip(names, values)) if len(names) == len(values) else {}


class Alignment(NamedTuple):
    """The alignment of a later stage."""

    captured: dict[str, str]  # the captured node of each node
    # for nodes that compute gradients of one of several parallel module calls, unknown which: the call that contains
    # all of these, -1 for none. They have no captured node.
    within: dict[str, int]
    takers: dict[str, int]  # for values that are no gradients, the pieces of the captured graph that may take them


UNKNOWN = Alignment({}, {}, {})  #: That of a graph of which nothing is known.


def align(runs: CapturedRuns, graph: Graph, forward: Alignment = UNKNOWN) -> Alignment:
    """Align a later stage with the captured one; a backward graph, with the alignment of the ``forward`` graph."""
    placed = _Placement(runs, forward, graph)
    shapes = {node.name: node.type.shape if node.type is not None else None for node in graph.nodes}
    result: dict[str, str] = {}
    for (place, backward, _), nodes in placed.groups.items():
        result |= _align_run(place, nodes, _Fit(runs, backward, shapes, placed.possible, forward.captured), result)
    within = {}
    for name, possible in placed.possible.items():
        if name in placed.gradients and name in result:
            # Only the order of nodes decided between these, in parallel module calls.
            undecided = runs.pieces.with_other_calls(runs.pieces.of[runs.positions[result[name]]], possible)
            if undecided:
                within[name] = runs.pieces.call_around(undecided)
                del result[name]
    for inner in graph.subgraphs:
        found = align(runs, inner)
        result |= {f"{inner.name}.{name}": captured for name, captured in found.captured.items()}
        within |= {f"{inner.name}.{name}": call for name, call in found.within.items()}
    return Alignment(result, within, placed.takers)


def _align_run(place: int, nodes: Sequence[Node], fit: _Fit, aligned: Mapping[str, str]) -> dict[str, str]:
    """Align nodes that belong to one run; of parallel parts, those of each in order."""
    run, pieces = fit.runs.runs[place], fit.runs.pieces
    parts = pieces.parts[place]
    if len(parts) < 2:
        return _align_group(run, nodes, fit, aligned)
    found: dict[str, str] = {}
    for mask, group in fold(nodes, lambda node: sum(
            part for part in parts if part & fit.possible.get(node.name, -1))).items():
        positions = [position for position in run if pieces.of[position] & mask]
        found |= _align_group(positions or run, group, fit, aligned)
    return found


class _Placement:
    """The run of captured nodes that each node of a later stage belongs to, found by its line and its inputs.

    Arguments as of :func:`align`.
    """

    def __init__(self, runs: CapturedRuns, forward: Alignment, graph: Graph) -> None:
        self.runs, self.saved = runs, forward.captured
        # nodes by their run, by whether they compute gradients, and, where they do not, by consecutive chunk
        self.groups: dict[tuple[int, bool, int], list[Node]] = {}
        self._places: dict[str, int] = {}
        self.gradients: set[str] = set()  # nodes that compute gradients, and placeholders that are gradients
        #: Made of nothing: where a pass made one of such values of several layers, it says nothing of the layer.
        self._constants: set[str] = set()
        self._last = 0
        self._before, self._chunk = -1, 0
        # possible, takers: of :class:`.branches.PossiblePieces`; nothing where no line has parallel pieces
        self.possible: dict[str, int] = {}
        self.takers: dict[str, int] = {}
        if not all(runs.pieces.are_in_a_row(self._pieces(node)) for node in graph.nodes if node.is_call):
            self._find_possible(graph, forward.takers)
        for node in graph.nodes:
            if node.is_call or node.op == "get_attr":
                self._add_call(node)
            elif node.op == "placeholder" and is_gradient(node.name):
                self.gradients.add(node.name)
                self._places[node.name] = len(runs.runs)
            elif node.op == "placeholder" and node.name in self.saved:
                self._places[node.name] = runs.run_of[runs.positions[self.saved[node.name]]]

    def _pieces(self, node: Node) -> int:
        """Return the pieces of a node's line."""
        line = line_of(node)
        return self.runs.pieces_at.get(line, 0) if line is not None else 0

    def _find_possible(self, graph: Graph, takers: Mapping[str, int]) -> None:
        runs = self.runs
        arguments = {node.name: runs.reading.get(runs.parameter(node.name), 0)
                     for node in graph.nodes if node.op == "placeholder"}
        gradients: dict[str, int] = {}
        if any(is_gradient(name) for name in arguments) and len(graph.results) == len(runs.placeholders):
            for name, argument in zip(graph.results, runs.placeholders):
                gradients[name] = gradients.get(name, 0) | runs.reading.get(argument, 0)
        saved = {node.name: takers[node.name] for node in graph.nodes
                 if node.op == "placeholder" and node.name in takers}
        found = PossiblePieces(runs.pieces, graph, self._pieces, saved, arguments, gradients)
        self.possible, self.takers = found.of_nodes(), found.takers

    def _add_call(self, node: Node) -> None:
        # (Inputs without a place are of no line of the captured graph.)
        taken = [self._places[name] for name in node.inputs if name in self._places and name in self.gradients]
        needed = [self._places[name] for name in node.inputs
                  if name in self._places and name not in self.gradients and name not in self._constants]
        if self._constants.issuperset(node.inputs):
            self._constants.add(node.name)
        line = line_of(node)
        candidates: Sequence[int] = self.runs.lines.get(line, []) if line is not None else []
        backward = not self.gradients.isdisjoint(node.inputs)
        if backward:
            self.gradients.add(node.name)
        if not candidates:
            if taken or needed:
                self._places[node.name] = min(taken) if taken else max(needed)
            return
        possible = self.possible.get(node.name, 0)
        if possible:
            allowed = self.runs.pieces.runs_of(possible)
            candidates = [run for run in candidates if run in allowed]
        recomputed = self.saved.get(node.name)  # (what is computed once more keeps its name)
        known = self.runs.run_of[self.runs.positions[recomputed]] if recomputed is not None else -1
        place = known if known in candidates else self._place(node, candidates, taken, needed)
        self._last = self._places[node.name] = place
        # Saved values are reshaped at the end of a forward graph: what is not consecutive is not in order.
        if place != self._before:
            self._before, self._chunk = place, self._chunk + 1
        self.groups.setdefault((place, backward, 0 if backward else self._chunk), []).append(node)

    def _place(self, node: Node, candidates: Sequence[int], taken: Sequence[int], needed: Sequence[int]) -> int:
        """Return the run of its line that a node fits: before the gradients that it takes, after all else."""
        if taken:
            return _last_between(candidates, max(needed, default=0), min(taken))
        if needed:
            return _first_from(candidates, max(needed))
        own = {self.runs.run_of[position] for name in node.inputs
               for position in self.runs.users.get(self.runs.parameter(name), ())}
        fitting = [place for place in candidates if place in own] or candidates
        if self.gradients:
            return min(fitting, key=lambda run: abs(run - self._last))
        return _first_from(fitting, self._last)


def _align_group(
    positions: Sequence[int], nodes: Sequence[Node], fit: _Fit, aligned: Mapping[str, str]
) -> dict[str, str]:
    """Align nodes of one run, or of parts of it; ``aligned`` are nodes of other runs."""
    runs, saved, backward, shapes = fit.runs, fit.saved, fit.backward, fit.shapes
    result: dict[str, str] = {}
    chosen = {name: runs.positions[known[name]] for known in (saved, aligned) for node in nodes for name in node.inputs
              if name in known and runs.positions[known[name]] in positions}
    asked = {runs.operations[position] for position in positions}
    # What a backward graph recomputes is where it is needed, in no order.
    in_order = _within(fit, positions, nodes) if backward or not saved else []
    for number, node in enumerate(nodes):
        givers = [chosen[name] for name in node.inputs if name in chosen]
        recomputed = runs.positions.get(saved.get(node.name, ""), -1)
        if recomputed in positions:
            chosen[node.name], result[node.name] = recomputed, runs.names[recomputed]
            continue
        if in_order:
            position = in_order[number]
        else:  # the one that fits best; of equals, the next one after what computed its inputs
            scores = dict(zip(positions, fit.of(node, positions)))
            after = max(givers, default=positions[0])
            position = max(positions, key=lambda each: (scores[each], each >= after, -abs(each - after)))
        # What fits nothing, or was moved after other work, goes with the value that it takes.
        giver = givers[0] if givers else position
        if giver != position:
            operation = plain_operation(node)
            turned = operation in _RESHAPES and operation not in asked and not (
                # (A product begins with turning the gradient that it takes.)
                backward and operation in BACKWARD.get(runs.operations[position], ()))
            # (An item of several results.)
            item = operation == "getitem" and shapes.get(node.inputs[0] if node.inputs else "", ()) is None
            if item or turned or not fit.of(node, [position])[0]:
                position = giver
        chosen[node.name] = position
        result[node.name] = runs.names[position]
    return result


def _first_from(runs: Sequence[int], begin: int) -> int:
    at = bisect.bisect_left(runs, begin)
    return runs[at] if at < len(runs) else runs[-1]


def _last_between(runs: Sequence[int], begin: int, end: int) -> int:
    at = bisect.bisect_right(runs, end) - 1
    if at < 0:
        return runs[0]
    if runs[at] < begin and at + 1 < len(runs) and runs[at + 1] - end <= begin - runs[at]:
        return runs[at + 1]
    return runs[at]


#: They belong to the operation whose value they reshape.
_RESHAPES = frozenset({"t", "unsafe_view", "detach", "alias", "permute"})
#: What it costs to leave a captured node out: all are computed, unless another one computes them, too.
_SKIP_COST = 1.0
_IMPOSSIBLE = 100.0  #: What it costs that a node be of a captured one that it cannot be of by what flows.
_PAIRS = 250_000  #: Above so many pairs a run is aligned by position alone.


def _within(fit: _Fit, positions: Sequence[int], nodes: Sequence[Node]) -> list[int]:
    """Return the captured node for each node, in order; for gradients in reverse."""
    order = list(reversed(positions)) if fit.backward else list(positions)
    if len(order) == 1:
        return order * len(nodes)
    if len(order) * len(nodes) > _PAIRS:
        return [order[index * len(order) // len(nodes)] for index in range(len(nodes))]
    best: list[float] = [0.0] * len(order)
    came: list[list[int]] = []
    scores = [fit.of(node, order) for node in nodes]
    for fitting in scores:
        row, steps, top, where = [], [], float("-inf"), 0
        for column, score in enumerate(fitting):
            if best[column] > top:
                top, where = best[column], column
            row.append(top + score)
            steps.append(where)
            if where < column:  # (a later one is reached by skipping this one)
                top -= _SKIP_COST
        best = row
        came.append(steps)
    column = max(range(len(order)), key=best.__getitem__)
    chosen = []
    for steps in reversed(came):
        chosen.append(column)
        column = steps[column]
    chosen.reverse()
    _cut_at_fewest_values(nodes, chosen, scores)
    return [order[column] for column in chosen]


def _cut_at_fewest_values(nodes: Sequence[Node], chosen: list[int], scores: Sequence[Sequence[float]]) -> None:
    """Move the nodes that fit two neighbours equally, so that the fewest values cross from one to the other.

    Of ``add, neg, exp`` the ``neg`` may end a norm or begin an activation; after the ``add`` only its value crosses.
    """
    crossing = [0] * (len(nodes) + 1)  # values across each cut: computed before it, used after it
    made = {node.name: number for number, node in enumerate(nodes)}
    last = {name: number for number, node in enumerate(nodes) for name in node.inputs if name in made}
    for name, taken in last.items():
        crossing[made[name] + 1] += 1
        crossing[taken + 1] -= 1
    for cut in range(1, len(crossing)):
        crossing[cut] += crossing[cut - 1]
    for at in range(1, len(nodes)):
        before, after = chosen[at - 1], chosen[at]
        if before == after:
            continue
        first, end = at, at
        while first > 1 and chosen[first - 1] == before == chosen[first - 2] and (
                scores[first - 1][before] == scores[first - 1][after]):
            first -= 1
        while end < len(nodes) - 1 and chosen[end] == after == chosen[end + 1] and (
                scores[end][before] == scores[end][after]):
            end += 1
        cut = min(range(first, end + 1), key=lambda each: (crossing[each], abs(each - at)))
        for number in range(min(cut, at), max(cut, at)):
            chosen[number] = after if cut < at else before


class _Fit(NamedTuple):
    """Scores how well nodes of a later stage fit captured ones."""

    runs: CapturedRuns
    backward: bool  # the nodes compute gradients
    shapes: Mapping[str, tuple[str, ...] | None]  # of the nodes of the later stage, by name
    possible: Mapping[str, int]  # for a node, the pieces that it may be of, where something is known
    # for a backward graph, the captured nodes of the values that it is given. Its nodes that compute no gradient are
    # recomputed, or factors of gradients.
    saved: Mapping[str, str]

    def of(self, node: Node, positions: Sequence[int]) -> list[float]:
        """Return the scores of a node at positions of captured nodes."""
        runs, operation, shape = self.runs, plain_operation(node), self.shapes.get(node.name)
        parameters = {runs.parameter(name) for name in node.inputs} - {""}
        possible = self.possible.get(node.name, -1)
        scores = []
        for position in positions:
            same_shape = shape is not None and (
                shape in runs.input_shapes[position] if self.backward else runs.types[runs.names[position]] == shape)
            rank = None if shape is None else len(shape)
            ours = runs.operations[position]
            if ours == operation in _OF_TWO and not self.backward and len(node.inputs) < len(
                    runs.nodes[position].inputs):
                ours = ""  # (`exp + 1`, of an activation, is no sum of two tensors)
            score = _likeness(ours, operation, self.backward, same_shape, rank)
            if self.saved and not self.backward:
                score = max(score, _likeness(ours, operation, True, same_shape, rank))
            if parameters and not parameters.isdisjoint(runs.nodes[position].inputs):
                score += 3.0
            if not runs.pieces.of[position] & possible:
                score -= _IMPOSSIBLE
            scores.append(score)
        return scores


@functools.lru_cache(65536)
def _likeness(ours: str, theirs: str, backward: bool, same_shape: bool, rank: int | None) -> float:
    """Return how well an operation of a later stage fits a captured one.

    Args:
        ours, theirs: the captured operation, that of the later stage.
        backward: it computes a gradient.
        same_shape: its value has the shape of the captured value; a gradient, of a value that the captured one takes.
        rank: dimensions of its value, where they are known.
    """
    score = 1.0 if same_shape else 0.0
    if theirs == "reshape" and ours != "reshape":
        theirs = "view"  # (as one of Inductor's passes writes it)
    if ours == theirs:
        # A call of many parts has reshapes of its own among them.
        score += 3.0 if same_shape or rank is None else 1.0
    elif theirs in (BACKWARD if backward else FORWARD).get(ours, ()):
        score += 1.5
        if theirs in ("view", "unsafe_view") and rank is not None:
            score += 0.5 * (rank == _RANKS.get(ours, -1))
    elif len(ours) > 2 and len(theirs) > 2 and (ours in theirs or theirs in ours):
        score += 2.0
    return score


_OF_TWO = frozenset({"add", "sub", "mul", "div"})  #: Operations of two tensors, or of a tensor and a number.
_RANKS = {"linear": 2, "matmul": 3, "scaled_dot_product_attention": 3}  #: Dimensions of what ``mm`` and ``bmm`` take.


def plain_operation(node: Node) -> str:
    """Return the name of an operation without what differs from stage to stage.

    ``aten._softmax_backward_data`` and ``softmax`` are both ``softmax``. Of a call that runs another operation: that.
    """
    return plain_name(node.runs or node.target)


def line_of(node: Node) -> _Line | None:
    """Return the user's line of a node."""
    place = node.location
    return None if place is None else (place.filename, place.line, place.function)

