"""The reduced graph, written as nested statements.

A :class:`Walker` follows control from the entry with the symbolic stack in hand.  Where control falls
through to, and what ``break`` and ``continue`` mean, is in the chain of frames around the
place (``frames``); a block that is reached in no other way is simply written again (both copies compile to the
same program), up to a limit.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ...bytecode.operations import Op
from ...cfg.graph import Block
from ..lift import Machine, State, is_value, values
from ..nodes import AssertionErrorName, UntestedAssert, at_line
from .analysis import Analysis
from .branches import branch
from .frames import Frame
from .loop_statements import async_for, loop
from .protected import protected
from .region_cfg import NOWHERE, RegionCfg, Untangled, is_leave

if TYPE_CHECKING:
    from ..body import Body


def write_statements(body: Body) -> None:
    """Write the graph as nested statements."""
    program = body.scope.program
    walker = Walker(body.cfg, body.machine, 2000 + 40 * (len(program.ops) if program is not None else 0))
    walker.late = body.late_breaks
    body.statements = walker.module() if body.is_namespace else walker.function()


class Walker:
    """Writes a cfg as statements.

    Args:
        cfg: the reduced graph (changed on the way: ends that are copies of one another become one).
        machine: runs the operations.
        budget: how many operations may be written, copies included.
    """

    def __init__(self, cfg: RegionCfg, machine: Machine, budget: int) -> None:
        self.cfg = cfg
        self.machine = machine
        self.budget = budget
        self.is_lambda = False
        #: also look for breaks that come after other statements (the first form that is tried)
        self.late = False
        self.analysis = Analysis(self.cfg)

    def function(self) -> list[ast.stmt]:
        stmts, falls, _ = self.walk(self.cfg.entry, [], -1, Frame("function", None, None))
        if falls:
            raise Untangled("control falls off the end")
        return stmts

    def module(self) -> list[ast.stmt]:
        """A module has no ``return``: all its ends are one, where control falls off."""
        blocks = self.cfg.blocks
        ends = [
            id for id, block in blocks.items()
            if block.end == "return" and [(op.kind, op.arg) for op in block.ops[-1:]] == [("CONST", None)]
        ]
        end = -1
        for id in ends:
            tail = self.cfg.split(id, len(blocks[id].ops) - 1)
            if end < 0:
                end = tail
            elif tail != id:
                blocks[id].successors = [end]
            else:
                for block in blocks.values():
                    block.successors = [end if succ == id else succ for succ in block.successors]
                if self.cfg.entry == id:
                    self.cfg.entry = end
        self.cfg.prune()
        self.analysis = Analysis(self.cfg)
        stmts, _, _ = self.walk(self.cfg.entry, [], end, Frame("function", None, None))
        return stmts

    def spend(self, amount: int) -> None:
        self.budget -= amount
        if self.budget < 0:
            raise Untangled("too many copies")

    def walk(
        self, at: int, stack: list[Any], follow: int, frame: Frame, entered: int = -1
    ) -> tuple[list[ast.stmt], bool, list[Any]]:
        """Statements from ``at`` on, until control reaches ``follow`` or goes elsewhere.

        ``entered``: a loop head that is being written right now (not to be entered again).
        """
        out: list[ast.stmt] = []
        blocks = self.cfg.blocks
        leaving = False
        first = True
        region = frame.handler
        while True:
            if at == follow and not (first and at == entered):
                return out, True, stack
            if not (first and at == entered):
                jump = frame.jump(at)
                if jump is not None:
                    out.append(jump)
                    return out, False, stack
            block = blocks[at]
            self.spend(1 + len(block.ops))
            if leaving:
                pass
            elif block.handler != region and (block.ops or block.end in ("for", "raise")) and not is_leave(block):
                chain = self.cfg.handlers_around(block.handler)
                if region is not None and region not in chain:
                    raise Untangled("a region that is not nested")
                inner = chain[chain.index(region) - 1] if region is not None else chain[-1]
                kind = self.cfg.kinds[inner]
                around = (
                    at in self.analysis.loops and not (first and at == entered)
                    and inner not in self.analysis.around_loop(at)
                )
                if kind == "async for":
                    around = False  # its own loop begins with the block that the handler is for
                if not around:
                    if kind == "named":
                        frame = Frame("named", frame, inner)
                        region = inner
                        continue
                    if kind == "async for":
                        stmts, nxt, stack = async_for(self, inner, at, stack, follow, frame)
                    else:
                        begun = at if first and at == entered else -1
                        stmts, nxt, stack = protected(self, inner, at, stack, follow, frame, begun)
                    out += stmts
                    first = False
                    if nxt is None:
                        return out, False, stack
                    at = nxt
                    continue
            if not leaving and (at in self.analysis.loops or block.end == "for") and not (first and at == entered):
                stmts, nxt, stack = loop(self, at, stack, follow, frame)
                out += stmts
                first = False
                if nxt is None:
                    return out, False, stack
                at = nxt
                continue
            first = False
            state = State(stack)
            self.machine.line = None
            self.machine.run(state, block.ops)
            if state.queue:
                raise Untangled("an unfinished assignment")
            stmts = state.stmts
            if stmts:
                if leaving:
                    raise Untangled("statements on the way out")
                out += stmts
            if block.ops and block.ops[-1].kind in ("LEAVE", "POP_EXCEPT"):
                leaving = True
                if self.never_ends(block.ops[-1]) and state.stack and is_value(state.stack[-1]):
                    # ``return`` in front of a clean-up that raises
                    out.append(at_line(ast.Return(self.machine.pop(state)), block.line))
                    return out, False, stack
            end = block.end
            if end == "jump":
                at = block.successors[0]
                continue
            self.machine.line = block.line
            if end == "return":
                value = self.machine.pop(state)
                nothing = isinstance(value, ast.Constant) and value.value is None and not self.is_lambda
                out += self.pending(state)
                out.append(at_line(ast.Return(None if nothing else value), block.line))
                return out, False, stack
            if end == NOWHERE:
                if self.machine.scope.annotates:
                    raise Untangled("a way into a finally that never ends")
                # (or ``break``, ``continue``: the ``finally`` takes over)
                out.append(at_line(ast.Return(), self.machine.line))
                return out, False, stack
            if leaving:
                raise Untangled("a branch on the way out")
            if end == "branch":
                stmts, nxt, stack = branch(self, at, block, state, follow, frame)
                out += stmts
                if nxt is None:
                    return out, False, stack
                if nxt == follow and at != nxt:
                    return out, True, stack
                at = nxt
                continue
            if end == "raise":
                made = self.raise_(block, state)
                out += self.pending(state)
                out.append(made)
                return out, False, stack
            raise Untangled(f"unexpected {end}")

    def never_ends(self, op: Op) -> bool:
        """Return whether an operation is the clean-up of a ``finally`` that ends only by ``raise`` or ``return``."""
        if op.kind != "LEAVE" or op.arg != "finally":
            return False
        return op.target in self.cfg.nowhere

    def pending(self, state: State) -> list[ast.stmt]:
        """Statements for the values that are on the stack where control leaves the function: no source leaves any."""
        if not values(state.stack):
            return []
        if not self.machine.spill:
            raise Untangled("a value is pending at the end")
        state.stmts = []
        self.machine.spill_pending(state)
        return state.stmts

    def raise_(self, block: Block, state: State) -> ast.stmt:
        values = self.machine.popn(state, block.arg)
        exc = values[0] if values else None
        cause = values[1] if len(values) > 1 else None
        message = None
        raised = exc
        if isinstance(raised, ast.Call) and isinstance(raised.func, AssertionErrorName) and len(raised.args) == 1:
            message, raised = raised.args[0], raised.func
        made = isinstance(raised, AssertionErrorName) and cause is None
        return at_line(UntestedAssert(message) if made else ast.Raise(exc, cause), block.line)
