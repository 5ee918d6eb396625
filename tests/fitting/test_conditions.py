"""Recorded conditions, tried on calls of which only some values are known."""

import pytest

from depyf.fitting.changes import smallest_change
from depyf.fitting.conditions import tried
from depyf.fitting.given import Given, shown
from depyf.fitting.written import arguments
from depyf.records.model import Guard

TENSOR = "check_tensor(L['x'], dtype=torch.float32, device='cpu', size=({}), stride=({}), requires_grad={})"
MATRIX = TENSOR.format("None, 4", "4, 1", False)


def guard(expression, kind="LAMBDA_GUARD", source="L['x']"):
    return Guard(expression, source, kind, expression)


#: Condition, call, what it says: ``True``, ``None``, or ``(subject, wanted, met)`` of what does not hold.
CASES = [
    (MATRIX, "x=f32[7,4]", True),
    (MATRIX, "x=f32[7,5]", ("x.shape[1]", "4", "5")),
    (MATRIX, "x=f16[7,4]", ("x.dtype", "torch.float32", "torch.float16")),
    (MATRIX, "x=f32[7,4](device='cuda:0')", ("x.device", "'cpu'", "'cuda:0'")),
    (MATRIX, "x=f32[7,4](grad=True)", ("x.requires_grad", "False", "True")),
    (MATRIX, "x=f32[7,4](stride=(1,7))", ("x.stride()[0]", "4", "1")),
    (MATRIX, "x=f32[7]", ("x.ndim", "2", "1")),
    (MATRIX, "x=f32[7,4](cls='Parameter')", ("type(x)", "Tensor", "Parameter")),
    (MATRIX, "x=3", ("type(x)", "a tensor", "int")),
    (MATRIX, "n=3", None),
    ("2 <= L['x'].size()[0]", "x=f32[2]", True),
    ("2 <= L['x'].size()[0]", "x=f32[1]", ("x.shape[0]", "2 or more", "1")),
    ("L['x'].size()[0] == L['y'].size()[0]", "x=f32[1] y=f32[2]", ("x.shape[0] == y.shape[0]", "True", "False")),
    ("L['x'].size()[0] == L['y'].size()[0]", "x=f32[1]", None),
    ("(L['x'].size()[0] % 8) == 0", "x=f32[16]", True),
    ("(L['x'].size()[0] // 2) <= 4 and L['y'] == 3", "x=f32[16] z=1", ("x.shape[0] // 2 <= 4 and y == 3", "True", "False")),
    ("L['x'].size()[0] <= 4 or L['y'] == 3", "x=f32[16]", None),
    ("2 <= L['x'].size()[0] <= L['y'].size()[0]", "x=f32[1]",  # decided by its first half
     ("2 <= x.shape[0] <= y.shape[0]", "True", "False")),
    ("Max(L['n'], 2) == 2", "n=1", True),
    ("L['n'] == 4", "n=5", ("n", "4", "5")),
    ("not math.isnan(L['n'])", "n=nan", ("not math.isnan(n)", "True", "False")),
    ("check_type(L['n'], 'int')", "n=5", True),
    ("check_type(L['n'], 'int')", "n=True", ("type(n)", "int", "bool")),
    ("check_type(L['n'], 'torch.Tensor')", "n=f32[1]", True),
    ("check_type(L['n'], 'demo.Config')", "n=5", ("type(n)", "demo.Config", "int")),
    ("len(L['xs']) == 2", "xs=[1]", ("len(xs)", "2", "1")),
    ("not L['xs']", "xs=[]", True),
    ("L['xs'][1] == 2", "xs=[1,2]", True),
    ("L['xs'][1] == 2", "xs[1]=3", ("xs[1]", "2", "3")),
    ("list(dict.keys(L['d']))[0] == 'a'", "d={'b':1}", ("list(d)[0]", "'a'", "'b'")),
    ("dict_contains('a', L['d'])", "d={'b':1}", ("dict_contains('a', d)", "True", "False")),
    ("not dict_contains('a', L['d'])", "d={'b':1}", True),
    ("set.__contains__(L['s'], 9)", "s={9}", True),
    ("L['m'] is None", "m=None", True),
    ("L['m'] is None", "m=f32[1]", ("m", "None", "f32[1]")),
    ("L['a'] is L['b']", "a=f32[1] b=a", True),
    ("L['a'] is L['b']", "a=f32[1] b=f32[1]", ("a is b", "True", "False")),
    ("check_no_aliasing(L['a'], L['b'])", "a=f32[1] b=a", ("a is b", "False", "True")),
    ("check_no_aliasing(L['a'], L['b'])", "a=f32[1] b=f32[1]", True),
    ("check_no_aliasing(L['a'], L['self'].w)", "a=f32[1]", None),
    ("L['dtype'] == torch.float32", "dtype=torch.float32", True),
    ("L['dtype'] == torch.float32", "dtype=torch.float16", ("dtype", "torch.float32", "torch.float16")),
    ("has_no_marks(L['x'], '_dynamo_dynamic_indices')", "x=f32[2]", True),
    ("((getattr(L['x'], '_dynamo_dynamic_indices', set()).issubset({0})) if hasattr(L['x'], '_dynamo_dynamic_indices')"
     " else True)", "x=f32[2]", True),
    # never guessed
    ("check_same_object(L['f'], 'function')", "f=3", ("f", "the same object", "3")),
    ("check_same_object(G['torch'], 'module')", "x=3", None),
    ("L['y'].item() == 3", "y=i64[]", None),
    ("L['x'] == 3", "x=f32[1]", None),
    ("torch_guard('anything')", "x=f32[1]", None),
    ("unheard_of(L['x'])", "x=f32[1]", None),
    ("L['self'].depth == 3", "self.depth=3", True),
    ("L['self']._modules['norm'].eps == 1e-05", "self.norm.eps=1e-06", ("self.norm.eps", "1e-05", "1e-06")),
    ("L['self'].depth == 3", "x=3", None),
    ("L['n'] / 0 == 1", "n=1", None),
]


@pytest.mark.parametrize("expression, call, said", CASES)
def test_conditions(expression, call, said):
    finding = tried(guard(expression), Given(arguments(call.split(" "))))
    assert (finding.holds if finding.holds is not False else (finding.subject, finding.wanted, finding.met)) == said


def test_constants_are_of_one_type():
    given = Given({"n": 1.0, "flag": 1})
    assert tried(guard("L['n'] == 1"), given).holds is True
    assert tried(guard("L['n'] == 1", "EQUALS_MATCH"), given).holds is False
    assert tried(guard("L['flag'] == True", "TRUE_MATCH"), given).holds is False


def test_state_of_torch():
    condition = guard("check_global_state(grad_mode=True, default_dtype=torch.float32)", "GLOBAL_STATE", "")
    assert tried(condition, Given({})).holds is None
    assert tried(condition, Given({}, {"grad_mode": True})).holds is None
    assert tried(condition, Given({}, arguments(["grad_mode=True", "default_dtype=torch.float32"]))).holds is True
    finding = tried(condition, Given({}, {"grad_mode": False}))
    assert (finding.holds, finding.subject, finding.wanted, finding.met) == (False, "grad mode", "True", "False")


#: Conditions of a version, the call, the smallest change.
CHANGES = [
    ([MATRIX], "x=f16[7,5]", "x: f32[7, 4]"),
    ([MATRIX], "x=f32[7]", "x: f32[7, 4]"),
    ([MATRIX], "x=f32[7,4](grad=True,stride=(1,7))", "x: f32[7, 4]"),
    ([MATRIX, "2 <= L['x'].size()[0]"], "x=f32[0,4]", "x: f32[2, 4]"),
    (["L['x'].size()[0] == L['y'].size()[0]"], "x=f32[3] y=f32[5]", "x: f32[5]"),
    (["L['x'].size()[0] == L['y'].size()[0]", "2 <= L['x'].size()[0]"], "x=f32[1] y=f32[1]", "x: f32[2]; y: f32[2]"),
    (["(L['x'].size()[0] % 8) == 0"], "x=f32[13]", "x: f32[16]"),
    (["L['x'].size()[0] > 2*L['y'].size()[0]"], "x=f32[3] y=f32[40]", "y: f32[1]"),
    (["L['x'].size()[0]*L['x'].size()[1] <= 4096"], "x=f32[64,65]", "x: f32[64, 64]"),
    (["L['n'] + L['m'] == 9", "L['n'] > 3", "L['m'] > 3"], "n=1 m=2", "m: 4; n: 5"),
    (["L['n'] == 4", "check_type(L['n'], 'int')"], "n=5", "n: 4"),
    (["check_type(L['n'], 'int')"], "n=4.0", "n: 4"),
    (["L['n'] >= 100000"], "n=3", "n: 100000"),
    (["L['flag'] == True"], "flag=False", "flag: True"),
    (["L['xs'][0] == 2"], "xs=[1,2]", "xs[0]: 2"),
    (["L['self'].depth == 3"], "self.depth=1", "self.depth: 3"),
    (["L['m'] is None"], "m=f32[1]", "m: None"),
    # no change of a number mends these
    (["len(L['xs']) == 2"], "xs=[1]", ""),
    (["check_no_aliasing(L['a'], L['b'])"], "a=f32[1] b=a", ""),
    (["L['n'] > 3", "L['n'] < 3"], "n=3", ""),
]


@pytest.mark.parametrize("conditions, call, said", CHANGES)
def test_smallest_change(conditions, call, said):
    given = Given(arguments(call.split(" ")))
    guards = [guard(each) for each in conditions]
    changes = smallest_change(guards, given)
    assert "; ".join(f"{change.path}: {shown(change.after)}" for change in changes) == said
    if changes:
        changed = given.changed({change.path: change.after for change in changes})
        assert all(tried(each, changed).holds for each in guards)
