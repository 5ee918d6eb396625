"""One canonical operation -> statements on the slot variables, as text.

``RULES[kind]`` is a function of a :class:`~depyf.decompiler.fallback.writer.Writer` and the op. The writer
knows the depth of the stack and, for the few operations that need it, what kind of value a slot holds.
"""

from __future__ import annotations

from ...bytecode.operations import Op
from ...bytecode.opspec import effect
from ..errors import FALLBACK, CannotDecompile
from . import namespaces
from .rules import calls, control, displays, matching, operators, places, stack_operations
from .writer import Rule, Writer

RULES: dict[str, Rule] = {
    **places.RULES,
    **operators.RULES,
    **displays.RULES,
    **calls.RULES,
    **stack_operations.RULES,
    **control.RULES,
    **matching.RULES,
}


def translate(writer: Writer, op: Op) -> None:
    """Write one operation.

    Raises:
        CannotDecompile: it has no form in Python source.
    """
    rule = namespaces.RULES.get(op.kind) if writer.namespace else None
    rule = rule or RULES.get(op.kind)
    if rule is None:
        raise CannotDecompile(FALLBACK, f"{op!r} at offset {op.offset}")
    before = len(writer.tags)
    rule(writer, op)
    pops, pushes = effect(op)
    if len(writer.tags) - before != pushes - pops:
        raise CannotDecompile(FALLBACK, f"{op!r} at offset {op.offset} left {len(writer.tags)} values")
