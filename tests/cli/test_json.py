"""``--json`` of explain, diff and check: what is written fits the schema, which names all that is written."""

import dataclasses
import json
import pathlib
import re

import pytest
from compiled_runs import dump, ranks, run

from depyf import __version__, cli
from depyf.records.model import Capture, Guard
from depyf.views.as_json import SCHEMA, VERSION

jsonschema = pytest.importorskip("jsonschema")

ROOT = pathlib.Path(__file__).resolve().parents[2]


def schema():
    return json.loads(pathlib.Path(SCHEMA).read_text())


def strict(node):
    """The schema, with no field but those that it names. (Others may come in later versions.)"""
    if isinstance(node, dict):
        node = {key: strict(value) for key, value in node.items()}
        if node.get("type") == "object":
            node.setdefault("additionalProperties", False)
        return node
    return [strict(each) for each in node] if isinstance(node, list) else node


def written(capsys, *arguments, status=0):
    assert cli.main([*arguments, "--json"]) == status
    captured = capsys.readouterr()
    assert not captured.err and captured.out.isascii()
    document = json.loads(captured.out)
    jsonschema.Draft202012Validator(strict(schema())).validate(document)
    assert (document["depyf"], document["command"], document["version"]) == (__version__, arguments[0], VERSION)
    return document


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"command": "explain"}, schema())


def test_explain(tmp_path, capsys):
    found = written(capsys, "explain", dump(tmp_path, run(notes=("a note",))))["runs"][0]
    assert found["totals"] == {"functions": 1, "versions": 4, "graphs": 4, "breaks": 3, "recompiles": 2, "skipped": 1,
                               "seconds": 3.25}
    assert [(each["name"], each["place"]["line"], each["versions"]) for each in found["functions"]] == [
        ("Net.forward", 4, 4), ("scale", 10, 0)]
    assert "advice: `torch.where`, which a graph can hold" in found["breaks"][0].pop("advice")[0]
    assert found["breaks"][0] == {
        "function": "Net.forward", "frame": "Net.forward", "compile_id": "[0/0]",
        "place": {"file": "/home/me/model.py", "line": 5, "function": "forward", "text": "if x.sum() > 0:"},
        "cause": "which branch is taken depends on values in a tensor, and a graph has none while it is captured",
        "reason": "Data-dependent branching", "registry_id": "GB0170", "url": "https://example.org/GB0170",
        "explanation": "Detected branching on the value of a tensor.", "hints": ["Use `torch.cond` instead."],
        "skips_function": False}
    assert [each["changes"] for each in found["recompiles"]] == [
        [{"subject": "x.shape[0]", "was": ["4"], "now": "5"}], [{"subject": "x.shape[0]", "was": ["5"], "now": "6"}]]
    assert [(each["frame"], each["outcome"], each["lost"]) for each in found["not_compiled"]] == [
        ("Net.forward from line 7 on", "skipped", False), ("scale", "skipped", True)]
    assert found["ended"] and found["rank"] is None and found["notes"] == ["a note"] and found["phases"]


def test_explain_of_ranks(tmp_path, capsys):
    path = ranks(tmp_path, run(), Capture(), run(0, 1, False))
    assert [each["rank"] for each in written(capsys, "explain", path)["runs"]] == [0, 1, 2]
    assert [each["rank"] for each in written(capsys, "explain", path, "--rank", "2")["runs"]] == [2]


def test_diff(tmp_path, capsys):
    before, after = dump(tmp_path / "a", run()), dump(tmp_path / "b", run(1, 2, False))
    found = written(capsys, "diff", before, after, status=1)
    assert found["different"] and (found["before"], found["after"]) == (before, after)
    assert {each["what"]: (each["before"], each["after"]) for each in found["runs"][0]["numbers"]} == {
        "graph breaks": (3, 1), "recompiles": (2, 1), "skipped": (1, 0), "versions": (4, 3), "graphs": (4, 3)}
    functions = {each["name"]: each for each in found["runs"][0]["functions"]}
    assert {name: each["state"] for name, each in functions.items()} == {"Net.forward": "changed", "scale": "gone"}
    assert functions["Net.forward"]["changes"][0] == {
        "text": "graph break (twice, now once): `model.py:5` `if x.sum() > 0:` (Data-dependent branching)", "details": []}
    assert functions["scale"]["place"]["line"] == 10 and functions["scale"]["numbers"][0]["after"] == 0
    assert not written(capsys, "diff", before, before)["different"]


def test_diff_of_guards_has_what_came_and_went_as_it_is(tmp_path, capsys):
    def guarded(expression):
        capture = run(0, 1, False)
        function = capture.functions[0]
        frame = function.frames[0]
        entry = dataclasses.replace(frame.entries[0], guards=(Guard(expression, "", "", ""),))
        frame = dataclasses.replace(frame, entries=(entry,))
        return dataclasses.replace(capture, functions=(dataclasses.replace(
            function, frames=(frame, *function.frames[1:])),))

    paths = [dump(tmp_path / name, guarded(text)) for name, text in (("a", "`x` * 2"), ("b", "**y**"))]
    changes = written(capsys, "diff", *paths, status=1)["runs"][0]["functions"][0]["changes"]
    assert changes[0]["details"] == ["- `x` * 2", "+ **y**"] and changes[0]["text"] == "guards: 1 gone and 1 new"


def test_diff_of_ranks(tmp_path, capsys):
    before, after = ranks(tmp_path / "a", run(), run()), ranks(tmp_path / "b", run(), run(0), run())
    found = written(capsys, "diff", before, after, status=1)
    assert (found["only_before"], found["only_after"]) == ([], [2])
    assert [(each["rank"], each["different"]) for each in found["runs"]] == [(0, False), (1, True)]


def test_check(tmp_path, capsys):
    path = ranks(tmp_path, run(), run(0, 1, False))
    found = written(capsys, "check", path, "--max-breaks=0", "--max-breaks=*:9", "--max-compile-seconds=9", status=1)
    assert not found["within"] and [each["within"] for each in found["budgets"]] == [False, True, True]
    first, second, third = found["budgets"]
    assert (first["kind"], first["limit"], first["function"]) == ("breaks", 0, None)
    assert [(each["rank"], each["amount"], each["within"]) for each in first["results"]] == [(0, 3, False), (1, 0, True)]
    assert [each["place"]["line"] for each in first["results"][0]["findings"]] == [5, 5, 12]
    assert [(each["rank"], each["function"]) for each in second["results"]] == [
        (0, "Net.forward"), (0, "scale"), (1, "Net.forward")]
    assert third["results"][0]["amount"] == 3.25
    assert found["sentences"][0] == "rank 0: 3 graph breaks, beyond the budget of 0:"
    assert written(capsys, "check", path, "--max-breaks=9")["within"]


@pytest.mark.parametrize("arguments", [["explain", "nosuch"], ["diff", "nosuch", "nosuch"],
                                       ["check", "nosuch", "--max-breaks=0"]])
def test_what_cannot_be_read_leaves_standard_output_empty(tmp_path, monkeypatch, capsys, arguments):
    monkeypatch.chdir(tmp_path)
    assert cli.main([*arguments, "--json"]) == 2
    captured = capsys.readouterr()
    assert not captured.out and captured.err.startswith("depyf: 'nosuch' is not there")


def test_the_document_names_all_fields():
    text = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", text))

    def fields(node):
        if isinstance(node, dict):
            yield from node.get("properties", ())
        for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            yield from fields(each)

    assert set(fields(schema())) - named == set()
