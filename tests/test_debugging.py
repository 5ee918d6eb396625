"""``debug()``: compiles nothing, says what ran uncompiled, restores everything, never hangs."""

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from depyf import debugging
from depyf.capture.torch_private import touchpoints
from depyf.link import sessions

tells_what_ran_uncompiled = pytest.mark.skipif(
    not touchpoints.STANCE_ANSWER.present(), reason=f"missing: {touchpoints.STANCE_ANSWER.lost}")


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    monkeypatch.setattr(sessions, "_last", None)
    monkeypatch.setattr(sessions, "_active", [])
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def session(tmp_path):
    made = sessions.session_started(str(tmp_path))
    file = tmp_path / "__transformed_code_0_for_f.py"
    file.write_text("pass\n")
    sessions.session_ended(made, [str(file)])
    return made


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
    from depyf.capture.torch_private import stance

    monkeypatch.setattr(stance, "_eager_answer", lambda: None)
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
    said = capsys.readouterr().err
    assert "__transformed_code_0_for_f.py" in said
    assert "break " in said
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
from depyf import debugging
from depyf.link import sessions
sessions.session_ended(sessions.session_started("somewhere"), [])
with debugging.debug():
    print("inside")
print("after")
"""


@pytest.mark.parametrize("stdin", [subprocess.DEVNULL, subprocess.PIPE])
def test_does_not_hang_without_a_terminal(stdin):
    source = os.path.join(os.path.dirname(os.path.dirname(debugging.__file__)))
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env=dict(os.environ, PYTHONPATH=source),
    )
    try:
        out, err = "", ""
        process.wait(timeout=100)
        out, err = process.stdout.read(), process.stderr.read()
    finally:
        process.kill()
        process.wait()
    assert out.split() == ["inside", "after"], err
    assert "no pause" in err
