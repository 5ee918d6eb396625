"""torch.compile's list juggling -> what a person would have written: a graph to a smaller graph.

A partial evaluator.  Each block is run on a symbolic stack whose values are constants, local variables,
results of operations (*SSA values*) and *virtual* lists, tuples and slices: built here and not seen by anyone
else yet.  Building, indexing, slicing, extending and emptying a virtual container happens here and now,
and emits no operation; only when a container escapes (it is passed on, stored, returned) is it built.
``COPY``, ``SWAP`` and ``POP`` emit none either.

What remains is a block plan: the SSA values in their order.  They are put back into operations as a person
nests expressions: a value that is used once, by the next operation, remains an expression; the others get
a variable, named after the variable torch stored them in, or the parameter they are passed as.

Where nothing is known the protocol is unchanged: values that are on the stack where control flow
joins, and under exception handlers, remain there, and handlers themselves are copied verbatim.
Every result is proven afterwards (``equivalence``); an error here costs readability, never correctness.
"""


from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....bytecode import operations as o
from ....bytecode.operations import Op
from ....cfg import graph as g
from ....cfg.graph import Block, Cfg, entry_depths, reachable
from ..facts import ALWAYS, EPOCHS, Facts
from ..global_names import NEW
from ..written_out import has_size_calls
from .evaluate import PartialEvaluator
from .filling import as_calls
from .resumed import user_part
from .values import BlockPlan, Namer, SsaValue, State, Value, is_torch_name
from .write import BlockWriter

_READ = (o.LOAD_FAST, o.DELETE_FAST, o.LOAD_FAST_AND_CLEAR)
_REBIND = (o.STORE_FAST, o.DELETE_FAST, o.LOAD_FAST_AND_CLEAR)


@dataclass
class Simplification:
    """A graph that is being simplified; the passes change :attr:`graph`.

    Attributes:
        parameter_names: parameters of functions that the code calls by global name, to name values by.
        keep_variables: assignments to variables of the user's are not removed, needed or not.
        rename: global names that the text shows differently, to name values by.
        new: the word for :data:`.global_names.NEW`.
        authored: blocks of the user's own in a resume function: they are copied unchanged.
    """

    graph: Cfg
    parameter_names: Mapping[str, Sequence[str]]
    keep_variables: bool
    rename: Mapping[str, str]
    facts: Facts | None
    new: str = NEW
    authored: frozenset[int] = frozenset()


def leave_user_part(work: Simplification) -> None:
    """Leave the user's part of the code as it is, in the first text.

    That is most of a resume function, and of the code after a break where torch makes none: it puts the rest of the
    function after its own code then (``step_graph_break`` in torch/_dynamo/symbolic_convert.py).
    """
    if work.facts is None:
        return
    graph, authored = user_part(work.graph, is_resumed=work.keep_variables)
    if authored:
        work.graph, work.authored, work.keep_variables = graph, authored, True


def update_at_once(work: Simplification) -> None:
    """Read each loop that fills a dictionary as one call."""
    called = as_calls(work.graph)
    if called is not work.graph:
        work.graph = _straighten(called, {})


def evaluate(work: Simplification) -> None:
    """Run the blocks on symbolic values and write the remaining operations."""
    graph = work.graph
    restored: frozenset[str] = frozenset()
    # Again for as long as branches turn out to be decided: each makes more of the graph straight.
    for _ in range(len(graph.blocks) + 2):
        simplifier = _Simplifier(work, graph, restored)
        work.graph = simplifier.run()
        if simplifier.decided:
            graph = _straighten(graph, simplifier.decided)
        elif work.facts is not None and not restored and simplifier.restores():
            restored = simplifier.restores()  # a parameter is only ever given its own value: it is what it was on entry
        else:
            break


def _straighten(graph: Cfg, decided: Mapping[int, int]) -> Cfg:
    """Return the graph with decided branches replaced by jumps that pop the value, and chains of blocks joined."""
    graph = graph.copy()
    for id, successor in decided.items():
        block, end = graph.blocks[id], graph.blocks[id].end_op
        pop = Op(o.POP, None, end.offset if end else -1, end.line if end else None)
        block.ops, block.end, block.successors, block.end_op = [*block.ops, pop], g.JUMP, [successor], None
    graph.prune()
    predecessors, handlers = graph.predecessors(), _handlers(graph)
    for block in list(graph.blocks.values()):
        while block.id in graph.blocks and block.end == g.JUMP:
            (following,) = block.successors
            other = graph.blocks[following]
            if len(predecessors[following]) != 1 or following in handlers or following in (block.id, graph.entry) \
                    or repr(other.region) != repr(block.region):
                break
            block.ops, block.end, block.successors = [*block.ops, *other.ops], other.end, other.successors
            block.arg, block.end_op = other.arg, other.end_op
            del graph.blocks[following]
    return graph


def _handlers(graph: Cfg) -> set[int]:
    """Return the blocks that begin handlers."""
    return {block.handler for block in graph.blocks.values() if block.handler is not None}


class _Simplifier:
    """One run of the partial evaluator over all blocks of a graph, and the writing of the remaining values."""

    def __init__(self, work: Simplification, graph: Cfg, restored: frozenset[str]) -> None:
        self.graph = graph
        self.new, self.rename, self.parameter_names = work.new, work.rename, work.parameter_names
        self.facts: Facts = work.facts or Facts()
        self.readable = work.facts is not None
        #: How many things have happened that others may observe.
        self.happened = 0
        self.depths = entry_depths(graph)
        self.predecessors = graph.predecessors()
        #: Blocks that are copied unchanged; some run while an exception is being handled.
        self.verbatim = work.authored | reachable(graph.blocks, _handlers(graph), lambda block: (
            () if any(op.kind is o.POP_EXCEPT for op in block.ops) else block.successors))
        self.plans: dict[int, BlockPlan] = {}
        #: Branches that always take one edge: block id -> successor.
        self.decided: dict[int, int] = {}
        ops = [op for block in graph.blocks.values() for op in block.ops]

        def names(*kinds: str) -> set[str]:
            return {op.arg for op in ops if op.kind in kinds}

        #: Blocks at whose start nothing is known of what came before.
        self.starts = [id for id in graph.blocks if id == graph.entry or id in self.verbatim or not all(
            self.follows(graph.blocks[p]) for p in self.predecessors[id])]
        roots = [id for id in self.starts if self.predecessors[id] or id in self.verbatim]
        later = reachable(graph.blocks, roots, lambda block: block.successors if self.follows(block) else ())
        #: Locals that code which is not followed value by value reads: their stores are needed.
        self.kept = {op.arg for id in later for op in graph.blocks[id].ops
                     if op.kind in _READ or id in self.verbatim and op.kind is o.STORE_FAST}
        self.kept |= names(o.LOAD_CLOSURE) | set(graph.code.cellvars)
        if work.keep_variables:
            self.kept |= {name for name in names(o.STORE_FAST) if not is_torch_name(name)}
        self.arguments = set(graph.code.arguments)
        self.has_size_calls = has_size_calls(graph.code, ops)
        #: Attributes that the code stores itself.
        self.stores = names(o.STORE_ATTR)
        self.times_stored = Counter(op.arg for op in ops if op.kind in _REBIND)
        self.stored = self.times_stored.keys() - restored
        #: Stores that give a variable its own value, by name.
        self.own_values: Counter[str] = Counter()
        self.always_bound = self.arguments - names(o.DELETE_FAST)

    # --- what is followed -------------------------------------------------------------------------
    def follows(self, origin: Block) -> bool:
        """Return whether the knowledge at the end of a block applies at the start of its successors.

        All edges from a block find its stack in the same state: it is so for all of its successors or for none.
        """
        return origin.id not in self.verbatim and origin.end != g.FOR_ITER and all(
            len(self.predecessors[id]) == 1 and id not in self.verbatim and id != self.graph.entry
            and self.graph.blocks[id].floor <= origin.floor for id in origin.successors)

    def restores(self) -> frozenset[str]:
        """Return the parameters that are only ever given their own values."""
        return frozenset(name for name in self.arguments & self.times_stored.keys()
                         if self.own_values[name] == self.times_stored[name])

    # --- running ----------------------------------------------------------------------------------
    def run(self) -> Cfg:
        """Evaluate all blocks, and return the graph that is left."""
        pending: list[tuple[int, State | None]] = [(id, None) for id in self.starts]
        while pending:
            id, state = pending.pop(0)
            block = self.graph.blocks[id]
            plan = self.plans[id] = BlockPlan(verbatim=id in self.verbatim)
            if plan.verbatim:
                continue
            if state is None:
                self.happened += 1
                state = State([SsaValue(None, (), id) for _ in range(self.depths[id])], {},
                              set(self.arguments if id == self.graph.entry else self.always_bound),
                              (self.happened,) * len(EPOCHS))
            plan.entry_stack = [v for v in state.stack if isinstance(v, SsaValue) and v.op is None]
            evaluator = PartialEvaluator(self, block, plan, state)
            for op in block.ops:
                evaluator.step(op)
            evaluator.end()
            if self.follows(block):
                pending[:0] = [(successor, state.copy()) for successor in block.successors]
        self.namer = Namer(self)
        for plan in self.plans.values():
            for value in plan.values:
                if not value.lasting:
                    self._materialise_changed(value.operands, value.epochs)
            self._materialise_changed(plan.end_operands, plan.end_epochs)
        self._count_uses()
        if self.readable:
            self._inline_graph_items()
        return self._write()

    # --- unobservable reads ------------------------------------------------------------------------
    def _materialise_changed(self, operands: Sequence[Value], epochs: tuple[int, ...], inside: bool = False) -> None:
        """Materialise those unobservable reads that something since may have changed, and what these read."""
        for operand in operands:
            if not isinstance(operand, SsaValue) or operand.lasting in ("", ALWAYS):
                continue  # (what leads to what always lasts does so too)
            epoch = EPOCHS.index(operand.lasting)
            if operand.epochs[epoch] != epochs[epoch]:
                operand.lasting = ""
                operand.elsewhere |= inside  # a variable: what takes it is written elsewhere
                self._materialise_changed(operand.operands, operand.epochs)
            else:
                self._materialise_changed(operand.operands, epochs, inside=True)

    def _inline_graph_items(self) -> None:
        """Read items of a graph's result where they are used, if they have no name of the user's."""
        for plan in self.plans.values():
            for value in plan.values:
                if value.graph_item and (value.uses > 1 or value.elsewhere) and value.variable is None and not any(
                        hint not in self.namer.taken and not is_torch_name(hint) for hint in value.hints):
                    value.lasting = ALWAYS
                    if isinstance(value.operands[0], SsaValue):
                        value.operands[0].elsewhere = True  # the result has a variable

    # --- uses -------------------------------------------------------------------------------------
    def _count_uses(self) -> None:
        """Count the uses of each SSA value, and remove optional ones that have none."""
        for id, plan in self.plans.items():
            for value in [*(each for taker in plan.values for each in taker.operands), *plan.end_operands]:
                if isinstance(value, SsaValue):
                    value.uses += 1
                    value.elsewhere |= value.block != id
        for plan in reversed(self.plans.values()):
            for value in reversed(list(plan.values)):
                operands = [operand for operand in value.operands if isinstance(operand, SsaValue)]
                if value.optional and not value.uses and not any(r.uses for r in value.results):
                    plan.values.remove(value)
                    for operand in operands:
                        operand.uses -= 1
                elif value.lasting and (value.uses > 1 or value.elsewhere):
                    for operand in operands:  # written as often as it is used itself
                        operand.uses += value.uses - 1
                        operand.elsewhere |= value.elsewhere

    # --- writing ----------------------------------------------------------------------------------
    def _write(self) -> Cfg:
        """Return the graph of the block plans; verbatim blocks are copied unchanged."""
        blocks: dict[int, Block] = {}
        for id, block in self.graph.blocks.items():
            plan = self.plans[id]
            if plan.verbatim:
                blocks[id] = block
                continue
            end = block.end_op
            # (Lines of Dynamo's code say nothing about the form of its source: ``x if c else y`` or ``if``.)
            end = end and Op(end.kind, end.arg, end.offset, None, end.target, end.handler)
            blocks[id] = Block(id, BlockWriter(block, plan, self.namer).write(), block.end, [*block.successors],
                               block.arg, end, block.region)
        return Cfg(self.graph.code, blocks, self.graph.entry)
