"""When files are made: before the block ends, in the program's own process; or later. And ends that are no ordinary ones."""

import os
import signal
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import depyf
from depyf.records import store
from depyf.report import report
from torch_forks import torch_python

pytestmark = pytest.mark.usefixtures("fresh_dynamo")

TEXT = "__transformed_code_0_for_broken.py"
BROKEN = """
import os, signal, sys, torch, depyf
def broken(x):
    y = x + 1
    if y.sum() > 0:
        return y * 2
    return y - 1
compiled = torch.compile(broken, backend="eager")
"""


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
    return {name for name in os.listdir(path) if name != ".depyf"}


def program(folder, text, command=None, **options):
    """Run a program in a folder and return its ended process."""
    (folder / "program.py").write_text(BROKEN + text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run([*(command or torch_python()), "program.py"], cwd=folder, capture_output=True, text=True,
                          timeout=300, env=environment, **options)


ORDINARY = "with depyf.prepare_debug('d'):\n    compiled(torch.ones(2))\n"
COPIED = ORDINARY + "import shutil\nshutil.copytree('d', 'copied')\n"


def test_the_next_line_finds_the_files(tmp_path):
    done = program(tmp_path, COPIED)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert files_of(tmp_path / "copied") == files_of(tmp_path / "d") >= {
        TEXT, "index.md", "index.html", "records.jsonl", "full_code_for_broken_0.py"}


def test_the_same_files_now_and_later(tmp_path):
    texts = []
    for how in ("now", "later"):
        done = program(tmp_path, ORDINARY.replace("'d'", f"{how!r}, files={how!r}") + "import depyf.report\n"
                       f"depyf.report.report({how!r})\n")
        assert done.returncode == 0, done.stderr
        texts.append({name: (tmp_path / how / name).read_text() for name in files_of(tmp_path / how)
                      if name.endswith((".py", ".txt"))})
    assert TEXT in texts[0] and texts[0] == texts[1]


def test_later_leaves_records_and_what_to_do(tmp_path):
    block = run(tmp_path / "d", files="later")
    assert files_of(tmp_path / "d") == {"records.jsonl", "index.md"}
    assert "depyf report ." in (tmp_path / "d" / "index.md").read_text()
    assert store.is_unwritten(str(tmp_path / "d"))
    block.wait()
    assert TEXT in files_of(tmp_path / "d") and not store.is_unwritten(str(tmp_path / "d"))


def test_report_makes_what_was_left_for_later(tmp_path):
    run(tmp_path / "d", files="later")
    report(str(tmp_path / "d"))
    assert TEXT in files_of(tmp_path / "d") and not store.is_unwritten(str(tmp_path / "d"))


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
    with pytest.raises(ValueError, match="is not known; give 'now' or 'later'"):
        depyf.prepare_debug(str(tmp_path), files=files)


# --- surroundings that are not ordinary ----------------------------------------------------------------
def test_modules_beside_the_program_are_not_executed(tmp_path):
    """The program starts elsewhere and then has a folder with such modules first on its path, as notebooks do."""
    for name in ("types", "copy", "pickle", "subprocess", "html", "difflib", "textwrap", "marshal"):
        (tmp_path / f"{name}.py").write_text("open(__file__ + '.executed', 'w').close()\nraise SystemExit(3)\n")
    start = tmp_path / "start"
    start.mkdir()
    done = program(start, "os.chdir('..')\nsys.path.insert(0, os.getcwd())\nfrom depyf.finishing import texts\n"
                   "texts._MANY = 0\ntexts.available_workers = lambda: 2\n" + ORDINARY, [sys.executable])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert TEXT in files_of(tmp_path / "d")
    assert list(tmp_path.glob("*.executed")) == []


@pytest.mark.skipif(not hasattr(signal, "SIGCHLD"), reason="no such signal here")
def test_a_handler_of_child_processes_is_not_called(tmp_path):
    done = program(tmp_path, "from depyf.finishing import texts\ntexts._MANY = 0\n"
                   "signal.signal(signal.SIGCHLD, lambda *_: print('a child ended'))\n" + ORDINARY)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert TEXT in files_of(tmp_path / "d")


def test_no_process_can_be_started(tmp_path):
    resource = pytest.importorskip("resource")
    done = program(tmp_path, "from depyf.finishing import texts\ntexts._MANY = 0\nimport subprocess\n"
                   "def refused(*args, **kwargs):\n    raise BlockingIOError(11, 'Resource temporarily unavailable')\n"
                   "subprocess.Popen.__init__ = refused\n" + COPIED, [sys.executable],
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert TEXT in files_of(tmp_path / "copied")


def test_as_the_first_process_of_a_container(tmp_path):
    unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("no namespaces for processes here")
    done = program(tmp_path, COPIED + "assert os.getpid() == 1\n"
                   "print([name for name in os.listdir('/proc') if name.isdecimal()])\n", [*unshare, sys.executable])
    assert (done.returncode, done.stdout, done.stderr) == (0, "['1']\n", "")
    assert TEXT in files_of(tmp_path / "copied")


@pytest.mark.skipif(not hasattr(signal, "SIGTERM") or os.name == "nt", reason="signals of Unix")
@pytest.mark.parametrize("where", ["in the block", "in two blocks", "while files are written", "of a thread's block"])
def test_sigterm(tmp_path, where):
    kill = "os.kill(os.getpid(), signal.SIGTERM)"
    block = f"with depyf.prepare_debug('d'):\n    compiled(torch.ones(2))\n    {kill}\n    print('not reached')\n"
    if where == "in two blocks":
        block = "with depyf.prepare_debug('outer'):\n" + "".join(f"    {line}\n" for line in block.splitlines())
    elif where == "while files are written":
        block = ("from depyf.views.dump import files\nbefore = files.write_views\n"
                 f"def write_views(*args, **kwargs):\n    {kill}\n    return before(*args, **kwargs)\n"
                 "files.write_views = write_views\n" + ORDINARY + "print('not reached')\n")
    elif where == "of a thread's block":  # no handler can be set there: the records are complete up to here
        block = ("import threading, time\ndef work():\n" + "".join(f"    {line}\n" for line in ORDINARY.splitlines())
                 + f"thread = threading.Thread(target=work)\nthread.start()\nthread.join()\n{kill}\n")
    done = program(tmp_path, block)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, "", "")
    assert {TEXT, "index.md", "full_code_for_broken_0.py"} <= files_of(tmp_path / "d")
    if where == "in two blocks":
        assert TEXT in files_of(tmp_path / "outer")


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
def test_sigterm_is_the_programs_own(tmp_path):
    done = program(tmp_path, "signal.signal(signal.SIGTERM, lambda *_: print('mine'))\n" + ORDINARY
                   + "    os.kill(os.getpid(), signal.SIGTERM)\n"
                   "assert signal.getsignal(signal.SIGTERM)(0, 0) is None\n"
                   "signal.signal(signal.SIGTERM, signal.SIG_DFL)\n" + ORDINARY.replace("'d'", "'e'")
                   + "assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "mine\nmine\n", ""), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_ends_by_sigterm_at_once(tmp_path):
    done = program(tmp_path, ORDINARY + "    child = os.fork()\n    if not child:\n"
                   "        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL\n"
                   "        os.kill(os.getpid(), signal.SIGTERM)\n    print(os.waitpid(child, 0)[1])\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{signal.SIGTERM.value}\n", "")


def test_several_processes_write_the_same_texts(tmp_path):
    for folder, many in (("alone", 10**9), ("workers", 0)):
        done = program(tmp_path, f"from depyf.finishing import texts\ntexts._MANY = {many}\n"
                       "texts.available_workers = lambda: 2\nseen = []\nby_workers = texts._by_workers\n"
                       "def _by_workers(*args):\n    for each in by_workers(*args):\n        seen.append(each)\n"
                       "        yield each\ntexts._by_workers = _by_workers\n" + ORDINARY.replace("'d'", repr(folder))
                       + "print(len(seen), all(seen))\n")
        assert (done.stdout, done.stderr) == ("0 True\n" if many else "2 True\n", "")
    alone, workers = (
        {name: (tmp_path / folder / name).read_text() for name in files_of(tmp_path / folder)
         if name.endswith(".py")} for folder in ("alone", "workers"))
    assert TEXT in alone and alone == workers
