"""Subscripts as people write them, and back."""

import ast
import linecache

import pytest
import torch

from depyf.link.functions import link_function
from depyf.torch_text.parsed import as_printed, with_slices
from depyf.views.dump.graph_view import graph_view


@pytest.mark.parametrize("printed, shown", [
    ("y = x[(Ellipsis, None)]", "y = x[..., None]"),
    ("y = x[(slice(None, None, None), slice(-1, None, None))]", "y = x[:, -1:]"),
    ("y = x[slice(1, n, 2)]", "y = x[1:n:2]"),
    ("y = x[Ellipsis]", "y = x[...]"),
    ("x[(slice(None, 3, None), 0)] = w", "x[:3, 0] = w"),
    ("y: \"f32[2]\" = x[(slice(None, None, None), mask)]", "y: \"f32[2]\" = x[:, mask]"),
    ("y = x[(slice(0, None, None),)]", "y = x[(slice(0, None, None),)]"),
    ("y = g(slice(1, 2, None), Ellipsis)", "y = g(slice(1, 2, None), Ellipsis)"),
    ("y = x[slice(1, 2)]", "y = x[slice(1, 2)]"),
    ("y = x['[Ellipsis]'][Ellipsis]", "y = x['[Ellipsis]'][...]"),
    ("no Python [slice(", "no Python [slice("),
])
def test_a_subscript(printed, shown):
    assert with_slices(printed) == shown
    if "=" in shown:
        assert ast.dump(as_printed(ast.parse(shown))) == ast.dump(ast.parse(printed))


def test_what_runs_calls_slice_as_torch_does():
    text = """class G(torch.nn.Module):
    def forward(self, L_x_: "f32[8]", L_y_: "f32[8]"):
        l_x_ = L_x_
        l_y_ = L_y_
        y: "f32[8]" = l_x_[(Ellipsis, slice(None, -1, None))];  l_x_ = None
        l_y_[(slice(None, None, None), 0)] = y;  setitem = l_y_;  y = setitem = None
        z = l_y_[([0, 1], slice(1, None, None))];  z = None
        return (l_y_,)
"""
    space = {"torch": torch}
    linecache.cache["<slices>"] = len(text), None, text.splitlines(True), "<slices>"
    exec(compile(text, "<slices>", "exec"), space)
    function = space["G"].forward
    view = graph_view(text, captured=False).text
    assert "[..., :-1]" in view and "[:, 0] = y" in view
    assert not link_function(function, view.replace(":-1", ":-2"), "/tmp/view.py")
    assert link_function(function, view, "/tmp/view.py") and "Ellipsis" in function.__code__.co_names
