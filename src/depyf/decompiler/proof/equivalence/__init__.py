"""The proof of equivalence: two programs do the same in the same order, shown on symbolic values.

Input: two programs; output: a :class:`Verdict`. Both run from their entries. Each goes on unobserved while it only
moves values about: constants, bound locals, the stack, lists and tuples that it built and that have not escaped
(:mod:`.unobservable`, which has the assumptions). It stops at the next *event*: something that another part of the
program, or its user, can observe (:mod:`.states`). Events must come in the same order with equal operands; both edges
of each branch, and each exception handler, are followed (:mod:`.prover`)::

    original: ``t = [f, x]; t[0](t[1])``    text: ``f(x)``
    event LOAD_GLOBAL f -> event 1          event LOAD_GLOBAL f -> event 1
    (BUILD_LIST, STORE_FAST, GETITEM)
    event CALL (event 1)(argument x)        event CALL (event 1)(argument x)

Values are compared by name: equal events give both programs the same symbol for their result. A container that escapes
must have the same items in both, and is one symbol from then on. At a merge point the walk forgets values (havoc) and
keeps a relation: which places of one program (locals, stack slots) have the same value as which places of the other
(:mod:`.merge`). It is computed as a fixpoint: the first arrival states it, later arrivals can only weaken it, and a
weaker one is walked again.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....bytecode import operations as o
from ....bytecode.canonical import canonicalise
from ....bytecode.code import Code
from ....bytecode.operations import Program
from ...dynamo.facts import Facts
from ..exact import MEANINGFUL_FLAGS, Pair, Verdict, conflated
from .prover import Prover, cells_used, without_private_cells
from .states import Different


def equivalent(
    original: Code | Program, recompiled: Code | Program, *, rename: Mapping[str, str] | None = None,
    nested: list[Pair] | None = None, facts: Facts | None = None,
) -> Verdict:
    """Return whether both do the same things in the same order with the same values (see the module).

    ``facts``: those about the live objects that the code was compiled for: it is code that is run, without a docstring.
    ``nested`` gets the pairs of nested code objects still to be compared; without it they must be the same.
    """
    p = original if isinstance(original, Program) else canonicalise(original)
    q = recompiled if isinstance(recompiled, Program) else canonicalise(recompiled)
    if any(op.kind is o.LOAD_FAST and op.arg in program.code.cellvars for program in (p, q) for op in program.ops):
        return Verdict(False, "a variable is a cell and is none")  # what an inlined comprehension set aside
    p, q = without_private_cells(p), without_private_cells(q)
    if rename and conflated(p, rename):
        return Verdict(False, f"two globals are both called {conflated(p, rename)}")
    a, b = p.code, q.code
    if (a.argcount, a.posonlyargcount, a.kwonlyargcount, a.arguments) != (
        b.argcount, b.posonlyargcount, b.kwonlyargcount, b.arguments
    ) or (a.flags ^ b.flags) & MEANINGFUL_FLAGS:
        return Verdict(False, "parameters or flags differ")
    if facts is None and a.flags & 0x3 == 0x3 and not a.name.startswith("<") and a.docstring != b.docstring:
        return Verdict(False, "docstrings differ")
    differing = (set(a.freevars) ^ set(b.freevars)) | (set(a.cellvars) ^ set(b.cellvars))
    if differing & (cells_used(p) | cells_used(q)):
        return Verdict(False, "free or cell variables differ")
    prover = Prover(p, q, rename or {}, nested, facts)
    try:
        prover.run()
    except Different as difference:
        return Verdict(False, str(difference), prover.pairs)
    except IndexError:
        return Verdict(False, "a stack holds too few values", prover.pairs)
    recompiled_items, original_items = prover.items
    pairs = prover.pairs + [(place, recompiled_items[key]) for key, place in original_items.items()
                            if key in recompiled_items]
    return Verdict(True, "", pairs, tuple(sorted(prover.notes)))
