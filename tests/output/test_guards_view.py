import pytest

from depyf.capture.guards import is_expression, parse_guards
from depyf.capture.records import Guard
from depyf.output.guards_view import expand, fold, group, guard_function

TREE = """
TREE_GUARD_MANAGER:
+- RootGuardManager
| +- GLOBAL_STATE: ___check_global_state() against {"grad_mode":true}
| +- GuardManager: source=L['a'], accessed_by=FrameLocalsGuardAccessor(key='a', framelocals_idx=0), type=<class 'torch.Tensor'>, tag_safe=(False, False)
| | +- TENSOR_MATCH: check_tensor(L['a'], Tensor, DispatchKeySet(CPU, BackendSelect, ADInplaceOrView, AutogradCPU), torch.float32, device=None, requires_grad=False, size=[10], stride=[1])  # x = a + 1  # toy.py:4 in toy
| | +- DIMENSION_DYNAMIC_MARKING_GUARD: hasattr(L['a'], '_dynamo_dynamic_indices') == False  # x = a + 1  # toy.py:4 in toy
| | +- DIMENSION_DYNAMIC_MARKING_GUARD: hasattr(L['a'], '_dynamo_static_indices') == False  # x = a + 1  # toy.py:4 in toy
| | +- NO_TENSOR_ALIASING: check_no_aliasing(L['a'], L['b'])
| +- GuardManager: source=L['b'], accessed_by=FrameLocalsGuardAccessor(key='b', framelocals_idx=1), type=<class 'torch.Tensor'>, tag_safe=(False, False)
| | +- TENSOR_MATCH: check_tensor(L['b'], Parameter, DispatchKeySet(CUDA, BackendSelect), torch.float16, device=1, requires_grad=True, size=[None, 3], stride=[3, 1])
| +- GuardManager: source=L['self'], accessed_by=FrameLocalsGuardAccessor(key='self', framelocals_idx=2), type=<class '__main__.M'>, tag_safe=(False, False)
| | +- TYPE_MATCH: ___check_type_id(L['self'], 94599069904400), type=<class '__main__.M'>  # x = a + 1  # toy.py:4 in toy
| | +- EQUALS_MATCH: L['self'].n == <Color.RED: 1>
"""


def test_tensor_guard_reads_like_one():
    guards = parse_guards(TREE)
    assert guards[1].expression == (
        "check_tensor(L['a'], dtype=torch.float32, device='cpu', size=(10,), stride=(1,), requires_grad=False)")
    assert (guards[1].cause.text, guards[1].cause.filename, guards[1].cause.line) == ("x = a + 1", "toy.py", 4)
    assert guards[1].source == "L['a']"


def test_dynamic_sizes_devices_and_parameters():
    [guard] = [g for g in parse_guards(TREE) if g.source == "L['b']"]
    assert guard.expression == ("check_tensor(L['b'], dtype=torch.float16, device='cuda:1', size=(None, 3), "
                                "stride=(3, 1), requires_grad=True, cls='Parameter')")


def test_marks_become_one_guard_and_keep_all_raw_text():
    [marks] = [g for g in parse_guards(TREE) if g.expression.startswith("has_no_marks")]
    assert marks.expression == "has_no_marks(L['a'], '_dynamo_dynamic_indices', '_dynamo_static_indices')"
    assert marks.raw.count("DIMENSION") == 0 and marks.raw.count("\n") == 1


def test_ids_become_names():
    [guard] = [g for g in parse_guards(TREE) if g.kind == "TYPE_MATCH"]
    assert guard.expression == "check_type(L['self'], '__main__.M')"


def test_what_is_not_python_stays_readable_and_valid():
    [guard] = [g for g in parse_guards(TREE) if g.kind == "EQUALS_MATCH"]
    assert guard.expression == "torch_guard(\"L['self'].n == <Color.RED: 1>\")"


def test_function_is_valid_python():
    text = guard_function("guard_0", parse_guards(TREE))
    compile(text, "guards", "exec")
    assert "# x = a + 1  (toy.py:4)" in text


def layers(count, **other):
    return [Guard(f"check_type(L['self'].layers[{i}].{name}, 'Linear')", f"L['self'].layers[{i}].{name}", "TYPE_MATCH", "")
            for i in range(count) for name in ("up", "down")]


def test_many_guards_fold_into_loops_and_nothing_is_lost():
    guards = layers(5000)
    groups = group(guards)
    folded = fold(groups)
    assert len(folded) == 2
    assert sorted(expand(folded), key=str) == sorted(groups, key=str)
    text = guard_function("guard_0", guards)
    assert len(text.splitlines()) < 20
    assert "for i in range(5000))" in text
    compile(text, "guards", "exec")


def holds(text, **names):
    namespace = dict(names)
    exec(text, namespace)
    return namespace["guard_0"]({"self": None}, {})


def test_folded_conditions_are_all_tested():
    seen = []
    guards = [Guard(f"check(L['m'][{i}]['{j}'])", f"L['m'][{i}]['{j}']", "K", "") for i in range(3) for j in range(4)]
    text = guard_function("guard_0", guards).replace("L['m'][i][j]", "(i, j)")
    assert holds(text, check=lambda pair: seen.append(pair) or True) is True
    assert seen == [(i, str(j)) for i in range(3) for j in range(4)]
    assert holds(text, check=lambda pair: pair != (2, "3")) is False


def test_several_numbers_that_are_not_all_combinations():
    guards = [Guard(f"check(L['m'][{i}][{j}])", f"L['m'][{i}][{j}]", "K", "") for i, j in ((0, 1), (1, 5), (2, 1))]
    folded = fold(group(guards))
    assert len(folded) == 1 and sorted(expand(folded), key=str) == sorted(group(guards), key=str)
    assert "for i, j in ((0, 1), (1, 5), (2, 1)))" in guard_function("guard_0", guards)


def test_ten_thousand_conditions_without_repetition_compile():
    guards = [Guard(f"L['x'].a{i} == {i} or False", f"L['x'].a{i}", "K", "") for i in range(10_000)]
    text = guard_function("guard_0", guards)
    compile(text, "guards", "exec")
    assert len(text.splitlines()) == 20_004


def test_what_differs_from_the_version_before_is_said():
    guards = layers(2)
    text = guard_function("guard_1", guards[:3], guards[1:])
    assert text.startswith("# against the version before it:\n#   + check_type(L['self'].layers[0].up, 'Linear')\n#   - ")


def test_a_layer_that_differs_is_not_folded_away():
    guards = layers(4)
    guards[3] = Guard("check_type(L['self'].layers[1].down, 'Other')", "L['self'].layers[1].down", "TYPE_MATCH", "")
    groups = group(guards)
    folded = fold(groups)
    assert any("Other" in e for one in folded for e, _ in one.conditions)
    assert sorted(expand(folded), key=str) == sorted(groups, key=str)


def one(line):
    return parse_guards("+- RootGuardManager\n| +- GuardManager: source=L['s'], accessed_by=X, type=<class 'str'>\n"
                        f"| | +- EQUALS_MATCH: {line}\n")[0]


def test_names_of_the_user_are_left_alone():
    assert one("L['a___b'] == 3  # y = a  # f.py:1 in f").expression == "L['a___b'] == 3"
    assert one("not ___dict_contains('___x(', L['s'])").expression == "not dict_contains('___x(', L['s'])"


def test_comment_signs_inside_strings():
    guard = one("L['s'] == 'x  # y'  # if s == 'x  # y':  # f.py:1 in f")
    assert guard.expression == "L['s'] == 'x  # y'"
    assert guard.cause.line == 1


@pytest.mark.parametrize(("text", "valid"), [
    ("L['a'].b['c'][0] is None", True),
    ("not dict_contains('x', L['a'].__dict__)", True),
    ("len(L['a']) == 3", True),
    ("L['a'] == 'it's'", False),
    ("L['a'] == <Color.RED: 1>", False),
    ("L['a'] == 3) or (True", False),
    ("L['a']['b\nc'] is None", False),
])
def test_only_expressions_pass(text, valid):
    assert is_expression(text) is valid
