"""A limit on the processor time of a command: hostile records may cost much more than their size."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

from .. import budgets, reading


class TooSlow(BaseException):
    """The command took too long; the message says what to do.

    No ``except Exception`` that goes on after an error catches it.
    """


@contextlib.contextmanager
def time_limit() -> Iterator[None]:
    """Raise :class:`TooSlow` in the code inside when it takes longer than what was read accounts for.

    Without signals (on Windows, in another thread than the main one) there is no limit.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    begun = time.process_time()

    def look(number: int, frame: FrameType | None) -> None:
        budget = budgets.seconds_for(reading.opened_bytes())
        if why := budget.exceeded(int(time.process_time() - begun)):
            raise TooSlow(f"stopped: {why}")

    before = signal.signal(signal.SIGVTALRM, look)
    signal.setitimer(signal.ITIMER_VIRTUAL, 1, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
