"""Transformed code, decompiled with what was recorded of the objects that it was compiled for."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from ..bytecode.code import Code
from ..bytecode.errors import Unreadable
from ..bytecode.instructions import decode
from ..decompiler import Decompiled, Fidelity, decompile_code
from ..decompiler.dynamo.facts import NoFacts
from ..decompiler.dynamo.recorded_facts import RecordedFacts
from ..records.model import Bytecode

if TYPE_CHECKING:
    from .texts import Attempt


def decompiled_bytecode(bytecode: Bytecode, code: Any, attempt: Attempt) -> Decompiled:
    """Decompile what Dynamo made; where an error of ours prevents that, return a text that says so.

    Args:
        bytecode: the record.
        code: its transformed code, from the record or as it runs.
        attempt: runs what may fail.
    """
    facts = attempt(lambda: RecordedFacts(bytecode.facts), NoFacts()) if bytecode.facts else NoFacts()
    errors: list[Exception] = []

    def decompiled() -> Decompiled:
        try:
            return decompile_code(
                code, name=bytecode.text_name, simplify=True,
                parameter_names={each.name: each.parameters for each in bytecode.resumes}, rename=bytecode.shown,
                facts=facts)
        except Exception as error:
            errors.append(error)
            raise

    result: Decompiled | None = attempt(decompiled, None)
    return not_decompiled(bytecode.text_name, code, errors[0]) if result is None else result


def not_decompiled(name: str, code: Any, error: Exception) -> Decompiled:
    """Return the text of code that could not be decompiled: its bytecode. The compilation is shown either way."""
    lines = "".join(f"    # {line}\n" for line in _listing(code))
    text = f"def {name}(*args, **kwargs):\n    # not decompiled; its bytecode:\n{lines}    ...\n"
    note = f"not decompiled: {type(error).__name__}: {error}"
    return Decompiled(text, Fidelity.UNPROVEN, note, ast.parse(text))


def _listing(code: Code) -> list[str]:
    """Return the instructions of code, a line each, as far as they can be read."""
    try:
        return [f"{each.offset:6} {each.opname:30} {each.arg}" for each in decode(code)]
    except Unreadable:
        return [f"{len(code.bytecode)} bytes that cannot be read"]
