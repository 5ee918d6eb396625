"""Which of its arguments a graph writes to."""

import pytest

from depyf.model.graph_text import read_graph
from depyf.views.dump.graph_writes import written_arguments

PARAMETERS = ("L_x_", "L_y_", "mean", "var")


def graph(parameters, statements):
    lines = "".join(f"        {statement}\n" for statement in statements)
    return read_graph(f"class G(torch.nn.Module):\n    def forward(self, {', '.join(parameters)}):\n{lines}")


@pytest.mark.parametrize("statements, expected", [
    (["add = x + 1;  x = None", "return (add,)"], []),
    (['add_: "f32[2]" = x.add_(1)'], ["L_x_"]),
    (["x += 1;  iadd = x", "iadd += L_y_;  iadd_1 = iadd"], ["L_x_"]),
    (["x[0] = L_y_;  setitem = x;  setitem = None"], ["L_x_"]),
    (["getitem = x[0]", "t = getitem.transpose(0, 1)", "mul_ = t.mul_(2)"], ["L_x_"]),
    (["chunk = x.chunk(2)", "first = chunk[0]", "first *= 2;  imul = first"], ["L_x_"]),
    (["y = x * 2", "add_ = y.add_(L_y_)"], []),
    (["y = torch.nn.functional.relu(L_y_, inplace = True)"], ["L_y_"]),
    (["s = torch.sin(x, out = L_y_)"], ["L_y_"]),
    (["n = torch.nn.functional.batch_norm(x, mean, var, None, None, True, 0.1, 1e-05)"], ["mean", "var"]),
    (["n = torch.nn.functional.batch_norm(x, mean, var, None, None, training = True)"], ["mean", "var"]),
    (["n = torch.nn.functional.batch_norm(x, mean, var, None, None, False, 0.1, 1e-05)"], []),
    (["copy_ = torch.ops.aten.copy_.default(mean, var)"], ["mean"]),
    (["view = torch.ops.aten.view.default(mean, [2])", "f = torch.ops.aten.fill_.Scalar(view, 0)"], ["mean"]),
    (["_foreach_add_ = torch._foreach_add_([x, var], [L_y_, mean])"], ["L_x_", "var"]),
    (["layer_norm_1 = torch.layer_norm(x, (2,))"], []),
])
def test_what_is_written_to(statements, expected):
    assert written_arguments(graph(PARAMETERS, ["x = L_x_", *statements])) == expected


def test_what_is_no_python_writes_to_nothing():
    assert written_arguments(graph(["x"], ["y = x.add_("])) == written_arguments(graph([], ["y = x.add_(1)"])) == []


@pytest.mark.parametrize("kind, conversion, expected", [
    ("i64[][]cpu", 'to: "i64[][]cpu" = x.to(device(type=\'cpu\'))', ["L_x_"]),
    ("i64[][]cpu", 'to: "f32[][]cpu" = x.to(torch.float32)', []),
    ("i64[][]cpu", 'to: "i64[][]cuda:0" = x.to(device(type=\'cuda\'))', []),
    ("i64[][]cpu", 'to: "i64[][]cpu" = x.to(torch.int64, copy = True)', []),
    ("f32[2, 3][1, 2]cpu", 'to: "f32[2, 3][3, 1]cpu" = x.contiguous()', []),
    ("f32[2, 3][3, 1]cpu", 'to: "f32[2, 3][3, 1]cpu" = x.contiguous()', ["L_x_"]),
    ("i64[]", 'to: "i64[]" = x.to(device(type=\'cpu\'))', []),
    ("", "to = x.float()", []),
])
def test_a_conversion_to_the_same_type_is_the_tensor_itself(kind, conversion, expected):
    parameters = [f'L_x_: "{kind}"' if kind else "L_x_", *PARAMETERS[1:]]
    assert written_arguments(graph(parameters, ["x = L_x_", conversion, "add_ = to.add_(5)"])) == expected
