"""Analysis of the reduced control-flow graph before it is walked: dominators, loops and what stands in them.

Changes with what the walk has to know.
"""

from __future__ import annotations

from ...cfg.dominators import immediate_dominators, predecessors, reverse_postorder
from .regions import Flow, handler_steps


class Shape:
    """Dominators, loops and regions of a flow, as they were when it was looked at."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
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
