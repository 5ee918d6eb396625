"""The reduced graph, written as nested statements.

A :class:`Walker` follows control from the entry with the symbolic stack in hand.  Where control falls
through to, and what ``break`` and ``continue`` mean, is in the chain of :class:`Frame` objects around
the place; a block that is reached in no other way is simply written again (both copies compile to the
same program), up to a limit.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from ...bytecode.operations import Op
from ...flow.dominators import immediate_dominators, predecessors, reverse_postorder
from ..lift import Caught, Exit, Iter, Machine, Slot, Special, State, Target, Unliftable, is_value, negate, same_node
from ..newer import try_star
from .patterns import case_of
from .regions import Flow, Node, Untangled, handler_steps


class Frame:
    """What is around a statement: a loop, a protected body, a handler, or (the outermost) the function."""

    __slots__ = ("exit", "head", "kind", "parent", "region")

    def __init__(self, kind: str, parent: Frame | None, region: int | None, head: int = -1, exit: int = -1) -> None:
        self.kind = kind
        self.parent = parent
        self.region = region
        self.head = head
        self.exit = exit

    def jump(self, target: int) -> ast.stmt | None:
        """The statement that goes to ``target``, if it is an end of the innermost loop."""
        frame: Frame | None = self
        while frame is not None:
            if frame.kind == "loop":
                if target == frame.head:
                    return ast.Continue()
                if target == frame.exit:
                    return ast.Break()
                return None
            frame = frame.parent
        return None


class Walker:
    def __init__(self, flow: Flow, machine: Machine, budget: int) -> None:
        self.flow = flow
        self.machine = machine
        self.budget = budget
        self.is_lambda = False
        #: also look for breaks that come after other statements (the first form that is tried)
        self.late = False
        self.analyse()

    # --- analyses ---------------------------------------------------------------------------------
    def analyse(self) -> None:
        flow = self.flow
        nodes = flow.nodes
        ways: dict[int, list[int]] = {}
        for id, node in nodes.items():
            way = list(node.succs)
            if node.region is not None:
                way.append(node.region)
            ways[id] = way
        self.ways = ways
        order = reverse_postorder(ways, flow.entry)
        self.rpo = {id: i for i, id in enumerate(order)}
        self.idom = immediate_dominators(ways, flow.entry, order)
        self.children: dict[int, list[int]] = {id: [] for id in order}
        for id in order:
            up = self.idom[id]
            if up != id:
                self.children[up].append(id)
        self.preds: dict[int, list[int]] = {id: [] for id in order}
        for id in order:
            for succ in nodes[id].succs:
                self.preds[succ].append(id)
        self.weight = {id: 1 + len(nodes[id].ops) for id in order}
        # children come after their dominator in reverse postorder
        for id in reversed(order):
            up = self.idom[id]
            if up != id:
                self.weight[up] += self.weight[id]
        self.enter: dict[int, int] = {}
        self.leave: dict[int, int] = {}
        clock = 0
        stack = [(flow.entry, False)]
        while stack:
            id, done = stack.pop()
            clock += 1
            if done:
                self.leave[id] = clock
                continue
            self.enter[id] = clock
            stack.append((id, True))
            stack.extend((child, False) for child in self.children[id])
        #: nodes, and handlers of the regions, by the innermost region around them
        self.members: dict[int | None, list[int]] = {}
        self.regions_in: dict[int | None, list[int]] = {}
        for id in order:
            self.members.setdefault(nodes[id].region, []).append(id)
        for handler in self.members:
            if handler is not None:
                self.regions_in.setdefault(nodes[handler].region, []).append(handler)
        self.loops: dict[int, set[int]] = {}
        self.back: dict[int, list[int]] = {}
        for id in order:
            for succ in nodes[id].succs:
                if self.rpo[succ] <= self.rpo[id] and self.dominates(succ, id):
                    self.back.setdefault(succ, []).append(id)
        before = predecessors(ways) if self.back else {}
        for head, tails in self.back.items():
            body = {head}
            work = list(tails)
            while work:
                id = work.pop()
                if id not in body:
                    body.add(id)
                    work.extend(before[id])
            self.loops[head] = self.whole_body(head, body)
        self.leaves: dict[int, list[int]] = {}
        for id in order:
            node = nodes[id]
            if node.ops and node.ops[-1].kind == "LEAVE":
                self.leaves.setdefault(node.ops[-1].target, []).append(id)

    def dominates(self, a: int, b: int) -> bool:
        return self.enter[a] <= self.enter[b] and self.leave[b] <= self.leave[a]

    # --- the walk ---------------------------------------------------------------------------------
    def function(self) -> list[ast.stmt]:
        stmts, falls, _ = self.walk(self.flow.entry, [], -1, Frame("function", None, None))
        if falls:
            raise Untangled("control falls off the end")
        return stmts

    def module(self) -> list[ast.stmt]:
        """A module has no ``return``: all its ends are one, where control falls off."""
        nodes = self.flow.nodes
        ends = [
            id for id, node in nodes.items()
            if node.end == "return" and [(op.kind, op.arg) for op in node.ops[-1:]] == [("CONST", None)]
        ]
        end = -1
        for id in ends:
            tail = self.flow.split(id, len(nodes[id].ops) - 1)
            if end < 0:
                end = tail
            elif tail != id:
                nodes[id].succs = [end]
            else:
                for node in nodes.values():
                    node.succs = [end if succ == id else succ for succ in node.succs]
                if self.flow.entry == id:
                    self.flow.entry = end
        self.flow.prune()
        self.analyse()
        stmts, _, _ = self.walk(self.flow.entry, [], end, Frame("function", None, None))
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
        nodes = self.flow.nodes
        leaving = False
        first = True
        region = frame.region
        while True:
            if at == follow and not (first and at == entered):
                return out, True, stack
            if not (first and at == entered):
                jump = frame.jump(at)
                if jump is not None:
                    out.append(jump)
                    return out, False, stack
            node = nodes[at]
            self.spend(1 + len(node.ops))
            if leaving:
                pass
            elif node.region != region and (node.ops or node.end in ("for", "raise")) and not self.is_leave(node):
                chain = self.flow.chain(node.region)
                if region is not None and region not in chain:
                    raise Untangled("a region that is not nested")
                inner = chain[chain.index(region) - 1] if region is not None else chain[-1]
                kind = self.flow.kinds[inner]
                around = at in self.loops and not (first and at == entered) and inner not in self.around_loop(at)
                if kind == "async for":
                    around = False  # its own loop begins with the block that the handler is for
                if not around:
                    if kind == "named":
                        frame = Frame("named", frame, inner)
                        region = inner
                        continue
                    if kind == "async for":
                        stmts, nxt, stack = self.async_for(inner, at, stack, follow, frame)
                    else:
                        begun = at if first and at == entered else -1
                        stmts, nxt, stack = self.protected(inner, at, stack, follow, frame, begun)
                    out += stmts
                    first = False
                    if nxt is None:
                        return out, False, stack
                    at = nxt
                    continue
            if not leaving and (at in self.loops or node.end == "for") and not (first and at == entered):
                stmts, nxt, stack = self.loop(at, stack, follow, frame)
                out += stmts
                first = False
                if nxt is None:
                    return out, False, stack
                at = nxt
                continue
            first = False
            state = State(stack)
            self.machine.line = None
            self.machine.run(state, node.ops)
            if state.queue:
                raise Untangled("an unfinished assignment")
            stmts = state.stmts
            if stmts:
                if leaving:
                    raise Untangled("statements on the way out")
                out += stmts
            if node.ops and node.ops[-1].kind in ("LEAVE", "POP_EXCEPT"):
                leaving = True
                if self.never_ends(node.ops[-1]) and state.stack and is_value(state.stack[-1]):
                    # ``return`` in front of a clean-up that raises
                    out.append(ast.Return(self.machine.pop(state)))
                    out[-1].line = node.line  # type: ignore[attr-defined]
                    return out, False, stack
            end = node.end
            if end == "jump":
                at = node.succs[0]
                continue
            self.machine.line = node.line
            if end == "return":
                value = self.machine.pop(state)
                nothing = isinstance(value, ast.Constant) and value.value is None and not self.is_lambda
                stmt: ast.stmt = ast.Return(None if nothing else value)
                stmt.line = node.line  # type: ignore[attr-defined]
                out += self.pending(state)
                out.append(stmt)
                return out, False, stack
            if leaving:
                raise Untangled("a branch on the way out")
            if end == "branch":
                stmts, nxt, stack = self.branch(at, node, state, follow, frame)
                out += stmts
                if nxt is None:
                    return out, False, stack
                if nxt == follow and at != nxt:
                    return out, True, stack
                at = nxt
                continue
            if end == "raise":
                made = self.raise_(node, state)
                out += self.pending(state)
                out.append(made)
                return out, False, stack
            raise Untangled(f"unexpected {end}")

    def never_ends(self, op: Op) -> bool:
        """Whether it is the clean-up of a ``finally`` that ends in no way but ``raise`` or ``return``."""
        if op.kind != "LEAVE" or op.arg != "finally":
            return False
        return self.flow.ends[op.target] not in self.rpo

    def pending(self, state: State) -> list[ast.stmt]:
        """Statements for the values that are on the stack where control leaves the function: no source leaves any."""
        if not values(state.stack):
            return []
        if not self.machine.spill:
            raise Untangled("a value is pending at the end")
        state.stmts = []
        self.machine.spill_pending(state)
        return state.stmts

    def is_leave(self, node: Node) -> bool:
        return bool(node.ops) and node.ops[0].kind == "LEAVE"

    def raise_(self, node: Node, state: State) -> ast.stmt:
        values = self.machine.popn(state, node.arg)
        stmt = ast.Raise(values[0] if values else None, values[1] if len(values) > 1 else None)
        stmt.line = node.line  # type: ignore[attr-defined]
        if len(values) == 1:
            exc = values[0]
            message = None
            if isinstance(exc, ast.Call) and getattr(exc.func, "assertion", False) and len(exc.args) == 1:
                message, exc = exc.args[0], exc.func
            if getattr(exc, "assertion", False):
                made = ast.Assert(ast.Constant(False), message)
                made.untested = True  # type: ignore[attr-defined]
                made.line = node.line  # type: ignore[attr-defined]
                return made
        return stmt

    # --- if ---------------------------------------------------------------------------------------
    def join_of(self, at: int, follow: int, frame: Frame) -> int | None:
        """Where the two ways of a branch meet again."""
        best: int | None = None
        score: tuple[int, int] | None = None
        for child in self.children[at]:
            if len(self.preds[child]) < 2 or child == follow or child in self.flow.kinds:
                continue
            if frame.jump(child) is not None or not self.lies_in(child, frame.region):
                continue
            mark = (self.weight[child], self.rpo[child])
            if score is None or mark > score:
                best, score = child, mark
        if best is not None and (frame.jump(follow) is None or self.is_leave(self.flow.nodes[best])):
            # an exit that both ways may take is not where they meet, if one of them can go on without it
            arms = self.flow.nodes[at].succs
            if follow in self.reach(arms, {best, *self.outer_ends(frame, follow)} - {follow}):
                return None
        return best

    def lies_in(self, id: int, region: int | None) -> bool:
        """Whether a node is in a protected body, or a way out of it."""
        node = self.flow.nodes[id]
        return (
            region is None or not node.ops or region in self.flow.chain(node.region)
            or (self.is_leave(node) and node.ops[0].target == region)
        )

    def branch(
        self, at: int, node: Node, state: State, follow: int, frame: Frame
    ) -> tuple[list[ast.stmt], int | None, list[Any]]:
        done = len(state.stmts)
        test: Any = state.stack.pop() if state.stack else None
        if isinstance(test, Special):
            raise Untangled("a test of the compiler")
        test = self.machine.resolve(test)
        stack = state.stack
        if self.machine.spill and values(stack):
            stack.append(test)
            self.machine.spill_pending(state)
            test = stack.pop()
        elif values(stack):
            raise Untangled("a value is pending across a branch")
        t, f = node.succs
        join = self.join_of(at, follow, frame)
        target = follow if join is None else join
        positive = self.flow.order[t] <= self.flow.order[f]
        if positive and t == target and f != target:
            positive = False
        elif not positive and f == target and t != target:
            positive = True
        line = node.line
        pending = state.stmts[done:]
        a, b = (t, f) if positive else (f, t)
        body, falls_a, stack_a = self.walk(a, stack[:], target, frame)
        orelse, falls_b, stack_b = self.walk(b, stack[:], target, frame)
        for falls, after in ((falls_a, stack_a), (falls_b, stack_b)):
            if falls and values(after) > values(stack):
                raise Untangled("a value crosses a join")
        if falls_a and falls_b and len(stack_a) != len(stack_b):
            raise Untangled("different stacks at a join")
        stmts: list[ast.stmt] = pending
        made = self.make_if(test, positive, body, orelse, falls_a, falls_b, join is None and not falls_b)
        for stmt in made:
            if not hasattr(stmt, "line"):
                stmt.line = line  # type: ignore[attr-defined]
        stmts += made
        if not falls_a and not falls_b:
            return stmts, None, stack
        if falls_a and falls_b and values(stack_a):
            for one, other in zip(stack_a, stack_b):
                if is_value(one) and not same_node(one, other):
                    raise Untangled("different values at a join")
        return stmts, target, stack_a if falls_a else stack_b

    def make_if(
        self, test: ast.expr, positive: bool, body: list[ast.stmt], orelse: list[ast.stmt],
        falls_a: bool, falls_b: bool, flat: bool,
    ) -> list[ast.stmt]:
        # the rest of an ``assert``; one that tests a constant itself (3.9 and before) is complete
        if len(body) == 1 and isinstance(body[0], ast.Assert) and hasattr(body[0], "untested"):
            condition = negate(test) if positive else test
            return [ast.Assert(condition, body[0].msg), *orelse]
        if len(orelse) == 1 and isinstance(orelse[0], ast.Assert) and hasattr(orelse[0], "untested"):
            condition = test if positive else negate(test)
            return [ast.Assert(condition, orelse[0].msg), *body]
        if not positive and (not body or folds(test)):
            # ``not (a in b)`` would be compiled as ``a not in b``
            body, orelse, falls_a, falls_b, positive = orelse, body, falls_b, falls_a, True
        if not body and orelse and not folds(test) and positive:
            body, orelse, falls_a, falls_b, positive = orelse, body, falls_b, falls_a, False
        condition = test if positive else negate(test)
        if not falls_a and body and orelse:
            return [ast.If(condition, body, []), *orelse]
        return [ast.If(condition, body or [ast.Pass()], orelse)]

    # --- loops ------------------------------------------------------------------------------------
    def reach(self, starts: list[int], avoid: set[int]) -> set[int]:
        seen: set[int] = set()
        work = [s for s in starts if s not in avoid]
        nodes = self.flow.nodes
        while work:
            id = work.pop()
            if id in seen:
                continue
            seen.add(id)
            work.extend(s for s in nodes[id].succs if s not in seen and s not in avoid)
        self.spend(len(seen) // 8)
        return seen

    def outer_ends(self, frame: Frame, follow: int) -> set[int]:
        ends = {follow}
        at: Frame | None = frame
        while at is not None:
            if at.kind == "loop":
                ends.add(at.head)
                ends.add(at.exit)
            at = at.parent
        return ends

    def around_loop(self, head: int) -> list[int]:
        """Regions around the loop at ``head``: a region that a way back comes from outside of is in the loop
        (``while True: try: ...``), though it starts with the same block."""
        chain = self.flow.chain(self.flow.nodes[head].region)
        for tail in self.back.get(head, ()):
            inside = self.flow.chain(self.flow.nodes[tail].region)
            chain = [region for region in chain if region in inside]
        return chain

    def whole_body(self, head: int, body: set[int]) -> set[int]:
        """The body of a loop with what stands in it and never leads back: the rest of the protected bodies in it
        and their handlers (``except E: break``)."""
        nodes = self.flow.nodes
        around = self.around_loop(head)
        regions = {nodes[id].region for id in body} - {None, *around}
        if not regions:
            return body
        body = set(body)
        protected = list(regions)
        for region in protected:
            body.update(self.members.get(region, ()))
            protected += self.regions_in.get(region, ())
        work = [(region, 0) for region in regions if region is not None]
        seen: set[int] = set()
        while work:
            id, depth = work.pop()
            if id in seen:
                continue
            seen.add(id)
            body.add(id)
            node = nodes[id]
            depth += sum(handler_steps(node))
            if depth > 0:
                work.extend((succ, depth) for succ in node.succs)
            if node.region not in around and node.region is not None:
                work.append((node.region, 0))
        return body

    def skip_unwinding(self, id: int, head: int) -> int:
        """Where a way out of the loop at ``head`` leads once iterators, handlers and bodies inside it are left."""
        nodes = self.flow.nodes
        around = self.around_loop(head)
        for _ in range(20):
            node = nodes[id]
            if node.end != "jump":
                return id
            for op in node.ops:
                if op.kind == "POP":
                    continue
                if op.kind == "LEAVE" and op.target not in around:
                    continue
                if op.kind == "POP_EXCEPT":
                    handler = self.handler_of(id)
                    if handler is not None and not self.dominates(handler, head):
                        continue
                return id
            id = node.succs[0]
        return id

    def late_breaks(self, head: int, body: set[int], natural: int) -> list[int]:
        """Where breaks lead that come after other statements (``if x: y = 1; break``)."""
        nodes = self.flow.nodes
        found: list[int] = []
        inner = set()
        for other, blocks in self.loops.items():
            if other != head and other in body:
                # what leaves an inner loop drops that one's iterator first
                inner |= blocks - {other}
        starts = [s for id in body - inner for s in nodes[id].succs if s not in body and s != natural]
        for start in starts:
            seen = set()  # type: ignore[var-annotated]
            work = [start]
            while work and len(seen) < 50:
                id = work.pop()
                if id in seen or not self.dominates(start, id):
                    continue
                seen.add(id)
                node = nodes[id]
                if node.ops and node.ops[-1].kind == "POP" and node.ops[-1].arg == "iterator":
                    target = node.succs[0] if node.end == "jump" else id
                    goal = nodes[target]
                    constant = goal.end == "return" and len(goal.ops) <= 1
                    returns = len(node.ops) > 1 and node.ops[-2].kind == "SWAP"
                    if (
                        (len(node.ops) > 1 or id != start) and not constant and not returns
                        and goal.end != "reraise" and node.end == "jump"
                    ):
                        found.append(target)
                elif node.end in ("jump", "branch") and not any(
                    op.arg == "iterator" and op.kind == "POP" or op.kind == "GET_ITER" for op in node.ops
                ):
                    work.extend(node.succs)
        return found

    def returns_through(self, node: Node) -> bool:
        """Whether an iterator is dropped below the value to return."""
        return any(
            op.kind == "SWAP" and under.kind == "POP" and under.arg == "iterator"
            for op, under in zip(node.ops, node.ops[1:])
        )

    def drops_iterator(self, id: int, target: int) -> bool:
        """Whether the way from ``id`` to ``target`` drops an iterator."""
        nodes = self.flow.nodes
        while id != target:
            if any(op.kind == "POP" and op.arg == "iterator" for op in nodes[id].ops):
                return True
            id = nodes[id].succs[0]
        return False

    def handler_of(self, id: int) -> int | None:
        """The running handler a ``POP_EXCEPT`` ends."""
        at = id
        while True:
            if self.flow.kinds.get(at) in ("except", "except*", "finally"):
                return at
            up = self.idom[at]
            if up == at:
                return None
            at = up

    def loop_exit(self, head: int, body: set[int], natural: int | None, follow: int, frame: Frame) -> int | None:
        """Where ``break`` leads. ``natural``: where the loop goes when it ends by itself."""
        chosen = self.likely_exit(head, body, natural, follow, frame)
        # From inside, only ``break`` leads to the ends of the loop around this one; or a ``return`` of its own.
        ends = {
            end for end in self.outer_ends(frame, -1)
            if end >= 0 and end not in body and not (self.flow.nodes[end].end == "return" and self.small_exit(end))
        }
        if not ends or chosen in ends:
            return chosen
        starts = [s for id in body for s in self.flow.nodes[id].succs if s not in body and s != natural]
        missed = self.first_of(ends, starts, body | {-1 if chosen is None else chosen})
        return missed.pop() if len(missed) == 1 else chosen

    def first_of(self, ends: set[int], starts: list[int], avoid: set[int]) -> set[int]:
        """Which of ``ends`` control can come to first."""
        on_the_way = self.reach(starts, avoid | ends)
        found = ends.intersection(starts)
        for id in on_the_way:
            found.update(ends.intersection(self.flow.nodes[id].succs))
        return found

    def likely_exit(self, head: int, body: set[int], natural: int | None, follow: int, frame: Frame) -> int | None:
        nodes = self.flow.nodes
        targets: list[int] = []
        strong: list[int] = []
        inner = [other for other in self.loops if other != head and other in body and nodes[other].end == "for"]
        for id in body:
            for succ in nodes[id].succs:
                if succ not in body:
                    target = self.skip_unwinding(succ, head)
                    if nodes[target].end == "reraise" and target != follow:  # (a ``finally`` ends in one)
                        continue
                    if nodes[target].end == "return" and (
                        not nodes[target].ops or self.returns_through(nodes[target])
                    ):
                        continue  # the value to return is on the stack already: no ``break`` carries one
                    if target != succ and self.drops_iterator(succ, target):
                        # ``return`` computes its value before it drops the iterator, unless it is a constant
                        goal = nodes[target]
                        if natural is not None and target != natural and self.flow.same_way(target, natural):
                            # a copy of what follows the loop
                            at = succ
                            while nodes[at].succs[0] != target:
                                at = nodes[at].succs[0]
                            nodes[at].succs[0] = natural
                            continue
                        if goal.end != "return" or [op.kind for op in goal.ops] not in ([], ["CONST"]):
                            strong.append(target)
                    elif any(id in self.loops[other] and succ != nodes[other].succs[1] for other in inner):
                        continue  # the iterator of a loop in this one is still there
                    if target not in targets and not (id == head and succ == natural):
                        targets.append(target)
        if self.late and natural is not None and nodes[head].end == "for":
            for found in self.late_breaks(head, body, natural):
                if found not in targets:
                    targets.append(found)
                if found not in strong:
                    strong.append(found)
        ends = self.outer_ends(frame, follow)
        if natural is not None:
            others = [t for t in targets if t != natural]
            if not others:
                return natural
            avoid = body | (ends - {natural})
            if natural in ends:
                # the loop falls through to something outside: a break may lead there, too
                mine = {natural}
            else:
                mine = self.reach([natural], avoid)
            lone = [t for t in others if t in ends]
            reached = self.reach([t for t in others if t not in ends], avoid - {natural})
            if natural in reached:
                # statements behind a ``break`` that lead where the loop does: ``else: continue``
                behind = [t for t in others if t in strong and t not in ends] if natural in ends else []
                return max(behind, key=lambda id: self.weight[id]) if behind else natural
            common = mine & reached
            if not common and lone:
                # a break out of the loop that skips the else clause
                if follow in lone:
                    return follow
                sure = [t for t in lone if t in strong]
                if sure:
                    return sure[0]
                return lone[0] if frame.jump(lone[0]) is None else natural
            if common:
                return min(common, key=lambda id: self.rpo[id])
            breaks = [t for t in strong if t != natural]
            if breaks:
                return max(breaks, key=lambda id: self.weight[id])
            return natural
        if not targets:
            return None
        if follow in targets:
            return follow
        candidates = [t for t in targets if t not in ends]
        if not candidates:
            return targets[0]
        merged = [
            id for id in self.reach(candidates, body | ends)
            if id not in candidates and len(self.preds[id]) > 1 and self.dominates(head, id)
        ]
        pool = candidates + merged
        ways = [self.reach([id], body | ends) for id in candidates]

        def rank(id: int) -> tuple[bool, bool, bool, int, int, int]:
            reached = self.reach([id], body | (ends - {id}))
            goes_on = any(
                not self.dominates(head, n) or any(s in ends for s in nodes[n].succs) for n in reached
            )
            leading = sum(id in way for way in ways)
            return goes_on, nodes[id].end != "raise", not self.small_exit(id), leading, self.weight[id], -self.rpo[id]

        return max(pool, key=rank)

    def small_exit(self, id: int) -> bool:
        node = self.flow.nodes[id]
        return node.end == "reraise" or (node.end in ("return", "raise") and len(node.ops) <= 3)

    def loop(
        self, at: int, stack: list[Any], follow: int, frame: Frame
    ) -> tuple[list[ast.stmt], int | None, list[Any]]:
        node = self.flow.nodes[at]
        body = self.loops.get(at, {at})
        around: Frame | None = frame
        while around is not None:
            if around.kind == "loop" and around.head == at and around.region == frame.region:
                raise Untangled("a jump to the head of an outer loop")
            around = around.parent
        if node.end == "for":
            return self.for_loop(at, node, body, stack, follow, frame)
        natural: int | None = None
        if node.end == "branch":
            out = [s for s in node.succs if s not in body]
            if len(out) == 1:
                natural = out[0]
                probe = State(stack[:])
                try:
                    self.machine.run(probe, node.ops)
                    if probe.stmts:
                        natural = None
                except Unliftable:
                    natural = None
        exit_ = self.loop_exit(at, body, natural, follow, frame)
        inner = Frame("loop", frame, frame.region, at, -1 if exit_ is None else exit_)
        if natural is not None and exit_ is not None and self.is_else(natural, exit_, body, frame):
            return self.while_else(at, node, stack, natural, exit_, frame, inner)
        stmts, falls, after = self.walk(at, stack[:], at, inner, entered=at)
        if falls and values(after) > values(stack):
            raise Untangled("a value crosses a loop")
        made = self.make_while(stmts)
        for stmt in made:
            stmt.line = node.line  # type: ignore[attr-defined]
        return made, exit_, stack

    def is_else(self, natural: int, exit_: int, body: set[int], frame: Frame) -> bool:
        """Whether the statements at ``natural`` can only be an ``else`` clause: they go on in a loop around."""
        if natural == exit_:
            return False
        ends = {end for end in self.outer_ends(frame, -1) if end >= 0} - {exit_}
        return bool(ends) and bool(self.first_of(ends, [natural], body | {exit_}))

    def while_else(
        self, at: int, node: Node, stack: list[Any], natural: int, exit_: int, frame: Frame, inner: Frame
    ) -> tuple[list[ast.stmt], int | None, list[Any]]:
        state = State(stack[:])
        self.machine.run(state, node.ops)
        test = self.machine.pop(state)
        t, f = node.succs
        stmts, _, _ = self.walk(f if t == natural else t, stack[:], at, inner)
        if stmts and isinstance(stmts[-1], ast.Continue):
            stmts.pop()
        orelse, _, _ = self.walk(natural, stack[:], exit_, frame)
        made: Any = ast.While(negate(test) if t == natural else test, stmts or [ast.Pass()], orelse)
        made.line = node.line
        return [made], exit_, stack

    def make_while(self, stmts: list[ast.stmt]) -> list[ast.stmt]:
        """``while True: if not c: break ...`` is ``while c: ...``."""
        if stmts and isinstance(stmts[-1], ast.Continue):
            stmts = stmts[:-1]
        first = stmts[0] if stmts else None
        if isinstance(first, ast.If):
            if len(first.body) == 1 and isinstance(first.body[0], ast.Break):
                if not first.orelse and not folds(first.test):
                    return [ast.While(negate(first.test), stmts[1:] or [ast.Pass()], [])]
                if first.orelse and not folds(first.test) and len(stmts) == 1:
                    return [ast.While(negate(first.test), first.orelse, [])]
            elif len(first.orelse) == 1 and isinstance(first.orelse[0], ast.Break):
                return [ast.While(first.test, [*first.body, *stmts[1:]], [])]
            elif len(stmts) == 2 and isinstance(stmts[1], ast.Break) and not first.orelse:
                if isinstance(first.body[-1], ast.Continue):
                    return [ast.While(first.test, first.body[:-1] or [ast.Pass()], [])]
        return [ast.While(ast.Constant(True), stmts or [ast.Pass()], [])]

    def for_loop(
        self, at: int, node: Node, body: set[int], stack: list[Any], follow: int, frame: Frame
    ) -> tuple[list[ast.stmt], int | None, list[Any]]:
        out: list[ast.stmt] = []
        if node.ops:
            state = State(stack)
            self.machine.run(state, node.ops)
            out += state.stmts
            stack = state.stack
        iterator = stack[-1] if stack else None
        if isinstance(iterator, Iter):
            iterable = iterator.value
        else:
            raise Untangled("a for loop over something that is on the stack")
        line = self.machine.line if node.ops else node.line
        start, natural = node.succs
        exit_ = self.loop_exit(at, body, natural, follow, frame)
        inner = Frame("loop", frame, frame.region, at, natural if exit_ is None else exit_)
        owner = Target()
        stmts, falls, after = self.walk(start, [*stack, Slot(owner)], at, inner)
        if owner.target is None:
            raise Untangled("an item that is not stored")
        if stmts and isinstance(stmts[-1], ast.Continue):
            stmts.pop()
        loop = ast.For(owner.target, iterable, stmts or [ast.Pass()], [])
        loop.line = line if line is not None else node.line  # type: ignore[attr-defined]
        rest = stack[:-1]
        return self.with_else(loop, out, natural, exit_, rest, follow, frame)

    def with_else(
        self, loop: Any, out: list[ast.stmt], natural: int, exit_: int | None, rest: list[Any], follow: int,
        frame: Frame,
    ) -> tuple[list[ast.stmt], int | None, list[Any]]:
        out.append(loop)
        if exit_ is None or exit_ == natural:
            return out, natural, rest
        orelse, falls, _ = self.walk(natural, rest[:], exit_, frame)
        loop.orelse = orelse
        return out, exit_, rest

    def async_for(
        self, region: int, at: int, stack: list[Any], follow: int, frame: Frame
    ) -> tuple[list[ast.stmt], int | None, list[Any]]:
        node = self.flow.nodes[at]
        iterator = stack[-1] if stack else None
        if not isinstance(iterator, Iter) or [op.kind for op in node.ops] != ["GET_ANEXT_AWAIT"] or node.end != "jump":
            raise Untangled("an async for loop")
        natural = self.flow.nodes[region].succs[0]
        body = self.loops.get(at, {at})
        exit_ = self.loop_exit(at, body, natural, follow, frame)
        inner = Frame("loop", frame, frame.region, at, natural if exit_ is None else exit_)
        owner = Target()
        stmts, falls, after = self.walk(node.succs[0], [*stack, Slot(owner)], at, inner)
        if owner.target is None:
            raise Untangled("an item that is not stored")
        if stmts and isinstance(stmts[-1], ast.Continue):
            stmts.pop()
        loop = ast.AsyncFor(owner.target, iterator.value, stmts or [ast.Pass()], [])
        loop.line = node.ops[0].line  # type: ignore[attr-defined]
        return self.with_else(loop, [], natural, exit_, stack[:-1], follow, frame)

    # --- try, with --------------------------------------------------------------------------------
    def way_out(self, target: int, follow: int, frame: Frame) -> str:
        """What a way out of a protected body is: ``return``, ``jump`` (break, continue) or ``normal``."""
        nodes = self.flow.nodes
        at = target
        for _ in range(50):
            if at == follow:
                return "normal"
            if frame.jump(at) is not None:
                return "jump"
            node = nodes[at]
            if any(op.kind not in ("CONST", "POP", "SWAP", "POP_EXCEPT", "LEAVE") for op in node.ops):
                return "normal"
            if node.end == "return":
                return "return"
            if node.end != "jump":
                return "normal"
            at = node.succs[0]
        return "normal"

    def best_normal(self, targets: list[int], follow: int, frame: Frame) -> int | None:
        """The way out that statements behind the protected body continue."""
        normal = [t for t in targets if t != follow and self.way_out(t, follow, frame) == "normal"]
        if follow in targets and (not normal or frame.jump(follow) is None):
            return follow  # else those that lead there do so by ``continue``
        if not normal:
            return None
        return max(normal, key=lambda t: (self.weight[t], len(self.preds[t])))

    def protected(
        self, region: int, at: int, stack: list[Any], follow: int, frame: Frame, entered: int
    ) -> tuple[list[ast.stmt], int | None, list[Any]]:
        kind = self.flow.kinds[region]
        nodes = self.flow.nodes
        leaves = self.leaves.get(region, [])
        targets: list[int] = []
        for id in leaves:
            if nodes[id].succs[0] not in targets:
                targets.append(nodes[id].succs[0])
        inner = Frame(kind, frame, region)
        if kind == "with":
            # where control goes on when the exception is swallowed is what follows the statement
            resume = nodes[region].succs[0]
            self.unify(leaves, resume)
            return self.with_(region, at, stack, resume, frame, inner, entered)
        if kind == "finally":
            join = self.best_normal(targets, follow, frame)
            self.unify(leaves, join)
            body, falls, after = self.walk(at, stack[:], -2 if join is None else join, inner, entered)
            end = self.flow.ends[region]
            final, _, _ = self.walk(region, [*stack, Caught(False)], end, Frame("handler", frame, nodes[region].region))
            made: Any = body[0] if len(body) == 1 else None
            if getattr(made, "handlers", None) and not made.finalbody:
                made.finalbody = final or [ast.Pass()]
            else:
                made = ast.Try(body or [ast.Pass()], [], [], final or [ast.Pass()])
            made.line = self.first_line(body)
            return [made], join if falls else None, after if falls else stack
        if kind == "except" or kind == "except*":
            return self.try_except(region, at, stack, follow, frame, inner, entered, leaves, targets)
        raise Untangled(f"a region of kind {kind}")

    def first_line(self, stmts: list[ast.stmt]) -> int | None:
        return getattr(stmts[0], "line", None) if stmts else None

    def unify(self, leaves: list[int], join: int | None) -> None:
        """Ways out that do the same as ``join`` lead there."""
        if join is None:
            return
        self.unify_edges(leaves, join)

    def unify_edges(self, sources: Iterable[int], join: int) -> None:
        nodes = self.flow.nodes
        for id in sources:
            for position, succ in enumerate(nodes[id].succs):
                if succ != join and self.flow.same_way(succ, join):
                    nodes[id].succs[position] = join

    def with_(
        self, region: int, at: int, stack: list[Any], join: int | None, frame: Frame, inner: Frame, entered: int
    ) -> tuple[list[ast.stmt], int | None, list[Any]]:
        if len(stack) < 2 or not isinstance(stack[-2], Exit) or not isinstance(stack[-1], Slot):
            raise Untangled("a with statement that starts elsewhere")
        exit_ = stack[-2]
        owner = Target("value")
        body_stack = [*stack[:-1], Slot(owner)]
        body, falls, after = self.walk(at, body_stack, -2 if join is None else join, inner, entered)
        item = ast.withitem(exit_.manager, owner.target)
        if owner.target is None and isinstance(exit_.manager, ast.Tuple) and exit_.manager.elts:
            self.machine.scope.is_one_item(exit_.manager)
        made: Any
        if exit_.asynchronous:
            made = ast.AsyncWith([item], body or [ast.Pass()])
        else:
            made = ast.With([item], body or [ast.Pass()])
        made.line = self.first_line(body)
        return [made], join, stack[:-2]

    def try_except(
        self, region: int, at: int, stack: list[Any], follow: int, frame: Frame, inner: Frame, entered: int,
        leaves: list[int], targets: list[int],
    ) -> tuple[list[ast.stmt], int | None, list[Any]]:
        nodes = self.flow.nodes
        outs = self.handler_ways(region)
        handler_targets: list[int] = []
        for id in outs:
            if nodes[id].succs[0] not in handler_targets:
                handler_targets.append(nodes[id].succs[0])
        normal = self.best_normal(targets, follow, frame)
        star = self.flow.kinds[region] == "except*"
        # no clause of ``except*`` can return or jump: that is what follows, whatever it does
        after_handlers = handler_targets[0] if star and handler_targets else self.best_normal(
            handler_targets, follow, frame)
        start_else = normal
        if star and normal is not None and after_handlers is not None and normal != after_handlers:
            # the end of ``else`` may be a copy of what the clauses lead to
            rest = self.reach([normal], self.outer_ends(frame, follow) - {normal})
            self.unify_edges(rest, after_handlers)
        if normal is None:
            join = after_handlers
        elif after_handlers is None or after_handlers == normal or self.flow.same_way(after_handlers, normal):
            join = normal
        elif after_handlers == follow:
            join = follow
        else:
            ends = self.outer_ends(frame, follow)
            reached = self.reach([normal], ends - {normal})
            back = self.reach([after_handlers], ends - {after_handlers})
            if after_handlers in reached:
                join = after_handlers
            elif normal in back:
                join = normal
            else:
                common = [id for id in reached & back if self.dominates(at, id)]
                join = min(common, key=lambda id: self.rpo[id]) if common else after_handlers
        self.unify(leaves, start_else)
        self.unify(leaves, join)
        self.unify(outs, join)
        body, falls, stack_after = self.walk(at, stack[:], -2 if start_else is None else start_else, inner, entered)
        orelse: list[ast.stmt] = []
        if falls and start_else is not None and start_else != join:
            orelse, falls, stack_after = self.walk(
                start_else, stack_after, -2 if join is None else join, frame
            )
        handlers, handler_falls = self.handlers(region, stack, -2 if join is None else join, frame)
        make = try_star if star else ast.Try
        made: Any = make(body or [ast.Pass()], handlers, orelse, [])
        made.line = self.first_line(body)
        if falls and values(stack_after) > values(stack):
            raise Untangled("a value crosses the end of a try")
        return [made], join if falls or handler_falls else None, stack

    def handler_ways(self, region: int) -> list[int]:
        """Nodes in which a running handler of ``region`` ends. (Other handlers may run inside it.)"""
        nodes = self.flow.nodes
        around = self.flow.chain(nodes[region].region)
        found = []
        seen = set()
        work = [(region, 0)]
        while work:
            id, depth = work.pop()
            if id in seen:
                continue
            seen.add(id)
            node = nodes[id]
            if node.region is not None and node.region not in around:
                work.append((node.region, depth))
            depth += sum(handler_steps(node))
            if not depth:
                found.append(id)
                continue
            work.extend((succ, depth) for succ in node.succs)
        return found

    def handlers(
        self, region: int, stack: list[Any], join: int, frame: Frame
    ) -> tuple[list[ast.ExceptHandler], bool]:
        nodes = self.flow.nodes
        inner = Frame("handler", frame, nodes[region].region)
        handlers: list[ast.ExceptHandler] = []
        any_falls = False
        at = region
        current: list[Any] = [*stack, Caught(False)]
        while True:
            self.spend(1)
            node = nodes[at]
            state = State(current[:])
            match = any(op.kind == "CHECK_EXC_MATCH" for op in node.ops) and node.end == "branch"
            if not match:
                if node.end == "reraise" and not node.ops:
                    break
                # a bare except
                body, falls, _ = self.walk(at, state.stack, join, inner)
                handler = ast.ExceptHandler(None, None, body or [ast.Pass()])
                handlers.append(handler)
                any_falls |= falls
                break
            self.machine.run(state, node.ops)
            if state.stmts:
                raise Untangled("statements before a handler")
            test = state.stack.pop()
            if not isinstance(test, Special) or test.kind != "match":
                raise Untangled("a handler that tests something else")
            t, f = node.succs
            caught = self.machine.caught = Target("e")
            body, falls, _ = self.walk(t, state.stack[:], join, inner)
            name = caught.target.id if caught.target is not None else None  # type: ignore[attr-defined]
            handlers.append(ast.ExceptHandler(test.value, name, body or [ast.Pass()]))
            any_falls |= falls
            at = f
            current = state.stack
        return handlers, any_falls


def values(stack: list[Any]) -> int:
    """How many values of the program (not of the compiler) a stack holds."""
    return sum(map(is_value, stack))


def folds(test: ast.expr) -> bool:
    """Whether the compiler folds ``not`` into this test (``not a in b``), or it has no ``not`` (a case)."""
    return (
        case_of(test) is not None
        or isinstance(test, ast.Compare) and len(test.ops) == 1
        and isinstance(test.ops[0], (ast.In, ast.Is, ast.NotIn, ast.IsNot))
    )
