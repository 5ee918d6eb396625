"""Files of somebody else that are no files, or too large: every command ends soon, with one line that names the file."""

import ast
import dataclasses
import importlib.util
import linecache
import os
import re
import signal
import socket
import struct
import sys
from pathlib import Path

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "records"))

from sample_records import WHOLE  # noqa: E402

from depyf import budgets, reading  # noqa: E402
from depyf.cli import main  # noqa: E402
from depyf.records import run_directory, store  # noqa: E402
from depyf.records.model import Compilation, CompileId, SourceFile  # noqa: E402
from depyf.report import report  # noqa: E402

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes, devices and sparse files of Unix")
SOURCE = str(Path(__file__).resolve().parent.parent.parent / "src")
HEADER = importlib.util.MAGIC_NUMBER + bytes(12)
LOG = "dedicated_log_torch_trace_a.log"


# --- what lies there instead of a file ---------------------------------------------------------------
def a_pipe(path):
    os.mkfifo(path)


def a_device(path):
    path.symlink_to("/dev/zero")


def a_folder(path):
    path.mkdir()


def a_socket(path):
    here = os.getcwd()
    os.chdir(path.parent)  # (its name may have 100 characters)
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


def a_sparse_file(path, size=8 << 30):
    with open(path, "wb") as file:
        file.truncate(size)


def one_long_line(path):
    a_sparse_file(path, 1_900_000_000)


def nested_lists(path):
    path.write_text("[" * 200_000)


def nested_in_a_note(path):
    path.write_text(run_directory.first_line({}) + '{"record":"note","text":' + '{"a":' * 200_000 + "\n")


def random_bytes(path):
    path.write_bytes(bytes(range(255, 0, -1)) * 1000)


NO_FILES = {
    a_pipe: "it is a named pipe", a_device: "it is a device", a_folder: "it is a folder",
    a_socket: "No such device or address", a_sparse_file: r"8,589,934,592.*DEPYF_BUDGET=\d",
}
NO_RECORDS = {**NO_FILES, one_long_line: "bytes in one line.*DEPYF_BUDGET=2", nested_lists: "nested too deeply",
              nested_in_a_note: ":2 is not a record.*nested too deeply", random_bytes: ":1 is not a record"}
COMMANDS = {
    "explain": ["explain", "DUMP"], "explain --json": ["explain", "DUMP", "--json"], "diff": ["diff", "DUMP", "GOOD"],
    "diff, second": ["diff", "GOOD", "DUMP"], "check": ["check", "DUMP", "--max-breaks", "0"],
    "fits": ["fits", "DUMP", "f"], "repro": ["repro", "DUMP", "0/1", "-o", "-"], "report": ["report", "DUMP"],
    "report -o": ["report", "DUMP", "-o", "OUT"], "report --sources": ["report", "DUMP", "--sources", "-o", "OUT"],
    "open": ["open", "DUMP", "--print"]}


def ended(arguments, capfd, folder):
    """Run a command in this process, and return its exit status with what it said."""
    status = main([{"DUMP": str(folder / "dump"), "GOOD": str(folder / "good"), "OUT": str(folder / "out")}.get(
        each, each) for each in arguments])
    said = capfd.readouterr()
    return status, said.out, said.err


@pytest.fixture
def folder(tmp_path):
    for name in ("dump", "good"):
        (tmp_path / name).mkdir()
    (tmp_path / "good" / store.FILE).write_text("".join(store.lines(WHOLE)))
    return tmp_path


@pytest.mark.parametrize("kind", NO_RECORDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("command", COMMANDS)
def test_records(command, kind, folder, capfd):
    kind(folder / "dump" / store.FILE)
    status, out, err = ended(COMMANDS[command], capfd, folder)
    assert (status, out) == (2, "") and len(err.splitlines()) == 1 and store.FILE in err
    assert re.search(NO_RECORDS[kind], err), err


@pytest.mark.parametrize("kind", [*NO_FILES, one_long_line], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("command", ["explain", "diff", "check", "fits", "repro", "report -o"])
def test_logs(command, kind, folder, capfd):
    kind(folder / "dump" / LOG)
    status, out, err = ended(COMMANDS[command], capfd, folder)
    assert (status, out) == (2, "") and len(err.splitlines()) == 1 and LOG in err


def test_records_given_by_their_own_name(folder, capfd):
    a_pipe(folder / "dump" / store.FILE)
    assert main(["explain", str(folder / "dump" / store.FILE)]) == 2
    assert "it is a named pipe" in capfd.readouterr().err


@pytest.mark.parametrize("command", ["explain", "explain --json", "diff", "check", "report", "report -o", "open"])
def test_ranks_of_which_some_are_no_files(command, folder, capfd):
    for rank, kind in enumerate((a_pipe, a_device, a_sparse_file)):
        (folder / "dump" / f"rank_{rank}").mkdir()
        kind(folder / "dump" / f"rank_{rank}" / store.FILE)
    status, out, err = ended(COMMANDS[command], capfd, folder)
    assert (status, out) == (2, "") and "rank_0" in err
    (folder / "dump" / "rank_3").mkdir()
    (folder / "dump" / "rank_3" / store.FILE).write_text("".join(store.lines(WHOLE)))
    status, _, err = ended(COMMANDS[command], capfd, folder)
    assert status in (0, 1) and all(text in err for text in ("a named pipe", "a device", "8,589,934,592"))


@pytest.mark.parametrize("content", ["no records\n", "", "[" * 200_000, None])
def test_an_index_beside_other_records_is_not_shown(content, folder, capfd):
    report(str(folder / "good"))
    index = (folder / "good" / "index.md").read_bytes()
    (folder / "dump" / "index.md").write_bytes(index)
    records = folder / "dump" / store.FILE
    a_pipe(records) if content is None else records.write_text(content)
    status, out, err = ended(COMMANDS["explain"], capfd, folder)
    assert (status, out) == (2, "") and store.FILE in err


def test_an_index_that_is_a_pipe(folder, capfd):
    a_pipe(folder / "good" / "index.md")
    assert main(["explain", str(folder / "good")]) == 0 and "C.f" in capfd.readouterr().out


def test_sources_that_records_name(folder, capfd):
    """``--sources`` opens what records name: a pipe among it must not be waited for."""
    a_pipe(folder / "b.py")
    text = "".join(store.lines(WHOLE)).replace("/a/b.py", str(folder / "b.py"))
    lines = [line for line in text.splitlines(True) if '"record":"source"' not in line]
    (folder / "dump" / store.FILE).write_text("".join(lines))
    assert ended(COMMANDS["report --sources"], capfd, folder)[0] == 0


# --- code --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("suffix", [".pyc", ".py"])
@pytest.mark.parametrize("kind", [a_pipe, a_device, a_sparse_file, a_socket], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("in_folder", [False, True], ids=["alone", "in a folder"])
def test_code(suffix, kind, in_folder, folder, capfd):
    kind(folder / "dump" / f"bad{suffix}")
    (folder / "dump" / "good.py").write_text("x = 1\n")
    (folder / "dump" / f"a folder{suffix}").mkdir()
    given = folder / "dump" if in_folder else folder / "dump" / f"bad{suffix}"
    assert main(["decompile", str(given), "-j", "1", "-q"]) == 2
    said = capfd.readouterr()
    assert len(said.err.splitlines()) == 1 and f"bad{suffix}" in said.err and NO_FILES[kind].partition(".*")[0] in said.err
    assert ("x = 1" in said.out) == in_folder


def test_the_output_is_a_pipe(folder, capfd):
    (folder / "a.py").write_text("x = 1\n")
    a_pipe(folder / "out.py")
    assert main(["decompile", str(folder / "a.py"), "-o", str(folder / "out.py")]) == 2
    assert "exists and was not written by depyf" in capfd.readouterr().err


def test_a_million_objects_in_a_pyc(folder, capfd):
    (folder / "a.pyc").write_bytes(HEADER + b"(" + struct.pack("<i", 1_100_000) + b"N" * 1_100_000)
    assert main(["decompile", str(folder / "a.pyc")]) == 2
    assert "objects in the file: 1,000,001, which is more than the budget" in capfd.readouterr().err


# --- what costs more than its size --------------------------------------------------------------------
def test_repeated_records_count_once(folder):
    first, *rest, end = store.lines(WHOLE)
    (folder / "dump" / store.FILE).write_text("".join([first, *(line * 3000 for line in rest), end]))
    assert store.read(str(folder / "dump")) == store.read(str(folder / "good")) == WHOLE


def test_a_name_of_3_megabytes_is_cut(folder):
    capture = store.checked(Compilation(CompileId(0, 0), "f" * 3_000_000))
    assert len(capture.function) < 101_000 and capture.function.endswith(
        "(cut: characters: 3,000,000, which is more than the budget of 100,000 (DEPYF_BUDGET=30 in the environment "
        "takes it on))")


def test_text_of_code_is_not_cut(folder):
    text = "x = 1\n" * 100_000
    (folder / "dump" / store.FILE).write_text(run_directory.first_line({}) + store.line(
        SourceFile("a.py", text)))
    assert store.read(str(folder / "dump")).sources[0].text == text


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999", "1" + "0" * 400, '"1"'])
def test_numbers_that_are_none(value, folder, capfd):
    text = "".join(store.lines(WHOLE)).replace('"seconds":3.0', f'"seconds":{value}')
    (folder / "dump" / store.FILE).write_text(text)
    status, out, err = ended(COMMANDS["explain --json"], capfd, folder)
    assert (status, out) == (2, "") and "this compilation cannot be read (float expected" in err


def test_a_command_that_takes_too_long_is_stopped(folder, capfd, monkeypatch):
    def forever(*_):
        while True:
            pass

    monkeypatch.setattr(budgets, "seconds_for", lambda size: budgets.Budget(f"seconds for {size} bytes", 1))
    monkeypatch.setattr(store, "_read", forever)
    (folder / "dump" / store.FILE).write_text("".join(store.lines(WHOLE)))
    size = os.path.getsize(folder / "dump" / store.FILE)
    monkeypatch.setattr(reading, "_opened", {})
    status, out, err = ended(COMMANDS["explain"], capfd, folder)
    assert (status, out) == (2, "")
    # the system's part and other threads count too, so that it may be more than the two seconds of the timer
    stopped = re.search(rf"stopped: seconds for {size} bytes: (\d+), which is more than the budget of 1 "
                        r"\(DEPYF_BUDGET=\1 in the environment takes it on\)", err)
    assert stopped and int(stopped[1]) >= 2, err
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0) and signal.getsignal(signal.SIGVTALRM) == signal.SIG_DFL


def test_text_that_no_python_can_parse(folder, capfd):
    stage = dataclasses.replace(WHOLE.graphs[0].stages[0], text="-" * 100_000 + "1")
    capture = dataclasses.replace(WHOLE, graphs=(dataclasses.replace(WHOLE.graphs[0], stages=(stage,)),))
    (folder / "dump" / store.FILE).write_text("".join(store.lines(capture)))
    status, out, err = ended(COMMANDS["repro"], capfd, folder)
    assert (status, out) == (2, "") and "nested too deeply or too large" in err


# --- the function itself -----------------------------------------------------------------------------
def test_a_file_of_a_file_system_that_tells_no_size():
    with pytest.raises(reading.CannotRead, match="more than the budget of 10 "):
        reading.contents("/proc/self/status", budgets.Budget("bytes", 10))


def test_lines_end_with_a_line_feed(tmp_path):
    (tmp_path / "a").write_bytes(b"a\r\nb\rc\n\nd")
    assert list(reading.lines(tmp_path / "a", budgets.RUN)) == [b"a\n", b"b\rc\n", b"\n", b"d"]


def test_source_lines_are_those_of_linecache(tmp_path):
    path = str(tmp_path / "a.py")
    for text in (b"x = 1\r\ny = 2", b"\xef\xbb\xbfx = 1\n", b"# coding: latin-1\n\xe9 = 1\n", b"", b"\xff", b"a\x0cb\n"):
        Path(path).write_bytes(text)
        linecache.cache.clear()
        found = reading.source_lines(path)
        linecache.cache.clear()
        # (of an empty file Python 3.13 shows one empty line)
        assert found == (linecache.getlines(path) if text else []), text


def test_what_is_read_of_others_goes_through_one_function():
    """What is left opens files of the package, of the process itself, or of a child that it started."""
    left = {"fixing/trial.py"}
    found = set()
    for path in Path(SOURCE, "depyf").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                mode = node.args[1].value if len(node.args) > 1 and isinstance(node.args[1], ast.Constant) else "r"
                opens = isinstance(node.func, ast.Name) and name == "open" and isinstance(mode, str) and not set(mode) & set("wax")
                if opens or name in ("read_text", "read_bytes") or ast.unparse(node.func) == "tokenize.open":
                    found.add(path.relative_to(Path(SOURCE, "depyf")).as_posix())
    assert found - {"reading.py"} == left
