"""What ``torch.compile`` returns, and what it was given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import private_api


def backend_name(compiler: Any) -> str:
    """Return the name of a backend, found behind torch's wrappers: its ``compiler_name``, else its own name."""
    for backend in wrapped_backends(compiler):
        name = getattr(backend, "compiler_name", None)
        if isinstance(name, str):
            return name
    return str(getattr(backend, "__name__", type(backend).__name__))


def wrapped_backends(compiler: Any) -> Iterator[Any]:
    """Yield a backend, then what torch wrapped in it, to the innermost."""
    for _ in range(10):
        yield compiler
        inner = getattr(compiler, private_api.BACKEND_CHAIN.key, None) or getattr(
            compiler, private_api.ORIGINAL_CALLABLE.key, None) or getattr(  # (up to 2.6)
            getattr(compiler, "__self__", None), private_api.DDP_BACKEND.key, None)
        if inner is None:
            break
        compiler = inner


def innermost_function(compiled: Any) -> Any:
    """Return the user's function behind what ``torch.compile`` returned."""
    for _ in range(20):
        inner = given_to_compile(compiled)
        if inner is None:
            break
        compiled = inner
    return compiled


def given_to_compile(compiled: Any) -> Any:
    """Return the object for which ``torch.compile`` returned ``compiled``; ``None`` if it did not return that."""
    own = getattr(compiled, "__dict__", None)
    if not isinstance(own, Mapping):
        return None
    given = own.get(private_api.ORIGINAL_CALLABLE.key)
    return own.get("_modules", {}).get("_orig_mod") if given is None else given
