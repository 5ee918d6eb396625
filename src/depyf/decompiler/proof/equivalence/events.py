"""The event that an operation is: what of it another part of the program, or its user, can observe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....bytecode import operations as o
from ....bytecode.operations import Op
from ....bytecode.opspec import ON_GLOBALS, UPDATES, effect
from .states import Different, Event, State
from .values import Symbol, resolve

if TYPE_CHECKING:
    from .prover import Prover


def event_of(prover: Prover, state: State, op: Op) -> Event:
    """Return the event that an operation is, with the operands that count."""
    kind, stack = op.kind, state.stack
    popped = effect(op)[0]
    if popped > len(stack):
        raise Different("a stack holds too few values")
    operands = stack[len(stack) - popped :]
    if kind in UPDATES:  # (how far below the container lies is layout)
        return Event(kind, None, [stack[-popped - op.arg], *operands], op)
    if kind is o.RERAISE:
        return Event(kind, bool(op.arg), [stack[-1]], op)
    if kind is o.WITH_EXCEPT_START:
        below = resolve(stack[-3])
        has_lasti = isinstance(below, Symbol) and below.key[0] == "lasti"
        return Event(kind, None, [stack[-4 if has_lasti else -3], stack[-1]], op)
    argument = op.arg
    if kind in ON_GLOBALS and state.program is prover.p:
        argument = prover.rename.get(argument, argument)
    return Event(kind, argument, operands, op)
