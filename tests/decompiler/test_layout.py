"""Long statements are broken so that lines fit, and mean the same."""

import ast

import pytest

from depyf.decompiler.layout import laid_out

LONG = [
    "def f(self, *args, **kwargs):\n    return graph(self.layers[0].norm.weight, self.layers[0].norm.bias, "
    "self.layers[0].proj.weight, self.head.weight, *(value for layer in self.layers for value in (layer.a, layer.b)))",
    "def f(aaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbb, /, ccccccccccccccccc=1, *, dddddddddddddddddddd: int = 3, "
    "eeeeeeeeeeeeeee=4, **fffffffffff) -> list[int]:\n    pass",
    "x = {'a' * 30: [1, 2, 3], 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb': ccccccccccccccccccccc, **ddddddddddddddddddddd, 'e': f(1)}",
    "x = aaaaaaaaaaaaaaaaaaaaaaaaaaaaa[bbbbbbbbbbbbbbbbbbbbbb - ccccccccccccccc:ddddddddddddddddddd + e, :].unsqueeze(0)",
    "return_value = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa(bbbbbbbbbbbbbbbbbbbbbbbbbbbbb, ccccccccccccccccccccccc)(dddddddddd, e)",
    "x = (aaaaaaaaaaaaaaaaaaaaaaa + bbbbbbbbbbbbbbbbbbbbbb) * (ccccccccccccccccccccccc - ddddddddddddddddddd) - eeeeeeeeee",
    "x = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa and (bbbbbbbbbbbbbbbbbbb or cccccccccccccccc) and (lambda: ddddddddddd) and eeeee",
    "from aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa import bbbbbbbbbbbbbbbbbbbb, cccccccccccccccccccccc as d, eeeeeeeeeeeeeeeeeee",
    "for x in y:\n    if a:\n        f(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, ccccccccccccccccccc, 1)\n"
    "    else:\n        pass\nelse:\n    y = 1",
    "if a:\n    pass\nelif bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb and cccccccccccccccccccccccccccccccc and dddddddddddddddddddddddd:\n"
    "    f(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, ccccccccccccccccccc, 1)\nelse:\n    y = 1",
    "def f(x):\n    \"\"\"What it does.\n\n    And more.\n    \"\"\"\n"
    "    f(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, ccccccccccccccccccc, 1)",
    "try:\n    f(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, ccccccccccccccccccc, 1)\n"
    "except ValueError:\n    pass\nfinally:\n    y = 1",
    "x = [new(Layer, keys=keys, values=values, initialized=True) for keys, values in zip(graph_out_0[1:4:2], graph_out_0[0:3:2])]",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxx += sum(yyyyyyyyyyyyyyyyyyyyyyyyyyyy for yyyyyyyyyyyyyyyyyyyyyyyyyyyy in zzzzzzzzzzzzzzzzzzzzz)",
]


@pytest.mark.parametrize("source", LONG)
@pytest.mark.parametrize("width", [72, 100])
def test_lines_fit_and_mean_the_same(source, width):
    text = laid_out(ast.parse(source), width)
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(source))
    assert max(map(len, text.splitlines())) <= width


def test_what_fits_is_left_as_it_is():
    assert laid_out(ast.parse("x = [1,2]")) == "x = [1, 2]\n"


def test_parameters_of_a_module_share_a_line():
    assert laid_out(ast.parse("f(self.norm.weight, self.norm.bias, self.proj.weight, x, y, hidden=None, other=None)"), 60) == """\
f(
    self.norm.weight, self.norm.bias,
    self.proj.weight,
    x,
    y,
    hidden=None, other=None,
)
"""


def test_what_is_taken_out_of_a_long_call_stands_behind_it():
    assert laid_out(ast.parse("return_value = graph(self.first.weight, self.second.weight, self.third.weight)[0]"), 60) == """\
return_value = graph(
    self.first.weight,
    self.second.weight,
    self.third.weight,
)[0]
"""
