"""Work in forked children: nothing of it goes on when the process that waits for it is gone."""

import os
import signal
import threading
import time

import pytest

pytest.importorskip("torch")

from depyf.capture import forked

pytestmark = pytest.mark.skipif(bool(forked.why_not()), reason="no process can be forked here")


def test_a_child_of_a_child_ends_with_it(tmp_path):
    """A child that is killed takes with it the one that it waits for."""
    names = tmp_path / "process"

    def endless():
        names.write_text(str(os.getpid()))
        while True:
            time.sleep(0.1)

    def killed():
        threading.Thread(target=forked.in_child, args=(endless,)).start()
        while not (names.exists() and names.read_text()):
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(forked.ChildFailed, match="ended without a result"):
        forked.in_child(killed)
    process = int(names.read_text())
    for _ in range(100):  # (A killed process remains until somebody has waited for it.)
        if not is_running(process):
            return
        time.sleep(0.1)
    os.kill(process, signal.SIGKILL)
    pytest.fail("the inner child goes on")


def is_running(process):
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
