"""The command ``depyf decompile``: inputs, outputs, exit status, what it says."""

import ast
import marshal
import os
import pathlib
import py_compile
import signal
import subprocess
import sys
import time

import pytest
from pretended import Terminal

from depyf import __version__, cli
from depyf.cli import decompile
from depyf.views.progress import Progress

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENV = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
SOURCE = '''import os

def greet(name, /, *, loud=False):
    text = f'Hello, {name}!'
    return text.upper() if loud else text

class Box:

    def get(self):
        return self.x
'''


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """``lib/a.py`` with its .pyc, ``lib/sub/b.py`` without one; ``lib`` is the current folder's."""
    lib = tmp_path / "lib"
    (lib / "sub").mkdir(parents=True)
    (lib / "a.py").write_text(SOURCE)
    (lib / "sub" / "b.py").write_text("raise SystemExit('was executed')\n")
    py_compile.compile(str(lib / "a.py"), doraise=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pyc_of(path):
    return next((path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"))


def run(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "depyf", *map(str, arguments)], capture_output=True, text=True,
                          encoding="utf-8", timeout=120, env=ENV, **options)


# --- inputs -----------------------------------------------------------------------------------------
def test_source_and_bytecode_give_the_same_text(tree, capsys):
    for given in ("lib/a.py", str(pyc_of(tree / "lib" / "a.py")), "lib.a"):
        assert cli.main(["decompile", given]) == 0
        assert capsys.readouterr() == (SOURCE, "")


@pytest.mark.parametrize(("given", "first"), [
    ("lib/a.py:greet", "def greet(name, /, *, loud):"),
    ("lib.a:Box.get", "def get(self):"),
    ("textwrap:dedent", "def dedent(text):"),
    ("xml.etree.ElementTree:Element.iter", "def iter(self, tag):"),
])
def test_one_function(tree, capsys, given, first):
    assert cli.main(["decompile", given]) == 0
    assert capsys.readouterr().out.splitlines()[0] == first


def test_long_lines_are_broken(tree, capsys):
    source = f"""\
def connect(host: str, {', '.join(f'option_{number}: int = {number}' for number in range(8))}) -> None:
    return open_connection(host, {', '.join(f'option_{number}' for number in range(8))}, timeout=None, encoding='utf-8')
"""
    (tree / "lib" / "a.py").write_text(source)
    assert cli.main(["decompile", "lib/a.py"]) == 0
    written = capsys.readouterr().out
    assert max(map(len, written.splitlines())) <= 120 < max(map(len, source.splitlines()))
    assert ast.dump(ast.parse(written)) == ast.dump(ast.parse(source))


def test_python_s_stack_is_no_limit_to_a_chain_of_elif(tree, capsys):
    chain = "".join(f"    elif a == {number}:\n        b({number})\n" for number in range(1, 500))
    (tree / "chain.py").write_text(f"def f(a):\n    if a == 0:\n        b()\n{chain}    return b\n")
    done = subprocess.run([sys.executable, "-m", "depyf", "decompile", "chain.py"], capture_output=True, text=True,
                          env=ENV, timeout=120)
    assert (done.returncode, done.stdout.count("elif")) == (0, 499), done.stderr
    before = sys.getrecursionlimit()
    assert cli.main(["decompile", "lib/a.py:greet"]) == 0
    assert sys.getrecursionlimit() == before


def test_nothing_is_imported_or_executed(tree, capsys):
    """Neither the module nor the package that it is in; find_spec of importlib would import that."""
    (tree / "lib" / "__init__.py").write_text("raise SystemExit('was executed')\n")
    assert cli.main(["decompile", "lib.sub.b"]) == 0
    assert "was executed" in capsys.readouterr().out
    assert not any(name.partition(".")[0] == "lib" for name in sys.modules)


def test_torch_is_not_imported(tree):
    program = "import sys; from depyf.cli import main; main(['decompile', 'lib/a.py']); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=ENV, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("given", "message"), [
    ("nosuch", "there is no such file and no such module"),
    ("nosuch.pyc", "there is no such file"),
    ("sys", "neither source nor bytecode"),
    ("lib/a.py:gret", "do you mean greet"),
    ("lib/a.txt", "is neither a .pyc nor a .py file"),
    ("lib/bad.pyc", "lib/bad.pyc, byte 0: is not a .pyc file"),
    ("lib/old.pyc", "magic number 9999 belongs to no released Python"),
    ("lib/bad.py", "does not compile"),
    ("empty", "contains no .pyc and no .py file"),
])
def test_bad_input_is_named_and_the_rest_is_done(tree, capsys, given, message):
    (tree / "lib" / "a.txt").write_text("")
    (tree / "lib" / "bad.pyc").write_bytes(b"junk")
    (tree / "lib" / "old.pyc").write_bytes((9999).to_bytes(2, "little") + b"\r\n" + bytes(30))
    (tree / "lib" / "bad.py").write_text("def f(:\n")
    (tree / "empty").mkdir()
    assert cli.main(["decompile", "--jobs", "1", given, "lib/a.py"]) == 2
    out, err = capsys.readouterr()
    assert message in err and given.partition(":")[0] in err
    assert "class Box" in out


# --- outputs ----------------------------------------------------------------------------------------
def test_a_folder_is_mirrored(tree, capsys):
    assert cli.main(["decompile", "lib", "-o", "out"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1] == "2 files, 5 code objects: 5 exact"
    written = sorted(str(p.relative_to("out")) for p in pathlib.Path("out").rglob("*") if p.is_file())
    assert written == ["a.py", os.path.join("sub", "b.py")]
    head, _, rest = pathlib.Path("out/a.py").read_text().partition("\n")
    assert head.startswith("# decompiled by depyf from lib") and rest == SOURCE


def test_only_its_own_files_are_overwritten(tree, capsys):
    mine = tree / "mine.py"
    for content in (b"mine = 1\n", b"\xff\xfe\0"):
        mine.write_bytes(content)
        assert cli.main(["decompile", "lib/a.py", "-o", "mine.py"]) == 2
        assert "use --force" in capsys.readouterr().err
        assert mine.read_bytes() == content
    assert cli.main(["decompile", "lib/a.py", "-o", "mine.py", "--force"]) == 0
    assert cli.main(["decompile", "lib/a.py", "-o", "mine.py", "--quiet"]) == 0
    assert capsys.readouterr().err.count("\n") == 1
    assert not list(tree.glob("*.partial"))


def test_two_inputs_never_share_a_file(tree, capsys):
    (tree / "a.py").write_text("x = 1\n")
    assert cli.main(["decompile", "a.py", "lib/a.py", "-o", "out"]) == 2
    assert "one by one" in capsys.readouterr().err
    assert "x = 1" in (tree / "out" / "a.py").read_text()


def test_several_processes_write_in_order(tree, capsys):
    for number in range(6):
        (tree / f"m{number}.py").write_text(f"x = {number}\n")
    assert cli.main(["decompile", "--jobs", "3", *(f"m{n}.py" for n in range(6))]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if line.startswith("x")]
    assert shown == [f"x = {n}" for n in range(6)]


def test_code_without_a_header(tree, capsys):
    (tree / "raw").write_bytes(marshal.dumps(compile(SOURCE, "a.py", "exec")))
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert cli.main(["decompile", "raw", "--python", version]) == 0
    assert capsys.readouterr() == (SOURCE, "")
    assert cli.main(["decompile", "raw"]) == 2
    assert "--python" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["decompile", "raw", "--python", "3.6"])
    assert "'3.6' is not one of 3.7, 3.8," in capsys.readouterr().err


# --- fidelity ---------------------------------------------------------------------------------------
def test_what_is_not_proven_is_said(monkeypatch, capsys):
    monkeypatch.setattr(decompile, "_interpreter", lambda version, path: None)
    assert cli.main(["decompile", str(pathlib.Path(__file__).parents[1] / "foreign/compiled/blocks.3.8.pyc")]) == 1
    text = capsys.readouterr().out
    assert text.startswith("# fidelity: unproven\n")
    assert "code of Python 3.8, of which no interpreter was found: give --interpreter to prove it" in text


def test_an_interpreter_is_found(tree, monkeypatch):
    running = sys.version_info[:2]
    name = f"python{running[0]}.{running[1]}"
    monkeypatch.setenv("PATH", str(tree / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tree / "pyenv"))
    monkeypatch.setenv("HOME", str(tree))
    find = decompile._interpreter.__wrapped__
    assert find(running, None) is None
    of_pyenv = tree / "pyenv" / "versions" / f"{running[0]}.{running[1]}.0" / "bin" / name
    for place in (of_pyenv, tree / "bin" / name):
        place.parent.mkdir(parents=True)
        place.symlink_to(sys.executable)
        assert find(running, None).path == str(place)
    assert find(running, sys.executable).path == sys.executable
    (tree / "bin" / name).unlink()
    (tree / "bin" / name).write_text("#!/bin/sh\nexit 127\n")  # (as of pyenv, where that version is not switched on)
    (tree / "bin" / name).chmod(0o755)
    assert find(running, None).path == str(of_pyenv)


def test_stages(tree, capsys):
    assert cli.main(["decompile", "--stages", "lib/a.py:greet"]) == 0
    out = capsys.readouterr().out
    assert "== structure in greet:" in out and "(nothing to do for " in out and "def greet" in out
    assert cli.main(["decompile", "--stages", "lib"]) == 2


def test_names_of_others_cannot_end_a_comment():
    assert decompile._comment("a\nimport os\r\x1b[2J") == "a import os \\x1b[2J"


# --- as a program -----------------------------------------------------------------------------------
def test_version():
    assert run("--version").stdout == f"depyf {__version__}\n"


def test_usage_errors():
    assert run().returncode == 2
    done = run("decompile", "--jobs", "0", "x")
    assert done.returncode == 2 and "is not a number of processes" in done.stderr


def test_piped_output_has_no_bar(tree):
    done = run("decompile", "lib", "-o", "out")
    assert done.returncode == 0 and "\r" not in done.stderr and "\x1b" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes of Unix")
def test_a_closed_pipe_is_silent(tree):
    (tree / "long.py").write_text("".join(f"variable_{n} = {n}\n" for n in range(30_000)))
    done = subprocess.run(f"{sys.executable} -m depyf decompile long.py | head -n 1", shell=True, capture_output=True,
                          text=True, env=ENV, timeout=120)
    assert (done.stdout, done.stderr) == ("variable_0 = 0\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_an_interrupt_is_one_line(tree):
    (tree / "many").mkdir()
    for number in range(400):
        (tree / "many" / f"m{number}.py").write_text(SOURCE * 40)
    with subprocess.Popen([sys.executable, "-m", "depyf", "decompile", "many", "-o", "out", "--jobs", "2"],
                          stderr=subprocess.PIPE, text=True, env=ENV,
                          # (started in the background of a shell, this process ignores the signal, and so would that)
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
        deadline = time.monotonic() + 100
        while not list((tree / "out").glob("*.py")) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "depyf: interrupted\n"


@pytest.mark.parametrize("columns", [1, 8, 20, 40, 200])
def test_the_bar_fits_the_terminal(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()
    progress = Progress(1000, terminal, True)
    progress.done = 500
    progress.show("a/rather/long/name/of/a/file.py")
    line = terminal.text.removeprefix("\r\x1b[K")
    assert len(line) < max(columns, 2) and "\x1b" not in line
    if columns >= 40:
        assert "###" in line and " 500/1000 " in line
