"""Decompiled source in torch's own log, after each ``MODIFIED BYTECODE``.

torch writes bytecode to the logger of its artifact ``bytecode`` when ``TORCH_LOGS`` enables it. A hook for compiled
functions writes to the same logger then. Torch need not be imported by :func:`install`, and its logging configuration
is neither read nor changed.
"""

from __future__ import annotations

import logging
import threading
from types import CodeType

from .capture.torch_private import hooks

_lock = threading.Lock()
_undo: hooks.Undo | None = None


def install() -> None:
    """Show decompiled source in torch's bytecode log (``TORCH_LOGS="+bytecode"`` or ``"+dynamo"``)."""
    global _undo
    with _lock:
        if _undo is None:
            _undo = hooks.on_bytecode_when_imported(_write)


def uninstall() -> None:
    """Take back what :func:`install` did."""
    global _undo
    with _lock:
        if _undo is not None:
            _undo()
            _undo = None


def _write(original: CodeType, transformed: CodeType) -> None:
    """Print the source of transformed code, as a bytecode hook; ``None`` means: keep the code."""
    logger = logging.getLogger(hooks.BYTECODE_LOGGER)
    if logger.isEnabledFor(logging.DEBUG):
        logger.debug("%s", source_text(transformed))


def source_text(code: CodeType) -> str:
    """Return the log's text on a code object: its source, or why there is none. Never raises."""
    try:
        from .decompiler import decompile_code

        decompiled = decompile_code(code, simplify=True)
        fidelity = getattr(decompiled.fidelity, "value", decompiled.fidelity)
        note = f" ({decompiled.note})" if decompiled.note else ""
        return f"possible source code, {fidelity}{note}:\n{decompiled.text.rstrip()}\n"
    except Exception as error:  # noqa: BLE001  (the user's program goes on)
        return f"possible source code: none, depyf failed ({type(error).__name__}: {error})\n"
