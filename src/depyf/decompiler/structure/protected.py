"""``try`` and ``with``: protected bodies, their handlers, and the code after them, as the compiler lays them out."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...bytecode.operations import Op
from ...cfg.graph import Block
from ..emit.text import checked_text, try_star
from ..errors import STRUCTURE, CannotDecompile
from ..lift.stack import LOAD, Caught, Exit, PendingTarget, Special, State, Target, values
from ..nodes import AsText, at_line, line_of
from .analysis import UNWINDING, cleans_up, handler_steps, reach, reached, straight
from .arrange_tries import with_finally
from .evidence import INDENTATION
from .frames import Construct, Cursor, Frame, outer_ends

if TYPE_CHECKING:
    from .walk import Walker


@dataclass(slots=True, eq=False)
class Protected:
    """A protected body.

    Attributes:
        region: its handler.
        entered: the loop head that it begins with, where that loop is being written.
        leaves: the blocks in which control leaves it.
        targets: where these lead, each once.
    """

    region: int
    entered: int | None
    leaves: list[int]
    targets: list[int]


def protected(walker: Walker, region: int, cursor: Cursor, entered: int | None) -> Construct:
    """Write the statement whose protected body begins here."""
    leaves = walker.analysis.leaves.get(region, [])
    targets = list(dict.fromkeys(walker.cfg.blocks[id].successors[0] for id in leaves))
    body = Protected(region, entered, leaves, targets)
    kind = walker.cfg.kinds[region]
    if kind == "with":
        return with_statement(walker, body, cursor)
    if kind == "finally":
        return try_finally(walker, body, cursor)
    if kind in ("except", "except*"):
        return try_except(walker, body, cursor)
    raise CannotDecompile(STRUCTURE, f"a region of kind {kind}")


# --- where control leaves it ----------------------------------------------------------------------------
def exit_kind(walker: Walker, target: int, cursor: Cursor, region: int, is_shared: bool = False) -> str:
    """Classify an edge out of a body or its handlers: ``return``, ``jump`` (break, continue) or ``normal``.

    Args:
        walker: knows the graph.
        target: where the edge leads.
        cursor: where the statement is.
        region: the handler of the body.
        is_shared: whether both the body and its handlers lead there. (Each ``return`` has a clean-up of its own.)
    """
    at, is_cleaned = target, walker.cfg.kinds[region] == "finally"
    for _ in range(50):
        if at == cursor.follow:
            return "normal"
        if cursor.frame.jump(at) is not None:
            return "jump"
        block = walker.cfg.blocks[at]
        if any(op.arg == "iterator" and _is_left_of(walker, region, op) for op in block.ops):
            return "normal"  # (A ``break`` after the statement.)
        if any(op.kind != "CONST" and op.kind not in UNWINDING for op in block.ops):
            return "normal"
        if block.end == "return":
            outer, (_, column) = _column_of(walker, region), _start_of_return(walker, block)
            is_after = outer is not None and column is not None and column <= outer
            return "normal" if is_cleaned and is_shared or is_after else "return"
        if block.end != "jump":
            return "normal"
        is_cleaned |= any(map(cleans_up, block.ops))
        at = block.successors[0]
    return "normal"


def _column_of(walker: Walker, region: int) -> int | None:
    """Return the column of the first clause of a ``try``, if it is known.

    The test of an ``except``, or the drop of the exception where there is none, has the span of the clause. A
    ``finally`` is left of its first statement.
    """
    evidence, handler = walker.evidence(), walker.cfg.blocks[region]
    if evidence is None:
        return None
    if walker.cfg.kinds[region] == "finally":
        first = [op for op in handler.ops if op.line is not None and op.line == handler.line]
        places = [place for op in first if (place := evidence.place(op.offset)) is not None]
        columns = [column for _, column in places if column is not None]
        is_simple = any(op.kind == "POP" or op.kind.startswith("STORE") for op in first)
        return min(columns) - INDENTATION if columns and is_simple else None
    op = handler.end_op if handler.end == "branch" else next((op for op in handler.ops if op.kind == "POP"), None)
    place = evidence.place(op.offset) if op is not None else None
    return None if place is None else place[1]


def _is_left_of(walker: Walker, region: int, op: Op) -> bool:
    """Return whether the ``break`` whose place an operation has begins no further right than a ``try``."""
    evidence, outer = walker.evidence(), _column_of(walker, region)
    place = evidence.place(op.offset) if evidence is not None and evidence.word_at(op.offset) == "break" else None
    return outer is not None and place is not None and place[1] is not None and place[1] <= outer


def _start_of_return(walker: Walker, block: Block) -> tuple[int | None, int | None]:
    """Return line and column of the ``return`` of a constant that a block leads to, as far as they are known."""
    evidence, (ops, last) = walker.evidence(), straight(walker.cfg, block.id)
    if evidence is None or last.end_op is None or last.end != "return" or not ops or ops[-1].kind != "CONST" or any(
            op.kind not in UNWINDING for op in ops[:-1]):
        return None, None
    return evidence.start_of_return(ops[-1].arg, last.end_op.offset)


def normal_exit(
    walker: Walker, targets: list[int], cursor: Cursor, region: int, shared: Collection[int] = ()
) -> int | None:
    """Return the exit that the statements after the protected body continue.

    Args:
        walker: knows the graph.
        targets: where the body, or its handlers, are left to.
        cursor: where the statement is.
        region: the handler of the body.
        shared: targets to which both the body and its handlers are left.
    """
    follow = cursor.follow
    normal = [target for target in targets
              if target != follow and exit_kind(walker, target, cursor, region) == "normal"]
    if not normal:
        normal = [target for target in targets if target in shared and target != follow
                  and exit_kind(walker, target, cursor, region, is_shared=True) == "normal"]
    if follow is not None and follow in targets and (not normal or cursor.frame.jump(follow) is None):
        return follow  # else those that lead there do so by ``continue``
    if not normal:
        return None
    return max(normal, key=lambda id: (walker.analysis.weight[id], len(walker.analysis.preds[id])))


def lead_copies_to(walker: Walker, sources: Iterable[int], join: int | None) -> None:
    """Redirect edges from copies of ``join`` to ``join``."""
    if join is None:
        return
    blocks = walker.cfg.blocks
    place = _start_of_return(walker, blocks[join])
    for id in sources:
        for position, succ in enumerate(blocks[id].successors):
            if succ == join or not walker.cfg.is_copy(succ, join):
                continue
            other = _start_of_return(walker, blocks[succ])
            if None in other or other == place:  # (One that was written is no copy of another.)
                blocks[id].successors[position] = join


def first_line(stmts: list[ast.stmt]) -> int | None:
    """Return the line of the first statement, if it is known."""
    return line_of(stmts[0]) if stmts else None


# --- the statements -------------------------------------------------------------------------------------
def with_statement(walker: Walker, body: Protected, cursor: Cursor) -> Construct:
    """Write a ``with``: control goes on where it does when the exception is swallowed."""
    join = walker.cfg.blocks[body.region].successors[0]
    lead_copies_to(walker, body.leaves, join)
    stack = cursor.stack
    if len(stack) < 2 or not isinstance(stack[-2], Exit) or not isinstance(stack[-1], PendingTarget):
        raise CannotDecompile(STRUCTURE, "a with statement that starts elsewhere")
    exit_ = stack[-2]
    owner = Target("value")
    suite = walker.walk(
        Cursor(cursor.at, [*stack[:-1], PendingTarget(owner)], join, Frame(cursor.frame, body.region)), body.entered)
    manager = exit_.manager
    if owner.target is None and isinstance(manager, ast.Tuple) and manager.elts:
        manager = AsText(f"({checked_text(manager)})", LOAD)  # (``with (a, b):`` would enter two)
    item = ast.withitem(manager, owner.target)
    kind = ast.AsyncWith if exit_.asynchronous else ast.With
    statement = at_line(kind([item], suite.statements or [ast.Pass()]), first_line(suite.statements))
    return Construct([statement], join, stack[:-2])


def try_finally(walker: Walker, body: Protected, cursor: Cursor) -> Construct:
    """Write a ``try`` with a ``finally``."""
    join = normal_exit(walker, body.targets, cursor, body.region)
    lead_copies_to(walker, body.leaves, join)
    suite = walker.walk(Cursor(cursor.at, cursor.stack[:], join, Frame(cursor.frame, body.region)), body.entered)
    handler = walker.cfg.blocks[body.region].handler
    inner = Frame(cursor.frame, handler)
    final = walker.walk(
        Cursor(body.region, [*cursor.stack, Caught(False)], walker.cfg.ends[body.region], inner)).statements
    statement = with_finally(walker.evidence(), suite.statements or [ast.Pass()], final or [ast.Pass()])
    at_line(statement, first_line(suite.statements))
    if not suite.falls or join == walker.cfg.nowhere.get(body.region, -1):
        return Construct([statement], None, cursor.stack)
    return Construct([statement], join, suite.stack)


def try_except(walker: Walker, body: Protected, cursor: Cursor) -> Construct:
    """Write a ``try`` with ``except`` or ``except*`` clauses."""
    star = walker.cfg.kinds[body.region] == "except*"
    ends = handler_ends(walker, body.region)
    start_else, join = _joins(walker, body, ends, cursor, star)
    lead_copies_to(walker, body.leaves, start_else)
    lead_copies_to(walker, body.leaves, join)
    lead_copies_to(walker, ends, join)
    suite = walker.walk(Cursor(cursor.at, cursor.stack[:], start_else, Frame(cursor.frame, body.region)), body.entered)
    falls, stack_after = suite.falls, suite.stack
    orelse: list[ast.stmt] = []
    if falls and start_else is not None and start_else != join:
        following = walker.walk(Cursor(start_else, stack_after, join, cursor.frame))
        orelse, falls, stack_after = following.statements, following.falls, following.stack
    handlers, handler_falls = handler_clauses(walker, body.region, cursor, join)
    make = try_star if star else ast.Try
    statement = at_line(make(suite.statements or [ast.Pass()], handlers, orelse, []), first_line(suite.statements))
    if falls and values(stack_after) > values(cursor.stack):
        raise CannotDecompile(STRUCTURE, "a value crosses the end of a try")
    return Construct([statement], join if falls or handler_falls else None, cursor.stack)


def _joins(
    walker: Walker, body: Protected, ends: list[int], cursor: Cursor, star: bool
) -> tuple[int | None, int | None]:
    """Return where the ``else`` of a ``try`` begins, and where the statement ends.

    Args:
        walker: knows the graph.
        body: the protected body.
        ends: blocks in which its handlers end.
        cursor: where the statement begins.
        star: whether the clauses are of ``except*``.
    """
    handler_targets = list(dict.fromkeys(walker.cfg.blocks[id].successors[0] for id in ends))
    shared = set(body.targets).intersection(handler_targets)
    normal = normal_exit(walker, body.targets, cursor, body.region, shared)
    # no clause of ``except*`` can return or jump: its target follows, whatever that does
    after_handlers = handler_targets[0] if star and handler_targets else normal_exit(
        walker, handler_targets, cursor, body.region, shared & {normal})
    if normal is None or after_handlers is None:
        return normal, after_handlers if normal is None else normal
    if star and normal != after_handlers:
        # the end of ``else`` may be a copy of the code that the clauses lead to
        rest = reach(walker, [normal], outer_ends(cursor.frame, cursor.follow) - {normal})
        lead_copies_to(walker, rest, after_handlers)
    if after_handlers == normal or walker.cfg.is_copy(after_handlers, normal):
        return normal, normal
    if after_handlers == cursor.follow:
        return normal, cursor.follow
    return normal, _where_they_meet(walker, normal, after_handlers, cursor)


def _where_they_meet(walker: Walker, normal: int, after_handlers: int, cursor: Cursor) -> int:
    """Return where control goes on after the ``else`` and after the handlers alike."""
    around = outer_ends(cursor.frame, cursor.follow)
    if after_handlers in reached(walker, [normal], around - {normal}):
        return after_handlers
    back = reach(walker, [after_handlers], around - {after_handlers})
    if normal in back:
        return normal
    common = [id for id in reached(walker, [normal], around - {normal}) if id in back
              and walker.analysis.dominates(cursor.at, id)]
    return min(common, key=lambda id: walker.analysis.tree.number[id]) if common else after_handlers


# --- handlers -------------------------------------------------------------------------------------------
def handler_ends(walker: Walker, region: int) -> list[int]:
    """Return the blocks in which a running handler of ``region`` ends.

    Other handlers may run inside it.
    """
    blocks = walker.cfg.blocks
    around = walker.cfg.handlers_around(blocks[region].handler)
    result = []
    seen = set()
    work = [(region, 0)]
    while work:
        id, depth = work.pop()
        if id in seen:
            continue
        seen.add(id)
        block = blocks[id]
        if block.handler is not None and block.handler not in around:
            work.append((block.handler, depth))
        depth += sum(handler_steps(block))
        if not depth:
            result.append(id)
            continue
        work.extend((succ, depth) for succ in block.successors)
    return result


def handler_clauses(
    walker: Walker, region: int, cursor: Cursor, join: int | None
) -> tuple[list[ast.ExceptHandler], bool]:
    """Return the clauses of a handler, and whether control falls through one of them to ``join``."""
    blocks = walker.cfg.blocks
    inner = Frame(cursor.frame, blocks[region].handler)
    handlers: list[ast.ExceptHandler] = []
    any_falls = False
    at = region
    state = State([*cursor.stack, Caught(False)])
    while True:
        walker.spend(1)
        block = blocks[at]
        if block.end != "branch" or not any(op.kind == "CHECK_EXC_MATCH" for op in block.ops):
            if block.end != "reraise" or block.ops:
                bare = walker.walk(Cursor(at, state.stack[:], join, inner))
                handlers.append(_clause(None, None, bare.statements, block))
                any_falls |= bare.falls
            return handlers, any_falls
        state = State(state.stack[:])
        walker.executor.run(state, block.ops)
        if state.stmts:
            raise CannotDecompile(STRUCTURE, "statements before a handler")
        test = state.stack.pop()
        if not isinstance(test, Special) or test.kind != "match":
            raise CannotDecompile(STRUCTURE, "a handler that tests something else")
        matched, at = block.successors
        caught = walker.executor.caught = Target("e")
        clause = walker.walk(Cursor(matched, state.stack[:], join, inner))
        name = caught.target
        if name is not None and not isinstance(name, ast.Name):
            raise CannotDecompile(STRUCTURE, "an exception that is stored to no name")
        handlers.append(_clause(test.value, None if name is None else name.id, clause.statements, block))
        any_falls |= clause.falls


def _clause(kind: ast.expr | None, name: str | None, stmts: list[ast.stmt], block: Block) -> ast.ExceptHandler:
    """Return a clause with the line of its first operation, which is that of its ``except``."""
    handler = ast.ExceptHandler(kind, name, stmts or [ast.Pass()])
    line = next((op.line for op in block.ops if op.line is not None and op.kind != "PUSH_EXC_INFO"), None)
    if line is not None:
        handler.lineno = line
    return handler
