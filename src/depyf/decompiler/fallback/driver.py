"""Blocks, as statements of :mod:`.rules`, put together as nested dispatch loops.

While a handler runs (between ``PUSH_EXC_INFO`` and ``POP_EXCEPT``) ``sys.exc_info()``, bare ``raise`` and implicit
exception chaining must see the exception that is being handled, so that code has to be inside an ``except`` suite.
Blocks are therefore sorted by *level*, the number of exceptions being handled while they run, and the loop of level
``n + 1`` is inside the ``except`` suite of level ``n``::

    while True:
        try:
            while True:                       # level 0
                ...
        except BaseException as __exception:
            if __block in (3, 4):             # the blocks under the handler that starts at block 7
                __s1 = __exception
                __block = 7
            else:
                raise
            while True:                       # level 1: block 7 and what follows, up to POP_EXCEPT
                ...
"""

from __future__ import annotations

import ast
import itertools

from ... import budgets
from ...bytecode import operations as o
from ...bytecode.canonical import canonicalise
from ...bytecode.code import CO_ASYNC_GENERATOR, Code
from ...bytecode.operations import Op
from ...cfg import graph as g
from ...cfg.graph import Block, Cfg, build
from ..errors import FALLBACK, CannotDecompile
from ..lift.stack import LOAD, STORE, Entry, FunctionExpr, Special, State
from ..nodes import BuildClassName
from ..scopes import CodeScope
from .helpers import SOURCES, helper
from .rules import LASTI, LOCAL, RAISE_AGAIN, SlotExecutor

#: The number of the block after the end of a module or class.
_END = -1


def dispatch_loop(code: Code, scope: CodeScope) -> list[ast.stmt]:
    """Return the body of a scope as a dispatch loop."""
    graph = scope.options.graph(code)
    if graph is None:
        graph = build(canonicalise(code))
    if too_many := budgets.DISPATCHED.exceeded(sum(len(block.ops) for block in graph.blocks.values())):
        raise CannotDecompile(FALLBACK, too_many)
    return _Loop(graph, scope).body()


# --- levels ------------------------------------------------------------------------------------------
def cut(graph: Cfg) -> tuple[Cfg, list[list[Block]]]:
    """Return a graph in which each block runs at one exception level, and its blocks by level.

    ``PUSH_EXC_INFO`` raises the level (it begins its block, and counts for that), and ``POP_EXCEPT`` lowers it.
    """
    graph = graph.copy()
    for block in [*graph.blocks.values()]:
        cuts = {index for index, op in enumerate(block.ops) if op.kind is o.PUSH_EXC_INFO}
        cuts |= {index + 1 for index, op in enumerate(block.ops) if op.kind is o.POP_EXCEPT}
        for index in sorted(cuts, reverse=True):
            graph.split(block.id, index)
    levels = _levels(graph)
    by_level: list[list[Block]] = [[] for _ in range(1 + max(levels.values()))]
    for block in graph.blocks.values():
        if block.id in levels:
            by_level[levels[block.id]].append(block)
    return graph, by_level


def _levels(graph: Cfg) -> dict[int, int]:
    """Return the level of each block that can be reached; where edges merge, the lowest counts."""
    levels: dict[int, int] = {}
    pending = [(graph.entry, 0)]
    while pending:
        id, level = pending.pop()
        block = graph.blocks[id]
        level += _enters(block)
        if levels.get(id, level + 1) <= level:
            continue
        levels[id] = level
        if block.handler is not None and (block.ops or block.end != g.JUMP):  # (a jump alone cannot raise)
            pending.append((block.handler, level))
        leaves = bool(block.ops) and block.ops[-1].kind is o.POP_EXCEPT
        if leaves > level:
            raise CannotDecompile(FALLBACK, "the handling of an exception ends where none is handled")
        if any(_enters(graph.blocks[successor]) for successor in block.successors):
            raise CannotDecompile(FALLBACK, "the handling of an exception begins where none was raised")
        pending += [(successor, level - leaves) for successor in block.successors]
    return levels


def _enters(block: Block) -> bool:
    return bool(block.ops) and block.ops[0].kind is o.PUSH_EXC_INFO


class _Loop:
    """One code object as a dispatch loop."""

    def __init__(self, graph: Cfg, scope: CodeScope) -> None:
        self.graph, self.levels = cut(graph)
        self.namespace = scope.kind in ("module", "class")
        if self.namespace:
            scope.annotate = None  # (3.14: a function like any other here)
        #: The number of each block, its value of ``__block``; those of a level are consecutive.
        self.number = {block.id: number for number, block in enumerate(itertools.chain(*self.levels))}
        ops = [op for block in graph.blocks.values() for op in block.ops]
        self.executor = SlotExecutor(scope, _free_prefix(graph.code, ops, self.namespace), ops)
        self.block = self.executor.name("block")
        #: By block: the stack before it, and its statements.
        self.stacks: dict[int, list[Entry]] = {}
        self.statements: dict[int, list[ast.stmt]] = {}
        self.future: list[ast.stmt] = []

    # --- blocks -----------------------------------------------------------------------------------
    def translate(self) -> None:
        """Write the statements of all blocks."""
        pending: list[tuple[int, list[Entry]]] = [(self.graph.entry, [])]
        while pending:
            id, stack = pending.pop()
            if id in self.stacks:
                if [*map(_contents, stack)] != [*map(_contents, self.stacks[id])]:
                    raise CannotDecompile(FALLBACK, "what is on the stack depends on the way to a block")
                continue
            self.stacks[id] = stack
            block = self.graph.blocks[id]
            if (region := block.region) is not None and region.handler in self.number:
                # (The end of a handler is still under its clean-up up to 3.10, where nothing can raise any more.)
                missing = [ast.Name(self.executor.slot(place), LOAD) for place in range(len(stack), region.depth)]
                caught: list[Entry] = [*stack[: region.depth], *missing, *[LASTI] * region.lasti]
                caught.append(ast.Name(self.executor.slot(len(caught)), LOAD))
                pending.append((region.handler, caught))
            state = State([*stack])
            self.executor.run(state, block.ops)
            pending += self.end(block, state)
            self.future += [
                each for each in state.stmts if isinstance(each, ast.ImportFrom) and each.module == "__future__"]
            self.statements[id] = [stmt for stmt in state.stmts if stmt not in self.future]

    def end(self, block: Block, state: State) -> list[tuple[int, list[Entry]]]:
        """Write how a block ends; return where control goes, with the stack there."""
        executor, targets = self.executor, block.successors
        go: list[ast.expr] = [ast.Constant(self.number[target]) for target in targets]
        if block.end == g.JUMP:
            executor.settle(state)
            executor.assign(state, self.block, go[0])
        elif block.end == g.BRANCH:
            test = executor.pop(state)
            executor.settle(state)
            executor.assign(state, self.block, ast.IfExp(test, *go))
        elif block.end == g.FOR_ITER:
            executor.write(state, Op(o.FOR_ITER), "{1} = {py}.next({0}, {unbound})")
            item = ast.Name(executor.slot(len(state.stack) - 1), LOAD)
            ended = ast.Compare(item, [ast.Is()], [ast.Name(executor.name("unbound"), LOAD)])
            executor.assign(state, self.block, ast.IfExp(ended, go[1], go[0]))
            return [(targets[0], state.stack), (targets[1], state.stack[:-2])]
        elif block.end == g.RETURN:
            self.finish(state)
        elif block.end == g.RAISE:
            raised = executor.popn(state, block.arg)
            executor.emit(state, ast.Raise(*raised))
        else:
            executor.write(state, Op(o.RERAISE, 0), RAISE_AGAIN)
        return [(target, state.stack) for target in targets]

    def finish(self, state: State) -> None:
        """Write the end of the code."""
        entry = state.pop()
        if self.namespace:
            self.executor.emit(state, _assign(self.block, ast.Constant(_END)))
        elif self.graph.code.flags & CO_ASYNC_GENERATOR:  # it only ever returns None, and must not say so
            self.executor.emit(state, ast.Return(None))
        else:
            self.executor.emit(state, ast.Return(self.executor.value(entry)))

    # --- loops ------------------------------------------------------------------------------------
    def body(self) -> list[ast.stmt]:
        """Return the statements of the whole."""
        self.translate()
        entry = self.graph.blocks[self.graph.entry]
        if len(self.statements) == 1 and not entry.successors and entry.region is None:
            return self.whole(self.statements[entry.id])
        body = [_assign(self.block, ast.Constant(self.number[entry.id])), *self.loop(0)]
        return self.whole(body)

    def loop(self, level: int) -> list[ast.stmt]:
        """Return the loop of the blocks of a level, and of those above it."""
        blocks = self.levels[level]
        leave: list[ast.stmt] = []
        if level or self.namespace:
            leave = [self.leave(blocks)]
        # Blocks of this level that can raise into a handler, by their regions (one a handler).
        raising: dict[int, list[Block]] = {}
        for block in blocks:
            if block.handler in self.number:
                raising.setdefault(block.handler, []).append(block)
        if not raising:
            return [_forever([*leave, *self.cases(blocks)])]
        exception = self.executor.name("exception")
        chosen: list[ast.stmt] = [ast.Raise()]
        for handler, origins in raising.items():
            top = len(self.stacks[handler]) - 1
            caught = [_assign(self.executor.slot(top), ast.Name(exception, LOAD)),
                      _assign(self.block, ast.Constant(self.number[handler]))]
            if top and self.stacks[handler][-2] is LASTI:
                caught.insert(0, _assign(self.executor.slot(top - 1), ast.Constant(None)))
            numbers = ast.Tuple([ast.Constant(self.number[block.id]) for block in origins], LOAD)
            chosen = [ast.If(ast.Compare(ast.Name(self.block, LOAD), [ast.In()], [numbers]), caught, chosen)]
        if level + 1 < len(self.levels):
            chosen += self.loop(level + 1)
        inner = _forever([self.leave(blocks), *self.cases(blocks)])
        every = ast.Attribute(ast.Name(self.executor.name("py"), LOAD), "BaseException", LOAD)
        clause = ast.ExceptHandler(every, exception, chosen)
        return [_forever([ast.Try([inner], [clause], [], []), *leave])]

    def leave(self, blocks: list[Block]) -> ast.stmt:
        """Return the statement that leaves the loop of these blocks for another block."""
        first, last = (ast.Constant(self.number[block.id]) for block in (blocks[0], blocks[-1]))
        inside = ast.Compare(first, [ast.LtE(), ast.LtE()], [ast.Name(self.block, LOAD), last])
        return ast.If(ast.UnaryOp(ast.Not(), inside), [ast.Break()], [])

    def cases(self, blocks: list[Block]) -> list[ast.stmt]:
        """Return blocks as a binary tree of ``if`` with a small depth."""
        if len(blocks) == 1:
            return self.statements[blocks[0].id]
        half = len(blocks) // 2
        middle = ast.Constant(self.number[blocks[half].id])
        is_first = ast.Compare(ast.Name(self.block, LOAD), [ast.Lt()], [middle])
        return [ast.If(is_first, self.cases(blocks[:half]), self.cases(blocks[half:]))]

    def whole(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Return the loop with the imports, variables and helpers that it uses."""
        name, words = self.executor.name, self.executor.words
        first = f"import builtins as {name('py')}\n"
        if "unbound" in words:
            first += f"{name('unbound')} = {name('py')}.object()\n"
        if "names" in words:
            first += f"{name('names')} = {{}}\n"
        helpers = [word for word in SOURCES if word in words]
        before = ast.parse(first).body + [helper(word, name(word)) for word in helpers]
        if not self.namespace:
            return before + body
        # The loop's variables are deleted in the end. (An ``except`` and a comprehension delete theirs.)
        variables = sorted(name(word) for word in words.difference(helpers, ("py", "unbound", "exception"))
                           if not word.startswith(LOCAL))
        before += ast.parse(f"{' = '.join(variables)} = None").body
        deleted = [*variables, *(name(word) for word in ("py", "unbound", *helpers) if word in words)]
        return [*self.future, *before, *body, *ast.parse(f"del {', '.join(deleted)}").body]


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, STORE)], value)


def _forever(body: list[ast.stmt]) -> ast.stmt:
    return ast.While(ast.Constant(True), body, [])


def _contents(entry: Entry) -> object:
    """Return what must be the same of an entry wherever control comes from: all but what is in a variable."""
    if isinstance(entry, FunctionExpr):
        return entry.code
    if isinstance(entry, Special) and entry is not LASTI:
        return entry.kind, entry.value
    return isinstance(entry, BuildClassName)


def _free_prefix(code: Code, ops: list[Op], namespace: bool) -> str:
    """Return a prefix for the loop's names that no name of the code or of a pass begins with."""
    names = {*code.names, *code.varnames, *code.cellvars, *code.freevars}
    names |= {op.arg for op in ops if type(op.arg) is str}
    prefix = "__loop_" if namespace else "__"
    while any(name.startswith(prefix) and (namespace or not name.endswith("__")) for name in names):
        prefix += "_"
    return prefix
