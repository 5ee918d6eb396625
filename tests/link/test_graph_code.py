"""The view of a graph stands in for torch's code only where it does the same."""

import ast
import linecache

import pytest
import torch

from depyf.link.functions import computation, link_function
from depyf.link.lifetimes import running_graph
from depyf.records.model import GraphInput
from depyf.views.dump.graph_view import graph_view

TORCH = '''\
class G(torch.nn.Module):
    def forward(self, s1: "Sym(s1)", L_x_: "f32[8]", L_w_: "f32[8]"):
        l_x_ = L_x_
        l_w_ = L_w_

        # File: m.py:1 in f, code: y = w * x + 1
        y: "f32[8]" = l_w_ * l_x_;  l_w_ = None
        y += s1;  y_1: "f32[8]" = y;  y = s1 = None
        y_1[0] = 2;  setitem = y_1;  setitem = None
        pair = divmod(y_1, l_x_);  y_1 = None
        print(pair);  l_x_ = None
        done = print("done");  done = None
        item = pair[0]
        item_1 = pair[1];  pair = item_1 = None
        return (item,)
'''
INPUTS = (GraphInput("L_x_", "L['x']"), GraphInput("L_w_", "L['self']._parameters['w']"))
TORCH = TORCH.replace("        print(pair);  l_x_ = None\n", "        shown = print(pair, l_x_);  shown = l_x_ = None\n")


def computed(text, path="torch"):
    return computation(next(each for each in ast.walk(running_graph(text, path)) if isinstance(each, ast.FunctionDef)))


def defined(text):
    """Return the ``forward`` of a text as torch compiles it: its file is known to ``linecache`` alone."""
    space = {"torch": torch}
    linecache.cache["<torch>"] = len(text), None, text.splitlines(True), "<torch>"
    exec(compile(text, "<torch>", "exec"), space)
    return space["G"].forward


def test_the_view_is_the_same_graph():
    view = graph_view(TORCH, INPUTS).text
    assert "None" not in view
    assert computed(TORCH) == computed(view)


@pytest.mark.parametrize(("old", "new"), [
    ("w * x", "x * w"),
    ("w * x", "x * x"),
    ("w * x", "w + x"),
    ("y_1[0] = 2", "y_1[0] = 3"),
    ("y_1[0] = 2", "y_1[0] = 2.0"),
    ("pair[1]", "pair[True]"),
    ("return (item,)", "return (item_1,)"),
    ("return (item,)", "return (pair[0],)"),
    ("y_1 = y", "y_1 = w"),
    ("y_1[0] = 2", "y_1[0] = 2\n        y_1 = w"),
    ("y_1[0] = 2", "y_1[0] = 2;  x = None"),
    ("y_1[0] = 2", "if x: pass"),
    ('print("done")', "print(done)"),
    ("item = pair[0]", "item = pair[0]\n        pair = item"),
    ("item = pair[0]", "item = pair[0] if pair else 0"),
    ("divmod(y_1, x)", "divmod(y_1, y)"),
])
def test_anything_else_is_not(old, new):
    view = graph_view(TORCH, INPUTS).text
    old = old.replace("y_1 = y", 'y_1: "f32[8]" = y')
    new = new.replace("y_1 = w", 'y_1: "f32[8]" = w')
    changed = view.replace(old, new)
    assert changed != view
    function = defined(TORCH)
    before = function.__code__
    assert not link_function(function, changed, "/tmp/view.py")
    assert function.__code__ is before


def test_values_are_let_go_of_where_torch_does():
    view = graph_view(TORCH, INPUTS).text
    lines = view.split("\n")
    function = next(each for each in ast.walk(running_graph(view, "view")) if isinstance(each, ast.FunctionDef))
    deleted = {lines[each.lineno - 1].strip(): [target.id for target in each.targets] for each in function.body
               if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant) and each.value.value is None}
    assert deleted == {'y_1: "f32[8]" = y': ["y"], "pair = divmod(y_1, x)": ["y_1"], "item_1 = pair[1]": ["pair", "item_1"]}


def test_a_function_runs_with_the_lines_and_names_of_its_view():
    function = defined(TORCH)
    view = graph_view(TORCH, INPUTS).text
    assert link_function(function, "# head\n" + view, "/tmp/view.py")
    code = function.__code__
    assert code.co_filename == "/tmp/view.py"
    assert {"x", "w", "s1", "y_1", "item"} <= set(code.co_varnames)
    assert not [name for name in code.co_varnames if name.startswith(("l_", "L_"))]
    assert link_function(function, view, "/tmp/again.py"), "to the file of another dump, too"
    assert function.__code__.co_filename == "/tmp/again.py"


def test_a_graph_without_second_names_is_linked_too():
    text = 'class G(torch.nn.Module):\n    def forward(self, x: "f32[8]", y: "f32[8]"):\n        z = x * y;  x = y = None\n        return (z,)\n'
    function = defined(text)
    assert link_function(function, graph_view(text, captured=False).text, "/tmp/view.py")
    assert function(None, 2, 3) == (6,)


def test_another_text_changes_nothing():
    function = defined(TORCH)
    before = function.__code__
    assert not link_function(function, graph_view(TORCH, INPUTS).text.replace("w * x", "x * w"), "p")
    assert not link_function(function, "not python (", "p")
    assert not link_function(len, "def len(x): return x", "p")
    linecache.cache["<torch>"] = 0, None, [TORCH.replace("l_w_ * l_x_", "l_x_ * l_w_")], "<torch>"
    assert not link_function(function, graph_view(TORCH, INPUTS).text, "p"), "the text is not what runs"
    assert function.__code__ is before
