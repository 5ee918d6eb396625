"""A program that compiles on and on: what lies in records.jsonl meanwhile comes back whole."""

import pytest

torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.records import store
from depyf.torch_text import events  # noqa: E402
from small_programs import broken, trained  # noqa: E402


def many():
    """Breaks, recompiles, resets, and gradients of graphs whose compilation was long ago."""
    waiting = []
    for _ in range(3):
        torch._dynamo.reset()
        eager = torch.compile(broken, backend="eager", dynamic=False)
        for size in (2, 3, 4):
            eager(torch.ones(size), torch.full((size,), -1.0))
        train = torch.compile(trained, backend="aot_eager", dynamic=False)
        for size in (2, 3, 4):
            waiting.append(train(torch.ones(size, requires_grad=True)))
    for each in waiting:  # the backward graphs of the last are compiled now
        each.sum().backward()


@pytest.fixture
def two(tmp_path, monkeypatch):
    """Two dumps of one run: of a session that keeps all in memory, and of one that reads all back."""
    read, real = [], store.RecordLog.read

    def read_back(self, recorded):
        if isinstance(recorded, int) and self._path.startswith(str(tmp_path / "away")):
            self._recent.clear()
            self._size = 0
            read.append(recorded)
        return real(self, recorded)

    def ended(self, compile_id, real=events.EventReader.ended):
        away = self._spill._path.startswith(str(tmp_path / "away"))
        monkeypatch.setattr(events, "AT_HAND", 1 if away else 1000)
        real(self, compile_id)

    # (A handler of torch's takes itself away at the first event of a process, and the next one misses that event.)
    torch.compile(trained, backend="eager")(torch.ones(1))
    monkeypatch.setattr(store.RecordLog, "read", read_back)
    monkeypatch.setattr(events.EventReader, "ended", ended)
    with depyf.prepare_debug(str(tmp_path / "kept"), link=False):
        with depyf.prepare_debug(str(tmp_path / "away"), link=False):
            many()
    torch._dynamo.reset()
    assert len(set(read)) > 80
    return tmp_path / "kept", tmp_path / "away"


def test_the_records_are_the_same(two):
    kept, away = map(store.read, map(str, two))
    assert len(kept.compilations) >= 18 and sum(len(graph.stages) for graph in kept.graphs) >= 30
    assert away.compilations == kept.compilations
    assert away.graphs == kept.graphs
    assert away.functions == kept.functions
    assert away.sources == kept.sources


def test_so_are_the_files(two):
    kept, away = two
    names = sorted(path.name for path in kept.iterdir())
    assert names == sorted(path.name for path in away.iterdir())
    for name in names:
        if name.endswith(".py"):
            assert (kept / name).read_text() == (away / name).read_text(), name


def test_records_that_cannot_be_read_back(tmp_path, monkeypatch):
    """One warning; the dump is what was written while the program ran."""

    def read(self, recorded):
        raise OSError("the disk is gone")

    monkeypatch.setattr(store.RecordLog, "read", read)
    with pytest.warns(RuntimeWarning, match="the disk is gone") as seen:
        with depyf.prepare_debug(str(tmp_path / "d")):
            many()
    torch._dynamo.reset()
    assert len([each for each in seen if "depyf" in str(each.message)]) == 1
    capture = store.read(str(tmp_path / "d"))
    assert len(capture.compilations) >= 18 and len(capture.graphs) >= 18
    assert sum(len(frame.entries) for function in capture.functions for frame in function.frames) >= 18
