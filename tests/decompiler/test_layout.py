"""Long statements are broken so that lines fit, and mean the same."""

import ast

import pytest

from depyf.decompiler.emit.layout import laid_out

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
    "for kkkkkkkkkkkk, vvvvvvvvvvvvvvvv in OrderedDict({'aaaaaaaaaaaaaaaaaaaaa': bbbbbbbbbbbbbbbb, 'cccccccc': ddddd}).items():\n"
    "    f(k)",
    "while aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa and bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb(ccccccccccccccccccc):\n"
    "    pass",
    "with aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa(bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, ccccccccccccccccccccccc) as ddddd:\n"
    "    pass",
    "class C:\n    def f():\n        f(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, ccccccccccccccccccc, 1)\n"
    "    x = 1",
    "match x:\n    case 1:\n"
    "        f(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, ccccccccccccccccccc, 1)\n"
    "    case _:\n        pass",
    "raise ValueError(f'If training, the sequence length {input_shape[-1]} has to be a multiple of {least_common_mult:>10}. "
    "Please consider padding the input to a length of {input_shape[-1] * (pad // least_common_mult)} {{or}} less.') from e",
    "raise ValueError('It\\'s a \"long\" sentence, \\n\\tof which the words do not fit on a line of a hundred columns, ' % x)",
    "x = b'bytes that are many more than would fit on a line of one hundred columns, and are to be broken, \\x00 and so on'",
    "f(key='" + "x" * 150 + "', other={'k': 'a b c " + "y" * 60 + " z " + "w" * 60 + "'})",
    "assert aaaaaaaaaaaaaaaaaaaaaaaaa, 'what was asserted is not so, which is told here in far too many words to fit in'",
    "assert aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa == bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb + ccccccccccccccccccccc, 'x'",
    "x: dict[str, int] = {'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa': bbbbbbbbbbbbbbbbbbbbbbbbb, 'cccccccccccccccccccc': ddddddddd}",
    "x = {kkkkkkkkkkkkkkkkkkkkk: vvvvvvvvvvvvvvvvvvvvvvv for kkkkkkkkkkkkkkkkkkkkk, vvvvvvvvvvvvvvvvvvvvvvv in xs.items() if x}",
    "x = {kkkkkkkkkkkkkkkkkkkkk(vvvvvvvvvvvvvvvvvvvvvvv) for kkkkkkkkkkkkkkkkkkkkk, vvvvvvvvvvvvvvvvvvvvvvv in xs.items() if x}",
    "x = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa is not bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb not in ccccccccccccccccccccccc < (a or bbb)",
    "x = aaaaaaaaaaaaaaaaaaaaaaaaaa if bbbbbbbbbbbbbbbbbbbbbbbbbbb else ccccccccccccccccccccccc if ddddddddd else lambda: eee",
    "class C:\n    '''What it is.\n\n    And more.\n    '''\n\n    def f(self):\n        '''Does it.\n\n        In two lines.'''\n"
    "        x = f'''{a}\n  {b}'''\n        return f(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbb, ccccccccccccccccccc, 1)",
    "x = aaaaaaaaaaaaaaaaaaaaaaa and (bbbbbbbbbbbbbbbbbbbbbbb or cccccccccccccccccccccccccccccccc or ddddddddddddddddddddd"
    " or eeeeeeeeeeeeeeeeeeee) and (ffffffffffffffffffffffff if gggggggggggggggggggggggggggg else hhhhhhhhhhhhhhhhhhhhhhh)",
    "x = not (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa and bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb and ccccccccccccccccccccc)",
    "x = [aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, *(bbbbbbbbbbbbbbbbbbbbbbbbbbb if ccccccccccccccccccccccc else dddddddddddddddd)]",
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


def test_the_operands_of_a_sum_are_side_by_side():
    assert laid_out(ast.parse("x = first * factor + second * factor - third / (one - other) + fourth"), 30) == """\
x = (
    first * factor
    + second * factor
    - third / (one - other)
    + fourth
)
"""
