"""What was appended is in the file at once, and can be read back, whatever else happens."""

import builtins
import os
import random

import pytest

from depyf.records import store
from depyf.records.model import Compilation, CompiledGraph, CompileId, GraphStage, StageOfGraph
from depyf.records.store import RecordLog

RECORDS = [
    record for number in range(60) for record in (
        Compilation(CompileId(number, 0), f"f{number}", seconds=number / 7, counts={"nodes": number}),
        StageOfGraph(f"g{number}", GraphStage("Captured_Graph", 0, f"é\udc80 {number}\n" * number ** 2)))]


def refuse(error):
    raise error


@pytest.fixture(params=[0, 2_000, 2_000_000], ids=["nothing", "a part", "all"])
def in_memory(request, monkeypatch):
    monkeypatch.setattr(store, "RECENT", request.param)


def test_what_was_appended_comes_back(tmp_path, in_memory):
    log = RecordLog(str(tmp_path), refuse)
    places = [log.append(record) for record in RECORDS]
    assert all(isinstance(place, int) for place in places)
    for at in random.Random(0).choices(range(len(RECORDS)), k=200):
        assert log.read(places[at]) == RECORDS[at]
    assert log._size == sum(length for _, length in log._recent.values()) <= store.RECENT


def test_it_is_in_the_file_at_once(tmp_path):
    """What a process leaves that is killed."""
    log = RecordLog(str(tmp_path), refuse)
    assert os.listdir(tmp_path) == []  # (a run that compiles nothing has no records)
    for number in range(1, 4):
        log.append(RECORDS[2 * number])
        capture = store.read(str(tmp_path))
        assert len(capture.compilations) == number and capture.notes == (store.NOT_ENDED,)
        assert capture.environment["python"]


def test_what_cannot_be_appended_stays(tmp_path, monkeypatch, in_memory):
    """A disk that takes a part of some lines: the others are whole."""

    class FullDisk:
        def __init__(self, *how, **options):
            self.file, self.random = builtins.open(*how, **options), random.Random(1)

        def write(self, data):
            if self.random.random() < 0.1:
                self.file.write(data[: len(data) // 2])
                raise OSError("no space left")
            return self.file.write(data[:50])  # (a disk may take a part)

        def __getattr__(self, name):
            return getattr(self.file, name)

    monkeypatch.setattr(store, "open", FullDisk, raising=False)
    messages = []
    log = RecordLog(str(tmp_path), messages.append)
    recorded = [log.append(record) for record in RECORDS]
    lost = [record for record, where in zip(RECORDS, recorded) if where is record]
    assert 5 < len(lost) == len(messages) < len(RECORDS) - 5
    assert [log.read(where) for where in recorded] == RECORDS
    written = [each for each in RECORDS if isinstance(each, Compilation) and not any(each is one for one in lost)]
    assert list(store.read(str(tmp_path)).compilations) == written


def test_no_folder(tmp_path):
    messages = []
    log = RecordLog(str(tmp_path / "gone"), messages.append)
    assert [log.read(log.append(record)) for record in RECORDS] == RECORDS and len(messages) == len(RECORDS)


def test_a_folder_that_is_taken_away(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "RECENT", 0)
    (tmp_path / "d").mkdir()
    log = RecordLog(str(tmp_path / "d"), refuse)
    before = log.append(RECORDS[0])
    os.unlink(tmp_path / "d" / store.FILE)
    os.rmdir(tmp_path / "d")
    after = log.append(RECORDS[1])
    assert [log.read(before), log.read(after)] == RECORDS[:2]


def test_a_line_that_was_damaged_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "RECENT", 0)
    log = RecordLog(str(tmp_path), refuse)
    place = log.append(RECORDS[0])
    with open(tmp_path / store.FILE, "r+") as file:
        file.seek(place)
        file.write("{}")
    with pytest.raises(store.RecordsError, match="not a record"):
        log.read(place)
    with open(tmp_path / store.FILE, "r+") as file:
        file.truncate(place + 2)
    with pytest.raises(OSError, match="ends early"):
        log.read(place)


def test_a_log_that_is_closed_says_so(tmp_path):
    log = RecordLog(str(tmp_path), refuse)
    place = log.append(RECORDS[0])
    log.close()
    with pytest.raises(OSError, match="closed"):
        log.read(place)
    assert log.read(CompiledGraph("g", "g", CompileId(0, 0), "")).name == "g"


def test_what_is_put_together_of_lines(tmp_path):
    """Stages and kernels come in lines of their own; the last line of a stage counts."""
    log = RecordLog(str(tmp_path), refuse)
    head = CompiledGraph("g", "g_1", CompileId(0, 0), "eager")
    first, again, other = (GraphStage("Forward_graph", index, text) for index, text in ((0, "a"), (0, "b"), (1, "c")))
    for record in (head, StageOfGraph("g", first), StageOfGraph("g", other), StageOfGraph("g", again),
                   StageOfGraph("unknown", first)):
        log.append(record)
    graphs = store.read(str(tmp_path)).graphs
    assert [(graph.name, graph.stages) for graph in graphs] == [("g", (again, other))]
