"""Kernels that Inductor really generates: they lead to graph nodes and user lines, and torch's own account agrees."""

import re

import pytest

torch = pytest.importorskip("torch")

from decoder import Decoder  # noqa: E402

from depyf.provenance.graph_provenance import Provenance  # noqa: E402
from provenance import shares, watched  # noqa: E402


class Pictures(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.second = torch.nn.Conv2d(8, 8, 3, padding=1)
        self.head = torch.nn.Linear(8, 4)
        self.scale = torch.nn.LayerNorm(4)

    def forward(self, x):
        x = torch.relu(self.norm(self.first(x)))
        x = torch.nn.functional.max_pool2d(x + self.second(x), 2)
        x = torch.nn.functional.gelu(self.head(x.mean((2, 3))))
        return self.scale(x).log_softmax(-1).sum()


TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
MODELS = {"decoder": (lambda: Decoder(2), lambda: torch.randint(0, 24, (2, 12))),
          "pictures": (Pictures, lambda: torch.randn(2, 3, 8, 8))}


@pytest.fixture(scope="module", params=[pytest.param("decoder", marks=pytest.mark.heavy), "pictures"])
def run(request, tmp_path_factory):
    """``(capture read back, what torch said, directory)`` of one step of training."""
    make, inputs = MODELS[request.param]
    torch.manual_seed(0)
    compiled = torch.compile(make())
    path = tmp_path_factory.mktemp(request.param) / "dump"
    capture, named_by_torch = watched(lambda: compiled(inputs()).backward(), str(path))
    return capture, named_by_torch, path


@pytest.mark.slow
def test_kernels_lead_to_nodes_and_nodes_to_lines(run):
    capture, named_by_torch, _ = run
    counts = shares(capture, named_by_torch)
    assert counts.calls >= 10 and counts.nodes > 200
    assert counts.calls_with_nodes / counts.calls >= 0.95
    assert counts.calls_with_lines / counts.calls >= 0.95
    assert counts.nodes_with_line / counts.nodes >= 0.98
    if counts.torchs or TORCH >= (2, 11):  # (2.9 keeps its account elsewhere)
        # (Torch counts for a kernel what another one computed for it, too.)
        assert counts.ours > 50
        assert counts.both / counts.ours >= 0.95
        assert counts.both / counts.torchs >= 0.8


@pytest.mark.slow
def test_from_kernels_to_the_lines_that_they_compute(run):
    capture, _, _ = run
    provenance = Provenance(capture.graphs[0])
    origins = [(provenance.kernel_stage(kernel), [stage.origins[name] for stage, name in provenance.nodes_of(kernel, call)])
               for kernel in provenance.kernels for call in kernel.calls]
    norms = [node for _, node in provenance.captured.nodes()
             if node.operation in ("rsqrt", "layer_norm") and node.location is not None]
    assert norms
    for norm in norms:
        place = norm.location.filename, norm.location.line
        at_line = [(stage, each) for stage, of_call in origins for each in of_call
                   if each.location is not None and (each.location.filename, each.location.line) == place]
        assert {stage.is_backward for stage, _ in at_line} == {False, True}
        assert norm.name in {each.captured for _, each in at_line}


@pytest.mark.slow
def test_the_outline_shows_each_call_with_its_lines(run):
    capture, _, path = run
    for kernel in capture.graphs[0].kernels:
        text = (path / kernel.outline).read_text()
        module = (path / kernel.file).read_text().splitlines()
        for call in kernel.calls:
            assert call.name in module[call.call_line - 1]
            assert call.line == 0 or module[call.line - 1].startswith(f"{call.name} = async_compile.")
            assert f"{call.name}  (" in text
        # (What Inductor makes of a slice's gradient has no line, and its neighbours' lines do not compute it.)
        assert set(re.findall(r"no user line  (.*) ->", text)) <= {"iota, reshape, eq, scalar_tensor x2, slice_scatter"}
    assert f"[outline]({capture.graphs[0].kernels[0].outline})" in (path / "index.md").read_text()
