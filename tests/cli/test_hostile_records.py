"""Records that somebody sent: nothing in any field reaches a terminal as it is, or names a file elsewhere."""

import dataclasses
import json
import os
import shutil
import sys

import markdown_it  # (Rich brings it)
import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "records"))

from sample_records import WHOLE  # noqa: E402

from depyf.cli import main
from depyf.harmless import harmless, is_plain_name
from depyf.records import store
from depyf.report import report

#: A window's title, red, up one line, right to left, an end of line, another one, a way out of the folder.
EVIL = "\x1b]0;title\x07\x1b[31m\x9b1A\u202e\r\u2028../../evil"
OBEYED = {*map(chr, range(9)), *map(chr, range(11, 32)), *map(chr, range(0x7F, 0xA0)), "\u202e", "\u2028"}


def fields(record, path=()):
    """Yield the way to every text in a record."""
    if isinstance(record, str):
        yield path
    elif dataclasses.is_dataclass(record):
        for field in dataclasses.fields(record):
            yield from fields(getattr(record, field.name), (*path, field.name))
    elif isinstance(record, tuple):
        for number, item in enumerate(record):
            yield from fields(item, (*path, number))
    elif isinstance(record, dict):
        for key, item in record.items():
            yield from fields(item, (*path, key))


def with_text(record, path, text):
    """Return the record with another text at the end of the way."""
    if not path:
        return text
    first, rest = path[0], path[1:]
    if dataclasses.is_dataclass(record):
        return dataclasses.replace(record, **{first: with_text(getattr(record, first), rest, text)})
    if isinstance(record, dict):
        return {**record, first: with_text(record[first], rest, text)}
    return (*record[:first], with_text(record[first], rest, text), *record[first + 1 :])


PATHS = {".".join(str(part) for part in path if not isinstance(part, int)): path for path in fields(WHOLE)}


def written(folder, capture):
    folder.mkdir(parents=True)
    (folder / store.FILE).write_text("".join(store.lines(capture)), encoding="utf-8")
    return str(folder)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return written(tmp_path_factory.mktemp("plain") / "dump", WHOLE)


def test_every_text_of_the_schema_is_tried():
    assert len(PATHS) > 80


@pytest.mark.parametrize("name", PATHS)
def test_no_field_reaches_a_terminal(name, plain, tmp_path, capsys):
    dump = written(tmp_path / "dump", with_text(WHOLE, PATHS[name], EVIL))
    for command in (
            ["explain", dump], ["explain", dump, "--json"], ["diff", plain, dump], ["diff", dump, plain, "--json"],
            ["check", dump, "--max-breaks", "0", "--max-recompiles", "0", "--no-skipped"], ["fits", dump, "f"],
            ["repro", dump, "0/1"], ["report", dump, "-o", str(tmp_path / "out")]):
        main(command)
        said = "".join(capsys.readouterr())
        assert not OBEYED & set(said), (command, name)
    assert not [each for each in os.listdir(tmp_path.parent) if "evil" in each]
    made = {os.path.join(folder, each) for folder, _, files in os.walk(tmp_path) for each in files}
    assert all(each.startswith((str(tmp_path / "out"), dump)) and not OBEYED & set(each) for each in made), made
    for each in made:
        if each.endswith((".md", ".txt")):
            with open(each, encoding="utf-8", newline="") as file:
                assert not OBEYED & set(file.read()), (each, name)


@pytest.mark.parametrize("text", ["check_global_state( ] \x1b[1m)", "\ud800", "check_global_state(\ud800)", "(" * 5000])
@pytest.mark.parametrize("name", PATHS)
def test_no_text_ends_in_a_traceback(name, text, tmp_path, capsys):
    """An error of ours is a last resort of the command line; no text of the schema comes to it."""
    dump = written(tmp_path / "dump", with_text(WHOLE, PATHS[name], text))
    for command in (["explain", dump], ["report", dump, "-o", str(tmp_path / "out")]):
        main(command)
        assert "internal error" not in capsys.readouterr().err, (command, name)


IMAGE = "<img src=x onerror=alert(1)>"


@pytest.mark.parametrize("outcome", ["failed", "compiled", "skipped"])
@pytest.mark.parametrize("name", PATHS)
def test_no_field_is_read_as_markup(name, outcome, tmp_path):
    """Markdown is read as CommonMark reads it, where HTML passes through; a page escapes what it holds."""
    markdown = markdown_it.MarkdownIt("commonmark").enable("table")
    capture = with_text(WHOLE, ("compilations", 0, "outcome"), outcome)
    dump = tmp_path / "dump"
    for text in (IMAGE, f"a`{IMAGE}", f"|\n\n{IMAGE}](javascript:alert(1))"):
        hostile = with_text(capture, PATHS[name], text)
        for rank, each in enumerate((hostile, capture)):
            shutil.rmtree(dump / f"rank_{rank}", ignore_errors=True)
            written(dump / f"rank_{rank}", each)
        report(str(dump))
        report(str(dump / "rank_0"))
        indexes = list(dump.rglob("*.md"))
        assert len(indexes) == 2
        for path in indexes:
            html = markdown.render(path.read_text(encoding="utf-8", errors="replace"))
            assert "<img" not in html and 'href="javascript' not in html, (path, html[html.find("<img") - 200:][:300])
        for path in dump.rglob("*.html"):
            assert "<img src=x" not in path.read_text(encoding="utf-8", errors="replace")


def test_a_folder_with_such_a_name(tmp_path, capsys):
    dump = written(tmp_path / "\x1b[31mred\u202e", WHOLE)
    for command in (["explain", dump], ["diff", dump, dump], ["check", dump], ["fits", dump, "g"], ["report", dump],
                    ["decompile", dump], ["explain", dump + "\x1b[0m"], ["run", "--\x1b[31m"]):
        try:
            main(command)
        except SystemExit:
            pass  # (argparse)
        assert not OBEYED & set("".join(capsys.readouterr())), command


def test_records_name_no_file_elsewhere(tmp_path):
    for number, name in enumerate(("../evil.py", "/tmp/evil.py", "a/b.py", "..", "c:evil.py", "a\\b.py")):
        assert not is_plain_name(name)
        capture = with_text(WHOLE, ("graphs", 0, "stages", 0, "file"), name)
        report(written(tmp_path / f"dump{number}", capture), str(tmp_path / f"out{number}"))
    assert not [each for _, _, files in os.walk(tmp_path) for each in files if "evil" in each]


def test_what_is_harmless_stays():
    text = "f(x): é, 中文, tabs\tand\nlines, 🙂"
    assert harmless(text) == text and is_plain_name("full_code_for_f_0.py")
    assert harmless("\x1b[31m\u202e") == "\\x1b[31m\\u202e"


@pytest.mark.parametrize(("line", "said"), [
    ('{"record": "schema", "version": SCHEMA, "environment": [[]]}', "environment cannot be read"),
    ('{"record": "schema", "version": SCHEMA, "environment": {"torch": 1}}', "environment cannot be read"),
    ('{"record": []}', r"schema|is of schema"),
    ('{"record": "schema", "version": SCHEMA}\n{"record": "function", "name": "f", "frames": {"a": 1}}',
     "a list expected"),
    ('{"record": "schema", "version": SCHEMA}\n{"record": "function", "name": "f", "frames": []}', "no frames"),
], ids=["a list", "a number", "no name", "a dictionary", "no frames"])
def test_lines_that_are_no_records(line, said, tmp_path):
    """Found by ``scripts/fuzz_inputs.py``."""
    (tmp_path / store.FILE).write_text(line.replace("SCHEMA", str(store.SCHEMA)) + "\n")
    with pytest.raises(store.RecordsError, match=said):
        store.read(str(tmp_path))


@pytest.mark.parametrize("event", [
    {"compilation_metrics": {"co_filename": "a.py", "co_firstlineno": "s0"}, "frame_id": 0},
    {"compilation_metrics": {"co_filename": "a.py", "co_firstlineno": [3]}, "frame_id": 0},
    {"dynamo_start": {"stack": [{"filename": 0, "line": "x"}]}, "frame_id": 0, "frame_compile_id": "x"},
    {"compilation_metrics": {"co_name": ["f"]}, "frame_id": 0},
    {"str": [["a"], 0]},
], ids=["a word", "a list", "a stack", "a name", "a string"])
def test_an_event_that_torch_does_not_write(event, tmp_path):
    """Found by ``scripts/fuzz_inputs.py``: it is left out and said, or the log is refused; nothing else is raised."""
    log = tmp_path / "dedicated_log_torch_trace_a.log"
    log.write_text(f"V1123 20:33:27.120000 28 torch/a.py:1] {json.dumps(event)}\n"
                   'V1123 20:33:27.120000 28 torch/a.py:1] {"dynamo_cpp_guards_str": {}, "frame_id": 0, '
                   '"has_payload": "a"}\n\tTREE_GUARD_MANAGER:\n\t+- GUARD: x  # a.py:3 in f\n')
    try:
        report(str(log), str(tmp_path / "out"))
    except store.RecordsError as error:
        assert "torch does not write" in str(error)
