"""A graph as a function, with the graphs within it as functions in that one."""

import pytest
import torch

from depyf.records.model import GraphInput
from depyf.views.dump.full_code import like_before
from depyf.views.dump.graph_view import graph_view

INPUTS = (GraphInput("L_x_", "L['x']"),)
COND = '''\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[3]"):
        l_x_ = L_x_

        # File: /home/me/model.py:8 in f, code: p = x.sum() > 0
        sum_1: "f32[]" = l_x_.sum()
        gt: "b8[]" = sum_1 > 0;  sum_1 = None

        # File: /home/me/model.py:9 in f, code: return torch.cond(p, g, h, (x,))
        true_0 = self.true_0
        false_0 = self.false_0
        cond = torch.ops.higher_order.cond(gt, true_0, false_0, (l_x_,));  gt = l_x_ = true_0 = false_0 = None
        getitem: "f32[3]" = cond[0];  cond = None
        return (getitem,)

    class true_0(torch.nn.Module):
        def forward(self, l_x_: "f32[3]"):
            # File: /home/me/model.py:4 in g, code: return torch.cond(x.max() > 9, g2, h2, (x,))
            max_1: "f32[]" = l_x_.max()
            gt: "b8[]" = max_1 > 9;  max_1 = None
            true_0 = self.true_0
            false_0 = self.false_0
            cond = torch.ops.higher_order.cond(gt, true_0, false_0, (l_x_,));  true_0 = false_0 = l_x_ = None
            getitem: "f32[3]" = cond[0];  cond = None
            return (getitem,)

        class true_0(torch.nn.Module):
            def forward(self, l_x_: "f32[3]"):
                sin: "f32[3]" = l_x_.sin();  l_x_ = None
                return (sin,)

        class false_0(torch.nn.Module):
            def forward(self, l_x_: "f32[3]"):
                cos: "f32[3]" = l_x_.cos();  l_x_ = None
                return (cos,)

    class false_0(torch.nn.Module):
        def forward(self, l_x_: "f32[3]"):
            neg: "f32[3]" = -l_x_;  l_x_ = None
            return (neg,)
'''


def test_graphs_within_a_graph_are_functions_of_their_own_scope():
    text = graph_view(COND, INPUTS).function("__compiled_fn_1")
    assert text.startswith('def __compiled_fn_1(\n    x: "f32[3]",\n):\n') and "self" not in text
    assert "\n\n    # what torch.cond runs if its condition is false (model.py:9)\n    def false_0(\n" in text
    assert "\n        return (neg,)\n\n    # model.py:9 in f: return torch.cond(p, g, h, (x,))\n    cond = " in text
    space = {"torch": torch}
    exec(text, space)
    for x in (torch.ones(3), torch.full((3,), 10.0), -torch.ones(3)):
        expected = -x if x.sum() <= 0 else x.sin() if x.max() > 9 else x.cos()
        assert torch.equal(space["__compiled_fn_1"](x)[0], expected)


def test_a_graph_within_the_graph_is_compared():
    layers = "".join(f"        y_{k} = l_x_.add({k})\n" for k in range(20))
    text = COND.replace("        # File: /home/me/model.py:8", layers + "        # File: /home/me/model.py:8")
    old, new = (graph_view(each, INPUTS).statements for each in (text, text.replace("l_x_.sin()", "l_x_.tan()")))
    assert [line.partition(" = ")[2] for line in like_before(new, {"g": old}).splitlines()[1:]] == [
        "x.sin()", "x.tan()"]


def test_equal_statements_between_others_that_differ_are_compared_by_value():
    """``mul`` divides what is called ``add_1`` in both graphs: two values."""
    same = [f"t_{k} = x.add({k})" for k in range(40)]
    old = ["add_1 = x.sub(y)", "add_2 = x.mul(y)", *same, "q = w.neg()", "mul = add_1.div(w)", "r = w.tan()"]
    new = ["add_2 = x.sub(y)", "add_1 = x.mul(y)", *same, "q = w.abs()", "mul = add_1.div(w)", "r = w.atan()"]
    lines = like_before(new, {"g": old}).splitlines()
    assert "#   - mul = add_1.div(w)" in lines and "#   + mul = add_1.div(w)" in lines


@pytest.mark.parametrize("old, new", [
    (["c = x_1.add(1)", "d = x_1.sin()"], ["c = x_1.add(1)", "d = x_2.sin()"]),  # an input that was not used before
    (["mul = y.mul(2)", "d = mul.sin()"], ["d = mul_1.sin()"]),  # an input in place of a value that is not made now
    (["mul = y.mul(2)", "mul_1 = y.mul(3)", "d = mul.sub(mul_1)"],
     ["mul = y.mul(2)", "mul_1 = y.mul(3)", "d = mul.sub(mul)"])])
def test_a_statement_on_another_value_is_shown(old, new):
    rest = [f"t_{k} = x.add({k})" for k in range(24)]
    lines = like_before([*new, *rest], {"g": [*old, *rest]}).splitlines()
    assert f"#   - {old[-1]}" in lines and f"#   + {new[-1]}" in lines


def test_a_statement_in_the_place_of_another_is_one_that_differs():
    """A size that is kept in one place and replaced in another shows each such statement twice."""
    rest = [f"t_{k} = x.add({k})" for k in range(40)]
    old, new = ([f"v_{k} = x.view({size}, -1, 8)" for k in range(8)] for size in ("8", "s27"))
    lines = like_before([*new, *rest], {"g": [*old, *rest]}).splitlines()
    assert "#   - v_7 = x.view(8, -1, 8)" in lines and "#   + v_7 = x.view(s27, -1, 8)" in lines


def test_names_of_operations_in_place_are_counted_up_too():
    """FX calls them ``add_``, ``add__1``, ``add__2``."""
    rest = [f"t_{k} = x.add({k})" for k in range(24)]
    old = [*rest, "add_ = y.add_(1)", "add__1 = y.add_(2)", "mul = add__1 * 3"]
    new = [*rest, "add_ = y.add_(1)", "add__1 = add_.add_(7)", "add__2 = y.add_(2)", "mul = add__2 * 3"]
    assert like_before(new, {"g": old}).splitlines()[1:] == ["#   + add__1 = add_.add_(7)"]


def test_one_graph_that_is_called_twice():
    view = graph_view(COND.replace("false_0 = self.false_0\n        cond", "again = self.true_0\n        cond")
                      .replace("gt, true_0, false_0,", "gt, true_0, again,", 1))
    shown = view.function("f")
    assert "\n    again = true_0\n" in shown and shown.count("    def true_0(") == 2


def test_what_is_no_graph_within_the_graph_is_read_of_the_function():
    view = graph_view('''\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[3]"):
        l_x_ = L_x_
        # File: /home/me/model.py:8 in f, code: return self.linear(x, 'self')
        constant = self.constant
        linear = self.linear(l_x_, constant, 'self');  l_x_ = constant = None
        return (linear,)
''', INPUTS)
    assert view.function("f").endswith(
        ":\n    # model.py:8 in f: return self.linear(x, 'self')\n    constant = f.constant\n"
        "    linear = f.linear(x, constant, 'self')\n    return (linear,)")


def test_a_graph_without_parameters():
    view = graph_view("class GraphModule(torch.nn.Module):\n    def forward(self):\n        return ()\n")
    assert view.function("f") == "def f():\n    return ()"


def test_what_a_statement_in_place_binds_is_a_statement_too():
    text = ("class G(torch.nn.Module):\n    def forward(self, x: \"f32[2]\"):\n"
            "        x += 1\n        y: \"f32[2]\" = x;  x = None\n        return (y,)\n")
    assert list(graph_view(text).statements) == ["x += 1", "y = x", "return (y,)"]
