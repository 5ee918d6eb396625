"""The place for dumps that nobody gave a directory."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile


def temporary() -> str:
    """Return a directory that is there as long as this process."""
    path, process = tempfile.mkdtemp(prefix="depyf_"), os.getpid()
    atexit.register(lambda: shutil.rmtree(path, ignore_errors=True) if os.getpid() == process else None)
    return path
