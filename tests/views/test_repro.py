"""One compilation as a program that runs alone. ``DEPYF_UPDATE_GOLDEN=1`` writes the text in ``golden`` anew."""

import os
import pathlib
import subprocess
import sys
from dataclasses import replace

import pytest

from depyf import cli
from depyf.records import store
from depyf.records.model import (
    CacheEntry,
    Capture,
    CodeText,
    Compilation,
    CompiledFunction,
    CompiledGraph,
    CompileId,
    Frame,
    GraphInput,
    GraphStage,
    Guard,
    SourceLocation,
    SymbolDecision,
    TransformedCode,
)
from depyf.views.repro import NotReproducible, repro
from torch_forks import torch_python

GOLDEN = pathlib.Path(__file__).parent / "golden" / "repro.py.txt"
GRAPH = '''class GraphModule(torch.nn.Module):
    def forward(self, s77: "Sym(s77)", L_x_: "f32[s77, 4][4, 1]cpu", L_self_up_: "f32[4, 4][4, 1]cpu"):
        l_x_ = L_x_
        l_self_up_ = L_self_up_

        # File: /home/me/model.py:14 in forward, code: y = x @ self.up + self.start
        matmul: "f32[s77, 4][4, 1]cpu" = l_x_ @ l_self_up_;  l_x_ = l_self_up_ = None
        start: "f32[4][1]cpu" = self.start
        add: "f32[s77, 4][4, 1]cpu" = matmul + start;  matmul = start = None
        true_0 = self.true_0
        false_0 = self.false_0
        cond = torch.ops.higher_order.cond(s77 > 2, true_0, false_0, (add,));  true_0 = false_0 = add = s77 = None
        getitem: "f32[s77, 4][4, 1]cpu" = cond[0];  cond = None
        return (getitem,)

    class true_0(torch.nn.Module):
        def forward(self, x: "f32[s77, 4][4, 1]cpu"):
            sin: "f32[s77, 4][4, 1]cpu" = x.sin();  x = None
            return (sin,)

    class false_0(torch.nn.Module):
        def forward(self, x: "f32[s77, 4][4, 1]cpu"):
            cos: "f32[s77, 4][4, 1]cpu" = x.cos();  x = None
            return (cos,)
'''
GUARDS = (
    Guard("check_global_state(grad_mode=True, autocast={'cpu': torch.bfloat16}, default_dtype=torch.float32)", "",
          "GLOBAL_STATE", ""),
    Guard("check_tensor(L['x'], dtype=torch.float32, device='cpu', size=(None, 4), stride=(4, 1), requires_grad=False)",
          "L['x']", "TENSOR_MATCH", ""),
    Guard("check_tensor(L['self'].up, dtype=torch.float32, device='cpu', size=(4, 4), stride=(4, 1), requires_grad=True, "
          "cls='Parameter')", "L['self'].up", "TENSOR_MATCH", ""),
    Guard("2 <= L['x'].size()[0]", "L['x']", "LAMBDA_GUARD", ""),
    Guard("check_same_object(G['torch'], 'module')", "G['torch']", "ID_MATCH", ""))
INPUTS = (GraphInput("s77", "L['x'].size()[0]"), GraphInput("L_x_", "L['x']"), GraphInput("L_self_up_", "L['self'].up"))


def recorded(text=GRAPH, graphs=("__compiled_fn_1",), backend="aot_eager", inputs=INPUTS):
    ids = CompileId(0, 1)
    entry = CacheEntry(ids, GUARDS, TransformedCode(ids, "forward", CodeText("", "exact"), None, ()), graphs)
    source = CodeText("def forward(self, x):\n    return cond(x @ self.up + self.start)\n", "exact")
    frame = Frame("Decoder_forward", "forward", SourceLocation("/home/me/model.py", 12, "forward"), source, True,
                  ("self", "x"), (), (entry,), title="Decoder.forward")
    made = tuple(CompiledGraph(name, name, ids, backend, (GraphStage("Captured_Graph", 0, text, inputs=inputs),))
                 for name in graphs)
    compilation = Compilation(ids, symbols=(SymbolDecision("created", "s77", "L['x'].size()[0]", "3"),))
    return Capture((CompiledFunction("Decoder_forward", (frame,)),), made, (), {"torch": "2.13.0", "python": "3.11.7"},
                   (compilation,))


def test_text():
    text = repro(recorded(), "0/1")
    compile(text, "repro", "exec")
    text = text[: text.index("def tensor(")]
    if os.environ.get("DEPYF_UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def needs_torch():
    """Skip where the graph cannot run: no torch, or one whose ``cond`` takes no Python number."""
    torch = pytest.importorskip("torch")
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 11):
        pytest.skip("torch.cond by a Python number raises a KeyError in this torch")


def run(path, text, *arguments, command=None):
    path.write_text(text)
    return subprocess.run([*(command or torch_python()), str(path), *arguments], capture_output=True, text=True)


def test_it_runs_alone(tmp_path):
    needs_torch()
    text = repro(recorded(), "0/1")
    done = run(tmp_path / "repro.py", text, command=[sys.executable, "-I"])
    # One result, three inputs, one gradient.
    assert (done.returncode, done.stdout) == (0, "equal: 5 values of eager and aot_eager\n"), done.stderr
    # A backend that gives something else is found.
    wrong = text.replace("def main():", "def wrong(graph, inputs):\n"
                         "    return lambda *args: tuple(each + 0.5 for each in graph(*args))\n\n\n"
                         "torch._dynamo.register_backend(wrong, name='wrong')\n\n\ndef main():")
    done = run(tmp_path / "wrong.py", wrong, "wrong")
    assert done.returncode == 1 and "eager and wrong differ: value 0: Tensor-likes are not close!" in done.stdout, done


def with_backend(text, returned):
    return text.replace("def main():", "def other(graph, inputs):\n"
                        f"    return lambda *args: {returned}\n\n\n"
                        "torch._dynamo.register_backend(other, name='other')\n\n\ndef main():")


def scaled(by):
    return f"graph(*(each * (1 + {by}) if isinstance(each, torch.Tensor) else each for each in args))"


def test_what_rounding_explains_is_equal(tmp_path):
    needs_torch()
    # (The guards say that autocast computes in bfloat16: about 3 digits.)
    text = repro(recorded(), "0/1")
    done = run(tmp_path / "close.py", with_backend(text, scaled("1e-3")), "other")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "equal up to rounding: 5 values of eager and other"), done
    done = run(tmp_path / "far.py", with_backend(text, scaled("0.5")), "other")
    assert done.returncode == 1 and "value 0" in done.stdout, done


def test_strides_are_told_from_numbers(tmp_path):
    needs_torch()
    text = with_backend(repro(recorded(), "0/1"), "tuple(each.t().contiguous().t() for each in graph(*args))")
    done = run(tmp_path / "strides.py", text, "other")
    assert done.returncode == 1
    assert done.stdout.startswith("eager and other differ: value 0: strides (4, 1) and (1, 3); its numbers are equal"), done


def test_an_operator_of_a_package_is_imported_with_the_file_that_calls_it():
    text = GRAPH.replace("l_x_ @ l_self_up_", "torch.ops.kernels.mm(l_x_, l_self_up_)")
    text = text.replace("/home/me/model.py", "/usr/lib/python3/dist-packages/kernels/linear/__init__.py")
    assert "\nimport kernels.linear  # registers kernels::mm\n" in repro(recorded(text), "0/1")


def test_an_operator_that_a_compilation_registers_is_imported():
    text = GRAPH.replace("l_x_ @ l_self_up_", "torch.ops.higher_order.register_hook(l_x_, l_self_up_)")
    assert "\nimport torch._higher_order_ops.register_hook  # registers higher_order::" in repro(recorded(text), "0/1")


def test_a_function_of_operator_or_math_has_the_name_that_torch_gives_it(tmp_path):
    needs_torch()
    product = "l_x_ @ l_self_up_ * _operator_not_(False) * math_ceil(0.5)"
    text = repro(recorded(GRAPH.replace("l_x_ @ l_self_up_", product)), "0/1", "eager")
    assert "\nfrom operator import not_ as _operator_not_\nfrom math import ceil as math_ceil\n" in text
    done = run(tmp_path / "operator.py", text, "eager")
    assert done.returncode == 0, done


@pytest.mark.parametrize("capture, name, message", [
    (recorded(), "0/7", "there is no graph of 0/7; there is 0/1 (Decoder.forward: __compiled_fn_1)"),
    (recorded(graphs=()), "0/1", "0/1 has no graph: what torch compiled of it calls none"),
    (recorded(graphs=("a", "b")), "0/1", "0/1 has 2 graphs; give the name of one: a, b"),
    (recorded(GRAPH.replace("cond[0]", "my_helper(cond)")), "0/1", "the graph calls my_helper, a function that is in no dump"),
    (recorded(GRAPH.replace('start: "f32[4][1]cpu" = self.start', "start = self.start")), "0/1",
     "the graph reads start from itself"),
    (recorded(GRAPH.replace("cond[0]", "self.layer(cond)")), "0/1", "the graph calls the module layer"),
    (recorded(GRAPH.replace("l_x_ @ l_self_up_", "torch.ops.mine.mm(l_x_, l_self_up_)")), "0/1",
     "the graph calls the operator mine::mm, which the program registers"),
    (recorded(GRAPH.replace("l_x_ @ l_self_up_",
                            "torch.ops.higher_order.triton_kernel_wrapper_mutation(kernel_idx = 0)")), "0/1",
     "the graph calls a Triton kernel (triton_kernel_wrapper_mutation), which is in no dump"),
    (recorded("# (torch printed this graph in a form that is not Python)\n# x\n"), "0/1", "is not Python"),
])
def test_what_a_dump_does_not_hold(capture, name, message):
    with pytest.raises(NotReproducible) as raised:
        repro(capture, name)
    assert message in str(raised.value)


def test_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / store.FILE).write_text("".join(store.lines(recorded(backend="mine"))))
    assert cli.main(["repro", ".", "[0/1]"]) == 0
    assert "BACKEND = 'inductor'\n" in (tmp_path / "repro_0_1.py").read_text()
    assert cli.main(["repro", ".", "0/1"]) == 2
    assert "repro_0_1.py is there already" in capsys.readouterr().err
    assert cli.main(["repro", ".", "0/1", "--force", "--backend", "eager"]) == 0
    assert "BACKEND = 'eager'\n" in (tmp_path / "repro_0_1.py").read_text()
    capsys.readouterr()
    assert cli.main(["repro", ".", "__compiled_fn_1", "-o", "-"]) == 0
    assert capsys.readouterr().out.startswith('"""Version [0/1] of Decoder.forward, alone')
    assert cli.main(["repro", ".", "0/9"]) == 2


@pytest.mark.parametrize(("backend", "given", "shown"), [
    ("inductor", {"mode": "'max-autotune'", "dynamic": "True"}, "{'inductor': {'mode': 'max-autotune'}}"),
    ("inductor", {"options": "{'epilogue_fusion': False, 'guard_filter_fn': keep_all}", "fullgraph": "True"},
     "{'inductor': {'options': {'epilogue_fusion': False}}}"),
    ("inductor", {"options": "{'a': 1, ..."}, "{}"), ("mine", {"mode": "'fast'"}, "{}"), ("inductor", None, "{}"),
    ("inductor", {"options": "{'a': None, 'b': [1, ...], 'c': 'x' + ..., [1]: 2, 'd': f}"},
     "{'inductor': {'options': {'a': None}}}")])
def test_what_torch_compile_was_told_is_told_again(backend, given, shown):
    whole = recorded(backend=backend)
    text = repro(replace(whole, compilations=(replace(whole.compilations[0], arguments=given),)), "0/1")
    assert f"\nARGUMENTS = {shown}  # of torch.compile, by backend\n" in text
    assert "torch.compile(graph, backend=backend, **ARGUMENTS.get(backend, {}))" in text


@pytest.mark.parametrize(("backend", "given", "said"), [
    ("inductor", {"options": "{'post_grad_custom_post_pass': function, 'a': True, 'b': 'x' + ...}", "mode": "Mode"},
     "# Left out, as no record has its value: mode, options['post_grad_custom_post_pass'], options['b']"),
    ("inductor", {"options": "{'a': 1, ..."}, "# Left out, as no record has its value: options"),
    ("mine", {"mode": "'fast'"}, "# Left out, as it is for the backend 'mine': mode"),
    ("inductor", {"mode": "'max-autotune'", "dynamic": "True"}, "")])
def test_what_is_left_out_is_named(backend, given, said):
    whole = recorded(backend=backend)
    text = repro(replace(whole, compilations=(replace(whole.compilations[0], arguments=given),)), "0/1")
    above = text.partition("\nARGUMENTS = ")[0].splitlines()[-1]
    assert above == said or not said and not above.startswith("# Left out")
