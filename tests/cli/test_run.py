"""``depyf run`` and ``DEPYF_DUMP_DIR``: the program is as it is without, and what it compiled is there."""

import os
import pathlib
import signal
import subprocess
import sys
import sysconfig
import textwrap
import venv

import pytest
from pretended import Terminal

from depyf.cli.run import PTH
from depyf.program import start as variables
from depyf.program.options import Options
from torch_forks import torch_python

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENV = {**{name: value for name, value in os.environ.items() if not name.startswith("DEPYF_")},
       "PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
SUMMARY = "depyf: "
PROGRAM = textwrap.dedent("""
    import atexit, os, pickle, signal, sys, traceback

    class Here: pass
    def there(): return 3

    atexit.register(print, "at exit", file=sys.stderr)
    print(__name__, sys.argv, sys.path[0], __file__, __spec__ and __spec__.name, __package__, __doc__)
    print(sorted(name for name in globals() if name[0] != "_"), sys.flags, sys.orig_argv[1:])
    print(type(pickle.loads(pickle.dumps(Here()))).__module__, pickle.loads(pickle.dumps(there)) is there)
    print([signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)], sys.excepthook, sys.stdin.read())
    traceback.print_stack()
    match sys.argv[1:2]:
        case ["exit"]: sys.exit(7)
        case ["say"]: sys.exit("said")
        case ["raise"]: raise ValueError("mine")
        case ["interrupt"]: os.kill(os.getpid(), signal.SIGINT)
        case ["kill"]: os.kill(os.getpid(), signal.SIGTERM)
        case ["leave"]: os._exit(5)
""")


def run(*command, cwd, env=ENV, python=(sys.executable,), **options):
    return subprocess.run([*python, *map(str, command)], capture_output=True, text=True, encoding="utf-8",
                          cwd=cwd, env=env, timeout=300, **options)


def without_summary(text):
    """Standard error, without what ``depyf run`` says at its end."""
    return text.partition(f"\n{SUMMARY}")[0].removesuffix("\n") + "\n" if SUMMARY in text else text


@pytest.fixture
def project(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(PROGRAM)
    (tmp_path / "package" / "__init__.py").write_text("")
    return tmp_path


def test_a_path_is_shown_as_it_is_where_the_program_began(project):
    """It may have gone elsewhere; who reads the path has not."""
    (project / "away.py").write_text("import os\nos.chdir(os.path.abspath(os.sep))\n")
    assert f"nothing was written to out{os.sep}" in run("-m", "depyf", "run", "-o", "out", "away.py", cwd=project).stderr


# --- the program is the same -------------------------------------------------------------------------
@pytest.mark.parametrize("command", [
    ["program.py"], ["program.py", "exit", "-o", "x", "--", "-m", "--output"], ["./program.py", "say"],
    ["program.py", "raise", "--help"], ["-m", "program", "exit", "a b"], ["-m", "package", "raise"],
    ["package", "exit"], ["program.py", "leave"], ["nosuch.py"], ["-m", "nosuch"],
    *([["program.py", "interrupt"], ["program.py", "kill"]] if os.name == "posix" else [])], ids=" ".join)
def test_a_program_is_as_it_is_without(project, command):
    """Arguments, names, streams, traceback, what is on the stack, what happens at exit, the status."""
    plain = run(*command, cwd=project, input="typed")
    watched = run("-m", "depyf", "run", "-o", "out", *command, cwd=project, input="typed")
    assert (watched.returncode, watched.stdout) == (plain.returncode, plain.stdout)
    assert without_summary(watched.stderr) == plain.stderr
    assert not (project / "out").exists()
    assert ("nothing was written to out" in watched.stderr) == (command[-1] not in ("kill", "leave"))


def test_the_user_s_own_sitecustomize_is_run(project, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "sitecustomize.py").write_text("import sys; sys.customized = __file__\n")
    (project / "asks.py").write_text("import sys, sitecustomize; print(sys.customized, sitecustomize.__file__, sys.path)")
    env = {**ENV, "PYTHONPATH": os.pathsep.join([str(tmp_path / "mine"), ENV["PYTHONPATH"]])}
    plain = run("asks.py", cwd=project, env=env)
    assert run("-m", "depyf", "run", "asks.py", cwd=project, env=env).stdout == plain.stdout != ""


def test_what_cannot_be_done_is_said_before_the_program_runs(project):
    (project / "file").write_text("")
    done = run("-m", "depyf", "run", "-o", "file", "program.py", cwd=project)
    assert (done.returncode, done.stdout) == (2, "") and "file': it is a file" in done.stderr
    assert run("-m", "depyf", "run", cwd=project).returncode == 2
    assert "unrecognized arguments: --nope\n" in run("-m", "depyf", "run", "--nope", cwd=project).stderr
    assert run("-m", "depyf", "run", "--stage", "nosuch", "program.py", cwd=project).returncode == 2


def test_quiet(project):
    assert run("-m", "depyf", "run", "-q", "program.py", cwd=project, input="").stderr.endswith("at exit\n")


# --- options ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("given", [
    Options(), Options(include=("a b", "--x"), exclude=("*",), backend=("eager",), stage=("captured", "kernels")),
    Options(link=False, internal_stages=True, unsimplified=True, log_bytecode=True, caches="bypass", quiet=True),
    Options(page=True), Options(page=False)])
def test_options_come_back_from_their_text(given):
    assert Options.read(given.text) == given
    assert bool(given.text) == (given != Options())


def test_options_that_are_not_known_are_named():
    with pytest.raises(ValueError, match="--nosuch"):
        Options.read("--nosuch")


def test_role_in_launch():
    environment = {}
    assert variables.role_in_launch("") == (True, False)
    variables.new_launch(environment)
    assert variables.role_in_launch(environment[variables.LAUNCH]) == (False, False)
    if os.name == "posix":
        variables.new_launch(environment, run=True)
        assert variables.role_in_launch(environment[variables.LAUNCH]) == (True, True)


# --- the variable ----------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """A Python with the packages of this one, in which depyf is installed (its files beside the packages)."""
    place = tmp_path_factory.mktemp("venv")
    venv.create(place, symlinks=os.name == "posix")
    scheme = "nt" if os.name == "nt" else "posix_prefix"
    packages = pathlib.Path(sysconfig.get_path("purelib", scheme, {"base": str(place), "platbase": str(place)}))
    (packages / "aa_others.pth").write_text(f"{ROOT / 'src'}\n{sysconfig.get_path('purelib')}\n")
    (packages / PTH).write_bytes((ROOT / "src" / PTH).read_bytes())
    return place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def installed(python, *command, cwd, **variables):
    env = {name: value for name, value in ENV.items() if name != "PYTHONPATH"}
    return subprocess.run([str(python), *map(str, command)], capture_output=True, text=True, cwd=cwd, timeout=300,
                          env={**env, **variables})


ASKS = "import os, sys; print(sorted(m for m in sys.modules if 'depyf' in m), [v for v in os.environ if 'DEPYF' in v])"


@pytest.mark.parametrize("variables", [{}, {"DEPYF_DUMP_DIR": ""}])
def test_without_the_variable_nothing_is_imported(python, project, variables):
    done = installed(python, "-c", ASKS, cwd=project, **variables)
    assert (done.stdout, done.stderr) == (f"[] {list(variables)}\n", "")


def test_with_it_a_program_that_has_no_torch_is_left_in_peace(python, project):
    done = installed(python, "program.py", "exit", cwd=project, DEPYF_DUMP_DIR="out")
    assert done.returncode == 7 and done.stderr.endswith("at exit\n") and not (project / "out").exists()
    assert "depyf.program.start" in installed(python, "-c", ASKS, cwd=project, DEPYF_DUMP_DIR="out").stdout


def test_options_that_are_wrong_keep_no_program_from_running(python, project):
    done = installed(python, "program.py", "exit", cwd=project, DEPYF_DUMP_DIR="out", DEPYF_DUMP_OPTIONS="--nosuch")
    assert done.returncode == 7 and done.stderr.count("depyf") == 1 and "DEPYF_DUMP_OPTIONS: unrecog" in done.stderr
    assert "--nosuch" in done.stderr


def test_a_depyf_that_is_broken_keeps_no_program_from_running(python, project):
    (project / "depyf.py").write_text("raise RuntimeError('broken')")
    done = installed(python, "-c", "print(1)", cwd=project, DEPYF_DUMP_DIR="out", PYTHONPATH=str(project))
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_run_uses_what_is_installed(python, project):
    done = installed(python, "-m", "depyf", "run", "-c", cwd=project)
    assert done.returncode == 2
    (project / "asks.py").write_text("import os; print([v for v in os.environ if v.startswith(('PYTHONP', 'DEPYF'))])")
    done = installed(python, "-m", "depyf", "run", "asks.py", cwd=project)
    assert eval(done.stdout) == ["DEPYF_DUMP_DIR", "DEPYF_DUMP_OPTIONS", "DEPYF_DUMP_LAUNCH"]


# --- what is compiled ------------------------------------------------------------------------------
COMPILES = textwrap.dedent("""
    import os, sys
    os.environ["TORCH_LOGS"] = "recompiles"
    import torch
    import torch._dynamo  # (its settings come with it)
    os.environ["DEPYF_TEST_LATE"] = "1"
    assert not any(name.startswith("depyf.capture.session") for name in sys.modules)

    class Net(torch.nn.Module):
        def forward(self, x):
            x = x + 1
            torch._dynamo.graph_break()
            return x * 2

    @torch.compile(backend="eager")
    def other(x):
        return x.sin()

    net = torch.compile(Net(), backend="aot_eager")
    for n in (2, 3):
        print(net(torch.ones(n)), other(torch.ones(n)))
    for argument in sys.argv[1:]:
        print("waits", flush=True)
        import time
        time.sleep(200)
""")


def names(folder):
    return sorted(path.name for path in pathlib.Path(folder).iterdir() if not path.name.startswith("."))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "program.py").write_text(COMPILES)
    return folder


def test_a_program_that_compiles(tmp_path):
    from depyf.records import store

    (tmp_path / "program.py").write_text('import sys; assert "torch" not in sys.modules' + COMPILES)
    plain = run("program.py", cwd=tmp_path)
    done = run("-m", "depyf", "run", "-o", "out", "program.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, plain.stdout), done.stderr
    assert plain.stderr and done.stderr.count("Recompiling function") == plain.stderr.count("Recompiling function") == 3
    lines = done.stderr[done.stderr.index(f"{SUMMARY}torch.compile made"):].splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("depyf: torch.compile made 6 graphs of 2 functions, ") and lines[0].endswith(" s of compiling")
    assert lines[1].startswith("  graph breaks  2, first at program.py:12: ") and "graph_break" in lines[1]
    assert lines[2].startswith("  recompiles    3, first of ") and lines[2].endswith("`x.shape[0]`: 2 → 3")
    assert lines[3] == "  written to    out/"
    assert lines[4].startswith("  start with    out/index.html (depyf open out)")
    capture = store.read(str(tmp_path / "out"))
    assert store.NOT_ENDED not in capture.notes
    stack = capture.compilations[0].stack
    assert (stack[0].function, stack[0].filename) == ("<module>", str(tmp_path / "program.py")), stack
    assert not any("depyf" in frame.filename.replace(str(tmp_path), "") for frame in stack), "nothing of ours is on it"
    assert "full_code_for_forward_0.py" in names(tmp_path / "out")


@pytest.mark.parametrize(("given", "present", "absent"), [
    (["--include", "Net.*"], "forward", "other"),
    (["--exclude=forward", "--no-page", "--no-link"], "other", "forward"),
    (["--exclude", "program.py"], "", "full"),
    (["--backend", "eager", "--stage=captured"], "full_code_for_other", "Forward_graph"),
])
def test_what_is_written_can_be_chosen(compiled, given, present, absent):
    from depyf.records import store

    name = "chosen" + "".join(given).translate({ord(c): "_" for c in "*./-="})
    done = run("-m", "depyf", "run", "-o", name, *given, "program.py", cwd=compiled, python=torch_python())
    assert done.returncode == 0, done.stderr
    files = names(compiled / name)
    assert any(present in each for each in files) and not any(absent in each for each in files), files
    capture = store.read(str(compiled / name))
    assert "only a part of the run is here" in capture.notes[0]
    named = {each for graph in capture.graphs for stage in graph.stages for each in [stage.file] if each}
    assert named <= set(files)
    assert ("index.html" in files) == ("--no-page" not in given)


@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_there_is_is_written_when_it_is_ended(compiled, number):
    name = f"ended_{int(number)}"
    with subprocess.Popen(
            [sys.executable, "-m", "depyf", "run", "-o", name, "program.py", "wait"], cwd=compiled, env=ENV, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
        for line in process.stdout:
            if line == "waits\n":
                break
        process.send_signal(number)
        _, err = process.communicate(timeout=120)
    assert process.returncode == -number, "as without depyf; a shell shows 128 and the number"
    assert "index.md" in names(compiled / name) and f"written to    {name}/" in err
    assert ("KeyboardInterrupt" in err) == (number == signal.SIGINT)


WORKERS = textwrap.dedent("""
    import multiprocessing, os, sys
    import torch

    def f(x):
        return x.sin() + 1

    def worker(size):
        if size:
            torch.compile(f, backend="eager")(torch.ones(size))

    if __name__ == "__main__":
        torch.compile(f, backend="eager")(torch.ones(3, 3))
        for method in ("fork", "spawn"):
            for size in (0, 3):
                process = multiprocessing.get_context(method).Process(target=worker, args=(size,))
                process.start()
                process.join()
                print(method, process.exitcode)
""")


@pytest.mark.skipif(os.name != "posix", reason="fork")
def test_workers_write_dumps_of_their_own_if_they_compile(compiled):
    from depyf.capture.torch_private import hooks
    from depyf.records import store

    (compiled / "workers.py").write_text(WORKERS)
    done = run("-m", "depyf", "run", "-o", "workers", "workers.py", cwd=compiled, python=torch_python())
    assert done.stdout == "fork 0\nfork 0\nspawn 0\nspawn 0\n", done.stderr
    says_what_it_lacks = bool(hooks.missing())  # once, as the summary
    assert done.stderr.count(SUMMARY) == 1 + says_what_it_lacks
    assert "3 graphs of 1 function in 3 processes" in done.stderr
    assert [each for each in names(compiled / "workers") if each.startswith("run_")] == ["run_2", "run_3"]
    for folder in ("", "run_2", "run_3"):
        capture = store.read(str(compiled / "workers" / folder))
        assert len(capture.compilations) == 1 and store.NOT_ENDED not in capture.notes


RANK = textwrap.dedent("""
    import torch, torch.distributed

    torch.distributed.init_process_group("gloo")

    @torch.compile(backend="eager")
    def f(x, rank):
        if rank:
            torch._dynamo.graph_break()
        return x + 1

    f(torch.ones(3), torch.distributed.get_rank())
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
""")


def test_torchrun(compiled, python):
    from depyf.records import store

    (compiled / "rank.py").write_text(RANK)
    done = installed(python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "rank.py",
                     cwd=compiled, DEPYF_DUMP_DIR="ranks", DEPYF_DUMP_OPTIONS="--no-link")
    assert done.returncode == 0, done.stderr
    assert names(compiled / "ranks") == ["index.md", "rank_0", "rank_1"]
    assert [len(store.read(str(compiled / "ranks" / f"rank_{n}")).compilations) for n in (0, 1)] == [1, 2]
    assert done.stderr.count(SUMMARY) == 1 and "on 2 ranks" in done.stderr


def test_pytest(compiled, python):
    (compiled / "test_it.py").write_text(
        "import torch\ndef test_it():\n    assert torch.compile(lambda x: x * 2, backend='eager')(torch.ones(2)).sum() == 4")
    done = installed(python, "-m", "pytest", "-q", "-W", "error::DeprecationWarning", "-p", "no:cacheprovider",
                     "test_it.py", cwd=compiled, DEPYF_DUMP_DIR="pytest")
    assert done.returncode == 0, done.stdout
    assert "1 passed in" in done.stdout and "warning" not in done.stdout
    assert "made 1 graph of 1 function" in done.stderr and "index.md" in names(compiled / "pytest")


BEFORE_TORCH = "before it imported torch, so nothing could be compiled"
MADE = "import torch; torch.compile(lambda x: x, backend='eager')\n"


@pytest.mark.parametrize(("program", "why"), [
    (None, "Python did not start the program, so nothing was run"),
    ("", "the program ended without importing torch, so nothing could be compiled"),
    ("import sys; sys.exit(3)", "the program ended without importing torch, so nothing could be compiled"),
    ("x = (", f"the program ended with SyntaxError {BEFORE_TORCH}"),
    ("import nosuchmodule", f"the program ended with ModuleNotFoundError {BEFORE_TORCH}"),
    ("import code\ncode.InteractiveInterpreter().runsource('1/0')",
     "the program ended without importing torch, so nothing could be compiled"),
    ("import torch", "the program imported torch, but did not use torch.compile"),
    (MADE + "1/0", "the program imported torch, but ended with ZeroDivisionError before anything was compiled"),
    (MADE, "the program imported torch, but nothing was compiled: what torch.compile returned was not called, or "
           "torch leaves what was called alone")])
def test_a_program_that_compiles_nothing_is_told_why(tmp_path, program, why):
    if program is not None:
        (tmp_path / "nothing.py").write_text(program)
    python = torch_python() if "torch.compile" in (program or "") else [sys.executable]
    plain = run("nothing.py", cwd=tmp_path, python=python)
    done = run("-m", "depyf", "run", "-o", "nothing", "nothing.py", cwd=tmp_path, python=python)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    assert done.stderr == f"{plain.stderr}depyf: {why}\n  nothing was written to nothing{os.sep}\n"
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("command", [["."], ["program.py/x"], ["-m", "nosuch"], ["-m", "package.nosuch"]], ids=" ".join)
def test_a_program_that_python_cannot_start(project, command):
    done = run("-m", "depyf", "run", *command, cwd=project)
    assert done.returncode and done.stderr.splitlines()[-2] == (
        "depyf: Python did not start the program, so nothing was run"), done.stderr


def test_a_directory_that_cannot_be_made_is_refused_before_the_program_runs(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "program.py").write_text("print('ran')")
    done = run("-m", "depyf", "run", "-o", os.path.join("file", "inner", "dump"), "program.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("depyf: cannot write to ") and len(done.stderr.splitlines()) == 1
    assert sorted(os.listdir(tmp_path)) == ["file", "program.py"]


def test_a_directory_that_cannot_be_written_costs_the_dump_alone(compiled):
    (compiled / "taken").mkdir(exist_ok=True)
    program = "import os; os.rmdir('taken'); open('taken', 'w').close()\n" + COMPILES
    (compiled / "spoils.py").write_text(program)
    done = run("-m", "depyf", "run", "-o", "taken", "spoils.py", cwd=compiled, python=torch_python())
    assert done.returncode == 0 and done.stdout.count("tensor") == 4
    assert "it is a file" in done.stderr and "Traceback" not in done.stderr
    assert done.stderr.count("this process was not watched") == 2, "when it is tried, and at the end"


@pytest.mark.parametrize("shows", [True, False])
def test_long_writing_is_shown_on_a_terminal(tmp_path, monkeypatch, shows):
    from depyf.views import progress

    terminal, now = Terminal(), [0.0]
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    bar = progress.Progress(2, terminal, shows, delay=1)
    for done, now[0] in enumerate((0.1, 0.9, 9.0, 9.1)):
        bar.writing("outlines", done, 4)
    assert ("3/4 depyf: writing outlines" in terminal.text) == shows
    assert "1/4" not in terminal.text, "within the first second nothing is shown"
