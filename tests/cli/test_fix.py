"""``depyf fix``: what it shows while it runs a program. (Runs are pretended; ``tests/advice`` has real ones.)"""

import pytest
from pretended import Terminal

from depyf import cli
from depyf.fixing import trial
from depyf.fixing.outcome import Outcome
from depyf.records.model import Capture, Compilation, CompileId, GraphBreak, SourceFile, SourceLocation

TEXT = "import torch\ndef f(x):\n    y = x * int(x)\n    return y\n"


@pytest.fixture
def program(tmp_path, monkeypatch):
    path = tmp_path / "program.py"
    path.write_text(TEXT)

    def pretended(self, texts, conditions=None):
        place = SourceLocation(str(path), 3, "f", "y = x * int(x)")
        broken = GraphBreak(CompileId(0, 0), "Unsupported Tensor.item() call", registry_id="GB0124", stack=(place,))
        breaks = () if any("capture_scalar_outputs" in text for text in texts.values()) else (broken,)
        return Outcome(Capture(compilations=(Compilation(CompileId(0, 0), breaks=breaks),),
                               sources=(SourceFile(str(path), TEXT),)), [])

    monkeypatch.setattr(trial.Runner, "__call__", pretended)
    return path


def test_each_run_is_a_line(program, capsys):
    assert cli.main(["fix", "--runs", "5", str(program)]) == 0
    first, second = capsys.readouterr().err.splitlines()
    assert first == "depyf: run 1 of at most 5: the program as it is"
    assert second.startswith("depyf: run 2 of at most 5: set ") and "capture_scalar_outputs = True" in second


def test_a_setting_that_helped_is_explained_by_what_it_does(program, capsys):
    """Its sentence has a condition, which is no reason for taking it."""
    assert cli.main(["fix", "--runs", "5", str(program)]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("# set `torch._dynamo.config.capture_scalar_outputs = True`")
    assert lines[at + 1].startswith("#   what it does: with `torch._dynamo.config.capture_scalar_outputs = True`")
    assert not any("because" in line for line in lines)


def test_a_terminal_shows_a_bar_that_goes(program, monkeypatch, capsys):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    assert cli.main(["fix", "--runs", "5", str(program)]) == 0
    bars = [each for each in terminal.text.split("\r\x1b[K") if each]
    assert [name in bar for bar, name in zip(bars, (" 1/5 the program as it is", " 2/5 set "), strict=True)] == [True] * 2
    assert terminal.text.endswith("\r\x1b[K") and "run 1" not in terminal.text
