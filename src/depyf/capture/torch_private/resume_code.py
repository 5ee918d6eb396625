"""Resume functions: their code, and the offsets that they are named by."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from . import private_api

#: By what name transformed code calls a resume function.
RESUME_NAME = re.compile(rf"{private_api.RESUME_NAME.key}(?P<offset>\d+)_(?P<number>\d+)")


@dataclass(frozen=True)
class Resume:
    """A resume function: its code, and the parameters of what goes by its name.

    Where it has free variables, the name is that of a factory which takes the cells
    (torch/_dynamo/output_graph.py, ``install_resume_function_global``). What was compiled up to 2.11 and without
    :mod:`~depyf.capture.torch_private.resume_factories` makes such a function itself, of a constant, which goes by its
    own name.
    """

    code: CodeType
    parameters: tuple[str, ...]


def resume_functions(transformed: CodeType, namespace: dict[str, Any]) -> dict[str, Resume]:
    """Return the resume functions that transformed code calls, by name."""
    resumes = {}
    for name in transformed.co_names:
        if name.startswith(private_api.RESUME_NAME.key):
            value = namespace.get(name)
            value = getattr(value, private_api.ORIGINAL_CALLABLE.key, value)
            if isinstance(value, FunctionType):
                parameters = value.__code__.co_varnames[: value.__code__.co_argcount]
                resumes[name] = Resume(_made_by(value) or value.__code__, parameters)
            elif isinstance(value, functools.partial) and value.func is FunctionType:
                resumes[name] = Resume(value.args[0], ("closure",))
    for value in transformed.co_consts:
        if isinstance(value, CodeType) and is_resume(value):
            resumes.setdefault(value.co_name, Resume(value, value.co_varnames[: value.co_argcount]))
    return resumes


@dataclass(frozen=True)
class TracedCode:
    """A function as Dynamo traces it: with other instructions for some of its own.

    Attributes:
        code: it, with the places of the original.
        offsets: of its instructions, by those that Dynamo names resume functions by.
    """

    code: CodeType
    offsets: dict[int, int]

    def name(self, resume: str) -> str:
        """Return a resume function's name with the offset in :attr:`code`; ``""`` if no instruction is there."""
        match = RESUME_NAME.fullmatch(resume)
        offset = self.offsets.get(int(match["offset"])) if match is not None else None
        return f"{private_api.RESUME_NAME.key}{offset}_{match['number']}" if match and offset is not None else ""


def traced_code(code: CodeType) -> TracedCode:
    """Rewrite a function as Dynamo does before it traces it.

    Dynamo splits instructions that do several things, and numbers all anew without the extensions of long arguments
    (torch/_dynamo/bytecode_transformation.py, ``cleaned_instructions``).
    """
    before: list[tuple[int, Any]] = []

    def number(instructions: list[Any], options: dict[str, Any]) -> None:
        before.extend((each.offset, each) for each in instructions)

    result = private_api.TRACED_CODE.get()(code, number)
    # (The instructions know their final offsets now. Up to 2.8 there is no second result.)
    traced = result[0] if isinstance(result, tuple) else result
    return TracedCode(traced, {offset: each.offset for offset, each in before})


def _made_by(factory: FunctionType) -> CodeType | None:
    """Return the code of the functions that a factory makes, which is in its closure."""
    for cell in factory.__closure__ or ():
        try:
            if isinstance(cell.cell_contents, CodeType):
                return cell.cell_contents
        except ValueError:
            pass  # an empty cell
    return None


def is_resume(code: CodeType) -> bool:
    """Return whether Dynamo made a code object to go on after a graph break."""
    return code.co_name.startswith((private_api.RESUME_CODE.key, "<resume"))
