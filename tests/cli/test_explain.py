"""``depyf explain``, and Markdown of ours as text for a terminal."""

import io
import os
import subprocess
import sys

import pytest

import depyf
from depyf import cli, report
from depyf.cli.terminal import console_on
from depyf.records import store
from depyf.records.model import Capture, Compilation, CompileId, GraphBreak, GuardFailure, SourceFile, SourceLocation
from depyf.views.markdown import code, fenced, link, prose, table
from depyf.views.terminal import console_for, show

PLACE = SourceLocation("/home/me/model.py", 3, "f")
BREAK = GraphBreak(
    CompileId(0, 0), "Data-dependent branching", "Detected branching on the value of a tensor.",
    ("Use `torch.cond` instead.",), "", "GB0170", "https://example.org/GB0170",
    (SourceLocation("/home/me/model.py", 5, "f", "if x.sum() > 0:"),))


def dump(folder, *compilations, notes=(), **environment):
    folder.mkdir(parents=True, exist_ok=True)
    capture = Capture((), (), tuple(notes), {"torch": "2.13.0", "python": "3.11.7", **environment}, compilations,
                      (SourceFile("/home/me/model.py", ""),))
    (folder / store.FILE).write_text("".join(store.lines(capture)))
    return folder


def explained(capsys, *arguments):
    assert cli.main(["explain", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_a_run_in_which_all_went_well_is_told_shortly(tmp_path, capsys):
    dump(tmp_path, Compilation(CompileId(0, 0), "f", PLACE, outcome="compiled", seconds=1.5),
         notes=["torch's compile caches: entries made under depyf are separate from others"])
    text = explained(capsys, tmp_path)
    assert "1.50 s. (torch 2.13.0, Python 3.11.7)" in text
    assert "No graph breaks, no recompiles." in text
    assert "caches" not in text and len(text.splitlines()) < 8


def test_breaks_and_recompiles_are_told_with_reason_and_advice(tmp_path, capsys):
    dump(tmp_path,
         Compilation(CompileId(0, 0), "f", PLACE, outcome="compiled", breaks=(BREAK,)),
         Compilation(CompileId(0, 1), "f", PLACE, outcome="compiled", guard_failures=(
             GuardFailure(CompileId(0, 0), "len(L['x']) == 2", "L['x']", "2", "3", subject="len(L['x'])"),)),
         notes=["internal error: ValueError: no"])
    text = explained(capsys, tmp_path / "records.jsonl")
    for line in ("1 graph break at 1 line, 1 recompile.", "  Data-dependent branching (GB0170)",
                 "  - model.py:5 in f: if x.sum() > 0", "  - Use torch.cond instead.",
                 "  - [0/1] len(x): 2 → 3", "    - torch says: len(L['x']) == 2 (of [0/0])",
                 "  - internal error: ValueError: no"):
        assert line in text.splitlines()


def test_ranks(tmp_path, capsys):
    for rank, breaks in ((0, ()), (1, (BREAK,))):
        dump(tmp_path / f"rank_{rank}",
             Compilation(CompileId(0, 0), "f", PLACE, outcome="compiled", breaks=breaks),
             rank=str(rank), world_size="2")
    text = explained(capsys, tmp_path)
    assert "on 2 ranks" in text and "from rank 0 to rank 1" in text
    assert "Use torch.cond instead." in explained(capsys, tmp_path, "--rank", 1)
    assert "No graph breaks, no recompiles." in explained(capsys, tmp_path, "--rank", 0)
    assert cli.main(["explain", str(tmp_path), "--rank", "7"]) == 2
    assert "has no rank 7" in capsys.readouterr().err


def two_compilations(folder):
    return dump(
        folder, Compilation(CompileId(0, 0), "f", PLACE, outcome="compiled", breaks=(BREAK,)),
        Compilation(CompileId(1, 0), "g", PLACE, outcome="compiled"),
        notes=["torch's compile caches: entries made under depyf are separate from others", "a note"])


def test_the_written_index_tells_the_same_as_the_records(tmp_path, capsys):
    folder = two_compilations(tmp_path / "run")
    from_records = explained(capsys, folder)
    report.report(str(folder))
    from_index = explained(capsys, folder)
    assert from_index.partition("\nRead on")[0] == from_records
    written = (folder / "index.md").read_text()
    for text in ("## In order", "## Words", "Start with", "To read it in a browser", "torch's compile caches"):
        assert text.removeprefix("## ") not in from_index and (text in written or text == "Start with")
    assert "Graph breaks" in from_index and "a note" in from_index


@pytest.mark.parametrize("why", ["other records", "another depyf", "no index"])
def test_an_index_that_may_not_tell_all_is_made_again(tmp_path, capsys, why):
    folder = two_compilations(tmp_path / "run")
    report.report(str(folder))
    index = folder / "index.md"
    index.write_text(index.read_text().replace("a note", "a note that was changed"))
    assert "that was changed" in explained(capsys, folder)
    assert "that was changed" in explained(capsys, folder / store.FILE)
    if why == "other records":
        records = folder / store.FILE
        records.write_text(records.read_text().replace("separate from others", "separate from all others"))
    elif why == "another depyf":
        index.write_text(index.read_text().replace(f"<!-- depyf {depyf.__version__} ", "<!-- depyf 0.9 "))
    else:
        index.unlink()
    text = explained(capsys, folder)
    assert "a note" in text and "that was changed" not in text


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of Unix")
def test_a_closed_pipe_is_silent(tmp_path):
    for rank in range(2):
        dump(tmp_path / f"rank_{rank}", *(Compilation(CompileId(number, 0), f"f{number}", PLACE, outcome="compiled")
                                          for number in range(2000 * rank)), rank=str(rank), world_size="2")
    done = subprocess.run(f"{sys.executable} -u -m depyf explain . | head -n 1", shell=True, cwd=tmp_path, text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert (done.stdout, done.stderr) == ("What torch.compile did on 2 ranks\n", "")


def test_a_misspelled_command_or_option_is_named(capsys):
    for words, named in ((["explian", "x"], "there is no command explian; did you mean explain?"),
                         (["explain", "--nope"], "depyf explain: error: unrecognized arguments: --nope"),
                         (["diff"], "the following arguments are required: DIR_A, DIR_B")):
        with pytest.raises(SystemExit, match="2"):
            cli.main(words)
        assert named in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "no records\n", '{"record":"schema","version":99}\n'])
def test_what_cannot_be_read_is_said(tmp_path, capsys, text):
    (tmp_path / store.FILE).write_text(text)
    assert cli.main(["explain", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert not captured.out and captured.err.startswith("depyf: ") and store.FILE in captured.err
    assert cli.main(["explain", str(tmp_path / "nosuch")]) == 2


def test_torch_is_not_imported(tmp_path):
    dump(tmp_path, Compilation(CompileId(0, 0), "f", PLACE, outcome="compiled"))
    program = "import sys; sys.modules['torch'] = None; from depyf.cli import main; sys.exit(main(['explain', '.']))"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0 and "What torch.compile did" in done.stdout, done.stderr


# --- Markdown as text -------------------------------------------------------------------------------
HOSTILE = ["a|b", "`", "``x``", "**no**", "[a](b)", "\\", "a_b_c", "torch._dynamo", "_", "*", "<b>&amp;", "1. x", "# x", "x[0](1)", "~~", "$",
           "\x1b[31mred", "\ue001", "a  b", "`a` and `b`", "\\["]


def rendered(markdown, width=1000, colours=False):
    stream = io.StringIO()
    show(markdown, console_for(stream, colours, width))
    return stream.getvalue()


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_others_comes_out_as_it_went_in(text):
    """Control characters come out escaped, runs of spaces as one."""
    shown = " ".join(text.split()).replace("\x1b", "\\x1b").replace("\ue001", "\\ue001")
    assert rendered(code(text)) == f"{shown}\n"
    assert rendered(f"* {code(text)}: x") == f"  - {shown}: x\n"
    assert rendered(f"{link(code(text), 'a b.py')}") == f"{shown}\n"
    assert rendered("\n".join(table(("a", "b"), [(code(text), "x")]))).split("\n")[1].split() == [
        *shown.split(), "x"]
    assert rendered(f"### {code(text)}") == f"  {shown}\n"
    assert "\x1b" not in rendered("\n".join(fenced(text)))
    if "`" not in text:  # (prose keeps code spans)
        assert rendered(f"x {prose(text)}") == f"x {shown}\n"


@pytest.mark.parametrize("width", [20, 40, 80])
def test_lines_fit_and_colours_end_with_them(width):
    text = "* **" + "word " * 20 + "** and " + code("a_name " * 20) + " " + link("a link", "there.md")
    for line in rendered(text, width, True).splitlines():
        for sequence in ("\x1b[1m", "\x1b[36m", "\x1b[0m"):
            line = line.replace(sequence, "\0" if sequence != "\x1b[0m" else "\1")
        assert line.count("\0") == line.count("\1") and line.rfind("\0") < line.rfind("\1") or "\0" not in line
        assert len(line.translate({0: None, 1: None})) <= width + 4
    assert "\x1b" not in rendered(text, width)


class Stream:
    def __init__(self, terminal):
        self.isatty = lambda: terminal


@pytest.mark.parametrize(("terminal", "environment", "wish", "colours"), [
    (True, {}, "auto", True), (False, {}, "auto", False), (True, {"NO_COLOR": "1"}, "auto", False),
    (True, {"NO_COLOR": ""}, "auto", True), (True, {"TERM": "dumb"}, "auto", False),
    (False, {"NO_COLOR": "1"}, "always", True), (True, {}, "never", False)])
def test_colours_are_for_terminals(monkeypatch, terminal, environment, wish, colours):
    for name, value in {"TERM": "xterm", "NO_COLOR": "", **environment}.items():
        monkeypatch.setenv(name, value)
    assert (console_on(Stream(terminal), wish).color_system is not None) == colours


@pytest.mark.parametrize("arguments", [["explain", "."], ["diff", ".", "."]])
def test_without_rich_the_command_says_what_to_install(tmp_path, arguments):
    dump(tmp_path, Compilation(CompileId(0, 0), "f", PLACE, outcome="compiled"))
    program = ("import sys; sys.modules.update({'rich': None, 'markdown_it': None}); from depyf.cli import main; "
               f"sys.exit(main({arguments!r}))")
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 2 and not done.stdout
    assert done.stderr == (f"depyf: `depyf {arguments[0]}` lays its text out with Rich, which is not installed: "
                           "pip install rich\n")
