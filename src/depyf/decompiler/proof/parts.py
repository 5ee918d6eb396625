"""The verdicts on a code object and all nested ones, each by the means that its output tier allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType

from ...bytecode.canonical import canonicalise
from ...bytecode.code import Code
from ...bytecode.operations import Program
from ..constants import name_constants
from ..dynamo.facts import Facts
from ..names import renamed
from ..result import Tier, Tiers, codes_in, inside
from .equivalence import equivalent
from .exact import Pair, Verdict, conflated, same_code


@dataclass(eq=False, slots=True)
class Proof:
    """The verdict on one code object: ``None`` in a dispatch loop; if ``exact``, instruction by instruction."""

    code: Code
    verdict: Verdict | None
    exact: bool
    recompiled: Code | None


def prove(
    original: Code | Program, recompiled: Code, tiers: Tiers, rename: Mapping[str, str], facts: Facts | None = None,
) -> list[Proof]:
    """Return the verdicts on a code object and on all nested ones, outermost first.

    ``original`` is a program where that is not what the code says: its constants have names. ``rename``: ``{global name
    in the original: name in the text}``.
    """
    outermost = original.code if isinstance(original, Program) else original
    if rename and (name := conflated(original, rename)):
        return [Proof(outermost, Verdict(False, f"two globals are both called {name}"), False, recompiled)]
    proofs: dict[Code, Proof] = {}
    #: Start of the part of qualified names that must agree: for code in a dispatch loop, its own name.
    outers: dict[Code, tuple[Code, Code]] = {}
    work: list[Pair] = [(original, recompiled, "")]
    while work:
        left, right, path = work.pop()
        code = left.code if isinstance(left, Program) else left
        other = right.code if isinstance(right, Program) else right
        known = proofs.get(code)
        if known is not None and (known.recompiled is other or not known.verdict):
            continue
        if tiers.of(code) is Tier.DISPATCH:
            proofs[code] = Proof(code, None, False, None)
            work.extend(reversed(_inside_fallen(code, other, proofs, outers)))
            continue
        outer = None if code is outermost else outers.get(code, (outermost, recompiled))
        verdict, nested = same_code(left, right, path=path, outer=outer, ignore_name=True, rename=rename)
        exact = bool(verdict)
        if not exact and tiers.of(code) is not Tier.STRUCTURED:
            nested = []
            try:
                # Where it stopped says more about a simplified text.
                verdict = equivalent(left, right, rename=rename, nested=nested,
                                     facts=facts if code is outermost else None)
            except Exception as error:  # a prover that fails has proven nothing
                verdict = Verdict(False, f"equivalence: {type(error).__name__}: {error}")
        proofs[code] = Proof(code, verdict, exact, other)
        _inherit(outer, nested, outers)
        work.extend(reversed(nested))
    return list(proofs.values())


def _inherit(outer: tuple[Code, Code] | None, nested: list[Pair], outers: dict[Code, tuple[Code, Code]]) -> None:
    if outer is not None:
        for left, _, _ in nested:
            if isinstance(left, Code):
                outers.setdefault(left, outer)


def _inside_fallen(
    code: Code, other: Code, proofs: dict[Code, Proof], outers: dict[Code, tuple[Code, Code]]
) -> list[Pair]:
    """Prove the code objects in a dispatch loop, under whatever names, and return the pairs still to be proven."""
    pool = list(inside(other))
    pairs: list[Pair] = []
    pending = [code]
    while pending:
        current = pending.pop()
        for const in codes_in(current):
            if const in proofs:
                continue
            for match in pool:
                if match.docstring != const.docstring:
                    continue
                verdict, nested = same_code(const, match, ignore_name=True)
                if verdict:
                    pool.remove(match)
                    proofs[const] = Proof(const, verdict, True, match)
                    _inherit((const, match), nested, outers)
                    pairs += nested
                    break
            else:
                proofs[const] = Proof(const, None, False, None)
                pending.append(const)
    return pairs


# --- The substitution check: may one code object run in place of another? ----------------------------
# For code that is made of a text, and of what the text leaves out.
def first_mismatch(
    original: CodeType, running: CodeType, rename: Mapping[str, str], facts: Facts | None = None,
) -> str:
    """Return the first place where ``running`` is not proven to do what ``original`` does; empty if there is none.

    ``running`` is what the text compiles to, or something like it: constants that source cannot say, and globals, are
    read by the names that the text has for them (``rename``: ``{global name in the original: name in the text}``).
    """
    code = renamed(Code.of(original)).code
    program, _ = name_constants(canonicalise(code))
    proofs = prove(program, Code.of(running), Tiers(code, Tier.SIMPLIFIED, True), rename, facts)
    for proof in proofs:
        if not proof.verdict:
            return proof.verdict.where if proof.verdict is not None else f"{proof.code.name} is not proven"
    return ""
