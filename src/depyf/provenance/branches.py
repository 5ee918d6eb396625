"""Parallel module calls on one line: of ``q(x) @ v(x)`` neither takes a value of the other one.

The order of a later stage does not say which of them a node is of; data flow does. Consecutive captured nodes of one
user line are a *piece*; each is one by itself where the line calls several modules. For each node of a later stage the
pieces of its line are found that it may be of:

1. What takes a value made of an argument of the graph is of a piece that reads this, or of a later one; so is what
   computes the argument's gradient.
2. What takes a gradient is of the piece that this is of, or of an earlier one.

A piece is one bit, a set of pieces is a number.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ..model.graph import VIEWS, Graph, Node, is_gradient, is_in_place, last_name, users_of

#: Operations that give their value in another shape or type.
_MOVING = VIEWS | frozenset("to float half bfloat16 double type type_as contiguous clone flatten view_as chunk".split())

#: Operations that add up what flows back, one of them with a product of its own.
_SUMS = frozenset({"add", "addmm", "baddbmm"})


class Pieces:
    """The pieces of a captured graph, and which of them take values of which.

    Args:
        names, nodes: captured nodes in order; names of those in inner graphs begin with the name of the graph.
        runs: positions of consecutive nodes of one line.
        calls: for the name of a node the calls of modules that it was made in, outermost first.
    """

    def __init__(
        self, names: Sequence[str], nodes: Sequence[Node], runs: Sequence[Sequence[int]],
        calls: Mapping[str, tuple[int, ...]],
    ) -> None:
        self.of = [0] * len(nodes)  # by position, the piece as a number with one bit; 0 for a node that has no line
        self.in_run: list[int] = []  # by run, all of its pieces
        self.calls: list[tuple[int, ...]] = []  # by bit, the calls that the piece was made in
        places = {name: position for position, name in enumerate(names)}
        takes = []
        for name, node in zip(names, nodes):
            prefix = "".join(name.rpartition(".")[:2])
            takes.append([places[prefix + each] for each in node.inputs if prefix + each in places])
        # by run, the pieces of each of its parallel parts; one part where there are none
        self.parts: list[list[int]] = []
        self._run_of: list[int] = []
        self.moving = 0  # the pieces that only reshape or convert a value, as later stages do elsewhere or not at all
        for run in runs:
            paths = [calls.get(names[position], ()) for position in run]
            self.parts.append([])
            for part in _parts(run, takes, paths):
                mask = 0
                # (Where one module alone is called, it is not asked which of its operations a node is of.)
                for piece in [[position] for position in part] if len(set(paths)) > 1 else [part]:
                    bit = 1 << len(self.calls)
                    mask |= bit
                    self.calls.append(calls.get(names[piece[0]], ()))
                    self._run_of.append(len(self.in_run))
                    for position in piece:
                        self.of[position] = bit
                        if last_name(nodes[position].target) in _MOVING:
                            self.moving |= bit
                self.parts[-1].append(mask)
            self.in_run.append(sum(self.parts[-1]))
        self._before = self._ancestors(names, nodes, takes)
        self._after = _transposed(self._before)
        # before, after: the pieces with all that any of them takes values of; with all that take values of any of them
        self.before = functools.cache(lambda pieces: united(self._before[number] for number in _bits(pieces)))
        self.after = functools.cache(lambda pieces: united(self._after[number] for number in _bits(pieces)))
        # the runs that any of the pieces is in
        self.runs_of = functools.cache(lambda pieces: {self._run_of[number] for number in _bits(pieces)})
        # no two of the pieces are parallel
        self.are_in_a_row = functools.cache(lambda pieces: not self.beside(pieces, pieces))

    def _ancestors(self, names: Sequence[str], nodes: Sequence[Node], takes: Sequence[Sequence[int]]) -> list[int]:
        """Return for each piece itself and those that it takes values of, as far as that is known.

        All that follows takes what is changed in place, and what an inner graph is called with and returns.
        """
        result = [1 << number for number in range(len(self.calls))]
        flows = [0] * len(nodes)  # what a node takes values of
        all_of = seen = 0
        inner = ""
        for position, (name, node) in enumerate(zip(names, nodes)):
            within = name.rpartition(".")[0]
            if within != inner:
                inner, all_of = within, seen
            flow = all_of | self.of[position]
            for other in takes[position]:
                flow |= flows[other]
            if self.of[position]:
                number = self.of[position].bit_length() - 1
                result[number] |= flow
                flow = result[number]
            flows[position] = flow
            seen |= flow
            if is_in_place(node.target):
                all_of = seen
        return result

    def near(self, pieces: int) -> int:
        """Return the pieces that compute with what these read: themselves, or others of their runs after a view."""
        result = 0
        for number in _bits(pieces):
            bit = 1 << number
            result |= self.in_run[self._run_of[number]] & self.after(bit) if bit & self.moving else bit
        return result

    def beside(self, some: int, pieces: int) -> int:
        """Return which of the pieces are parallel to any of some: neither takes a value of the other."""
        return united(pieces & ~(self._before[number] | self._after[number]) for number in _bits(some))

    def with_other_calls(self, piece: int, pieces: int) -> int:
        """Return a piece with the parallel ones in other calls of modules; 0 if there are none."""
        own = self.calls[piece.bit_length() - 1]
        others = united(1 << number for number in _bits(self.beside(piece, pieces))
                     if own[: len(self.calls[number])] != self.calls[number][: len(own)])
        return others | piece if others else 0

    def call_around(self, pieces: int) -> int:
        """Return the innermost call of a module that all nodes of the pieces were made in; -1: none."""
        return (_common([self.calls[number] for number in _bits(pieces)]) or (-1,))[-1]


def united(sets: Iterable[int]) -> int:
    """Return the pieces of all sets."""
    return functools.reduce(operator.or_, sets, 0)


def _parts(run: Sequence[int], takes: Sequence[Sequence[int]], calls: Sequence[tuple[int, ...]]) -> list[Sequence[int]]:
    """Return the parts of a run, by the modules called in it; the run as a whole where these are sequential."""
    depth = len(_common(calls))
    parts: list[list[int]] = []
    last: int | None = None
    for position, path in zip(run, calls):
        call = path[depth] if len(path) > depth else -1
        if not parts or call != last:
            parts.append([])
            last = call
        parts[-1].append(position)
    if len(parts) < 2:
        return [run]
    begins = {position: number for number, part in enumerate(parts) for position in part}
    before = [{number} for number in range(len(parts))]
    for position in run:
        for other in takes[position]:
            if other in begins:
                before[begins[position]] |= before[begins[other]]
    in_a_row = all(number in before[number + 1] for number in range(len(parts) - 1))
    return [run] if in_a_row else list(parts)


def _common(paths: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the common beginning of paths."""
    if not paths:
        return ()
    first, last = min(paths), max(paths)
    length = next((at for at, (one, other) in enumerate(zip(first, last)) if one != other), min(len(first), len(last)))
    return first[:length]


def _transposed(rows: Sequence[int]) -> list[int]:
    """Return the transposed square of bits: bit ``i`` of the ``k``-th is bit ``k`` of the ``i``-th row.

    (As text, which is cut in steps: of a large model it has some millions of bits.)
    """
    width = len(rows)
    text = "".join([format(row, f"0{width}b") for row in reversed(rows)])
    return [int(text[at::width], 2) for at in reversed(range(width))]


def _bits(pieces: int) -> Iterator[int]:
    while pieces:
        lowest = pieces & -pieces
        yield lowest.bit_length() - 1
        pieces ^= lowest


class PossiblePieces:
    """The pieces that nodes of a later stage may be of.

    Args:
        own: returns the pieces of a node's line; 0 for none.
        saved: for values that the graph takes, the pieces that may take them, too.
        arguments: for arguments that the graph takes, the pieces that read them.
        gradients: for nodes that compute gradients of arguments, the pieces that read these.
    """

    def __init__(
        self, pieces: Pieces, graph: Graph, own: Callable[[Node], int], saved: Mapping[str, int],
        arguments: Mapping[str, int], gradients: Mapping[str, int],
    ) -> None:
        self.pieces = pieces
        self.nodes = [node for node in graph.nodes if node.is_call or node.op == "get_attr"]
        arguments = dict(arguments)
        for node in self.nodes:
            if node.is_view and node.inputs[:1] and node.inputs[0] in arguments:
                arguments[node.name] = arguments[node.inputs[0]]
        self.back = {node.name for node in graph.nodes if node.op == "placeholder" and is_gradient(node.name)}
        self.left: dict[str, int] = {}
        self.contradictory: set[str] = set()  # what flows leaves nothing
        #: Sums of gradients: what flows back from several pieces is added up, and is of none of them alone.
        #: (``False``: with a product, which is of one of them.)
        self.sums: dict[str, bool] = {}
        self.until: dict[str, int] = {}  # for gradients, the pieces that may take them
        self.since: dict[str, int] = {}  # and those that may give them
        # for a value that is no gradient, the pieces that may take it: those after what alone reads an argument that it
        # is made of. (Where the value was made says less: what several make is computed once.)
        self.takers = dict(saved)
        for node in self.nodes:
            if not self.back.isdisjoint(node.inputs):
                self.back.add(node.name)
                operation = last_name(node.target)
                if operation in _SUMS and len(self.back.intersection(node.inputs)) > 1:
                    self.sums[node.name] = operation == "add"
            takers = -1
            for name in node.inputs:
                takers &= self.takers.get(name, -1)
                if (reading := arguments.get(name, 0)).bit_count() == 1:
                    takers &= pieces.after(reading)
            if node.name not in self.back:
                self.takers[node.name] = takers
            mask = own(node)
            if mask:
                self.left[node.name] = mask
                for reading in (*(arguments.get(name, 0) for name in node.inputs), gradients.get(node.name, 0)):
                    near = pieces.near(reading)
                    self._narrow(node.name, near if near & self.left[node.name] else pieces.after(reading))
                self._narrow(node.name, takers)
        self.line = dict(self.left)
        self.users = users_of(self.nodes)

    def of_nodes(self) -> dict[str, int]:
        """Return the pieces of its line that each node may be of; none for a node of which nothing is known."""
        for _ in range(3):
            before = dict(self.left)
            for node in self.nodes:
                self._by_inputs(node)
            for node in reversed(self.nodes):
                self._restrict_by_inputs(node)
            if before == self.left:
                break
        for node in self.nodes:
            # (A constant is of what takes it first, also where an earlier line takes the same one.)
            if node.name in self.contradictory or self.sums.get(node.name) or not node.inputs:
                line = self.line.get(node.name, 0)
                if node.name in self.back:  # (a sum is of none of the gradients alone that it takes)
                    given = united(self.left.get(name, 0) & line for name in node.inputs if name in self.back)
                else:  # (of the first user of a value that is computed once for several)
                    given = next((self.left[name] & line for name in self.users.get(node.name, ())
                                  if name not in self.contradictory and self.left.get(name, 0) & line), 0)
                if given & self.left.get(node.name, 0) and node.name not in self.contradictory:
                    self.left[node.name] &= given
                else:
                    self.left[node.name] = given or line
        for node in reversed(self.nodes):
            if node.name in self.back and node.is_view:
                # (A product begins with transposing the gradient that it takes.)
                own = self.left.get(node.name, 0)
                taking = own if not self.pieces.moving & own else 0
                for name in self.users.get(node.name, ()):
                    taking &= self.left.get(name, 0)
                self.left[node.name] = taking or own
        return {name: mask for name, mask in self.left.items() if mask}

    def _by_inputs(self, node: Node) -> None:
        if node.name not in self.back:
            return
        until = -1
        for name in node.inputs:
            until &= self.until.get(name, -1)
        if node.name not in self.sums:
            self._narrow(node.name, until)
            if node.name in self.left and node.name not in self.contradictory:
                until = self.pieces.before(self.left[node.name])
        self.until[node.name] = until

    def _restrict_by_inputs(self, node: Node) -> None:
        own = self.left.get(node.name, 0) if node.name not in self.contradictory else 0
        since = self.since.get(node.name, -1)
        if own and node.name not in self.sums:
            since = self.pieces.after(own)
        for name in node.inputs:
            if name in self.back:
                self.since[name] = self.since.get(name, -1) & since
                self._narrow(name, since)
            elif own:
                self._narrow(name, self.pieces.before(own))

    def _narrow(self, name: str, mask: int) -> None:
        """Remove the pieces of a node that are not in the mask; 0 says nothing."""
        if mask and name in self.left and name not in self.contradictory:
            left = self.left[name] & mask
            if left:
                self.left[name] = left
            else:
                self.contradictory.add(name)
