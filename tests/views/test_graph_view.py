"""The view of a graph: the same program as torch's print, in the user's words."""

import re

import pytest
import torch

from depyf.capture.torch_private import graph_modules
from depyf.link.functions import link_function
from depyf.records.model import Caller, GraphInput, GraphStage, SourceLocation
from depyf.records.naming import title
from depyf.torch_text.wrapping import NOT_PYTHON, WIDTH, legal_graph
from depyf.views.dump.directory import graph_file
from depyf.views.dump.graph_view import graph_view, parameter_words
from depyf.views.formatting import stage_name

CAPTURED = '''\
class GraphModule(torch.nn.Module):
    def forward(self, s27: "Sym(s27)", L_x_: "f32[s27, 8][8, 1]cuda:0", L_self_modules_a_b_modules_1_parameters_w_: "f32[8]", L_self_modules_a_modules_b_modules_1_parameters_w_: "f32[8]", L_kwargs_mask_: "b8[8]", G_scale: "f32[8]"):
        l_x_ = L_x_
        l_self_modules_a_b_modules_1_parameters_w_ = L_self_modules_a_b_modules_1_parameters_w_
        l_self_modules_a_modules_b_modules_1_parameters_w_ = L_self_modules_a_modules_b_modules_1_parameters_w_
        l_kwargs_mask_ = L_kwargs_mask_
        g_scale = G_scale

        # File: /home/me/project/model.py:14 in forward, code: x = self.a(x, scale = 'l_x_')
        x: "f32[s27, 8][8, 1]cuda:0" = torch._C._nn.linear(l_x_, l_self_modules_a_b_modules_1_parameters_w_, l_self_modules_a_modules_b_modules_1_parameters_w_, scale = 'l_x_');  l_x_ = l_self_modules_a_b_modules_1_parameters_w_ = l_self_modules_a_modules_b_modules_1_parameters_w_ = None
        _set_grad_enabled = torch._C._set_grad_enabled(False);  _set_grad_enabled = None

        # File: /home/me/other/model.py:20 in helper, code: x += scale
        x += g_scale;  x_1: "f32[s27, 8][8, 1]cuda:0" = x;  x = g_scale = None
        x_1[l_kwargs_mask_] = 2;  setitem = x_1;  setitem = l_kwargs_mask_ = None
        wrap_body_0 = self.wrap_body_0
        out = torch.ops.higher_order.wrap(wrap_body_0, s27, x_1, l_kwargs_mask_);  wrap_body_0 = s27 = x_1 = None
        return (out,)

    class wrap_body_0(torch.nn.Module):
        def forward(self, s27: "Sym(s27)", x_1: "f32[s27, 8][8, 1]cuda:0", l_kwargs_mask_: "b8[8]"):
            s27_1 = s27
            x_2 = x_1

            # No stacktrace found for following nodes
            sin: "f32[s27, 8][8, 1]cuda:0" = x_2.masked_fill(l_kwargs_mask_, 0);  x_2 = l_kwargs_mask_ = None
            return (sin,)
'''
INPUTS = (
    GraphInput("s27", "L['x'].size()[0]"), GraphInput("L_x_", "L['x']"),
    GraphInput("L_self_modules_a_b_modules_1_parameters_w_", "L['self']._modules['a_b']._modules['1']._parameters['w']"),
    GraphInput("L_self_modules_a_modules_b_modules_1_parameters_w_",
               "L['self']._modules['a']._modules['b']._modules['1']._parameters['w']"),
    GraphInput("L_kwargs_mask_", "L['kwargs']['mask']"), GraphInput("G_scale", "G['scale']"))
VIEW = '''\
class GraphModule(torch.nn.Module):
    def forward(
        self,
        s27: "Sym(s27)",  # x.shape[0]
        x_0: "f32[s27, 8][8, 1]cuda:0",  # x
        a_b_1_w: "f32[8]",  # self.a_b[1].w
        a_b_1_w_0: "f32[8]",  # self.a.b[1].w
        mask: "b8[8]",  # kwargs['mask']
        scale: "f32[8]",
    ):
        # project/model.py:14 in forward: x = self.a(x, scale = 'l_x_')
        x: "f32[s27, 8][8, 1]cuda:0" = torch._C._nn.linear(x_0, a_b_1_w, a_b_1_w_0, scale = 'l_x_')
        torch._C._set_grad_enabled(False)  # grad mode off

        # other/model.py:20 in helper: x += scale
        x += scale
        x_1: "f32[s27, 8][8, 1]cuda:0" = x
        x_1[mask] = 2
        wrap_body_0 = self.wrap_body_0
        out = torch.ops.higher_order.wrap(wrap_body_0, s27, x_1, mask)
        return (out,)

    # a function that torch keeps as a graph of its own (other/model.py:20)
    class wrap_body_0(torch.nn.Module):
        def forward(
            self,
            s27: "Sym(s27)",
            x_1: "f32[s27, 8][8, 1]cuda:0",
            mask: "b8[8]",
        ):
            sin: "f32[s27, 8][8, 1]cuda:0" = x_1.masked_fill(mask, 0)
            return (sin,)
'''


def test_a_captured_graph():
    view = graph_view(CAPTURED, INPUTS)
    assert view.text == VIEW
    assert view.files == (("project/model.py", "/home/me/project/model.py"), ("other/model.py", "/home/me/other/model.py"))
    assert view.names["l_x_"] == "x_0"
    assert view.names["wrap_body_0.x_2"] == "x_1"


@pytest.mark.parametrize("part", ["l_x_ = L_x_", "linear(", "x += g_scale", "x_1[", "return (out", "x_2.masked"])
def test_each_statement_is_found_in_the_view(part):
    shown = {"l_x_ = L_x_": "x_0: ", "x += g_scale": "x += scale", "x_2.masked": "x_1.masked"}
    view = graph_view(CAPTURED, INPUTS)
    line = next(number for number, line in enumerate(CAPTURED.split("\n"), 1) if part in line)
    assert shown.get(part, part) in view.text.split("\n")[view.line(line) - 1]


def test_without_what_the_inputs_are():
    lines = graph_view(CAPTURED).text.split("\n")
    assert [line.strip() for line in lines[3:9]] == [
        's27: "Sym(s27)",', 'x_0: "f32[s27, 8][8, 1]cuda:0",', 'a_b_1_w: "f32[8]",', 'a_b_1_w_0: "f32[8]",',
        'kwargs_mask: "b8[8]",', 'scale: "f32[8]",']


def test_a_graph_that_is_not_python_is_a_comment():
    text = legal_graph(CAPTURED.replace("scale = 'l_x_'", "mesh = DeviceMesh(<2>)"))
    assert text.startswith(NOT_PYTHON)
    view = graph_view(text, INPUTS)
    lines = view.text.split("\n")
    assert all(not line or line.startswith("#") and len(line) <= WIDTH for line in lines)
    assert '#         x_0: "f32[s27, 8][8, 1]cuda:0",  # x' in lines
    line = next(number for number, line in enumerate(text.split("\n"), 1) if "x_1[l_kwargs" in line)
    assert lines[view.line(line) - 1] == "#         x_1[mask] = 2"


def test_a_statement_that_makes_no_node_may_be_the_only_one_of_its_file():
    text = COND.replace("return (add_,)", "# File: /u/b.py:9 in h, code: check(x)\n        assert add_\n        return (add_,)")
    view = graph_view(text)
    assert "b.py" in [short for short, _ in view.files] and "assert" in view.text


def test_what_torch_printed_up_to_2_6():
    text = CAPTURED.replace("        # ", "         # ").replace("    # No", "     # No")
    assert graph_view(text, INPUTS).text == VIEW


def test_inputs_of_a_live_graph():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(4, 4)])

        def forward(self, x, extra):
            return self.layers[0](x) + extra["mask"]

    sources = {}

    def backend(gm, inputs):
        text = legal_graph(gm.print_readable(print_output=False, include_stride=True, include_device=True))
        inputs = tuple(GraphInput(*each) for each in graph_modules.graph_inputs(gm))
        sources.update(view=graph_view(text, inputs).text, module=gm)
        return gm.forward

    x, y = torch.randn(2, 2, 4)
    model = Model()
    assert torch.equal(torch.compile(model, backend=backend, dynamic=True)(x, {"mask": y}), model(x, {"mask": y}))
    parameters = dict(re.findall(r"(?m)^        (\w+): \"[^\"]*\",(?:  # (.*))?$", sources["view"]))
    assert parameters["layers_0_weight"] == "self.layers[0].weight"
    assert parameters["extra_mask"] == "extra['mask']"
    assert parameters["x"] == ""
    assert "x.shape[0]" in parameters.values()
    assert link_function(sources["module"].forward, sources["view"], "/tmp/view.py")


BOXED = '''\
class lambda_(torch.nn.Module):
    def forward(self, args_list):
        args_iter = iter(args_list)
        primals_2 = next(args_iter)
        add = next(args_iter)
        args_list.clear()
        # File: model.py:14 in forward, code: x = self.a(x)
        mul: "f32[8]" = torch.ops.aten.mul.Tensor(primals_2, add);  primals_2 = add = None
        return (mul,)
'''


def test_a_later_stage_keeps_its_names_and_has_the_users_beside_its_parameters():
    lines = graph_view(BOXED, INPUTS, captured=False).text.split("\n")
    assert lines[3] == "        primals_2 = next(args_iter)  # x"
    assert lines[4] == "        add = next(args_iter)"
    assert lines[6:9] == ["", "        # model.py:14 in forward: x = self.a(x)",
                          '        mul: "f32[8]" = torch.ops.aten.mul.Tensor(primals_2, add)']


def test_what_aot_autograd_says_of_values():
    text = '''\
class inner_f(torch.nn.Module):
    def forward(
        self,
        primals_1: "f32[8]",  # PlainAOTInput(idx=1)
        primals_2: "f32[8]",  # ParamAOTInput(target='a.w')
        tangents_1: "f32[8]",  # TangentAOTInput(output=PlainAOTOutput(idx=0))
        seed: "f32[8]",  # SomethingNew(x=1)
    ):
        return pytree.tree_unflatten([
            mul,  # PlainAOTOutput(idx=0)
            mul_1,  # GradAOTOutput(grad_of=PlainAOTInput(idx=1))
            None,  # None
        ], self._out_spec)
'''
    shown = [line.strip() for line in graph_view(text, INPUTS, captured=False).text.split("\n")]
    assert shown[3:7] == [
        'primals_1: "f32[8]",  # x', 'primals_2: "f32[8]",  # a.w', 'tangents_1: "f32[8]",  # gradient of result 0',
        'seed: "f32[8]",  # SomethingNew(x=1)']
    assert shown[8:13] == ["return pytree.tree_unflatten([", "mul,  # result 0", "mul_1,  # gradient of x", "None,",
                           "], self._out_spec)"]


@pytest.mark.parametrize("said, words", [
    ("PlainAOTInput(idx=7)", "input 7"),
    ("SavedForBackwardsAOTOutput(idx=2)", "saved for backward 2"),
    ("InputMutationAOTOutput(mutated_input=PlainAOTInput(idx=1))", "new value of x"),
    ("SyntheticBaseAOTInput(base_of=PlainAOTInput(idx=1))", "what x is a view of"),
    ("IntermediateBaseAOTOutput(base_of=PlainAOTOutput(idx=0))", "what result 0 is a view of")])
def test_roles_of_other_values(said, words):
    text = ("class inner_f(torch.nn.Module):\n    def forward(\n        self,\n"
            f'        a: "f32[8]",  # {said}\n    ):\n        return (a,)\n')
    assert f'a: "f32[8]",  # {words}' in graph_view(text, INPUTS, captured=False).text


def test_words_of_parameters():
    assert parameter_words("primals_2", INPUTS) == parameter_words("arg1_1", INPUTS) == "x"
    assert parameter_words("mask", INPUTS) == "kwargs['mask']"
    assert parameter_words("add", INPUTS) == parameter_words("primals_9", INPUTS) == ""


@pytest.mark.parametrize("text", ["", "# no graph\n", "x = 1\n", "class G:\n    def forward(", "class G:\n    pass\n"])
def test_what_is_no_graph_stays_as_it_is(text):
    view = graph_view(text)
    assert view.text == text
    assert view.line(1) == 1


@pytest.mark.parametrize(("parameters", "shown", "name"), [
    ("self, primals_1, primals_2", "after Inductor's passes, forward", "post-grad forward"),
    ("self, primals_2, tangents_1", "after Inductor's passes, backward", "post-grad backward"),
    ("self, arg0_1", "after Inductor's passes", "post-grad 2"),
])
def test_a_stage_says_whether_it_is_forward_or_backward(parameters, shown, name):
    stage = GraphStage("AFTER_POST_GRAD", 1, f"class G(torch.nn.Module):\n    def forward({parameters}):\n        return (tangents_1,)\n")
    assert title(stage) == shown
    assert stage_name(stage) == name
    file = graph_file("__compiled_fn_1", stage)
    assert file.text.startswith(f"# __compiled_fn_1: {shown}\nimport torch\n")
    assert file.text.split("\n")[file.line(3) - 1] == "        return (tangents_1,)"


def test_a_function_of_operator_is_imported_by_the_name_that_torch_gives_it():
    stage = GraphStage("Captured_Graph", 0, "class G(torch.nn.Module):\n    def forward(self, x):\n        y = _operator_not_(x)\n        return (y,)\n")
    assert "\nfrom operator import not_ as _operator_not_\nimport torch\n" in graph_file("__compiled_fn_1", stage).text


COND = '''\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[3]"):
        l_x_ = L_x_

        # File: /torch/_functorch/vmap.py:173 in helper, code: return _add(arg)
        _add: "f32[]" = torch._add(l_x_)

        # File: /torch/_functorch/vmap.py:503 in other, code: level()
        level = torch.level();  level = None

        # File: /home/me/model.py:9 in f, code: return torch.cond(p, g, h, (x,))
        true_0 = self.true_0
        false_0 = self.false_0
        cond = torch.ops.higher_order.cond(_add, true_0, false_0, (l_x_,));  l_x_ = true_0 = false_0 = None
        add_ = cond.add_(1)
        return (add_,)

    class true_0(torch.nn.Module):
        def forward(self, l_x_: "f32[3]"):
            return (l_x_,)

    class false_0(torch.nn.Module):
        def forward(self, l_x_: "f32[3]"):
            return (l_x_,)
'''


def test_graphs_within_the_graph_say_what_they_are():
    text = graph_view(COND, (GraphInput("L_x_", "L['x']"),)).text
    assert "    # what torch.cond runs if its condition is true (model.py:9)\n    class true_0(" in text
    assert "    # what torch.cond runs if its condition is false (model.py:9)\n    class false_0(" in text


FLEX = '''\
class GraphModule(torch.nn.Module):
    def forward(self, L_q_: "f32[3]"):
        l_q_ = L_q_

        # File: /torch/nn/attention/flex_attention.py:2462 in flex_attention, code: out = flex_attention_hop(
        score_mod_0 = self.score_mod_0
        mask_fn_0 = self.mask_fn_0
        flex_attention = torch.ops.higher_order.flex_attention(l_q_, score_mod_0, (32, l_q_, 16, mask_fn_0), 0.25, {}, (), ());  l_q_ = None
        return (flex_attention,)

    class score_mod_0(torch.nn.Module):
        def forward(self, child: "f32[]"):
            return child

    class mask_fn_0(torch.nn.Module):
        def forward(self, child: "i32[]"):
            return child
'''


def test_graphs_in_a_tuple_say_what_they_are_with_the_users_line():
    caller = Caller(SourceLocation("/home/me/model.py", 8, "f", "y = flex_attention(q, k, v)"), ("flex_attention",))
    text = graph_view(FLEX, (GraphInput("L_q_", "L['q']"),), callers=(caller,)).text
    assert "    # score_mod of flex_attention (model.py:8)\n    class score_mod_0(" in text
    assert "    # mask_mod of flex_attention (model.py:8)\n    class mask_fn_0(" in text


def test_the_users_line_behind_a_place_in_torch():
    caller = Caller(SourceLocation("/home/me/model.py", 8, "f", "y = torch.vmap(g)(x)"), ("_add", "level"))
    view = graph_view(COND, (GraphInput("L_x_", "L['x']"),), callers=(caller,))
    assert (
        "        # model.py:8 in f: y = torch.vmap(g)(x)\n        #   by vmap.py:173 in helper: return _add(arg)\n"
        "        _add: \"f32[]\" = torch._add(x)\n\n        #   by vmap.py:503 in other: level()\n        torch.level()\n"
        in view.text)
    assert [short for short, _ in view.files] == ["vmap.py", "model.py"]
    long = graph_view(COND.replace("return _add(arg)", f"return _add({'arg, ' * 13}arg)"), callers=(caller,)).text
    assert max(map(len, long.splitlines())) <= WIDTH


def test_what_is_written_to_is_marked():
    text = COND.replace("cond.add_(1)", "l_x_.add_(1)").replace("l_x_ = true_0", "true_0")
    view = graph_view(text, (GraphInput("L_x_", "L['self']._buffers['x']"),))
    assert view.writes == ("self.x",) and '        x: "f32[3]",  # self.x, written to\n' in view.text
    assert graph_view(COND).writes == ()


@pytest.mark.parametrize("call, words", [
    ("_set_grad_enabled = torch._C._set_grad_enabled(True);  _set_grad_enabled = None", "grad mode on"),
    ("e = torch.amp.autocast_mode._enter_autocast('cpu', torch.bfloat16, True, None)", "autocast on for cpu: bfloat16"),
    ("enter = torch.amp.autocast_mode._enter_autocast('cuda', None, True, None)", "autocast on for cuda"),
    ("enter = torch.amp.autocast_mode._enter_autocast('cuda', torch.float16, False, True)", "autocast off for cuda"),
    ("out = torch.amp.autocast_mode._exit_autocast(enter);  enter = out = None", "autocast as before"),
    ("enter = torch.autograd.grad_mode._enter_inference_mode(True)", "inference mode on"),
    ("y = self.torch._C._set_grad_enabled(True)", ""),
])
def test_what_sets_a_mode_says_so(call, words):
    text = COND.replace("        cond = ", f"\n        # No stacktrace found for following nodes\n        {call}\n        cond = ")
    lines = graph_view(text).text.split("\n")
    line = next(line for line in lines if "_enabled(" in line or "_autocast(" in line or "_mode(" in line)
    assert line.partition("  # ")[2] == words and not lines[lines.index(line) - 1]
    assert "No stacktrace" not in "\n".join(lines)
