"""Write the remaining values of a block as operations."""

from __future__ import annotations

from collections.abc import Sequence

from ....bytecode import operations as o
from ....bytecode.operations import UPDATES, Op, effect
from ....cfg.graph import Block
from ...errors import SIMPLIFY, CannotDecompile
from ..facts import ALWAYS, PLAIN
from ..global_names import CONSTANT_PREFIX, RESUME_PREFIX
from .objects import is_key
from .values import BlockPlan, Const, Local, Namer, SsaValue, Value, called_global, size_of

_TARGETS = frozenset({o.STORE_FAST, o.STORE_DEREF, o.STORE_GLOBAL, o.STORE_NAME, o.UNPACK, o.UNPACK_EX})


class BlockWriter:
    """A writer of block plans as operations, which nests expressions where the order of evaluation allows it."""

    def __init__(self, block: Block, plan: BlockPlan, namer: Namer) -> None:
        self.block, self.plan, self.namer = block, plan, namer
        self.ops: list[Op] = []
        #: Values that are computed next, in this order: on the stack already (``reals``) or not yet.
        self.reals: list[SsaValue] = list(plan.entry_stack)
        #: Values that are stored, or unpacked, as they are: what an assignment's targets get.
        self.targets = {id(operand) for result in plan.values if result.op is not None and result.op.kind in _TARGETS
                        for operand in result.operands}
        self.pending: list[tuple[SsaValue, list[Op]]] = []

    def write(self) -> list[Op]:
        """Return the operations of the block."""
        for result in self.plan.values:
            self.write_value(result)
        fragment = self.consume(self.plan.end_operands)
        self.flush()
        return self.ops + fragment

    def write_value(self, result: SsaValue) -> None:
        """Write one SSA value: into a variable, onto the stack, or as part of what takes it next."""
        assert result.op is not None
        if self.is_late(result):
            return
        self.separate_calls(result)
        kind = result.op.kind
        fragment = [*self.consume(result.operands), result.op]
        pushes = kind in UPDATES or effect(result.op)[1]
        if pushes and not result.results and result.uses == 1 and not result.elsewhere:
            self.pending.append((result, fragment))
            return
        self.flush()
        self.ops += fragment
        if result.results:
            self.reals += result.results
            if kind in (o.UNPACK, o.UNPACK_EX) and not all(id(r) in self.targets for r in result.results) \
                    or any(r.uses != 1 or r.elsewhere for r in result.results):
                self.spill(len(result.results), True)  # (an unpacked value has a variable for each part)
        elif pushes:
            self.ops.append(Op(o.STORE_FAST, self.namer.name(result)) if result.uses
                            else Op(o.POP, None))

    def separate_calls(self, result: SsaValue) -> None:
        """Store what is called for a resume function in variables before its call, where the graph broke."""
        if not called_global(result).startswith(RESUME_PREFIX):
            return
        waiting = [each for each, _ in self.pending]
        # (Calls that others may see.)
        calls = [value for value in result.operands if isinstance(value, SsaValue) and value in waiting
                 and value.op is not None and value.op.kind in (o.CALL, o.CALL_EX)
                 and not (value.role or value.pure or value.lasting or value.optional)]
        if calls and waiting[: len(calls)] == calls:
            self.flush(len(calls))

    @staticmethod
    def is_late(result: SsaValue) -> bool:
        """Return whether a value is computed where it is used: the only operand that is computed is in a variable."""
        if result.lasting:
            return True
        if not result.pure:
            return False
        if result.op is not None and result.op.kind is o.LOAD_GLOBAL:  # one of Dynamo's own: reads the same anywhere
            return result.uses == 1 or result.op.arg.startswith(CONSTANT_PREFIX)
        if result.uses != 1 or result.elsewhere:
            return False
        if result.op is not None and result.op.kind in (o.BUILD_LIST, o.BUILD_TUPLE, o.BUILD_SLICE):
            # What takes it follows at once: no local it reads is stored in between.
            return all(isinstance(value, (Const, Local)) for value in result.operands)
        if not result.operands:
            return True
        owner = result.operands[0]
        return isinstance(owner, SsaValue) and (owner.uses > 1 or owner.elsewhere or owner.variable is not None)

    def flush(self, count: int | None = None) -> None:
        """Compute what waits (the first ``count`` of it) now, into variables."""
        count = len(self.pending) if count is None else count
        for result, fragment in self.pending[:count]:
            self.ops += [*fragment, Op(o.STORE_FAST, self.namer.name(result))]
        del self.pending[:count]

    def spill(self, count: int, unused: bool = False) -> None:
        """Take values off the stack into variables, top first."""
        if len(self.reals) - count < self.block.floor:
            raise CannotDecompile(SIMPLIFY, "a value under an exception handler is used out of order")
        for _ in range(count):
            real = self.reals.pop()
            needed = real.uses or unused
            self.ops.append(Op(o.STORE_FAST, self.namer.name(real)) if needed else Op(o.POP, None))

    def read_too_early(self, operands: Sequence[Value]) -> bool:
        """Return whether an unobservable read, where it is used, would come before something that may change it."""
        waiting = [result for result, _ in self.pending]
        changes = [at for at, value in enumerate(operands) if value in waiting and not self.only_builds(value)]
        # (the contents of modules do not change while things are only read)
        of_modules = [at for at in changes if not self.only_reads(operands[at])]
        return any(isinstance(value, SsaValue) and value.lasting not in ("", ALWAYS) and value.op is not None
                   and at < max(changes if value.lasting == PLAIN else of_modules, default=-1)
                   for at, value in enumerate(operands))

    def only_builds(self, value: Value) -> bool:
        """Return whether evaluating a value runs no code: it is a display of available values."""
        if not isinstance(value, SsaValue) or value.lasting or value.variable is not None:
            return True
        kind = value.op.kind if value.op is not None else ""
        keys = value.operands[::2] if kind is o.BUILD_MAP else []
        return (value.graph_item or kind in (o.BUILD_MAP, o.BUILD_LIST, o.BUILD_TUPLE)) and all(map(is_key, keys)) \
            and all(map(self.only_builds, value.operands))

    @staticmethod
    def only_reads(value: Value) -> bool:
        """Return whether evaluating a value cannot change the contents of modules: it is the size of a known value."""
        return isinstance(value, SsaValue) and value.role == ("size",) and all(
            not isinstance(part, SsaValue) or part.lasting or part.variable is not None for part in size_of(value))

    def consume(self, operands: Sequence[Value]) -> list[Op]:
        """Return operations that push the operands; those among them that wait become part of it."""
        if self.pending and self.read_too_early(operands):
            self.flush()
        waiting = [result for result, _ in self.pending]
        late = [value for value in _not_in_variables(operands) if value not in waiting and self.is_late(value)]
        on_stack, computed = self.at_hand(operands, late)
        start = len(self.pending) - len(computed)
        fragments = {id(result): fragment for result, fragment in self.pending[start:]}
        del self.pending[start:]
        if on_stack:
            del self.reals[-len(on_stack) :]
        ops: list[Op] = []
        for value in operands:
            if isinstance(value, Const):
                ops.append(Op(o.CONST, value.value))
            elif isinstance(value, Local):
                ops.append(Op(o.LOAD_FAST, value.name))
            elif not isinstance(value, SsaValue):
                raise CannotDecompile(SIMPLIFY, "a container was not built")
            elif value in late:
                assert value.op is not None
                ops += [*self.consume(value.operands), value.op]
            elif id(value) in fragments:
                ops += fragments[id(value)]
            elif value.variable is not None:
                ops.append(Op(o.LOAD_FAST, value.variable))
            # else: it is on the stack already
        return ops

    def at_hand(self, operands: Sequence[Value], late: list[SsaValue]) -> tuple[list[SsaValue], list[SsaValue]]:
        """Return the operands that are taken from the stack, and those that wait to be computed, in order."""
        wanted = [value for value in _not_in_variables(operands) if value not in late]
        on_stack = [value for value in wanted if value.op is None]
        computed = [value for value in wanted if value.op is not None]
        if on_stack and (wanted != on_stack + computed or operands[: len(on_stack)] != on_stack
                         or self.reals[-len(on_stack) :] != on_stack):
            raise CannotDecompile(SIMPLIFY, "values on the stack are used in another order")
        waiting = [result for result, _ in self.pending]
        if computed == waiting[len(waiting) - len(computed) :] and not (on_stack and len(waiting) > len(computed)):
            return on_stack, computed
        kept = 0 if on_stack else next(  # (and what came before that)
            k for k in range(len(waiting), -1, -1)
            if [v for v in computed if v in waiting[len(waiting) - k :]] == waiting[len(waiting) - k :])
        self.flush(len(waiting) - kept)
        waiting = [result for result, _ in self.pending]
        computed = [value for value in computed if value.variable is None]
        if any(value not in waiting for value in computed):
            raise CannotDecompile(SIMPLIFY, "a value is used before it is computed")
        return on_stack, computed


def _not_in_variables(values: Sequence[Value]) -> list[SsaValue]:
    return [value for value in values if isinstance(value, SsaValue) and value.variable is None]
