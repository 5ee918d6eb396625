"""Nodes of a graph from torch's print of it."""

import collections

import pytest

from depyf.model.graph import DTYPES, Node
from depyf.model.graph_text import read_graph, tensor_type
from depyf.torch_text.wrapping import legal_graph

CAPTURED = '''
class GraphModule(torch.nn.Module):
    def forward(self, s27: "Sym(s27)", L_x_: "f32[s27, 8][8, 1]cuda:0", L_w_: "bf16[8]"):
        l_x_ = L_x_
        l_w_ = L_w_

         # File: /a/m.py:12 in forward, code: x = self.q(x)  # in, code: order
        linear: "f32[s27, 8][8, 1]cuda:0" = torch._C._nn.linear(l_x_, l_w_, None);  l_w_ = None
        relu: "f32[s27, 8]" = linear.relu();  linear = None

         # No stacktrace found for following nodes
        _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None

         # File: /a/m.py:14 in helper, code: x += y
        relu += l_x_;  iadd: "f32[s27, 8]" = relu;  relu = None
        iadd[(0, slice(None, None, None))] = 1;  setitem = iadd
        split = torch.functional.split(iadd, 2)
        getitem = split[0]
        size = iadd.size(0);  iadd = None
        add: "Sym(s27 + 1)" = size + 1
        neg = ~getitem
        wrap_body_0 = self.wrap_body_0
        checkpoint = torch.ops.higher_order.tag_activation_checkpoint(
            wrap_body_0, neg,
            use_reentrant = False)
        module = self.L__self___q(neg)
        odd = getattr(self, "0").weight
        shape = neg.shape
        return (checkpoint, add, shape, odd, module)

    class wrap_body_0(torch.nn.Module):
        def forward(self, neg: "f32[1]"):
             # File: /a/m.py:20 in inner, code: return x.sin()
            sin: "f32[1]" = neg.sin();  neg = None
            return (sin,)
'''


def by_name(graph):
    return {node.name: node for node in graph.nodes}


def test_what_a_print_says():
    graph = read_graph(CAPTURED)
    nodes = by_name(graph)
    assert [node.name for node in graph.nodes] == [
        "s27", "l_x_", "l_w_", "linear", "relu", "_set_grad_enabled", "iadd", "setitem", "split", "getitem", "size",
        "add", "neg", "wrap_body_0", "checkpoint", "module", "odd", "shape", "output"]
    assert {node.name: node.op for node in graph.nodes if node.op != "call_function"} == {
        "s27": "placeholder", "l_x_": "placeholder", "l_w_": "placeholder", "relu": "call_method",
        "size": "call_method", "wrap_body_0": "get_attr", "module": "call_module", "odd": "get_attr",
        "output": "output"}
    assert {name: nodes[name].target for name in ("linear", "relu", "iadd", "setitem", "getitem", "add", "neg", "odd")
            } == {"linear": "torch._C._nn.linear", "relu": "relu", "iadd": "operator.iadd",
                  "setitem": "operator.setitem", "getitem": "operator.getitem", "add": "operator.add",
                  "neg": "operator.invert", "odd": "0.weight"}
    assert nodes["linear"].inputs == ("l_x_", "l_w_")
    assert nodes["iadd"].inputs == ("relu", "l_x_")
    assert nodes["checkpoint"].inputs == ("wrap_body_0", "neg")
    assert nodes["output"].inputs == ("checkpoint", "add", "shape", "odd", "module")
    assert (nodes["linear"].type.dtype, nodes["linear"].type.shape, nodes["linear"].type.stride,
            nodes["linear"].type.device) == ("float32", ("s27", "8"), ("8", "1"), "cuda:0")
    assert nodes["add"].type.text == "Sym(s27 + 1)" and nodes["add"].type.shape is None
    place = nodes["linear"].location
    assert (place.filename, place.line, place.function) == ("/a/m.py", 12, "forward")
    assert place.text.startswith("x = self.q(x)")
    assert nodes["_set_grad_enabled"].location is None
    assert nodes["split"].location.function == "helper"
    assert CAPTURED.split("\n")[nodes["size"].line - 1].strip().startswith("size =")
    inner, = graph.subgraphs
    assert inner.name == "wrap_body_0" and [node.name for node in inner.nodes] == ["neg", "sin", "output"]


JOINT = '''
class inner_f(torch.nn.Module):
    def forward(
        self,
        primals,
        tangents,
    ):
        primals_1: "i64[]"  # PlainAOTInput(idx=0)
        tangents_1: "f32[2]"  # TangentAOTInput
        primals_1, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
        # File: m.py:1 in f, code: y
        mul: "f32[2]" = torch.ops.aten.mul.Tensor(tangents_1, primals_1)
        return pytree.tree_unflatten([
            mul,  # GradAOTOutput
            None,
        ], self._out_spec)
'''
BOXED = '''
class GraphModule(torch.nn.Module):
    def forward(self, args_list):
        args_iter = iter(args_list)
        primals_1 = next(args_iter)
        args_list.clear()
        # Annotation: {'a': 1} recompute: MUST_SAVE Backward of forward node: File: m.py:1 in f, code: y
        call_boxed_arg_0 = [primals_1];  primals_1 = None
        call: "f32[2]" = torch.ops.higher_order.call(call_boxed_arg_0, 3);  call_boxed_arg_0 = None
        return [call]
'''


def test_arguments_that_come_as_trees_and_as_a_list():
    nodes = by_name(read_graph(JOINT))
    assert list(nodes) == ["primals_1", "tangents_1", "mul", "output"]
    assert nodes["tangents_1"].type.shape == ("2",) and nodes["primals_1"].type.shape == ()
    assert nodes["mul"].inputs == ("tangents_1", "primals_1") and nodes["output"].inputs == ("mul",)
    nodes = by_name(read_graph(BOXED))
    assert list(nodes) == ["primals_1", "call", "output"]
    assert nodes["call"].inputs == ("primals_1",)
    assert nodes["call"].location.line == 1


@pytest.mark.parametrize(("text", "short", "stride", "device"), [
    ("f32[2, s27*2, Max(1, s0)][s27, 1, 1]cuda:1", "f32[2, s27*2, Max(1, s0)]", ("s27", "1", "1"), "cuda:1"),
    ("b8[][]cpu", "b8[]", (), "cpu"), ("new8[3]", "new8[3]", None, ""),
    ("DTensor(bf16[4][1]cpu, S(0))", "bf16[4]", ("1",), "cpu"), ("Sym(u0)", "Sym(u0)", None, ""),
    ("f32[2", "f32[2", None, ""), ("", "", None, "")])
def test_types(text, short, stride, device):
    parsed = tensor_type(text)
    assert (parsed.short, parsed.stride, parsed.device) == (short, stride, device)


@pytest.mark.parametrize("text", [
    "", "x", "class A: pass", "def forward(self): return (", "class A(B):\n  def forward(self, x", "\0", "\udc80 = 1",
    "# only a comment", "(" * 5000, "class A:\n    def forward(self, x):\n        x.y = 3\n        del x\n"])
def test_no_text_makes_it_fail(text):
    assert all(isinstance(node, Node) for node in read_graph(text).nodes)


def test_a_text_that_was_cut_off_gives_the_nodes_that_it_has():
    whole = [node.name for node in read_graph(CAPTURED).nodes]
    cut = CAPTURED[: CAPTURED.index("use_reentrant")]
    assert [node.name for node in read_graph(cut).nodes] == whole[: whole.index("checkpoint")]
    assert [node.name for node in read_graph(legal_graph(cut)).nodes] == whole[: whole.index("checkpoint")]


def test_an_object_in_the_text_takes_no_node_away():
    text = CAPTURED.replace("l_w_, None)", "l_w_, mesh = DeviceMesh(<2>))")
    assert legal_graph(text) != text.strip("\n") + "\n"
    assert [node.name for node in read_graph(legal_graph(text)).nodes] == [node.name for node in read_graph(CAPTURED).nodes]
    assert "mesh = DeviceMesh(<2>)" in by_name(read_graph(text))["linear"].value


def test_dtypes_are_torchs():
    torch = pytest.importorskip("torch")
    abbreviations = pytest.importorskip("torch.utils._dtype_abbrs").dtype_abbrs
    for dtype, short in abbreviations.items():
        if short in DTYPES:
            assert DTYPES[short] == str(dtype).removeprefix("torch.")
    assert DTYPES[abbreviations[torch.bfloat16]] == "bfloat16"


def test_every_node_of_a_live_graph_is_read(monkeypatch):
    torch = pytest.importorskip("torch")
    from torch._dynamo.backends.common import aot_autograd

    seen = collections.Counter()

    def compare(module, graph):
        nodes = list(module.graph.nodes)
        assert [(n.name, n.op) for n in nodes] == [(n.name, n.op) for n in graph.nodes]
        for live, read in zip(nodes, graph.nodes):
            if live.op != "output":
                assert {n.name for n in live.all_input_nodes} == set(read.inputs), read
            value = live.meta.get("val", live.meta.get("example_value"))
            if isinstance(value, torch.Tensor):
                assert (f"torch.{read.type.dtype}", read.type.shape, read.type.stride, read.type.device) == (
                    str(value.dtype), tuple(map(str, value.shape)), tuple(map(str, value.stride())),
                    str(value.device))
            if live.stack_trace and read.is_call:
                assert read.location is not None
            seen["nodes"] += 1
        children = [(n, m) for n, m in module.named_children() if isinstance(m, torch.fx.GraphModule)]
        assert [name for name, _ in children] == [inner.name for inner in graph.subgraphs]
        for (_, child), inner in zip(children, graph.subgraphs):
            seen["inner graphs"] += 1
            compare(child, inner)

    def check(module, *_):
        text = module.print_readable(print_output=False, include_stride=True, include_device=True)
        compare(module, read_graph(legal_graph(text)))
        seen["graphs"] += 1
        return module

    inner = aot_autograd(fw_compiler=check)

    def backend(module, inputs):
        check(module)
        return inner(module, inputs)

    def f(x, y):
        x = x + 1
        x += y
        z = torch.zeros(4, 4)
        z[0] = x[0]
        chosen = torch.cond(x.sum() > 0, lambda a: a.sin() + y, lambda a: a.cos(), (x,))
        largest, where = torch.max(chosen, dim=0)
        return chosen.sum() + largest.sum(), ~(x > 0), -z, where, x.shape[0] * 2, torch.split(x, 2), x.T

    x, y = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
    torch._dynamo.reset()
    torch.compile(f, backend=backend, dynamic=True)(x, y)[0].backward()
    assert seen["graphs"] >= 3 and seen["inner graphs"] >= 4 and seen["nodes"] > 60


#: Names that are also those of arguments and attributes, a call of what a call gives, what is put together before.
CALLS = '''
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[2]", type: "f32[2]"):
        l_x_ = L_x_
        dim = l_x_.mean(-1, keepdim = True);  l_x_ = None
        a: "f32[2]" = torch.ops.aten.sum.dim(dim, dim = [1], dtype = torch.dim, device = device(type='dim'))
        b = torch.f(a)(dim)
        args = [a, dim]
        c = torch.ops.g.default(args, a == dim, type=type)
        c += a;  iadd = c;  c = None
        d = self.inner.linear(iadd, a + dim);  iadd = None
        f = self.inner(torch.g(torch.h(a), "a"), d[0].b, 'it''s dim')
        return (f, d, b)
'''


#: Calls and other names alone; the same in a graph within the graph; a string that looks like statements.
ALONE = '''
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[2]"):
        l_x_ = L_x_

        # File: model.py:3 in f, code: y = x.sin()
        y: "f32[2]" = l_x_.sin()
        # No stacktrace found for following nodes
        z: "f32[2]" = torch.cos(y);  y = None
'''
WITHIN = ALONE + '''        body = self.body;  body = None
        z += l_x_
        iadd = z
        return (iadd,)

        # a comment
    class body(torch.nn.Module):
        def forward(self, L_y_: "f32[2]"):
            l_y_ = L_y_
            # File: model.py:4 in g, code: return x.cos()
            cos: "f32[2]" = l_y_.cos();  l_y_ = None
            same = cos
            return (same, True)

def other(x):
    a = x.exp()
    return a
'''
STRING = ALONE + """        t = torch.f(z, '''
        u = torch.g(z)
        ''')
        return (t, z)
"""


@pytest.mark.parametrize(("text", "nodes"), [
    (CALLS, ["l_x_ type dim a b c iadd d f output"]), (WITHIN, ["l_x_ y z body iadd output", "l_y_ cos output"]),
    (STRING, ["l_x_ y z t output"])])
def test_names_that_are_also_those_of_arguments_and_a_string_that_looks_like_statements(text, nodes):
    assert [" ".join(node.name for node in graph.nodes) for _, graph in read_graph(text).walk()] == nodes
    by = {node.name: node for node in read_graph(CALLS).nodes}
    assert by["a"].inputs == ("dim",) and by["c"].inputs == ("a", "dim", "type") and by["f"].target == "inner"


@pytest.mark.parametrize("print_of", [
    "rng = torch.ops.higher_order.run_and_save_rng_state(torch.ops.aten.bernoulli.p, x, 0.5)",
    "rng = torch.ops.higher_order.run_and_save_rng_state(\n            torch.ops.aten.bernoulli.p, x,\n            0.5)"])
def test_a_call_that_runs_an_operator_has_the_line_of_its_items(print_of):
    """Torch's partitioner copies nothing of the call that it puts such a one in the place of."""
    graph = read_graph(f'''
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[4]"):
        # No stacktrace found for following nodes
        {print_of}
        state: "u8[5056]" = rng[0]
        # File: m.py:8 in f, code: x = dropout(x)
        value = rng[1]
        getitem: "f32[4]" = value[0]
        return (state, getitem)
''')
    nodes = by_name(graph)
    assert (nodes["rng"].runs, nodes["rng"].inputs) == ("torch.ops.aten.bernoulli.p", ("x",))
    assert nodes["rng"].location.line == 8
    assert nodes["getitem"].runs == ""
