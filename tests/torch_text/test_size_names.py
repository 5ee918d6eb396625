"""Names for sizes that are computed of open ones."""

import pytest

from depyf.model.arithmetic import plain
from depyf.records.model import GraphInput, GraphStage
from depyf.torch_text.size_names import size_names, with_size_names
from depyf.views.dump.directory import graph_file
from depyf.views.dump.graph_view import graph_view

HALF, OTHER = "(((s53 - 1)//2)) + 1", "(((s0 - 1)//2)) + 1"


@pytest.mark.parametrize("line, expected", [
    (f"f32[1, {HALF}, {OTHER}][({HALF})*({OTHER}), {OTHER}, 1]cpu", "f32[1, d0, d1][d0*d1, d1, 1]cpu"),
    (f"f32[{HALF}][4*({HALF})**2]cpu", "f32[d0][4*d0**2]cpu"),
    (f"f32[{HALF}, Max(1, s1 - 20)][1, {HALF} + 3]cpu", f"f32[d0, d1][1, {HALF} + 3]cpu"),
    ("f32[s0, 2*s1][s1, 1]cpu", "f32[s0, 2*s1][s1, 1]cpu"), (f"Sym({HALF})", f"Sym({HALF})"),
])
def test_a_size_that_is_computed_has_a_name(line, expected):
    assert with_size_names(line, size_names([line])) == expected


def test_a_name_that_a_node_has_is_not_given():
    text = f"class G(torch.nn.Module):\n    def forward(self, x):\n        d0: \"f32[{HALF}]\" = x.f()\n"
    assert 'd0: "f32[d1]" = x.f()' in graph_view(text).text


def test_the_view_of_a_graph_says_what_the_names_stand_for():
    view = graph_view(f'''class GraphModule(torch.nn.Module):
    def forward(self, s53: "Sym(s53)", L_x_: "f32[1, s53][s53, 1]cpu"):
        l_x_ = L_x_

        # No stacktrace found for following nodes
        y: "f32[1, {HALF}][{HALF}, 1]cpu" = l_x_[(slice(None), slice(None, None, 2))];  l_x_ = None
        return (y,)
''')
    assert view.sizes == (("d0", "(s53 - 1) // 2 + 1"),)
    assert 'y: "f32[1, d0][d0, 1]cpu" =' in view.text


def test_the_head_of_a_file_says_what_the_sizes_are_that_names_stand_for():
    text = f'''class GraphModule(torch.nn.Module):
    def forward(self, s53: "Sym(s53)", s7: "Sym(s53)", s2: "Sym(s2)", L_x_: "f32[s2, s53][s53, 1]cpu"):
        l_x_ = L_x_
        y: "f32[s2, {HALF}][{HALF}, 1]cpu" = l_x_[(slice(None), slice(None, None, 2))];  l_x_ = None
        return (y,)
'''
    inputs = tuple(GraphInput(name, source) for name, source in (
        ("s53", "L['x'].size()[1]"), ("s7", "L['y'].size()[0]"), ("s2", "L['x'].size()[0]"), ("L_x_", "L['x']")))
    lines = graph_file("g", GraphStage("Captured_Graph", 0, text), inputs).text.splitlines()
    later = graph_file("g", GraphStage("Forward_graph", 0, text.replace("s53: ", "arg0_1: ")), inputs).text.splitlines()
    assert lines[1:3] == later[1:3] == ["# s53: x.shape[1]", "# d0: (s53 - 1) // 2 + 1"]
    assert '        s7: "Sym(s53)",  # y.shape[0], equal to s53' in lines


def test_terms_of_strides_have_names():
    line = "f32[2, (s0//2), d][16*Max(1, 2*((s0//2)))*Max(1, s1), Max(1, 2*((s0//2))), Max(1, Max(1, s2))]cpu"
    names = size_names([line])
    assert list(map(plain, names)) == ["max(1, 2 * (s0 // 2))", "max(1, s1)", "max(1, max(1, s2))"]
    assert with_size_names(line, names) == "f32[2, (s0//2), d][16*d0*d1, d0, d2]cpu"
    assert size_names(["f32[s0 + 1 + 1][Max(1, s0]cpu"]) == {"s0 + 1 + 1": "d0"}
