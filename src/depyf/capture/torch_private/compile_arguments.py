"""What ``torch.compile`` was told besides the backend."""

from __future__ import annotations

from typing import Any

from . import private_api
from .compiled_callables import wrapped_backends

#: Types of which a value is shown as it is.
_PLAIN = (bool, int, float, str, type(None))
#: Longer values are cut.
_LONGEST = 300


def of_compilation(backend: Any, fullgraph: Any, hooks: Any) -> dict[str, str] | None:
    """Return the arguments of ``torch.compile`` that are not at their default, as Python.

    ``None`` where they are not known, as it was not ``torch.compile`` that made the backend.

    Args:
        backend: what Dynamo hands graphs to: ``torch.compile`` keeps ``mode``, ``options`` and ``dynamic`` there.
        fullgraph: whether a graph break is an error.
        hooks: what Dynamo calls while it compiles: ``torch.compile`` takes the filter of guards out of ``options``.
    """
    given = next(filter(None, map(_given, wrapped_backends(backend))), None)
    if given is None:
        return None
    mode, options, dynamic = given
    dropping = getattr(hooks, "guard_filter_fn", None)
    if dropping is not None:
        options = {**options, "guard_filter_fn": dropping}
    told = {"mode": mode, "options": options or None, "dynamic": dynamic, "fullgraph": fullgraph or None}
    return {name: _cut(_shown(value)) for name, value in told.items() if value is not None}


def _given(backend: Any) -> tuple[Any, dict[str, Any], Any] | None:
    """Return mode, options and dynamic, where ``torch.compile`` made a backend; else ``None``."""
    if _is_a(backend, private_api.COMPILE_INDUCTOR):
        return _of_inductor(dict(backend.config), backend.dynamic)
    if _is_a(backend, private_api.COMPILE_BACKEND):
        options = backend.kwargs.get("options")
        return backend.kwargs.get("mode"), dict(options) if isinstance(options, dict) else {}, backend.dynamic
    return None


def _is_a(backend: Any, api: private_api.PrivateApi) -> bool:
    try:
        return type(backend) is api.get()
    except private_api.MissingPrivateApi:
        return False


def _of_inductor(config: dict[str, Any], dynamic: Any) -> tuple[str | None, dict[str, Any], Any]:
    """Return mode, options and dynamic: a mode is a set of options, and torch keeps these."""
    modes: dict[str, Any] = {}
    if config:
        try:
            modes = private_api.INDUCTOR_MODES.get()(None, dynamic)
        except private_api.MissingPrivateApi:
            pass
    mode = next((name for name, options in modes.items() if options == config), None)
    return mode, {} if mode else config, dynamic


def _shown(value: Any) -> str:
    """Return a value as Python; of what is no plain value its name or type, for its ``repr`` is the program's."""
    if type(value) in _PLAIN:
        return repr(value)
    if type(value) is dict:
        return "{" + ", ".join(f"{_shown(key)}: {_shown(each)}" for key, each in value.items()) + "}"
    if type(value) in (list, tuple):
        inner = ", ".join(map(_shown, value))
        return f"[{inner}]" if type(value) is list else f"({inner}{',' * (len(value) == 1)})"
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) and name.isidentifier() else f"<{type(value).__name__}>"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
