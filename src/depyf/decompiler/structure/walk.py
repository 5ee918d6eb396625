"""The reduced graph, written as nested statements.

A :class:`Walker` follows control from the entry with a symbolic stack.  Where control falls
through to, and what ``break`` and ``continue`` mean, is in the chain of frames around the
place (``frames``); a block that is reached otherwise is simply written again (both copies compile to the
same program), up to a limit.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...cfg.graph import Block
from ..errors import STRUCTURE, CannotDecompile
from ..lift.executor import SymbolicExecutor
from ..lift.stack import State, is_value, values
from ..nodes import AssertionErrorName, UntestedAssert, at_line, from_ops
from .analysis import NOWHERE, Analysis, RegionCfg, is_leave
from .branches import async_for, branch, loop
from .evidence import Evidence
from .frames import Construct, Cursor, Frame, Suite
from .protected import protected
from .search import Search

if TYPE_CHECKING:
    from ..bodies import Body


def write_statements(body: Body) -> None:
    """Write the graph as nested statements."""
    program = body.scope.program
    walker = Walker(
        body.cfg, body.executor, 2000 + 40 * (len(program.ops) if program is not None else 0), body.search,
        lambda: body.evidence)
    walker.is_module = body.scope.kind == "module"
    body.statements = walker.module() if body.is_namespace else walker.function()


class Walker:
    """Writes a graph as statements.

    Args:
        cfg: the reduced graph (changed by the walk: ends that are copies of one another become one).
        executor: runs the operations.
        budget: how many operations may be written, copies included.
        search: chooses among the forms that the graph allows.
        evidence: returns facts of the source text, which rank them.
    """

    def __init__(
        self, cfg: RegionCfg, executor: SymbolicExecutor, budget: int, search: Search,
        evidence: Callable[[], Evidence | None],
    ) -> None:
        self.cfg = cfg
        self.executor = executor
        self.budget = budget
        self.search = search
        self.is_module = False
        self.depth = 0  # how many suites are being written, one in the other
        self.evidence = evidence
        self.analysis = Analysis(cfg)
        search.begin()
        #: whether breaks that come after other statements are looked for
        self.late_breaks = search.choose((True, False))

    def function(self) -> list[ast.stmt]:
        """Write the body of a function.

        Raises:
            CannotDecompile: it cannot be written with statements.
        """
        suite = self.walk(Cursor(self.cfg.entry, [], None, Frame()))
        if suite.falls:
            raise CannotDecompile(STRUCTURE, "control falls off the end")
        return suite.statements

    def module(self) -> list[ast.stmt]:
        """Write the body of a module or class. It has no ``return``: all its ends are one, where control falls off.

        Raises:
            CannotDecompile: it cannot be written with statements.
        """
        blocks = self.cfg.blocks
        ends = [
            id for id, block in blocks.items()
            if block.end == "return" and [(op.kind, op.arg) for op in block.ops[-1:]] == [("CONST", None)]
        ]
        end = self.cfg.split(ends[0], len(blocks[ends[0]].ops) - 1) if ends else None
        self.analysis = Analysis(self.cfg)
        return self.walk(Cursor(self.cfg.entry, [], end, Frame())).statements

    def spend(self, amount: int) -> None:
        """Charge the budget.

        Raises:
            CannotDecompile: it is used up.
        """
        self.budget -= amount
        if self.budget < 0:
            raise CannotDecompile(STRUCTURE, "too many copies")

    def walk(self, cursor: Cursor, entered: int | None = None) -> Suite:
        """Write statements until control reaches the next ones or goes elsewhere.

        Args:
            cursor: where to begin; it moves on.
            entered: a loop head that is being written right now (not to be entered again).
        """
        path = _Path(self, cursor, entered)
        self.depth += 1
        try:
            while True:
                step = path.step()
                if isinstance(step, Suite):
                    return step
                if step is not None:
                    # (Called from here, not from within the step: statements nest deeply enough without.)
                    write, arguments = step
                    done = path.go_on(write(self, *arguments))
                    if done is not None:
                        return done
        finally:
            self.depth -= 1

    def pending(self, state: State) -> list[ast.stmt]:
        """Write the values that are on the stack where control leaves the function: no source leaves any."""
        if not state.stack or not values(state.stack):
            return []
        if not self.executor.spill:
            raise CannotDecompile(STRUCTURE, "a value is pending at the end")
        state.stmts = []
        self.executor.spill_pending(state)
        return state.stmts


#: A function that writes a construct, and its arguments after the walker.
_Step = tuple[Callable[..., Construct], tuple[Any, ...]]


class _Path:
    """One walk: its position, and the statements written."""

    def __init__(self, walker: Walker, cursor: Cursor, entered: int | None) -> None:
        self.walker = walker
        self.cursor = cursor
        self.entered = entered
        self.out: list[ast.stmt] = []
        self.leaving = False  # whether a protected body or handler was left: only its end may come

    def step(self) -> Suite | _Step | None:
        """Write the next statements; return the suite where it ends, or how to write the construct that begins."""
        cursor, walker = self.cursor, self.walker
        begun = self.entered == cursor.at
        if not begun:
            if cursor.at == cursor.follow:
                state = State(cursor.stack)
                returns = self._returns_before(walker.cfg.blocks[cursor.at], state)
                cursor.stack = state.stack
                return self._ends(falls=not returns)
            jump = cursor.frame.jump(cursor.at)
            if jump is not None:
                self.out.append(jump)
                return self._ends()
        block = walker.cfg.blocks[cursor.at]
        walker.spend(1 + len(block.ops))
        if not self.leaving:
            same = block.region is None and cursor.frame.handler is None or block.handler == cursor.frame.handler
            region = None if same else self._region_entered(block, begun)
            if region is not None:
                return self._enter(region, begun)
            if not begun and (cursor.at in walker.analysis.loops or block.end == "for"):
                return loop, (cursor,)
        self.entered = None
        return self._block(block)

    def _ends(self, falls: bool = False) -> Suite:
        return Suite(self.out, falls, self.cursor.stack)

    def go_on(self, construct: Construct) -> Suite | None:
        """Go on after a construct."""
        self.entered = None
        self.out += construct.statements
        self.cursor.stack = construct.stack
        if construct.next is None:
            return self._ends()
        self.cursor.at = construct.next
        return None

    # --- regions ----------------------------------------------------------------------------------
    def _region_entered(self, block: Block, begun: bool) -> int | None:
        """Return the handler of the outermost region that begins here, unless a loop comes first.

        The block is in another region than the statements before it.
        """
        cursor, walker = self.cursor, self.walker
        around = cursor.frame.handler
        if not (block.ops or block.end in ("for", "raise")) or is_leave(block):
            return None
        chain = walker.cfg.handlers_around(block.handler)
        if around is not None and around not in chain:
            raise CannotDecompile(STRUCTURE, "a region that is not nested")
        inner = chain[chain.index(around) - 1] if around is not None else chain[-1]
        # (The loop of an ``async for`` begins with the block that the handler is for.)
        loop_first = (
            walker.cfg.kinds[inner] != "async for" and cursor.at in walker.analysis.loops and not begun
            and inner not in walker.analysis.around_loop(cursor.at))
        return None if loop_first else inner

    def _enter(self, region: int, begun: bool) -> _Step | None:
        cursor, walker = self.cursor, self.walker
        kind = walker.cfg.kinds[region]
        if kind == "named":
            cursor.frame = Frame(cursor.frame, region)
            return None
        if kind == "async for":
            return async_for, (region, cursor)
        return protected, (region, cursor, cursor.at if begun else None)

    # --- blocks -----------------------------------------------------------------------------------
    def _block(self, block: Block) -> Suite | _Step | None:
        walker = self.walker
        state = State(self.cursor.stack)
        walker.executor.line = None
        walker.executor.since = block.ops[0].offset if block.ops else -1
        walker.executor.run(state, block.ops)
        self.cursor.stack = state.stack
        if state.queue:
            raise CannotDecompile(STRUCTURE, "an unfinished assignment")
        if state.stmts:
            if self.leaving:
                raise CannotDecompile(STRUCTURE, "statements on the way out")
            self.out += state.stmts
        if block.ops and block.ops[-1].kind in ("LEAVE", "POP_EXCEPT"):
            self.leaving = True
            if self._returns_before(block, state):
                return self._ends()
        write = _ENDS.get(block.end)
        if write is None:
            raise CannotDecompile(STRUCTURE, f"unexpected {block.end}")
        return write(self, block, state)

    def _returns_before(self, block: Block, state: State) -> bool:
        """Write the ``return`` whose value the ``finally`` that a block begins drops; return whether there is one.

        Such a ``finally`` raises, or returns another value.
        """
        last = block.ops[-1] if block.ops else None
        if last is None or (last.kind, last.arg) != ("LEAVE", "finally") or last.target not in (
                self.walker.cfg.nowhere) or not state.stack or not is_value(state.stack[-1]):
            return False
        self.out.append(at_line(ast.Return(self.walker.executor.pop(state)), block.line))
        return True

    def _jump(self, block: Block, state: State) -> None:
        self.cursor.at = block.successors[0]

    def _return(self, block: Block, state: State) -> Suite:
        executor = self.walker.executor
        executor.line = block.line
        value = executor.pop(state)
        nothing = isinstance(value, ast.Constant) and value.value is None
        if self.walker.is_module:
            raise CannotDecompile(STRUCTURE, "a return in a module")
        self.out += self.walker.pending(state)
        self.out.append(self._from_end(ast.Return(None if nothing else value), block))
        return self._ends()

    def _from_end(self, stmt: ast.stmt, block: Block) -> ast.stmt:
        """Give a statement that ends a block its place in the source."""
        if block.end_op is not None:
            from_ops(stmt, self.walker.executor.since, block.end_op.offset)
        return at_line(stmt, block.line)

    def _nowhere(self, block: Block, state: State) -> Suite:
        self.walker.executor.line = block.line
        if self.walker.executor.scope.annotates:
            raise CannotDecompile(STRUCTURE, "a way into a finally that never ends")
        # (or ``break``, ``continue``: the ``finally`` takes over)
        self.out.append(at_line(ast.Return(), block.line))
        return self._ends()

    def _branch(self, block: Block, state: State) -> _Step:
        if self.leaving:
            raise CannotDecompile(STRUCTURE, "a branch on the way out")
        self.walker.executor.line = block.line
        return branch, (self.cursor, block, state)

    def _raise(self, block: Block, state: State) -> Suite:
        if self.leaving:
            raise CannotDecompile(STRUCTURE, "a branch on the way out")
        self.walker.executor.line = block.line
        statement = self._from_end(raise_statement(self.walker.executor.popn(state, block.arg)), block)
        self.out += self.walker.pending(state)
        self.out.append(statement)
        return self._ends()


_ENDS: dict[str, Callable[[_Path, Block, State], Suite | _Step | None]] = {
    "jump": _Path._jump, "return": _Path._return, NOWHERE: _Path._nowhere, "branch": _Path._branch,
    "raise": _Path._raise,
}


def raise_statement(operands: list[Any]) -> ast.stmt:
    """Return a ``raise`` of the operands; the rest of an ``assert`` where the compiler raises AssertionError."""
    exc = operands[0] if operands else None
    cause = operands[1] if len(operands) > 1 else None
    message = None
    raised = exc
    if isinstance(raised, ast.Call) and isinstance(raised.func, AssertionErrorName) and len(raised.args) == 1:
        message, raised = raised.args[0], raised.func
    is_assert = isinstance(raised, AssertionErrorName) and cause is None
    return UntestedAssert(message) if is_assert else ast.Raise(exc, cause)
