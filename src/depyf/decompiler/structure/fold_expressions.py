"""Control flow inside expressions, folded into the block that computes the expression.

``and``, ``or``, ``x if c else y``, chained comparisons, conditions made of several tests, and (3.12 on)
inlined comprehensions are small graphs in the bytecode.  :func:`reduce` looks for them from the inside
out; each one found becomes one operation of the block above it (``AND``, ``OR``, ``IFEXP``, ``CHAIN``,
``COMPREHENSION``; see :mod:`depyf.decompiler.lift`), until nothing is found any more.
"""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING, Any

from ...bytecode.operations import Op, effect
from ...cfg.graph import Block, reachable
from ..errors import CannotDecompile
from ..lift.executor import SymbolicExecutor
from ..lift.spelling import negate
from ..lift.stack import Accumulator, Duplicate, Iter, StackParameter, State
from ..names import is_name
from .analysis import RegionCfg, copied_op, same_op
from .comprehensions import async_head, build_comprehension, name_dropped, parse_loops

if TYPE_CHECKING:
    from ..bodies import Body


class Summary:
    """A block evaluated separately: whether it is pure, its results on the stack, how many values it takes."""

    __slots__ = ("inputs", "pure", "stack")

    def __init__(self, pure: bool, stack: list[Any], inputs: int) -> None:
        self.pure = pure
        self.stack = stack
        self.inputs = inputs


#: ``(popped, pushed)`` of the operations written here
FOLDED = {
    "AND": (1, 1), "OR": (1, 1), "NOT_AND": (1, 1), "NOT_OR": (1, 1), "IFEXP": (1, 1), "NOT_IFEXP": (1, 1),
    "CHAIN": (2, 1), "VALUE_AND": (1, 1), "VALUE_OR": (1, 1), "COMPREHENSION": (2, 1), "LEAVE": (0, 0), "EXPR": (0, 1),
}
#: Operations that put variables of an inlined comprehension aside.
SET_ASIDE = frozenset({"LOAD_FAST_AND_CLEAR", "MAKE_CELL"})
_IMPURE = Summary(False, [], 0)
#: Operations that may leave a comparison on top of the stack.
_COMPARING = frozenset({"COMPARE", "IS", "IN", "CHAIN", "POP", "SWAP", "ROT"})
#: ends of blocks that the compiler copies
_COPIED = ("jump", "return", "raise")


def fold_expressions(body: Body) -> None:
    """Fold the control flow of expressions into the blocks that compute them."""
    body.reducer = Reducer(body.cfg, body.executor, body.scope.kind == "lambda")
    body.reducer.run()


class Reducer:
    """Folds the control flow of expressions in a graph, from the inside out.

    Attributes:
        preds: predecessors of each block, updated with the graph.
        cache: the summary of each block.
        fixed: blocks that other passes refer to; never removed.
    """

    def __init__(self, cfg: RegionCfg, executor: SymbolicExecutor, is_lambda: bool) -> None:
        self.cfg = cfg
        self.executor = executor
        self.is_lambda = is_lambda
        self.cache: dict[int, Summary] = {}
        self.preds = cfg.predecessors()
        self.fixed = set(cfg.ends.values()) | {
            cfg.blocks[r].successors[0] for r in cfg.resumes if r in cfg.blocks
        }

    # --- bookkeeping ------------------------------------------------------------------------------
    def single(self, id: int) -> bool:
        """Return whether only one edge leads to a block."""
        return len(self.preds[id]) == 1 and id != self.cfg.entry

    def changed(self, block: Block, succs: list[int], end: str) -> None:
        """Give a block new successors, and drop blocks that only it led to."""
        before = block.successors
        for succ in succs:
            self.preds[succ].append(block.id)
        block.successors, block.end = succs, end
        self.cache.pop(block.id, None)
        work = [(block.id, succ) for succ in before]
        while work:
            source, succ = work.pop()
            preds = self.preds[succ]
            preds.remove(source)
            if not preds and succ != self.cfg.entry:
                gone = self.cfg.blocks.get(succ)
                if gone is not None and not self.is_handler(succ):
                    del self.cfg.blocks[succ]
                    work.extend((succ, s) for s in gone.successors)

    def is_handler(self, id: int) -> bool:
        """Return whether a block begins a handler."""
        return id in self.cfg.kinds

    def summary(self, id: int) -> Summary:
        """Return the summary of a block."""
        result = self.cache.get(id)
        if result is None:
            block = self.cfg.blocks[id]
            state = State(parameters=True)
            try:
                self.executor.run(state, block.ops, to_statement=True)
                if state.stmts or state.queue:
                    result = _IMPURE
                else:
                    result = Summary(True, state.stack, state.underflow)
            except CannotDecompile:
                result = _IMPURE
            self.cache[id] = result
        return result

    def value(self, id: int) -> ast.expr | None:
        """Return the expression, if all a block does is to push one."""
        summary = self.summary(id)
        if summary.pure and not summary.inputs and len(summary.stack) == 1:
            try:
                return self.executor.resolve(summary.stack[0])
            except CannotDecompile:
                return None
        return None

    # --- the loop ---------------------------------------------------------------------------------
    def run(self) -> None:
        """Fold until nothing is found any more."""
        blocks = self.cfg.blocks
        rounds = 0
        again = len(blocks) > 1
        order = self.cfg.order
        while again and rounds < 200:
            again = False
            rounds += 1
            for id in sorted(blocks, key=order.__getitem__, reverse=True):
                block = blocks.get(id)
                if block is None:
                    continue
                turns = 0
                while turns < 10000 and blocks.get(id) is block and self.step(block):
                    again = True
                    turns += 1
            again = again or self.merge_tests()

    def merge_tests(self) -> bool:
        """Merge copies of a loop's test, before the loop and at its end, and return whether there were any.

        Here only those are left that have conditions inside, which were not expressions until they were folded. The
        test begins the block that both copies lead to.
        """
        blocks, order = self.cfg.blocks, self.cfg.order
        for id, head in blocks.items():
            preds = self.preds[id]
            if len(preds) < 2 or blocks[preds[0]].end != "jump":
                continue
            sources = [blocks[pred] for pred in preds]
            places = [order[pred] for pred in preds]
            if not min(places) < order[id] < max(places) or any(
                    b.end != "jump" or b.handler != head.handler for b in sources):
                continue
            size = min(self.common_expressions(sources[0], block) for block in sources[1:])
            if size:
                head.ops = sources[0].ops[len(sources[0].ops) - size :] + head.ops
                for block in sources:
                    block.ops = block.ops[: len(block.ops) - size]
                    self.cache.pop(block.id, None)
                self.cache.pop(id, None)
                return True
        return False

    def common_expressions(self, a: Block, b: Block) -> int:
        """Return the length of the longest common end of two blocks that is whole expressions, one with a condition."""
        size = longest = depth = 0
        folded = False
        for x, y in zip(reversed(a.ops), reversed(b.ops)):
            if x.kind != y.kind or x.line != y.line or not same_argument(x.arg, y.arg):
                break
            size += 1
            folded = folded or x.kind in FOLDED
            popped, pushed = effect_of(x)
            depth = depth + pushed - popped
            if folded and depth > 0 and self.only_values(a.ops[len(a.ops) - size :], depth):
                longest = size
        return longest

    def only_values(self, ops: list[Op], count: int) -> bool:
        """Return whether operations do nothing but push values."""
        state = State(parameters=True)
        try:
            self.executor.run(state, ops, to_statement=True)
        except CannotDecompile:
            return False
        return not (state.stmts or state.queue or state.underflow) and len(state.stack) == count

    def step(self, block: Block) -> bool:
        """Fold an expression that ends in a block, if any does."""
        if block.end == "branch":
            if block.ops and is_copied(block.ops[-1]):  # (a value, not only a test)
                return (
                    self.chain(block) or self.value_bool(block) or self.ternary(block) or self.condition(block)
                    or self.value_bool_threaded(block)
                )
            return self.chain(block) or self.ternary(block) or self.condition(block) or self.value_condition(block)
        if block.end == "jump":
            return (async_head(self, block) and self.comprehension(block)) or self.merge(block)
        if block.end == "for":
            return self.comprehension(block)
        return False

    def merge(self, block: Block) -> bool:
        """Join a block with the only one that leads to it."""
        succ = block.successors[0]
        if succ == block.id or not self.single(succ) or self.is_handler(succ) or succ in self.fixed:
            return False
        if self.cfg.kinds.get(block.id) in ("with", "async for"):
            return False
        other = self.cfg.blocks[succ]
        # (An empty block belongs to the region of its neighbour.)
        if other.handler != block.handler and (block.ops or other.end == "for"):
            return False
        if block.ops:
            last = block.ops[-1]
            if last.kind in ("POP_EXCEPT", "LEAVE") or (last.kind == "POP" and last.arg == "iterator"):
                return False
        if other.end == "for" and len(self.preds[succ]) > 1:
            return False
        if not block.ops:
            block.region = other.region
        block.ops = block.ops + other.ops
        if other.line is not None:
            block.line = other.line
        block.end_op = other.end_op
        block.arg = other.arg
        succs = list(other.successors)
        end = other.end
        self.changed(block, succs, end)
        return True

    # --- conditions -------------------------------------------------------------------------------
    def condition(self, x: Block) -> bool:
        """Fold ``a and b``, ``a or b`` as a condition: two tests that share a successor."""
        t, f = x.successors
        blocks = self.cfg.blocks
        if t == f or "branch" not in (blocks[t].end, blocks[f].end):
            return False
        if x.ops and x.ops[-1].kind in _COMPARING and self.single(x.id) and continues_chain(self.summary(x.id)):
            return False  # the second half of a chained comparison: that comes first
        for y_id, on in ((t, True), (f, False)):
            if y_id == x.id or not self.single(y_id) or (tests_case(x) and not on):
                continue
            if self.second_test(x, blocks[y_id], on, f if on else t):
                return True
        return self.condition_ternary(x)

    def second_test(self, x: Block, y: Block, on: bool, other: int) -> bool:
        """Fold the test ``y`` into ``x``, whose edge for ``on`` leads to it, if both lead to ``other``."""
        if y.end != "branch" or y.handler != x.handler:
            return False
        self.unify_return(x, y, other)
        yt, yf = y.successors
        if other not in (yt, yf) or yt == yf:
            return False
        test = self.value(y.id)
        if test is None or y.ops[-1].kind == "COPY":
            return False
        x_folds, y_folds = self.folds_not(x), self.folds_not(y)
        if other == (yf if on else yt):
            self.fold(x, "AND" if on else "OR", test, y, [yt, yf])
        elif x_folds and y_folds:
            return False  # one of them would have to be negated: these are two statements
        elif on:
            if y_folds:
                self.fold(x, "NOT_OR", test, y, [yt, yf])
            else:
                self.fold(x, "AND", negate(test), y, [yf, yt])
        elif x_folds:
            self.fold(x, "OR", negate(test), y, [yf, yt])
        else:
            self.fold(x, "NOT_AND", test, y, [yt, yf])
        return True

    def folds_not(self, block: Block) -> bool:
        """Return whether a ``not`` would change the test a block ends with: it is folded into ``in`` and ``is``.

        A jump on ``None`` is the same operations in either sense.
        """
        if not block.ops or block.ops[-1].kind not in ("IN", "IS") or self.executor.scope.code.version >= (3, 14):
            return False
        before = block.ops[-2] if len(block.ops) > 1 else None
        return block.ops[-1].kind == "IN" or before is None or before.kind != "CONST" or before.arg is not None

    def unify_return(self, x: Block, y: Block, other: int) -> None:
        """Lead an edge of ``y`` to a copy of ``other``, one ``return None`` for tests on one line, to that.

        The tests may be on several lines if the ``return`` is implicit: it has the line of the test then, and
        follows what the test leads to. (Where no lines are known, it is taken to be implicit.)
        """
        if other in y.successors:
            return
        blocks, order = self.cfg.blocks, self.cfg.order
        if blocks[other].end != "return":
            return
        may_be_implicit = order[other] > order[y.id] and blocks[other].line in lines_of(x)
        for copy in y.successors:
            goal = blocks[copy]
            if goal.end == "return" and len(goal.ops) <= 1 and self.cfg.is_duplicate(copy, other) and (
                goal.handler == blocks[other].handler
            ) and (y.line == x.line is not None or may_be_implicit and goal.line in lines_of(y)
                   and returns_nothing(goal) and order[copy] == max(map(order.__getitem__, y.successors))):
                self.changed(y, [other if succ == copy else succ for succ in y.successors], "branch")
                return

    def fold(self, x: Block, kind: str, arg: Any, y: Block, succs: list[int]) -> None:
        """Make one operation of the tests in two blocks."""
        x.ops = [*x.ops, Op(kind, arg, -1, y.line)]
        x.line = y.line if y.line is not None else x.line
        x.end_op = y.end_op
        self.changed(x, succs, "branch")

    def condition_ternary(self, x: Block) -> bool:
        """Fold ``(b if a else c)`` as a condition."""
        t, f = x.successors
        if not self.single(t) or not self.single(f) or tests_case(x):
            return False
        a, b = self.cfg.blocks[t], self.cfg.blocks[f]
        if a.end != "branch" or b.end != "branch" or a.handler != x.handler or b.handler != x.handler:
            return False
        is_opposite = a.successors == b.successors[::-1] and (x.line is None or on_one_line(x, a, b))
        if a.successors != b.successors and not is_opposite and not all(
                map(self.is_copy, a.successors, b.successors)):
            return False
        first, second = self.value(t), self.value(f)
        if first is None or second is None:
            return False
        succs = list(a.successors)
        if is_opposite:  # (``not b if a else c``: what follows the tests is where the condition is true)
            order = self.cfg.order
            after = [succ for succ in succs if order[succ] > max(order[t], order[f])]
            if min(after, key=order.__getitem__, default=succs[0]) == succs[0]:
                second = negate(second)
            else:
                first, succs = negate(first), succs[::-1]
        self.fold(x, *self.choice(x, (t, first), (f, second)), b, succs)
        return True

    def choice(self, x: Block, *arms: tuple[int, ast.expr]) -> tuple[str, tuple[ast.expr, ast.expr]]:
        """Return kind and argument of the operation that chooses between two arms, each a block and its value.

        The arm whose code comes first is written first (``compiler_ifexp`` in compile.c).

        Args:
            x: ends in the test.
            arms: where it is true, and where it is false.
        """
        (t, first), (f, second) = arms
        if self.cfg.order[f] < self.cfg.order[t] and not self.folds_not(x):
            return "NOT_IFEXP", (second, first)
        return "IFEXP", (first, second)

    def is_copy(self, a: int, b: int) -> bool:
        """Return whether both are one place, or copies of one (on one line, leading to one place)."""
        one, other = self.cfg.blocks[a], self.cfg.blocks[b]
        return a == b or (
            one.end == other.end and one.end in _COPIED and one.successors == other.successors
            and one.handler == other.handler
            and bool(one.ops) and len(one.ops) == len(other.ops) and all(map(copied_op, one.ops, other.ops))
        )

    def value_bool(self, x: Block) -> bool:
        """Fold ``a and b``, ``a or b`` as a value: ``COPY 1; BRANCH; POP; b``."""
        t, f = x.successors
        blocks = self.cfg.blocks
        for y_id, join, kind in ((t, f, "VALUE_AND"), (f, t, "VALUE_OR")):
            if not self.single(y_id):
                continue
            y = blocks[y_id]
            if blocks[join].ops[:1] and blocks[join].ops[0].kind == "POP":
                self.share_end(y, blocks[join], 0)
            if y.end != "jump" or y.successors[0] != join or y.handler != x.handler:
                if not (y.end == blocks[join].end == "return" and not blocks[join].ops):
                    continue
            if not y.ops or y.ops[0].kind != "POP":
                continue
            summary = self.summary(y_id)
            if not summary.pure or summary.inputs != 1 or len(summary.stack) != 1:
                continue
            try:
                right = self.executor.resolve(summary.stack[0])
            except CannotDecompile:
                continue
            if isinstance(right, StackParameter):
                continue
            x.ops = [*x.ops[:-1], Op(kind, right, x.ops[-1].offset, x.ops[-1].line)]
            self.changed(x, [join], "jump")
            return True
        return False

    def value_bool_threaded(self, x: Block) -> bool:
        """Fold ``(a and b) or c`` as a value, where the test of ``a`` jumps to ``POP; c`` at once (3.14).

        Versions before let it test the value of ``a and b`` again before they go there. In the middle of an expression
        they jump, too.
        """
        t, f = x.successors
        blocks = self.cfg.blocks
        for y_id, other, kind, edge in ((t, f, "AND", 1), (f, t, "OR", 0)):
            y = blocks[y_id]
            if not self.single(y_id) or y.end != "branch" or y.handler != x.handler or y.successors[edge] != other:
                continue
            if len(y.ops) < 3 or y.ops[0].kind != "POP" or y.ops[-1].kind != "COPY" or y.ops[-1].arg != 1:
                continue
            if [op.kind for op in blocks[other].ops[:1]] != ["POP"] and not self.goes_on_elsewhere(
                    y.successors[1 - edge]):
                continue
            summary = self.summary(y_id)
            if summary.inputs != 1:
                continue
            right = self.tested(summary)
            if right is None:
                continue
            x.ops = [*x.ops[:-1], Op(kind, right, -1, None), y.ops[-1]]
            self.changed(x, list(y.successors), "branch")
            return True
        return False

    def value_condition(self, x: Block) -> bool:
        """Fold ``(a and b) or c`` as a value: the test of ``a`` jumps straight to ``c``."""
        t, f = x.successors
        blocks = self.cfg.blocks
        for y_id, other, on in ((t, f, True), (f, t, False)):
            if not self.single(y_id):
                continue
            y = blocks[y_id]
            if y.end != "branch" or y.handler != x.handler or not y.ops:
                continue
            if y.ops[-1].kind != "COPY" or y.ops[-1].arg != 1:
                continue
            kind = "AND" if on else "OR"
            if not self.drops(y.successors[1] if on else y.successors[0], other):
                # 3.10 turns the test for ``None`` round
                if not x.ops or x.ops[-1].kind != "IS" or not self.drops(y.successors[0 if on else 1], other):
                    continue
                kind = "OR" if on else "AND"
            summary = self.summary(y_id)
            if summary.inputs:
                continue
            right = self.tested(summary)
            if right is None:
                continue
            if kind != ("AND" if on else "OR"):
                test = x.ops[-1]
                x.ops = [*x.ops[:-1], Op("IS", not test.arg, test.offset, test.line)]
            x.ops = [*x.ops, Op(kind, right, -1, None), y.ops[-1]]
            self.changed(x, list(y.successors), "branch")
            return True
        return False

    def drops(self, id: int, goal: int) -> bool:
        """Return whether a block has one edge to it, only drops a value, and goes on to ``goal``."""
        block = self.cfg.blocks[id]
        only_drops = block.end == "jump" and [op.kind for op in block.ops] == ["POP"]
        return self.single(id) and only_drops and block.successors == [goal]

    def goes_on_elsewhere(self, id: int) -> bool:
        """Return whether a value is only dropped here, and other edges lead to the next operations, too.

        So it is with ``b`` in ``(a or (c and d)) and b``, where the tests of ``a`` and of ``d`` jump to it (3.10, 3.11,
        3.14).
        """
        block = self.cfg.blocks[id]
        if [op.kind for op in block.ops[:1]] != ["POP"]:
            return False
        return not self.single(id) or (
            block.end == "jump" and len(block.ops) == 1 and not self.single(block.successors[0]))

    def tested(self, summary: Summary) -> ast.expr | None:
        """Return the value, if a block does no more than push one twice: once for the test, once as the result."""
        if not summary.pure or len(summary.stack) != 2:
            return None
        shared = summary.stack[0]
        if not isinstance(shared, Duplicate) or summary.stack[1] is not shared:
            return None
        try:
            return shared.value if isinstance(shared.value, ast.expr) else self.executor.resolve(shared.value)
        except CannotDecompile:
            return None

    def ternary(self, x: Block) -> bool:
        """Fold ``b if a else c`` as a value: two blocks that only push one, and meet."""
        t, f = x.successors
        if t == f or not self.single(t) or not self.single(f) or tests_case(x):
            return False
        a, b = self.cfg.blocks[t], self.cfg.blocks[f]
        if a.handler != x.handler or b.handler != x.handler:
            return False
        if a.end == b.end and a.end in ("return", "raise") and a.arg == b.arg and self.common_tail(x, a, b):
            return self.ternary(x)
        if not self.arms_merge(x, a, b):
            return False
        first = self.value(t)
        second = None if first is None else self.value(f)
        if first is None or second is None:
            return a.end == b.end == "jump" and self.common_tail(x, a, b) and self.ternary(x)
        kind, values = self.choice(x, (t, first), (f, second))
        x.ops = [*x.ops, Op(kind, values, -1, None)]
        x.line, x.end_op = b.line, b.end_op
        self.changed(x, list(a.successors), a.end)
        return True

    def arms_merge(self, x: Block, a: Block, b: Block) -> bool:
        """Return whether two arms lead to one place, or return from one."""
        if a.end == b.end == "jump":
            return a.successors == b.successors
        if a.end == b.end == "return":
            # (``if c: pass`` on one line, at the end of a function: ``return None if c else None`` is never written)
            is_one = a.line is not None and a.line == b.line == x.line and self.returns_once(a, b)
            return self.is_lambda or not (returns_nothing(a) and returns_nothing(b)) and (
                is_one or self.is_one_operation(a.end_op, b.end_op))
        # one arm's RETURN may be a copy of the RETURN the other one jumps to
        jumping, returning = (a, b) if a.end == "jump" else (b, a)
        if jumping.end != "jump" or returning.end != "return":
            return False
        target = self.cfg.blocks[jumping.successors[0]]
        return target.end == "return" and not target.ops and (self.is_lambda or target.line == returning.line)

    def returns_once(self, a: Block, b: Block) -> bool:
        """Return whether two ``RETURN`` may be copies of one: in ``if c: return 1`` on one line they have two spans."""
        one, other = (self.executor.scope.position(each.end_op.offset) if each.end_op else None for each in (a, b))
        return one is None or other is None or one == other

    def is_one_operation(self, a: Op | None, b: Op | None) -> bool:
        """Return whether two operations are known to be copies of one, by their span."""
        if a is None or b is None or a.kind in ("CONST", "LOAD_FAST", "POP"):
            return False
        one, other = (self.executor.scope.position(op.offset) for op in (a, b))
        return one is not None and one.column is not None and one == other and a.kind == b.kind

    def common_tail(self, x: Block, a: Block, b: Block) -> bool:
        """Make the end that two arms share (a copied exit, on one line) a block of its own.

        ``f(x if c else y)`` before a ``return`` or in a ``raise``: each arm has the call, too.
        """
        if not (self.reaches_below(a) and self.reaches_below(b)) and not on_one_line(x, a, b) and not any(
                map(self.is_one_operation, reversed(a.ops), reversed(b.ops))):
            return False
        size = 0
        for p, q in zip(reversed(a.ops), reversed(b.ops)):
            if not self.is_copied_end(p, q):
                break
            size += 1
        if a.line != b.line:
            return False
        while size or a.end == "raise":
            if self.only_value(a.ops[: len(a.ops) - size]) and self.only_value(b.ops[: len(b.ops) - size]):
                first, second = a.ops[: len(a.ops) - size], b.ops[: len(b.ops) - size]
                tail = self.cfg.add(a, a.ops[len(a.ops) - size :], a.end, [], a.region, a.arg)
                tail.end_op, a.end_op, b.end_op = a.end_op, None, None
                self.preds[tail.id] = []
                self.changed(tail, list(a.successors), a.end)
                for block, ops in ((a, first), (b, second)):
                    block.ops = ops
                    block.arg = None
                    self.changed(block, [tail.id], "jump")
                return True
            if not size:
                break
            size -= 1
        return False

    def is_copied_end(self, a: Op, b: Op) -> bool:
        """Return whether two operations are copies of one that follows a conditional expression.

        Copies have one span (``f(x) if c else f(y)`` has two calls), but for a load that is one with another
        (``LOAD_FAST_LOAD_FAST``, 3.13), which has that one's.
        """
        if a.kind == "MAP_ADD":  # (It has the place of its value: ``compiler_subkwargs`` in compile.c gives it none.)
            return same_op(a, b)
        one, other = (self.executor.scope.position(op.offset) for op in (a, b))
        return copied_op(a, b) and a.line is not None and (
            a.kind in ("CONST", "LOAD_FAST") or one is None or other is None or one == other)

    def reaches_below(self, block: Block) -> bool:
        """Return whether a block takes values that were on the stack before it."""
        depth = 0
        for op in block.ops:
            popped, pushed = effect_of(op)
            if depth < popped:
                return True
            depth += pushed - popped
        return depth < (1 if block.end == "return" else block.arg or 0)

    def only_value(self, ops: list[Op]) -> bool:
        """Return whether operations do nothing but push one value."""
        state = State(parameters=True)
        try:
            self.executor.run(state, ops, to_statement=True)
        except CannotDecompile:
            return False
        return not state.stmts and not state.queue and not state.underflow and len(state.stack) == 1 and isinstance(
            state.stack[0], ast.expr
        )

    def share_end(self, y: Block, k: Block, start: int) -> None:
        """Share the end of ``k`` from ``start`` on with ``y``, if ``y`` ends with a copy of it.

        The end of an expression statement is copied to the exits of the expression where it leaves the function
        or goes back in a loop (``inline_small_exit_blocks`` in flowgraph.c, compile.c before 3.12).
        """
        size = len(k.ops) - start
        if (
            y is not k and size >= (k.end != "raise")
            and size < len(y.ops) and k.handler == y.handler and k.end == y.end and k.end in _COPIED
            and k.successors == y.successors and k.arg == y.arg
            and all(map(copied_op, y.ops[len(y.ops) - size:], k.ops[start:]))
        ):
            tail = self.cut(k, start)
            y.ops, y.arg = y.ops[:len(y.ops) - size], None
            self.changed(y, [tail.id], "jump")

    # --- chained comparisons ----------------------------------------------------------------------
    def chain(self, x: Block) -> bool:
        """Fold ``a < b < c``: the second operand remains on the stack for the second comparison."""
        blocks = self.cfg.blocks
        ops = x.ops
        if len(ops) < 2:
            return False
        as_value = is_copied(ops[-1])
        if ops[-2 if as_value else -1].kind not in ("COMPARE", "IS", "IN", "CHAIN"):
            return False
        t, f = x.successors
        y, k = blocks[t], blocks[f]
        if not self.single(t) or y.handler != x.handler:
            return False
        if as_value and drops_below(k) and all(
            blocks[pred].end == "branch" and any(map(is_copied, blocks[pred].ops[-1:]))
            for pred in self.preds[f]  # the comparisons in front of the last
        ):
            self.share_end(y, k, 2)
        if not (self.ends_value if as_value else self.ends_test)(y, k):
            return False
        summary = self.summary(t)
        if not summary.pure or summary.inputs != 1 + as_value:
            return False
        rest = self.compared_with(summary)
        if rest is None:
            return False
        x.ops = [*(ops[:-1] if as_value else ops), Op("CHAIN", rest, -1, None)]
        if y.line is not None:
            x.line = y.line
        last = k if as_value and k.end == "jump" else y
        x.end_op = last.end_op
        self.changed(x, list(last.successors), last.end)
        return True

    def ends_value(self, y: Block, k: Block) -> bool:
        """Return whether a chain is a value: ``k`` drops the operand that ``y`` compares, and both merge."""
        if not drops_below(k) or len(k.ops) != 2:
            return False
        if y.end == k.end == "jump":
            return y.successors == k.successors
        if y.end == k.end == "return":
            return True
        # a return after the join, copied
        jumping, returning = (y, k) if y.end == "jump" else (k, y)
        if jumping.end != "jump" or returning.end != "return":
            return False
        joined = self.cfg.blocks[jumping.successors[0]]
        return joined.end == "return" and not joined.ops

    def ends_test(self, y: Block, k: Block) -> bool:
        """Return whether a chain is a test: ``k`` drops the operand and goes where the last comparison fails."""
        if y.end != "branch" or not k.ops or k.ops[0].kind != "POP":
            return False
        if len(k.ops) == 1 and k.end == "jump":
            return self.cfg.is_duplicate(y.successors[1], k.successors[0])
        return self.cfg.is_duplicate(y.successors[1], k.id, 1)

    def compared_with(self, summary: Summary) -> ast.Compare | None:
        """Return the comparison of a value from before the block, if that is all that the block does."""
        rest = summary.stack[0] if len(summary.stack) == 1 else None
        if not isinstance(rest, ast.Compare) or not isinstance(rest.left, StackParameter):
            return None
        try:
            return ast.Compare(rest.left, rest.ops, [self.executor.resolve(operand) for operand in rest.comparators])
        except CannotDecompile:
            return None

    # --- comprehensions ---------------------------------------------------------------------------
    def comprehension(self, head: Block) -> bool:
        """Fold an inlined comprehension: a loop that does nothing but add to the list below its iterator."""
        before = [p for p in self.preds[head.id] if self.cfg.order[p] < self.cfg.order[head.id]]
        if len(before) != 1:
            return False
        block = self.cfg.blocks[before[0]]
        if block.end != "jump" or len(block.ops) < 3 or block.ops[-1].kind != "SWAP":
            return False
        build = block.ops[-2].kind
        if build not in ("BUILD_LIST", "BUILD_SET", "BUILD_MAP") or block.ops[-2].arg:
            return False
        accumulator = Accumulator(build)
        try:
            parsed = parse_loops(self, head.id, [accumulator, Iter(StackParameter(0))], accumulator)
        except CannotDecompile:
            return False
        if parsed is None:
            return False
        generators, element, exit_id = parsed
        # the operations between the iterator and the empty list are of this comprehension (others may be further up)
        own = itertools.takewhile(lambda op: op.kind in SET_ASIDE, reversed(block.ops[:-3]))
        set_aside = [op for op in own if is_name(op.arg)][::-1]
        shown = self.executor.scope.plain_name
        name_dropped(generators, [shown(op.arg) for op in set_aside if op.kind == "LOAD_FAST_AND_CLEAR"],
                     [shown(op.arg) for op in set_aside if op.kind == "MAKE_CELL"], inlined=True)

        def make(iterable: Any) -> ast.expr:
            return build_comprehension(build, element, generators, iterable)

        # (Where two comprehensions lead to one copy of what gives the variables their values back.)
        restored = self.cfg.blocks[exit_id].ops[: len(set_aside) + 1]
        if not set_aside or self.single(exit_id) or [op.kind for op in restored] != [
                "SWAP", *["STORE_FAST"] * len(set_aside)]:
            restored = []
        block.ops = [*block.ops, Op("COMPREHENSION", make, -1, None), *restored]
        self.changed(block, [self.cut(self.cfg.blocks[exit_id], len(restored)).id], "jump")
        self.drop_loop(head.id, block)
        return True

    def cut(self, k: Block, start: int) -> Block:
        """Split ``k`` at ``start`` and return the block of its operations from there on."""
        if not start:
            return k
        tail = self.cfg.add(k, k.ops[start:], k.end, [], k.region, k.arg)
        self.preds[tail.id] = []
        self.changed(tail, list(k.successors), k.end)
        k.ops, k.arg = k.ops[:start], None
        self.changed(k, [tail.id], "jump")
        return tail

    def drop_loop(self, head: int, before: Block) -> None:
        """Drop a loop that nothing leads to any more.

        Args:
            head: its head.
            before: the block that led there; its present target is after the loop.
        """
        cfg, (following,) = self.cfg, before.successors
        if head not in cfg.blocks:
            return
        loop = reachable(cfg.blocks, [head], lambda block: [id for id in block.successors if id != following])
        if any(cfg.blocks[id].handler != before.handler for id in loop) or not loop.issuperset(
                source for id in loop for source in self.preds[id]):
            cfg.prune()
            self.preds = cfg.predecessors()
            return
        # (All blocks are not looked at for each of many comprehensions.)
        self.preds[following] = [id for id in self.preds[following] if id not in loop]
        for id in loop:
            del cfg.blocks[id], self.preds[id]


def is_copied(op: Op) -> bool:
    """Return whether an operation duplicates the value on top of the stack."""
    return op.kind == "COPY" and op.arg == 1


def returns_nothing(block: Block) -> bool:
    """Return whether a block is ``return None``."""
    return block.end == "return" and [(op.kind, op.arg) for op in block.ops] == [("CONST", None)]


def lines_of(block: Block) -> set[int | None]:
    """Return the lines of the operations of a block, and of its terminator."""
    return {block.line, *(op.line for op in block.ops)}


def drops_below(block: Block) -> bool:
    """Return whether a block first drops the value below the top."""
    return [op.kind for op in block.ops[:2]] == ["SWAP", "POP"]


def tests_case(block: Block) -> bool:
    """Return whether a block ends in the test of a pattern, which is no value: all it can have is a guard."""
    return bool(block.ops) and block.ops[-1].kind == "CASE"


def effect_of(op: Op) -> tuple[int, int]:
    """Return ``(popped, pushed)`` of an operation of the compiler or of depyf."""
    if op.kind == "CASE":
        return 1, 1 + op.arg.keeps
    return FOLDED.get(op.kind) or effect(op)


def same_argument(a: Any, b: Any) -> bool:
    """Return whether the arguments of two operations say the same; they may be expressions."""
    if isinstance(a, ast.AST) and isinstance(b, ast.AST):
        return ast.dump(a) == ast.dump(b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same_argument, a, b))
    return type(a) is type(b) and bool(a == b)


def on_one_line(test: Block, *arms: Block) -> bool:
    """Return whether arms begin on the line of the test, which those of a statement do not."""
    lines = {block.ops[at].line if block.ops else None for block, at in ((test, -1), *((arm, 0) for arm in arms))}
    return len(lines) == 1 and None not in lines


def continues_chain(summary: Summary) -> bool:
    """Return whether a block compares a value from before it with something."""
    top = summary.stack[-1] if summary.pure and summary.inputs and summary.stack else None
    return isinstance(top, ast.Compare) and isinstance(top.left, StackParameter)
