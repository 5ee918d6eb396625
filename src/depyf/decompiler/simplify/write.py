"""What is left of a block -> operations, with variables named for people."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...bytecode import operations as o
from ...bytecode.operations import Op
from ...flow.graph import Block
from ...flow.stack import effect
from ..dynamo_names import BUILTINS_PREFIX, CONSTANT_PREFIX
from .values import CannotSimplify, Const, Let, Local, Plan, Value

if TYPE_CHECKING:
    from . import _Simplifier


#: Names that are made up of what a value is are not longer than this many characters.
LONGEST_NAME = 50


class Namer:
    """Gives variables to lets: torch's own names where they are free, else what a value is used as."""

    def __init__(self, owner: _Simplifier) -> None:
        code = owner.graph.code
        self.taken: set[str] = set(owner.arguments) | owner.kept | set(code.cellvars) | set(code.freevars)
        for block in owner.graph.blocks.values():
            for op in block.ops:
                if op.kind in (o.LOAD_GLOBAL, o.STORE_GLOBAL, o.LOAD_NAME):
                    self.taken |= {op.arg, owner.rename.get(op.arg, op.arg)}
        self.rename = owner.rename

    def name(self, let: Let) -> str:
        if let.variable is None:
            hints = [h for h in let.hints if h.isidentifier() and not is_torch_name(h)]
            described = _described(let, self.rename)
            if described != "tmp":
                hints.append(described)
            else:
                hints += [h for h in let.hints if h.isidentifier()] or ["tmp"]
            base = next((h for h in hints if h not in self.taken), hints[0])
            candidate, count = base, 0
            while candidate in self.taken:
                count += 1
                candidate = f"{base}_{count}"
            self.taken.add(candidate)
            let.variable = candidate
        return let.variable


def _described(let: Let, rename: Mapping[str, str], depth: int = 0) -> str:
    """A name from where the value comes: ``self._modules['model']`` is ``model``.

    Args:
        let: the value.
        rename: global names that the text shows differently.
        depth: how many values led here.
    """
    if let.op is None or depth > 3:
        return "tmp"
    if let.op.kind is o.LOAD_GLOBAL:
        # Called like the module that an alias of Dynamo's stands for, or the global itself.
        name = rename.get(let.op.arg, let.op.arg)
        return "builtin" if name.startswith(BUILTINS_PREFIX) else _short(name.rpartition("_dot_")[2])
    if not let.operands:
        return "tmp"
    owner = let.operands[0]
    if let.op.kind is o.CALL and isinstance(owner, Let) and owner.op is not None \
            and owner.op.kind is o.LOAD_ATTR and owner.op.arg == "__new__":
        made = owner.operands[0]
        kind = _described(made, rename, depth + 1) if isinstance(made, Let) else "tmp"
        return "tmp" if kind == "tmp" else _short(f"new_{kind}")
    inner = _described(owner, rename, depth + 1) if isinstance(owner, Let) else "tmp"
    if let.op.kind is o.LOAD_ATTR:
        # Modules keep what they hold in dictionaries: those are called like the module.
        return inner if let.op.arg in ("_modules", "_parameters", "_buffers") else _short(let.op.arg)
    if let.op.kind is o.GETITEM and isinstance(let.operands[1], Const) and type(let.operands[1].value) is str:
        key = let.operands[1].value
        if inner == "tmp":
            return _short(key)
        return _short(f"{inner}_{key}")
    if let.op.kind is o.GETITEM and isinstance(owner, Let) and owner.variable is not None \
            and isinstance(let.operands[1], Const) and type(let.operands[1].value) is int:
        return _short(f"{owner.variable}_{let.operands[1].value}")
    return "tmp"


def _short(name: str) -> str:
    name = name.strip("_")
    if hasattr(builtins, name):
        name += "_"  # ``list`` would hide the function
    return name if name.isidentifier() and len(name) <= LONGEST_NAME and not keyword.iskeyword(name) else "tmp"


def is_torch_name(name: str) -> bool:
    """``tmp_3``, ``___stack0``: torch's names for anything (torch/_dynamo/codegen.py, resume_execution.py)."""
    return name.startswith(("___stack", "__is_tracing_")) or name.startswith("tmp_") and name[4:].isdigit()


_TARGETS = frozenset({o.STORE_FAST, o.STORE_DEREF, o.STORE_GLOBAL, o.STORE_NAME, o.UNPACK, o.UNPACK_EX})


class BlockWriter:
    """Lets -> operations, nesting expressions where the order of evaluation allows it."""

    def __init__(self, block: Block, plan: Plan, namer: Namer) -> None:
        self.block = block
        self.plan = plan
        self.namer = namer
        self.ops: list[Op] = []
        #: Values that are computed next, in this order: on the stack already (``reals``) or not yet.
        self.reals: list[Let] = list(plan.entry_stack)
        #: Values that are stored, or taken apart, as they are: what an assignment's targets get.
        self.targets = {id(operand) for let in plan.lets if let.op is not None and let.op.kind in _TARGETS
                        for operand in let.operands}
        self.pending: list[tuple[Let, list[Op]]] = []
        #: Some of what waits takes a value that is on the stack already, which must then stay on its top.
        self.waits_on_reals = False

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
            if let.op.kind in (o.UNPACK, o.UNPACK_EX) and not all(id(r) in self.targets for r in let.results) \
                    or any(r.uses != 1 or r.elsewhere for r in let.results):
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
        if not let.pure:
            return False
        if let.op is not None and let.op.kind is o.LOAD_GLOBAL:  # one of Dynamo's own: reads the same anywhere
            return let.uses == 1 or let.op.arg.startswith(CONSTANT_PREFIX)
        if let.uses != 1 or let.elsewhere:
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

    def flush(self, count: int | None = None) -> None:
        """What waits (the first ``count`` of it) is computed now, into variables."""
        count = len(self.pending) if count is None else count
        for let, fragment in self.pending[:count]:
            assert let.op is not None
            self.ops += [*fragment, self.like(o.STORE_FAST, let.op, self.namer.name(let))]
        del self.pending[:count]
        if not self.pending:
            self.waits_on_reals = False

    def still_waiting(self, values: Sequence[Let]) -> list[Let]:
        """Those that have no variable yet, all of which must be at hand."""
        waiting = [let for let, _ in self.pending]
        left = [v for v in values if v.variable is None]
        if any(v not in waiting for v in left):
            raise CannotSimplify("a value is used before it is computed")
        return left

    def spill(self, count: int) -> None:
        """Takes values off the stack into variables, top first."""
        depth = self.block.floor
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
        waiting = [let for let, _ in self.pending]
        late = [v for v in operands
                if isinstance(v, Let) and v.variable is None and v not in waiting and self.is_late(v)]
        wanted = [v for v in operands if isinstance(v, Let) and v.variable is None and v not in late]
        on_stack = [v for v in wanted if v.op is None]
        computed = [v for v in wanted if v.op is not None]
        in_order = wanted == on_stack + computed and operands[: len(on_stack)] == on_stack
        if on_stack and (not in_order or self.reals[len(self.reals) - len(on_stack) :] != on_stack
                         or len(set(map(id, on_stack))) != len(on_stack)):
            if self.waits_on_reals:
                self.flush()
                waiting = []
            lowest = min(self.reals.index(v) for v in on_stack)
            self.spill(len(self.reals) - lowest)
            on_stack = []
            computed = [v for v in operands
                        if isinstance(v, Let) and v.variable is None and v not in late]
        if on_stack and len(waiting) > len(computed):
            self.flush()
            computed = self.still_waiting(computed)
        elif computed != waiting[len(waiting) - len(computed) :]:
            # What waits in another order than it is taken in goes into variables, and what came before that.
            kept = next(k for k in range(len(waiting), -1, -1)
                        if [v for v in computed if v in waiting[len(waiting) - k :]] == waiting[len(waiting) - k :])
            self.flush(len(waiting) - kept)
            computed = self.still_waiting(computed)
        waiting = [let for let, _ in self.pending]
        fragments = {id(let): fragment for let, fragment in self.pending[len(waiting) - len(computed) :]} \
            if computed else {}
        if computed:
            del self.pending[len(self.pending) - len(computed) :]
        if on_stack:
            del self.reals[len(self.reals) - len(on_stack) :]
            self.waits_on_reals = True
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
