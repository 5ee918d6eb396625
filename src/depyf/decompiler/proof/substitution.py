"""The substitution check: may one code object run in place of another?

For code that is made of a text, and of what the text leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import CodeType

from ...bytecode.canonical import canonicalise
from ...bytecode.code import Code
from ..constants import name_constants
from ..dynamo.facts import Facts
from ..renamed import renamed
from ..tiers import Tier, Tiers
from .parts import prove


def first_mismatch(
    original: CodeType, running: CodeType, rename: Mapping[str, str], facts: Facts | None = None,
) -> str:
    """Return the first place where ``running`` is not proven to do what ``original`` does; empty if there is none.

    Args:
        original: a code object of the running interpreter.
        running: what its text compiles to, or something like it: constants that source cannot say are read by the
            names that the text has for them, globals have the names of the text.
        rename: ``{global name in the original: name in the text}``.
        facts: what is known of the live objects that the original was compiled for.
    """
    code = renamed(Code.of(original)).code
    program, _ = name_constants(canonicalise(code))
    proofs = prove(program, Code.of(running), Tiers(code, Tier.SIMPLIFIED, True), rename, facts)
    for proof in proofs:
        if not proof.verdict:
            return proof.verdict.where if proof.verdict is not None else f"{proof.code.name} is not proven"
    return ""
