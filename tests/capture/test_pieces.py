"""Backends that split a graph and compile each piece alone, as DDPOptimizer and vLLM do."""

import os
import subprocess
from collections import Counter

import pytest
import torch
from torch._dynamo.backends.registry import lookup_backend
from torch.fx.passes.split_module import split_module

import depyf
from depyf.capture import trace_log
from depyf.records.store import read
from depyf.views.diff.difference import difference
from depyf.views.index.index import index
from torch_forks import torch_python


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.a(x))


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ls = torch.nn.ModuleList(Layer() for _ in range(3))

    def forward(self, x):
        for layer in self.ls:
            x = layer(x)
        return x


def split_after_relu(compiler):
    def backend(gm, inputs):
        count = 0

        def part(node):
            nonlocal count
            number = count
            count += "relu" in str(node.target)
            return number

        split = split_module(gm, None, part, tuple_return=True)
        compiled = {}

        class Pieces(torch.fx.Interpreter):
            def call_module(self, target, args, kwargs):
                compiled[target] = compiler(self.fetch_attr(target), list(args))
                return super().call_module(target, args, kwargs)

        Pieces(split).run(*inputs)
        for name, run in compiled.items():
            delattr(split, name)
            split.__dict__[name] = run
        return split

    return backend


def dumped(tmp_path, backend):
    model, x = Layers(), torch.ones(2, 4, requires_grad=True)
    with depyf.prepare_debug(tmp_path, page=False):
        result = torch.compile(model, backend=backend)(x)
        result.sum().backward()
    assert torch.equal(result, model(x))
    return read(str(tmp_path))


@pytest.fixture(scope="module")
def eager(tmp_path_factory):
    path = tmp_path_factory.mktemp("eager")
    return path, dumped(path, split_after_relu(lookup_backend("aot_eager")))


@pytest.mark.torch_since((2, 12), "a piece that returns a tensor cannot be made one that returns a tuple")
def test_each_piece_has_all_its_stages(eager):
    path, capture = eager
    pieces = [graph for graph in capture.graphs if graph.piece_of]
    assert [graph.name for graph in pieces] == [f"{pieces[0].piece_of}.submod_{number}" for number in range(3)]
    for graph in pieces:
        assert [stage.stage for stage in graph.stages] == [
            "Captured_Graph", "Joint_graph", "Forward_graph", "Backward_graph"]  # of equal layers, too
        assert [stage.file for stage in graph.stages] == [f"{graph.name}.{stage.stage}.0.py" for stage in graph.stages]
        assert all((path / stage.file).exists() for stage in graph.stages)


@pytest.mark.torch_since((2, 12), "a piece that returns a tensor cannot be made one that returns a tuple")
def test_inputs_of_a_piece_are_called_what_is_passed_to_it(eager):
    path, capture = eager
    second = next(graph for graph in capture.graphs if graph.name.endswith("submod_1"))
    assert [source for source in (each.source for each in second.inputs) if "'1'" in source] == [
        "L['self']._modules['ls']._modules['1']._modules['a']._parameters['weight']",
        "L['self']._modules['ls']._modules['1']._modules['a']._parameters['bias']"]
    assert second.inputs[0].source == ""  # what the first piece returns
    text = (path / f"{second.name}.Forward_graph.0.py").read_text()
    assert "# self.ls[1].a.weight" in text and "ls[0]" not in text


@pytest.mark.torch_since((2, 12), "a piece that returns a tensor cannot be made one that returns a tuple")
def test_the_index_lists_the_pieces(eager):
    path, capture = eager
    text = (path / "index.md").read_text()
    assert "[split into 3 pieces](#pieces)" in text
    assert "__meta_utils" not in text  # sizes of the inputs that the backend made up
    row = next(line for line in text.splitlines() if line.startswith("| `submod_1`"))
    assert "`ls.1.a`" in row and ".submod_1.Backward_graph.0.py" in row
    assert ".submod_0.Forward_graph.0.py" not in index(capture).split("## Pieces")[0]


def test_a_whole_graph_that_is_compiled_is_no_piece(tmp_path):
    capture = dumped(tmp_path, lookup_backend("aot_eager"))
    assert [graph.piece_of for graph in capture.graphs] == [""]


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_backward_graph_that_never_runs_is_recorded(tmp_path, backend, runs):
    torch.compiler.reset()
    model, x = Layer(), torch.ones(2, 4)
    with torch._inductor.config.patch(force_disable_caches=True), depyf.prepare_debug(tmp_path, page=False):
        result = torch.compile(model, backend=backend)(x)
        if runs:
            result.sum().backward()
    capture = read(str(tmp_path))
    assert "Backward_graph" in [stage.stage for stage in capture.graphs[0].stages]
    assert any("not compiled while depyf watched" in note for note in capture.notes) != runs


@pytest.mark.torch_since((2, 12), "a piece that returns a tensor cannot be made one that returns a tuple")
def test_a_difference_in_a_piece_is_named(eager, tmp_path):
    path, _ = eager
    with depyf.prepare_debug(tmp_path, page=False):
        torch.compile(Layers(), backend=split_after_relu(lookup_backend("aot_eager")))(torch.ones(2, 4))
    lines = [line for each in difference(read(str(path)), read(str(tmp_path))).changed for line in each.lines]
    assert any("piece `submod_0` changed: the joint one" in line for line in lines)


PROGRAM_OF_DDP = """
import sys, torch, depyf
from torch._dynamo.backends.distributed import DDPOptimizer
from torch._dynamo.backends.registry import lookup_backend

model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(6)])
ddp = DDPOptimizer(bucket_bytes_cap=2 << 20, backend_compile_fn=lookup_backend(sys.argv[2]))

with depyf.prepare_debug(sys.argv[1], page=False):
    torch.compile(model, backend=ddp.compile_fn)(torch.ones(2, 512)).sum().backward()
"""
#: The calls of ``trace_structured`` in vLLM's ``compilation/backends.py`` and ``piecewise_backend.py``.
PROGRAM_OF_VLLM = """
import json, sys, torch, depyf
from torch._dynamo.backends.registry import lookup_backend
from torch._logging import trace_structured
from torch.fx.passes.split_module import split_module

def backend(gm, inputs):
    count = 0

    def part(node):
        nonlocal count
        number = count
        count += "relu" in str(node.target)
        return number

    split = split_module(gm, None, part, tuple_return=True)
    trace_structured("graph_dump", lambda: {"name": "vllm_piecewise_split_graph"},
                     payload_fn=lambda: split.print_readable(print_output=False))

    class Pieces(torch.fx.Interpreter):
        def call_module(self, target, args, kwargs):
            result = super().call_module(target, args, kwargs)
            piece = self.fetch_attr(target)
            for size in (2, 3):
                trace_structured("artifact", lambda: {"name": "vllm_piecewise_compile_start", "encoding": "json"},
                                 payload_fn=lambda: json.dumps({"submod_name": target, "compile_range_start": size}))
                if size == 2:
                    trace_structured("graph_dump", lambda: {"name": f"vllm_{target}"},
                                     payload_fn=lambda: piece.print_readable(print_output=False))
                lookup_backend(sys.argv[2])(piece, [args[0].new_empty(size, 4), *args[1:]])
            return result

    Pieces(split).run(*inputs)
    return gm.forward

model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()) for _ in range(3)))
with depyf.prepare_debug(sys.argv[1], page=False), torch.no_grad():
    torch.compile(model, backend=backend)(torch.ones(2, 4))
"""


@pytest.mark.parametrize("program, compiler", [
    (PROGRAM_OF_DDP, "inductor"),
    pytest.param(PROGRAM_OF_VLLM, "aot_eager", marks=pytest.mark.torch_since((2, 12), "as above"))])
def test_a_log_has_the_pieces_of_the_live_run(program, compiler, tmp_path):
    (tmp_path / "program.py").write_text(program)
    subprocess.run([*torch_python(), str(tmp_path / "program.py"), str(tmp_path / "dump"), compiler], check=True,
                   env={**os.environ, "TORCH_TRACE": str(tmp_path / "log")})

    def pieces(capture):
        return [(graph.name.partition(".")[2], len(graph.kernels), Counter(stage.stage for stage in graph.stages))
                for graph in capture.graphs if graph.piece_of]

    live, log = read(str(tmp_path / "dump")), next(iter(trace_log.read_ranks(trace_log.logs(str(tmp_path / "log"))[-1]).values()))
    assert len(pieces(live)) >= 3
    assert pieces(log) == pieces(live)
    split, = (stage.text for stage in log.graphs[0].stages if "split" in stage.stage)
    assert all(f"self.{name}(" in split for name, _, _ in pieces(log))
