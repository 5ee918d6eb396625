"""Nodes of later stages tied to captured nodes and their modules; outlines made of them.

One small decoder is compiled once; what live graph modules say is the measure of what is inferred from the texts.
"""

import dataclasses
import re

import pytest

from depyf.model.graph import Node
from depyf.model.graph_text import read_graph
from depyf.provenance import decompositions
from depyf.provenance.alignment import plain_operation
from depyf.provenance.graph_provenance import Provenance
from depyf.records.model import Caller, CompiledGraph, CompileId, GraphStage, ModuleCall, SourceLocation
from depyf.views.dump import outline as outlines
from depyf.views.dump.outline import _modules, outline, saved_for_backward

IDS = CompileId(0, 0)


def agreement(counts, stage):
    """Return of how many nodes of a stage torch has the module, and the share of them of which the same is inferred."""
    compared = counts[stage, True] + counts[stage, False]
    return compared, counts[stage, True] / compared


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    """``(records read back, directory, modules that torch has of the nodes)``."""
    torch = pytest.importorskip("torch")
    from decoder import Decoder
    from inferred_modules import recorded

    path = tmp_path_factory.mktemp("provenance") / "dump"
    torch.manual_seed(0)
    capture, named_by_torch = recorded(
        lambda: torch.compile(Decoder(2), backend="aot_eager")(torch.randint(0, 24, (2, 12))).backward(), str(path))
    return capture, path, named_by_torch


@pytest.mark.parametrize("stage", ["Forward_graph", "Backward_graph"])
def test_inferred_modules_agree_with_torchs_own(dump, stage):
    capture, _, named_by_torch = dump
    torch = pytest.importorskip("torch")
    from inferred_modules import counted

    compared, share = agreement(counted(capture, named_by_torch), stage)
    assert compared > 150
    # Up to 2.9 torch says of what is computed outside of all modules that it is in the one that was left last.
    assert share >= (0.99 if tuple(map(int, torch.__version__.split(".")[:2])) > (2, 9) else 0.96)


@pytest.mark.parametrize("stage, least", [("Forward_graph", 0.97), ("Backward_graph", 0.97)])
def test_modules_that_are_called_on_one_line_are_told_apart_by_what_they_become(tmp_path, stage, least):
    """Each of these is several operations in ATen after inductor's decompositions, all of them on one line of torch's."""
    torch = pytest.importorskip("torch")
    if tuple(map(int, torch.__version__.split(".")[:2])) <= (2, 9):
        pytest.skip("torch has no module of many nodes")
    from inferred_modules import counted, recorded

    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8),
        nn.Hardswish(), nn.Conv2d(8, 8, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 16), nn.GELU(),
        nn.LayerNorm(16), nn.Linear(16, 16), nn.Mish(), nn.Linear(16, 4), nn.LogSoftmax(-1))
    step = torch.compile(lambda x: model(x), backend="aot_eager_decomp_partition")
    found = recorded(lambda: step(torch.ones(2, 3, 8, 8)).sum().backward(), str(tmp_path / "dump"))
    compared, share = agreement(counted(*found), stage)
    assert compared > 80
    assert share >= least


@pytest.mark.parametrize("backend", ["aot_eager", "aot_eager_decomp_partition"])
def test_units_on_one_line_that_all_take_an_embedding(tmp_path, backend):
    """The embedding stands between the parts of the first of them, and the gradient of each begins with what is new."""
    torch = pytest.importorskip("torch")
    if tuple(map(int, torch.__version__.split(".")[:2])) <= (2, 9):
        pytest.skip("torch has no module of many nodes")
    from inferred_modules import UNITS, counted, recorded, step

    counts = counted(*recorded(step(UNITS, backend), str(tmp_path / "dump")))
    for stage in ("Forward_graph", "Backward_graph"):
        compared, share = agreement(counts, stage)
        assert compared >= 70 and share == 1


@pytest.mark.parametrize("backend", ["aot_eager", "aot_eager_decomp_partition"])
def test_modules_of_one_class_side_by_side_are_told_apart_by_what_flows(tmp_path, backend):
    """Both pass the same line; gradients of the second come first, and no order tells where those of the first begin."""
    torch = pytest.importorskip("torch")
    if tuple(map(int, torch.__version__.split(".")[:2])) <= (2, 9):
        pytest.skip("torch has no module of many nodes")
    from inferred_modules import ADAPTERS, counted, recorded, step

    counts = counted(*recorded(step(ADAPTERS, backend), str(tmp_path / "dump")))
    for stage, least in (("Forward_graph", 20), ("Backward_graph", 40)):
        compared, share = agreement(counts, stage)
        assert compared > least and share == 1.0


SIDES_CAPTURED = '''
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[4]", w: "f32[4]", v: "f32[4]"):
        # File: m.py:1 in forward, code: return (x * self.w).cos()
        mul: "f32[4]" = x * w
        cos: "f32[4]" = mul.cos()
        mul_1: "f32[4]" = x * v
        cos_1: "f32[4]" = mul_1.cos()
        # File: m.py:2 in f, code: return a(x) + b(x)
        add: "f32[4]" = cos + cos_1
        return (add,)
'''
SIDES_BACKWARD = '''
class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[4]", primals_2: "f32[4]", primals_3: "f32[4]", tangents_1: "f32[4]"):
        # File: m.py:1 in forward, code: return (x * self.w).cos()
        neg: "f32[4]" = torch.ops.aten.neg.default(tangents_1)
        mul_2: "f32[4]" = torch.ops.aten.mul.Tensor(primals_1, primals_2)
        sin: "f32[4]" = torch.ops.aten.sin.default(mul_2)
        mul_3: "f32[4]" = torch.ops.aten.mul.Tensor(neg, sin)
        mul_4: "f32[4]" = torch.ops.aten.mul.Tensor(mul_3, primals_1)
        mul_5: "f32[4]" = torch.ops.aten.mul.Tensor(primals_1, primals_3)
        sin_1: "f32[4]" = torch.ops.aten.sin.default(mul_5)
        mul_6: "f32[4]" = torch.ops.aten.mul.Tensor(neg, sin_1)
        mul_7: "f32[4]" = torch.ops.aten.mul.Tensor(mul_6, primals_1)
        return (
            None,
            mul_4,  # gradient of w
            mul_7,
        )
'''


def test_what_a_checkpointed_function_reads_is_told_by_what_its_graph_is_given():
    """In its graph parameters have other names; the call that runs it reads them all, and computes nothing with them."""
    body = "\n".join(f"    {line}" for line in SIDES_CAPTURED.split("\n") if "class" not in line)
    for inner, outer in (("x: ", "y: "), ("w: ", "a: "), ("v: ", "b: "), ("x * w", "y * a"), ("x * v", "y * b")):
        body = body.replace(inner, outer)
    captured = f'''
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[4]", w: "f32[4]", v: "f32[4]"):
        # File: m.py:3 in f, code: return checkpoint(g, x)
        wrap_body_0 = self.wrap_body_0
        tag = torch.ops.higher_order.tag_activation_checkpoint(wrap_body_0, x, w, v)
        getitem: "f32[4]" = tag[0]
        return (getitem,)

    class wrap_body_0(torch.nn.Module):
{body}
'''
    graph = CompiledGraph("g", "g", IDS, "inductor", (
        GraphStage("Captured_Graph", 0, captured, modules=(
            ModuleCall("a", "Wave", -1, ("wrap_body_0.mul", "wrap_body_0.cos")),
            ModuleCall("b", "Wave", -1, ("wrap_body_0.mul_1", "wrap_body_0.cos_1")))),
        GraphStage("Backward_graph", 0, SIDES_BACKWARD)))
    modules = {name: origin.module for name, origin in Provenance(graph).stage("Backward_graph").origins.items()}
    assert {modules[name] for name in ("mul_2", "sin", "mul_3", "mul_4")} == {0}
    assert {modules[name] for name in ("mul_5", "sin_1", "mul_6", "mul_7")} == {1}


def test_of_what_is_computed_for_two_modules_side_by_side_neither_is_said():
    graph = CompiledGraph("g", "g", IDS, "inductor", (
        GraphStage("Captured_Graph", 0, SIDES_CAPTURED, modules=(
            ModuleCall("a", "Wave", -1, ("mul", "cos")), ModuleCall("b", "Wave", -1, ("mul_1", "cos_1")))),
        GraphStage("Backward_graph", 0, SIDES_BACKWARD)))
    modules = {name: origin.module for name, origin in Provenance(graph).stage("Backward_graph").origins.items()}
    assert {modules[name] for name in ("mul_2", "sin", "mul_3", "mul_4")} == {0}
    assert {modules[name] for name in ("mul_5", "sin_1", "mul_6", "mul_7")} == {1}
    assert modules["neg"] == -1


@pytest.mark.parametrize("name, arguments", [
    ("silu", ()), ("gelu", ()), ("softplus", ()), ("hardswish", ()), ("leaky_relu", ()), ("elu", ()), ("mish", ()),
    ("relu6", ()), ("softmax", (-1,)), ("log_softmax", (-1,)), ("layer_norm", ((6,),)), ("rms_norm", ((6,),)),
    ("group_norm", (2,)), ("instance_norm", ()), ("adaptive_avg_pool2d", (1,)), ("pad", ((1, 1),)), ("pixel_shuffle", (2,))])
def test_operations_become_what_the_table_says(name, arguments):
    torch = pytest.importorskip("torch")
    if name == "silu" and tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13):
        pytest.skip("this torch has no sigmoid in it, but an exp")
    from torch._dynamo.backends.common import aot_autograd
    from torch._inductor.decomposition import select_decomp_table

    made = {"FORWARD": set(), "BACKWARD": set()}

    def taken(direction):
        def compiler(gm, inputs):
            graph = read_graph(gm.print_readable(print_output=False))
            made[direction].update(plain_operation(node) for node in graph.nodes if node.is_call)
            return gm.forward

        return compiler

    function = getattr(torch.nn.functional, name)
    backend = aot_autograd(
        fw_compiler=taken("FORWARD"), bw_compiler=taken("BACKWARD"), decompositions=select_decomp_table())
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: function(x, *arguments), backend=backend)
    compiled(torch.ones(2, 4, 6, 6, requires_grad=True)).sum().backward()
    for direction, operations in made.items():
        others = operations - {name, "full", "expand"}  # (the gradient of the sum)
        known = getattr(decompositions, direction).get(name, frozenset())
        assert len(others & known) >= 0.8 * len(others), others - known


@pytest.mark.torch_since((2, 9), "its backward graphs name fewer lines")
def test_a_constant_that_layers_share_says_nothing_of_the_layer(tmp_path):
    """A pass makes one ``scalar_tensor`` of those of both layers; the backward graph of the first one takes it."""
    torch = pytest.importorskip("torch")

    from inferred_modules import counted, recorded

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x, mask):
            y = self.linear(x)
            y = y.masked_fill(mask, 0.0)
            return x + y.tanh()

    layers = torch.nn.ModuleList(Layer() for _ in range(3))

    def model(x, mask):
        for layer in layers:
            x = layer(x, mask)
        return x

    step = torch.compile(model, backend="aot_eager_decomp_partition")
    found = recorded(lambda: step(torch.ones(2, 4), torch.eye(4)[:2] > 0).sum().backward(), str(tmp_path / "dump"))
    assert agreement(counted(*found), "Backward_graph")[1] >= 0.95


def test_nodes_lead_to_a_user_line_and_back(dump):
    capture, _, _ = dump
    provenance = Provenance(capture.graphs[0])
    calls = [stage.origins[name] for stage in provenance.stages for name, node in stage.nodes() if node.is_call]
    assert sum(origin.location is not None for origin in calls) / len(calls) >= 0.98
    softmax = next(node for node in provenance.captured.graph.nodes if node.operation == "softmax")
    nodes = {stage.record.stage: stage.graph.node(name) for stage in provenance.stages
             for name, origin in stage.origins.items() if origin.captured == softmax.name}
    assert nodes["Forward_graph"].target == "torch.ops.aten._softmax.default"
    assert nodes["Backward_graph"].target == "torch.ops.aten._softmax_backward_data.default"
    assert provenance.stage("Forward_graph").origins[nodes["Forward_graph"].name].location == softmax.location


def test_outlines_fold_the_layers_that_are_alike(dump):
    capture, path, _ = dump
    stages = {stage.stage: stage for stage in capture.graphs[0].stages}
    assert all(stage.outline == stage.file.removesuffix(".py") + ".outline.txt" for stage in stages.values())
    texts = {name: (path / stage.outline).read_text() for name, stage in stages.items()}
    captured = texts["Captured_Graph"]
    lines = (path / stages["Captured_Graph"].file).read_text().splitlines()
    first, folded = (int(re.search(pattern, captured)[1]) for pattern in (
        r"layers\.0: Layer .* line (\d+)\n", r"layers\.1: Layer, like layers\.0 +line (\d+)\n"))
    operations = [re.search(r"(\w+)\(", lines[at - 1])[1] for at in (first, folded)]
    assert first < folded and operations[0] == operations[1]
    assert captured.count("layers.0.self_attn.q_proj: Linear (1)  f32[2, 12, 16] -> f32[2, 12, 16]") == 1
    assert "layers.1.self_attn" not in captured
    assert "inferred" not in captured and "inferred" in texts["Backward_graph"]
    # The line on the right is that of the first operation in the graph's file.
    line = next(line for line in captured.splitlines() if line.lstrip().startswith("head: Linear"))
    assert lines[int(line.rpartition(" ")[2]) - 1].lstrip().startswith("logits:")


CAPTURED = '''
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4]"):
        l_x_ = L_x_
        # File: m.py:1 in f, code: x = self.a(x)
        sin: "f32[4]" = torch.sin(l_x_)
        # File: m.py:2 in f, code: x = x + 1
        add: "f32[4]" = sin + 1
        # File: m.py:1 in f, code: x = self.a(x)
        sin_1: "f32[4]" = torch.sin(add)
        return (sin_1,)
'''
FORWARD = '''
class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[4]"):
        # File: m.py:1 in f, code: x = self.a(x)
        sin: "f32[4]" = torch.ops.aten.sin.default(primals_1)
        # File: m.py:2 in f, code: x = x + 1
        add: "f32[4]" = torch.ops.aten.add.Tensor(sin, 1)
        # File: m.py:1 in f, code: x = self.a(x)
        sin_1: "f32[4]" = torch.ops.aten.sin.default(add)
        # No stacktrace found for following nodes
        alias: "f32[4]" = torch.ops.aten.alias.default(sin_1)
        return (alias, primals_1, add)
'''
BACKWARD = '''
class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[4]", add: "f32[4]", tangents_1: "f32[4]"):
        # File: m.py:1 in f, code: x = self.a(x)
        cos: "f32[4]" = torch.ops.aten.cos.default(add)
        mul: "f32[4]" = torch.ops.aten.mul.Tensor(tangents_1, cos)
        cos_1: "f32[4]" = torch.ops.aten.cos.default(primals_1)
        mul_1: "f32[4]" = torch.ops.aten.mul.Tensor(mul, cos_1)
        return (mul_1,)
'''


def test_a_line_that_runs_twice_is_told_apart_by_what_flows():
    graph = CompiledGraph("g", "g", IDS, "aot_eager", (
        GraphStage("Captured_Graph", 0, CAPTURED, modules=(
            ModuleCall("a", "A", -1, ("sin",)), ModuleCall("a", "A", -1, ("sin_1",)))),
        GraphStage("Forward_graph", 0, FORWARD), GraphStage("Backward_graph", 0, BACKWARD)))
    provenance = Provenance(graph)
    forward, backward = provenance.stage("Forward_graph"), provenance.stage("Backward_graph")
    assert [forward.origins[name].captured for name in ("sin", "add", "sin_1")] == ["sin", "add", "sin_1"]
    assert [forward.origins[name].module for name in ("sin", "add", "sin_1")] == [0, -1, 1]
    assert forward.origins["alias"].location.line == 1
    assert backward.origins["cos"].captured == backward.origins["mul"].captured == "sin_1"


def test_what_a_backward_graph_computes_once_more_is_no_gradient(dump):
    """Torch 2.15 says of all nodes of a backward graph that they are of the backward pass."""
    graph = dump[0].graphs[0]

    def with_mark(mark):
        return Provenance(dataclasses.replace(graph, stages=tuple(
            dataclasses.replace(stage, text=re.sub("# (Backward of forward node: )?File: ", f"# {mark}File: ", stage.text))
            if stage.stage == "Backward_graph" else stage for stage in graph.stages))).stage("Backward_graph")

    nodes = [with_mark(mark) for mark in ("", "Backward of forward node: ")]
    assert nodes[0].origins == nodes[1].origins


def test_graphs_without_a_captured_one_keep_their_lines():
    provenance = Provenance(CompiledGraph("g", "g", IDS, "x", (GraphStage("Forward_graph", 0, FORWARD),)))
    origin = provenance.stage("Forward_graph").origins["add"]
    assert (origin.captured, origin.module, origin.location.line) == ("", -1, 2)
    assert Provenance(CompiledGraph("g", "g", IDS, "x", (GraphStage("Captured_Graph", 0, "?"),))).captured is not None
    assert read_graph("?").nodes == ()


def test_a_gradient_of_a_line_that_no_captured_graph_has():
    """Torch 2.15 marks what computes gradients; of a graph alone (a saved cache) nothing leads to its lines."""
    text = """class inner_f(torch.nn.Module):
    def forward(self, primals_1: "f32[2]", tangents_1: "f32[2]"):
        # File: /app.py:3 in f, code: return x.relu()
        relu: "f32[2]" = torch.ops.aten.relu.default(primals_1)

        # Backward of forward node: File: /app.py:3 in f, code: return x.relu()
        alias_1: "f32[2]" = torch.ops.aten.alias.default(relu)
        le: "b8[2]" = torch.ops.aten.le.Scalar(alias_1, 0)
        return (relu, le)
"""
    stage, = Provenance(CompiledGraph("g", "g", IDS, "x", (GraphStage("Joint_graph", 0, text),))).stages
    assert (stage.origins["le"].location.line, stage.origins["le"].captured) == (3, "")


def test_nodes_that_torchs_own_code_made_lead_to_the_line_that_called_it():
    text = '''\
class GraphModule(torch.nn.Module):
    def forward(self, x):
        # File: /torch/_functorch/vmap.py:173 in helper, code: return _add(arg)
        _add: "f32[]" = torch._add(x)
        return (_add,)
'''
    line = SourceLocation("/home/me/model.py", 8, "f", "y = torch.vmap(g)(x)")
    stage = GraphStage("Captured_Graph", 0, text, callers=(Caller(line, ("_add",)),))
    provenance = Provenance(CompiledGraph("g", "g", IDS, "eager", (stage,)))
    assert provenance.stages[0].origins["_add"].location == line
    assert "model.py:8  add -> f32[]" in outline(provenance, provenance.stages[0], "g")


GRADIENTS_CAPTURED = '''
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[2]"):
        # File: m.py:1 in f, code: u = x.sin()
        u: "f32[2]" = x.sin()
        # No stacktrace found for following nodes
        _enter = torch._C._functorch._grad_increment_nesting()
        # File: m.py:1 in f, code: u = x.sin()
        v: "f32[2]" = u.cos()
        # File: /torch/_functorch/eager_transforms.py:15 in g, code: _autograd_grad(
        _autograd_grad = torch._functorch.eager_transforms._autograd_grad((v,), [x])
        a: "f32[2]" = _autograd_grad[0]
        # File: m.py:4 in f, code: b = a * 2
        b: "f32[2]" = a * 2
        # File: /torch/_functorch/eager_transforms.py:15 in g, code: _autograd_grad(
        _autograd_grad_1 = torch._functorch.eager_transforms._autograd_grad((b,), [x])
        c: "f32[2]" = _autograd_grad_1[0]
        return (c,)
'''
GRADIENTS_LATER = '''
class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[2]"):
        # File: m.py:1 in f, code: u = x.sin()
        sin: "f32[2]" = torch.ops.aten.sin.default(arg0_1)
        # File: /torch/_functorch/eager_transforms.py:15 in g, code: _autograd_grad(
        cos: "f32[2]" = torch.ops.aten.cos.default(arg0_1)
        mul: "f32[2]" = torch.ops.aten.mul.Tensor(sin, cos)
        return (mul,)
'''
GRADIENTS_BACKWARD = '''
class GraphModule(torch.nn.Module):
    def forward(self, mul: "f32[2]", tangents_1: "f32[2]"):
        mul_1: "f32[2]" = torch.ops.aten.mul.Tensor(tangents_1, mul)
        return (mul_1,)
'''


def test_layers_of_saved_values_stand_in_order():
    """A backward graph is given them in any order."""
    assert _modules(["layers.1.fc", "layers.0.fc", "layers.2.fc"]) == "layers.0-2.fc"


@pytest.mark.parametrize("second, told", [(5, "eager_transforms.py:15"), (3, "m.py:3")])
def test_of_gradients_for_several_lines_it_is_not_said_for_which(second, told):
    """Torch names a line of its own for all of them, and each becomes any number of operations."""
    def caller(line, *nodes):
        return Caller(SourceLocation("m.py", line, "f", ""), nodes)

    stages = (GraphStage("Captured_Graph", 0, GRADIENTS_CAPTURED, callers=(
        caller(3, "_autograd_grad", "a"), caller(second, "_autograd_grad_1", "c"))),
        GraphStage("Forward_graph", 0, GRADIENTS_LATER), GraphStage("Backward_graph", 0, GRADIENTS_BACKWARD))
    provenance = Provenance(CompiledGraph("g", "g", IDS, "aot_eager", stages))
    assert f"{told}  cos, mul -> f32[2]" in outline(provenance, provenance.stages[1], "g")
    assert f"        8 B  mul  f32[2]  {told}: mul" in saved_for_backward(provenance, provenance.stages[1])
    captured = outline(provenance, provenance.stages[0], "g")
    assert "m.py:3  autograd_grad, getitem -> f32[2]" in captured
    assert "m.py:1  sin, grad_increment_nesting, cos -> f32[2]" in captured  # (torch names no line for the second)
    assert "# An operation of which torch names no line is written to the line before it" in captured


#: Two units that stand on one line; another line's operation stands between the parts of the first of them, as
#: Inductor's passes put it.
UNITS_CAPTURED = '''
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[2, 8, 4, 4]", e: "f32[1, 8]", w: "f32[8, 8]"):
        # File: m.py:1 in f, code: e = e * 2
        e_1: "f32[1, 8]" = e * 2
        # File: m.py:2 in f, code: x = x + silu(norm(x)) + linear(e)
        group_norm: "f32[2, 8, 4, 4]" = torch.nn.functional.group_norm(x, 4)
        silu: "f32[2, 8, 4, 4]" = torch.nn.functional.silu(group_norm)
        linear: "f32[1, 8]" = torch._C._nn.linear(e_1, w)
        add: "f32[2, 8, 4, 4]" = silu + linear
        group_norm_1: "f32[2, 8, 4, 4]" = torch.nn.functional.group_norm(add, 4)
        silu_1: "f32[2, 8, 4, 4]" = torch.nn.functional.silu(group_norm_1)
        return (silu_1,)
'''
UNITS_LATER = '''
class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[2, 8, 4, 4]", arg1_1: "f32[1, 8]", arg2_1: "f32[8, 8]"):
        # File: m.py:2 in f, code: x = x + silu(norm(x)) + linear(e)
        view: "f32[2, 4, 2, 16]" = torch.ops.aten.reshape.default(arg0_1, [2, 4, 2, 16])
        var_mean = torch.ops.aten.var_mean.correction(view, [2, 3], correction = 0, keepdim = True)
        getitem: "f32[2, 4, 1, 1]" = var_mean[0]
        getitem_1: "f32[2, 4, 1, 1]" = var_mean[1]
        rsqrt: "f32[2, 4, 1, 1]" = torch.ops.aten.rsqrt.default(getitem)
        mul: "f32[2, 8, 4, 4]" = torch.ops.aten.mul.Tensor(arg0_1, rsqrt)
        unsqueeze: "f32[2, 8, 1, 1]" = torch.ops.aten.unsqueeze.default(getitem_1, 3)
        add: "f32[2, 8, 4, 4]" = torch.ops.aten.add.Tensor(mul, unsqueeze)
        neg: "f32[2, 8, 4, 4]" = torch.ops.aten.neg.default(add)
        exp: "f32[2, 8, 4, 4]" = torch.ops.aten.exp.default(neg)
        add_1: "f32[2, 8, 4, 4]" = torch.ops.aten.add.Tensor(exp, 1)
        div: "f32[2, 8, 4, 4]" = torch.ops.aten.div.Tensor(add, add_1)
        # File: m.py:1 in f, code: e = e * 2
        mul_1: "f32[1, 8]" = torch.ops.aten.mul.Tensor(arg1_1, 2)
        # File: m.py:2 in f, code: x = x + silu(norm(x)) + linear(e)
        view_1: "f32[1, 8]" = torch.ops.aten.reshape.default(mul_1, [1, 8])
        permute: "f32[8, 8]" = torch.ops.aten.permute.default(arg2_1, [1, 0])
        mm: "f32[1, 8]" = torch.ops.aten.mm.default(view_1, permute)
        return (div, mm)
'''


def test_what_fits_two_neighbours_goes_where_only_one_value_goes_on():
    graph = CompiledGraph("g", "g", IDS, "inductor", (
        GraphStage("Captured_Graph", 0, UNITS_CAPTURED), GraphStage("AFTER_POST_GRAD", 0, UNITS_LATER)))
    origins = Provenance(graph).stage("AFTER_POST_GRAD").origins
    of = {captured: [name for name, origin in origins.items() if origin.captured == captured]
          for captured in ("e_1", "group_norm", "silu", "linear")}
    assert of == {
        "e_1": ["mul_1"], "silu": ["neg", "exp", "add_1", "div"], "linear": ["view_1", "permute", "mm"],
        "group_norm": ["view", "var_mean", "getitem", "getitem_1", "rsqrt", "mul", "unsqueeze", "add"]}


@pytest.mark.parametrize("names, expected", [
    ("mul sub mul " * 13, "(mul, sub, mul) x13"),
    ("view " + "select mul select add " * 5, "view, (select, mul, select, add) x5"),
    ("mul mul add", "mul x2, add"),
    ("".join(f"operation_{number} " for number in range(12)), ", ".join(
        f"operation_{number}" for number in range(7)) + ", ... (12 operations)")])
def test_operations_that_repeat_stand_once_and_no_word_is_cut(names, expected):
    nodes = [Node(f"n{at}", "call_function", f"torch.ops.aten.{name}.default") for at, name in enumerate(names.split())]
    assert outlines.operations(nodes) == expected
