"""Stages that torch's cache held name the lines of the program that made the entry."""

import pytest

from depyf.provenance.graph_provenance import Provenance
from depyf.records.model import CompiledGraph, CompileId, GraphStage

CAPTURED = """class GraphModule(torch.nn.Module):
    def forward(self, L_a_: "f32[3]"):
        l_a_ = L_a_

         # File: /home/me/new.py:12 in toy, code: x = a.sin()
        x: "f32[3]" = l_a_.sin();  l_a_ = None

         # File: /home/me/new.py:13 in toy, code: return x.cos()
        cos: "f32[3]" = x.cos();  x = None
        return (cos,)
"""
LATER = """class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "f32[3]"):
         # File: {0}:{1} in toy, code: x = a.sin()
        sin: "f32[3]" = torch.ops.aten.sin.default(primals_1);  primals_1 = None

         # File: {0}:{2} in toy, code: {3}
        cos: "f32[3]" = torch.ops.aten.cos.default(sin);  sin = None
        return (cos,)
"""


def lines(*where, later=LATER):
    stages = (GraphStage("Captured_Graph", 0, CAPTURED), GraphStage("Forward_graph", 0, later.format(*where)))
    provenance = Provenance(CompiledGraph("__compiled_fn_1", "__compiled_fn_1", CompileId(0, 0), "inductor", stages))
    origins = provenance.stage("Forward_graph").origins
    return [(place and (place.filename, place.line), origin.captured)
            for origin in (origins["sin"], origins["cos"]) for place in [origin.location]]


HOME = [(("/home/me/new.py", 12), "x"), (("/home/me/new.py", 13), "cos")]


@pytest.mark.parametrize("where", [
    ("/home/me/new.py", 12, 13, "return x.cos()"),  # compiled now
    ("/home/you/old.py", 3, 4, "return x.cos()"),  # by another program
    ("/home/me/new.py", 11, 12, "return x.cos()"),  # by this one, before a line was put above it
    ("/home/me/new.py", 2, 13, "return x.cos()"),  # ... and one between
])
def test_the_lines_are_those_of_now(where):
    assert lines(*where) == HOME


def test_a_line_that_is_not_there_any_more_is_no_line():
    first, (place, _) = lines("/home/you/old.py", 3, 4, "return torch.cos(x)",
                              later=LATER.replace("return (cos,)", "return (cos, sin)"))
    assert first == HOME[0]
    assert place in (None, HOME[0][0]), "at most the neighbour's, as for any node without a line"


def test_a_result_without_a_line_is_the_captured_result():
    assert lines("/home/you/old.py", 3, 4, "return torch.cos(x)") == HOME


def test_what_a_pass_of_inductors_put_in_the_place_of_a_result():
    """A number that is open becomes a conversion and a product without a line, which the line before did not compute."""
    later = LATER.replace("return (cos,)", """
        # No stacktrace found for following nodes
        convert: "f32[]" = torch.ops.prims.convert_element_type.default(primals_2, torch.float32)
        mul: "f32[3]" = torch.ops.aten.mul.Tensor(cos, convert)
        return (mul,)""")
    captured = CAPTURED.replace("return (cos,)", """
         # File: /home/me/new.py:14 in toy, code: return y * n
        y: "f32[3]" = cos * n;  cos = n = None
        return (y,)""").replace('L_a_: "f32[3]"', 'L_a_: "f32[3]", n: "Sym(n)"')
    stages = (GraphStage("Captured_Graph", 0, captured),
              GraphStage("Forward_graph", 0, later.format("/home/me/new.py", 12, 13, "return x.cos()")))
    provenance = Provenance(CompiledGraph("__compiled_fn_1", "__compiled_fn_1", CompileId(0, 0), "inductor", stages))
    origins = provenance.stage("Forward_graph").origins
    assert [origins[name].location.line for name in ("cos", "mul")] == [13, 14]
    assert origins["convert"].location is None  # (neither the line that takes its value nor another computed it)
    assert origins["mul"].captured == "y"
