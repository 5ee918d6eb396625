"""Transformed code that is written and linked while the program runs: what is not wanted later only."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

from ..decompiler.dynamo.recorded_facts import RecordedFacts
from ..finishing.decompiled import decompiled_bytecode
from ..finishing.frames import code_text
from ..records.model import Bytecode, GraphBreak, TransformedCode, UserFunction
from .recorder import DumpWriter, Linker


def write_and_link(
    original: CodeType, transformed: CodeType, bytecode: Bytecode, function: UserFunction,
    breaks: Sequence[GraphBreak], writer: DumpWriter, linker: Linker | None,
    attempt: Callable[[Callable[[], Any], Any], Any], code_objects: bool,
) -> CodeType | None:
    """Write transformed code, and link it to its file; return what is to run for it, unless that is torch's own.

    Args:
        original: what torch compiled.
        transformed: what it made of that.
        bytecode: the record of that.
        function: that the user means.
        breaks: where its graph ends before the function does.
        writer, linker, attempt: of the session.
        code_objects: write code objects, too.
    """
    decompiled = decompiled_bytecode(bytecode, transformed, attempt)
    arguments = transformed.co_varnames[: transformed.co_argcount + transformed.co_kwonlyargcount]
    text = TransformedCode(
        bytecode.compile_id, bytecode.function_name, code_text(decompiled), None, arguments, bytecode.file)
    place = attempt(lambda: writer.transformed(text, function, breaks), None)
    linked = None
    if place is not None and linker is not None:
        facts = attempt(lambda: RecordedFacts(bytecode.facts), None) if bytecode.facts else None
        linked = linker.link_transformed(original, transformed, decompiled, place, bytecode.shown, facts)
    if code_objects:
        kinds = ("original", original), ("transformed", transformed), ("recompiled", linked or transformed)
        for kind, code in kinds:
            writer.code_object(os.path.basename(bytecode.file), kind, code)
    return linked
