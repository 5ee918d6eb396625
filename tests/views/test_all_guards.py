"""All conditions of a version: words, sections, layers."""

import re

import pytest
from guards_for_tests import frame, version

from depyf.model.folding import Block, Item, fold_layers, series, spelled, unfolded
from depyf.model.guards import Range, short_dtype
from depyf.model.reading import Reader, typed
from depyf.records.model import Guard, SourceLocation
from depyf.torch_text.guards import is_expression, parse_guards
from depyf.torch_text.wrapping import WIDTH, broken
from depyf.views.dump.guards.functions import guard_groups, guard_lines, guards_file, helpers, imports

TREE = """
TREE_GUARD_MANAGER:
+- RootGuardManager
| +- LAMBDA_GUARD: torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids == None  # _dynamo/output_graph.py:1135 in init_ambient_guards
| +- GLOBAL_STATE: ___check_global_state() against {"autocast_state":{"cached_enabled":true,"dtype":[15,5],"enabled":[false,true]},"default_dtype":6,"grad_mode":true,"num_threads":2}
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
| | +- EQUALS_MATCH: L['self'].o == <object object at 0x7f33aa>
| | +- DICT_VERSION: ___dict_version(L['self'].d) == 840747
"""


# --- torch's tree -> conditions over L and G ---------------------------------------------------------
def test_tensor_guard_reads_like_one():
    guards = parse_guards(TREE)
    assert guards[2].expression == (
        "check_tensor(L['a'], dtype=torch.float32, device='cpu', size=(10,), stride=(1,), requires_grad=False)")
    assert (guards[2].cause.text, guards[2].cause.filename, guards[2].cause.line) == ("x = a + 1", "toy.py", 4)
    assert guards[2].source == "L['a']"


def test_dynamic_sizes_devices_and_parameters():
    [guard] = [g for g in parse_guards(TREE) if g.source == "L['b']"]
    assert guard.expression == ("check_tensor(L['b'], dtype=torch.float16, device='cuda:1', size=(None, 3), "
                                "stride=(3, 1), requires_grad=True, cls='Parameter')")


def test_a_place_within_torch_stands_in_brackets():
    guards = parse_guards("TREE_GUARD_MANAGER:\n+- RootGuardManager\n| +- LAMBDA_GUARD: L['x'].size()[0] <= 4096"
                          "  # (_inductor/codegen/cpp.py:2273 in need_use_acc_helper)\n")
    assert (guards[0].cause.filename, guards[0].cause.line) == ("_inductor/codegen/cpp.py", 2273)


def test_marks_become_one_guard_and_keep_all_raw_text():
    [marks] = [g for g in parse_guards(TREE) if g.expression.startswith("has_no_marks")]
    assert marks.expression == "has_no_marks(L['a'], '_dynamo_dynamic_indices', '_dynamo_static_indices')"
    assert marks.raw.count("DIMENSION") == 0 and marks.raw.count("\n") == 1


def test_state_of_torch_is_said_in_full():
    first, second, *_ = parse_guards(TREE)
    assert first.expression == "check_saved_tensors_hooks(None)"
    assert second.expression == ("check_global_state(grad_mode=True, autocast={'cuda': torch.float16}, "
                                 "default_dtype=torch.float32, num_threads=2)")


def test_ids_become_names():
    [guard] = [g for g in parse_guards(TREE) if g.kind == "TYPE_MATCH"]
    assert guard.expression == "check_type(L['self'], '__main__.M')"
    assert parse_guards(TREE)[-1].expression == "check_dict_unchanged(L['self'].d)"


def test_what_is_not_python_stays_readable_and_valid():
    enum, other = [g for g in parse_guards(TREE) if g.kind == "EQUALS_MATCH"]
    assert enum.expression == "L['self'].n == Color.RED"
    assert other.expression == "torch_guard(\"L['self'].o == <object object at _>\")"


def one(line):
    return parse_guards("+- RootGuardManager\n| +- GuardManager: source=L['s'], accessed_by=X, type=<class 'str'>\n"
                        f"| | +- EQUALS_MATCH: {line}\n")[0]


def test_names_of_the_user_are_left_alone():
    assert one("L['a___b'] == 3  # y = a  # f.py:1 in f").expression == "L['a___b'] == 3"
    assert one("not ___dict_contains('___x(', L['s'])").expression == "not dict_contains('___x(', L['s'])"


def test_sets_are_told_in_one_order():
    assert one("L['s'] == {'c', 'a', 'b'}").expression == "L['s'] == {'a', 'b', 'c'}"
    assert one("L['s'] == frozenset({'b', 'a'})").expression == "L['s'] == frozenset({'a', 'b'})"
    assert one("L['s'] == {'c': 1, 'a': 2}").expression == "L['s'] == {'c': 1, 'a': 2}"
    for objects in ("{<class 'list'>, 3, <function f at 0x7f0123456>}", "{<function f at 0x7f9876543>, <class 'list'>, 3}"):
        assert one(f"L['s'] == frozenset({objects})").expression == (
            """torch_guard("L['s'] == frozenset({3, <class 'list'>, <function f at _>})")""")


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
    ("L['a'].class is None", False),
    ("L['a'].classes is None", True),
    ("L['a'][03] is None", False),
    ("L['a'] == \"'\" ' \"", False),
])
def test_only_expressions_pass(text, valid):
    assert is_expression(text) is valid


# --- conditions in the user's words ------------------------------------------------------------------
@pytest.mark.parametrize(("expression", "kind", "words"), [
    ("not dict_contains('forward', L['self']._modules['norm'].__dict__)", "Has", "'forward' not in self.norm.__dict__"),
    ("dict_contains('k', L['d'])", "Has", "'k' in d"),
    ("not dict_contains(0, L['d'])", "Has", "0 not in d"),
    ("dict_contains((1, 'a'), L['d'])", "Has", "(1, 'a') in d"),
    ("not hasattr(L['x'], 'bias')", "Has", "not hasattr(x, 'bias')"),
    ("G['utils_device'].CURRENT_DEVICE == None", "Equals", "utils_device.CURRENT_DEVICE is None"),
    ("L['self'].training == True", "Equals", "self.training is True"),
    ("L['mode'] == Color.RED", "Equals", "mode == Color.RED"),
    ("L['x'] is L['y']", "Comparison", "x is y"),
    ("(L['n'] % 2) != 0", "Comparison", "(n % 2) != 0"),
    ("(L['n'] % 2) == 0", "Comparison", "(n % 2) == 0"),
    ("L['é'] == 'ü'", "Equals", "é == 'ü'"),
    ("2 <= L['x'].size()[0] <= 9", "Range", "2 <= x.shape[0] <= 9"),
    ("-1 <= L['n']", "Range", "-1 <= n"),
    ("16*L['x'].size()[0] <= 64", "Range", "16 * x.shape[0] <= 64"),
    ("1 <= L['n'] <= L['m']", "Other", "1 <= n <= m"),
    ("L['n'] == 2 or L['n'] == 3", "Other", "n == 2 or n == 3"),
    ("len(L['d']) == 2", "Length", "len(d) == 2"),
    ("list(dict.keys(L['d']))[1] == 'b'", "KeyAt", "list(d)[1] == 'b'"),
    ("not math.isnan(L['f'])", "Not", "not math.isnan(f)"),
    ("check_dict_unchanged(L['d'])", "Unchanged", "check_dict_unchanged(d)"),
    ("check_no_aliasing(L['x'], L['y'])", "NoAliasing", "check_no_aliasing(x, y)"),
    ("check_global_state(grad_mode=True, autocast={'cpu': torch.bfloat16})", "State",
     "check_global_state(grad_mode=True, autocast={'cpu': torch.bfloat16})"),
    ("has_no_marks(L['x'], '_dynamo_dynamic_indices')", "Marks", "has_no_marks(x, '_dynamo_dynamic_indices')"),
    ("((getattr(L['x'], '_dynamo_dynamic_indices', set()).issubset({0})) if hasattr(L['x'], '_dynamo_dynamic_indices')"
     " else True)", "Marks", "has_no_marks_but(x, {0}, '_dynamo_dynamic_indices')"),
    ("set.__contains__(L['names'], 'a')", "Has", "'a' in names"),
    ("not set.__contains__(L['names'], 'a')", "Has", "'a' not in names"),
    ("L['device'] == device(type='cuda', index=1)", "Equals", "device == torch.device('cuda:1')"),
    ("check_same_object(L['f'].__code__)", "SameObject", "check_same_object(f.__code__)"),
    ("check_type(___from_numpy(L['a']), 'x')", "Type", "check_type(torch.as_tensor(a), 'x')"),
    ("check_type(G['__import_a_dot_b'].c, 'dict')", "Type", "check_type(a.b.c, 'dict')"),
    ("check_type(L['x'], 'a') and more", "Other", "check_type(x, 'a') and more"),
    ("no Python here", "Other", "no Python here"),
])
def test_words(expression, kind, words):
    condition = typed(expression)
    assert (type(condition).__name__, condition.text) == (kind, words)


def test_a_condition_is_a_value():
    [one] = Reader(frame("x")).read([Guard("2 <= L['x'].size()[0] <= 9", "", "LAMBDA_GUARD", "")])
    assert one == Range("x.shape[0]", "arguments", "x", "LAMBDA_GUARD", left="x.shape[0]", low=2, high=9)
    assert one.renamed(lambda text: text.replace("x", "y")).text == "2 <= y.shape[0] <= 9"


def test_what_other_conditions_say_is_not_said_again():
    guards = [Guard(text, "L['n']", "EQUALS_MATCH", "") for text in (
        "L['n'] == (2, 2)", "check_type(L['n'], 'tuple')", "len(L['n']) == 2", "L['n'] == (2, 2)", "len(L['n'][0]) == 2",
        "G['torch'].bfloat16 == torch.bfloat16")]
    compiled = version(guards, "n")
    assert [one.text for one in compiled.conditions] == ["n == (2, 2)", "len(n[0]) == 2"]
    assert '    """2 conditions. (Torch has 6 guards, of which some say the same.)"""' in guards_file(compiled)


def test_the_file_of_a_resume_function_says_where_it_begins():
    import dataclasses

    compiled = version([Guard("L['n'] == 1", "L['n']", "EQUALS_MATCH", "")], "n")
    resumed = dataclasses.replace(compiled.frame, title="Net.forward", code_name="torch_dynamo_resume_in_forward_at_72")
    assert guards_file(dataclasses.replace(compiled, frame=resumed)).startswith(
        '"""All conditions of version [0/0] of Net.forward from line 72 on.')


def test_a_global_with_the_name_of_an_argument():
    texts = Reader(frame("x")).read([Guard("G['x'].a == L['x']", "G['x']", "K", "")])
    assert texts[0].text == "globals()['x'].a == x"


@pytest.mark.parametrize(("name", "short"), [
    ("float32", "f32"), ("bfloat16", "bf16"), ("int64", "i64"), ("uint8", "u8"), ("bool", "bool"), ("complex64", "c64")])
def test_dtypes(name, short):
    assert short_dtype(name) == short


@pytest.mark.parametrize(("size", "stride", "layout"), [
    ("2, 3", "3, 1", ""), ("2, 3", "1, 2", " strides (1, 2)"), ("2, 1, 3", "3, 9, 1", ""), ("", "", ""),
    ("2, 3, 4, 5", "60, 1, 15, 3", " channels last"), ("None, 3", "3, 1", ""), ("3,", "2,", " strides (2,)")])
def test_layouts(size, stride, layout):
    text = (f"check_tensor(L['x'], dtype=torch.float32, device='cpu', size=({size}), stride=({stride}), "
            "requires_grad=False)")
    [condition] = Reader(frame("x")).read([Guard(text, "L['x']", "TENSOR_MATCH", "")])
    shape = ", ".join(part.strip().replace("None", "any") for part in size.split(",") if part.strip())
    assert condition.text == f"check_tensor(x, 'f32[{shape}]{layout} on cpu')"


# --- layers ------------------------------------------------------------------------------------------
def items(*texts):
    return [Item(text, text.partition(" ")[0], (text,)) for text in texts]


def expanded(folded):
    """The texts that folded ones are for, each with its payload."""
    for item, loops in unfolded(folded):
        letters = re.findall(r"for (\w) in", loops)
        numbers = eval(f"[({''.join(f'{letter}, ' for letter in letters)}) {loops}]") if loops else [()]
        assert len(numbers) == len(item.payloads)
        for values in numbers:
            known = dict(zip(letters, map(str, values)))
            yield re.sub(r"\w+", lambda word: known.get(word[0], word[0]), item.text)


def payloads(folded):
    return [payload for item, _ in unfolded(folded) for payload in item.payloads]


def test_layers_stand_once_and_nothing_is_lost():
    given = items("self.norm == 1", *(f"self.layers[{i}].{name} == 0" for i in range(500) for name in ("up", "down")),
                  "self.layers[0].first == 1", "self.end == 2")
    folded = fold_layers(given)
    assert [type(each).__name__ for each in folded] == ["Item", "Block", "Item", "Item"]
    block = folded[1]
    assert isinstance(block, Block) and block.loop() == "for i in range(500)" and block.count == 1000
    assert sorted(expanded(folded)) == sorted(payloads(folded)) == sorted(each.text for each in given)


def test_layers_that_differ_are_told_apart():
    given = items(*(f"m.layers[{i}].kind == '{'even' if i % 2 == 0 else 'odd'}'" for i in range(6)))
    assert [each.loop() for each in fold_layers(given)] == ["for i in (0, 2, 4)", "for i in (1, 3, 5)"]
    assert sorted(expanded(fold_layers(given))) == sorted(payloads(fold_layers(given))) == sorted(each.text for each in given)


def test_layers_within_layers_and_their_own_numbers():
    given = items(*(f"m.layers[{i}].experts[{j}].index == {j}" for i in range(3) for j in range(4)),
                  *(f"m.layers[{i}].index == {i}" for i in range(3)))
    [block] = fold_layers(given)
    assert [each.text if isinstance(each, Item) else each.body[0].text for each in block.body] == [
        "m.layers[i].experts[j].index == j", "m.layers[i].index == i"]
    assert sorted(expanded([block])) == sorted(payloads([block])) == sorted(each.text for each in given)


def test_the_same_text_twice_is_counted_twice():
    assert fold_layers(items("m[0].a", "m[0].a", "m[1].a", "m[1].a"))[0].count == 4


def test_members_are_named_without_the_call_around_them():
    [block] = fold_layers(items("type(m.layers[0]).a", "type(m.layers[1]).a"))
    assert isinstance(block, Block) and block.member == "m.layers[i]"


def test_a_letter_that_the_user_has_is_not_taken():
    assert fold_layers(items("i[0].a == j", "i[1].a == j"))[0].letter == "k"


def test_numbers_of_dimensions_are_no_layers():
    assert all(isinstance(each, Item) for each in fold_layers(items("x.shape[0] == 2", "x.shape[1] == 2")))


@pytest.mark.parametrize("numbers, words", [
    (range(4), "range(4)"), (range(2, 4), "range(2, 4)"), ((0, *range(2, 44)), "(0, *range(2, 44))"),
    ((0, 2, 4), "(0, 2, 4)"), (range(0, 64, 2), "range(0, 63, 2)"), ((0, 1, 4, 5, 6, 9), "(0, 1, *range(4, 7), 9)")])
def test_series_are_short_and_nothing_is_lost(numbers, words):
    assert series(tuple(numbers)) == words and list(eval(words)) == list(numbers)


def test_spelled():
    assert [spelled(each) for each in ((0, 1, 2), (0, 2), (4,), (0, 1), (1, 3, 5))] == [
        "0 to 2", "0 and 2", "4", "0 and 1", "1, 3 and 5"]


# --- lines --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("text", [
    "check_type(" + ".".join(["transformers", "models"] * 12) + ", 'a')",
    "check_same_object(list(" + ".".join(["names"] * 15) + ".values())[0]['hidden_states'], '" + "x" * 60 + "')",
    "a == '" + "word " * 60 + "'",
    "f(" + ", ".join(f"name_{i}={i}" for i in range(60)) + ")",
    "a." + "b" * 80 + " is c." + "d" * 80,
])
def test_no_line_is_too_long_and_nothing_changes(text):
    import ast

    for indent in (8, 24):
        lines = broken(text, indent)
        assert all(len(line) <= WIDTH for line in lines) and len(lines) > 1
        assert ast.dump(ast.parse("(" + "\n".join(lines) + ")")) == ast.dump(ast.parse(text))


def test_a_long_line_is_broken_where_the_fewest_brackets_are_open():
    text = "check_same_object(type(" + "m." * 45 + "x).__mro__[3].get, 'code')"
    assert broken(text, 8)[0].strip() == "check_same_object("


# --- the file -----------------------------------------------------------------------------------------
def model(layers=3):
    place = SourceLocation("/lib/model.py", 7, "forward", "y = self.up(x)")
    guards = [Guard("check_tensor(L['x'], dtype=torch.float32, device='cpu', size=(2, None), stride=(None, 1), "
                    "requires_grad=False)", "L['x']", "TENSOR_MATCH", "", place),
              Guard("L['x'].stride()[0] == L['x'].size()[1]", "", "LAMBDA_GUARD", ""),
              Guard("2 <= L['x'].size()[1] <= 64", "", "LAMBDA_GUARD", "")]
    for i in range(layers):
        owner = f"L['self']._modules['layers']._modules['{i}']"
        guards.append(Guard(f"check_type({owner}, 'm.Layer')", owner, "TYPE_MATCH", "", place))
        guards.append(Guard(f"{owner}.index == {i}", f"{owner}.index", "EQUALS_MATCH", ""))
    guards.append(Guard("check_same_object(G['__import_torch_dot_nn'].F, 'module')", "G['__import_torch_dot_nn'].F",
                        "ID_MATCH", ""))
    guards.append(Guard("check_global_state(grad_mode=True, default_dtype=torch.float32)", "", "GLOBAL_STATE", ""))
    return version(guards, "self", "x")


def test_the_function_stands_in_sections():
    text = "".join(f"{line}\n" for line, _ in guard_lines(model()))
    assert text == '''\
def guards_0_for_f(self, x):
    """11 conditions."""
    return (
        # arguments: 3 conditions
        check_tensor(x, 'f32[2, n] contiguous on cpu')  # model.py:7
        and x.stride()[0] == x.shape[1]
        and 2 <= x.shape[1] <= 64
        # self: 6 conditions
        # self.layers[i], 0 to 2: 2 conditions each
        and all(
            check_type(self.layers[i], 'm.Layer')  # model.py:7
            and self.layers[i].index == i
            for i in range(3)
        )
        # modules and globals: 1 condition
        and check_same_object(torch.nn.F, 'module')
        # torch's state: 1 condition
        and check_global_state(grad_mode=True, default_dtype=torch.float32)
    )
'''


def test_the_file_can_be_imported_and_its_function_called():
    import torch

    text = guards_file(model())
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "  model.py: /lib/model.py\n" in text
    space: dict = {}
    exec(compile(text, "guards", "exec"), space)
    space["torch"].nn.F = torch.nn.functional

    class Layer:
        __module__ = "m"
        __qualname__ = "Layer"

        def __init__(self, index):
            self.index = index

    class Model:
        layers = [Layer(0), Layer(1), Layer(2)]

    check = space["guards_0_for_f"]
    try:
        assert check(Model(), torch.ones(2, 5)) is True
        assert not check(Model(), torch.ones(2, 65)) and not check(Model(), torch.ones(3, 5))
        with torch.no_grad():
            assert not check(Model(), torch.ones(2, 5))
        Model.layers[1].index = 2
        assert not check(Model(), torch.ones(2, 5))
    finally:
        del torch.nn.F


def test_groups_by_object():
    groups = guard_groups(model())
    assert ("self.layers[i]", 3, "for i in range(3)") in groups
    assert [text for text, _ in groups["x", 1, ""]] == ["check_tensor(x, 'f32[2, n] contiguous on cpu')"]
    assert groups["x", 1, ""][0][1].line == 7


def test_ten_thousand_conditions_without_repetition_compile():
    guards = [Guard(f"L['x'].a{i} == {i} or False", f"L['x'].a{i}", "K", "") for i in range(10_000)]
    text = "".join(f"{line}\n" for line, _ in guard_lines(version(guards, "x")))
    compile(text, "guards", "exec")
    assert text.count("(x.a") == 10_000


@pytest.mark.parametrize(("like", "fits"), [
    ("f32[2, n, 4, 5] on cpu", "contiguous"), ("f32[2, n, m, 5] contiguous on cpu", "contiguous"),
    ("f32[2, 3, 4, 5] channels last on cpu", "channels last"), ("f32[2, 3, n, m] channels last on cpu", "channels last"),
    ("f32[2, 3, 4, 5] strides (any, 1, any, 3) on cpu", "channels last"),
    ("f32[2, 3, 4, 5] strides (120, 40, 10, 2) on cpu", "every other")])
def test_a_described_tensor_has_the_layout_that_is_named(like, fits):
    import torch

    space: dict = {}
    exec(f"import re, torch\n{helpers('check_tensor(x)')}", space)
    tensors = {"contiguous": torch.ones(2, 3, 4, 5), "every other": torch.ones(2, 3, 4, 10)[..., ::2],
               "channels last": torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)}
    assert [name for name, x in tensors.items() if space["check_tensor"](x, like)] == [fits]


def test_marks_are_looked_for_on_the_tensor_and_not_on_what_holds_it():
    owner = "L['self']._parameters"
    guards = parse_guards("+- RootGuardManager\n" f"| +- DictGuardManager: source={owner}, type=<class 'dict'>\n" + "".join(
        f"| | +- DIMENSION_DYNAMIC_MARKING_GUARD: hasattr({owner}['{name}'], '_dynamo_{kind}_indices') == False\n"
        for name in ("bias", "weight") for kind in ("dynamic", "static")))
    assert [guard.expression for guard in guards] == [
        f"has_no_marks({owner}['{name}'], '_dynamo_dynamic_indices', '_dynamo_static_indices')"
        for name in ("bias", "weight")]
    assert [guard.source for guard in guards] == [f"{owner}['bias']", f"{owner}['weight']"]


def test_helpers_are_there_if_they_are_called():
    assert helpers("a == 3") == "" and imports("a == 3") == ""
    text = helpers("check_tensor(x, '') and check_same_object(y)")
    assert "def check_tensor(" in text and "check_same_object = _checked_by_torch" in text and "def check_type(" not in text
    assert imports(text) == "import re\n\nimport torch\n"
