"""Resume functions: their code, the offsets in their names, and those with free variables."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any

from ...torch_text.global_names import RESUME_NAME, is_resume
from ...values import frozen
from ..object_facts import closure_values
from . import private_api
from .hooks import Undo, replaced


@frozen
class Resume:
    """A resume function: its code, and the parameters of the global function of its name.

    Where it has free variables, that is a factory which takes the cells (torch/_dynamo/output_graph.py,
    ``install_resume_function_global``). What was compiled up to 2.11 and without :func:`install` makes such a function
    itself, of a constant, and has its own name.
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
                # (A factory has the code of the functions that it makes in its closure.)
                made = [each for each in closure_values(value).values() if isinstance(each, CodeType)]
                resumes[name] = Resume(made[0] if made else value.__code__, parameters)
            elif isinstance(value, functools.partial) and value.func is FunctionType:
                resumes[name] = Resume(value.args[0], ("closure",))
    for value in transformed.co_consts:
        if isinstance(value, CodeType) and is_resume(value.co_name):
            resumes.setdefault(value.co_name, Resume(value, value.co_varnames[: value.co_argcount]))
    return resumes


def traced_code(code: CodeType) -> tuple[CodeType, dict[int, int]] | None:
    """Rewrite a function as Dynamo does before it traces it; ``None`` where this torch does it in another way.

    Dynamo splits instructions that do several things, and numbers all anew without the extensions of long arguments
    (torch/_dynamo/bytecode_transformation.py, ``cleaned_instructions``). The code has the places of the original; then
    come the offsets of its instructions, by those that Dynamo names resume functions by.
    """
    transform = private_api.TRACED_CODE.get_or(None)
    if transform is None:
        return None
    before: list[tuple[int, Any]] = []
    result = transform(code, lambda instructions, options: before.extend((each.offset, each) for each in instructions))
    # (The instructions know their final offsets now. Up to 2.8 there is no second result.)
    return result[0] if isinstance(result, tuple) else result, {offset: each.offset for offset, each in before}


def traced_name(resume: str, offsets: dict[int, int]) -> str:
    """Return a resume function's name with the offset in traced code; ``""`` if no instruction is there."""
    match = RESUME_NAME.fullmatch(resume)
    offset = offsets.get(int(match["offset"])) if match is not None else None
    return f"{private_api.RESUME_NAME.key}{offset}_{match['number']}" if match and offset is not None else ""


# --- resume functions with free variables ------------------------------------------------------------
# A resume function of a closure needs its cells. From 2.13 on transformed code passes them to a global function that
# makes the resume function (torch/_dynamo/output_graph.py, ``install_resume_function_global``), so that each resume
# function has a name. Up to 2.11 the code is a constant of transformed code, which makes the function itself, in the
# middle of an expression: source cannot express that. Here Dynamo writes the call in its place.
#
# The call is of C code (``functools.partial`` of ``types.FunctionType``): there is no frame that could be compiled,
# stepped into or seen in a traceback.


def install(report: Callable[[Exception], object]) -> Undo | None:
    """Make Dynamo call factories, on a torch that does not by itself.

    Args:
        report: called with an error; the code remains as Dynamo made it.

    Raises:
        MissingPrivateApi: this torch does it in a way that is not known.
    """
    if private_api.RESUME_FACTORY.attribute != "make_function_with_closure":
        return None
    call, swap = private_api.WRITTEN_CALL.get(), private_api.WRITTEN_SWAP.get()
    signature = inspect.signature(private_api.RESUME_FACTORY.get())

    def make_function_with_closure(original: Any, self: Any, *args: Any, **kwargs: Any) -> None:
        begin = len(self._output)
        original(self, *args, **kwargs)
        try:
            given = signature.bind(self, *args, **kwargs).arguments
            name, code = given["fn_name"], given["code"]
            # What is to run in another process (torch.compiler's packages) must find all that it names there.
            if not is_resume(code.co_name) or getattr(self.tx, "package", None) is not None:
                return
            at, end = _making(self._output, begin, name, code)
            scope = self.tx.output.global_scope
            load = self.create_load_global(name, add=True)
            written = [load, *swap(2), *call(1, True)]
            # Torch has a global of this name already, which it takes away again: the code, to look at.
            scope[name] = functools.partial(FunctionType, code, scope, code.co_name, None)
            self._output[at:end] = written
        except Exception as error:
            report(error)

    return replaced(private_api.RESUME_FACTORY, make_function_with_closure)


def _making(output: Sequence[Any], begin: int, name: str, code: CodeType) -> tuple[int, int]:
    """Return the span of instructions that make the function of a tuple of cells; raise ``LookupError`` for none."""
    at = next((index for index in range(begin, len(output))
               if output[index].opname == "LOAD_CONST" and output[index].argval is code), len(output))
    wanted = ["MAKE_FUNCTION 8"]  # (takes a tuple of cells)
    if sys.version_info >= (3, 13):
        wanted = ["MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE 8"]
    elif sys.version_info < (3, 11):
        wanted = ["LOAD_CONST", "MAKE_FUNCTION 8"]
    end = at + 1 + len(wanted)
    actual = [f"{each.opname} {each.arg}" for each in output[at + 1 : end]]
    if len(actual) < len(wanted) or any(not f"{found} ".startswith(f"{each} ") for found, each in zip(actual, wanted)):
        raise LookupError(f"how this torch makes the function {name}: {actual}")
    return at, end
