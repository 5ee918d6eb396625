"""A log of TORCH_TRACE, made without the tool, and the same program under it: the records agree."""

import os
import subprocess
import textwrap

import pytest

pytest.importorskip("torch")

from depyf.capture import trace_log  # noqa: E402
from depyf.records import store
from depyf.views.diff.difference import difference
from torch_forks import torch_python

PROGRAM = textwrap.dedent("""
    import sys, torch

    def side(x):
        print("side")
        return x.sin()

    @torch.compile(backend="aot_eager")
    def f(a, b, k):
        x = a / (torch.abs(a) + 1)
        if b.sum() < 0:
            b = b * -1
        return side(x) * b * k

    def run():
        for n in (10, 12, 14):
            f(torch.randn(n), torch.ones(n), 2)
        f(torch.randn(14), torch.ones(14), "a" and 3.5)

    if len(sys.argv) > 1:
        import depyf
        with depyf.prepare_debug(sys.argv[1]):
            run()
    else:
        run()
""")


def read_log(folder):
    """Return the records of the newest log in a folder."""
    return next(iter(trace_log.read_ranks(trace_log.logs(str(folder))[-1]).values()))


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """``(records of the live run, records from the log)``."""
    folder = tmp_path_factory.mktemp("trace")
    program = folder / "program.py"
    program.write_text(PROGRAM)
    for arguments, more in (([str(folder / "dump")], {}), ([], {"TORCH_TRACE": str(folder / "log")})):
        subprocess.run([*torch_python(), str(program), *arguments], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, **more})
    return store.read(str(folder / "dump")), read_log(folder / "log")


def test_the_same_compilations(both):
    live, log = both
    assert [(c.compile_id, c.function, c.outcome) for c in live.compilations] == [
        (c.compile_id, c.function, c.outcome) for c in log.compilations]
    for ours, theirs in zip(live.compilations, log.compilations):
        assert [(b.reason, b.registry_id, b.location) for b in ours.breaks] == [
            (b.reason, b.registry_id, b.location) for b in theirs.breaks]
        assert ours.symbols == theirs.symbols
        assert [(f.entry, f.text) for f in ours.guard_failures] == [(f.entry, f.text) for f in theirs.guard_failures]
        assert ours.restarts == theirs.restarts


def test_what_happened_is_told(both):
    live, _ = both
    # (The second is what torch up to 2.6 calls it.)
    assert any(b.reason == "Data-dependent branching" or b.reason == "Data-dependent jump"
               for c in live.compilations for b in c.breaks)
    failures = [f for c in live.compilations for f in c.guard_failures]
    assert any((f.expected, f.seen) == ("10", "12") for f in failures)
    assert any(s.kind == "created" for c in live.compilations for s in c.symbols)


def test_the_value_seen_is_told_where_torch_does_not(both):
    live, _ = both
    failures = [f for c in live.compilations for f in c.guard_failures if f.source.endswith("k") or "'k'" in f.source]
    assert [f.seen for f in failures if f.expected in ("2", "int")], failures
    assert all(f.seen in ("3.5", "float") for f in failures), failures


def test_the_same_graphs_and_guards(both):
    live, log = both

    def texts(capture):
        return {(s.compile_id.frame, s.compile_id.recompile, s.stage, s.text)
                for g in capture.graphs for s in g.stages if s.stage == "Captured_Graph"}

    def guards(capture):
        return {(e.compile_id.frame, e.compile_id.recompile): len(e.guards)
                for f in capture.functions for fr in f.frames for e in fr.entries}

    assert texts(live) == texts(log)
    assert guards(live) == guards(log)
    assert store.FROM_LOG in log.notes


def test_inputs_of_graphs_have_the_names_of_the_captured_graph(both):
    live, log = both

    def names(capture):
        return {str(graph.compile_id): [each.name for each in graph.inputs] for graph in capture.graphs}

    assert names(live) == names(log) and any(names(log).values())


def test_files_stand_in_the_records(both, tmp_path):
    live, _ = both
    for graph in live.graphs:
        assert all(stage.file for stage in graph.stages)
    assert all(function.file for function in live.functions)


def test_nothing_there(tmp_path):
    with pytest.raises(store.RecordsError, match="nor a log"):
        read_log(tmp_path)
    (tmp_path / "a.log").write_text("no event\n")
    with pytest.raises(store.RecordsError, match="no event"):
        read_log(tmp_path)


@pytest.mark.torch_since((2, 11), "the log lacks guards on the lengths of dictionaries")
def test_the_log_of_a_wrapped_module_is_no_other_function(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent("""
        import torch
        model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
        torch.compile(model, backend="aot_eager")(torch.ones(2, 3)).sum().backward()
    """))
    subprocess.run([*torch_python(), "-m", "depyf", "run", "-o", str(tmp_path / "dump"), str(program)], check=True)
    subprocess.run([*torch_python(), str(program)], check=True, env={**os.environ, "TORCH_TRACE": str(tmp_path / "log")})
    found = difference(store.read(str(tmp_path / "dump")), read_log(tmp_path / "log"))
    lines = [line for each in found.functions.values() for line in each]
    assert not any("graph" in line or "gone: " in line or "new in" in line for line in lines), lines
