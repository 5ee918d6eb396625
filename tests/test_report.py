"""``depyf report``: the files of a run again, from its records or from a log of TORCH_TRACE."""

import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

from depyf.capture.trace_log import _functions, _Log  # noqa: E402
from depyf.records.model import Frame, SourceLocation  # noqa: E402
from depyf.records.store import RecordsError  # noqa: E402
from depyf.report import report  # noqa: E402
from torch_forks import torch_python

PROGRAM = textwrap.dedent("""
    import sys, torch

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)

        def forward(self, x):
            x = self.layer(x).relu()
            print("side")
            return self.layer(x).sum()

    def run():
        model = torch.compile(Block(), backend="aot_eager")
        for n in (2, 3):
            model(torch.ones(n, 4)).backward()

    if len(sys.argv) > 1:
        import depyf
        with depyf.prepare_debug(sys.argv[1], files="later" if "later" in sys.argv else "now"):
            run()
    else:
        run()
""")
#: Runs the command where torch cannot be imported.
COMMAND = "import sys; sys.modules['torch'] = None; from depyf.cli import main; sys.exit(main(sys.argv[1:]))"


def depyf(*arguments):
    return subprocess.run([sys.executable, "-c", COMMAND, *map(str, arguments)], capture_output=True, text=True)


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    run_folder = tmp_path_factory.mktemp("report")
    (run_folder / "program.py").write_text(PROGRAM)
    for arguments, more in (([run_folder / "dump"], {}), ([], {"TORCH_TRACE": str(run_folder / "log")})):
        subprocess.run([*torch_python(), str(run_folder / "program.py"), *arguments], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, **more})
    return run_folder


def contents(directory):
    return {path.name: path.read_text() for path in pathlib.Path(directory).iterdir() if path.name != ".depyf"}


def test_all_files_of_a_run_come_again_from_its_records(run_folder, tmp_path):
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / "records.jsonl").write_bytes((run_folder / "dump" / "records.jsonl").read_bytes())
    done = depyf("report", tmp_path / "moved" / "records.jsonl", "-o", tmp_path / "again")
    assert (done.returncode, done.stdout.strip()) == (0, str(tmp_path / "again" / "index.md")), done.stderr
    assert contents(tmp_path / "again") == contents(run_folder / "dump")
    assert any(name.endswith(".outline.txt") for name in contents(run_folder / "dump"))


def test_the_index_comes_again_beside_the_records(run_folder):
    index = run_folder / "dump" / "index.md"
    before = index.read_text()
    index.unlink()
    assert depyf("report", run_folder / "dump").returncode == 0
    assert index.read_text().partition("## Notes")[0] == before.partition("## Notes")[0]


def test_a_log_gives_the_graphs_and_the_story(run_folder, tmp_path):
    done = depyf("report", run_folder / "log", "-o", tmp_path / "again")
    assert done.returncode == 0, done.stderr
    files = contents(tmp_path / "again")
    assert "__compiled_fn_of_0_0.Forward_graph.0.py" in files
    assert "full_code_for_forward_0.py" in files
    assert "full_code_for_torch_dynamo_resume" not in "".join(files)
    assert str(run_folder / "program.py") in files["full_code_for_forward_0.py"]
    assert "2 recompiles" in files["index.md"] and "nothing is left to compile" not in files["index.md"]


def test_what_cannot_be_read_is_said(run_folder, tmp_path):
    (tmp_path / "empty").mkdir()
    for given, message in (((run_folder / "log",), "-o DIR"), ((tmp_path / "none",), "is not there"),
                           ((tmp_path / "empty", "-o", tmp_path / "out"), "neither records")):
        done = depyf("report", *given)
        assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
    with pytest.raises(RecordsError, match="is not there"):
        report(str(tmp_path / "none"))


def frame(name, line, file="/m.py"):
    return Frame(name, name, SourceLocation(file, line, name), None, False, (), (), ())


def test_a_resume_function_belongs_to_the_last_function_of_its_name_above():
    resume = "torch_dynamo_resume_in_f_at_{}"
    frames = [frame("f", 3), frame("f", 20), frame(resume.format(8), 8), frame(resume.format(25), 25),
              frame(resume.format(9), 9, "/other.py")]
    lines = [[member.location.line for member in function.frames] for function in _functions(frames)]
    assert lines == [[3, 8], [20, 25], [9]]


def test_a_cut_path_is_whole_again_where_one_file_fits():
    def full_path(shown, *known):
        return _Log._full_path(SimpleNamespace(reader=SimpleNamespace(strings=lambda: known)), shown)

    assert full_path("ork/m.py", "/work/m.py", "/other/m.py") == "/work/m.py"
    assert full_path("ork/m.py", "/work/m.py", "/a/fork/m.py") == "ork/m.py"
    assert full_path("m.py", "/work/m.py") == "m.py"


def test_a_rank_without_records_is_left_out(run_folder, tmp_path):
    whole = shutil.copytree(run_folder / "dump", tmp_path / "whole")
    both = tmp_path / "both"
    (both / "rank_1").mkdir(parents=True)
    (both / "rank_0").symlink_to(whole, target_is_directory=True)
    done = depyf("report", both)
    assert done.returncode == 0, done.stderr
    assert "left out" in done.stderr and "rank 1" in done.stderr
    assert "nothing was compiled yet" in (both / "index.md").read_text()
    (both / "rank_0").unlink()
    (both / "rank_0").mkdir()
    refused = depyf("report", both)
    assert refused.returncode == 2 and "records.jsonl" in refused.stderr


@pytest.mark.torch_since((2, 9), "code must be linked while it is made, so files are written then")
def test_a_run_watched_with_later_has_the_same_files_once_they_are_made(run_folder):
    dump = run_folder / "later"
    subprocess.run([*torch_python(), str(run_folder / "program.py"), dump, "later"], check=True, stdout=subprocess.DEVNULL)
    assert {path.name for path in dump.iterdir()} - {"notes.txt"} == {".depyf", "index.md", "records.jsonl"}
    assert "depyf report ." in (dump / "index.md").read_text()
    explained = depyf("explain", dump)
    assert explained.returncode == 0 and "Block.forward" in explained.stdout
    assert depyf("report", dump).returncode == 0
    made, usual = files_of(dump), files_of(run_folder / "dump")
    assert made.keys() == usual.keys()
    for name in made.keys() - {".depyf", "index.md", "index.html", "records.jsonl"}:  # (these hold times)
        assert made[name] == usual[name], name
    again = files_of(dump)
    assert depyf("report", dump).returncode == 0
    assert files_of(dump).keys() == again.keys()


def test_ranks_watched_with_later_that_did_the_same_are_made_once(run_folder, tmp_path):
    for rank in range(2):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"}
        subprocess.run([*torch_python(), str(run_folder / "program.py"), tmp_path / "ranks", "later"], check=True,
                       stdout=subprocess.DEVNULL, env=environment)
    assert depyf("report", tmp_path / "ranks").returncode == 0
    full = [bool(list((tmp_path / "ranks" / f"rank_{rank}").glob("full_code_for_*.py"))) for rank in range(2)]
    assert full == [True, False]
    assert "rank" in (tmp_path / "ranks" / "index.md").read_text()


@pytest.mark.torch_since((2, 9), "code must be linked while it is made, so files are written then")
def test_a_killed_run_watched_with_later_is_made_elsewhere(run_folder, tmp_path):
    program = tmp_path / "killed.py"
    killed = PROGRAM.replace("        run()\nelse", "        run()\n        import os; os._exit(0)\nelse")
    assert killed != PROGRAM
    program.write_text(killed)
    subprocess.run([*torch_python(), program, tmp_path / "dump", "later"], check=True, stdout=subprocess.DEVNULL)
    here = depyf("report", tmp_path / "dump")
    assert here.returncode == 0 and "-o DIR" in here.stderr
    assert "](__compiled_fn" not in (tmp_path / "dump" / "index.md").read_text()
    assert depyf("report", tmp_path / "dump", "-o", tmp_path / "made").returncode == 0
    assert list((tmp_path / "made").glob("full_code_for_*.py")) and list((tmp_path / "made").glob("*.Captured_Graph.0.py"))
