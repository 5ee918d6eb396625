"""Resume functions with free variables, up to torch 2.11 made as torch makes them from 2.13 on.

A resume function of a closure needs its cells. From 2.13 on transformed code hands them to a global function that makes
the resume function (torch/_dynamo/output_graph.py, ``install_resume_function_global``), so that each resume function
goes by a name. Up to 2.11 the code is a constant of transformed code, which makes the function itself, in the
middle of an expression: source has no word for that. Here Dynamo is had to write the call in its place; its own
compiler assembles it.

The call is of C code (``functools.partial`` of ``types.FunctionType``): there is no frame that anybody could compile,
step into or see in a traceback.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any

from . import private_api
from .hooks import replaced
from .resume_code import is_resume
from .shared import Undo

#: ``MAKE_FUNCTION`` takes a tuple of cells.
_CLOSURE = 0x08


def install(report: Callable[[Exception], object]) -> Undo | None:
    """Has Dynamo call factories, on a torch that does not by itself.

    Args:
        report: called with an error; the code stays as Dynamo made it.

    Raises:
        MissingPrivateApi: this torch does it in a way that is not known.
    """
    if private_api.RESUME_FACTORY.attribute != "make_function_with_closure":
        return None
    call, swap = private_api.WRITTEN_CALL.get(), private_api.WRITTEN_SWAP.get()

    def make(original: Any) -> Any:
        signature = inspect.signature(original)

        def make_function_with_closure(self: Any, *args: Any, **kwargs: Any) -> None:
            begin = len(self._output)
            original(self, *args, **kwargs)
            try:
                given = signature.bind(self, *args, **kwargs).arguments
                name, code = given["fn_name"], given["code"]
                # What is to run in another process (torch.compiler's packages) must find all that it names there.
                if not is_resume(code) or getattr(self.tx, "package", None) is not None:
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

        return make_function_with_closure

    return replaced(private_api.RESUME_FACTORY, make)


def _making(output: Sequence[Any], begin: int, name: str, code: CodeType) -> tuple[int, int]:
    """Return the first and the end index of the instructions that take a tuple of cells and give the function.

    Raises:
        LookupError: they are not there.
    """
    at = next((index for index in range(begin, len(output))
               if output[index].opname == "LOAD_CONST" and output[index].argval is code), len(output))
    wanted: list[tuple[str, Any]] = [("MAKE_FUNCTION", _CLOSURE)]
    if sys.version_info >= (3, 13):
        wanted = [("MAKE_FUNCTION", None), ("SET_FUNCTION_ATTRIBUTE", _CLOSURE)]
    elif sys.version_info < (3, 11):
        wanted = [("LOAD_CONST", None), ("MAKE_FUNCTION", _CLOSURE)]
    end = at + 1 + len(wanted)
    actual = [(each.opname, each.arg if argument is not None else None)
              for each, (_, argument) in zip(output[at + 1 : end], wanted)]
    if actual != wanted:
        raise LookupError(f"how this torch makes the function {name}: {actual}")
    return at, end
