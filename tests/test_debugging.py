"""``debug()``: compiles nothing, says what ran uncompiled, restores everything, never hangs."""

import os
import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from depyf import debugging
from depyf.capture.torch_private import private_api
from depyf.link import sessions
from depyf.link.linker import Linker
from torch_forks import torch_python

tells_what_ran_uncompiled = pytest.mark.skipif(
    not private_api.STANCE_ANSWER.present(), reason=f"missing: {private_api.STANCE_ANSWER.lost}")


@pytest.fixture(autouse=True)
def no_session(fresh_dynamo, monkeypatch):
    monkeypatch.setattr(sessions, "_ended", [])
    monkeypatch.setattr(sessions, "_active", [])


@pytest.fixture
def session(tmp_path):
    started = sessions.session_started(str(tmp_path))
    file = tmp_path / "__transformed_code_0_for_f.py"
    file.write_text("pass\n")
    started.linker = Linker()
    started.linker.files[str(file)] = None
    sessions.session_ended(started)
    return started


class Counting:
    def __init__(self):
        self.graphs = 0

    def __call__(self, gm, inputs):
        self.graphs += 1
        return gm.forward


def double(x):
    return x * 2


def broken(x):
    y = x * 2
    torch._dynamo.graph_break()
    return y + 1


@tells_what_ran_uncompiled
def test_nothing_is_compiled_inside_and_that_is_said_once(session, capsys):
    backend = Counting()
    compiled = torch.compile(double, backend=backend, dynamic=False)
    compiled(torch.ones(3))
    with debugging.debug(pause=False):
        assert compiled(torch.ones(3)).tolist() == [2, 2, 2]
        assert "double" not in capsys.readouterr().err
        for _ in range(3):
            assert compiled(torch.ones(4)).tolist() == [2, 2, 2, 2]
    assert backend.graphs == 1
    assert capsys.readouterr().err.count("double") == 1
    compiled(torch.ones(4))
    assert backend.graphs == 2, "compiling goes on afterwards"


def test_what_watches_the_program_is_not_named(session, capsys):
    def helper(frame):
        return frame.f_code

    def trace(frame, event, argument):
        return local if helper(frame).co_name == "broken" else None

    def local(frame, event, argument):
        seen.append(event)
        return local

    seen = []
    compiled = torch.compile(broken, backend="eager")
    compiled(torch.ones(3))
    before = sys.gettrace()
    with debugging.debug(pause=False):
        sys.settrace(trace)
        try:
            compiled(torch.ones(3))
        finally:
            sys.settrace(before)
    assert "line" in seen
    assert capsys.readouterr().err == ""


def test_what_ran_uncompiled_can_be_compiled_later(session):
    backend = Counting()
    compiled = torch.compile(broken, backend=backend)
    with debugging.debug(pause=False):
        assert compiled(torch.ones(2)).tolist() == [3, 3]
    assert backend.graphs == 0
    compiled(torch.ones(2))
    assert backend.graphs == 2


def test_without_private_names_the_public_stance_does_it(session, monkeypatch):
    from depyf.capture.torch_private import hooks

    monkeypatch.setattr(hooks, "_eager_answer", lambda: None)
    backend = Counting()
    compiled = torch.compile(double, backend=backend, dynamic=False)
    compiled(torch.ones(3))
    with debugging.debug(pause=False):
        compiled(torch.ones(4))
    assert backend.graphs == 1
    compiled(torch.ones(4))
    assert backend.graphs == 2


@tells_what_ran_uncompiled
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_everything_is_restored_when_the_block_dies(session, error):
    from torch._dynamo import eval_frame

    before = eval_frame._callback_from_stance
    with pytest.raises(error), debugging.debug(pause=False):
        assert eval_frame._callback_from_stance is not before
        raise error
    assert eval_frame._callback_from_stance is before


def test_pauses_once_even_when_nested(session, monkeypatch, capsys):
    calls = []
    monkeypatch.setattr(sys, "breakpointhook", lambda *a, **k: calls.append(1))
    with debugging.debug(), debugging.debug():
        pass
    assert calls == [1]
    output = capsys.readouterr().err
    assert "__transformed_code_0_for_f.py" in output
    assert "break " in output
    with debugging.debug(pause=False):
        pass
    assert calls == [1]
    assert capsys.readouterr().err == ""


def test_quitting_in_the_pause_restores(session, monkeypatch):
    import bdb

    from torch._dynamo import eval_frame

    def leave(*args, **kwargs):
        raise bdb.BdbQuit

    before = eval_frame._callback_from_stance
    monkeypatch.setattr(sys, "breakpointhook", leave)
    with pytest.raises(bdb.BdbQuit), debugging.debug():
        raise AssertionError("not reached")
    assert eval_frame._callback_from_stance is before
    assert debugging._inside.depth == 0


def test_before_prepare_debug():
    with pytest.raises(debugging.DebugUsageError, match="prepare_debug"), debugging.debug():
        pass


def test_inside_prepare_debug(tmp_path, session):
    sessions.session_started(str(tmp_path))
    with pytest.raises(debugging.DebugUsageError, match="inside depyf.prepare_debug"), debugging.debug():
        pass


PROGRAM = """
import sys
from depyf import debugging
from depyf.link import sessions
sessions.session_ended(sessions.session_started("somewhere"))
def work():
    with debugging.debug({pause}):
        value = 6 * 7
        print("inside")
    print("after")
{calls}
"""
#: What pdb writes for ``p 40 + 2``; the prompt with it, since a path can hold the digits.
PRINTED = "(Pdb) 42"
SOURCES = os.path.join(os.path.dirname(os.path.dirname(debugging.__file__)))


class Run:
    """The program in a process of its own; killed if it hangs."""

    def __init__(self, tmp_path, stdin, pause="", calls="work()", late="", command=None, **environment):
        self.file = tmp_path / "program.py"
        self.file.write_text(PROGRAM.format(pause=pause, calls=calls))
        environment = dict(os.environ, PYTHONPATH=SOURCES, NO_COLOR="1", **environment)
        process = subprocess.Popen(
            [*(command or torch_python()), str(self.file)], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=environment)
        try:
            if late:
                process.stdin.write(late)
                process.stdin.flush()
            process.wait(timeout=100)
            self.out, self.err, self.status = process.stdout.read(), process.stderr.read(), process.returncode
        finally:
            process.kill()
            process.wait()


def commands(tmp_path, text, through):
    """Standard input that holds the commands: a file, or a pipe that is closed behind them."""
    if through == "file":
        (tmp_path / "commands").write_text(text)
        return (tmp_path / "commands").open()
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    return os.fdopen(reading)


@pytest.mark.parametrize("stdin", [subprocess.DEVNULL, subprocess.PIPE, "empty pipe", "empty file", "closed"])
def test_does_not_hang_where_nobody_answers(stdin, tmp_path):
    command = None
    if stdin == "closed":
        program = tmp_path / "closing.py"
        program.write_text("import os, sys; os.close(0); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])")
        stdin, command = None, [sys.executable, str(program)]
    elif isinstance(stdin, str):
        stdin = commands(tmp_path, "", stdin.split()[1])
    run = Run(tmp_path, stdin, command=command)
    assert run.out.split() == ["inside", "after"], run.err
    assert "no pause" in run.err
    assert run.status == 0


@pytest.mark.parametrize(("through", "pause"), [("pipe", ""), ("file", "pause=True")])
def test_pdb_reads_commands_from_standard_input(through, pause, tmp_path):
    run = Run(tmp_path, commands(tmp_path, "next\np value\nwhere\ncontinue\n", through), pause)
    assert "depyf: paused" in run.err
    assert run.status == 0, run.err
    assert PRINTED in run.out and run.out.split()[-1] == "after"
    # It stops in the frame of the user, and shows no file of ours.
    first = next(line for line in run.out.splitlines() if "> /" in line)
    assert str(run.file) in first and "work()" in first
    assert "depyf/" not in run.out


def test_the_end_of_the_commands_quits(tmp_path):
    run = Run(tmp_path, commands(tmp_path, "p 40 + 2\n", "file"))
    assert PRINTED in run.out and "after" not in run.out
    assert run.status != 0


def test_the_second_pause_reads_on(tmp_path):
    run = Run(tmp_path, commands(tmp_path, "continue\np 40 + 2\ncontinue\n", "pipe"), calls="work()\nwork()")
    assert run.out.count("inside") == run.out.count("after") == 2, run.err
    assert run.out.index("after") < run.out.index(PRINTED) and run.status == 0
    run = Run(tmp_path, commands(tmp_path, "continue\n", "pipe"), calls="work()\nwork()")
    assert run.out.count("after") == 1 and run.status != 0


def test_what_the_program_reads_is_no_command(tmp_path):
    """Its own lines come first; a ``pause=False`` leaves the others alone as well."""
    read = "print(sys.stdin.readline())\nwork()\nprint(sys.stdin.read())"
    run = Run(tmp_path, commands(tmp_path, "mine\nmine too\n", "pipe"), "pause=False", read)
    assert run.out.split() == ["mine", "inside", "after", "mine", "too"], run.err


def test_insisting_waits_for_what_is_written_later(tmp_path):
    run = Run(tmp_path, subprocess.PIPE, "pause=True", "import time; time.sleep(1); work()", late="continue\n")
    assert run.out.split()[-1] == "after" and run.status == 0, run.err


@pytest.mark.parametrize("through", ["pipe", "file"])
def test_insisting_on_an_empty_standard_input_quits(through, tmp_path):
    run = Run(tmp_path, commands(tmp_path, "", through), "pause=True")
    assert "after" not in run.out and run.status != 0


def test_insisting_without_standard_input(tmp_path):
    run = Run(tmp_path, subprocess.DEVNULL, "pause=True", "sys.stdin.close()\nwork()")
    assert "DebugUsageError" in run.err and "standard input is closed" in run.err
    run = Run(tmp_path, subprocess.DEVNULL, "pause=True", "sys.stdin = None\nwork()", PYTHONBREAKPOINT="0")
    assert run.out.split() == ["inside", "after"], run.err


def test_a_terminal_stops_in_the_frame_of_the_user(tmp_path):
    pexpect = pytest.importorskip("pexpect")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(pause="", calls="work()"))
    child = pexpect.spawn(
        torch_python()[0], [*torch_python()[1:], str(program)], encoding="utf-8", timeout=60, dimensions=(50, 300),
        env=dict(os.environ, PYTHONPATH=SOURCES, TERM="dumb", NO_COLOR="1", PYTHONBREAKPOINT=""))
    try:
        child.expect(r"\(Pdb\) ")
        assert re.search(r"^> .*program\.py\(\d+\)work\(\)", child.before, re.M) and "depyf/" not in child.before
        child.sendline("next")
        child.expect(r"\(Pdb\) ")
        child.sendline("continue")
        child.expect(pexpect.EOF)
        assert "after" in child.before
    finally:
        child.close(force=True)
    assert child.exitstatus == 0
