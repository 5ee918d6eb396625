"""torch.compile's list juggling -> what a person would have written: a graph to a smaller graph.

A partial evaluator.  Each block is run on a symbolic stack whose values are constants, local variables,
results of operations (*lets*) and *virtual* lists, tuples and slices: built here and not seen by anyone
else yet.  Building, indexing, slicing, extending and emptying a virtual container happens here and now,
and leaves nothing behind; only when a container escapes (it is passed on, stored, returned) is it built.
``COPY``, ``SWAP`` and ``POP`` leave nothing behind either.

What remains are the lets in their order.  They are put back into operations as a person nests
expressions: a let that is used once, by the next thing that happens, stays an expression; the others get
a variable, named after the variable torch stored them in, or the parameter they are passed as.

Where nothing is known the original protocol is kept: values that lie on the stack where control flow
joins, and under exception handlers, stay on the stack, and handlers themselves are copied verbatim.
Every result is proven afterwards (``equivalence``); an error here costs readability, never correctness.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from typing import Any

from ..bytecode import operations as o
from ..bytecode.operations import Op
from ..flow import graph as g
from ..flow.graph import Block, Graph
from ..flow.stack import StackMismatch, effect, entry_depths

#: Flags of torch's own that guard such marks since 2.15: taken to be off.
PROFILER_FLAGS: Mapping[str, frozenset[str]] = {
    "__import_torch_dot_autograd_dot_profiler": frozenset({"_is_profiler_enabled"}),
}

#: What calls of a graph start with. A graph returns a tuple or list, so reading its items by constant
#: index neither fails nor is seen by anyone.
GRAPH_PREFIX = "__compiled_fn_"
#: What globals start with that Dynamo puts into the module itself, once: reading them always works and
#: gives the same, so it does not matter when it happens.
OWN_GLOBALS = (GRAPH_PREFIX, "__resume_at_", "__import_", "__constant_")

#: Functions of torch's own that only mark time for its profiler: ``module alias -> attribute names``.
#: (torch/_dynamo/output_graph.py, since 2.12)
PROFILER_MARKERS: Mapping[str, frozenset[str]] = {
    "__import_torch_dot__dynamo_dot_utils": frozenset({
        "record_pregraph_bytecode_enter", "record_pregraph_bytecode_exit",
    }),
}


class CannotSimplify(Exception):
    """The code does something with its stack that has no simplified form; it is left as it is."""


# --- values ---------------------------------------------------------------------------------------
class Value:
    __slots__ = ()


class Const(Value):
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Local(Value):
    """A fast local that is bound, read when it is used."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Let(Value):
    """Result of an operation.

    Attributes:
        op: the operation; ``None`` for a value that is on the stack already (``where`` says which).
        operands: what it takes, in the order in which the stack holds them.
        block: id of the block it happens in.
        uses: how often it is taken.
        elsewhere: it is taken in another block.
        hints: names it could have, best first.
        pure: it may happen later, or never (an item of a graph's result).
        optional: nothing is lost if it does not happen (profiler markers).
        results: for operations with several results, the lets that stand for them.
        variable: name of the local that holds it, once it has one.
    """

    __slots__ = ("block", "elsewhere", "hints", "op", "operands", "optional", "pure", "results", "uses",
                 "variable")

    def __init__(self, op: Op | None, operands: Sequence[Value], block: int) -> None:
        self.op = op
        self.operands = list(operands)
        self.block = block
        self.uses = 0
        self.elsewhere = False
        self.hints: list[str] = []
        self.optional = False
        self.pure = False
        self.results: list[Let] = []
        self.variable: str | None = None


class Container(Value):
    """A list, tuple or slice that only this code has seen. ``kind``: ``"list"``, ``"tuple"``, ``"slice"``."""

    __slots__ = ("items", "kind")

    def __init__(self, kind: str, items: list[Value]) -> None:
        self.kind = kind
        self.items = items


class State:
    """Stack and known locals at a point of the program."""

    __slots__ = ("bound", "stack", "variables")

    def __init__(self, stack: list[Value], variables: dict[str, Value], bound: set[str]) -> None:
        self.stack = stack
        self.variables = variables  # locals whose value is known: name -> value
        self.bound = bound  # locals that certainly have a value

    def copy(self) -> State:
        """For one of several ways on: containers are copied, shared ones stay shared."""
        memo: dict[int, Value] = {}

        def dup(value: Value) -> Value:
            if not isinstance(value, Container):
                return value
            done = memo.get(id(value))
            if done is None:
                done = memo[id(value)] = Container(value.kind, [])
                done.items = [dup(item) for item in value.items]
            return done

        return State([dup(v) for v in self.stack], {n: dup(v) for n, v in self.variables.items()},
                     set(self.bound))

    def replace(self, old: Value, new: Value) -> None:
        seen: set[int] = set()

        def inside(items: list[Value]) -> None:
            for index, value in enumerate(items):
                if value is old:
                    items[index] = new
                elif isinstance(value, Container) and id(value) not in seen:
                    seen.add(id(value))
                    inside(value.items)

        inside(self.stack)
        known = list(self.variables.values())
        inside(known)
        self.variables = dict(zip(self.variables, known))

    def mentions(self, name: str) -> bool:
        """Whether a value still to be used is the present value of the local."""
        seen: set[int] = set()

        def inside(items: Sequence[Value]) -> bool:
            for value in items:
                if isinstance(value, Local) and value.name == name:
                    return True
                if isinstance(value, Container) and id(value) not in seen:
                    seen.add(id(value))
                    if inside(value.items):
                        return True
            return False

        return inside(self.stack) or inside(list(self.variables.values()))


class Plan:
    """What becomes of one block: its lets in order, and what its end takes."""

    __slots__ = ("end_operands", "entry_stack", "lets", "verbatim")

    def __init__(self) -> None:
        self.lets: list[Let] = []
        self.entry_stack: list[Let] = []
        self.end_operands: list[Value] = []
        self.verbatim = False


def simplify(
    graph: Graph, *, parameter_names: Mapping[str, Sequence[str]] | None = None
) -> Graph:
    """The same program with less in it (see the module).

    Args:
        graph: what to simplify; it is not changed.
        parameter_names: parameters of functions that the code calls by global name, to name values by.

    Returns:
        A new graph; the given one if nothing could be done.
    """
    try:
        # Each decided branch makes more of the graph straight; a graph has finitely many.
        present = graph
        for _ in range(len(graph.blocks) + 1):
            simplifier = _Simplifier(present, parameter_names or {})
            result = simplifier.run()
            if not simplifier.decided:
                return result
            present = _straighten(present, simplifier.decided)
        return result
    except (CannotSimplify, StackMismatch):
        return graph


def _straighten(graph: Graph, decided: Mapping[int, int]) -> Graph:
    """The graph with branches replaced by the way they always take, and chains of blocks joined.

    The tested value is popped where the branch was.
    """
    blocks: dict[int, Block] = {}
    for id, block in graph.blocks.items():
        if id in decided:
            end = block.end_op
            pop = Op(o.POP, None, end.offset if end else -1, end.line if end else None)
            block = Block(id, [*block.ops, pop], g.JUMP, (decided[id],), None, None, block.region)
        blocks[id] = block
    reachable: set[int] = set()
    pending = [graph.entry]
    while pending:
        id = pending.pop()
        if id in reachable:
            continue
        reachable.add(id)
        pending.extend(blocks[id].successors)
        region = blocks[id].region
        if region is not None:
            pending.append(region.handler)
    blocks = {id: block for id, block in blocks.items() if id in reachable}
    predecessors, handlers = _edges(Graph(graph.code, blocks, graph.entry))
    for id in list(blocks):
        while id in blocks and blocks[id].end == g.JUMP:
            block = blocks[id]
            (following,) = block.successors
            other = blocks[following]
            same = (other.region is block.region or other.region is not None and block.region is not None
                    and repr(other.region) == repr(block.region))
            if len(predecessors[following]) != 1 or following in handlers or not same \
                    or following in (id, graph.entry):
                break
            blocks[id] = Block(id, [*block.ops, *other.ops], other.end, other.successors, other.arg,
                               other.end_op, block.region)
            for successor in other.successors:
                predecessors[successor] = [id if p == following else p for p in predecessors[successor]]
            del blocks[following]
    return Graph(graph.code, blocks, graph.entry)


def _edges(graph: Graph) -> tuple[dict[int, list[int]], set[int]]:
    predecessors: dict[int, list[int]] = {id: [] for id in graph.blocks}
    handlers: set[int] = set()
    for block in graph.blocks.values():
        for successor in block.successors:
            predecessors[successor].append(block.id)
        if block.region is not None:
            handlers.add(block.region.handler)
    return predecessors, handlers


class _Simplifier:
    def __init__(self, graph: Graph, parameter_names: Mapping[str, Sequence[str]]) -> None:
        self.graph = graph
        self.parameter_names = parameter_names
        self.depths = entry_depths(graph)
        self.predecessors, self.handlers = _edges(graph)
        self.verbatim = self._handling_blocks()
        self.plans: dict[int, Plan] = {}
        #: Branches that always go one way: block id -> successor.
        self.decided: dict[int, int] = {}
        #: Locals that code which is not followed value by value reads: their stores must stay.
        self.kept = self._kept_names()
        self.arguments = set(graph.code.arguments)
        deleted = {op.arg for b in graph.blocks.values() for op in b.ops if op.kind is o.DELETE_FAST}
        self.always_bound = self.arguments - deleted

    # --- what is followed -------------------------------------------------------------------------
    def _handling_blocks(self) -> set[int]:
        """Blocks that run while an exception is being handled, and those that start handlers."""
        found: set[int] = set()
        pending = list(self.handlers)
        while pending:
            id = pending.pop()
            if id in found:
                continue
            found.add(id)
            block = self.graph.blocks[id]
            if not any(op.kind is o.POP_EXCEPT for op in block.ops):
                pending.extend(block.successors)
        return found

    def _follows(self, id: int, origin: Block) -> bool:
        """Whether what is known at the end of ``origin`` is known at the start of block ``id``."""
        block = self.graph.blocks[id]
        if len(self.predecessors[id]) != 1 or id in self.handlers or id in self.verbatim:
            return False
        if origin.id in self.verbatim or origin.end == g.FOR_ITER:
            return False
        depth = block.region.depth if block.region else 0
        before = origin.region.depth if origin.region else 0
        return depth <= before

    def _kept_names(self) -> set[str]:
        """Locals read in a block other than along the way on which they were stored."""
        kept: set[str] = set()
        for block in self.graph.blocks.values():
            followed = block.id not in self.verbatim and block.id != self.graph.entry and all(
                self._follows(block.id, self.graph.blocks[p]) for p in self.predecessors[block.id]
            ) and bool(self.predecessors[block.id])
            if followed:
                continue
            # What this block and those that follow it read before they store it.
            pending: list[tuple[int, frozenset[str]]] = [(block.id, frozenset())]
            while pending:
                id, stored = pending.pop()
                here = self.graph.blocks[id]
                mine = set(stored)
                for op in here.ops:
                    if op.kind in (o.LOAD_FAST, o.DELETE_FAST, o.LOAD_FAST_AND_CLEAR):
                        if op.arg not in mine or id in self.verbatim:
                            kept.add(op.arg)
                    elif op.kind is o.STORE_FAST:
                        mine.add(op.arg)
                        if id in self.verbatim:
                            kept.add(op.arg)
                for successor in here.successors:
                    if self._follows(successor, here):
                        pending.append((successor, frozenset(mine)))
        nested = {op.arg for b in self.graph.blocks.values() for op in b.ops if op.kind is o.LOAD_CLOSURE}
        return kept | nested | set(self.graph.code.cellvars)

    # --- running ----------------------------------------------------------------------------------
    def run(self) -> Graph:
        graph = self.graph
        pending: list[tuple[int, State | None]] = [(graph.entry, None)]
        pending += [(id, None) for id in graph.blocks]
        while pending:
            id, state = pending.pop(0)
            if id in self.plans:
                continue
            block = graph.blocks[id]
            if state is None and id != graph.entry and any(
                self._follows(id, graph.blocks[p]) for p in self.predecessors[id]
            ):
                pending.append((id, None))  # its predecessor comes first
                continue
            after = self._run_block(block, state)
            for successor in block.successors:
                if after is not None and self._follows(successor, block):
                    pending.insert(0, (successor, after.copy()))
        self._count_uses()
        return self._write()

    def _run_block(self, block: Block, state: State | None) -> State | None:
        plan = self.plans[block.id] = Plan()
        if block.id in self.verbatim:
            plan.verbatim = True
            return None
        if state is None:
            reals = [Let(None, (), block.id) for _ in range(self.depths[block.id])]
            bound = set(self.arguments) if block.id == self.graph.entry else set(self.always_bound)
            state = State(list(reals), {}, bound)
            plan.entry_stack = reals
        else:
            plan.entry_stack = [v for v in state.stack if isinstance(v, Let) and v.op is None]
        runner = _Runner(self, block, plan, state)
        for op in block.ops:
            runner.step(op)
        runner.end()
        return state

    # --- uses -------------------------------------------------------------------------------------
    def _count_uses(self) -> None:
        for id, plan in self.plans.items():
            for let in plan.lets:
                for operand in let.operands:
                    self._use(operand, id)
            for operand in plan.end_operands:
                self._use(operand, id)
        for id in reversed(list(self.plans)):
            plan = self.plans[id]
            for let in reversed(list(plan.lets)):
                if let.optional and not let.uses and not any(r.uses for r in let.results):
                    plan.lets.remove(let)
                    for operand in let.operands:
                        if isinstance(operand, Let):
                            operand.uses -= 1

    def _use(self, value: Value, block: int) -> None:
        if isinstance(value, Let):
            value.uses += 1
            if value.block != block:
                value.elsewhere = True
        elif isinstance(value, Container):
            for item in value.items:
                self._use(item, block)

    # --- writing ----------------------------------------------------------------------------------
    def _write(self) -> Graph:
        namer = _Namer(self)
        blocks: dict[int, Block] = {}
        for id, block in self.graph.blocks.items():
            plan = self.plans[id]
            if plan.verbatim:
                blocks[id] = block
                continue
            ops = _BlockWriter(block, plan, namer).write()
            # Lines of Dynamo's code say nothing about the form of its source (``x if c else y`` or ``if``).
            for op in ops:
                op.line = None
            end = block.end_op
            if end is not None:
                end = Op(end.kind, end.arg, end.offset, None, end.target, end.handler)
            blocks[id] = Block(id, ops, block.end, block.successors, block.arg, end, block.region)
        return Graph(self.graph.code, blocks, self.graph.entry)


class _Runner:
    """Runs the operations of one block symbolically."""

    def __init__(self, owner: _Simplifier, block: Block, plan: Plan, state: State) -> None:
        self.owner = owner
        self.block = block
        self.plan = plan
        self.state = state
        self.stack = state.stack
        self.op: Op | None = None

    # --- helpers ---
    def pop(self, count: int) -> list[Value]:
        if count > len(self.stack):
            raise CannotSimplify("stack underflow")
        taken = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return taken

    def let(self, op: Op, operands: Sequence[Value]) -> Let:
        escaped = [self.escape(value) for value in operands]
        let = Let(op, escaped, self.block.id)
        self.plan.lets.append(let)
        return let

    def escape(self, value: Value) -> Value:
        """The value as others may see it: a container is built, once, and is that object from now on."""
        if not isinstance(value, Container):
            return value
        assert self.op is not None
        items = [self.escape(item) for item in list(value.items)]
        kind = {"list": o.BUILD_LIST, "tuple": o.BUILD_TUPLE, "slice": o.BUILD_SLICE}[value.kind]
        if value.kind == "tuple" and not items:
            built: Value = Const(())
        else:
            built = Let(Op(kind, len(items), self.op.offset, self.op.line), items, self.block.id)
            self.plan.lets.append(built)
            built.optional = built.pure = True  # building alone has no effect
        self.state.replace(value, built)
        return built

    def step(self, op: Op) -> None:
        self.op = op
        method = getattr(self, "op_" + op.kind, None)
        if method is not None:
            method(op)
        else:
            self.generic(op)

    def generic(self, op: Op) -> None:
        pops, pushes = effect(op)
        let = self.let(op, self.pop(pops))
        if pushes == 1:
            self.stack.append(let)
        elif pushes:
            let.results = [Let(None, (), self.block.id) for _ in range(pushes)]
            self.stack.extend(let.results)

    def end(self) -> None:
        block, owner = self.block, self.owner
        end_op = block.end_op
        self.op = end_op or (block.ops[-1] if block.ops else Op(o.JUMP))
        followed = bool(block.successors) and all(owner._follows(s, block) for s in block.successors)
        tested: list[Value] = []
        if block.end == g.BRANCH or block.end == g.RETURN:
            tested = self.pop(1)
            if block.end == g.BRANCH:
                answer = _known_truth(tested[0])
                if answer is not None:
                    owner.decided[block.id] = block.successors[0 if answer else 1]
        elif block.end == g.RAISE:
            tested = self.pop(block.arg)
        elif block.end == g.RERAISE:
            tested = self.pop(1 + block.arg)
        # What is on the stack for good lies at its bottom; it stays there.
        if followed or not block.successors:
            reals = [v for v in self.stack if isinstance(v, Let) and v.op is None]
            if not block.successors:
                self.stack.clear()
                self.plan.end_operands = [self.escape(v) for v in tested]
                return
            self.plan.end_operands = [*reals, *[self.escape(v) for v in tested]]
            return
        if any(owner._follows(s, block) for s in block.successors):
            # One way on is known, the other is not: both find the stack as it is.
            raise CannotSimplify("a branch of which only one way can be followed")
        self.plan.end_operands = [self.escape(v) for v in [*list(self.stack), *tested]]

    # --- constants, locals ---
    def op_CONST(self, op: Op) -> None:
        self.stack.append(Const(op.arg))

    def op_LOAD_FAST(self, op: Op) -> None:
        name = op.arg
        known = self.state.variables.get(name)
        if known is not None:
            self.stack.append(known)
        elif name in self.state.bound:
            self.stack.append(Local(name))
        else:
            self.generic(op)

    def op_LOAD_CLOSURE(self, op: Op) -> None:
        self.generic(op)
        cell = self.stack[-1]
        assert isinstance(cell, Let)
        cell.optional = cell.pure = True

    def op_STORE_ATTR(self, op: Op) -> None:
        cell = self.stack[-1]
        if op.arg == "cell_contents" and isinstance(cell, Let) and cell.op is not None \
                and cell.op.kind is o.LOAD_CLOSURE:
            self.pop(1)
            op = Op(o.STORE_DEREF, cell.op.arg, op.offset, op.line, -1, op.handler)
        self.generic(op)

    def op_STORE_FAST(self, op: Op) -> None:
        name = op.arg
        (value,) = self.pop(1)
        self.forget(name)
        if isinstance(value, Let):
            value.hints.append(name)
        if name in self.owner.kept:
            self.let(op, [value])
            self.state.bound.add(name)
        else:
            self.state.variables[name] = value

    def forget(self, name: str) -> None:
        """The local gets another value: what still means the old one is read now."""
        self.state.variables.pop(name, None)
        if self.state.mentions(name):
            assert self.op is not None
            read = Let(Op(o.LOAD_FAST, name, self.op.offset, self.op.line), (), self.block.id)
            read.optional = True
            self.plan.lets.append(read)
            stale = Local(name)
            for value in _locals_named(self.state, name):
                stale = value
                self.state.replace(stale, read)

    def op_DELETE_FAST(self, op: Op) -> None:
        name = op.arg
        if name in self.state.variables:
            del self.state.variables[name]
            return
        self.forget(name)
        self.state.bound.discard(name)
        self.let(op, [])

    # --- the stack ---
    def op_POP(self, op: Op) -> None:
        (value,) = self.pop(1)
        if isinstance(value, Let) and value.op is None:
            self.let(op, [value])

    def op_COPY(self, op: Op) -> None:
        if op.arg > len(self.stack):
            raise CannotSimplify("stack underflow")
        self.stack.append(self.stack[-op.arg])

    def op_SWAP(self, op: Op) -> None:
        self.stack[-1], self.stack[-op.arg] = self.stack[-op.arg], self.stack[-1]

    def op_ROT(self, op: Op) -> None:
        self.stack[-op.arg :] = self.stack[-1:] + self.stack[-op.arg : -1]

    # --- containers ---
    def op_BUILD_LIST(self, op: Op) -> None:
        self.stack.append(Container("list", self.pop(op.arg)))

    def op_BUILD_TUPLE(self, op: Op) -> None:
        self.stack.append(Container("tuple", self.pop(op.arg)))

    def op_BUILD_SLICE(self, op: Op) -> None:
        self.stack.append(Container("slice", self.pop(op.arg)))

    def op_LIST_TO_TUPLE(self, op: Op) -> None:
        (value,) = self.pop(1)
        if isinstance(value, Container) and value.kind == "list":
            self.stack.append(Container("tuple", list(value.items)))
        else:
            self.stack.append(self.let(op, [value]))

    def op_LIST_APPEND(self, op: Op) -> None:
        (value,) = self.pop(1)
        owner = self.stack[-op.arg]
        if isinstance(owner, Container) and owner.kind == "list":
            owner.items.append(value)
        else:
            self.stack.append(value)
            self.in_place(op)

    def op_LIST_EXTEND(self, op: Op) -> None:
        (value,) = self.pop(1)
        owner = self.stack[-op.arg]
        items = _items(value)
        if isinstance(owner, Container) and owner.kind == "list" and items is not None:
            owner.items.extend(items)
        else:
            self.stack.append(value)
            self.in_place(op)

    def in_place(self, op: Op) -> None:
        """An operation on a container further down: everything between goes to its place first."""
        count = effect(op)[0] + op.arg
        if op.arg != 1:
            raise CannotSimplify(f"{op!r} reaches below the top")
        operands = self.pop(count)
        let = self.let(op, operands)
        let.results = [Let(None, (), self.block.id)]
        self.stack.extend(let.results)

    op_SET_ADD = op_MAP_ADD = op_SET_UPDATE = op_DICT_UPDATE = op_DICT_MERGE = in_place

    def op_GETITEM(self, op: Op) -> None:
        owner, index = self.stack[-2:]
        items = _items(owner)
        key = _key(index)
        if items is not None and key is not None and isinstance(owner, Container):
            try:
                found = items[key]
            except (IndexError, ValueError):
                self.generic(op)
                return
            self.pop(2)
            self.stack.append(Container(owner.kind, found) if isinstance(key, slice) else found)  # type: ignore[arg-type]
            return
        self.generic(op)
        let = self.stack[-1]
        if isinstance(let, Let) and type(key) is int and _is_graph_result(owner):
            let.pure = let.optional = True

    def op_SETITEM(self, op: Op) -> None:
        value, owner, index = self.stack[-3:]
        key = _key(index)
        if isinstance(owner, Container) and owner.kind == "list" and key is not None:
            if isinstance(key, slice):
                new = _items(value)
                if new is not None and key.step in (None, 1):
                    self.pop(3)
                    owner.items[key] = new
                    return
            elif -len(owner.items) <= key < len(owner.items):
                self.pop(3)
                owner.items[key] = value
                return
        self.generic(op)

    def op_DELITEM(self, op: Op) -> None:
        owner, index = self.stack[-2:]
        key = _key(index)
        if isinstance(owner, Container) and owner.kind == "list" and key is not None:
            if isinstance(key, slice) or -len(owner.items) <= key < len(owner.items):
                self.pop(2)
                del owner.items[key]
                return
        self.generic(op)

    def op_UNPACK(self, op: Op) -> None:
        items = _items(self.stack[-1])
        if items is not None and len(items) == op.arg:
            self.pop(1)
            self.stack.extend(reversed(items))
        else:
            self.generic(op)

    def op_IS(self, op: Op) -> None:
        left, right = self.stack[-2:]
        if isinstance(left, Const) and isinstance(right, Const) and left.value is None is right.value:
            self.pop(2)
            self.stack.append(Const(not op.arg))
        else:
            self.generic(op)

    def op_LOAD_GLOBAL(self, op: Op) -> None:
        self.generic(op)
        let = self.stack[-1]
        if isinstance(let, Let) and op.arg.startswith(OWN_GLOBALS):
            let.optional = let.pure = True

    def op_LOAD_ATTR(self, op: Op) -> None:
        cell = self.stack[-1]
        if op.arg == "cell_contents" and isinstance(cell, Let) and cell.op is not None \
                and cell.op.kind is o.LOAD_CLOSURE:
            self.pop(1)
            self.generic(Op(o.LOAD_DEREF, cell.op.arg, op.offset, op.line, -1, op.handler))
            return
        self.generic(op)
        let = self.stack[-1]
        assert isinstance(let, Let)
        (owner,) = let.operands
        if isinstance(owner, Let) and owner.op is not None and owner.op.kind is o.LOAD_GLOBAL \
                and op.arg in PROFILER_FLAGS.get(owner.op.arg, ()):
            let.optional = True

    # --- calls ---
    def op_CALL_EX(self, op: Op) -> None:
        keywords: Value | None = self.stack[-1] if op.arg else None
        arguments = self.stack[-2] if op.arg else self.stack[-1]
        items = _items(arguments)
        no_keywords = keywords is None or (
            isinstance(keywords, Let) and keywords.op is not None and keywords.op.kind is o.BUILD_MAP
            and keywords.op.arg == 0)
        if items is None or not no_keywords:
            self.generic(op)
            return
        if isinstance(keywords, Let):
            keywords.optional = True  # an empty dictionary nobody else sees
        function = self.stack[-3 if op.arg else -2]
        self.pop(3 if op.arg else 2)
        self.stack.extend([function, *items])
        self.op_CALL(Op(o.CALL, (len(items), ()), op.offset, op.line, -1, op.handler))

    def op_CALL(self, op: Op) -> None:
        positional, keywords = op.arg
        operands = self.pop(1 + positional + len(keywords))
        function = operands[0]
        let = self.let(op, operands)
        self.stack.append(let)
        if not isinstance(function, Let) or function.op is None:
            return
        if _is_marker(function):
            let.optional = function.optional = True
            owner = function.operands[0]
            assert isinstance(owner, Let)
            owner.optional = True
        if function.op.kind is o.LOAD_GLOBAL:
            names = self.owner.parameter_names.get(function.op.arg)
            for name, operand in zip(names or (), let.operands[1 : 1 + positional]):
                if isinstance(operand, Let):
                    operand.hints.append(name)


def _known_truth(value: Value) -> bool | None:
    if isinstance(value, Const):
        return bool(value.value)
    if isinstance(value, Let) and value.op is not None and value.op.kind is o.LOAD_ATTR:
        (owner,) = value.operands
        if isinstance(owner, Let) and owner.op is not None and owner.op.kind is o.LOAD_GLOBAL \
                and value.op.arg in PROFILER_FLAGS.get(owner.op.arg, ()):
            value.optional = owner.optional = True
            return False
    return None


def _locals_named(state: State, name: str) -> list[Local]:
    found: list[Local] = []
    seen: set[int] = set()

    def inside(items: Sequence[Value]) -> None:
        for value in items:
            if isinstance(value, Local) and value.name == name:
                found.append(value)
            elif isinstance(value, Container) and id(value) not in seen:
                seen.add(id(value))
                inside(value.items)

    inside(state.stack)
    inside(list(state.variables.values()))
    return found


def _is_graph_result(value: Value) -> bool:
    if not isinstance(value, Let) or value.op is None or value.op.kind is not o.CALL:
        return False
    function = value.operands[0]
    return (isinstance(function, Let) and function.op is not None and function.op.kind is o.LOAD_GLOBAL
            and function.op.arg.startswith(GRAPH_PREFIX))


def _is_marker(function: Let) -> bool:
    if function.op is None or function.op.kind is not o.LOAD_ATTR:
        return False
    (owner,) = function.operands
    if not isinstance(owner, Let) or owner.op is None or owner.op.kind is not o.LOAD_GLOBAL:
        return False
    return function.op.arg in PROFILER_MARKERS.get(owner.op.arg, ())


def _items(value: Value) -> list[Value] | None:
    """What iterating over the value gives, if that is known."""
    if isinstance(value, Container) and value.kind != "slice":
        return list(value.items)
    if isinstance(value, Const) and type(value.value) is tuple:
        return [Const(item) for item in value.value]
    return None


def _key(value: Value) -> int | slice | None:
    """A constant index or slice."""
    if isinstance(value, Const):
        if type(value.value) is int or type(value.value) is slice:
            return value.value
        return None
    if isinstance(value, Container) and value.kind == "slice":
        parts = [item.value if isinstance(item, Const) else ... for item in value.items]
        if all(part is None or type(part) is int for part in parts):
            return slice(*parts)
    return None


class _Namer:
    """Gives variables to lets: torch's own names where they are free, else what a value is used as."""

    def __init__(self, owner: _Simplifier) -> None:
        code = owner.graph.code
        self.taken: set[str] = set(owner.arguments) | owner.kept | set(code.cellvars) | set(code.freevars)
        for block in owner.graph.blocks.values():
            for op in block.ops:
                if op.kind in (o.LOAD_GLOBAL, o.STORE_GLOBAL, o.LOAD_NAME):
                    self.taken.add(op.arg)

    def name(self, let: Let) -> str:
        if let.variable is None:
            hints = [h for h in let.hints if h.isidentifier() and not _is_torch_temporary(h)]
            described = _described(let)
            hints += [described] if described != "tmp" else []
            hints += [h for h in let.hints if h.isidentifier()] or ["tmp"]
            base = next((h for h in hints if h not in self.taken), hints[0])
            candidate, count = base, 0
            while candidate in self.taken:
                count += 1
                candidate = f"{base}_{count}"
            self.taken.add(candidate)
            let.variable = candidate
        return let.variable


def _described(let: Let, depth: int = 0) -> str:
    """A name from where the value comes: ``self._modules['model']`` is ``model``."""
    if let.op is None or depth > 3 or not let.operands:
        return "tmp"
    owner = let.operands[0]
    inner = _described(owner, depth + 1) if isinstance(owner, Let) else "tmp"
    if let.op.kind is o.LOAD_ATTR:
        # Modules keep what they hold in dictionaries: those are called like the module.
        return inner if let.op.arg in ("_modules", "_parameters", "_buffers") else _short(let.op.arg)
    if let.op.kind is o.GETITEM and isinstance(let.operands[1], Const) and type(let.operands[1].value) is str:
        key = let.operands[1].value
        if inner == "tmp":
            return _short(key)
        return _short(f"{inner}_{key}")
    return "tmp"


def _short(name: str) -> str:
    name = name.lstrip("_")
    return name if name.isidentifier() and len(name) <= 40 and not keyword.iskeyword(name) else "tmp"


def _is_torch_temporary(name: str) -> bool:
    """``tmp_3``: torch's name for anything (torch/_dynamo/codegen.py)."""
    return name.startswith("tmp_") and name[4:].isdigit()


class _BlockWriter:
    """Lets -> operations, nesting expressions where the order of evaluation allows it."""

    def __init__(self, block: Block, plan: Plan, namer: _Namer) -> None:
        self.block = block
        self.plan = plan
        self.namer = namer
        self.ops: list[Op] = []
        #: Values that are computed next, in this order: on the stack already (``reals``) or not yet.
        self.reals: list[Let] = list(plan.entry_stack)
        self.pending: list[tuple[Let, list[Op]]] = []

    def write(self) -> list[Op]:
        for let in self.plan.lets:
            if let.op is not None:
                let.op = self.like(let.op.kind, let.op, let.op.arg)
            self.write_let(let)
        fragment = self.consume(self.plan.end_operands, self.block.end_op)
        self.flush()
        self.ops += fragment
        return self.ops

    def write_let(self, let: Let) -> None:
        assert let.op is not None
        if self.is_late(let):
            return
        fragment = self.consume(let.operands, let.op)
        fragment.append(let.op)
        pushes = effect(let.op)[1]
        if let.results:
            self.flush()
            self.ops += fragment
            self.reals += let.results
            unused = [r for r in let.results if r.uses != 1 or r.elsewhere]
            if unused:
                self.spill(len(let.results))
        elif let.op.kind in (o.STORE_FAST, o.STORE_DEREF, o.POP, o.DELETE_FAST) or not pushes:
            self.flush()
            self.ops += fragment
        elif not let.uses:
            self.flush()
            self.ops += [*fragment, self.like(o.POP, let.op)]
        elif let.uses > 1 or let.elsewhere:
            self.flush()
            self.ops += [*fragment, self.like(o.STORE_FAST, let.op, self.namer.name(let))]
        else:
            self.pending.append((let, fragment))

    @staticmethod
    def is_late(let: Let) -> bool:
        """Whether it is computed where it is used: its only operand that happens stands in a variable."""
        if not let.pure or let.uses != 1 or let.elsewhere:
            return False
        if let.op is not None and let.op.kind in (o.BUILD_LIST, o.BUILD_TUPLE, o.BUILD_SLICE):
            # What takes it follows at once: no local it reads is stored in between.
            return all(isinstance(value, (Const, Local)) for value in let.operands)
        if not let.operands:
            return True
        owner = let.operands[0]
        return isinstance(owner, Let) and (owner.uses > 1 or owner.elsewhere or owner.variable is not None)

    @staticmethod
    def like(kind: str, op: Op, arg: Any = None) -> Op:
        return Op(kind, arg, op.offset, op.line, -1, op.handler)

    def flush(self) -> None:
        """What waits is computed now, into variables."""
        for let, fragment in self.pending:
            assert let.op is not None
            self.ops += [*fragment, self.like(o.STORE_FAST, let.op, self.namer.name(let))]
        self.pending.clear()

    def spill(self, count: int) -> None:
        """Takes values off the stack into variables, top first."""
        depth = self.block.region.depth if self.block.region else 0
        if len(self.reals) - count < depth:
            raise CannotSimplify("a value under an exception handler is used out of order")
        for _ in range(count):
            real = self.reals.pop()
            if real.uses:
                self.ops.append(Op(o.STORE_FAST, self.namer.name(real), *self.place()))
            else:
                self.ops.append(Op(o.POP, None, *self.place()))

    def place(self) -> tuple[int, int | None]:
        op = self.block.end_op or (self.block.ops[-1] if self.block.ops else None)
        return (op.offset, op.line) if op is not None else (-1, None)

    def consume(self, operands: Sequence[Value], op: Op | None) -> list[Op]:
        """Operations that push the operands; what waits and is among them becomes part of it."""
        late = [v for v in operands if isinstance(v, Let) and v.variable is None and self.is_late(v)]
        wanted = [v for v in operands if isinstance(v, Let) and v.variable is None and v not in late]
        waiting = [let for let, _ in self.pending]
        on_stack = [v for v in wanted if v.op is None]
        computed = [v for v in wanted if v.op is not None]
        in_order = wanted == on_stack + computed and operands[: len(on_stack)] == on_stack
        if on_stack and (not in_order or self.reals[len(self.reals) - len(on_stack) :] != on_stack
                         or len(set(map(id, on_stack))) != len(on_stack)):
            self.flush()
            lowest = min(self.reals.index(v) for v in on_stack)
            self.spill(len(self.reals) - lowest)
            on_stack = []
            computed = [v for v in operands
                        if isinstance(v, Let) and v.variable is None and v not in late]
        if computed != waiting[len(waiting) - len(computed) :] or on_stack and len(waiting) > len(computed):
            self.flush()
            if any(v.variable is None for v in computed):
                raise CannotSimplify("a value is used before it is computed")
            computed = []
        fragments = {id(let): fragment for let, fragment in self.pending[len(waiting) - len(computed) :]} \
            if computed else {}
        if computed:
            del self.pending[len(self.pending) - len(computed) :]
        if on_stack:
            del self.reals[len(self.reals) - len(on_stack) :]
        result: list[Op] = []
        place = (op.offset, op.line) if op is not None else self.place()
        for value in operands:
            if isinstance(value, Const):
                result.append(Op(o.CONST, value.value, *place))
            elif isinstance(value, Local):
                result.append(Op(o.LOAD_FAST, value.name, *place))
            elif isinstance(value, Let):
                if value in late:
                    assert value.op is not None
                    result += [*self.consume(value.operands, value.op), value.op]
                elif id(value) in fragments:
                    result += fragments[id(value)]
                elif value.variable is not None:
                    result.append(Op(o.LOAD_FAST, value.variable, *place))
                # else: it lies on the stack already
            else:
                raise CannotSimplify("a container was not built")
        return result
