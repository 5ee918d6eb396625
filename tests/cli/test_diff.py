"""``depyf diff``: what changed between two runs, and nothing that did not."""

import dataclasses
import os
import subprocess
import sys
import textwrap

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
    Failure,
    Frame,
    GraphBreak,
    GraphStage,
    Guard,
    GuardFailure,
    Kernel,
    KernelCall,
    ModuleCall,
    Phase,
    SourceFile,
    SourceLocation,
    TransformedCode,
)
from depyf.torch_text.run_ids import guard_text
from depyf.views.diff.difference import difference
from depyf.views.diff.difference import text as as_text
from depyf.views.diff.pairing import aligned, first_difference, paired
from torch_forks import torch_python

FILE = "/home/me/model.py"
SOURCE = "import torch\n\ndef f(x):\n    x = x + 1\n    print('side')\n    return x * 2\n"


def graph_text(*lines, size="s77", mark=""):
    """A captured graph of torch's, with numbers of nodes that begin at ``mark``."""
    body = "".join(f"        {line}\n" for line in lines)
    return (f'class GraphModule(torch.nn.Module):\n    def forward(self, {size}: "Sym({size})", '
            f'L_x_: "f32[{size}, 8][8, 1]cpu"):\n        l_x_ = L_x_\n\n{body}')


def run(operation="relu", breaks=True, size="s77", number=2, line=3, mark="", path=FILE, seconds=1.0, guard="8",
        kernels=("cpp_fused_add_0",), layers=2, torch="2.13.0", title="Net.forward", constant="1", value="10",
        held="140140474983792_c0"):
    """A function with a graph break, a resume function and a recompile."""
    ids, behind, again = CompileId(0, 0), CompileId(1, 0), CompileId(0, 1)
    nodes = []
    statements = []
    for layer in range(layers):
        name = f"{operation}{mark}_{layer}" if layer or mark else operation
        statements += [f"# File: {path}:{line + 1} in f, code: x = x + 1",
                       f'{name}: "f32[{size}, 8][8, 1]cpu" = torch.{operation}(l_x_, {constant});  l_x_ = None']
        nodes.append(name)
    text = graph_text(*statements, f"return ({nodes[-1]},)", size=size)
    modules = tuple(ModuleCall(f"layers.{index}", "Layer", -1, (name,)) for index, name in enumerate(nodes))
    graph = CompiledGraph(
        f"__compiled_fn_{number}", f"__compiled_fn_{number}_0123", ids, "inductor",
        (GraphStage("Captured_Graph", 0, text, modules=modules),),
        (Kernel(0, f"# kernel_path: /tmp/{number}\nx = {operation!r}\n", calls=tuple(
            KernelCall(name, "C++") for name in kernels)),))

    def entry(compile_id, graphs, resumes=()):
        guards = (Guard(f"check_size(L['x'], {guard})", "L['x']", "TENSOR_MATCH", ""),
                  Guard(f"G['torch'].Tensor is G['_{held}'].Tensor", "G['torch'].Tensor", "DUPLICATE_INPUT", ""),
                  Guard(f"check_obj_id(G['f'], 14{number}2345678901)", "G['f']", "ID_MATCH", ""),
                  Guard(f"dict_version(G['torch'].nodes) == 84074{number}", "G['torch'].nodes", "DICT_VERSION", ""),
                  Guard(f"G['__optimizer_14036309000{number}344_14036299964272{number}_c46{number}']() is not None", "", "WEAKREF_ALIVE", ""))
        code = TransformedCode(compile_id, "f", CodeText("def f(x): ...", "exact"), None, ("x",))
        return CacheEntry(compile_id, guards, code, graphs, resumes)

    where = SourceLocation(path, line, "f")
    resume = f"__resume_at_{number}0_{number}"
    frames = [Frame("f", "f", where, CodeText("", "exact"), True, ("x",), (),
                    (entry(ids, (graph.name,), (resume,) if breaks else ()),), title=title)]
    graph_breaks = ()
    if breaks:
        frames.append(Frame(resume, f"torch_dynamo_resume_in_f_at_{line + 3}", where, CodeText("", "exact"), False,
                            ("x",), (), (entry(behind, ()),)))
        graph_breaks = (GraphBreak(ids, f"Failed to trace builtin operator 0x{number}", stack=(
            SourceLocation(path, line + 2, "f", "print('side')"),)),)
    failure = GuardFailure(ids, f"size mismatch. expected 2, actual {value}", "L['x']", "2", value,
                           subject="L['x'].size()[0]")
    compilations = (
        Compilation(ids, "f", where, outcome="compiled", breaks=graph_breaks, seconds=seconds, start=1e9 * seconds,
                    phases=(Phase("dynamo", seconds / 2),)),
        Compilation(again, "f", where, outcome="skipped", guard_failures=(failure,)))
    source = SourceFile(path, "\n" * (line - 3) + SOURCE)
    return Capture((CompiledFunction("f", tuple(frames)),), (graph,), (), {"torch": torch, "python": "3.11.7"},
                   compilations, (source,))


def write(folder, capture):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / store.FILE).write_text("".join(store.lines(capture)))
    return folder


def printed_difference(before, after, full=False):
    return [line for lines in difference(before, after, full).functions.values() for line in lines]


def test_what_torch_had_made_when_it_failed_is_no_version():
    """A log does not have it."""
    live = run(breaks=False)
    compilations = tuple(dataclasses.replace(each, outcome="failed") for each in live.compilations)
    function, = live.functions
    without = dataclasses.replace(function, frames=tuple(dataclasses.replace(frame, entries=()) for frame in function.frames))
    assert printed_difference(dataclasses.replace(live, compilations=compilations),
                              dataclasses.replace(live, compilations=compilations, functions=(without,))) == []


@pytest.mark.parametrize("other", [
    {}, {"size": "s27", "number": 7}, {"line": 20}, {"mark": "_9"}, {"path": "/elsewhere/model.py"}, {"seconds": 9.0},
    {"torch": "2.15.0"}, {"kernels": ("cpp_fused_add_3",)}, {"value": "12"}, {"held": "140379096755200_c1"}],
    ids=str)
def test_what_differs_from_run_to_run_is_no_difference(tmp_path, capsys, other):
    for full in (False, True):
        assert printed_difference(run(), run(**other), full) == []
    assert cli.main(["diff", str(write(tmp_path / "a", run())), str(write(tmp_path / "b", run(**other)))]) == 0
    out = capsys.readouterr().out
    assert "No difference." in out and ("torch 2.13.0, now 2.15.0." in out) == ("torch" in other)
    assert cli.main(["diff", "-q", str(tmp_path / "a"), str(tmp_path / "b")]) == 0 and not capsys.readouterr().out


@pytest.mark.parametrize(("other", "expected"), [
    ({"operation": "gelu"}, "  * `layers.0-1`: `+ gelu`, `- relu`"),
    ({"layers": 3}, "  * `layers.2`: `+ relu`"),
    ({"constant": "1234567890123"}, "  * the same operations; the first line that differs:"),
    ({"constant": "3"}, '  + relu: "f32[s0, 8][8, 1]cpu" = torch.relu(l_x_, 3)'),
    ({"breaks": False}, "* graph break **gone**: `model.py:5` `print('side')` (Failed to trace builtin operator 0x2)"),
    ({"breaks": False}, "* version of `f` from line 6 on gone: 5 guards, no graph"),
    ({"guard": "9"}, "* guards of version: 1 gone and 1 new"),
    ({"guard": "9"}, "  + check_size(L['x'], 9)"),
    ({"kernels": ("cpp_fused_add_0", "extern_kernels.mm")}, "  + extern_kernels.mm (C++)"),
    ({"kernels": ("cpp_fused_add_0", "cpp_fused_add_1")}, "  + cpp_fused_add (C++)"),
])
def test_a_change_is_told(tmp_path, capsys, other, expected):
    lines = [line.replace("graph of version", "graph").replace("guards of f", "guards") for line in
             printed_difference(run(), run(**other))]
    assert any(line in (expected, expected.replace(" of version:", ":")) for line in lines), lines
    assert cli.main(["diff", str(write(tmp_path / "a", run())), str(write(tmp_path / "b", run(**other)))]) == 1
    assert "No difference" not in capsys.readouterr().out
    back = printed_difference(run(**other), run())
    assert back and all(("**new**" in line) <= ("gone" not in line) for line in back)


def test_full_shows_lines(tmp_path, capsys):
    write(tmp_path / "a", run()), write(tmp_path / "b", run(operation="gelu"))
    assert cli.main(["diff", "--full", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    out = capsys.readouterr().out.splitlines()
    assert '    -        relu: "f32[s0, 8][8, 1]cpu" = torch.relu(l_x_, 1)' in out
    assert '    +        gelu: "f32[s0, 8][8, 1]cpu" = torch.gelu(l_x_, 1)' in out
    assert "    -x = 'relu'" in out


@pytest.mark.parametrize(("one", "other", "same"), [
    ("G['t'] == frozenset({<class 'list'>, <class 'dict'>})", "G['t'] == frozenset({<class 'dict'>, <class 'list'>})", True),
    ("G['t'] == {'a', 'b'}", "G['t'] == {'a', 'c'}", False),
    ("max(1, s // 8)*s + 2*s >= 3", "2*s + s*max(s // 8, 1) >= 3", True),
    ("8*x.size()[0] != y.size()[0]*x.size()[1]", "x.size()[1]*y.size()[0] != x.size()[0]*8", True),
    ("3 < x % 3 + y", "y + x % 3 > 3", True), ("2 <= x", "x >= 2", True), ("2 <= x", "x > 2", False),
    ("x - y >= 2*y", "y - x >= 2*y", False), ("x + 1 < 2", "2 < x + 1", False), ("x % 2*y", "y*(x % 2)", True),
    ("dict_version(G['d']) == 840747", "dict_version(G['d']) == 840748", True),
    ("len(G['d']) == 840747", "len(G['d']) == 840748", False),
    ("G['x'][1] == 3.14159265358979", "G['x'][1] == 3.14159265358978", False),
    ("check_obj_id(G['f'], 140363090003344)", "check_obj_id(G['f'], 140363090003345)", True)])
def test_guards_are_compared_without_what_has_no_order(one, other, same):
    texts = [guard_text(Guard(each, "", "", "")) for each in (one, other)]
    assert (texts[0] == texts[1]) is same, texts


def test_sizes_are_compared_without_parentheses_that_say_nothing(tmp_path):
    """Torch prints them where it compiled, not where it read its cache."""
    for name, size in (("a", "s0 - (Mod(s0, 3))"), ("b", "s0 - Mod(s0, 3)"), ("c", "s0 - Mod(s0, 4)")):
        write(tmp_path / name, run(operation="relu", size=size))
    assert cli.main(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert cli.main(["diff", str(tmp_path / "a"), str(tmp_path / "c")]) == 1


def test_functions_that_come_and_go():
    one, other = run(), run(title="Other.forward", path="/home/me/other.py")
    named = dataclasses.replace(other, functions=tuple(
        dataclasses.replace(each, name="g") for each in other.functions))
    assert "**gone**" in printed_difference(one, Capture())[0] and "**new** in this run" in printed_difference(Capture(), one)[0]
    assert len(difference(one, named).functions) == 2


def test_a_run_that_did_not_end_is_compared_all_the_same(tmp_path):
    capture = run()
    (write(tmp_path / "a", capture) / store.FILE).write_text("".join(list(store.lines(capture))[:-1]))
    result = difference(store.read(str(tmp_path / "a")), capture)
    assert not result and "did not end" in result.head[0]


def test_ranks(tmp_path, capsys):
    for folder, operation in (("a", "relu"), ("b", "gelu")):
        for rank in (0, 1):
            write(tmp_path / folder / f"rank_{rank}", run(operation="relu" if not rank else operation))
    assert cli.main(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    out = capsys.readouterr().out
    assert out.count("No difference.") == 1 and out.count("+ gelu") == 1
    write(tmp_path / "c", run())
    assert cli.main(["diff", str(tmp_path / "a"), str(tmp_path / "c")]) == 2
    assert cli.main(["diff", str(tmp_path / "a" / "rank_0"), str(tmp_path / "c")]) == 0
    write(tmp_path / "b" / "rank_2", run())
    assert cli.main(["diff", str(tmp_path / "b"), str(tmp_path / "a")]) == 1
    assert "rank_2 only in" in capsys.readouterr().out


def test_bad_input(tmp_path, capsys):
    assert cli.main(["diff", str(tmp_path), str(tmp_path / "nosuch")]) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith("depyf: ")


def test_pairs_keep_their_order():
    assert paired("abca", "xaba", str) == [(None, "x"), ("a", "a"), ("b", "b"), ("c", None), ("a", "a")]
    assert paired("AB", "ab", str, str.lower) == [("A", "a"), ("B", "b")]
    assert paired("ab", "b", str) == [("a", None), ("b", "b")]
    assert paired("ab", "", str) == [("a", None), ("b", None)]
    assert aligned("abc", "axc", str) == [("a", "a"), ("b", "x"), ("c", "c")]
    assert aligned("bc", "abcd", str) == [(None, "a"), ("b", "b"), ("c", "c"), (None, "d")]


def test_long_lines_are_cut_where_they_differ():
    def excerpts(first, second):
        return [line[2:] for line in first_difference(*(GraphStage("log", 0, text) for text in (first, second)))]

    long = "x+" * 150
    assert excerpts("a = 1", "a = 2") == ["a = 1", "a = 2"] and excerpts("a = 1", "a = 1") == []
    first, second = excerpts(long + "y" + long, long + "z")
    assert "+yx" in first and second.endswith("x+z") and max(len(first), len(second)) < 120
    assert excerpts(long, long + "y")[1].endswith("x+y")


PROGRAM = textwrap.dedent("""
    import sys, torch, depyf

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(3))

        def forward(self, x):
            for layer in self.layers:
                x = CHANGE(layer(x))
            print("side")
            return x.sum()

    net = torch.compile(Net(), backend="aot_eager")
    with depyf.prepare_debug(sys.argv[1], page=False):
        for n in (2, 3):
            net(torch.ones(n, 4)).backward()
""")


def test_real_runs(tmp_path, capsys):
    """Twice the same program, then one with another operation, a line lower."""
    pytest.importorskip("torch")
    for name, text in (("a", PROGRAM.replace("CHANGE", "torch.relu")), ("b", PROGRAM.replace("CHANGE", "torch.relu")),
                       ("c", "\n" + PROGRAM.replace("CHANGE", "torch.tanh"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "net.py").write_text(text)
        subprocess.run([*torch_python(), "net.py", str(tmp_path / name / "dump")], cwd=tmp_path / name, check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    a, b, c = (str(tmp_path / name / "dump") for name in "abc")
    assert cli.main(["diff", "--full", a, b]) == 0, capsys.readouterr().out
    capsys.readouterr()
    assert cli.main(["diff", a, c]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "  Net.forward, net.py:10" in lines
    assert "  - graph of versions 1, 2 changed: the captured one, and so joint, forward, backward" in lines
    assert "    - in no module: + tanh (3 times), - relu (3 times)" in lines
    assert not any("break" in line or "recompile" in line for line in lines)


def test_a_function_that_was_skipped_and_is_compiled(tmp_path, capsys):
    """A break in a loop leaves all of a function to Python."""
    pytest.importorskip("torch")
    (tmp_path / "a.py").write_text(PROGRAM.replace("CHANGE(layer(x))", "layer(x); print('in a loop')")
                                   .replace("torch.nn.Linear(4, 4)", "torch.nn.Tanh()").replace(".backward()", ""))
    (tmp_path / "b.py").write_text((tmp_path / "a.py").read_text().replace("; print('in a loop')", ""))
    for name in "ab":
        subprocess.run([*torch_python(), f"{name}.py", str(tmp_path / name)], cwd=tmp_path, check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        text = (tmp_path / name / "records.jsonl").read_text().replace(f"{name}.py", "net.py")
        (tmp_path / name / "records.jsonl").write_text(text)
    assert cli.main(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    output = capsys.readouterr().out
    assert "version new: " in output, output


MORE = """\
# What changed from `before` to `after`

graph breaks 1 → 2, recompiles 1 → 3, versions 1 → 2.

### `Net.forward`, `model.py:3`

* graph break (once, now twice): `model.py:5` `print('side')` (Failed to trace builtin operator 0x2)
* recompile (once, now twice): `x.shape[0]`: 2 → 10 in `Net.forward`
* recompile **new**: `x.shape[1]`: 3 → 4 in `Net.forward`
* not compiled (once, now twice): skipped
"""


def test_more_breaks_and_recompiles_are_headed_by_their_numbers():
    before = run()
    first, again = before.compilations
    other = GuardFailure(first.compile_id, "x.size()[1] == 3", "L['x']", "3", "4", subject="x.size()[1]")
    more = (dataclasses.replace(first, compile_id=CompileId(0, 2), guard_failures=(other,)),
            dataclasses.replace(again, compile_id=CompileId(0, 3)))
    after = dataclasses.replace(before, compilations=(*before.compilations, *more))
    result = difference(before, after)
    result.times.clear()
    assert as_text(result, ("before", "after")) == MORE
    assert as_text(difference(after, before), ("b", "a")).splitlines()[2].startswith("graph breaks 2 → 1, recompiles 3 → 1")


def test_numbers_that_changed_are_a_difference_even_where_nothing_else_did():
    """A graph more that is equal to another is told by its number."""
    before = run()
    after = dataclasses.replace(before, compilations=(*before.compilations, dataclasses.replace(
        before.compilations[0], compile_id=CompileId(0, 4), breaks=())))
    assert difference(before, after).numbers == [("versions", 1, 2)] and difference(before, after)
    assert not difference(before, before).numbers


def test_functions_have_their_own_numbers_where_there_are_several():
    one = run()
    refused = Failure("Unsupported", "no")
    both = dataclasses.replace(one, compilations=(*one.compilations, Compilation(
        CompileId(5, 0), "g", SourceLocation(FILE, 40, "g"), outcome="skipped", failure=refused)))
    more = dataclasses.replace(both, compilations=(*both.compilations, dataclasses.replace(
        one.compilations[0], compile_id=CompileId(0, 2)), Compilation(
        CompileId(6, 0), "g", SourceLocation(FILE, 40, "g"), outcome="skipped", failure=refused)))
    assert [title.partition(": ")[2] for title in difference(both, more).functions] == [
        "graph breaks 1 → 2, versions 1 → 2", "skipped 1 → 2"]
