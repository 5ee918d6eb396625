"""The records of a run, whether its texts are written, it came to its end, or it was killed."""

from __future__ import annotations

import warnings

from ..guarded import guarded_call
from ..records import store
from ..records.model import Capture


def read_records(path: str) -> Capture:
    """Read the records of a file, or of the directory of a run; texts that are not written yet are written.

    Raises:
        RecordsError: as :func:`depyf.records.store.read`.
    """
    capture = store.read(path)
    if capture.unwritten is None:
        return capture
    from .functions import finished  # (the decompiler: few need it)

    return finished(capture, lambda action, otherwise: guarded_call(action, otherwise, _say))


def _say(error: Exception) -> None:
    warnings.warn(f"depyf: an internal error ({type(error).__name__}: {error}); that part of the run is missing",
                  RuntimeWarning, stacklevel=2)
