"""Files that another process makes: it outlives the program, readers wait for it, and a dump that it left is completed."""

import os
import signal
import subprocess
import sys
import time

import pytest

torch = pytest.importorskip("torch")

import depyf
from depyf.finishing.recorded import read_records
from depyf.records import making, store
from depyf.report import report

pytestmark = [
    pytest.mark.usefixtures("fresh_dynamo"),
    pytest.mark.skipif(not making.can_lock(), reason="no file locks on this system"),
]

TEXT = "__transformed_code_0_for_broken.py"


def broken(x):
    y = x + 1
    if y.sum() > 0:
        return y * 2
    return y - 1


def run(path, **options):
    with depyf.prepare_debug(str(path), **options) as block:
        torch.compile(broken, backend="eager")(torch.ones(2))
    return block


def files_of(path):
    return {name for name in os.listdir(path) if name not in (".depyf", making.FILE)}


PROGRAM = """
import sys, torch, depyf
def broken(x):
    y = x + 1
    if y.sum() > 0:
        return y * 2
    return y - 1
with depyf.prepare_debug(sys.argv[1], files=sys.argv[2]) as block:
    torch.compile(broken, backend="eager")(torch.ones(2))
block.wait()
"""


def test_the_same_files_whoever_makes_them(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    texts = []
    for how in ("now", "background", "later"):
        folder = tmp_path / how
        subprocess.run([sys.executable, str(program), str(folder), how], check=True)
        texts.append({name: (folder / name).read_text() for name in files_of(folder) if name.endswith((".py", ".txt"))})
    assert TEXT in texts[0] and texts[0] == texts[1] == texts[2]


def test_later_leaves_records_and_what_to_do(tmp_path):
    run(tmp_path / "d", files="later")
    assert files_of(tmp_path / "d") == {"records.jsonl", "index.md"}
    assert "depyf report ." in (tmp_path / "d" / "index.md").read_text()
    assert store.is_unwritten(str(tmp_path / "d"))
    report(str(tmp_path / "d"))
    assert TEXT in files_of(tmp_path / "d") and not store.is_unwritten(str(tmp_path / "d"))


def test_a_reader_waits_for_who_makes_the_files(tmp_path):
    run(tmp_path / "d", files="background")
    capture = read_records(str(tmp_path / "d"))
    assert capture.functions[0].frames[0].entries[0].transformed.known
    assert TEXT in files_of(tmp_path / "d") and not (tmp_path / "d" / making.FILE).exists()


def test_the_program_has_no_child_that_it_did_not_start(tmp_path):
    run(tmp_path / "d", files="background")
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    run(tmp_path / "e", files="now")


def test_what_a_killed_maker_left_is_made_by_the_reader(tmp_path, monkeypatch):
    from depyf import run_files

    killed = []

    def start(path):
        lock = making.lock(path)
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], pass_fds=(lock,))
        os.close(lock)
        killed.append(process)
        return True

    monkeypatch.setattr(run_files, "start", start)
    block = run(tmp_path / "d", files="background")
    assert TEXT not in files_of(tmp_path / "d")
    killed[0].send_signal(signal.SIGKILL)
    killed[0].wait()
    block.wait()
    assert TEXT in files_of(tmp_path / "d")


def test_where_no_process_can_be_started_the_program_makes_them(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "")
    run(tmp_path / "d", files="background")
    assert TEXT in files_of(tmp_path / "d")


def test_debug_makes_and_links_what_is_missing(tmp_path, capsys):
    compiled = torch.compile(broken, backend="eager")
    with depyf.prepare_debug(str(tmp_path / "d"), files="later"):
        compiled(torch.ones(2))
    seen = set()

    def trace(frame, event, argument):
        seen.add(os.path.basename(frame.f_code.co_filename))
        return trace

    before = sys.gettrace()
    with depyf.debug(pause=False):
        sys.settrace(trace)
        try:
            assert compiled(torch.ones(2)).tolist() == [4, 4]
        finally:
            sys.settrace(before)
    assert TEXT in seen and any(name.endswith(".Captured_Graph.0.py") for name in seen)
    assert capsys.readouterr().err == ""


def test_wait_needs_a_block_that_was_left(tmp_path):
    block = depyf.prepare_debug(str(tmp_path / "d"))
    with pytest.raises(RuntimeError, match="leave the block first"):
        block.wait()
    with block, pytest.raises(RuntimeError, match="leave the block first"):
        block.wait()


@pytest.mark.parametrize("files", ["soon", True])
def test_an_answer_that_is_not_known(tmp_path, files):
    with pytest.raises(ValueError, match="is not known; give one of 'background', 'now', 'later'"):
        depyf.prepare_debug(str(tmp_path), files=files)


def test_ranks_do_not_wait_for_each_other(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import torch, depyf\n"
        "def f(x):\n    return x + 1\n"
        f"with depyf.prepare_debug({str(tmp_path / 'd')!r}, files='background'):\n"
        "    torch.compile(f, backend='eager')(torch.ones(2))\n")
    processes = [subprocess.Popen(
        [sys.executable, str(program)], env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank)})
        for rank in range(2)]
    assert [process.wait(timeout=300) for process in processes] == [0, 0]
    for rank in range(2):
        read_records(str(tmp_path / "d" / f"rank_{rank}"))
    until = time.monotonic() + 60
    while not (tmp_path / "d" / "index.md").exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert "rank" in (tmp_path / "d" / "index.md").read_text()


def test_who_waits_is_told_how_far_the_making_is(tmp_path):
    path, told = str(tmp_path), []
    lock = making.lock(path)

    def waiting(progress):
        told.append(progress)
        if progress == ("outlines", 3, 48):
            making.tell(path, "the page", 0, 1)
        elif progress == ("the page", 0, 1):
            os.close(lock)
            making.unlock(path)

    making.tell(path, "outlines", 3, 48)
    with making.shown(waiting):
        making.wait(path)
        making.wait(path)  # nobody is at it: there is nothing to tell
    assert told == [("outlines", 3, 48), ("the page", 0, 1), None]


def test_a_terminal_shows_what_another_process_is_making(tmp_path, monkeypatch):
    import io

    from depyf.cli import waiting
    from depyf.cli.streams import harmless_streams

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(waiting, "_SHORTEST", 0)
    monkeypatch.setenv("TERM", "xterm")
    path = str(tmp_path)
    lock = making.lock(path)
    real = time.sleep

    def ends(seconds):
        os.close(lock)
        real(seconds)

    making.tell(path, "outlines", 12, 48)
    monkeypatch.setattr(making.time, "sleep", ends)
    terminal = sys.stderr
    with harmless_streams(), waiting.waiting_shown():  # (as the command line has it)
        making.wait(path)
    text = terminal.getvalue()
    assert "12/48 waiting for the files: outlines" in text
    assert text.endswith("\r\x1b[K")
