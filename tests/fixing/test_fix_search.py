"""The search for a patch, with trials that are pretended, and the texts that it makes."""

import ast
import dataclasses

import pytest

pytest.importorskip("torch")

from depyf import prepare_debug
from depyf.advice.model import Advice, Edit
from depyf.advice.recompiles import DYNAMIC
from depyf.comparing import outcome as comparing
from depyf.fixing.outcome import Call, Outcome
from depyf.fixing.patch import Patch, remaining_problems, unified_diff, with_settings
from depyf.fixing.search import Search
from depyf.fixing.trial import noting, watched
from depyf.records.model import (
    CacheEntry,
    Capture,
    CodeText,
    Compilation,
    CompiledFunction,
    CompileId,
    Frame,
    GraphBreak,
    Guard,
    GuardFailure,
    SourceFile,
    SourceLocation,
    SymbolDecision,
    TransformedCode,
)

#: The check of `f` is all that breaks till it is gone; then the `break` does.
IN_TURN = """import torch
@torch.compile
def g(x):
    return x
@torch.compile
def f(x):
    for _ in x:
        if x.any():
            raise ValueError("bad")
        if x.sum() > 5:
            break
def h(x):
    y = x if x.all() else -x
    return y
"""


def judged(conditions, printed=""):
    """Return one generated call that took both sides of each condition."""
    both = frozenset((n, side) for n in range(sum(map(len, conditions.values()))) for side in (True, False))
    return [Call("f", 1, "as recorded", {}, comparing.Outcome(printed=(printed, "")), both)]


class Pretended:
    """A trial.

    Args:
        breaks: given a text, tests of lines at which the graph breaks.
        again: given a text, tests of lines of functions that are compiled twice.
        printed: given a text, what the program prints, and what generated calls print.
    """

    def __init__(self, breaks, again=lambda text: [], printed=lambda text: "", other=lambda text: ""):
        self.breaks, self.again, self.printed, self.other, self.seen = breaks, again, printed, other, []

    def __call__(self, texts, conditions=None):
        self.seen.append((dict(texts), conditions))
        text = next(iter(texts.values()), self.text)
        breaks, again = ([SourceLocation(self.path, n, "f", line) for n, line in enumerate(text.splitlines(), 1)
                          if any(each in line for each in wanted(text))] for wanted in (self.breaks, self.again))
        broken = tuple(GraphBreak(CompileId(0, 0), "", registry_id="GB0124" if "int(" in where.text else "GB0170",
                                  stack=(where,)) for where in breaks)
        changed = GuardFailure(CompileId(1, 0), "", "L['x']", "3", "4", subject="x.size()[0]")
        twice = [Compilation(CompileId(1, n), location=where, guard_failures=(changed,) * n)
                 for where in again for n in (0, 1)]
        return Outcome(Capture(compilations=(Compilation(CompileId(0, 0), breaks=broken), *twice),
                               sources=(SourceFile(self.path, text),)), printed=self.printed(text),
                       calls=judged(conditions, self.other(text)) if conditions is not None else [])


def on_number(text):
    return [] if "capture_scalar_outputs" in text else ["int(x)"]


def in_turn(text):
    return ["if x.any()"] if "if x.any()" in text else ["if x.sum()"]


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("import torch\ndef f(x):\n    y = x * int(x)\n    return y\n")
    return path


def searched(program, trial, runs=20):
    trial.path, trial.text = str(program), program.read_text()
    return Search(str(program), trial, runs).run()


def rules(found):
    return [advice.rule for advice in found.best.patch.taken]


def test_what_helps_is_taken(program):
    found = searched(program, Pretended(on_number))
    assert found.best.after.totals.breaks == 0 and found.rejected == {}
    assert "\n+torch._dynamo.config.capture_scalar_outputs = True\n" in unified_diff(found.best.patch.texts, str(program.parent))


@pytest.mark.parametrize(("trial", "why_not"), [
    (Pretended(lambda text: ["int(x)"]), "nothing is compiled better with it"),
    (Pretended(on_number, printed=lambda text: "other" if "capture" in text else ""), "the program prints something else"),
])
def test_what_does_not_help_or_changes_the_run_is_not_taken(program, trial, why_not):
    found = searched(program, trial)
    assert not found.best.patch.taken and not found.best.patch.texts
    assert list(found.rejected.values()) == [why_not]


def test_what_changes_calls_with_other_inputs_is_not_taken(program):
    program.write_text("import torch\ndef h(x):\n    y = x if x.all() else -x\n    return y\n")
    found = searched(program, Pretended(lambda text: ["x if x.all()"], other=lambda text: str("where" in text)))
    assert not found.best.patch.taken
    (why,) = (why for each, why in found.rejected.items() if each.change == "write `y = torch.where(x.all(), x, -x)`")
    assert why.startswith("f, as recorded: standard output: line 1")


def test_what_no_runs_are_left_to_test_is_not_taken(program):
    program.write_text("import torch\ndef h(x):\n    y = x if x.all() else -x\n    return y\n")
    found = searched(program, Pretended(lambda text: ["x if x.all()"]), runs=3)
    assert not found.best.patch.taken and set(found.rejected.values()) == {"no runs were left to test it"}


def test_where_nothing_was_compiled_nothing_can_be_judged(program):
    """Other processes may have compiled, as those of ``multiprocessing`` do."""
    found = Search(str(program), lambda texts, conditions=None: Outcome(Capture())).run()
    assert found.runs == 1 and found.refused.startswith("torch compiled nothing in the program's own process")


def test_a_program_that_is_never_the_same_is_refused(program):
    count = iter(range(99))
    found = searched(program, Pretended(on_number, printed=lambda text: str(next(count))))
    assert "do not give the same" in found.refused


def test_a_change_after_which_the_next_break_shows_is_taken_with_its_change(program):
    """Torch gives a function up at its first break, and its others are still to come."""
    program.write_text("import torch\ndef f(x):\n    n = int(x)\n    y = x if n > 2 else -x\n    return y\n")
    found = searched(program, Pretended(
        lambda text: ["int(x)"] if "capture" not in text else ["x if n", "    return y"] if "x if n" in text else []))
    assert found.best.after.totals.breaks == 0
    assert rules(found) == ["capture_scalar_outputs", "branch"]


def test_a_change_by_which_nothing_is_compiled_is_not_taken(program):
    class Emptied(Pretended):
        def __call__(self, texts, conditions=None):
            outcome = super().__call__(texts)
            first = dataclasses.replace(outcome.capture.compilations[0], counts={} if texts else {"operations": 2})
            return dataclasses.replace(outcome, capture=dataclasses.replace(outcome.capture, compilations=(first,)))

    found = searched(program, Emptied(on_number))
    assert list(found.rejected.values()) == ["nothing is compiled with it"]


def test_a_change_that_only_shows_the_next_break_is_not_taken_where_another_helps(program):
    """What helped was `dynamic=True`; after the check, the next break shows."""
    program.write_text(IN_TURN)
    found = searched(program, Pretended(in_turn, lambda text: [] if "dynamic" in text else ["def g"]))
    assert rules(found) == ["dynamic"]
    assert "raise ValueError" in found.best.patch.texts[str(program)]


def test_of_two_changes_the_one_that_brings_nothing_is_not_taken(program):
    program.write_text(IN_TURN)
    found = searched(program, Pretended(lambda text: [*in_turn(text), "y = x if"]))
    assert rules(found) == ["branch"]
    assert found.best.patch.texts[str(program)] == IN_TURN.replace("x if x.all() else -x", "torch.where(x.all(), x, -x)")


def test_what_is_left_is_tried_without_what_was_taken_in_hope(program):
    """The setting shows two further breaks, of which nothing is known; `dynamic=True` helps where it is not set."""
    program.write_text("import torch\n@torch.compile\ndef g(x):\n    return x\ndef f(x):\n    n = int(x)\n    return n\n")
    found = searched(program, Pretended(
        lambda text: ["import torch", "return n"] if "capture" in text else ["int(x)"],
        lambda text: [] if "dynamic" in text and "capture" not in text else ["def g"]))
    assert rules(found) == ["dynamic"]


def test_nothing_is_run_twice(program):
    program.write_text(IN_TURN)
    trial = Pretended(in_turn, lambda text: [] if "dynamic" in text else ["def g"])
    searched(program, trial)
    assert all(run not in trial.seen[:n] for n, run in enumerate(trial.seen))


@pytest.mark.parametrize(("runs", "taken"), [
    (20, ["branch"]), (6, ["capture_scalar_outputs", "branch"]), (5, ["capture_scalar_outputs", "branch"])])
def test_a_change_that_a_later_one_makes_needless_is_no_part_of_the_patch(program, runs, taken):
    """Where runs are left to try the patch without it."""
    program.write_text("import torch\ndef f(x):\n    n = int(x)\n    y = x if x.all() else -x\n    return y\n")
    found = searched(program, Pretended(
        lambda text: ["x if x.all()", *on_number(text)] if "where" not in text else []), runs)
    assert rules(found) == taken and found.best.after.totals.breaks == 0 and found.runs <= runs
    assert ("capture" in found.best.patch.texts[str(program)]) == (len(taken) == 2)


def test_variants_of_one_change_are_named_with_their_lines(program):
    program.write_text("import torch\ndef f(x):\n    return x\na = torch.compile(f)\nb = torch.compile(f)\n")
    trial, tried = Pretended(lambda text: [], lambda text: ["def f"]), []
    trial.path, trial.text = str(program), program.read_text()
    Search(str(program), trial, on_run=lambda number, what: tried.append(what)).run()
    change = "write `torch.compile(f, dynamic=True)`"
    assert tried[1:3] == [f"{change} (line 4)", f"{change} (line 5)"]


def test_a_patch_without_one_of_its_changes(program):
    program.write_text("import torch\na = 1\nb = 2\nc = 3\n")
    path = str(program)
    changes = (Advice("first", "", "", "", (Edit(path, 2, 2, ("A", "AA")),), ("torch.first = 1",)),
               Advice("second", "", "", "", (Edit(path, 5, 5, ("B",)),)),
               Advice("third", "", "", "", (Edit(path, 5, 5, ("BB",)), Edit(path, 7, 6, ("d",)))))
    patch = Patch(path)
    for each in changes:
        patch = patch.with_advice(each)
    assert patch.texts[path] == "import torch\ntorch.first = 1\nA\nAA\nBB\nc = 3\nd\n"
    assert patch.without(0).texts[path] == "import torch\na = 1\nBB\nc = 3\nd\n"
    assert patch.without(1) is None and patch.without(2) is patch.before


def test_changes_of_a_file_are_those_of_its_present_lines(program):
    program.write_text("import torch\na = 1\nb = 2\nc = 3\n")
    path = str(program)
    first = Advice("first", "", "", "", (Edit(path, 3, 3, ("B", "BB")),), ("torch.first = 1",))
    second = Advice("second", "", "", "", (Edit(path, 6, 6, ("C",)),))
    patch = Patch(path).with_advice(first).with_advice(second)
    assert patch.texts[path] == "import torch\ntorch.first = 1\na = 1\nB\nBB\nC\n"
    assert Patch(path).with_advice(Advice("", "", "", "", (Edit(path, 2, 2, ("(",)),))) is None


def test_settings_come_after_the_imports():
    text = with_settings('"""A program."""\nimport torch\nfrom os import (\n    path)\nx = 1\n', ["torch.a = 1"])
    assert text.splitlines()[4] == "torch.a = 1"
    assert ast.parse(with_settings("x = 1\n", ["torch.a = 1"])).body[0].names[0].name == "torch"
    assert with_settings(text, ["torch.a = 1"]) == text


# --- what is left ---------------------------------------------------------------------------------
WHERE = SourceLocation("/home/a/model.py", 2, "f", "    print(x, sep='')")
BROKEN = GraphBreak(CompileId(0, 0), "Failed to trace builtin operator", "builtin operator `print`",
                    registry_id="GB0059", stack=(WHERE,))
SOURCES = (SourceFile(WHERE.filename, "def f(x):\n    print(x, sep='')\n"),)


def test_what_is_left_is_said_with_what_to_do_or_why_that_was_rejected():
    capture = Capture(compilations=(Compilation(CompileId(0, 0), outcome="compiled", breaks=(BROKEN, BROKEN)),),
                      sources=SOURCES)
    first, second = remaining_problems(capture)
    assert first == "graph break at model.py:2 `print(x, sep='')`, 2 times: a graph cannot `print`"
    assert second.startswith("  advice: a graph cannot print; what ")
    change = second.removeprefix("  advice: ")
    assert remaining_problems(capture, {Advice("print out", change): "f, x all zeros: it prints 2 lines"}) == [
        first, f"  tried, and not taken: {change}: f, x all zeros: it prints 2 lines"]


def test_a_line_that_breaks_several_functions_is_said_once():
    capture = Capture(compilations=tuple(
        Compilation(CompileId(n, 0), function=name, outcome="compiled", breaks=(BROKEN,))
        for n, name in enumerate(("f", "g"))), sources=SOURCES)
    assert [line for line in remaining_problems(capture) if not line.startswith(" ")] == [
        "graph break at model.py:2 `print(x, sep='')`, 2 times: a graph cannot `print`"]


def test_a_setting_that_was_tried_and_rejected_is_no_advice():
    code = CodeText("", "exact")
    entries = tuple(CacheEntry(CompileId(0, at), (Guard(guard, "L['n']", "EQUALS_MATCH", ""),), TransformedCode(
        CompileId(0, at), "f", code, None, ("n",)), ()) for at, guard in enumerate(("L['n'] == 1.5", "check_type(L['n'], 'float')")))
    failure = GuardFailure(CompileId(0, 0), "", "L['n']", "1.5", "2.5", subject="n")
    opened = SymbolDecision("created", "zf1", "L['n']", "2.5")
    run = Capture((CompiledFunction("f", (Frame("f", "f", WHERE, code, False, ("n",), (), entries),)),), compilations=(
        Compilation(CompileId(0, 0), "f", WHERE, outcome="compiled"), Compilation(
            CompileId(0, 1), "f", WHERE, outcome="compiled", guard_failures=(failure,), symbols=(opened,))))
    row, advice = remaining_problems(run)
    assert row == "recompile of f: `n`: 1.5 → 2.5" and "whether `dynamic=True` in `torch.compile`" in advice
    tried = Advice(DYNAMIC, "write `torch.compile(f, dynamic=True)`", edits=(Edit(WHERE.filename, 1, 1, ("",)),))
    assert remaining_problems(run, {tried: "it prints something else"}) == [row]


# --- the run that is compiled ---------------------------------------------------------------------
CALLS_INNER = """import torch
@torch.compile(backend="eager")
def inner(x):
    return x + 1
@torch.compile(backend="eager")
def outer(x):
    for _ in range(1):
        x = inner(x)
        {}
    return x
for n in (1, 9):
    outer(torch.tensor([n]))
"""


def run_of(text, folder, monkeypatch):
    """Run a program and return the calls of its compiled functions, as a trial notes them."""
    import torch

    torch._dynamo.reset()
    observed = []
    with monkeypatch.context() as patched, prepare_debug(str(folder), page=False, link=False):
        patched.setattr(torch, "compile", watched(torch.compile, noting(observed)))
        exec(compile(text, "calls_inner.py", "exec"), {})
    return Outcome(None, observed)


def test_a_function_that_is_inlined_once_its_caller_compiles_is_no_difference(tmp_path, monkeypatch):
    """Torch runs a loop that breaks in plain Python, and `inner` is called by itself there."""
    broken = run_of(CALLS_INNER.format("x = x * 2 if x.sum() > 5 else x"), tmp_path / "broken", monkeypatch)
    whole = run_of(CALLS_INNER.format("x = torch.where(x.sum() > 5, x * 2, x)"), tmp_path / "whole", monkeypatch)
    other = run_of(CALLS_INNER.format("x = torch.where(x.sum() > 5, x * 2.0, x)"), tmp_path / "other", monkeypatch)
    assert [each.function for each in broken.calls] == ["outer", "outer"]
    assert not whole.difference(broken)
    assert other.difference(broken) == "outer: result: dtype is torch.float32; before torch.int64"
