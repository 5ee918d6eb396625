"""Ranks that did the same are read and shown once; one that differs is named with what differs."""

import dataclasses
import json

import pytest
from test_index import compilation, stack
from test_ranks import of_rank

from depyf import page, report
from depyf.records import store
from depyf.records.model import CompileId, GraphBreak, SourceFile
from depyf.torch_text.run_ids import AlikeFiles
from depyf.views import ranks


def folder(directory, number, capture, text=None):
    """Write the records of a rank; ``text`` changes them."""
    path = directory / f"rank_{number}"
    path.mkdir(parents=True, exist_ok=True)
    whole = "".join(store.lines(capture))
    (path / store.FILE).write_text(text(whole) if text else whole)
    return path


def took(seconds, at=0.0):
    """A compilation by its times."""
    return compilation(seconds=seconds, start=1000.0 + at)


def broke(line=4):
    return compilation(breaks=(GraphBreak(CompileId(0, 0), "Call to print", stack=stack(("f", line))),))


def graph_of(number=0):
    """The graph of a rank: what it computes is the same on all, where and under which ids is not."""
    return f"def forward(self, x):\n    return x + 0.7071067811865476  # cuda:{number % 8} 0x7f{number:06x}"


def thousand(tmp_path, count=1000, special=None, world=0):
    """Many ranks with times, ids and devices of their own; some that are special."""
    for number in range(count):
        own = (special or {}).get(number) or of_rank(
            number, took(1.0 + number % 7, number), world=world or count,
            graph=graph_of(number))
        folder(tmp_path, number, own)
    return ranks.read(str(tmp_path))


# --- lines -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("one, other, same", [
    ('"seconds":1.5,"a":1', '"seconds":0.25e-05,"a":1', True),
    ('"seconds":1.5,"a":1', '"seconds":1.5,"a":2', False),
    ("id 140084081999072, x", "id 139784071912096, x", True),
    ("id 140084081999072, x", "id 139784071912096, y", False),
    ("__compiled_fn_3_13b87e1d_3f1e_4814_adc6_47eaba2c4b2e(x)", "__compiled_fn_11_93b87e1d_3f1e_4814_adc6_47eaba2c4b2f(x)", True),
    ("device='cuda:3')", "device='cuda:12')", True),
    ("x + 0.7071067811865476", "x + 0.7071067811865475", False),  # not an id: a number that the graph computes with
    ("x + 12345678.9", "x + 12345678.8", False),
    ("x[5]", "x[6]", False), ("a", "a b", False), ("a 0x12", "a", False)])
def test_what_differs_between_lines_of_ranks_that_do_the_same(one, other, same):
    files = AlikeFiles()
    keys = [files.add(f"head\n{text}\n".encode()) for text in (one, other, one)]
    assert keys[0] == keys[2] and (keys[0] == keys[1]) == same


def test_numbers():
    assert ranks.in_words(range(0, 40, 2)) == "ranks 0, 2, 4, 6, 8, 10, 12, 14, ... (12 more)"


# --- classes ---------------------------------------------------------------------------------------
def test_most_ranks_are_not_read(tmp_path, monkeypatch):
    read = []
    whole = store.read
    monkeypatch.setattr(store, "read", lambda path: read.append(path) or whole(path))
    first, third = thousand(tmp_path, 200, {3: of_rank(3, broke(), world=200, graph=graph_of())})
    assert len(read) == 2 and [len(each.members) for each in (first, third)] == [199, 1]
    assert third.numbers == (3,) and first.name == "ranks 0-2, 4-199"
    assert ranks.time_of(first) == "1.00 s to 7.00 s (rank 6)"


def test_ranks_that_differ_are_named_with_what_differs(tmp_path):
    other = dataclasses.replace(of_rank(7, took(1.0), world=20), sources=(SourceFile("/a/model.py", "x = 1\n"),))
    classes = thousand(tmp_path, 19, {3: of_rank(3, broke(), world=20, graph=graph_of()), 7: other}, 20)
    text = ranks.ranks_index(classes)
    assert "| 17 ranks alike: 0-2, 4-6, 8-18; see rank 0 | ended |" in text
    assert "17 ranks are alike (0-2, 4-6, 8-18)." in text and "No folder of rank 19:" in text
    assert "* Rank 3 differs from ranks 0-2, 4-6, 8-18 in the graph breaks of `f`" in text
    assert "* Rank 7 differs from ranks 0-2, 4-6, 8-18 in the captured graph of `f`; the file `/a/model.py`\n" in text
    assert "### `f`, `model.py:3`, from ranks 0-2, 4-6, 8-18 to rank 3\n" in text
    assert "* graph break **new**: `model.py:4` `line 4` (Call to print)\n" in text


def test_a_rank_that_was_compiled_with_other_arguments(tmp_path):
    for number, arguments in enumerate(({"dynamic": "True"}, {"dynamic": "False"})):
        one = of_rank(number, took(1.0))
        compilations = tuple(dataclasses.replace(each, arguments=arguments) for each in one.compilations)
        folder(tmp_path, number, dataclasses.replace(one, compilations=compilations))
    assert "* Rank 1 differs from rank 0 in the arguments of `torch.compile` of `f`" in ranks.ranks_index(
        ranks.read(str(tmp_path)))


def test_the_environment_of_a_rank(tmp_path):
    own = of_rank(1)
    own = dataclasses.replace(own, environment=own.environment | {"torch": "2.12.0", "date": "x"})
    folder(tmp_path, 0, dataclasses.replace(of_rank(0), environment=of_rank(0).environment | {"torch": "2.13.0"}))
    folder(tmp_path, 1, own)
    assert "* Rank 1 differs from rank 0 in the environment (torch)\n" in ranks.ranks_index(ranks.read(str(tmp_path)))


def test_records_of_another_form_that_say_the_same_are_one_class(tmp_path):
    """A fast rank leaves out a time of zero; another one writes a set in another order."""
    folder(tmp_path, 0, of_rank(0, took(1.0)))
    folder(tmp_path, 1, of_rank(1, took(0.0)))
    folder(tmp_path, 2, of_rank(2, took(1.0)), lambda text: text.replace('"outcome":"compiled"', '"outcome": "compiled"'))
    (only,) = ranks.read(str(tmp_path))
    assert only.numbers == (0, 1, 2) and [member.seconds for member in only.members][0] == 1.0


def test_ranks_that_were_killed(tmp_path):
    """Those at one place are a class; what they lack is no difference, another graph is."""
    def cut(text):
        return "".join(text.splitlines(keepends=True)[:-1]) + '{"record":"compil'

    for number in range(6):
        folder(tmp_path, number, of_rank(number, took(1.0), compilation(1, 0, "g"), world=9), None if number < 2 else cut)
    folder(tmp_path, 6, of_rank(6, took(1.0), world=9, graph="another\n"), cut)
    (tmp_path / "rank_7").mkdir()
    ranks.write_index(str(tmp_path))
    text = (tmp_path / "index.md").read_text()
    assert "| 0, 1 | ended |" in text and "| [2](rank_2/index.md), 3, 4, 5 | **not ended** |" in text
    assert "| [6](rank_6/index.md) | **not ended** |" in text and "| 7 | nothing was compiled yet |" in text
    assert "No folder of rank 8:" in text
    assert "* Rank 6 differs from ranks 0, 1 in the captured graph of `f`\n" in text and "Ranks 2-5 differ" not in text
    assert (tmp_path / "rank_2" / "index.md").exists() and not (tmp_path / "rank_3" / "index.md").exists()


def test_a_damaged_file_costs_its_rank_only(tmp_path, capsys):
    classes = thousand(tmp_path, 5)
    (tmp_path / "rank_4" / store.FILE).write_text("no record\n")
    report.report(str(tmp_path))
    assert "rank 4: " in capsys.readouterr().err and len(classes) == 1
    text = (tmp_path / "index.md").read_text()
    assert "| 0, 1, 2, 3 | ended |" in text and "is not a record of depyf" in text


# --- the page --------------------------------------------------------------------------------------
def test_the_page_has_a_run_for_each_class(tmp_path):
    thousand(tmp_path, 300, {3: of_rank(3, broke(), world=301, graph=graph_of())}, 301)
    (tmp_path / "rank_9" / store.FILE).unlink()
    report.report(str(tmp_path))
    text = (tmp_path / page.FILE).read_text()
    data = page.unpacked(text)
    assert [run["name"] for run in data["runs"]] == ["ranks 0-2, 4-8, 10-299", "rank 3"]
    assert [run["ranks"] for run in data["runs"]] == [298, 1] and text.count('class="part"') == 2
    assert data["differences"][1] == [["", "Rank 3 differs from ranks 0-2, 4-8, 10-299 in the graph breaks of "],
                                      ["code", "f"]]
    assert [sentence[0][1] for sentence in data["missing"]] == [
        "No folder of rank 300: not started, or on a machine with another disk.",
        "Rank 9: nothing was compiled yet."]
    assert [unit["at"] for run in data["runs"] for unit in run["units"] if "at" in unit] != None
    assert len(text) < 1_000_000


def test_ranks_that_all_differ_make_no_endless_page(tmp_path, monkeypatch):
    monkeypatch.setattr("depyf.views.page.LARGEST", 10_000)
    for number in range(60):
        folder(tmp_path, number, of_rank(number, took(1.0), world=60, graph=f"return {number}"))
    report.report(str(tmp_path))
    data = page.unpacked((tmp_path / page.FILE).read_text())
    assert 1 < len(data["runs"]) < 59 and len(data["runs"]) + len(data["left_out"]) == 60
    assert (tmp_path / "index.md").read_text().count("differs from rank 0 in the captured graph") == 59


def test_json_tells_of_each_rank(tmp_path, capsys):
    from depyf import cli

    thousand(tmp_path, 3)
    assert cli.main(["explain", str(tmp_path), "--json"]) == 0
    assert [run["rank"] for run in json.loads(capsys.readouterr().out)["runs"]] == [0, 1, 2]
    assert cli.main(["explain", str(tmp_path)]) == 0
    assert "Nowhere: 3 ranks" in " ".join(capsys.readouterr().out.split())
