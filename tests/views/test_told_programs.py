"""The run of small programs that run for real: why each was not compiled, broke, or was compiled again.

``DEPYF_UPDATE_GOLDEN=1`` writes the texts in ``golden`` anew.
"""

import contextlib
import dataclasses
import difflib
import functools
import inspect
import logging
import os
import pathlib
import re
import sys

import pytest

torch = pytest.importorskip("torch")

import told_programs

import depyf
from depyf.fitting.given import NoSuchFunction, frame_of
from depyf.notebook import View
from depyf.program.summary import summary
from depyf.provenance.graph_provenance import Provenance
from depyf.records import store
from depyf.records.model import (
    Capture,
    Compilation,
    CompileId,
    SourceFile,
    SourceLocation,
    SymbolDecision,
)
from depyf.torch_text.libraries import is_library
from depyf.torch_text.user_expressions import with_stack_names
from depyf.views.advice import Adviser
from depyf.views.as_json import explain_document
from depyf.views.dump.guards.functions import call_guards
from depyf.views.dump.guards.versions import as_comment, deciding, versions
from depyf.views.dump.outline import saved_for_backward
from depyf.views.index.index import index
from depyf.views.index.overview import SectionContext, first_changes
from depyf.views.markdown import plain, unmarked
from depyf.views.page import run_data
from depyf.views.run_index import RunIndex
from depyf.views.user_source import UserSource
from depyf.views.verdict import verdict

GOLDEN = pathlib.Path(__file__).parent / "golden"
KINDS = told_programs.kinds()
#: What the row of each of ``told_programs.kinds()`` says.
ROWS = {
    "size": "`x.shape[0]`: 4 → 5", "size 1": "`x.shape[0]`: 4 → 1",
    "dtype": "`x.dtype`: `torch.float32` → `torch.float64`", "rank": "`x.ndim`: 2 → 1",
    "stride": "`x.stride(0)`: 3 → 1", "requires_grad": "`x.requires_grad`: `False` → `True`",
    "class of an argument": "`type(thing)`: `told_programs.Base` → `told_programs.Other`", "number": "`n`: 1 → 2",
    "string": "`how`: `'sum'` → `'mean'`", "flag": "`on`: `True` → `False`",
    "none": "`other`: `None` → an object of type Tensor", "key": "`'b' in table`: `False` → `True`",
    "keys": "`len(table)`: 1 → 2", "length": "`len(items)`: 1 → 2",
    "missing attribute": "`hasattr(thing, 'extra')`: `False` → `True`",
    "another function": "`function` is another function (cos at told_programs.py:LINE)",
    "no function": "`function`: a function → an object of type functools.partial",
    "a built-in": "`function`: a function → an object of type builtin_function_or_method",
    "the same tensor twice": "`x is y`: `False` → `True`", "global": "`SETTINGS['scale']`: 1 → 2",
    "grad mode": "`torch.is_grad_enabled()`: `True` → `False`", "deque": "`len(items)`: 1 → 2",
    "keyword": "`x.shape[0]`: 4 → 5", "made in inference mode": "`x.is_inference() or torch.is_inference_mode_enabled()`: `False` → `True`",
}
TORCH = tuple(map(int, torch.__version__.split(".")[:2]))
LIMIT = "recompile_limit" if hasattr(torch._dynamo.config, "recompile_limit") else "cache_size_limit"  # (2.6)
new_enough = pytest.mark.skipif(
    TORCH < (2, 13), reason="other torches break and guard otherwise")
until_3_12 = pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="on Python 3.13 torch 2.13 breaks elsewhere, and continues after breaks in loops")
before_2_15 = pytest.mark.skipif(
    not (2, 13) <= TORCH < (2, 15), reason="other torches break and guard otherwise, and 2.15 resumes after more calls")


@pytest.fixture
def capture_program(tmp_path):
    """Runs a program and gives its records."""

    def run(program):
        torch._dynamo.reset()
        limit = torch._dynamo.config.patch({LIMIT: 4})
        with limit, depyf.prepare_debug(str(tmp_path / "dump")) as on:
            program(functools.partial(torch.compile, backend="eager"))
        return store.read(on.path)

    return run


def row(capture):
    """What the first recompile of a run says."""
    run = RunIndex(capture)
    (changed,) = [run.changes(c)[0] for c in capture.compilations if c.guard_failures][:1]
    return changed


@new_enough
@pytest.mark.parametrize("name", KINDS)
def test_a_recompile_names_what_was_other_from_and_to(name, capture_program):
    function, calls = KINDS[name]

    def program(compiled):
        run = compiled(function)
        for number, arguments in enumerate(calls):
            told_programs.SETTINGS["scale"] = number + 1
            with torch.set_grad_enabled(name != "grad mode" or number == 0):
                run(*arguments)

    capture = capture_program(program)
    assert re.sub(r"(?<=\.py:)\d+", "LINE", row(capture).row()) == ROWS[name]
    assert f"* `[0/1]` {row(capture).row()}" in index(capture)


@new_enough
@pytest.mark.parametrize(("stance", "said"), [
    ("eager_on_recompile", "calls that no version fits ran in plain Python"),  # (pytorch #181817)
    ("force_eager", "all calls of compiled functions ran in plain Python"),
    ("fail_on_recompile", "torch compiled nothing, and what it would have compiled raised `RuntimeError`")])
def test_a_stance_under_which_torch_compiles_nothing_is_said(stance, said, capture_program):
    def program(compiled):
        function = compiled(torch.sin)
        function(torch.ones(3))
        with torch.compiler.set_stance(stance):
            function(torch.ones(3))

    text = index(capture_program(program))
    assert f"The program set the stance `{stance}`: " in text and said in text


@new_enough
def test_a_generator_function_is_named_that_torch_does_not_compile(capture_program):
    def pieces(x):
        yield x.sum() * 2

    def program(compiled):
        compiled(torch.sin)(torch.ones(3))
        assert [each.item() for each in compiled(pieces)(torch.ones(3))] == [6]

    text = index(capture_program(program))
    assert "Torch compiles no generator functions: `pieces` at `" in text and "No graph breaks, no recompiles." in text


@new_enough
def test_a_generator_function_that_plain_python_calls_is_not_named(capture_program):
    def halves(x):
        yield x / 2

    def looks_at_values(x):
        for _ in range(2):
            if x.sum() > 0:
                x = x + 1
        return list(halves(x))  # (the function runs in plain Python, and so does this call)

    text = index(capture_program(lambda compiled: compiled(looks_at_values)(torch.ones(3))))
    assert "runs in plain Python" in text and "no generator functions" not in text


@pytest.mark.torch_since((2, 7), "torch skips no guards")
def test_guards_that_the_program_skips_are_said(capture_program):
    def program(compiled):
        function = compiled(torch.sin)
        function(torch.ones(3))
        with torch.compiler.set_stance(skip_guard_eval_unsafe=True):
            function(torch.ones(3))

    assert ("The program set the stance `skip_guard_eval_unsafe`: meanwhile torch tested only what differs "
            "between versions") in index(capture_program(program))


def advised(capture):
    """The advice on the recompiles of a run."""
    return Adviser(RunIndex(capture)).on(capture.compilations)


class Adapted(torch.nn.Module):
    """A module that adapters are attached to (diffusers #9279), with a bias that comes and goes."""

    def __init__(self, name, is_registered):
        super().__init__()
        if not is_registered:
            setattr(self, name, None)
        elif name == "lora":
            self.register_module(name, None)
        else:
            self.register_parameter(name, None)
        self.name = name

    def forward(self, x):
        added = getattr(self, self.name)
        return x * 2 if added is None else x + (added(x) if self.name == "lora" else added)


@new_enough
@pytest.mark.parametrize("name", ["lora", "bias"])
def test_what_is_attached_is_in_another_place_than_none(name, capture_program):
    def program(compiled, is_registered=False):
        model = Adapted(name, is_registered)
        function = compiled(model)
        for added in (None, torch.nn.Linear(2, 2) if name == "lora" else torch.nn.Parameter(torch.ones(2)), None):
            setattr(model, name, added)
            function(torch.ones(1, 2))

    capture = capture_program(program)
    with_it, elsewhere = advised(capture)
    assert with_it.startswith(f"`self.{name}`: each version that looks at it is for calls with it, or for calls without it")
    assert elsewhere.startswith(f"`self.{name}`: a version reads it, or an attribute of it, from where that was")
    again = capture_program(functools.partial(program, is_registered=True))
    assert (len(capture.compilations), len(again.compilations)) == (3, 2)


@new_enough
def test_what_is_attached_is_not_missing_where_the_new_version_does_not_look_at_it(capture_program):
    class Switched(Adapted):
        def forward(self, x):
            return x if self.is_off else super().forward(x)

    def program(compiled):
        model = Switched("lora", False)
        model.is_off = False
        function = compiled(model)
        function(torch.ones(1, 2))
        model.lora = torch.nn.Linear(2, 2)
        model.is_off = True
        function(torch.ones(1, 2))
        model.is_off = False
        function(torch.ones(1, 2))

    run = RunIndex(capture_program(program))
    rows = [change.row() for each in run.capture.compilations for change in run.changes(each)]
    assert not any("missing" in each for each in rows) and any(each.startswith("`self.lora`: `None` → ") for each in rows)


@new_enough
def test_what_is_detached_again_is_said_to_be_in_another_place(capture_program):
    """`None` in the place of a module is among the modules; before there was one it was an attribute."""
    def program(compiled):
        model = Adapted("lora", False)
        function = compiled(model)
        for adapter in (model.lora, torch.nn.Linear(2, 2), None, torch.nn.Identity()):
            model.lora = adapter
            function(torch.ones(1, 2))

    run = RunIndex(capture_program(program))
    rows = [change.row() for each in run.capture.compilations for change in run.changes(each)]
    assert ("`self.lora` is in another dictionary of its object (`__dict__`, `_modules`, ...) than when the version was "
            "compiled") in rows
    text = index(run.capture)
    assert "`self.lora`: `None` → an object of type Identity (of `[0/2]`, `[0/0]`)" in text


class Items(list):
    """A list of a class of its own."""


class Scaled:
    """What has a number."""

    def __init__(self, scale):
        self.scale = scale


@new_enough
def test_an_item_of_a_users_list_class_is_named_and_read_as_an_item(capture_program):
    """Lists of logits processors (pytorch #141196): torch reads them by `list.__getitem__`."""
    def program(compiled):
        function = compiled(lambda x, items: x * items[0].scale)
        for scale in (1.0, 0.7, 0.5):
            function(torch.ones(2), Items([Scaled(scale)]))

    capture = capture_program(program)
    assert row(capture).row() == "`items[0].scale`: 1.0 → 0.7"
    (advice,) = advised(capture)
    assert advice.startswith("`items[0].scale`: a later version leaves it open; whether `dynamic=True`")


def sum_of_windows(x):
    """Each turn of the loop bounds the size."""
    start, total = 0, 0
    while start + 4 <= x.shape[0]:
        total = total + x[start:start + 4].max()
        start += 4
    return total


def test_a_size_that_each_version_leaves_open_in_a_range_of_its_own_is_not_called_open(capture_program):
    def program(compiled):
        function = compiled(sum_of_windows)
        for size in (8, 12, 17):
            function(torch.ones(size))

    assert advised(capture_program(program)) == [
        "`x.shape[0]`: versions that leave it open are for a range of its values each: 12 to 15, 16 to 19"]


@new_enough
def test_one_range_that_a_version_leaves_open_is_not_said_to_be_several(capture_program):
    def program(compiled):
        function = compiled(lambda table, i: table[i])
        for i in (3, 2, 1):
            function(torch.ones(4), i)

    assert advised(capture_program(program)) == [
        "`i`: a later version leaves it open; whether `dynamic=True` in `torch.compile` spares a version, a trial shows "
        "(`depyf fix`)"]


class Holder:
    """An object with a list that grows."""

    def __init__(self):
        self.values = []


@new_enough
def test_what_an_object_has_is_not_computed_by_the_call_that_returns_it(capture_program):
    """Without the break torch looks at it, too (mmengine's MessageHub, pytorch #94795)."""
    holder = Holder()

    def get():
        torch._dynamo.graph_break()
        return holder

    def step(x):
        got = get()
        got.values.append(x.sum())
        return x * 2

    def program(compiled):
        function = compiled(step)
        for _ in range(2):
            function(torch.ones(2))

    (advice,) = advised(capture_program(program))
    assert advice.startswith("`len(get().values)`: each version that looks at it is for one length, or for whether there is any")


@new_enough
@pytest.mark.parametrize(("dynamic", "first"), [
    (False, "`x.shape[0]`: `dynamic=False` is set, so a version is for one size"),
    (None, "`x.shape[0]`: torch compiles a version of its own for size 0 and for size 1")])
def test_batch_sizes_from_1_on(dynamic, first, capture_program):
    """TensorRT-LLM #6142: what is said of 1 held for all of them."""
    def program(compiled):
        function = compiled(lambda x: x.sum(-1), dynamic=dynamic)
        for size in (1, 2, 4, 8):
            function(torch.ones(size, 2))

    assert advised(capture_program(program))[0].startswith(first)


@new_enough
@pytest.mark.parametrize("make", [
    lambda coef: lambda x: x * coef, lambda coef: lambda x: functools.partial(torch.mul, other=coef)(x)])
def test_a_number_of_a_function_that_is_made_anew_is_open(make, capture_program):
    """A step that is made for each call (tensordict #1667)."""
    def program(compiled):
        function = compiled(lambda x, step: step(x))
        for coef in (0.25, 0.5, 0.75):
            function(torch.ones(2), make(coef))

    (advice,) = advised(capture_program(program))
    assert advice.startswith("`coef`: a later version leaves it open; whether `dynamic=True`")


@new_enough
def test_a_model_that_breaks_in_a_loop_is_said_first(capture_program):
    capture = capture_program(told_programs.break_in_a_loop)
    sentence = ("`Model.forward` runs in plain Python: line 18 (`if x.abs().max() > 1e9`), reached from line 32, breaks "
                "the graph inside the loop at line 31.")
    assert verdict(RunIndex(capture)) == [f"{sentence} What it calls is compiled by itself: `Block.forward`."]
    text = index(capture)
    assert text.splitlines()[2].startswith(f"**{sentence}")
    assert "called from `told_programs.py:32` `Model.forward`" in text  # (torch's text leaves that call out)
    lines = summary({"/nowhere": capture})
    assert lines[0].startswith("depyf: `Model.forward` runs in plain Python: line 18")
    assert "  recompiles    4, first of Block.forward: `x.shape[0]`: 3 → 5" in lines


@new_enough
def test_what_no_call_reached_is_told_from_plain_python(capture_program):
    """Behind ``if``: one branch was taken, the other never."""
    text = index(capture_program(told_programs.break_in_a_loop))
    continues = re.search(r"continues in (.*)", text)[1]
    assert re.fullmatch(r"`__resume_at_\d+_\d+` \((where `x.abs\(\).max\(\) > 1e9` is true; )?not reached in this "
                        r"run\), \[`__resume_at\S+\)( \(where `x.abs\(\).max\(\) > 1e9` is false\))?", continues)

    def gives_up_behind_the_break(compiled):
        def helper(x):
            y = x + 1
            torch._dynamo.graph_break()
            with open(os.devnull) as file:
                file.read()
            return y * 2

        compiled(helper)(torch.ones(2))

    text = index(capture_program(gives_up_behind_the_break))
    assert re.search(r"continues in `__resume_at_\d+_\d+` \(runs in plain Python\)", text)
    assert "not reached" not in text


@new_enough
def test_what_torch_leaves_alone_without_a_word_was_reached(capture_program):
    text = index(capture_program(told_programs.a_frame_without_tensors))
    assert re.search(r"continues in `__resume_at_\d+_\d+` \(runs in plain Python\)", text) and "not reached" not in text


@before_2_15
def test_torch_leaves_alone_what_begins_without_a_tensor(capture_program):
    """It has no compilation then, and no event of torch's says why: its own look at the frame does."""
    capture = capture_program(told_programs.rest_without_tensors)
    text = index(capture)
    assert "* in plain Python: `perf_counter()`\n  * what comes after it in `Engine.step` runs in plain Python, too\n" in text
    assert re.search(r"continues in `__resume_at_\d+_\d+` \(runs in plain Python: none of the variables", text)
    section = text.partition("## Not compiled")[2]
    assert re.search(r"\*\*`Engine\.step` from line \d+ on runs in plain Python: none of the variables that it begins with "
                     r"is or contains a tensor", section)
    (frame,) = [frame for function in capture.functions for frame in function.frames if not frame.entries]
    assert frame.asked and frame.without_tensors


@new_enough
def test_a_line_that_is_not_divided_runs_in_plain_python_as_a_whole(capture_program):
    text = index(capture_program(told_programs.a_number_in_a_try))
    assert re.search(r"\* in plain Python: `float\(y.norm\(\)\)`\n  \* all of `a_number_in_a_try.step` that comes after `told_programs.py:\d+` runs in plain Python\n", text)


@new_enough
@pytest.mark.skipif(sys.version_info < (3, 11), reason="code has no places of expressions")
def test_a_value_on_the_stack_is_named_by_its_expression(capture_program):
    capture = capture_program(told_programs.growing_log)
    (resumed,) = [frame for function in capture.functions for frame in function.frames if frame.stack]
    assert resumed.stack == ("self.log.append", "y.sum().item()")
    text = index(capture)
    assert "`self.log.append` is a new bound method at each call, so `[1/0]` could serve one call only" in text
    assert "___stack" not in "".join(line for line in text.splitlines() if "torch says: " not in line)


@new_enough
def test_the_recompile_limit_says_what_calls_no_longer_match(capture_program):
    capture = capture_program(told_programs.growing_list)
    assert verdict(RunIndex(capture)) == [
        "`growing_list.decode` reached the recompile limit. Calls that match none of its 4 versions run in plain Python "
        "(`len(cache)`: 3 → 4)."]
    lines = [line.strip() for line in repr(View.of(capture)).splitlines()]
    assert lines[2].startswith("growing_list.decode reached the recompile limit.")
    assert lines[3] == "recompiled growing_list.decode: len(cache): 0 → 1" and len(lines) == 4


@new_enough
def test_torchs_advice_on_a_changing_attribute(capture_program):
    text = index(capture_program(told_programs.changing_attribute))
    assert "`self.step`: 0 → 1" in text and "allow_unspec_int_on_nn_module = True" in text


@contextlib.contextmanager
def one_rank(folder):
    """A process group of this process alone."""
    distributed = pytest.importorskip("torch.distributed")
    if not distributed.is_available() or not distributed.is_gloo_available():
        pytest.skip("no gloo")
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
    try:
        yield
    finally:
        distributed.destroy_process_group()


@new_enough
@pytest.mark.parametrize("before", [True, False], ids=["wrapped before compiling", "after"])
@pytest.mark.parametrize("own", [True, False], ids=["class of its own", "class of torch's"])
def test_a_data_parallel_model(before, own, capture_program, tmp_path):
    def program(compiled):
        wrap = torch.nn.parallel.DistributedDataParallel
        module = told_programs.Model() if own else torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
        model = compiled(wrap(module)) if before else wrap(compiled(module))
        model(torch.ones(2, 4)).sum().backward()

    with one_rank(tmp_path):
        capture = capture_program(program)
    sentences, text = " ".join(verdict(RunIndex(capture))), index(capture)
    if not before:
        assert "DistributedDataParallel" not in sentences and "### In Distributed" not in text
    elif own:
        assert sentences.startswith("`DistributedDataParallel.forward` runs in plain Python: torch does not trace it. The "
                                    "module in it is compiled by itself: `Block.forward`.")
    else:
        assert sentences == (
            "Nothing of your model was compiled. It is wrapped in `DistributedDataParallel` before torch.compile, and "
            "the wrapper breaks the graph before it calls your module. A module of torch's own class, such as "
            "`nn.Sequential`, is then not compiled by itself. Compile the module first: "
            "`DistributedDataParallel(torch.compile(model))`.")
        assert "issue to PyTorch" not in text and text.count("### ") == 1


@new_enough
def test_only_constants_that_a_text_holds_are_explained(capture_program, tmp_path):
    """Torch passes on the cell of the wrapper's `fn`, which the text does without."""
    with one_rank(tmp_path):
        capture = capture_program(told_programs.data_parallel_counter)
    sources = [entry.transformed.source for function in capture.functions for frame in function.frames
               for entry in frame.entries]
    assert any("return fn(*args" in source.text for source in sources)
    for source in sources:
        for name in re.findall(r"\b__constant_\w+(?= stands for)", source.note):
            assert name in source.text


GOLDEN_PROGRAMS = (told_programs.break_in_a_loop, told_programs.growing_log, told_programs.printing)


@new_enough
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the text of one version")
@pytest.mark.parametrize("program", GOLDEN_PROGRAMS, ids=lambda program: program.__name__)
def test_the_whole_text(program, capture_program):
    text = steady(index(capture_program(program)))
    path = GOLDEN / f"{program.__name__}.md"
    if os.environ.get("DEPYF_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    expected = path.read_text(encoding="utf-8")
    if text != expected:
        lines = difflib.unified_diff(expected.splitlines(), text.splitlines(), "expected", "found", n=2, lineterm="")
        pytest.fail("\n".join([f"{path}:", *lines, "(DEPYF_UPDATE_GOLDEN=1 makes what was found the expected text.)"]),
                    pytrace=False)


def steady(text):
    """Without what differs from run to run: times, folders, numbers that torch gives out in one process."""
    text = re.sub(r"\d+\.\d+ s\b", "0.00 s", text)
    text = re.sub(r"\(torch [^)]*\)", "(torch, Python)", text)
    text = re.sub(r"(__resume_at_\d+|__compiled_fn)_\d+", r"\1_N", text)
    text = re.sub(r"`[^`\s]*[\\/](\w+\.py)`", r"`.../\1`", text)
    text = re.sub(r"File \"[^\"]*[\\/](\w+\.py)\"", r'File ".../\1"', text)
    text = re.sub(r"^Slowest: .*\n\n?", "", text, flags=re.M)
    text = re.sub(r"By part \(one inside of another counts in both\): .*", "By part: ...", text)
    return re.sub(r"first seen as `-?\d+\.\d+`", "first seen as `0.0`", text)


def test_the_source_tells_functions_and_loops():
    text = "class A:\n    def f(self):\n        for x in y:\n            while g(x):\n                h()\n        k()\n"
    source = UserSource([SourceFile("a.py", text)])

    def at(line):
        return SourceLocation("a.py", line, "f")

    assert [source.loop_around(at(line)) for line in (3, 4, 5, 6)] == [None, 4, 4, None]
    text = "def f(y):\n    for x in (y,\n              z):\n        h()\n        def g():\n            k()\n    else:\n        k()\n"
    other = UserSource([SourceFile("a.py", text)])
    assert [other.loop_around(at(line)) for line in (2, 3, 4, 6, 8)] == [None, None, 2, None, None]
    assert source.name_at(at(5), "f") == "A.f" and source.name_at(at(5), "other") == "other"
    assert source.name_at(SourceLocation("b.py", 1), "f") == "f" and source.loop_around(SourceLocation("b.py", 1)) is None


@pytest.mark.parametrize("path, expected", [
    ("/usr/lib/python3.12/contextlib.py", True), ("/v/lib/python3.11/site-packages/torch/nn/x.py", True),
    ("/v/lib/python3.11/site-packages/transformers/x.py", False), ("/home/me/model.py", False),
    ("C:\\Python311\\Lib\\contextlib.py", True), ("<frozen importlib>", True), ("<ipython-input-1>", False)])
def test_what_is_a_file_of_torch_or_of_the_standard_library(path, expected):
    assert is_library(path) is expected


@new_enough
def test_a_fixed_size_stands_once_with_its_value_in_each_version(capture_program):
    shapes = index(capture_program(told_programs.widening)).partition("## Dynamic shapes")[2].partition("##")[0]
    rows = [line for line in shapes.splitlines() if "`x.shape[1]`" in line]
    assert len(rows) == 1
    assert "`2` in `[0/0]`" in rows[0]
    assert "`4` in `[0/1]`" in rows[0]


@new_enough
def test_the_error_of_a_call_that_fails_with_fake_tensors_is_told(capture_program):
    """Torch's heading tells that there was an error, and its explanation is empty."""
    text = index(capture_program(told_programs.condition_on_an_open_size))
    assert ("why: the call fails with the fake tensors that torch traces with: `scaled_dot_product_attention(): argument "
            "'is_causal' must be bool, not SymBool`; that value depends on a size that torch keeps open") in text


@new_enough
def test_a_method_is_told_from_another_of_its_name(capture_program):
    capture = capture_program(told_programs.break_in_a_method_of_the_same_name)
    # What was called in what is compiled, and given up, is said first, too.
    assert any(re.match(r"`Turning\.forward` runs in plain Python: line \d+ \(`if x\.sum\(\) < 1`\) breaks the graph inside "
                        r"the loop at line \d+", line) for line in verdict(RunIndex(capture)))
    text = index(capture)
    assert re.search(r"in plain Python: `[^`]+` in `told_programs\.py:\d+`\n", text)
    assert "the choice by" not in text


@before_2_15
def test_a_test_by_a_random_number_is_no_choice_of_pythons(capture_program):
    text = index(capture_program(told_programs.choice_by_a_random_number))
    assert "**advice**: torch did not trace `random.random()` here" in text
    assert "in plain Python: the choice by `on`" not in text  # (a guard decides that)
    assert "why: torch does not trace `Random.random`" in text


@new_enough
def test_members_of_an_enumeration_have_their_names(capture_program):
    capture = capture_program(told_programs.members_of_an_enumeration)
    assert row(capture).row() == "`self.mode`: `Mode.SUM` → `Mode.MEAN`"
    first, second = (RunIndex(capture).version(each).texts for each in capture.compilations)
    assert "self.mode is Mode.SUM" in first
    assert "self.mode is Mode.MEAN" in second


@before_2_15
def test_an_item_of_a_dictionary_is_named_by_its_key(capture_program):
    capture = capture_program(told_programs.count_in_a_dictionary)
    text = index(capture)
    assert "`self.stats['calls']`: 1 → 2" in text
    assert ".values())[" not in text
    assert "self.stats['calls'] == 1" in RunIndex(capture).version(capture.compilations[1]).texts


@new_enough
def test_the_full_code_names_the_file_of_each_versions_guards(capture_program, tmp_path):
    capture_program(told_programs.functions_behind_one_wrapper)
    named = [found for file in (tmp_path / "dump").glob("full_code_*.py")
             for found in re.findall(r"served by version (\S+) if all of this holds\. All \d+ conditions: (\S+\.py)",
                                     file.read_text())]
    assert len(named) > 2
    for label, file in named:
        assert label in (tmp_path / "dump" / file).read_text().partition("def ")[0]


@new_enough
def test_what_torch_gives_up_at_a_recompile_serves_no_call_any_more(capture_program, tmp_path):
    calls = []

    def backend(graph, inputs):
        def run(*arguments):
            calls.append(1)
            return graph.forward(*arguments)

        return run

    told_programs.evaluation_that_is_given_up(lambda module: torch.compile(module, backend=backend))
    assert len(calls) == 1  # (the second call of training is not served by the version that was made for it)
    capture = capture_program(told_programs.evaluation_that_is_given_up)
    (sentence,) = verdict(RunIndex(capture))
    assert sentence.endswith("Since then all calls of it do, also those that its earlier version served.")
    (file,) = (tmp_path / "dump").glob("full_code_*.py")
    assert "no version is tried" in re.sub(r"\n\s*#\s*", " ", file.read_text())
    assert "No version matches" not in file.read_text()


@new_enough
def test_a_loop_that_fills_a_dictionary_leaves_the_rest_in_the_users_words(capture_program):
    """What lies on the stack meanwhile is known behind it: what was given, and functions that always are the same."""
    capture = capture_program(told_programs.count_and_hold)
    texts = [entry.transformed.source.text for function in capture.functions for frame in function.frames
             for entry in frame.entries]
    assert len(texts) == 2
    assert sorted(("for key, value in" in text, "__setitem__(stats, 'calls', 1)" in text) for text in texts) == [
        (False, True), (True, False)]  # (The keys are known in the first one.)
    for text in texts:
        assert "held.size = 3" in text
        assert "self.linear.weight, self.linear.bias" in text
        assert "tmp_" not in text


@new_enough
def test_what_a_graph_holds_itself_and_writes_to_is_told(capture_program, tmp_path):
    capture_program(told_programs.optimizer_step)
    texts = [re.sub(r"\n\s*#\s*", " ", file.read_text()) for file in (tmp_path / "dump").glob("full_code_*.py")]
    told = [found for text in texts for found in re.findall(r"writes to \d+ tensors of its own: [^\n]*", text)]
    assert told
    assert all("p and 2 alike" in each for each in told)


@new_enough
def test_a_size_equal_to_another_is_told_in_the_users_words(capture_program):
    text = index(capture_program(told_programs.messages))
    assert re.search(r"→ equal to `[a-z][^`]*\.shape\[0\]`", text)
    assert "\\_stack" not in text


@new_enough
def test_a_condition_that_tells_versions_apart_is_told_with_its_versions(capture_program, tmp_path):
    text = index(capture_program(told_programs.every_other))
    told = re.findall(r"\* condition `self\.step % 2 ([!=]=) 0`, `told_programs\.py:\d+` \(torch: .*\), in `(.*)`", text)
    assert sorted(told) == [("!=", "[0/1]"), ("==", "[0/2]")]
    (file,) = (tmp_path / "dump").glob("full_code_*.py")
    full_code = file.read_text()
    assert "#   only [0/1]: (self.step % 2) != 0" in full_code
    assert "        (self.step % 2) == 0\n" in full_code or " and (self.step % 2) == 0\n" in full_code


@new_enough
def test_a_size_is_to_be_marked_only_where_it_may_have_been_given(capture_program):
    text = index(capture_program(told_programs.break_in_a_loop))
    assert "dynamic=True" in text and "mark_dynamic" not in text


@new_enough
def test_a_loop_that_is_given_up_names_the_line_that_leads_to_the_break(capture_program):
    capture = capture_program(told_programs.dropping)
    (sentence,) = verdict(RunIndex(capture))[:1]
    assert re.search(r"line (\d+) \(`self\.dropped \+= int\(\(~keep\)\.sum\(\)\)`\), reached from line (\d+), breaks the "
                     r"graph inside the loop at line (\d+)\.", sentence)


@before_2_15
def test_a_break_of_an_attempt_that_was_given_up_is_not_counted(capture_program):
    capture = capture_program(told_programs.gradient_penalty)
    (first, second) = [[broken.registry_id for broken in each.breaks] for each in capture.compilations if each.breaks]
    assert (first, second) == (["GB8985"], ["GB9186"])  # (torch comes to autograd.grad, then has to end the graph before)
    text = index(capture)
    assert "**[2 graph breaks](#graph-breaks) at 2 lines**" in text


@new_enough
def test_a_later_call_without_operations_is_not_called_the_first(capture_program):
    (sentence,) = verdict(RunIndex(capture_program(told_programs.evaluation_without_operations)))
    assert "torch found no tensor operation on the path of the call that `[0/1]` began with." in sentence


def test_functions_are_told_with_their_backends_where_these_differ(capture_program):
    def two(compiling, other):
        compiling(told_programs.scaled)(torch.ones(2), 2)
        other(told_programs.shifted)(torch.ones(2), 2)

    assert "| backend |" not in index(capture_program(lambda compiling: two(compiling, compiling)))
    aot = functools.partial(torch.compile, backend="aot_eager")
    text = index(capture_program(lambda compiling: two(compiling, aot)))
    assert [re.search(rf"^\| \[`{name}`.*", text, re.M)[0].split(" | ")[2] for name in ("scaled", "shifted")] \
        == ["eager", "aot_eager"]


@new_enough
def test_which_function_a_version_is_for_stands_in_its_guards_and_in_the_differences(capture_program):
    """The guard is on the id of the code, so that its text is the same in versions for other functions."""
    ((run,),) = [function.frames for function in capture_program(told_programs.functions_of_other_code).functions]
    first, second, sin, cos = compiled = versions(run, Capture())
    scale, other = (rf"check_same_object\(function\.__code__, 'code of {name} at told_programs\.py:\d+'\)"
                    for name in ("scale", "<lambda>"))
    assert re.search(scale, "\n".join(call_guards(first, decide=deciding(compiled))))
    assert re.search(other, "\n".join(call_guards(second, decide=deciding(compiled))))
    assert re.search(r"function\.__code__: one certain code of scale at \S+ -> one certain code of <lambda> at",
                     "\n".join(as_comment(first, second)))
    assert "one certain builtin_function_or_method torch.cos" in " ".join(" ".join(as_comment(sin, cos)).split())


@new_enough
def test_a_value_inside_of_a_function_that_differs_stands_in_the_guards(capture_program):
    """A closure's variables say how it was made; where versions want other values of them, they decide."""
    def numbers(compiling):
        def run(function, x):
            return function(x) + 1

        run = compiling(run)
        for factor in (False, True):
            run(told_programs.scaled_by(factor), torch.ones(3))

    capture = capture_program(numbers)
    assert "in this, too" not in index(capture), "the variable and its cell are one thing"
    ((run,),) = [function.frames for function in capture.functions]
    compiled = versions(run, Capture())
    shown = ["\n".join(call_guards(version, decide=deciding(compiled))) for version in compiled]
    assert ["cell_contents is False" in shown[0], "cell_contents is True" in shown[1]] == [True, True]


@new_enough
def test_a_formula_names_one_of_the_sizes_that_share_a_symbol(capture_program):
    text = index(capture_program(told_programs.sizes_with_one_symbol))
    conditions = [line for line in text.splitlines() if line.startswith("* condition ")]
    assert any("cache.shape[0] * cache.shape[1] ** 2 * cache.shape[3]" in line for line in conditions)
    assert not any("cache.shape[2]" in line for line in conditions)


@before_2_15
def test_what_was_called_before_a_break_is_not_called_by_the_rest(capture_program):
    text = index(capture_program(told_programs.calls_on_both_sides_of_a_break))
    (rest,) = re.findall(r"in plain Python: all of `Recurrent\.forward` from line \d+ on(.*)", text)
    assert rest == "; what it calls is compiled by itself: `Times.forward`"


@new_enough
@pytest.mark.skipif(sys.version_info < (3, 11), reason="code has no places of expressions")
def test_a_branch_that_no_call_takes_is_not_reached_where_the_other_is_left_out(capture_program):
    text = index(capture_program(told_programs.branch_that_no_call_takes))
    assert re.search(r"continues in `\S+` \(where `x\.sum\(\) < 0` is true; not reached in this run\), "
                     r"`\S+` \(where `x\.sum\(\) < 0` is false; runs in plain Python\)", text)
    assert re.search(r"\*\*`\S+mask` from line \d+ on, where `x\.sum\(\) < 0` is false, runs in plain Python", text)


@new_enough
def test_a_guard_of_a_layer_of_torchs_is_told_with_the_users_line(capture_program):
    text = index(capture_program(told_programs.size_that_a_layer_uses))
    assert re.search(r"torch guards it because of `told_programs\.py:\d+`: `return layer\(tokens\) \* 2`\n", text)
    assert "sparse.py" not in text


@new_enough
def test_the_line_that_calls_any_is_the_place_of_a_break_in_it(capture_program):
    text = index(capture_program(told_programs.any_of_a_generator))
    assert "builtins.py" not in text
    assert len(re.findall(r"\* `told_programs\.py:\d+` in `.*sample`: `if any\(", text)) == 2
    assert "**change**" not in text  # (`torch.where` takes no value of Python's)


@new_enough
def test_a_call_of_a_library_that_runs_in_plain_python_is_named(capture_program):
    """Its method has the name of the user's, which goes on behind the break."""
    text = index(capture_program(functools.partial(told_programs.packed_sequences, numbers=False)))
    assert re.search(r"in plain Python: `self\.rnn\(packed\)` in `told_programs\.py:\d+`\n", text)


@new_enough
def test_of_the_message_of_an_error_the_first_sentence_is_the_heading(capture_program):
    capture = capture_program(functools.partial(told_programs.packed_sequences, numbers=True))
    text = index(capture)
    assert "\n### Could not guard on data-dependent expression Eq(u0, u1)\n" in text
    assert "why: a decision depends on a number known only when the graph runs: `Eq(u0, u1)`" in text
    assert "Torch explains: Could not guard on" in text and "User Stack" in text


@new_enough
def test_random_numbers_are_the_cause_where_torch_holds_them_as_tensors(capture_program):
    (sentence,) = verdict(RunIndex(capture_program(told_programs.arithmetic_on_a_random_number)))
    assert "torch has a random number as a tensor while it traces, and does not know this operation on it" in sentence


@new_enough
def test_the_function_that_draws_torchs_random_numbers_is_explained(capture_program, tmp_path):
    text = index(capture_program(told_programs.random_number_that_is_printed))
    (name,) = re.findall(r"\* \*\*`(__gen_rand_values_\d+)`\*\* \(in transformed code\): draws the random numbers", text)
    (transformed,) = (tmp_path / "dump").glob("__transformed_code_0_for_*f.py")
    assert f"# {name}() draws the random numbers of random.random, randint" in transformed.read_text()
    (full,) = (tmp_path / "dump").glob("full_code_for_*f_0.py")
    assert f"\ndef {name}():\n" in full.read_text()


@new_enough
@pytest.mark.parametrize("name, told", [
    ("call_in_a_with", r"line \d+ \(`return y .+`\), reached from line \d+, breaks the graph "
     r"inside the `with` at line {with Entered()}"),
    ("branch_in_a_try", r"breaks the graph inside the `try` at line {try}")])
def test_what_keeps_torch_from_continuing_is_the_statement_around(name, told, capture_program):
    function = getattr(told_programs, name)
    lines, first = inspect.getsourcelines(function)
    number = {text: str(first + at) for at, text in enumerate(line.strip().rstrip(":") for line in lines)}
    told = re.sub(r"\{(.*?)\}", lambda match: number[match[1]], told)
    (sentence,) = verdict(RunIndex(capture_program(lambda compiling: compiling(function)(torch.ones(2)))))
    assert re.search(told + ", and torch cannot continue there", sentence)


@new_enough
def test_the_rest_of_a_function_that_is_given_up_is_told_first(capture_program):
    text = index(capture_program(told_programs.break_in_a_loop_behind_a_break))
    assert re.search(r"^\*\*`loop_behind` from line \d+ on runs in plain Python: line \d+ \(`if row\.sum\(\) > 0`\) breaks "
                     r"the graph inside the loop at line \d+\.\*\*$", text, re.M)


@new_enough
def test_a_counter_at_which_the_last_version_does_not_look_keeps_no_call_from_it(capture_program):
    text = index(capture_program(told_programs.progress_behind_a_break))
    assert "1 recompile" in text and "no version serves" not in text and "it grows" not in text


def test_of_a_call_that_torch_has_no_record_of_nothing_is_said(capture_program):
    text = index(capture_program(told_programs.call_without_tensors))
    assert re.findall(r"in plain Python: (.*)", text) == [
        f"`self.bar.update()` in `told_programs.py:{told_programs.WithBar.step.__code__.co_firstlineno + 2}`"]


@new_enough
def test_a_wrapper_that_was_compiled_is_known_by_its_place(capture_program):
    text = index(capture_program(told_programs.step_of_an_optimizer))
    assert re.search(r"in plain Python: `optimizer\.step\(\)` in `told_programs\.py:\d+`; "
                     r"`Optimizer\.profile_hook_step\.wrapper`, called there, is compiled by itself, without a graph\n",
                     text)


@new_enough
def test_an_item_that_changes_alone_has_its_number(capture_program):
    text = index(capture_program(told_programs.argument_behind_a_star))
    assert "* `args[1]`: each version that looks at it is for calls with it, or for calls without it" in text and "args[...]" not in text


@pytest.mark.parametrize("text, told", [
    ("___stack0[1].item() == 2", "p[0].item() == 2"), ("___stack0[i].item()", "(t[0], p[0])[i].item()"),
    ("len(___stack0): 1 -> 2", "len((t[0], p[0])): 1 -> 2"), ("___stack1.shape[0]", "(a + b).shape[0]"),
    ("___stack1 == 2", "(a + b) == 2"), ("f(___stack1, ___stack2)", "f(a + b, x.y[0])"),
    ("___stack1: 1 -> 2", "a + b: 1 -> 2"), ("___stack2[0].z", "x.y[0][0].z"), ("___stack3[0]", "___stack3[0]"),
    ("___stack4[0].x", "(c if d else e).x")])
def test_a_value_on_the_stack_stands_in_parentheses_where_it_has_to(text, told):
    names = {"___stack0": "t[0], p[0]", "___stack1": "a + b", "___stack2": "x.y[0]", "___stack4": "[c if d else e]"}
    assert with_stack_names(text, names) == told


@before_2_15
def test_a_difference_names_the_element_of_a_tuple_on_the_stack_as_the_index_does(capture_program):
    capture = capture_program(told_programs.places_in_tensors)
    assert "`t[0].item()`: 0 → 1" in index(capture)
    (compiled,) = [f for function in capture.functions for f in function.frames if f.stack]
    old, new = versions(compiled, Capture())
    assert any("t[0].item() == 1" in line for line in as_comment(old, new))


@before_2_15
def test_the_error_that_breaks_the_graph_in_a_loop_is_the_reason(capture_program):
    """Torch's account of the break is of the loop alone; the error stands in its traceback."""
    capture = capture_program(told_programs.index_in_a_loop)
    text = index(capture)
    assert "### Could not extract specialized integer from data-dependent expression u0\n" in text
    assert (
        "why: the line needs the value of a number while the graph is captured, and it is known only when the graph "
        "runs\n"
    ) in text
    assert "why torch gives the function up: graph break in loop" in text
    (sentence,) = verdict(RunIndex(capture))
    assert re.search(r"breaks the graph inside the loop at line \d+\.?$", sentence)


@new_enough
def test_a_compilation_that_failed_is_no_version(capture_program, tmp_path):
    capture = capture_program(told_programs.marked_and_fixed_behind_a_break)
    text = index(capture)
    assert "1 version in all, 1 graph," in text and "([was not compiled](#not-compiled))" in text
    failed = "Compilation [1/0] failed: ConstraintViolationError: Constraints violated (L['x'].size()[0], " \
        "L['y']._base.size()[0])!"
    (full,) = (tmp_path / "dump").glob("full_code_for_*.py")
    _, _, resumed = full.read_text().partition("# __resume_at_")
    assert f"# {failed}\n" in resumed and "failed (so it is never called)" in resumed
    assert "return __transformed_code_" not in resumed and "    # [1/0] failed: the call" in resumed
    for name in "guards_0_for_torch_dynamo_resume_*.py", "__transformed_code_0_for_torch_dynamo_resume_*.py":
        (file,) = (tmp_path / "dump").glob(name)
        assert failed in file.read_text()
    with pytest.raises(NoSuchFunction):
        frame_of(capture, "1/0")


@new_enough
def test_a_limit_is_put_down_to_what_most_versions_are_for(capture_program):
    first, *_ = verdict(RunIndex(capture_program(told_programs.grows_beside_an_open_number)))
    assert first.endswith("run in plain Python (`len(log)`: 3 → 4).")
    text = index(capture_program(told_programs.method_of_a_list_that_grows))
    assert "from line" in text and "`log.append` is a new bound method at each call, so `[1/0]`, `[1/1]`, `[1/2]`" in text


@new_enough
def test_a_limit_is_put_down_to_what_most_versions_refused_the_call_for(capture_program):
    def program(compiled):
        function = compiled(lambda x, mode: x + 1 if mode else x - 1)
        with torch._dynamo.config.patch(recompile_limit=2):
            for x, mode in ((torch.ones(2, 2), "a"), (torch.ones(2, 2, dtype=torch.float64), "b")):
                function(x, mode)
            with torch.no_grad():
                function(torch.ones(2, 2), "a")

    first, *_ = verdict(RunIndex(capture_program(program)))
    assert first.endswith("run in plain Python (`torch.is_grad_enabled()`: `True` → `False`).")


def test_a_constant_is_no_name_of_an_open_number(capture_program):
    text = index(capture_program(told_programs.a_constant_on_the_stack))
    assert " the constant `0` (torch's `s" in text
    assert "___stack" not in text and "` `0`" not in text


@new_enough
def test_a_size_of_a_tensor_of_torchs_own_is_no_size_of_the_program():
    """Torch makes a symbol for the state of the random generator that a checkpoint keeps."""
    def told(source):
        made = SymbolDecision("created", "s21", source, "5056", "[2, int_oo]")
        return index(Capture(compilations=(Compilation(
            CompileId(0, 0), "f", SourceLocation("m.py", 1, "f"), outcome="compiled", symbols=(made,)),)))

    assert "## Dynamic shapes" not in told("__meta_utils_unknown_tensor13.size()[0]")
    assert "## Dynamic shapes" not in told("<ephemeral: tensor_visitor_fn>.size()[0]"), "of a nested tensor"
    assert "`x.shape[0]` (torch's `s21`)" in told("L['x'].size()[0]")


@pytest.mark.torch_since((2, 9), "breaks and recompiles are others")
def test_a_bound_method_that_a_break_leaves_on_the_stack_breaks_the_graph_with_it(capture_program):
    text = index(capture_program(told_programs.bound_method_on_the_stack))
    skipped = text[text.index("### Attempted to call function marked as skipped") :]
    for method in ("index_fill", "add"):
        why = f"* why: torch does not trace `Tensor.{method}` where the bound method is looked up before the graph begins"
        told = skipped[skipped.index(why) :]
        assert told.splitlines()[1].startswith("  * **advice**: torch does not trace a tensor's method that was looked up before")
        assert "another break in the same line; without that break there is no break here either" in told.splitlines()[1]


@new_enough
def test_bound_methods_go_with_the_break_before_them(capture_program):
    settings = torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True)
    with settings:
        capture = capture_program(told_programs.bound_method_on_the_stack)
    assert not [broken for each in capture.compilations for broken in each.breaks]


@new_enough
def test_a_bound_method_of_another_line_follows_from_no_break(capture_program):
    text = index(capture_program(told_programs.bound_method_in_a_variable))
    assert "why: torch does not trace `Tensor.mul` where the bound method is looked up before the graph begins" in text
    assert "mend the break before it" not in text


@new_enough
def test_a_number_that_is_hashed_has_a_cause_and_torchs_hint_is_none(capture_program):
    text = index(capture_program(told_programs.numbers_in_a_set))
    assert "### Consider" not in text and "why it breaks: Consider" not in text
    assert text.count("why: the line needs the value of a number while the graph is captured") == 2  # (of an integer and of a float)
    assert "* **advice**: the line needs a value that is known only when the graph runs" in text
    assert "\n* Consider annotating your code using torch.\\_check\\*()\n" in text  # (among torch's advice)


@new_enough
def test_whose_condition_a_backend_hands_on_is_not_said_to_be_of_inductor(capture_program):
    """Of a graph from the cache it is not known where Inductor asked; what AOTAutograd traces is not Inductor's."""
    cached = "_functorch/_aot_autograd/autograd_cache.py"
    text = index(capture_program(told_programs.told_apart_by_backend(1, cached)))
    assert "* no line of the program asks for it: a condition which came with the compiled graph from torch's cache" in text
    assert "Inductor asked" not in text and "torch guards it because of" not in text
    text = index(capture_program(told_programs.told_apart_by_backend(1, "_decomp/decompositions.py")))
    assert "Inductor asked" not in text and "no line of the program" not in text


@new_enough
def test_what_is_saved_for_the_backward_pass_stands_below_the_forward_graph(capture_program):
    provenance = Provenance(capture_program(told_programs.trained).graphs[0])
    forward, backward = provenance.stage("Forward_graph"), provenance.stage("Backward_graph")
    assert saved_for_backward(provenance, backward) == []
    head, *rows = saved_for_backward(provenance, forward)
    taken = [node.name for node in backward.graph.nodes if node.op == "placeholder"]
    values = [name for name in taken if not name.startswith(("primals_", "tangents_"))]
    # (The inputs of a graph of aot_eager have no types.)
    assert re.fullmatch(rf"saved for the backward pass: {len(values)} values, \d+ B in all; and 4 inputs", head)
    assert any(re.fullmatch(r" +256 B  sigmoid +2 of f32\[4, 8\] +told_programs\.py:\d+: \w+, \w+", row) for row in rows)


@pytest.mark.torch_since((2, 9), "breaks and recompiles are others")
def test_recompiles_for_different_things_are_told_one_by_one(capture_program):
    text = index(capture_program(told_programs.counter_in_two_modes))
    rows = re.split("To compile less often:|Why torch compiled it again:", text.partition("## Recompiles")[2])[0]
    assert [line[:9] for line in rows.splitlines() if line.startswith("* ")] == ["* `[0/1]`", "* `[0/2]`", "* `[0/3]`"]


@new_enough
def test_a_long_explanation_of_torchs_is_told_by_its_end(capture_program):
    text = index(capture_program(told_programs.tested_at_the_end))
    (block,) = re.findall(r"^```\n(The branch condition involves.*?)^```", text, re.M | re.S)
    lines = block.splitlines()
    assert len(lines) < 16 and re.fullmatch(r"\.\.\. \(\d+ lines more: records\.jsonl\)", lines[1])
    assert lines[-1].startswith("isnan")


@before_2_15
@until_3_12
def test_dates_are_told_to_be_what_torch_does_not_trace(capture_program):
    text = index(capture_program(told_programs.dates))
    assert "  * why: torch did not trace `datetime.timedelta` here\n" in text
    assert "* in plain Python: `timedelta(...)`\n" in text  # (which of the two calls, the line does not tell)
    assert "  * why: torch cannot trace `__rmul__` of `timedelta`, which is written in C\n" in text


@before_2_15
def test_of_an_error_behind_a_break_the_reader_is_told_first(capture_program):
    def failing(compiled):
        with pytest.raises(AssertionError):
            told_programs.array_in_inference_mode(compiled)

    text = index(capture_program(failing))
    assert re.match(r"\*\*`array_in_inference_mode\.scale` from line \d+ on was not compiled: `AssertionError`: ",
                    text.splitlines()[2])


@new_enough
def test_an_error_is_told_without_what_torch_says_of_how_to_look_closer(capture_program):
    def failing(compiled):
        with pytest.raises(torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode):
            told_programs.numbers_of_symbols(compiled)

    text = index(capture_program(failing))
    assert re.search(r"`GuardOnDataDependentSymNode` at line \d+ \(`return numbers\.tolist\(\)`\): Could not guard on "
                     r"data-dependent expression Eq\(u\d+, 0\) .*\(Size-like symbols: u\d+\)\.\*\*\n", text)
    assert "  * advice: the line needs a value that is known only when the graph runs" in text


@new_enough
def test_what_runs_in_plain_python_is_named_in_a_statement_of_several_lines(capture_program):
    text = index(capture_program(told_programs.loss_over_lines))
    assert "  * in plain Python: `F.ctc_loss(...)`\n" in text


@before_2_15
@until_3_12
def test_a_run_with_more_than_three_changes_begins_with_three(capture_program):
    def branches(compiled):
        def f(x):
            y = x * 2
            if x.sum() > 0:
                y = y + 1
            if x.sum() > 1:
                y = y + 2
            if x.sum() > 2:
                y = y + 3
            if x.sum() > 3:
                y = y + 4
            return y * 2

        def loop(x):
            for _ in range(3):
                if x.sum() > 100:
                    break
                x = x * 2
            return x

        compiled(f)(torch.ones(9))
        compiled(loop)(torch.ones(9))

    capture = capture_program(branches)
    lines = index(capture).splitlines()
    at = lines.index("## Where to begin")
    assert lines[at + 2].startswith("The first 3 of 5 places")
    assert re.match(r"\* `test_told_programs\.py:\d+`: whether a turn of the loop at line .*runs in plain Python\)$",
                    lines[at + 4])
    assert all("`torch.where`, which a graph can hold" in each for each in lines[at + 5:at + 7])
    # The page and the JSON begin with the same.
    on_page = ["".join(text for _, text in each) for each in run_data(capture)["first"]]
    in_json = explain_document({"": capture}, "dump")["runs"][0]["first_changes"]
    texts = [each.removeprefix("* ") for each in lines[at + 4:at + 7]]
    assert on_page == list(map(plain, texts)) and in_json == list(map(unmarked, texts))


@pytest.mark.torch_since((2, 9), "torch names another reason for the break of the caller")
def test_a_line_at_which_several_functions_break_is_one_change(capture_program):
    """A check in a helper breaks the graph of the helper and of each caller."""
    def check(v):
        if (v < 0).any():
            raise ValueError(f"{v} is negative")

    def program(compiled):
        def outer(x):
            check(x)
            return x + 1

        compiled(outer)(torch.ones(2))

    context = SectionContext(capture_program(program))
    assert len({each.function for each in context.capture.compilations if each.breaks}) == 2
    assert first_changes(context, context.place)[1] == 1


def test_the_recompiles_of_a_place_where_to_begin_are_those_it_is_the_advice_on(capture_program):
    """Two recompiles for one subject, one for another; no sentence is on all three."""
    def program(compiled):
        def f(x, mode):
            return x + 1 if mode == "a" else x - 1

        f = compiled(f)
        f(torch.ones(2), "a")
        f(torch.ones(2), "b")
        f(torch.ones(2), "c")
        f(torch.ones(3), "a")

    context = SectionContext(capture_program(program))
    by_advice = context.advice.recompiles_by_advice(context.summaries[0].recompiles)
    assert [(advice.change.partition(":")[0], advice.is_change, len(of)) for advice, of in by_advice.items()] == [
        ("`x.shape[0]`", True, 1), ("`mode`", False, 2)]
    assert first_changes(context, context.place)[1] == 2


@new_enough
def test_what_took_longest_comes_first_whether_or_not_there_is_something_to_do(capture_program):
    """A list that grows makes a version at each call, which the program can do nothing about; sizes make one each."""
    def program(compiled):
        seen = []

        def f(x):
            seen.append(0)
            return x + len(seen)

        functions = [compiled(lambda x, a: x + a), compiled(lambda y, a: y - a), compiled(lambda z, a: z * a)]
        f = compiled(f)
        for size in (2, 3):
            for each in functions:
                each(torch.ones(size), 2.0)
        for _ in range(3):
            f(torch.ones(2))

    capture = capture_program(program)
    slow = [dataclasses.replace(each, seconds=9.0 if each.function == "f" else 1.0) for each in capture.compilations]
    context = SectionContext(dataclasses.replace(capture, compilations=tuple(slow)))
    texts, places = first_changes(context, context.place)
    assert places == 4 and texts[0].startswith("`len(seen)`: ") and "(2 recompiles of program.f, 18.00 s)" in texts[0]


@new_enough
def test_what_could_not_be_compiled_is_not_said_to_run_in_plain_python(capture_program):
    """With ``fullgraph=True`` the caller gets an exception."""
    def program(compiled):
        def strict(x):
            return x + 1 if x.sum() > 0 else x - 1

        with pytest.raises(torch._dynamo.exc.Unsupported):
            torch.compile(strict, backend="eager", fullgraph=True)(torch.ones(2))
        for each in [compiled(lambda x, a: x + a), compiled(lambda y, a: y - a), compiled(lambda z, a: z * a)]:
            each(torch.ones(2), 2.0)
            each(torch.ones(3), 2.0)

    context = SectionContext(capture_program(program))
    (first, *_), _ = first_changes(context, context.place)
    assert ": `torch.where`, which" in first and first.endswith("(`program.strict` was not compiled in `[0/0]`)")


@new_enough
def test_what_a_library_does_at_a_break_of_the_program_is_no_place_to_begin(capture_program):
    """Torch compiles the methods of `logging` by themselves where a call of one breaks a graph."""
    log = logging.getLogger("no place to begin")

    def program(compiled):
        def f(x):
            log.warning("begins with %s", x)
            return x + 1

        compiled(f)(torch.ones(2))

    context = SectionContext(capture_program(program))
    assert {each.function for each in context.capture.compilations if each.outcome == "skipped"} == {"_log"}
    assert first_changes(context, context.place)[1] == 1


@new_enough
def test_the_break_that_a_function_is_compiled_by_itself_for_is_that_of_its_call(capture_program):
    run = RunIndex(capture_program(told_programs.two_calls_of_which_one_breaks))
    (called,) = [each for each in run.capture.compilations if each.function == "positive"]
    inner = told_programs.positive.__code__.co_firstlineno + 1
    assert f"its caller breaks at `told_programs.py:{inner}`" in Adviser(run).on_outer_break(called)


@new_enough
def test_the_step_of_an_optimizer_is_compiled_by_itself_whatever_broke_before(capture_program):
    run = RunIndex(capture_program(told_programs.step_of_an_optimizer))
    (recompiled,) = [each for each in run.capture.compilations if each.guard_failures]
    assert recompiled.function == "step" and not Adviser(run).on_outer_break(recompiled)


@new_enough
def test_a_resume_function_that_fixes_a_size_has_its_own_advice(capture_program):
    capture = capture_program(told_programs.size_that_a_resume_function_fixes)
    text = index(capture)
    _, _, advice = text.partition("To compile less often:")
    fixed = re.findall(r"^\* `x\.shape\[1\]`: (.*)$", advice.partition("\n## ")[0], re.M)
    assert len(fixed) == 2 and any(re.search(r"at `told_programs.py:\d+` fixes it", each) for each in fixed), fixed


@new_enough
def test_a_resume_function_that_leaves_a_number_open_has_its_own_advice(capture_program):
    """The function has one version that looks at the number, for one value of it."""
    def f(x, n, early):
        x = x * 2
        if early:
            x = x + n
        torch._dynamo.graph_break()
        return x * n

    def program(compiled):
        function = compiled(f)
        for size, n, early in ((2, 4, False), (3, 3, True), (3, 2, False)):
            function(torch.ones(size), n, early)

    text = index(capture_program(program))
    assert re.search(r"^\* .*`n`: a later version leaves it open", text, re.M)
    assert re.search(r"^\* `n`: each version that looks at it is for one of its values", text, re.M)


@new_enough
def test_a_resume_function_has_no_advice_that_is_on_another_change_of_its_function(capture_program):
    """The function is compiled again for sizes 0 and 2, its resume function, which size 0 does not reach, for 2 and 3."""
    def f(x):
        x = x * 2
        if x.numel() == 0:
            return x
        torch._dynamo.graph_break()
        return x + 1

    def program(compiled):
        function = compiled(f)
        for size in (0, 2, 3):
            function(torch.ones(size))

    run = RunIndex(capture_program(program))
    by_advice = Adviser(run).recompiles_by_advice(run.summaries[0].recompiles)
    (of_0,) = [of for advice, of in by_advice.items() if "for size 0 and for size 1" in advice.change]
    assert [each.function for each in of_0] == ["f"] and len(by_advice) == 2


@new_enough
def test_a_sentence_on_several_functions_is_one_place_to_begin(capture_program):
    """A check in a helper raises: torch gives up the function, and the helper, which it compiles by itself."""
    def checked(x, n):
        x = x + n
        if n > 2:
            raise ValueError("too many")
        return x

    def f(x, n):
        return checked(x * 2, n) * 2

    def program(compiled):
        function = compiled(f)
        function(torch.ones(2), 1)
        with pytest.raises(ValueError, match="too many"):
            function(torch.ones(2), 3)

    context = SectionContext(capture_program(program))
    lost = [each for each in context.capture.compilations if each.outcome == "skipped" and each.breaks]
    texts, places = first_changes(context, context.place)
    sentences = {text for each in lost for text in context.advice.on_lost(each)}
    assert len(lost) > 1 and not texts and places == len(sentences) + 1  # (and the number that changed)
