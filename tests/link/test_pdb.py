"""A real pdb in a pseudo-terminal: breakpoints by file and line in everything that torch.compile made."""

import glob
import os
import re
import sys

import pytest

pytest.importorskip("torch")
from torch_forks import torch_python

pexpect = pytest.importorskip("pexpect")

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "..", "..", "src")
PROMPT = r"\(Pdb\) "


def start(backend, directory, *options, mode=()):
    command = [sys.executable, *options] if options else torch_python()
    environment = dict(os.environ, PYTHONPATH=SOURCES, TERM="dumb", PYTHONBREAKPOINT="", NO_COLOR="1")
    environment["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(directory, "cache")
    child = pexpect.spawn(
        command[0], [*command[1:], os.path.join(HERE, "linked_program.py"), backend, directory, *mode],
        env=environment, encoding="utf-8", timeout=150, dimensions=(50, 400),
    )
    child.setecho(False)
    return child


def ask(child, command):
    child.sendline(command)
    child.expect(PROMPT)
    return child.before


def file_of(directory, kind, holding):
    """The first dumped file of a kind with such a line: ``(path, line number)``."""
    for path in sorted(glob.glob(os.path.join(directory, f"{kind}_*.py"))):
        with open(path) as file:
            for number, line in enumerate(file, 1):
                if re.search(holding, line):
                    return path, number
    raise AssertionError(f"no {kind} file holds {holding}")


def finish(child):
    child.sendline("clear")
    child.expect(r"\? |\(y/n\)|Clear all breaks")
    child.sendline("y")
    child.expect(PROMPT)
    child.sendline("continue")
    child.expect(pexpect.EOF)
    assert "DIFFERENT" not in child.before
    assert "done" in child.before
    child.close()
    assert child.exitstatus == 0


def hit(child, directory, kind, holding, expression, expected):
    path, line = file_of(directory, kind, holding)
    answer = ask(child, f"break {path}:{line}")
    assert f"{path}:{line}" in answer, answer
    answer = ask(child, "continue")
    assert f"{path}({line})" in answer, answer
    assert expected in ask(child, f"p {expression}")
    answer = ask(child, f"clear {path}:{line}")
    return path


def pause(child):
    child.expect("paused")
    child.expect(PROMPT)


def test_eager(tmp_path):
    directory = str(tmp_path)
    child = start("eager", directory)
    pause(child)
    hit(child, directory, "transformed", "LOAD_FAST", "a.shape", "torch.Size([10])")
    hit(child, directory, "captured", "torch.abs|abs_1 =", "type(l_a_).__name__", "Tensor")
    answer = ask(child, "next")
    assert "captured_0.py" in answer
    assert "torch.Size([10])" in ask(child, "p abs_1.shape")
    finish(child)


def test_step_from_transformed_code_into_the_graph(tmp_path):
    directory = str(tmp_path)
    child = start("eager", directory)
    pause(child)
    path, line = file_of(directory, "transformed", "LOAD_FAST")
    ask(child, f"break {path}:{line}")
    ask(child, "continue")
    for _ in range(200):
        answer = ask(child, "step")
        if "captured_" in answer:
            break
    assert "captured_" in answer
    assert "transformed_" in ask(child, "where")
    finish(child)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_names_of_the_transformed_source_are_locals(backend, tmp_path):
    directory = str(tmp_path)
    child = start(backend, directory, mode=["source"])
    pause(child)
    if backend == "inductor":  # (the generated module, in the same process)
        hit(child, directory, "kernel", r"^\s+args\.clear\(\)", "[type(a).__name__ for a in args][0]", "Tensor")
    path, line = file_of(directory, "transformed", r"= __compiled_fn_\w+\(a, b\)")
    with open(path) as file:
        names = file.read().splitlines()[line - 1].split("=")[0].split(",")  # (several up to torch 2.7)
    name = names[-1].strip()
    ask(child, f"break {path}:{line}")
    assert f"{path}({line})" in ask(child, "continue")
    assert "torch.Size([10])" in ask(child, "p a.shape")
    assert "NameError" in ask(child, f"p {name}")
    ask(child, "next")
    kind = ask(child, f"p type({name}).__name__")
    if len(names) == 1:
        assert "tuple" in kind or "list" in kind
        assert "Tensor" in ask(child, f"p [type(item).__name__ for item in {name}]")
    else:
        assert "Tensor" in kind
    finish(child)


def test_forward_and_backward_graph(tmp_path):
    directory = str(tmp_path)
    child = start("aot_eager", directory)
    pause(child)
    hit(child, directory, "forward", r"torch\.ops\.aten\.abs", "primals_1.shape", "torch.Size([10])")
    hit(child, directory, "backward", r"torch\.ops\.aten\.\w+", "tangents_1.shape", "torch.Size([10])")
    finish(child)


def test_quitting_the_debugger_ends_the_program(tmp_path):
    child = start("eager", str(tmp_path))
    pause(child)
    child.sendline("quit")
    index = child.expect([pexpect.EOF, r"\[y/n\]"])
    if index:
        child.sendline("y")
        child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus is not None


def test_under_python_m_pdb(tmp_path):
    directory = str(tmp_path)
    child = start("eager", directory, "-m", "pdb")
    child.expect(PROMPT)
    child.sendline("continue")
    pause(child)
    hit(child, directory, "captured", "torch.abs|abs_1 =", "type(l_a_).__name__", "Tensor")
    child.close(force=True)
