"""Paths of modules as torch writes them, from 2.6 on, and the calls that stacks of them make."""

import pytest

from depyf.records.model import ModuleCall
from depyf.torch_text.modules import module_calls, module_path


@pytest.mark.parametrize(("expression", "path"), [
    ("L['self'].model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.q_proj"),
    ("L['self'].layers[0].q_proj", "layers.0.q_proj"),
    ("L['self']._modules['layers']._modules['0'].q_proj", "layers.0.q_proj"),
    ('L["self"]._modules["layers"]', "layers"),
    ("self.model.layers.0", "model.layers.0"),
    ("L['s'].d.a-b.1", "s.d.a-b.1"),
    ("L['self'].d['a.b'].c", "d.a.b.c"),
    ("G['model'].norm", "model.norm"),
    ("L['self']", ""),
    ("L['fn'].__closure__[0].cell_contents.norm", "norm"),
    ("L__self___layers_0_q_proj", "L__self___layers_0_q_proj"),
    ("L['self", "L['self"),
    ("f(x, y).q", "f(x, y).q"),
    ("", ""),
])
def test_path(expression, path):
    assert module_path(expression) == path


def test_two_calls_of_one_module_are_two():
    outer = ("1", "L['self'].block", "Block")
    calls = module_calls([
        ("a", [outer]), ("b", [outer, ("2", "L['self'].block.q", "Linear")]),
        ("c", [outer, ("2@1", "L['self'].block.q", "Linear")]), ("d", [outer]), ("e", [])])
    assert calls == (
        ModuleCall("block", "Block", -1, ("a", "d")), ModuleCall("block.q", "Linear", 0, ("b",)),
        ModuleCall("block.q", "Linear", 0, ("c",)))
