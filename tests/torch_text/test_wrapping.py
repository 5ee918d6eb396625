"""Long statements broken at a column stay the same syntax tree."""

import ast

import pytest

from depyf.torch_text.wrapping import WIDTH, broken, comment, items, wrapped

NAMES = [f"some_value_{number}" for number in range(30)]
LONG = "layers_0_self_attn_projection_weight_of_a_long_name"


@pytest.mark.parametrize("code", [
    f"x: \"f32[2, 8]\" = torch.f({', '.join(NAMES)})",
    f"return ({', '.join(NAMES)},)",
    f"return [{', '.join(NAMES)}]",
    f"return {LONG} + {LONG} + {LONG}",
    f"{', '.join(NAMES)}, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)",
    f"x: \"f32[2, 8][8, 1]cuda:0\" = {LONG} * {LONG}",
    f"x: \"DTensor(f32[2, 8][8, 1]cuda:0, {'S(0), ' * 20})\" = torch.ops.aten.mm.default({LONG}, {LONG})",
    f"x[({', '.join(NAMES)})] = {LONG}",
    f"x = {LONG}[({', '.join(NAMES)})]",
    f"x = torch.f(a, [{', '.join(NAMES)}], key = {{{', '.join(map(repr, NAMES))}}}, other = ('a', \"b, (\"))",
    f"x = torch.f('{'a very long text ' * 20}', source = \"{'it is ' * 40}\\n\")",
    f"x = torch.f({LONG}(1).{LONG}({LONG}), {LONG} + {LONG} * {LONG})",
    f"x_{LONG}_{LONG}: \"f32[2, 8][8, 1]cuda:0\" = torch.ops.aten.mm.default({LONG}, {LONG})",
])
@pytest.mark.parametrize("indent", [4, 12])
def test_the_same_tree(code, indent):
    lines = wrapped(code, indent)
    assert len(lines) > 1
    assert all(len(line) <= WIDTH for line in lines), "\n".join(lines)
    shown = "\n".join(["def f(self):", *lines])
    assert ast.dump(ast.parse(shown)) == ast.dump(ast.parse(f"def f(self):\n    {code}"))


def test_after_a_long_key_is_broken():
    text = f"check_type(a.{LONG}.{LONG}[\"<class '{LONG}.{LONG}'>\"]['hidden_states'], '{LONG}')"
    lines = broken(text, 8)
    assert all(len(line) <= WIDTH for line in lines), "\n".join(lines)
    assert ast.dump(ast.parse("(" + "\n".join(lines) + ")")) == ast.dump(ast.parse(text))


def test_lines_are_indented_by_the_brackets_that_are_open():
    layer = f"self.{LONG}[i]"
    lines = broken(f"all(check_type({layer}.cache, '{LONG}') and {layer}.is_on is False for i in range(2))", 8)
    assert lines == ["        all(", f"            check_type({layer}.cache,", f"                '{LONG}')",
                     f"            and {layer}.is_on is False for i in range(2))"]


def test_what_fits_is_left_alone():
    assert wrapped("x = 1", 4) == ["    x = 1"]
    assert wrapped("y" * 200, 0) == ["y" * 200]


def test_comments():
    assert comment("a short one", 4) == ["    # a short one"]
    lines = comment("word " * 60, 4)
    assert all(line.startswith("    # ") and len(line) <= WIDTH for line in lines)
    assert " ".join(line.strip(" #") for line in lines).split() == ["word"] * 60


def test_items():
    assert items("a, f(b, [c]), 'd, e', {1: 2},") == ["a", "f(b, [c])", "'d, e'", "{1: 2}"]
