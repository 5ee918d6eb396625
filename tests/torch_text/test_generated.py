"""Texts of generated modules: what is defined, what is called, what flows, and which nodes that makes.

The texts were written by hand in the form that torch 2.11 and 2.13 write (torch/_inductor/codegen/wrapper.py, cpp.py,
triton.py; ``get_kernel_metadata`` in utils.py for the comments; the form of whole Triton modules was compared with
those that public repositories hold as files).
"""

import pytest

from depyf.model.graph_text import read_graph
from depyf.provenance.graph_provenance import Provenance
from depyf.provenance.kernel_mapping import assign, graph_kernels
from depyf.records.model import CompiledGraph, CompileId, GraphStage, Kernel, KernelCall
from depyf.torch_text.generated import Buffer, read_module
from depyf.views.dump.outline import _Call, _folded_calls, kernel_outline, operations

IDS = CompileId(0, 0)

CAPTURED = '''
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[8, 16]", L_w_: "f32[16, 16]"):
        l_x_ = L_x_
        l_w_ = L_w_
        # File: m.py:1 in f, code: a = x.sin() + 1
        sin: "f32[8, 16]" = l_x_.sin()
        a: "f32[8, 16]" = sin + 1
        # File: m.py:2 in f, code: b = a @ w
        b: "f32[8, 16]" = a @ l_w_
        # File: m.py:3 in f, code: c = b.relu()
        c: "f32[8, 16]" = b.relu()
        # File: m.py:4 in f, code: d = c @ w
        d: "f32[8, 16]" = c @ l_w_
        # File: m.py:5 in f, code: return d.relu().sum(1)
        relu_1: "f32[8, 16]" = d.relu()
        sum_1: "f32[8]" = relu_1.sum(1)
        return (sum_1,)
'''
POST_GRAD = '''
class GraphModule(torch.nn.Module):
    def forward(self, arg0_1: "f32[8, 16]{d}", arg1_1: "f32[16, 16]{d}"):
        # File: m.py:1 in f, code: a = x.sin() + 1
        sin: "f32[8, 16]{d}" = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
        add: "f32[8, 16]{d}" = torch.ops.aten.add.Tensor(sin, 1);  sin = None
        # File: m.py:2 in f, code: b = a @ w
        mm: "f32[8, 16]{d}" = torch.ops.aten.mm.default(add, arg1_1);  add = None
        # File: m.py:3 in f, code: c = b.relu()
        relu: "f32[8, 16]{d}" = torch.ops.aten.relu.default(mm);  mm = None
        # File: m.py:4 in f, code: d = c @ w
        mm_1: "f32[8, 16]{d}" = torch.ops.aten.mm.default(relu, arg1_1);  relu = arg1_1 = None
        # File: m.py:5 in f, code: return d.relu().sum(1)
        relu_1: "f32[8, 16]{d}" = torch.ops.aten.relu.default(mm_1);  mm_1 = None
        sum_1: "f32[8]{d}" = torch.ops.aten.sum.dim_IntList(relu_1, [1]);  relu_1 = None
        return (sum_1,)
'''

CPP = """
async_compile = AsyncCompile()
cpp_fused_add_sin_0 = async_compile.cpp_pybinding(['const float*', 'float*'], r'''
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0)
{ for(int64_t x0=0; x0<128; x0+=1) { out_ptr0[x0] = std::sin(in_ptr0[x0]) + 1; } }
''')


cpp_fused_relu_1 = async_compile.cpp_pybinding(['float*'], r'''
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(float* in_out_ptr0)
{ }
''')


cpp_fused_relu_sum_2 = async_compile.cpp_pybinding(['const float*', 'float*'], r'''
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0)
{ }
''')


class Runner:
    def call(self, args):
        arg0_1, arg1_1 = args
        args.clear()
        assert_size_stride(arg0_1, (8, 16), (16, 1), 'input')
        buf0 = empty_strided_cpu((8, 16), (16, 1), torch.float32)
        cpp_fused_add_sin_0(arg0_1, buf0)
        del arg0_1
        buf1 = empty_strided_cpu((8, 16), (16, 1), torch.float32)
        # Topologically Sorted Source Nodes: [sin, a, b], Original ATen: [aten.sin, aten.add, aten.mm]
        extern_kernels.mm(buf0, arg1_1, out=buf1)
        buf2 = buf1; del buf1  # reuse
        cpp_fused_relu_1(buf2)
        buf3 = buf0; del buf0  # reuse
        # Topologically Sorted Source Nodes: [c, d], Original ATen: [aten.relu, aten.mm]
        extern_kernels.mm(buf2, arg1_1, out=buf3)
        del arg1_1
        buf4 = empty_strided_cpu((8, ), (1, ), torch.float32)
        cpp_fused_relu_sum_2(buf3, buf4)
        del buf3
        return (buf4, )

runner = Runner(partitions=[])
call = runner.call
"""

TRITON = """
async_compile = AsyncCompile()


# kernel path: /tmp/torchinductor_me/ab/cabc.py
# Topologically Sorted Source Nodes: [sin, a], Original ATen: [aten.sin, aten.add]
# Source node to ATen node mapping:
#   a => add
#   sin => sin
# Graph fragment:
#   %arg0_1 : Tensor "f32[8, 16][16, 1]cuda:0" = PlaceHolder[target=arg0_1]
#   %sin : Tensor "f32[8, 16][16, 1]cuda:0"[num_users=1] = call_function[target=torch.ops.aten.sin.default](args = (%arg0_1,), kwargs = {})
#   %add : Tensor "f32[8, 16][16, 1]cuda:0"[num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%sin, 1), kwargs = {})
#   return %add
triton_poi_fused_add_sin_0 = async_compile.triton('triton_poi_fused_add_sin_0', '''
import triton
import triton.language as tl

@triton_heuristics.pointwise(size_hints={'x': 128}, filename=__file__, triton_meta={}, inductor_meta={})
@triton.jit
def triton_poi_fused_add_sin_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 128
    tl.store(out_ptr0 + (x0), tmp3, xmask)
''', device_str='cuda')


# kernel path: /tmp/torchinductor_me/cd/ccde.py
# Topologically Sorted Source Nodes: [c], Original ATen: [aten.relu]
# Source node to ATen node mapping:
#   c => relu
# Graph fragment:
#   %relu : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%mm,), kwargs = {})
triton_poi_fused_relu_1 = async_compile.triton('triton_poi_fused_relu_1', '''
@triton.jit
def triton_poi_fused_relu_1(in_out_ptr0, xnumel, XBLOCK : tl.constexpr):
    pass
''', device_str='cuda')


async_compile.wait(globals())
del async_compile

class Runner:
    def call(self, args):
        arg0_1, arg1_1 = args
        args.clear()
        assert_size_stride(arg0_1, (8, 16), (16, 1))
        with torch.cuda._DeviceGuard(0):
            torch.cuda.set_device(0)
            buf0 = empty_strided_cuda((8, 16), (16, 1), torch.float32)
            # Topologically Sorted Source Nodes: [sin, a], Original ATen: [aten.sin, aten.add]
            stream0 = get_raw_stream(0)
            triton_poi_fused_add_sin_0.run(arg0_1, buf0, 128, stream=stream0)
            del arg0_1
            buf1 = empty_strided_cuda((8, 16), (16, 1), torch.float32)
            # Topologically Sorted Source Nodes: [b], Original ATen: [aten.mm]
            extern_kernels.mm(buf0, arg1_1, out=buf1)
            buf2 = buf1; del buf1  # reuse
            # Topologically Sorted Source Nodes: [c], Original ATen: [aten.relu]
            stream0 = get_raw_stream(0)
            triton_poi_fused_relu_1.run(buf2, 128, stream=stream0)
            buf3 = buf0; del buf0  # reuse
            # Topologically Sorted Source Nodes: [d], Original ATen: [aten.mm]
            extern_kernels.mm(buf2, arg1_1, out=buf3)
            del arg1_1
            buf4 = buf3; del buf3  # reuse
            # Topologically Sorted Source Nodes: [relu_1], Original ATen: [aten.relu]
            stream0 = get_raw_stream(0)
            triton_poi_fused_relu_1.run(buf4, 128, stream=stream0)
        return (buf4, )
"""


def graph(kernel, device="cpu", post_grad=POST_GRAD):
    text = post_grad.replace("{d}", f"[16, 1]{device}")
    return CompiledGraph("__compiled_fn_1", "x", IDS, "inductor", (
        GraphStage("Captured_Graph", 0, CAPTURED), GraphStage("AFTER_POST_GRAD", 0, text)),
        (Kernel(0, kernel, compile_id=IDS),))


def calls(module):
    return [(call.name, call.nodes, call.inferred) for call in module.calls]


def test_cpp_kernels_are_inferred_from_what_flows():
    kernel, = graph_kernels(graph(CPP))
    assert kernel.stage == "AFTER_POST_GRAD.0"
    assert calls(kernel) == [
        ("cpp_fused_add_sin_0", ("sin", "add"), True), ("extern_kernels.mm", ("mm",), True),
        ("cpp_fused_relu_1", ("relu",), True), ("extern_kernels.mm", ("mm_1",), True),
        ("cpp_fused_relu_sum_2", ("relu_1", "sum_1"), True)]
    lines = CPP.split("\n")
    for call in kernel.calls:
        assert f"{call.name}(" in lines[call.call_line - 1]
        assert (call.kind, call.line) == ("extern", 0) or lines[call.line - 1].startswith(f"{call.name} = ")
    assert kernel.calls[1].sources == ("sin", "a", "b")


def test_of_triton_kernels_torch_says_the_first_call_and_the_next_is_inferred():
    post_grad = POST_GRAD.replace('''        sum_1: "f32[8]{d}" = torch.ops.aten.sum.dim_IntList(relu_1, [1]);  relu_1 = None
        return (sum_1,)''', "        return (relu_1,)")
    kernel, = graph_kernels(graph(TRITON, "cuda:0", post_grad))
    assert calls(kernel) == [
        ("triton_poi_fused_add_sin_0", ("sin", "add"), False), ("extern_kernels.mm", ("mm",), True),
        ("triton_poi_fused_relu_1", ("relu",), False), ("extern_kernels.mm", ("mm_1",), True),
        ("triton_poi_fused_relu_1", ("relu_1",), True)]
    assert {call.kind for call in kernel.calls} == {"Triton", "extern"}
    module = read_module(TRITON)
    assert module.definitions["triton_poi_fused_add_sin_0"].parameters == ("in", "out")
    assert module.definitions["triton_poi_fused_relu_1"].parameters == ("in_out",)


def test_from_kernels_to_lines_and_to_the_captured_graph():
    provenance = Provenance(graph(CPP))
    kernel, = provenance.kernels
    origins = [[stage.origins[name] for stage, name in provenance.nodes_of(kernel, call)] for call in kernel.calls]
    assert {origin.location.line for origin in origins[0]} == {1}
    assert [number for number, of_call in enumerate(origins) if 3 in {each.location.line for each in of_call}] == [2]
    assert [call.name for call, of_call in zip(kernel.calls, origins) if "a" in {each.captured for each in of_call}] == [
        "cpp_fused_add_sin_0"]
    (stage, name), *_ = provenance.nodes_of(kernel, kernel.calls[3])
    assert stage.origins[name].captured == "d"
    text = kernel_outline(provenance, kernel, "title")
    assert "  cpp_fused_relu_sum_2  (C++, line " in text
    assert "          m.py:5  relu, sum -> f32[8]\n" in text


def test_an_outline_names_modules_and_folds_the_layers_that_are_alike():
    calls = [(call, tuple((f"m.py:{line}", module, "mm -> f32[4]") for line, module in lines)) for call, lines in (
        ("norm", [(1, "h.0.norm")]), ("mm", [(2, "h.0.mlp.0"), (3, "h.0")]),
        ("norm", [(1, "h.1.norm")]), ("mm", [(2, "h.1.mlp.0"), (3, "h.1")]),
        ("norm", [(1, "h.2.norm")]), ("mm", [(2, "h.2.mlp.0"), (3, "h.2")]),
        ("mm", [(5, "head")]), ("mm", [(5, "head")]), ("mm", [(6, "")]))]
    shown = list(_folded_calls([_Call(KernelCall(name, "extern", 0, 10 + at, (), False), lines)
                          for at, (name, lines) in enumerate(calls)]))
    assert [line.strip() for line in shown] == [
        "10  norm  (extern, said by torch)", "m.py:1 in h.0.norm  mm -> f32[4]",
        "11  mm  (extern, said by torch)", "m.py:2 in h.0.mlp.0  mm -> f32[4]", "m.py:3 in h.0  mm -> f32[4]",
        "12  ... the 2 calls above, 2 more times, for h.1-2, to line 15",
        "16  mm  (extern, said by torch)", "m.py:5 in head  mm -> f32[4]",
        "17  ... the call above, 1 more time, to line 17",
        "18  mm  (extern, said by torch)", "m.py:6  mm -> f32[4]"]


def test_values_between_fused_kernels_are_found_by_what_each_kernel_reads():
    """The second kernel reads ``x`` only through a value of the first; sizes alone would allow three nodes."""
    module = read_module("""
first = async_compile.cpp_pybinding([], r'''
extern "C" void kernel(const float* in_ptr0, const float* in_ptr1, float* out_ptr0, float* out_ptr1) {}''')
second = async_compile.cpp_pybinding([], r'''
extern "C" void kernel(const float* in_ptr0, const float* in_ptr1, float* out_ptr0) {}''')
def call(args):
    x, w, v = args
    buf0 = empty_strided_cpu((4, 4), (4, 1), torch.float32)
    buf1 = empty_strided_cpu((4, ), (1, ), torch.float32)
    first(x, w, buf0, buf1)
    buf2 = empty_strided_cpu((4, 4), (4, 1), torch.float32)
    second(buf0, v, buf2)
    return (buf1, buf2, )
""")
    text = '''
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[4, 4]", w: "f32[4, 4]", v: "f32[4, 4]"):
        sin: "f32[4, 4]" = torch.ops.aten.sin.default(x)
        mul: "f32[4, 4]" = torch.ops.aten.mul.Tensor(sin, w)
        sum_1: "f32[4]" = torch.ops.aten.sum.dim_IntList(mul, [1])
        add: "f32[4, 4]" = torch.ops.aten.add.Tensor(mul, v)
        cos: "f32[4, 4]" = torch.ops.aten.cos.default(add)
        return (sum_1, cos)
'''
    assert assign(module, read_graph(text)) == [(("sin", "mul", "sum_1"), True), (("add", "cos"), True)]


def test_what_a_scatter_adds_to_is_computed_by_the_kernel_that_lays_it_out():
    module = read_module("""
fills = async_compile.cpp_pybinding([], r'''
extern "C" void kernel(const float* in_ptr0, float* out_ptr0, float* out_ptr1) {}''')
adds = async_compile.cpp_pybinding([], r'''
extern "C" void kernel(const float* in_ptr0, const int64_t* in_ptr1, float* out_ptr0) {}''')
def call(args):
    x, i = args
    buf0 = empty_strided_cpu((6, 4), (4, 1), torch.float32)
    buf1 = empty_strided_cpu((4, 4), (4, 1), torch.float32)
    fills(x, buf0, buf1)
    adds(buf1, i, buf0)
    return (buf0, buf1, )
""")
    text = '''
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[4, 4]", i: "i64[4]"):
        full: "f32[6, 4]" = torch.ops.aten.full.default([6, 4], 0)
        sin: "f32[4, 4]" = torch.ops.aten.sin.default(x)
        mul: "f32[4, 4]" = torch.ops.aten.mul.Tensor(sin, 2)
        index_put: "f32[6, 4]" = torch.ops.aten.index_put.default(full, [i], mul, True)
        return (index_put, sin)
'''
    assert assign(module, read_graph(text)) == [(("full", "sin"), True), (("mul", "index_put"), True)]


def test_a_call_by_name_is_no_other_operation_that_torch_names_above_it():
    """Above a call that runs an operator, torch names what flows into it."""
    module = read_module("""
first = async_compile.cpp_pybinding([], r'''
extern "C" void kernel(const float* in_ptr0, float* out_ptr0, float* out_ptr1) {}''')
def call(args):
    x, = args
    buf0 = empty_strided_cpu((4, 4), (4, 1), torch.float32)
    buf1 = empty_strided_cpu((4, 4), (4, 1), torch.float32)
    first(x, buf0, buf1)
    # Topologically Sorted Source Nodes: [q, sin], Original ATen: [aten.cos, aten.sin]
    buf2 = torch.ops.higher_order.run_and_save_rng_state(torch.ops.aten.attention.default, buf0, buf1)
    buf3 = buf2[1]
    return (buf3, )
""")
    text = '''
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[4, 4]"):
        cos: "f32[4, 4]" = torch.ops.aten.cos.default(x)
        sin: "f32[4, 4]" = torch.ops.aten.sin.default(x)
        run = torch.ops.higher_order.run_and_save_rng_state(torch.ops.aten.attention.default, cos, sin)
        getitem: "f32[4, 4]" = run[1]
        return (getitem,)
'''
    graph = read_graph(text)
    assert assign(module, graph) == [(("cos", "sin"), True), (("run", "getitem"), True)]
    assert operations(graph.nodes[-3:-1]) == "run_and_save_rng_state(attention), getitem -> f32[4, 4]"


def test_parts_of_a_buffer_and_results_of_several():
    module = read_module("""
parts = async_compile.cpp_pybinding([], r'''
extern "C" void kernel(const float* in_ptr0, const float* in_ptr1, float* out_ptr0, float* out_ptr1) {}''')
def partition_0(args):
    a, b = args
    buf0 = empty_strided_cpu((8, ), (1, ), torch.float32)
    buf1 = reinterpret_tensor(buf0, (4, ), (1, ), 0)  # alias
    buf2 = reinterpret_tensor(buf0, (4, ), (1, ), 4)  # alias
    parts(a, b, buf1, buf2)
    return (buf0, )
class Runner:
    def call(self, args):
        a, b = args
        (buf0,) = self.partitions[0]([a, b])
        buf3 = torch.ops.aten.sort.stable(buf0, stable=False)
        buf4 = buf3[0]
        buf5 = buf3[1]
        return (buf4, None, buf5, )
""")
    assert [launch.name for launch in module.launches] == ["parts", "torch.ops.aten.sort.stable"]
    assert module.buffers[module.launches[0].writes[0]] == Buffer(("8",), "float32")
    assert module.launches[1].reads == module.launches[0].writes
    assert len(module.results) == 3 and module.results[1] == ()
    text = '''
class GraphModule(torch.nn.Module):
    def forward(self, a: "f32[4]", b: "f32[4]"):
        neg: "f32[4]" = torch.ops.aten.neg.default(b)
        cat: "f32[8]" = torch.ops.aten.cat.default([a, neg])
        sort = torch.ops.aten.sort.stable(cat, stable = False)
        getitem: "f32[8]" = sort[0]
        getitem_1: "i64[8]" = sort[1]
        return (getitem, None, getitem_1)
'''
    assert [nodes for nodes, _ in assign(module, read_graph(text))] == [
        ("neg", "cat"), ("sort", "getitem", "getitem_1")]


def test_memory_that_is_used_again_is_another_value():
    """``buf3`` has the memory of ``buf0``, which is over: nothing of it is read."""
    module = read_module(CPP)
    first, mm, relu, mm_1, last = module.launches
    assert mm.reads[0] == first.writes[0] and relu.reads == mm.writes
    assert mm_1.reads[0] == relu.writes[0] and last.reads == mm_1.writes
    assert module.results == [last.writes]


def test_what_cannot_be_read_has_no_calls():
    for text in ("", "int main() {}", "def call(args):\n    return (", "def call(args):\n    return ()\n"):
        kernel, = graph_kernels(graph(text))
        assert kernel.calls == ()
    without = CompiledGraph("g", "g", IDS, "inductor", (), (Kernel(0, CPP),))
    kernel, = graph_kernels(without)
    assert kernel.stage == "" and [call.nodes for call in kernel.calls] == [()] * 5
    other = graph(CPP, post_grad=POST_GRAD.replace("arg0_1", "other"))
    assert graph_kernels(other)[0].stage == ""


def test_calls_that_repeat_are_folded():
    layers = "\n".join(f'''        # File: m.py:1 in f, code: x = x @ w
        mm_{i}: "f32[8, 8]" = torch.ops.aten.mm.default({"x" if not i else f"relu_{i - 1}"}, w)
        # File: m.py:2 in f, code: x = x.relu()
        relu_{i}: "f32[8, 8]" = torch.ops.aten.relu.default(mm_{i})''' for i in range(5))
    text = f'''
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[8, 8]", w: "f32[8, 8]"):
{layers}
        return (relu_4,)
'''
    body = "\n".join(f"""    buf{2 * i} = empty_strided_cpu((8, 8), (8, 1), torch.float32)
    extern_kernels.mm({"x" if not i else f"buf{2 * i - 1}"}, w, out=buf{2 * i})
    buf{2 * i + 1} = buf{2 * i}; del buf{2 * i}  # reuse
    cpp_fused_relu_0(buf{2 * i + 1})""" for i in range(5))
    module = f"""
cpp_fused_relu_0 = async_compile.cpp_pybinding(['float*'], r'''
extern "C" void kernel(float* in_out_ptr0) {{}}''')
def call(args):
    x, w = args
{body}
    return (buf9, )
"""
    provenance = Provenance(CompiledGraph("g", "g", IDS, "inductor", (GraphStage("AFTER_POST_GRAD", 0, text),),
                                          (Kernel(0, module),)))
    kernel, = provenance.kernels
    assert [call.nodes for call in kernel.calls] == [(f"{n}_{i}",) for i in range(5) for n in ("mm", "relu")]
    shown = kernel_outline(provenance, kernel, "title")
    assert shown.count("extern_kernels.mm  (extern)") == 1
    assert f"... the 2 calls above, 4 more times, to line {kernel.calls[-1].call_line}\n" in shown


@pytest.mark.parametrize(("operation", "told"), [
    ("aten.select.int(x, 0, 1)", "none: the graph only reshapes what it takes, or takes parts of it"),
    ("aten.neg.default(x)", "none that could be read")])
def test_why_a_module_calls_no_kernel(operation, told):
    text = f"""class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[4, 8][8, 1]cpu"):
        part: "f32[8][1]cpu" = torch.ops.{operation}
        return (part,)
"""
    module = "def call(args):\n    x, = args\n    return (reinterpret_tensor(x, (8, ), (1, ), 8), )\n"
    provenance = Provenance(CompiledGraph("g", "g", IDS, "inductor", (GraphStage("AFTER_POST_GRAD", 0, text),),
                                          (Kernel(0, module),)))
    assert f"# calls of kernels: {told}\n" in kernel_outline(provenance, provenance.kernels[0], "title")


def test_sizes_that_kernels_take_are_no_values():
    """Each kernel takes ``s77``; what one kernel computes is not what the next one reads for that."""
    module = read_module("""
first = async_compile.cpp_pybinding(['const float*', 'float*', 'const int64_t'], r'''
extern "C" void kernel(const float* in_ptr0, float* out_ptr0, const int64_t ks0) {}''')
second = async_compile.cpp_pybinding(['const float*', 'float*', 'const int64_t'], r'''
extern "C" void kernel(const float* in_ptr0, float* out_ptr0, const int64_t ks0) {}''')
def call(args):
    primals_1, x, w = args
    s77 = primals_1
    buf0 = empty_strided_cpu((s77, 4), (4, 1), torch.float32)
    first(x, buf0, s77)
    buf1 = empty_strided_cpu((s77, 4), (4, 1), torch.float32)
    extern_kernels.mm(buf0, w, out=buf1)
    buf2 = empty_strided_cpu((s77, 4), (4, 1), torch.float32)
    second(buf1, buf2, s77)
    return (buf0, buf2, s77, )
""")
    text = '''
class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "Sym(s77)", x: "f32[s77, 4]", w: "f32[4, 4]"):
        full: "f32[s77, 4]" = torch.ops.aten.full.default([primals_1, 4], 2.0)
        mul: "f32[s77, 4]" = torch.ops.aten.mul.Tensor(x, full)
        mm: "f32[s77, 4]" = torch.ops.aten.mm.default(mul, w)
        div: "f32[s77, 4]" = torch.ops.aten.div.Tensor(mm, primals_1)
        return (mul, div, primals_1)
'''
    assert [nodes for nodes, _ in assign(module, read_graph(text))] == [("full", "mul"), ("mm",), ("div",)]


def test_a_call_that_only_copies_what_a_library_takes_says_so():
    text = '''
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[8, 8]", w: "f32[8, 8]"):
        # File: m.py:1 in f, code: x = x @ w
        mm: "f32[8, 8]" = torch.ops.aten.mm.default(x, w)
        # File: m.py:2 in f, code: x = x.relu()
        relu: "f32[8, 8]" = torch.ops.aten.relu.default(mm)
        return (relu,)
'''
    module = """
cpp_fused_0 = async_compile.cpp_pybinding(['const float*', 'float*'], r'''
extern "C" void kernel(const float* in_ptr0, float* out_ptr0) {}''')
cpp_fused_relu_1 = async_compile.cpp_pybinding(['float*'], r'''
extern "C" void kernel(float* in_out_ptr0) {}''')
def call(args):
    x, w = args
    buf0 = empty_strided_cpu((8, 8), (1, 8), torch.float32)
    cpp_fused_0(w, buf0)
    buf1 = empty_strided_cpu((8, 8), (8, 1), torch.float32)
    extern_kernels.mm(x, buf0, out=buf1)
    buf2 = buf1; del buf1  # reuse
    cpp_fused_relu_1(buf2)
    return (buf2, )
"""
    provenance = Provenance(CompiledGraph("g", "g", IDS, "inductor", (GraphStage("AFTER_POST_GRAD", 0, text),),
                                          (Kernel(0, module),)))
    shown = kernel_outline(provenance, provenance.kernels[0], "title")
    assert "cpp_fused_0  (C++, line 2; copies what these take or give, and computes nothing)\n          m.py:1  mm" in shown
    assert "cpp_fused_relu_1  (C++, line 4)\n          m.py:2  relu" in shown
