"""Torch's source expressions in the user's words."""

import pytest

from depyf.decompiler.dynamo.global_names import module_of_import
from depyf.torch_text.user_expressions import _rewritten, user_expression


@pytest.mark.parametrize(("source", "expected"), [
    ("L['x']", "x"),
    ("L['self']._modules['layers']._modules['0']._parameters['weight']", "self.layers[0].weight"),
    ("L['self']._modules['my-layer']._buffers['inv_freq']", "self._modules['my-layer'].inv_freq"),
    ("L['self'].layers[0]", "self.layers[0]"),
    ("L['kwargs']['input_ids'].size()[1]", "kwargs['input_ids'].size()[1]"),
    ("G['__import_torch_dot_nn_dot_modules_dot_sparse'].F", "torch.nn.modules.sparse.F"),
    ("G['__builtins_dict___0']['len']", "len"),
    ("2 <= L['x'].size()[0]", "2 <= x.size()[0]"),
    ("L['a-b']", "L['a-b']"),
    ("G['torch.nn'].functional", "torch.nn.functional"),
    ("L['kwargs']['x'] == 'L'", "kwargs['x'] == 'L'"),
    ("L['x'] == \"it's L['y']\"", "x == \"it's L['y']\""),
    ("not ___dict_contains('forward', L['self']._modules['norm'].__dict__)",
     "not ___dict_contains('forward', self.norm.__dict__)"),
    ("dict(type(L['self']).__dict__)['forward'].__code__", "type(self).forward.__code__"),
    ("list(dict.keys(L['d']))[0] == 'a'", "list(d)[0] == 'a'"),
    ("dict.__getitem__(L['d'], list(dict.keys(L['d']))[1]).x", "list(d.values())[1].x"),
    ("list.__getitem__(L['processors'], 0).scale", "processors[0].scale"),
    ("L['lambda']", "L['lambda']"),
    ("___from_numpy(L['mel']).size()[2]", "torch.as_tensor(mel).size()[2]"),
    ("tensor 'L['x']' size mismatch", "tensor 'L['x']' size mismatch"),
])
def test_user_expression(source, expected):
    assert user_expression(source) == expected


@pytest.mark.parametrize("source", [
    "L['x']", "L['self']._modules['layers']._modules['0']._parameters['weight']", "L['kwargs']['input_ids'].size()[1]",
    "L['self']._modules['my-layer']._buffers['inv_freq']", "G['__import_torch_dot_nn_dot_modules_dot_sparse'].F.linear",
    "G['__builtins_dict___0']['len'] is G['size']['of']", "L['lambda'] == L['self']._modules['lambda']", "L['a-b'] == 'L'",
    "G['torch.nn'].functional is not G['a-b']", "2 <= L['x'].size()[0]",
])
def test_simple_forms_read_alike_whether_they_are_parsed_or_not(source):
    assert user_expression(source) == _rewritten(source)


def test_module_of_import():
    assert module_of_import("__import_torch_dot__dynamo_dot_utils") == "torch._dynamo.utils"
    assert module_of_import("___module_collections") == "collections"
    assert module_of_import("torch") is None
