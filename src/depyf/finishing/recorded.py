"""The records of a run, whether its texts are written, it came to its end, or it was killed."""

from __future__ import annotations

import os
import warnings

from ..guarded import guarded_call
from ..records import making, store
from ..records.model import Capture


def read_records(path: str) -> Capture:
    """Read the records of a file, or of the directory of a run; texts that are not written yet are written.

    Raises:
        RecordsError: as :func:`depyf.records.store.read`.
    """
    making.wait(path if os.path.isdir(path) else os.path.dirname(path) or ".")
    capture = store.read(path)
    if capture.unwritten is None:
        return capture
    from .functions import finished  # (the decompiler: few need it)
    from .texts import processes_here

    return finished(capture, lambda action, otherwise: guarded_call(action, otherwise, _say), processes_here())


def _say(error: Exception) -> None:
    warnings.warn(f"depyf: an internal error ({type(error).__name__}: {error}); that part of the run is missing",
                  RuntimeWarning, stacklevel=2)
