"""The loops of a comprehension, read from the graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...cfg.graph import Block
from ..errors import LIFT, CannotDecompile
from ..lift.spelling import negate, spelled
from ..lift.stack import (
    COMPREHENSIONS,
    LOAD,
    STORE,
    Accumulator,
    Element,
    Entry,
    Iter,
    PendingTarget,
    StackParameter,
    State,
    Target,
)
from ..nodes import IN_BRACKETS, nodes_of

if TYPE_CHECKING:
    from .fold_expressions import Reducer

#: What a comprehension builds, by the name of its function.
BUILDS = {
    "<listcomp>": "BUILD_LIST", "<setcomp>": "BUILD_SET", "<dictcomp>": "BUILD_MAP", "<genexpr>": "YIELD",
}
NO_ARGUMENTS = ast.arguments([], [], None, [], [], None, [])


def build_comprehension(
    build: str, element: Element, generators: list[ast.comprehension], iterable: Entry
) -> ast.expr:
    """Return the comprehension, with the iterable of its first loop put in."""
    if not isinstance(iterable, Iter):
        raise CannotDecompile(LIFT, "a comprehension over something else")
    first = generators[0]
    first = ast.comprehension(first.target, iterable.value, first.ifs, int(iterable.asynchronous))
    generators = [first, *generators[1:]]
    if isinstance(element, tuple):
        return IN_BRACKETS[ast.DictComp](element[0], element[1], generators)
    if build == "BUILD_LIST":
        return IN_BRACKETS[ast.ListComp](element, generators)
    if build == "BUILD_SET":
        return IN_BRACKETS[ast.SetComp](element, generators)
    return ast.GeneratorExp(element, generators)


def parse_loops(
    reducer: Reducer, head: int, stack: list[Entry], accumulator: Accumulator | None
) -> tuple[list[ast.comprehension], Element, int] | None:
    """Read the loops of a comprehension.

    Args:
        reducer: knows the graph.
        head: the head of its first loop.
        stack: the values on the symbolic stack there.
        accumulator: what the elements are added to; ``None`` for a generator expression.

    Returns:
        The ``for`` and ``if`` parts, the element (a key and a value for a dict), and the block after the loop;
        ``None`` if the loop does anything else.
    """
    parser = _Parser(reducer, list(stack), accumulator)
    if not parser.follow(head):
        return None
    generators = [each for loop in parser.loops if (each := loop.comprehension()) is not None]
    if len(generators) < len(parser.loops):  # (one does not store its item)
        return None
    return generators, parser.collected(generators), parser.exit


@dataclass
class _Loop:
    """A ``for`` of a comprehension, and the tests after it.

    Attributes:
        target: the target, or its receiver.
    """

    target: Target | ast.expr
    iterable: ast.expr
    asynchronous: bool = False
    ifs: list[ast.expr] = field(default_factory=list)

    def comprehension(self) -> ast.comprehension | None:
        target = self.target.target if isinstance(self.target, Target) else self.target
        if target is None:
            return None
        return ast.comprehension(target, self.iterable, self.ifs, int(self.asynchronous))


class _Parser:
    """Follows a comprehension from the head of its first loop until control is back at the head of its last.

    Attributes:
        loops: those found so far.
        exit: the block after the first loop.
    """

    def __init__(self, reducer: Reducer, stack: list[Entry], accumulator: Accumulator | None) -> None:
        self.reducer = reducer
        self.blocks = reducer.cfg.blocks
        self.executor = reducer.executor
        self.stack = stack
        self.accumulator = accumulator
        self.loops: list[_Loop] = []
        self.heads: list[int] = []
        self.exit = -1
        self.element: Element | None = None

    def follow(self, at: int) -> bool:
        """Return whether there is a comprehension at ``at`` and nothing else."""
        for _ in range(10000):
            if at in self.heads:
                return at == self.heads[-1]
            block = self.blocks[at]
            if block.end == "for":
                following = self.loop(at, block)
            elif async_head(self.reducer, block):
                following = self.async_loop(at, block)
            else:
                following = self.step(block)
            if following is None:
                return False
            at = following
        return False

    def loop(self, at: int, block: Block) -> int | None:
        """Take the head of a ``for``, and return the first block of its body."""
        state = State(self.stack)
        self.executor.run(state, block.ops)
        body, exit_ = block.successors
        return None if state.stmts or not self.enter(at, exit_, False) else body

    def async_loop(self, at: int, block: Block) -> int | None:
        """Take the head of an ``async for``, and return the first block of its body."""
        if not self.enter(at, async_exit(self.reducer, block), True):
            return None
        state = State(self.stack)
        self.executor.run(state, [op for op in block.ops if op.kind != "GET_ANEXT_AWAIT"])
        return None if state.stmts else block.successors[0]

    def enter(self, at: int, exit_: int, asynchronous: bool) -> bool:
        """Begin a loop over the iterator on the stack; false if that is none, or the loop is not the innermost."""
        iterator = self.stack[-1] if self.stack else None
        if not isinstance(iterator, Iter):
            return False
        if asynchronous != iterator.asynchronous and not isinstance(iterator.value, StackParameter):
            return False
        if self.heads and exit_ != self.heads[-1]:
            return False
        if not self.heads:
            self.exit = exit_
        target = Target()
        self.stack.append(PendingTarget(target))
        self.loops.append(_Loop(target, iterator.value, asynchronous))
        self.heads.append(at)
        return True

    def step(self, block: Block) -> int | None:
        """Run a block of the body, and return the one after it."""
        state = State(self.stack)
        self.executor.run(state, block.ops)
        if not all(map(self.take, state.stmts)):
            return None
        if block.end == "jump":
            return block.successors[0]
        if block.end != "branch" or not self.loops:
            return None
        test = self.executor.pop(state)
        t, f = block.successors
        if t == f and t != self.heads[-1]:  # (The compiler drops the jump of a constant.)
            always = ast.BoolOp(ast.Or(), [spelled(self.executor.scope, test), ast.Constant(True)])
            self.loops[-1].ifs.append(always)
            return t
        if f == self.heads[-1]:
            self.loops[-1].ifs.append(spelled(self.executor.scope, test, keyword="if "))
            return t
        if t == self.heads[-1]:
            self.loops[-1].ifs.append(spelled(self.executor.scope, negate(test), keyword="if "))
            return f
        return None

    def take(self, stmt: ast.stmt) -> bool:
        """Take a statement of the body that is part of the comprehension: the element, or a loop over one value."""
        if self.element is not None or not self.loops:
            return False
        if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1:
            # ``for y in [f(x)]`` is compiled as ``y = f(x)`` (compiler_sync_comprehension_generator, 3.9 and later)
            self.loops.append(_Loop(stmt.targets[0], ast.List([stmt.value], LOAD)))
        elif self.accumulator is None and isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Yield):
            self.element = stmt.value.value or ast.Constant(None)
        else:
            return False
        return True

    def collected(self, generators: list[ast.comprehension]) -> Element:
        """Return the element of the comprehension with these loops."""
        element = self.element if self.accumulator is None else self.accumulator.element
        if element is not None:
            return element
        # the compiler drops what follows an ``if False``
        generators[-1].ifs.append(ast.Constant(False))
        nothing = ast.Constant(None)
        is_mapping = self.accumulator is not None and self.accumulator.kind == "BUILD_MAP"
        return (nothing, nothing) if is_mapping else nothing


def name_dropped(
    generators: list[ast.comprehension], names: Sequence[str], cells: Sequence[str], inlined: bool = False
) -> None:
    """Write the variables that the comprehension had in code the compiler dropped, after its ``if False``.

    Args:
        generators: those that are left; changed if something was dropped.
        names: variables of the comprehension, as they are written.
        cells: those that functions in it share, or shared before these were dropped.
        inlined: it sets the variables aside, those of comprehensions in it too, unless it uses such a name itself.
    """
    last = generators[-1].ifs[-1:]
    if not (last and isinstance(last[0], ast.Constant) and last[0].value is False):
        return
    bound = {node.id for generator in generators for node in nodes_of(generator.target)
             if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    if inlined:
        generators[-1].ifs += [ast.Name(name, LOAD) for name in inner_variables(generators) if name not in names]
    targets: list[ast.expr] = [ast.Name(name, STORE) for name in dict.fromkeys(names) if name not in bound]
    closures: list[ast.expr] = [ast.Lambda(NO_ARGUMENTS, ast.Name(name, LOAD)) for name in cells]
    if targets:
        target = targets[0] if len(targets) == 1 else ast.Tuple(targets, STORE)
        generators.append(ast.comprehension(target, ast.Tuple([], LOAD), closures, 0))
    else:
        generators[-1].ifs += closures


def inner_variables(generators: list[ast.comprehension]) -> Iterator[str]:
    """Yield the variables of comprehensions that are inlined in the one with these loops."""
    pending: list[ast.AST] = [part for loop in generators for part in (loop.target, loop.iter, *loop.ifs)]
    pending.remove(generators[0].iter)  # (that is evaluated outside)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Lambda, ast.GeneratorExp)):
            continue
        if isinstance(node, COMPREHENSIONS):
            yield from (name.id for loop in node.generators for name in nodes_of(loop.target)
                        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store))
        pending += ast.iter_child_nodes(node)


def async_head(reducer: Reducer, block: Block) -> bool:
    """Return whether a block is the head of an ``async for``."""
    return block.handler is not None and reducer.cfg.kinds.get(block.handler) == "async for" and any(
        op.kind == "GET_ANEXT_AWAIT" for op in block.ops
    )


def async_exit(reducer: Reducer, block: Block) -> int:
    """Return the normal exit of an ``async for``: the block after its ``END_ASYNC_FOR``."""
    assert block.handler is not None
    return reducer.cfg.blocks[block.handler].successors[0]
