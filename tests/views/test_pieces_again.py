"""A piece of a split graph that a later call compiled again: which piece, for which sizes."""

import json

from test_index import compilation

from depyf.records.model import Capture, CompiledGraph, CompileId, GraphStage, SourceLocation, SymbolDecision
from depyf.views.as_json import explain_document
from depyf.views.index.index import index

IDS = CompileId(0, 0)
PIECE = """class submod_0(torch.nn.Module):
    def forward(self, x: "f32[s77, 16][16, 1]cpu", s77: "Sym(s77)"):
        {name}: "f32[s77, 16][16, 1]cpu" = torch.relu(x)
        return {name}
"""
FORWARD = """class lambda_(torch.nn.Module):
    def forward(self, arg0_1: "f32[{size}, 16][16, 1]cpu", arg1_1: "Sym(4)"):
        relu: "f32[{size}, 16][16, 1]cpu" = torch.ops.aten.relu.default(arg0_1)
        return (relu,)
"""


def piece(number, name):
    return CompiledGraph(f"g.submod_{number}", "", IDS, "", stages=(GraphStage("Captured_Graph", 0, PIECE.format(name=name)),),
                         piece_of="g")


def call(number, name, size):
    return CompiledGraph(f"compile_fx_{number}", "", CompileId(-1, number), "", stages=(
        GraphStage("BEFORE_PRE_GRAD", 0, PIECE.format(name=name), file="b.py", shown_as="BEFORE PRE GRAD"),
        GraphStage("Forward_graph", 0, FORWARD.format(size=size), file="f.py")),
        call=SourceLocation("/app.py", 7, "compile_fx"))


def run(*graphs):
    whole = CompiledGraph("g", "g", IDS, "", stages=(GraphStage("Captured_Graph", 0, PIECE.format(name="relu")),))
    made = compilation(symbols=(SymbolDecision("created", "s77", "L['x'].size()[0]"),))
    return Capture(graphs=(whole, *graphs), compilations=(made,))


def test_a_piece_that_was_compiled_for_two_sizes():
    capture = run(piece(0, "relu"), piece(2, "relu_1"), call(1, "relu", 4), call(2, "relu_1", 8), call(3, "cos", 8))
    text = index(capture)
    assert "| `submod_0` again, for `x.shape[0]` = 4 |" in text and "| `submod_2` again, for `x.shape[0]` = 8 |" in text
    rest = text[text.index("## Without a function") :]
    assert "`compile_fx_3`" in rest and "compile_fx_1" not in rest
    pieces = explain_document({"": capture}, "d")["runs"][0]["pieces"]
    assert json.loads(json.dumps([each["again"] for each in pieces])) == [
        [{"graph": "compile_fx_1", "sizes": {"s77": "4"}}], [{"graph": "compile_fx_2", "sizes": {"s77": "8"}}]]


def test_of_two_equal_pieces_nothing_is_said():
    text = index(run(piece(0, "relu"), piece(2, "relu"), call(1, "relu", 4)))
    assert " again" not in text and "| `compile_fx_1` |" in text
