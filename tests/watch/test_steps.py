"""The lines of a graph's text, and of a generated module, that compute something."""

import ast

from depyf.model.graph_text import read_graph
from depyf.watch.probe import find_function, graph_steps, kernel_steps

GRAPH = '''\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4]", s0: "Sym(s0)"):
        l_x_ = L_x_
        weight = self.weight
        other = getattr(self, "0").bias
        y: "f32[4]" = torch.sin(l_x_);  l_x_ = None
        y += weight;  z: "f32[4]" = y;  y = weight = None
        z[0] = other;  setitem = z;  setitem = None
        e = torch.empty_like(z)
        copy_ = e.copy_(z);  copy_ = None
        add_ = torch.ops.aten.add_.Tensor(e, z)
        out = torch.mul(e, e, out = z)
        mask = z.masked_fill(e, -inf)
        odd = torch.ops.mine.op.default(mask)
        item = (s0 * 2)
        return (z,)
'''


def steps_of(text, line):
    return [group.step for group in graph_steps(find_function(ast.parse(text), line), read_graph(text))]


def test_steps_of_a_graph():
    by_line = {step.line: step for step in steps_of(GRAPH, 2)}
    assert [by_line[line].kind for line in (3, 4, 5)] == ["input"] * 3
    assert (by_line[6].reads, by_line[6].writes, by_line[6].kind) == (("l_x_",), ("y",), "call")
    assert set(by_line[7].reads) == {"y", "weight"}
    assert "z" in by_line[7].writes
    assert set(by_line[8].reads) == {"z", "other"}
    assert by_line[9].kind == "empty"
    assert by_line[10].reads == ("z",), "what is overwritten is not read"
    assert set(by_line[11].reads) == {"e", "z"}
    assert by_line[12].reads == ("e",)
    assert by_line[14].opaque and not by_line[13].opaque
    assert by_line[15].reads == ("s0",)
    assert 16 not in by_line


BOXED = '''\
def forward(self, args_list):
    args_iter = iter(args_list)
    primals_1 = next(args_iter)
    args_list.clear()
    a, b, = fx_pytree.tree_flatten_spec(args_list, self._in_spec)
    log = torch.ops.aten.log.default(primals_1)
    return (log,)
'''


def test_arguments_in_a_list():
    by_line = {step.line: step for step in steps_of(BOXED, 1)}
    assert by_line[3].kind == "input" and by_line[3].writes == ("primals_1",)
    assert by_line[5].kind == "input" and set(by_line[5].writes) >= {"a", "b"}
    assert by_line[6].reads == ("primals_1",)


MODULE = '''\
def call(args):
    a, b = args
    args.clear()
    with torch.cuda._DeviceGuard(0):
        buf0 = empty_strided_cuda((4, 4), (4, 1), torch.float32)
        kernel_0.run(a, buf0, 16, stream=stream0)
        buf1 = empty_strided_cuda((4, 4), (4, 1), torch.float32)
        extern_kernels.mm(buf0, reinterpret_tensor(b, (4, 4), (1, 4), 0), out=buf1)
        buf2 = buf1; del buf1  # reuse
        kernel_1.run(buf2, b, 16, stream=stream0)
        buf3 = torch.ops.aten.sort.stable(buf2, stable=False)
        buf4 = buf3[0]
        aten.index_put_(a, [buf4], buf2, True)
    return (buf2, )
'''


def test_steps_of_a_generated_module():
    groups = kernel_steps(
        find_function(ast.parse(MODULE), 1), {6, 8, 10, 11, 13},
        {"kernel_0": ("in", "out"), "kernel_1": ("in_out", "out")})
    by_line = {group.step.line: group.step for group in groups}
    assert by_line[2].kind == "input" and by_line[2].writes == ("a", "b")
    assert (by_line[6].reads, by_line[6].writes) == (("a",), ("buf0",))
    assert by_line[8].reads == ("buf0", "reinterpret_tensor(b, (4, 4), (1, 4), 0)")
    assert by_line[8].writes == ("buf1",)
    assert by_line[10].writes == ("buf2", "b")
    assert set(by_line[10].changes) == {"buf2", "b"}, "an argument may be written to in part"
    assert (by_line[11].reads, by_line[11].writes) == (("buf2",), ("buf3",))
    assert by_line[13].writes == ("a",) and "a" in by_line[13].changes
    assert 5 not in by_line and 9 not in by_line, "memory that holds anything is not looked at"
