"""What a call must satisfy, on one screen; open sizes; what differs between versions."""

import re

import pytest
from guards_for_tests import all_versions, frame, symbol, version

from depyf.model.arithmetic import plain
from depyf.model.guards import Tensor
from depyf.records.model import Guard
from depyf.torch_text.guard_failures import guard_failures
from depyf.torch_text.wrapping import WIDTH
from depyf.views.dump import full_code
from depyf.views.dump.guards import versions as of_versions
from depyf.views.dump.guards.functions import LONGEST, TO_DECIDE, call_guards, guards_file
from depyf.views.dump.guards.sizes import open_sizes, range_left, symbol_table
from depyf.views.dump.guards.versions import as_comment, deciding, not_in_all, version_differences


def changes(old, new):
    return [change.text for change in of_versions.changes(old, new)]


def tensor(name, size, stride, grad=False, dtype="float32", cls=""):
    return Guard(f"check_tensor({name}, dtype=torch.{dtype}, device='cpu', size=({size}), stride=({stride}), "
                 f"requires_grad={grad}{cls})", name, "TENSOR_MATCH", "")


def about(expression, source="", kind="EQUALS_MATCH"):
    return Guard(expression, source, kind, "")


STATE = about("check_global_state(grad_mode=False, autocast={}, default_dtype=torch.float32)", kind="GLOBAL_STATE")


# --- the function of the full code -------------------------------------------------------------------
def test_arguments_come_first_and_the_rest_is_counted():
    guards = [STATE, about("not dict_contains('use_cache', L['kwargs'])", "L['kwargs']"),
              about("len(L['kwargs']) == 1", "L['kwargs']"), about("check_type(L['kwargs'], 'dict')", "L['kwargs']"),
              tensor("L['kwargs']['ids']", "2, None", "None, 1", dtype="int64"),
              about("has_no_marks(L['kwargs']['ids'], '_dynamo_static_indices')", "L['kwargs']['ids']"),
              about("L['kwargs']['ids'].stride()[0] == L['kwargs']['ids'].size()[1]"),
              about("2 <= L['kwargs']['ids'].size()[1]"), about("L['self'].training == False", "L['self'].training")]
    for i in range(4):
        owner = f"L['self']._modules['layers']._modules['{i}']"
        guards += [about(f"{owner}.a{k} is None", f"{owner}.a{k}") for k in range(5)]
    guards.append(about("check_same_object(G['__import_a_dot_b'], 'module')", "G['__import_a_dot_b']"))
    one = version(guards, "self", "kwargs", symbols=[symbol("s27", "L['kwargs']['ids'].size()[1]")])
    assert call_guards(one) == '''\
def guards_0_for_f(self, kwargs):
    """A call is served by version [0/0] if all of this holds. All 30 conditions: guards_0_for_f.py."""
    return (
        # arguments
        set(kwargs) == {'ids'}
        and check_tensor(kwargs['ids'], 'i64[2, n] contiguous on cpu')
        # sizes
        and 2 <= kwargs['ids'].shape[1]  # n: 2 or more (torch: s27)
        # values
        and self.training is False
        # 1 more on sizes and strides that the shapes and ranges above say
        # 2 more on arguments (types, marks of mark_dynamic)
        # 20 on self.layers, by layer: 5 a layer, the same for layers 0 to 3
        # 1 on modules and globals (a.b)
        # 1 on torch's state (grad mode off, no autocast, default dtype float32, ...)
    )'''.splitlines()


def test_keys_in_their_order_are_one_condition_and_tensors_need_no_type():
    """Of what lies in a dictionary torch prints no source: the dictionary's stands above it."""
    guards = []
    for at, key in enumerate(("a", "b")):
        item = f"L['weights']['{key}']"
        guards += [about(f"list(dict.keys(L['weights']))[{at}] == '{key}'", "L['weights']"),
                   about(f"check_type({item}, 'torch.Tensor')", "L['weights']", "TYPE_MATCH"), tensor(item, "4", "1")]
    lines = call_guards(version(guards, "weights"))
    assert lines[3:-1] == [
        "        # arguments", "        list(weights)[:2] == ['a', 'b']",
        "        and check_tensor(weights['a'], 'f32[4] on cpu')", "        and check_tensor(weights['b'], 'f32[4] on cpu')",
        "        # 2 more on arguments (types)"]


@pytest.mark.parametrize(("conditions", "left"), [
    (["0 <= n", "16*n >= 2", "n != 1", "(16*n) != 0"], "2 or more"), (["2 <= n <= 9", "n != 9"], "2 to 8"),
    (["n > 3", "2*n < 9"], "4"), (["3*n <= 10"], "at most 3"), (["n != 4", "m >= 2"], "any"), (["5 <= 2*n"], "3 or more")])
def test_bounds_of_a_number(conditions, left):
    one = version([about(each, "L['n']") for each in conditions], "n")
    assert range_left(one.sizes, one.conditions, "n").in_words() == left


@pytest.mark.parametrize("count", [1, 30, 60, 500])
def test_no_version_has_more_than_forty_lines(count):
    guards = [STATE]
    for i in range(count):
        guards += [tensor(f"L['x']['{i}a']", "None, 3", "3, 1"), about(f"2 <= L['x']['{i}a'].size()[0]"),
                   about(f"L['x']['{i}b'] == {i}", f"L['x']['{i}b']"),
                   about(f"G['a_{i}'] == {i}", f"G['a_{i}']"), about(f"L['self'].n{i} == 1", f"L['self'].n{i}"),
                   about(f"L['free{i}'] == {i}", f"L['free{i}']")]
    lines = call_guards(version(guards, "self", "x", freevars=[f"free{i}" for i in range(count)]))
    assert len(lines) <= LONGEST and max(map(len, lines)) <= WIDTH
    compile("\n".join(lines), "guards", "exec")


def test_layers_of_arguments_stand_once():
    guards = [tensor(f"L['cache'].layers[{i}].{name}", "1, 4", "4, 1") for i in range(20) for name in ("keys", "values")]
    text = "\n".join(call_guards(version(guards, "cache")))
    assert ("all(check_tensor(cache.layers[i].keys, 'f32[1, 4] on cpu')" in text
            and "for i in range(20))" in text and "more on" not in text)


def test_a_version_without_guards():
    assert call_guards(version([], "x")) == ["def guards_0_for_f(x):", "    # torch gave no guards", "    return True"]


def test_long_signatures():
    names = [f"a_long_name_of_a_parameter_{i}" for i in range(12)]
    lines = call_guards(version([about(f"L['{names[0]}'] == 1", f"L['{names[0]}']")], *names))
    assert max(map(len, lines)) <= WIDTH
    compile("\n".join(lines), "guards", "exec")


# --- open sizes -----------------------------------------------------------------------------------------
def sizes(guards, *arguments, original=""):
    one = version(guards, *arguments, original=original)
    return {size.expression: (size.name, size.range.in_words()) for size in one.sizes.open.values()}, one


def test_sizes_have_the_names_of_the_user():
    guards = [tensor("L['x']", "None, None", "None, 1"), tensor("L['y']", "None,", "1,"),
              about("2 <= L['x'].size()[0] <= 256"), about("2 <= L['x'].size()[1]")]
    ranges, _ = sizes(guards, "x", "y", original="def f(x, y):\n    b, t = x.shape\n    k = y.size(0)\n")
    assert ranges == {"x.shape[0]": ("b", "2 to 256"), "x.shape[1]": ("t", "2 or more"), "y.shape[0]": ("k", "any")}


def test_names_that_mean_something_else_are_not_taken():
    guards = [tensor("L['x']", "None, None", "None, 1")]
    ranges, _ = sizes(guards, "x", original="def f(x):\n    n = batch(x)\n    return n\n")
    assert [name for name, _ in ranges.values()] == ["m", "k"]


def test_where_several_sizes_stand_in_first_place_none_is_the_batchs():
    """Nodes and edges of a graph: ``batch`` for the edges, the only ones with columns, would mislead."""
    guards = [tensor("L['nodes']", "None,", "1,"), tensor("L['edges']", "None, 4", "4, 1")]
    ranges, _ = sizes(guards, "nodes", "edges")
    assert [name for name, _ in ranges.values()] == ["n", "m"]


def test_sizes_that_are_equal_to_others():
    guards = [tensor("L['x']", "None, 4", "4, 1"), tensor("L['y']", "None,", "1,"), tensor("L['z']", "None, 2", "2, 1"),
              about("L['y'].size()[0] == 2*L['x'].size()[0]"), about("L['z'].size()[0] == L['x'].size()[0]")]
    ranges, of = sizes(guards, "x", "y", "z")
    assert list(ranges) == ["x.shape[0]"]
    assert [of.sizes.described(one) for one in of.conditions if isinstance(one, Tensor)] == [
        "f32[batch, 4] on cpu", "f32[2*batch] on cpu", "f32[batch, 2] on cpu"]


def test_a_size_that_is_compared_with_itself_is_open():
    guards = [tensor("L['x']", "None,", "1,"), about("L['x'].size()[0] == 4*(L['x'].size()[0] // 4)")]
    ranges, of = sizes(guards, "x")
    assert ranges == {"x.shape[0]": ("n", "any")}
    assert "        and x.shape[0] == 4 * (x.shape[0] // 4)" in call_guards(of)


def test_strides_that_follow_from_open_sizes_are_not_said():
    x = tensor("L['x']", "2, None, None, 3", "None, None, 3, 1")
    follow = [about("L['x'].stride()[0] == 3*L['x'].size()[1]*L['x'].size()[2]"),
              about("L['x'].stride()[1] == 3*L['x'].size()[2]")]
    other = [about("L['x'].stride()[0] == 6*L['x'].size()[1]"), about("L['x'].stride()[1] == 3*L['x'].size()[2]")]
    for guards, layout in ((follow, " contiguous"), (other, " strides (any, any, 3, 1)"), ([], " strides (any, any, 3, 1)")):
        one = version([x, *guards], "x")
        assert one.sizes.described(one.conditions[0]) == f"f32[2, n, m, 3]{layout} on cpu"


def test_strides_of_a_square_follow_from_its_size():
    x = tensor("L['x']", "1, 3, None, None", "None, None, None, 1")
    size = "L['x'].size()[2]"
    one = version([x, about(f"L['x'].size()[3] == {size}"), about(f"L['x'].stride()[0] == 3*{size}**2"),
                   about(f"L['x'].stride()[1] == {size}*{size}"), about(f"L['x'].stride()[2] == {size}")], "x")
    lines = call_guards(one)
    assert "        check_tensor(x, 'f32[1, 3, n, n] contiguous on cpu')" in lines and "stride()" not in "".join(lines)
    assert "        # 4 more on sizes and strides that the shapes and ranges above say" in lines


def test_open_strides_of_channels_last_are_not_said():
    x = tensor("L['x']", "2, 3, None, None", "None, 1, None, 3")
    wide, high = "L['x'].size()[3]", "L['x'].size()[2]"
    one = version([x, about(f"L['x'].stride()[0] == 3*{wide}*{high}"), about(f"L['x'].stride()[2] == 3*{wide}")], "x")
    assert one.sizes.described(one.conditions[0]) == "f32[2, 3, n, m] channels last on cpu"


def test_a_layout_that_became_another():
    x = tensor("L['x']", "None, None", "None, 1")
    assert differences([x, about("L['x'].stride()[0] == L['x'].size()[1]")], [x], "x") == [
        "x: contiguous -> strides (any, 1)"]


def test_what_a_size_must_not_come_to_narrows_its_range():
    x = tensor("L['x']", "1, None, None", "None, None, 1")
    n, m = "L['x'].size()[1]", "L['x'].size()[2]"
    guards = [x, about(f"2 <= {n}"), about(f"2 <= {m} <= 9"), about(f"1 + (((-1) + {n}) // 2) != 1"),
              about(f"(({n} - 1) // 2)*{m} != 1"), about(f"{m} - {n} != 1"), about(f"2*{m} != 6")]
    ranges, of = sizes(guards, "x")
    assert ranges == {"x.shape[1]": ("n", "3 or more"), "x.shape[2]": ("m", "2 to 9")}
    lines = [line.strip() for line in call_guards(of) if "!=" in line]
    assert lines == ["and x.shape[2] - x.shape[1] != 1", "and 2 * x.shape[2] != 6"]
    assert "(x.shape[1] - 1) // 2 + 1 != 1" in guards_file(of)


def test_symbols_of_a_graph():
    from depyf.records.model import SourceLocation

    place = SourceLocation("m.py", 8, "f", "rows = x.nonzero()")
    one = version([tensor("L['x']", "None, 4", "4, 1"), about("2 <= L['x'].size()[0]")], "x", symbols=[
        symbol("s7", "L['x'].size()[0]"), symbol("u0", "", "unbacked", location=place), symbol("u0 >= 2", "", "guarded"),
        symbol("u0 < 9", "", "guarded"), symbol("s99", "L['x'].size()[1]")])
    assert symbol_table('a: "f32[s7, 4]" = b; c: "i64[u0]" = d  # s99', one.compilation, one.sizes) == [
        "# s7: x.shape[0], 2 or more", "# u0: what x.nonzero() gives (line 8), known only when the graph runs, 2 to 8"]
    assert symbol_table("u0", one.compilation, one.sizes, {"u0": "x.shape[1]"}) == ["# u0: x.shape[1], 2 to 8"]
    assert symbol_table("u0", one.compilation, one.sizes, {"u0": ""}) == ["# u0: given to the graph, 2 to 8"]


# --- differences ---------------------------------------------------------------------------------------
def differences(old, new, *arguments):
    return changes(*all_versions([old, new], *arguments))


def test_differences_are_spelled_out():
    old = [tensor("L['x']", "2, 8", "8, 1"), about("L['mask'] is None", "L['mask']"),
           about("L['mode'] == 'sum'", "L['mode']"), about("len(L['items']) == 2", "L['items']"),
           about("L['scale'] == 0.5", "L['scale']"), STATE]
    new = [tensor("L['x']", "2, None", "None, 1", grad=True), tensor("L['mask']", "2, 2", "2, 1", dtype="bool"),
           about("L['mode'] == 'mean'", "L['mode']"), about("not L['items']", "L['items']"),
           about("check_type(L['scale'], 'float')", "L['scale']"), about("L['scale'] > 0.0"),
           about("2 <= L['x'].size()[1] <= 64"), about("L['x'].stride()[0] == L['x'].size()[1]"),
           about(STATE.expression.replace("False", "True"), kind="GLOBAL_STATE")]
    assert differences(old, new, "x", "mask", "mode", "items", "scale") == [
        "x.shape[1]: 8 -> any, 2 to 64", "x.requires_grad: False -> True", "mask: None -> bool[2, 2] on cpu",
        "mode: 'sum' -> 'mean'", "len(items): 2 -> 0", "scale: 0.5 -> any float", "grad mode off -> grad mode on",
        "only [0/1]: scale > 0.0"]


def test_a_range_that_became_another():
    x = tensor("L['x']", "None, 4", "4, 1")
    assert differences([x, about("2 <= L['x'].size()[0] <= 256")], [x, about("257 <= L['x'].size()[0]")], "x") == [
        "x.shape[0]: 2 to 256 -> 257 or more"]


def test_all_differences_are_told_and_layers_once():
    old = [about(f"L['self'].layers[{i}].n == 1", f"L['self'].layers[{i}].n") for i in range(30)]
    new = [about(f"L['self'].layers[{i}].n == 2", f"L['self'].layers[{i}].n") for i in range(30)]
    new += [about(f"L['self'].b{i} > 2", f"L['self'].b{i}") for i in range(50)]
    lines = differences(old, new, "self")
    assert lines[0] == "self.layers[i].n: 1 -> 2  (for i in range(30))" and len(lines) == 51
    older, newer = all_versions([old, new], "self")
    assert len(as_comment(older, newer)) == 52
    assert as_comment(older, newer, 10)[1:] == [
        "#   self.layers[i].n: 1 -> 2  (for i in range(30))", "#   only [0/1] looks at self: 50 conditions",
        "#   (each of these: guards_1_for_f.py)"]
    above, _, below = guards_file(newer, older).partition("def guards_1_for_f(self):")
    assert "#   only [0/1] looks at self: 50 conditions\n#   (each of these: the end of this file)" in above
    assert below.endswith("\n".join(as_comment(older, newer)) + "\n")


def test_versions_that_differ_in_nothing():
    guards = [about("L['n'] == 1", "L['n']")]
    assert as_comment(*all_versions([guards, guards], "n")) == ["# version [0/1] has the conditions of [0/0]"]


def test_the_numbering_of_torch_is_no_difference():
    assert differences([about("check_same_object(G['__builtins_dict___0']['len'])", "G['__builtins_dict___0']['len']")],
                       [about("check_same_object(G['__builtins_dict___2']['len'])", "G['__builtins_dict___2']['len']")]) == []


# --- graphs ---------------------------------------------------------------------------------------------
def graph(name, size, twist="", count=30):
    body = "".join(f'    add_{i}: "f32[{size}]cpu" = x + {i};  x = None\n    view_{i} = add_{i}.view(2, {size}, {twist}-1)\n'
                   for i in range(count))
    return f'def {name}(x: "f32[{size}]"):\n{body}    return (view_0,)\n'


def like_before(text, shown):
    def statements(function):
        return [re.sub(': "[^"]*"', "", line.strip()).partition(";  ")[0] for line in function.splitlines()[1:]]

    return full_code.like_before(statements(text), {name: statements(each) for name, each in shown.items()})


def test_a_graph_that_differs_in_sizes_is_shown_by_that():
    old = {"__compiled_fn_1": graph("__compiled_fn_1", "8")}
    brief = like_before(graph("__compiled_fn_3", "s7"), old)
    assert brief == "# the statements of __compiled_fn_1 above, with s7 instead of 8 in 30 statements"


def test_a_statement_that_keeps_a_size_in_one_place_and_replaces_it_in_another_is_shown():
    old, new = (graph(name, "8").replace("view_1 = add_1.view(2, 8, -1)", f"view_1 = add_1.view({sizes})")
                for name, sizes in (("g", "8, 16, 8"), ("h", "s7, 16, 8")))
    assert like_before(new, {"g": old}) == (
        "# the statements of g above; and these differ (- there, + here):\n"
        "#   - view_1 = add_1.view(8, 16, 8)\n#   + view_1 = add_1.view(s7, 16, 8)")


def test_a_graph_that_differs_in_more():
    old = {"__compiled_fn_1": graph("__compiled_fn_1", "8")}
    assert like_before(graph("__compiled_fn_3", "8", twist="-"), old) == ""
    wired = graph("__compiled_fn_3", "8").replace("add_7.view", "add_6.view")
    brief = like_before(wired, old)
    assert "#   - view_7 = add_7.view(2, 8, -1)\n#   + view_7 = add_6.view(2, 8, -1)" in brief
    more = graph("__compiled_fn_3", "8").replace("    return", "    new = x.sin()\n    return")
    assert "#   + new = x.sin()" in like_before(more, old)


def test_what_differs_at_the_end_of_a_long_statement_is_shown():
    long = ", ".join(f"argument_{i}=None" for i in range(10))
    old = {"h": graph("h", "8").replace("    return", f"    y = g({long}, causal=True)\n    return")}
    brief = like_before(graph("g", "8").replace("    return", f"    y = g({long}, causal=False)\n    return"), old)
    assert "causal=True)\n" in brief and brief.endswith("causal=False)")
    assert max(map(len, brief.splitlines())) <= WIDTH


def test_numbers_that_torch_counts_names_by_do_not_matter():
    old = {"__compiled_fn_1": graph("__compiled_fn_1", "8")}
    other = graph("__compiled_fn_3", "8").replace("add_", "add_9")
    assert like_before(other, old).splitlines()[0] == "# the statements of __compiled_fn_1 above"


def test_a_short_graph_is_shown():
    assert like_before(graph("g", "8", count=4), {"h": graph("h", "8", count=4)}) == ""


def test_names_of_a_frame_without_text():
    assert open_sizes([], frame("x")).open == {}


def test_sizes_that_are_no_longer_equal():
    x = tensor("L['x']", "None, None", "None, 1")
    same = about("L['x'].size()[1] == L['x'].size()[0]")
    assert differences([x, same], [x, about("2 <= L['x'].size()[1]")], "x") == [
        "x.shape[1]: equal to x.shape[0] -> any, 2 or more"]


def test_an_open_size_that_became_a_number():
    x, fixed = tensor("L['x']", "None, 4", "4, 1"), tensor("L['x']", "1, 4", "4, 1")
    assert differences([x, about("2 <= L['x'].size()[0]")], [fixed], "x") == ["x.shape[0]: any, 2 or more -> 1"]


def test_versions_that_want_a_bound_method_are_dead():
    method = about("check_same_object(L['___stack0'], 'builtin_function_or_method')", "L['___stack0']", "ID_MATCH")
    gone = guard_failures("0/0: Cache line invalidated because L['___stack0'] got deallocated")
    one, other, lasting = all_versions([[method], [method], [about("L['n'] == 1", "L['n']")]], "___stack0", "n",
                                       failures=gone)
    assert (one.dead, other.dead, lasting.dead) == ("___stack0", "___stack0", "")
    assert call_guards(one) == [
        "def guards_0_for_f(___stack0, n):",
        '    """Version [0/0] served one call, for which all of this held. All 1 condition: guards_0_for_f.py."""',
        "    # dead: ___stack0 is a new bound method at each call, so this version dies with it.",
        "    return (",
        "        # arguments",
        "        check_same_object(___stack0, 'builtin_function_or_method')",
        "    )"]
    assert "    # dead: ___stack0 is a new bound method" in guards_file(one)


def test_another_object_on_the_stack_does_not_kill_a_version():
    chosen = about("check_same_object(L['___stack0'], 'function')", "L['___stack0']", "ID_MATCH")
    other = guard_failures("0/0: ___check_obj_id(L['___stack0'], 140), type=<class 'function'>",
                           seen=lambda expression: "an object of type function")
    assert not any(each.dead for each in all_versions([[chosen], [chosen]], "___stack0", failures=other))


def chooser(places, **more):
    """The function that chooses, of versions that torch tried at these places."""
    import dataclasses

    from depyf.views.dump.full_code import _dispatching

    versions_of_n = all_versions([[about(f"L['n'] == {at}", "L['n']")] for at in range(len(places))], "n", **more)
    placed = [dataclasses.replace(each, entry=dataclasses.replace(each.entry, tried=place))
              for each, place in zip(versions_of_n, places)]
    return _dispatching(versions_of_n[0].frame, "f", placed).splitlines()


def test_versions_stand_in_the_order_in_which_torch_tried_them():
    lines = chooser([1, 0])
    assert lines[1] == "    # one after another until one fits; torch begins with the one that was used last"
    assert [line for line in lines if " if " in line] == ["    if guards_1_for_f(n):", "    if guards_0_for_f(n):"]


def test_an_order_that_is_not_known_is_none():
    lines = chooser([0, None])
    assert lines[1] == "    # in the order in which they were compiled; in which order torch tried them was not recorded"
    assert [line for line in lines if " if " in line] == ["    if guards_0_for_f(n):", "    if guards_1_for_f(n):"]


def test_what_lay_on_the_stack_at_a_break_is_said():
    import dataclasses

    one = version([about("check_type(L['___stack0'], 'float')", "L['___stack0']")], "___stack0", "x")
    one = dataclasses.replace(one, frame=dataclasses.replace(one.frame, stack=("loss.item()",)))
    assert "        # computed up to the graph break: ___stack0: loss.item()" in call_guards(one)


def test_differences_name_what_lay_on_the_stack_by_its_expression():
    import dataclasses

    name = "L['___stack0']"
    pair = all_versions([[about(f"check_type({name}, 'int')", name)], [about(f"{name} == 34", name)]], "___stack0")
    old, new = (dataclasses.replace(each, frame=dataclasses.replace(each.frame, stack=("x.item()",))) for each in pair)
    assert as_comment(old, new) == ["# version [0/1] differs from [0/0]:", "#   x.item(): any int -> 34"]


def test_what_came_into_some_layers_of_a_graph_is_found_there():
    layer = "".join(f"    y_{k} = torch.{name}(x, 8)\n" for k, name in enumerate(("add", "mul", "relu") * 4))
    old = "def g(x):\n" + layer * 30 + "    return (y_0,)\n"
    new = "def h(x):\n" + (layer * 9 + layer + "    e = torch.sin(x)\n") * 3 + "    return (y_0,)\n"
    brief = like_before(new, {"g": old})
    assert [line for line in brief.splitlines() if line.startswith("#   ")] == ["#   + e = torch.sin(x)"] * 3


def test_what_tells_the_versions_apart_is_said_first():
    def guards(number):
        return [about(f"len(L['self'].history) == {number}", "L['self'].history"),
                about(f"L['self']._seen == {number}", "L['self']._seen"), about("L['self']._kept == 1", "L['self']._kept"),
                *(about(f"L['self'].value{k} is True", f"L['self'].value{k}") for k in range(9))]

    compiled = all_versions([guards(1), guards(2)], "self")
    lines = call_guards(compiled[1], not_in_all(compiled[1], compiled))
    at = lines.index("        # values")
    assert lines[at + 1 : at + 3] == ["        len(self.history) == 2", "        and self._seen == 2"]
    assert not any("_kept" in line for line in lines)
    assert not_in_all(compiled[0], compiled[:1]) == {}


@pytest.mark.parametrize("printed, shown", [
    ("(1 + (((-1) + x.shape[3]) // 2)) != 1", "(x.shape[3] - 1) // 2 + 1 != 1"),
    ("(-1) + a*b <= 7", "a * b - 1 <= 7"), ("2 + (-1) != x", "1 != x"), ("x[-1] == y", "x[-1] == y"),
    ("64 - Max(0, 64 - n)", "64 - max(0, 64 - n)"), ("-1 * max(0, -1 * n + 64) + 64", "64 - max(0, 64 - n)"),
    ("s17 - s77 + 4 < 100", "s17 - s77 + 4 < 100"), ("s17 + 4 + -1*s77 < 100", "s17 - s77 + 4 < 100"),
    ("-a*b - 2*c + 3", "3 - 2 * c - a * b"), ("(s0 + 1) - (s1 + 2)", "s0 - s1 - 1"), ("-s0 <= -4", "-s0 <= -4"),
    ("Ne(PythonMod(s2, 2), 0)", "s2 % 2 != 0"), ("8*((s0//2)) <= 9", "8 * (s0 // 2) <= 9"),
    ("Eq(Min(64, s77), s17)", "min(64, s77) == s17"), ("(s0 - 1)*(s1 + 2)", "(s0 - 1) * (s1 + 2)"),
    ("not ( Python", "not ( Python"),
])
def test_a_condition_has_one_form_whatever_printer_wrote_it(printed, shown):
    assert plain(printed) == shown == plain(shown)


def test_room_is_kept_for_what_this_version_alone_has():
    """However much there is to say of the arguments: without it nothing would tell the version from the others."""
    def guards(number):
        return [*(about(f"L['x{k}'] == {k}", f"L['x{k}']") for k in range(60)),
                about(f"G['model'].served == {number}", "G['model'].served"),
                about("G['model'].bias is None", "G['model'].bias")]

    compiled = all_versions([guards(1), guards(2)], *(f"x{k}" for k in range(60)))
    lines = call_guards(compiled[1], not_in_all(compiled[1], compiled))
    assert "        and model.served == 2" in lines and not any("bias" in line for line in lines)
    assert len(lines) <= LONGEST


def test_an_object_of_which_parts_are_looked_at_is_there():
    """It is not that nobody looks: `None` has no parts."""
    of = "L['self'].callback"
    compiled = all_versions([[about(f"{of} is None", of)], [about(f"{of}.level == 1", f"{of}.level")]], "self")
    assert "#   self.callback: None -> an object" in as_comment(*compiled)
    assert "#   self.callback: an object -> None" in as_comment(*reversed(compiled))


def test_a_value_that_only_the_new_graph_has_is_no_other_value():
    """What is computed of it differs, though it reads the same but for the number that torch counts names up by."""
    body = "".join(f"    y_{k} = torch.relu(x)\n" for k in range(30))
    old = f"def g(x, w):\n{body}    loss = y_0.mean()\n    z = torch.isnan(loss)\n    return (z, loss)\n"
    new = (f"def h(x, w):\n{body}    loss = y_0.mean()\n    loss_1 = loss * w\n    z = torch.isnan(loss_1)\n"
           "    return (z, loss_1)\n")
    assert like_before(new, {"g": old}).splitlines()[1:] == [
        "#   + loss_1 = loss * w", "#   - z = torch.isnan(loss)", "#   + z = torch.isnan(loss_1)",
        "#   - return (z, loss)", "#   + return (z, loss_1)"]


def test_statements_between_differences_that_are_equal_are_none():
    body = "".join(f"    y_{k} = torch.relu(x)\n" for k in range(30))
    old = f"def g(x):\n{body}    t = x * 1.0\n    s = x - t\n    a = s.abs()\n    b = a.clamp(1)\n    return b\n"
    new = f"def h(x):\n{body}    n = -x\n    t = x * 0.9\n    s = x - t\n    a = s.abs()\n    return a\n"
    lines = like_before(new, {"g": old}).splitlines()
    assert not any("s = x - t" in line or "a = s.abs()" in line for line in lines)
    assert "#   + n = -x" in lines and "#   - b = a.clamp(1)" in lines


def test_what_two_versions_want_different_of_each_layer_stands_in_both():
    def guards(frozen):
        return [about(f"L['self'].layers[{k}].{name} is {frozen == (name == 'scale')}", f"L['self'].layers[{k}].{name}")
                for k in range(3) for name in ("scale", "shift")]

    compiled = all_versions([guards(True), guards(False)], "self")
    decide = deciding(compiled)
    for version_, (scale, shift) in zip(compiled, [(True, False), (False, True)]):
        lines = call_guards(version_, not_in_all(version_, compiled), decide)
        at = lines.index("        # values")
        assert lines[at + 1 : at + 3] == [f"        all(self.layers[i].scale is {scale} for i in range(3))",
                                          f"        and all(self.layers[i].shift is {shift} for i in range(3))"]
        assert not any("versions apart" in line for line in lines)


def test_how_much_of_what_tells_versions_apart_has_no_room_is_said():
    def guards(number):
        return [*(about(f"L['x{k}'] == {k}", f"L['x{k}']") for k in range(60)),
                *(about(f"L['self'].a{k} == {number}", f"L['self'].a{k}") for k in range(60))]

    compiled = all_versions([guards(1), guards(2)], "self")
    lines = call_guards(compiled[1], not_in_all(compiled[1], compiled), deciding(compiled))
    shown = sum("self.a" in line for line in lines)
    assert shown >= TO_DECIDE and len(lines) <= LONGEST
    assert f"        # {60 - shown} conditions in which versions differ are in {compiled[1].guards_file} only" in lines


def test_what_a_closure_contains_is_among_what_versions_differ_in():
    """`dynamic=True` spared no version where a table in a closure had grown, too (functools.singledispatch)."""
    path = "L['f'].__closure__[1].cell_contents.table"
    old, new = all_versions([[about(f"len({path}) == {size}", path)] for size in (1, 2)], "f")
    assert [(each.was.value, each.now.value) for each in version_differences(old, new, {})] == [("1", "2")]


def test_types_are_among_what_versions_differ_in():
    """Of a call with another type in two arguments only the one that torch names was said."""
    path = "L['d']"
    old, new = all_versions([[about(f"check_type({path}, '{name}')", path)]
                             for name in ("list", "tuple")], "d")
    assert [each.text for each in version_differences(old, new, {})] == ["type(d): list -> tuple"]
