"""Decompiled source in torch's own log, after each ``MODIFIED BYTECODE``.

torch writes bytecode to the logger of its artifact ``bytecode`` when ``TORCH_LOGS`` enables it. A filter on that
logger lets every record pass and, at the first one, registers a hook for compiled functions, which writes to the same
logger. So nothing happens while that log is off, torch need not be imported by :func:`install`, and torch's logging
configuration is neither read nor changed.
"""

from __future__ import annotations

import logging
import threading
from types import CodeType

from .capture.torch_private import hooks

_lock = threading.Lock()
_installed: _SourceInLog | None = None


def install() -> None:
    """Show decompiled source in torch's bytecode log (``TORCH_LOGS="+bytecode"`` or ``"+dynamo"``)."""
    global _installed
    with _lock:
        if _installed is None:
            _installed = _SourceInLog()
            logging.getLogger(hooks.BYTECODE_LOGGER).addFilter(_installed)


def uninstall() -> None:
    """Take back what :func:`install` did."""
    global _installed
    with _lock:
        if _installed is not None:
            logging.getLogger(hooks.BYTECODE_LOGGER).removeFilter(_installed)
            _installed.remove()
            _installed = None


class _SourceInLog(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self._handle: hooks.Undo | None = None
        self._removed = False
        self._once = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        # The log of a function's bytecode begins before it is compiled: early enough to register.
        if self._handle is None and not self._removed:
            with self._once:
                if self._handle is None and not self._removed:
                    self._handle = hooks.on_bytecode_when_imported(self._write)
        return True

    def remove(self) -> None:
        with self._once:
            self._removed = True
            if self._handle is not None:
                self._handle()
                self._handle = None

    def _write(self, original: CodeType, transformed: CodeType) -> None:
        """Print the source of transformed code, as a bytecode hook; ``None`` means: keep the code."""
        logger = logging.getLogger(hooks.BYTECODE_LOGGER)
        if not self._removed and logger.isEnabledFor(logging.DEBUG):
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
