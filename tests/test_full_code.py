"""What stands in ``full_code_for_...``: resume functions, decorators, defaults, code we cannot write."""

import functools
import glob
import importlib.util
import json
import marshal
import os
import re
import sys
import types

import pytest

torch = pytest.importorskip("torch")

import depyf  # noqa: E402

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def dump(tmp_path, function, *arguments, backend="eager", **options):
    """The directory, and the text of its full code."""
    with depyf.prepare_debug(str(tmp_path / "d"), **options) as on:
        torch.compile(function, backend=backend)(*arguments)
    texts = []
    for path in sorted(glob.glob(os.path.join(on.path, "full_code_for_*.py"))):
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    return on.path, "\n".join(texts)


def test_resume_functions_with_closures_are_shown_with_their_versions(tmp_path):
    n = 2

    def scaled(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * n

    _, text = dump(tmp_path, scaled, torch.ones(3))
    assert "was not compiled in this run" not in text
    resumed = re.split(r"\n# (?:__resume_at_|torch_dynamo_resume_in_scaled_at_)", text)
    assert len(resumed) == 2 and "return y * n" in resumed[1] and "__compiled_fn_" in resumed[1]
    assert "_make_fn" not in text


class Summed:
    """A free variable from before (``__class__``), a cell that becomes one, and functions inside (from gpytorch)."""

    def total(self, items, shift):
        torch._dynamo.graph_break()
        largest = max(item.sum() for item in items)
        return [(lambda item: item - largest if item.numel() else item)(item) + shift for item in items], __class__.__name__


def test_functions_inside_of_resume_functions(tmp_path):
    path, text = dump(tmp_path, Summed().total, [torch.ones(3), torch.ones(3)], 1.0)
    resumed = text.partition("# __resume_at_")[2]
    assert "largest = max(item.sum() for item in items)" in resumed
    assert "____block" not in text and "decompiled: fallback" not in text
    with open(os.path.join(path, "notes.txt"), encoding="utf-8") as notes:
        assert "internal error" not in notes.read()


def test_no_name_of_a_variable_has_an_id(tmp_path):
    """Dynamo's own functions are globals with ids in their names; variables are called like them."""
    def f(x):
        return (lambda pair: [torch.sin(each) for each in pair])((x, x + 1))

    def g(x):
        pair = zip((x, x + 1), (1, 2))
        torch._dynamo.graph_break()
        return [one * other for one, other in pair]

    for name, function in (("f", f), ("g", g)):
        path, text = dump(tmp_path / name, function, torch.ones(3))
        for file in glob.glob(os.path.join(path, "*.py")):
            with open(file, encoding="utf-8") as opened:
                assert not re.search(r"\d{12,}", opened.read()), file


def test_a_break_inside_with_reads_as_a_with(tmp_path):
    def f(x):
        with torch.no_grad():
            y = x + 1
            torch._dynamo.graph_break()
            y = y * 2
        return y

    _, text = dump(tmp_path, f, torch.ones(3))
    assert "    with ___stack0(False):\n        y = y * 2\n    return y\n" in text


def keep(*_):
    return lambda function: function


@keep("several",
      "lines")
def decorated(x, scale=2, *, shift=torch.pi, name: str = "a"):
    return x * scale + shift


def test_decorators_are_comments_and_defaults_stay(tmp_path):
    _, text = dump(tmp_path, decorated, torch.ones(3))
    assert '# @keep("several",\n#       "lines")\ndef decorated(x, scale=2, *, shift=torch.pi' in text
    assert "def compiled_decorated(x, scale=2, *, shift=..., name='a'):" in text


def test_names_of_parameters_stay_as_they_are(tmp_path):
    def f(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    _, text = dump(tmp_path, f, torch.ones(3))
    assert re.search(r"def guards_0_for_torch_dynamo_resume_in_f_at_\w+\([^)]*___stack0", text)


@pytest.mark.torch_since((2, 9), "the message of the break has another form")
def test_a_graph_break_is_said_above_the_code_that_it_ends(tmp_path):
    def f(x):
        print("of", x.shape)
        return x.sum().item() + x

    _, text = dump(tmp_path, f, torch.ones(3))
    assert re.search(r'# graph break at test_full_code\.py:\d+ \(print\("of", x\.shape\)\): a graph cannot `print`\n', text)
    if sys.version_info >= (3, 11):
        assert "# computed up to the graph break:\n#   ___stack0: x.sum().item()\n" in text


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code has no places of expressions")
def test_transformed_code_says_what_it_is_given_from_the_stack(tmp_path):
    def f(x, log):
        log.append(x.sum().item())
        return x + 1

    dump(tmp_path, f, torch.ones(3), [])
    (code,) = (tmp_path / "d").glob("__transformed_code_0_for_torch_dynamo_resume_in_f_at_*.py")
    assert "# computed up to the graph break: ___stack0: log.append, ___stack1: x.sum().item()\n" in code.read_text()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code has no places of expressions")
def test_two_functions_that_break_at_one_place_name_what_they_pass_on_alike(tmp_path):
    """They call the same resume function, whose name has an offset of the first of them."""
    def f(x, first):
        if first:
            print()
        y = torch.repeat_interleave(torch.arange(x.numel()), x)
        return y + 1

    with depyf.prepare_debug(str(tmp_path / "d")):
        compiled = torch.compile(f, backend="eager")
        compiled(torch.tensor([1, 2]), True)
        compiled(torch.tensor([1, 2]), False)
    texts = [file.read_text() for file in (tmp_path / "d").glob("__transformed_code_*_resume_in_f_at_*.py")]
    given = {line for text in texts for line in text.splitlines() if line.startswith("# computed up to")}
    assert given == {"# computed up to the graph break: ___stack0: torch.repeat_interleave(torch.arange(x.numel()), x)"}


def test_what_differs_between_versions_is_said(tmp_path):
    def f(x, n):
        return x * n

    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        compiled = torch.compile(f, backend="eager", dynamic=False)
        compiled(torch.ones(3), 2)
        compiled(torch.ones(3), 3)
    with open(os.path.join(on.path, "full_code_for_f_0.py"),
              encoding="utf-8") as file:
        text = file.read()
    assert "# transformed code of version [0/1]: equivalent, with the notes of [0/0]\n" in text
    assert "# version [0/1] differs from [0/0]:\n#   n: 2 -> 3\ndef guards_1_for_" in text


def chooser_of_two_versions(tmp_path, at_end):
    def f(x, scale):
        return x * scale

    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        compiled = torch.compile(f, backend="eager", dynamic=False)
        for scale in (2, 3, 2):
            compiled(torch.ones(2), scale)
        at_end()
    [path] = glob.glob(os.path.join(on.path, "full_code_for_*.py"))
    with open(path, encoding="utf-8") as file:
        return file.read().partition("def compiled_")[2]


def test_the_version_that_was_used_last_is_tried_first(tmp_path):
    text = chooser_of_two_versions(tmp_path, at_end=lambda: None)
    assert "torch begins with the one that was used last" in text
    assert text.index("guards_0_for_") < text.index("guards_1_for_")


def test_the_order_of_versions_that_torch_let_go_of_is_not_known(tmp_path):
    text = chooser_of_two_versions(tmp_path, at_end=torch._dynamo.reset)
    assert "in which order torch tried them was not recorded" in text


def test_what_torch_gave_up_has_no_place_in_the_order(tmp_path):
    def f(x, log):
        log.append(x.sum().item())
        return x + 1

    path, _ = dump(tmp_path, f, torch.ones(2), [])
    with open(os.path.join(path, "records.jsonl"), encoding="utf-8") as file:
        entries = [entry for line in file if (record := json.loads(line))["record"] == "function"
                   for frame in record["frames"] for entry in frame["entries"]]
    wants_method = ["check_same_object(L['___stack0']" in str(entry["guards"]) for entry in entries]
    assert any(wants_method)
    assert [entry.get("tried") is None for entry in entries] == wants_method


def test_code_objects_with_objects_in_them_can_be_read_again(tmp_path):
    def f(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y.to(torch.float64), y[0:2]

    def g(x, kind=torch.float64):
        torch._dynamo.graph_break()
        return functools.partial(torch.add, x)(x), kind

    for name, function in (("f", f), ("g", g)):
        path, _ = dump(tmp_path / name, function, torch.ones(3), log_bytecode=True)
        paths = glob.glob(os.path.join(path, "*.bin"))
        assert paths
        for one in paths:
            with open(one, "rb") as file:
                assert isinstance(marshal.load(file), types.CodeType)


def test_hooks_are_never_compiled(tmp_path):
    """A backward graph is compiled while a compiled frame runs; our hooks must not be compiled with it."""
    def f(x, w):
        loss = (x * w).pow(2).sum()
        loss.backward()
        return loss.detach() + 1

    w = torch.tensor([3.0, 4.0], requires_grad=True)
    path, text = dump(tmp_path, f, torch.ones(2), w, backend="aot_eager")
    assert not [n for n in os.listdir(path) if "on_aot_graph" in n or "compile_graph" in n]
    assert torch.equal(w.grad, torch.tensor([6.0, 8.0]))


def test_code_that_we_cannot_write_is_shown_as_such(tmp_path, monkeypatch):
    from depyf.finishing import texts

    def fail(code, **options):
        if options.get("keep_variables"):
            return real(code, **options)
        raise ZeroDivisionError("ours")

    real = texts.decompile_code
    monkeypatch.setattr(texts, "decompile_code", fail)
    with pytest.warns(RuntimeWarning, match="ours"):
        path, text = dump(tmp_path, decorated, torch.ones(3))
    assert "not decompiled: ZeroDivisionError: ours" in text
    assert "def guards_0_for_decorated" in text
    compile(text, "full code", "exec")


def test_the_form_with_nothing_simplified_is_one_file_away(tmp_path):
    path, _ = dump(tmp_path, decorated, torch.ones(3), unsimplified=True)
    with open(os.path.join(path, "__transformed_code_0_for_decorated.unsimplified.py"), encoding="utf-8") as file:
        text = file.read()
    assert "# fidelity: " in text or "# note: " in text
    # What the other form leaves out: torch's marks for its profiler (since 2.8), results kept before they are used.
    assert "record_pregraph_bytecode_enter" in text or "[___s0]" in text
    compile(text, "unsimplified", "exec")


def test_names_with_ids_are_shown_without_them():
    from depyf.capture.codes import names_without_ids

    code = compile("___module_collections_140365297653120_c3.x\nf_140365297653120_c1\nf_140365297653999_c1\n"
                   "g_140365297653120_c1_0\ng\nkept_123_c1\n_140458098974592_c0", "", "exec")
    assert names_without_ids(code) == {
        "___module_collections_140365297653120_c3": "___module_collections", "f_140365297653120_c1": "f"}


def test_long_parameters_and_calls_are_broken(tmp_path):
    def f(a_long_name_of_an_argument, another_long_name_of_an_argument, *more_of_them_and_still_more_of_them,
          key_only_argument_of_some_length="a, (b", **others_that_are_named):
        return a_long_name_of_an_argument + another_long_name_of_an_argument

    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        torch.compile(f, backend="eager")(torch.ones(2), torch.ones(2))
    (path,) = glob.glob(os.path.join(on.path, "full_code_for_*.py"))
    with open(path, encoding="utf-8") as file:
        text = file.read()
    compile(text, path, "exec")
    assert max(map(len, text.splitlines())) <= 120
    assert "**others_that_are_named)" in text.partition("def compiled_")[2]


def logged(func):
    def wrapper(*args, **kwargs):
        return func(*args, **kwargs)
    return wrapper


class Decorated(torch.nn.Module):
    @logged
    def forward(self, x, scale=2):
        return x * scale


def test_a_wrapper_is_said_once_above_the_function_that_is_meant(tmp_path):
    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        torch.compile(Decorated(), backend="eager")(torch.ones(2))
    with open(os.path.join(on.path, "full_code_for_forward_0.py"), encoding="utf-8") as file:
        text = file.read()
    compile(text, "full code", "exec")
    assert text.count("called through 1 wrapper: logged.wrapper (") == 1
    assert "# @logged\ndef forward(self, x, scale=2):\n    return x * scale\n" in text
    assert "def compiled_Decorated_forward(*args, **kwargs):" in text
    with open(os.path.join(on.path, "__transformed_code_0_for_forward.py"), encoding="utf-8") as file:
        assert "called through 1 wrapper" in file.read()


@pytest.mark.parametrize("word", ["new", "new_1"])
def test_the_full_code_defines_how_objects_are_made_again(word):
    from depyf.views.dump.guards.functions import helpers

    scope = {}
    exec(helpers(f"#   {word}(class, ...) does not call the class\nreturn {word}(Output, {{'a': 1}}, a=1)"), scope)

    class Output(dict):
        def __init__(self):
            raise AssertionError("called")

    output = scope[word](Output, {"a": 1}, a=1)
    assert dict(output) == {"a": 1} == vars(output) and type(output) is Output
    assert "def new(" not in helpers("return new(1)")  # (a function of the program's)


def long_lines(x):
    """What an author wrote who did not care for the width of a screen: a line of a docstring that is longer than any that depyf writes."""
    y = x + 1  # a comment behind a statement, which is longer than a line of a file of a dump may be, and so goes above the statement
    if not torch.compiler.is_compiling():
        raise ValueError(f"a message that says far more than anybody is going to read, among other things {y.shape} and the rest of it")
    return y * 2


def test_long_lines_of_the_author_are_broken_and_places_stay(tmp_path):
    path, text = dump(tmp_path, long_lines, torch.ones(3))
    assert max(map(len, text.splitlines())) <= 120
    assert "    # a comment behind a statement, which is longer" in text and "    y = x + 1\n" in text
    records = open(os.path.join(path, "records.jsonl"), encoding="utf-8").read()
    assert "y = x + 1  # a comment behind a statement" in records  # as it stands in the file
    first = long_lines.__code__.co_firstlineno
    (graph,) = glob.glob(os.path.join(path, "*Captured_Graph.0.py"))
    written = open(graph, encoding="utf-8").read()
    assert f"{os.path.basename(__file__)}:{first + 2}" in written and f"{os.path.basename(__file__)}:{first + 5}" in written


needs_places = pytest.mark.skipif(sys.version_info < (3, 11), reason="code has no places of expressions")


@needs_places
def test_a_resume_function_says_which_branch_it_continues(tmp_path):
    def f(x):
        if x.sum() > 0:
            return x + 1
        return x - 1

    _, text = dump(tmp_path, f, torch.ones(3))
    headings = re.findall(r"__resume_at_\d+_\d+ continues [^#]*:\d+, after a graph break, where ([^#]*(?:true|false)) #",
                          re.sub(r"\s+(# )?(?!=)", " ", text))
    assert sorted(headings) == ["x.sum() > 0 is false", "x.sum() > 0 is true"]


@needs_places
@pytest.mark.parametrize("more", ["if bias is None:\n        bias = 1", "\n    ".join(["bias = 1"] * 9)])
@pytest.mark.parametrize("long", [1, 70])
def test_the_branch_is_found_where_dynamo_has_other_instructions(tmp_path, more, long):
    """Dynamo names resume functions by offsets in the code that it traces, in which some instructions are two, and
    long arguments have no extension."""
    steps = "\n        ".join(["x = x * 2 + bias"] * long)
    (tmp_path / "model.py").write_text(
        f"def f(x, bias=None):\n    {more}\n    if x.sum() > 0:\n        {steps}\n        return x + 1\n"
        "    elif x.max() > 3:\n        return x - 1\n    return x + bias\n")
    spec = importlib.util.spec_from_file_location("model_of_branches", tmp_path / "model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _, text = dump(tmp_path, module.f, -torch.ones(3))
    headings = re.findall(r"continues [^#]*, where ([^#]*(?:true|false)) #", re.sub(r"\s+(# )?(?!=)", " ", text))
    assert sorted(set(headings)) == ["x.max() > 3 is false", "x.max() > 3 is true", "x.sum() > 0 is false",
                                     "x.sum() > 0 is true"]


def twice(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args) * 2

    return wrapper


@twice
def wrapped(x):
    return x + 1


def test_a_call_that_no_version_matches_runs_the_wrapper(tmp_path):
    _, text = dump(tmp_path, wrapped, torch.ones(3))
    assert "    return twice_wrapper(*args)\n" in text
    assert re.search(r"\ndef twice_wrapper\(\*args\):\n    \.\.\.  # .*test_full_code\.py:\d+\n", text)


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))
        self.norm = torch.nn.BatchNorm1d(3)
        self.layers = torch.nn.ModuleList(torch.nn.BatchNorm1d(3) for _ in range(3))

    def forward(self, x):
        self.seen.add_(1)
        x[0].mul_(2)
        y = self.norm(x)
        for layer in self.layers:
            y = layer(y)
        return y


def test_what_a_graph_writes_to_is_said_at_its_parameters_and_at_its_call(tmp_path):
    path, text = dump(tmp_path, Counting(), torch.ones(4, 3))
    written = re.findall(r"(?m)^    (\w+): .*# .*\bwritten to$", text)
    assert set(written) >= {"seen", "x", "norm_running_mean", "norm_running_var"}
    assert "norm_weight" not in written
    match = re.search(r"    # __compiled_fn_\w+ writes to ((?:.*\n    #)*.*)\n    .*__compiled_fn_", text)[1]
    assert "self.layers[i].running_mean (for i in range(3))" in re.sub(r"\s*\n    #  *", " ", match)
    assert set(re.findall(r"[\w.]+", match)) >= {"self.seen", "x", "self.norm.running_mean", "self.norm.running_var"}
    (outline,) = glob.glob(os.path.join(path, "*.outline.txt"))
    with open(outline, encoding="utf-8") as file:
        assert "  add_" in file.read()


def test_a_version_is_told_by_the_nearest_one(tmp_path):
    def f(x, n, kind):
        return x * n if kind == "a" else x + n * len(kind)

    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        compiled = torch.compile(f, backend="eager", dynamic=False)
        for n, kind in ((2, "a"), (3, "bcd"), (4, "a")):
            compiled(torch.ones(3), n, kind)
    (path,) = glob.glob(os.path.join(on.path, "full_code_for_*.py"))
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert "# version [0/2] differs from [0/0], of the earlier ones the most like it:\n#   n: 2 -> 4\ndef " in text


def test_a_graph_that_is_not_shown_again_names_its_parameters(tmp_path):
    def f(x, y):
        for _ in range(30):
            x = (x + y).sin()
        return x

    with depyf.prepare_debug(str(tmp_path / "d")) as on:
        compiled = torch.compile(f, backend="eager", dynamic=False)
        for size in (3, 4):
            compiled(torch.ones(size), torch.ones(size))
    (path,) = glob.glob(os.path.join(on.path, "full_code_for_*.py"))
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert "\nA graph of 20 statements or more that is much like one above it is shown by what differs.\n" in text
    stub = re.search(r"def (__compiled_fn_\w+)\((.*)\):\n    \.\.\.  # the whole of it: (\S+), line (\d+)\n", text)
    with open(os.path.join(on.path, stub[3]), encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert stub[3] == f"{stub[1]}.Captured_Graph.0.py" and lines[int(stub[4]) - 1].strip() == "def forward("
    names = [re.match(r"\s*(\w+)", line)[1] for line in lines[int(stub[4]) : int(stub[4]) + 3]]
    assert ["self", *stub[2].split(", ")] == names


class Recurrent(torch.nn.Module):
    """Torch does not trace the LSTM, and makes no resume function for what stands behind it."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.rnn = torch.nn.LSTM(4, 4, batch_first=True)

    def forward(self, x):
        h = self.linear(x).relu()
        h, (s, _) = self.rnn(h)
        for _ in range(2):
            h = h + s[0][:, None]
            if h.sum() > 1e9:
                break
        return h.log_softmax(-1)


@pytest.mark.skipif(tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 14), reason="this torch resumes after it")
@pytest.mark.skipif(sys.version_info < (3, 11), reason="without columns nothing tells the user's part")
@pytest.mark.torch_since((2, 9), "the result of the graph is unpacked otherwise")
def test_the_rest_of_a_function_stands_as_its_author_wrote_it(tmp_path):
    _, text = dump(tmp_path, Recurrent(), torch.ones(2, 3, 4))
    transformed = text.partition("def __transformed_code_0_for_forward(self, x):\n")[2]
    assert re.sub(r"__compiled_fn_\d+", "__compiled_fn_2", transformed.partition("\n\n")[0]) == """\
    graph_out_0 = __compiled_fn_2(self.linear.weight, self.linear.bias, x)
    h = graph_out_0[0]
    h, (s, _) = self.rnn(h)
    for _ in range(2):
        h = h + s[0][:, None]
        if h.sum() > 1000000000.0:
            break
    return h.log_softmax(-1)"""
