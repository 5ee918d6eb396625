"""Folders of ranks and the index over them. (From records, without torch; tests/test_ranks.py has real ones.)"""

import dataclasses
import os
import threading

import pytest
from test_index import anchors, capture_of, check, compilation, frame_of, stack

from depyf.records import store
from depyf.records.model import (
    CacheKeyPart,
    CacheLookup,
    CompiledFunction,
    CompiledGraph,
    CompileId,
    GraphBreak,
    GraphStage,
    Guard,
    GuardFailure,
    SourceLocation,
    UserFunction,
)
from depyf.records.run_directory import DirectoryError, run_directory
from depyf.views import ranks


# --- folders --------------------------------------------------------------------------------------
@pytest.fixture
def rank(monkeypatch):
    """Makes this process a rank of a launch."""
    for name in list(os.environ):
        if name.startswith(("TORCHELASTIC_", "SLURM_", "MASTER_")) or name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
            monkeypatch.delenv(name)

    def set(number, world=4, **more):
        for name, value in {"RANK": number, "WORLD_SIZE": world, **more}.items():
            monkeypatch.setenv(name, str(value))

    return set


def test_one_process_has_no_rank(tmp_path, rank):
    rank(0, 1)
    assert run_directory(str(tmp_path / "d")) == (str(tmp_path / "d"), "")


def test_ranks_share_the_directory_of_a_run(tmp_path, rank):
    wanted = str(tmp_path / "d")
    for number in (1, 3, 0, 2):
        rank(number)
        assert run_directory(wanted) == (os.path.join(wanted, f"rank_{number}"), "")


def test_a_second_launch_goes_to_run_2_whichever_rank_is_first(tmp_path, rank):
    """Also where nothing tells the launches from each other (``torchrun`` without ``--standalone``)."""
    wanted = str(tmp_path / "d")
    for run, numbers in (("", (0, 1)), ("run_2", (1, 0)), ("run_3", (0, 1))):
        for number in numbers:
            rank(number, 2, MASTER_PORT=29500)
            path, notice = run_directory(wanted)
            assert path == os.path.join(wanted, run, f"rank_{number}")
            assert bool(notice) == (number == 0 and run != "")


@pytest.mark.parametrize("name", ["MASTER_PORT", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_RUN_ID"])
def test_a_launch_after_one_that_lost_a_rank(tmp_path, rank, name):
    wanted = str(tmp_path / "d")
    rank(0, 2, **{name: "1"})
    run_directory(wanted)  # rank 1 was killed before it came to this
    for number in (1, 0):
        rank(number, 2, **{name: "2"})
        assert run_directory(wanted)[0] == os.path.join(wanted, "run_2", f"rank_{number}")


def test_restarted_workers_of_torchrun_have_other_logs(tmp_path, rank):
    wanted = str(tmp_path / "d")
    more = {"LOCAL_WORLD_SIZE": 2}
    rank(0, 2, TORCHELASTIC_ERROR_FILE="/tmp/torchelastic_a/none_1/attempt_0/0/error.json", **more)
    run_directory(wanted)
    for number in (1, 0):
        rank(number, 2, TORCHELASTIC_ERROR_FILE=f"/tmp/torchelastic_a/none_2/attempt_0/{number}/error.json", **more)
        assert run_directory(wanted)[0] == os.path.join(wanted, "run_2", f"rank_{number}")


@pytest.mark.parametrize("name, folder", [
    ("mine.txt", ""), ("program.py", ""), ("notes.txt", "run_2"), ("full_code_for_f_0.py", "run_2")])
def test_what_is_there_is_not_written_over(tmp_path, rank, name, folder):
    (tmp_path / name).write_text("mine")
    rank(1)
    assert run_directory(str(tmp_path))[0] == str(tmp_path / folder / "rank_1")


def test_processes_without_ranks_that_start_at_once_get_a_directory_each(tmp_path, rank):
    got, begin = [], threading.Barrier(8)

    def start():
        begin.wait()
        got.append(run_directory(str(tmp_path / "d"))[0])

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(got)) == 8 and str(tmp_path / "d") in got
    assert not [name for name in os.listdir(tmp_path / "d") if name.startswith(".depyf.")]


def test_a_file_system_without_links(tmp_path, rank, monkeypatch):
    def no_links(*arguments):
        raise OSError(1, "not permitted")

    monkeypatch.setattr(os, "link", no_links)
    for number in (0, 1):
        rank(number)
        assert run_directory(str(tmp_path / "d"))[0] == str(tmp_path / "d" / f"rank_{number}")
    rank(0, 1)
    assert run_directory(str(tmp_path / "d"))[0] == str(tmp_path / "d" / "run_2")


def test_a_directory_that_cannot_be_made(tmp_path, rank):
    (tmp_path / "file").write_text("")
    rank(0)
    with pytest.raises(DirectoryError, match="file"):
        run_directory(str(tmp_path / "file"))
    with pytest.raises(DirectoryError):
        run_directory(str(tmp_path / "file" / "d"))


# --- the index ------------------------------------------------------------------------------------
def of_rank(number, *compilations, graph="def forward(self, x): return x\n", world=2):
    stage = GraphStage("Captured_Graph", 0, graph, False, CompileId(0, 0), "g.py")
    function = CompiledFunction("f", (frame_of(CompileId(0, 0), graph="__compiled_fn_1"),), "full.py")
    capture = capture_of(*(compilations or (compilation(),)), functions=(function,), graphs=(
        CompiledGraph("__compiled_fn_1", "__compiled_fn_1", CompileId(0, 0), "eager", (stage,)),))
    return dataclasses.replace(capture, environment={"rank": str(number), "world_size": str(world)})


def written(tmp_path, *captures, killed=()):
    for number, capture in enumerate(captures):
        folder = tmp_path / f"rank_{number}"
        folder.mkdir()
        lines = list(store.lines(capture))
        if number in killed:
            lines = lines[:-1] + ['{"record":"compil']
        (folder / store.FILE).write_text("".join(lines))
        if number not in killed:
            (folder / "index.md").write_text("")
    path = ranks.write_index(str(tmp_path))
    assert path == str(tmp_path / "index.md")
    with open(path) as file:
        text = file.read()
    check(text, {f"rank_{number}/{name}" for number in range(len(captures)) for name in ("index.md", "g.py")})
    return text


def test_ranks_that_do_the_same(tmp_path):
    text = written(tmp_path, of_rank(0, graph="a __compiled_fn_1 device(type='cuda', index=0) cuda:0 0x7f00"),
                   of_rank(1, graph="a __compiled_fn_3 device(type='cuda', index=1) cuda:1 0x7f11"))
    assert "Nowhere: 2 ranks compiled the same functions" in text and "| [0](rank_0/index.md), [1](rank_1/index.md) | ended | 1 | 1 |" in text


def test_guards_of_another_device_are_no_difference(tmp_path):
    """Though another function of the rank differs."""
    def on_device(number, *compilations):
        capture = of_rank(number, *compilations)
        guard = Guard(f"check_tensor(L['x'], device='cuda:{number}')", "L['x']", "TENSOR_MATCH", f"cuda:{number}")
        (frame,) = capture.functions[0].frames
        entry = dataclasses.replace(frame.entries[0], guards=(guard,))
        frame = dataclasses.replace(frame, entries=(entry,))
        return dataclasses.replace(capture, functions=(dataclasses.replace(capture.functions[0], frames=(frame,)),))

    broken = compilation(breaks=(GraphBreak(CompileId(0, 0), "print", stack=stack(("f", 4))),))
    text = written(tmp_path, on_device(0), on_device(1, broken))
    assert "* graph break **new**" in text and "cuda" not in text and "guards" not in text


def test_one_rank_recompiled(tmp_path):
    failure = GuardFailure(CompileId(0, 0), "tensor 'x' size mismatch at index 0. expected 4, actual 6", "x", "4", "6",
                           subject="x.size()[0]")
    text = written(tmp_path, of_rank(0), of_rank(1, compilation(), compilation(0, 1, guard_failures=(failure,))))
    assert "### `f`, `model.py:3`, from rank 0 to rank 1\n" in text
    assert "* recompile **new**: `x.shape[0]`: 4 → 6 in `f`\n" in text


def test_why_one_rank_did_not_find_what_another_has_in_the_cache(tmp_path):
    def looked_up(outcome, config, inputs, *options):
        key = (CacheKeyPart("gm", "1"), CacheKeyPart("example_inputs", inputs), CacheKeyPart("inductor_config", config))
        return compilation(caches=(CacheLookup("fx_graph", outcome, "", key, options),))

    text = written(tmp_path, of_rank(0, looked_up("hit", "2", "cuda:0"), world=3),
                   of_rank(1, looked_up("miss", "3", "cuda:1", "max_autotune = True"), world=3),
                   of_rank(2, looked_up("miss", "2", "cuda:2"), world=3))
    assert "Rank 1 differs from ranks 0, 2 in the key in Inductor's cache of `f`" in text
    assert "### Inductor's cache, from ranks 0, 2 to rank 1\n" in text
    assert "as the key is another (options of `torch._inductor.config`): `[0/0]`." in text


def test_one_rank_broke_elsewhere(tmp_path):
    def at(line):
        return compilation(breaks=(GraphBreak(CompileId(0, 0), "print", stack=stack(("f", line))),))

    text = written(tmp_path, of_rank(0, at(4), world=3), of_rank(1, at(9), world=3), of_rank(2, at(4), world=3))
    assert "### `f`, `model.py:3`, from ranks 0, 2 to rank 1\n" in text
    assert "* graph break **gone**: `model.py:4` `line 4` (print)\n" in text
    assert "* graph break **new**: `model.py:9` `line 9` (print)\n" in text


def test_graphs_that_are_not_equal(tmp_path):
    text = written(tmp_path, of_rank(0, graph="a\nx + 1"), of_rank(1, graph="a\nx + 2"))
    assert "* graph changed: the captured one\n" in text and "  - x + 1\n  + x + 2\n" in text


GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[{size}]cuda:{device}", L_y_: "f32[2]cuda:{device}"):
        a: "f32[{size}]cuda:{device}" = L_x_ + 1
        b: "f32[{size}]cuda:{device}" = torch.{operation}(a)
        return (b,)
"""


@pytest.mark.parametrize("size, operation, told", [
    (2, "cos", "  * in no module: `+ cos`, `- sin`\n"),
    (3, "sin", '  * the same operations; the first line that differs:\n\n  ```diff\n  - L_x_: "f32[2]cuda:_",\n'
               '  + L_x_: "f32[3]cuda:_",\n')])
def test_the_difference_of_graphs_is_told_by_operations_else_by_a_line(size, operation, told, tmp_path):
    """(A parameter has a line of its own; the number of a device is no difference.)"""
    text = written(tmp_path, of_rank(0, graph=GRAPH.format(size=2, operation="sin", device=0)),
                   of_rank(1, graph=GRAPH.format(size=size, operation=operation, device=1)))
    assert "* graph changed: the captured one\n" + told in text


def test_a_function_has_its_name_and_what_differs_is_told_of_it_once(tmp_path):
    """A resume function is named by where it goes on, and has no other source."""
    meant = UserFunction("Net.forward", SourceLocation("model.py", 2, "forward"))
    resumed = dataclasses.replace(
        compilation(1, 0), function="torch_dynamo_resume_in_forward_at_5", user_function=meant)
    both = [dataclasses.replace(compilation(), user_function=meant)]
    broken = dataclasses.replace(both[0], breaks=(GraphBreak(CompileId(0, 0), "print", stack=stack(("forward", 4))),))
    text = written(tmp_path, of_rank(0, *both), of_rank(1, broken, resumed))
    assert "* **new** in this run: 1 version, 0 graphs\n" in text
    assert "differs from rank 0 in what was compiled and the graph breaks of `Net.forward`\n" in text


@pytest.mark.parametrize("number", [0, 1])
def test_an_index_that_another_rank_writes_meanwhile_is_linked(tmp_path, monkeypatch, number):
    """Both ranks end at once: one reads the other's folder before its index is there, and writes last."""
    written(tmp_path, of_rank(0), of_rank(1))
    for each in range(2):
        (tmp_path / f"rank_{each}" / "index.md").write_text("")
    late = tmp_path / f"rank_{number}" / "index.md"
    late.unlink()
    read = ranks.read

    def and_then_the_other_ends(directory):
        found = read(directory)
        late.write_text("")
        return found

    monkeypatch.setattr(ranks, "read", and_then_the_other_ends)
    ranks.rank_ended(str(tmp_path / f"rank_{1 - number}"))
    assert "| [0](rank_0/index.md), [1](rank_1/index.md) | ended |" in (tmp_path / "index.md").read_text()


def test_a_rank_that_was_killed(tmp_path):
    text = written(tmp_path, of_rank(0, compilation(), compilation(1, 0, "g")), of_rank(1), killed={1})
    assert "| [1](rank_1/index.md) | **not ended** |" in text and "Nowhere" in text
    assert "the run did not end" in (tmp_path / "rank_1" / "index.md").read_text()
    assert (tmp_path / "rank_0" / "index.md").read_text() == "", "an index that a rank wrote is its own"


def test_the_graph_of_a_rank_that_was_killed_is_compared(tmp_path):
    text = written(tmp_path, of_rank(0, compilation(), compilation(1, 0, "g"), graph=GRAPH.format(
        size=2, operation="sin", device=0)), of_rank(1, graph=GRAPH.format(size=2, operation="cos", device=1)), killed={1})
    assert "* Rank 1 differs from rank 0 in the captured graph of `f`\n" in text
    assert "### `f`, `model.py:3`, from rank 0 to rank 1\n\n* graph changed: the captured one\n" \
        "  * in no module: `+ cos`, `- sin`\n" in text
    assert "gone" not in text


def test_ranks_that_left_nothing(tmp_path):
    (tmp_path / "rank_1").mkdir()
    capture = of_rank(0, world=4)
    (tmp_path / "rank_0").mkdir()
    (tmp_path / "rank_0" / store.FILE).write_text("".join(store.lines(capture)))
    with open(ranks.write_index(str(tmp_path))) as file:
        text = file.read()
    assert "| 1 | nothing was compiled yet |" in text and "No folder of ranks 2, 3" in text
    assert "where-the-ranks-differ" in anchors(text)


def test_a_single_run_whose_index_is_missing(tmp_path):
    (tmp_path / store.FILE).write_text("".join(store.lines(of_rank(0))))
    with open(ranks.write_index(str(tmp_path))) as file:
        assert file.read().startswith("# What torch.compile did\n")
    with pytest.raises(store.RecordsError):
        ranks.write_index(str(tmp_path / "nothing"))
