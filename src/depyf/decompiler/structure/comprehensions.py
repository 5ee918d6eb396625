"""The loops of a comprehension, read from the graph.

Changes with how the compiler lays out the loops and conditions of a comprehension or generator expression.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...cfg.graph import Block
from ..lift import COMPREHENSIONS, LOAD, STORE, Accumulator, Input, Iter, Slot, State, Target, Unliftable, negate
from ..nodes import DictComprehension, ListComprehension, SetComprehension
from ..trees import nodes_of

if TYPE_CHECKING:
    from .reduce import Reducer

#: What a comprehension builds, by the name of its function.
BUILDS = {
    "<listcomp>": "BUILD_LIST", "<setcomp>": "BUILD_SET", "<dictcomp>": "BUILD_MAP", "<genexpr>": "YIELD",
}
NO_ARGUMENTS = ast.arguments([], [], None, [], [], None, [])


def build_comprehension(
    build: str, element: Any, generators: list[ast.comprehension], iterable: Any
) -> ast.expr:
    """The comprehension, with the iterable of its first loop put in."""
    if not isinstance(iterable, Iter):
        raise Unliftable("a comprehension over something else")
    first = generators[0]
    first = ast.comprehension(first.target, iterable.value, first.ifs, int(iterable.asynchronous))
    generators = [first, *generators[1:]]
    if build == "BUILD_LIST":
        return ListComprehension(element, generators)
    if build == "BUILD_SET":
        return SetComprehension(element, generators)
    if build == "BUILD_MAP":
        return DictComprehension(element[0], element[1], generators)
    return ast.GeneratorExp(element, generators)


def parse_loops(
    reducer: Reducer, head: int, stack: list[Any], accumulator: Accumulator | None
) -> tuple[list[ast.comprehension], Any, int] | None:
    """The ``for`` and ``if`` parts of a comprehension whose first loop has its head at ``head``, its element (a key
    and a value for a dict), and the node behind the loop; ``None`` if the loop does anything else.

    Args:
        stack: the stack at the head, an iterator on top.
        accumulator: where on the stack elements are collected; ``None`` for a generator expression.
    """
    nodes = reducer.cfg.blocks
    machine = reducer.machine
    generators: list[ast.comprehension] = []
    exits: list[int] = []
    heads: list[int] = []
    stack = list(stack)
    at = head
    element: Any = None
    for _ in range(10000):
        node = nodes[at]
        asynchronous = False
        state = State(stack)
        if at in heads:
            if at != heads[-1]:
                return None
            break
        is_head = node.end == "for" or async_head(reducer, node)
        if is_head:
            asynchronous = node.end != "for"
            if asynchronous:
                exit_id = async_exit(reducer, node)
                body = node.successors[0]
            else:
                machine.run(state, node.ops)
                if state.stmts:
                    return None
                body, exit_id = node.successors
            if not stack or not isinstance(stack[-1], Iter):
                return None
            iterator = stack[-1]
            if asynchronous != iterator.asynchronous and not isinstance(iterator.value, Input):
                return None
            owner = Target()
            stack.append(Slot(owner))
            generators.append(ast.comprehension(owner, iterator.value, [], int(asynchronous)))  # type: ignore[arg-type]
            if len(heads) and reducer_follow(nodes, exit_id, asynchronous) != heads[-1]:
                return None
            heads.append(at)
            exits.append(exit_id)
            if asynchronous:
                # the rest of the node after GET_ANEXT_AWAIT
                machine.run(state, [op for op in node.ops if op.kind != "GET_ANEXT_AWAIT"])
                if state.stmts:
                    return None
            at = body
            continue
        machine.run(state, node.ops)
        for stmt in state.stmts:
            if element is not None or not generators:
                return None
            if isinstance(stmt, ast.Assign) and len(stmt.targets) == 1:
                # ``for y in [f(x)]`` is compiled as ``y = f(x)`` (compiler_sync_comprehension_generator, 3.9 and later)
                generators.append(ast.comprehension(stmt.targets[0], ast.List([stmt.value], LOAD), [], 0))
            elif accumulator is None and isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Yield):
                element = stmt.value.value or ast.Constant(None)
            else:
                return None
        if state.element is not None:
            return None
        stack = state.stack
        if node.end == "jump":
            at = node.successors[0]
        elif node.end == "branch":
            if not generators:
                return None
            test = machine.pop(state)
            t, f = node.successors
            if reducer_follow(nodes, f) == heads[-1]:
                generators[-1].ifs.append(test)
                at = t
            elif reducer_follow(nodes, t) == heads[-1]:
                generators[-1].ifs.append(negate(test))
                at = f
            else:
                return None
        else:
            return None
    else:
        return None
    for generator in generators:
        owner = generator.target  # type: ignore[assignment]
        if isinstance(owner, Target):
            if owner.target is None:
                return None
            generator.target = owner.target
    if accumulator is not None:
        element = accumulator.element
    if element is None:
        # the compiler drops what comes behind an ``if False``
        generators[-1].ifs.append(ast.Constant(False))
        nothing = ast.Constant(None)
        element = (nothing, nothing) if accumulator is not None and accumulator.kind == "BUILD_MAP" else nothing
    return generators, element, exits[0]


def name_dropped(
    generators: list[ast.comprehension], names: Sequence[str], cells: Sequence[str], inlined: bool = False
) -> None:
    """Say which variables the comprehension had in what the compiler dropped, behind its ``if False``.

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
    """Variables of comprehensions that are inlined in the one with these loops."""
    pending: list[ast.AST] = [part for loop in generators for part in (loop.target, loop.iter, *loop.ifs)]
    pending.remove(generators[0].iter)  # (that is evaluated outside)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Lambda, ast.GeneratorExp)):
            continue
        if isinstance(node, COMPREHENSIONS):
            yield from (found.id for loop in node.generators for found in nodes_of(loop.target)
                        if isinstance(found, ast.Name) and isinstance(found.ctx, ast.Store))
        pending += ast.iter_child_nodes(node)


def reducer_follow(nodes: dict[int, Block], id: int, asynchronous: bool = False) -> int:
    """Return where empty blocks from ``id`` on lead; the end of an ``async for`` is one that is not quite empty."""
    for _ in range(100):
        node = nodes[id]
        if node.end != "jump" or any(
            op.kind != "LEAVE" and not (asynchronous and op.kind == "END_ASYNC_FOR") for op in node.ops
        ):
            return id
        asynchronous = False
        id = node.successors[0]
    return id


def async_head(reducer: Reducer, node: Block) -> bool:
    return node.handler is not None and reducer.cfg.kinds.get(node.handler) == "async for" and any(
        op.kind == "GET_ANEXT_AWAIT" for op in node.ops
    )


def async_exit(reducer: Reducer, node: Block) -> int:
    """Return the normal exit of an ``async for``: what follows its ``END_ASYNC_FOR``."""
    return reducer.cfg.blocks[node.handler].successors[0]  # type: ignore[index]
