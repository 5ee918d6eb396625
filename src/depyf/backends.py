"""``depyf.stage``: what a backend does to a graph, as a stage in the dump."""

from __future__ import annotations

from typing import Any

from .link import sessions


def stage(name: str, graph_or_text: Any, *, graph: Any = None) -> None:
    """Record a graph or a text as a stage of the compilation in progress.

    For backends that want to show more than torch does: inside :class:`depyf.prepare_debug` the stage is written to
    ``__compiled_fn_1.<name>.0.py`` (``.txt`` where a text is not Python), and is in the index and on the page. Outside,
    this does nothing.

    Args:
        name: what the stage is called: ``"after fusion"``. Stages of one name are numbered.
        graph_or_text: a graph module, which is printed as it is now, or a text.
        graph: the graph that the stage belongs to: its name (``"__compiled_fn_1"``), or the graph module that torch
            gave to the backend. ``None``: the one that this thread compiles; where it compiles none, the stage gets
            files named after the function that called this.

    Raises:
        TypeError: an argument is of the wrong kind. Nothing else is raised.
    """
    if not isinstance(name, str):
        raise TypeError(f"depyf.stage: name must be a str, not {type(name).__name__}")
    if not isinstance(graph_or_text, str) and not hasattr(graph_or_text, "print_readable"):
        raise TypeError(f"depyf.stage: give a GraphModule or a text, not {type(graph_or_text).__name__}")
    if graph is not None and not isinstance(graph, str) and not hasattr(graph, "print_readable"):
        raise TypeError(f"depyf.stage: graph must be a GraphModule or its name, not {type(graph).__name__}")
    for session in sessions.active_sessions():
        if session.show is not None:
            session.show(name, graph_or_text, graph)
