"""``depyf check``: budgets, what is beyond them with place and cause, and the exit status. (From records, without torch.)

``DEPYF_UPDATE_GOLDEN=1`` writes the texts in ``golden`` anew.
"""

import dataclasses
import os
import pathlib
import subprocess
import sys

import pytest
from compiled_runs import compiled, dump, ranks, run

from depyf import cli
from depyf.cli.recorded import OPTIONS
from depyf.records import store
from depyf.records.model import Capture, Failure
from depyf.views.budgets import MOST, Budget, BudgetError, budget, budgets, exceeded, judge, sentences
from depyf.views.run_index import RunIndex
from depyf.views.verdict import KINDS, Totals, findings, is_lost

GOLDEN = pathlib.Path(__file__).parent / "golden"
#: One at least of each kind, all exceeded.
ALL = [f"--max-{name}={most}" for name, most in (
    ("breaks", 0), ("recompiles", 1), ("skipped", 0), ("versions", 2), ("graphs", 1), ("guards", 5), ("kernels", 4),
    ("compile-seconds", 1.5))]
#: What is held as a whole text: the run or runs, and the options.
TEXTS = {
    "check_all_beyond": ([run()], ALL),
    "check_kept": ([run(0, 1, False)], ["--max-breaks=0", "--max-recompiles=0", "--no-skipped", "--max-graphs=9",
                                        "--max-compile-seconds=5", "--max-breaks=Net.*:0"]),
    "check_functions": ([run()], ["--max-breaks=forward:1", "--max-breaks=scale:1", "--max-recompiles=*:1",
                                  "--max-graphs=model.py:2"]),
    "check_ranks": ([run(rank="0", world_size="4"), run(rank="1", world_size="4"), run(0, 2, rank="2", world_size="4")],
                    ["--max-breaks=0", "--max-recompiles=1", "--no-skipped", "--max-versions=9", "--max-breaks=scale:1"]),
    "check_killed": ([dataclasses.replace(run(1, 1, False), notes=(store.NOT_ENDED,))], ["--max-breaks=1"]),
}


def checked(capsys, path, *options):
    status = cli.main(["check", path, *options])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.mark.parametrize("name", TEXTS)
def test_whole_texts(tmp_path, capsys, name):
    captures, options = TEXTS[name]
    path = ranks(tmp_path, *captures) if len(captures) > 1 else dump(tmp_path, captures[0])
    if name == "check_killed":
        file = tmp_path / store.FILE
        file.write_text("".join(line for line in file.read_text().splitlines(True) if '"end"' not in line))
    status, text, trouble = checked(capsys, path, *options)
    assert not trouble
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("DEPYF_UPDATE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()
    assert status == (1 if "beyond the budget" in text else 0)
    assert checked(capsys, path, *options, "-q") == (status, "", "")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_an_option_and_is_judged_at_its_limit(tmp_path, capsys, kind):
    option = next(option for option, (of, _) in OPTIONS.items() if of == kind)
    number = sum(each.amount for each in findings(RunIndex(run()), kind))
    assert number > 0
    path = dump(tmp_path, run())
    assert checked(capsys, path, f"{option}={number:g}")[0] == 0
    less = number - (0.01 if kind == "seconds" else 1)
    assert checked(capsys, path, f"{option}={less:g}")[0] == 1
    assert {of for of, _ in OPTIONS.values()} == set(KINDS)


def test_the_numbers_are_those_of_explain():
    index = RunIndex(run())
    totals = Totals.of(index)
    for kind, number in (("breaks", totals.breaks), ("recompiles", totals.recompiles), ("versions", totals.versions),
                         ("graphs", totals.graphs), ("seconds", totals.seconds)):
        assert sum(each.amount for each in findings(index, kind)) == number
        assert sum(each.amount for summary in index.summaries for each in findings(index, kind, summary)) == number


def test_what_counts_as_skipped():
    assert not is_lost(compiled(0, outcome="skipped")) and not is_lost(compiled(0, outcome="unknown"))
    assert not is_lost(compiled(0))
    assert is_lost(compiled(0, outcome="limit")) and is_lost(compiled(0, outcome="failed"))
    assert is_lost(compiled(0, outcome="skipped", failure=Failure("Unsupported", "no")))


@pytest.mark.parametrize(("text", "expected"), [
    ("0", Budget("breaks", 0)), ("12", Budget("breaks", 12)), ("Block.forward:3", Budget("breaks", 3, "Block.forward")),
    ("a:b:1", Budget("breaks", 1, "a:b"))])
def test_a_budget_is_read(text, expected):
    assert budget("breaks", text) == expected


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", ":1", "f:", "nan", "inf", "f:x", "1e400"])
def test_what_is_no_budget(tmp_path, capsys, text):
    with pytest.raises(BudgetError, match="is no budget for breaks; give a number from 0 on, or FUNCTION:NUMBER"):
        budget("breaks", text)
    status, out, trouble = checked(capsys, dump(tmp_path, run()), f"--max-breaks={text}")
    assert status == 2 and not out and trouble.startswith(f"depyf: {text!r} is no budget")


@pytest.mark.parametrize("given", [{"brakes": 0}, {"breaks": True}, {"breaks": None}, {"breaks": [{}]}])
def test_budgets_of_python(given):
    assert budgets({"breaks": 0, "seconds": [1.5, "f:2"]}) == [
        Budget("breaks", 0), Budget("seconds", 1.5), Budget("seconds", 2, "f")]
    with pytest.raises(BudgetError):
        budgets(given)


def test_bad_input(tmp_path, capsys):
    path = dump(tmp_path / "a", run())
    for given, says in (([path], "there is no budget; give one"),
                        ([path, "--max-breaks=nosuch:0"], "no function of the run is meant by 'nosuch'; there are "
                                                          "Net.forward, scale"),
                        ([str(tmp_path / "b"), "--max-breaks=0"], "is not there"),
                        ([dump(tmp_path / "c", Capture()), "--max-breaks=0"], "no function was compiled in this run"),
                        ([dump(tmp_path / "d", dataclasses.replace(run(), compilations=())), "--max-breaks=0"],
                         "does not say what was compiled when")):
        assert checked(capsys, *given)[:2] == (2, "")
        cli.main(["check", *given])
        assert says in capsys.readouterr().err


def test_a_long_list_is_cut(tmp_path, capsys):
    text = checked(capsys, dump(tmp_path, run(0, MOST + 4)), "--max-recompiles=0")[1]
    assert len(text.splitlines()) == MOST + 2 and text.endswith("  ... and 3 more\n")


def test_a_function_that_one_rank_has_is_judged_there():
    both = {"rank_0": run(), "rank_1": run(skipped=False)}
    judgement = judge(both, [Budget("skipped", 0, "scale"), Budget("breaks", 9)])
    assert not judgement.within and exceeded(judgement)[0] == "rank 0: scale: 1 skipped function, beyond the budget of 0:"
    assert sentences(judgement)[-1] == "each of 2 ranks: 2 to 3 graph breaks, within the budget of 9"
    assert judge({"rank_0": run(), "rank_1": Capture()}, [Budget("breaks", 9)]).notes == (
        "Nothing was compiled on rank 1.",)


def test_other_runs_in_the_directory_are_named(tmp_path, capsys):
    path = dump(tmp_path, run())
    dump(tmp_path / "run_2", run())
    assert checked(capsys, path, "--max-breaks=9")[2] == (
        f"depyf: not judged: run_2 in {path}, which other runs or processes wrote\n")


def test_names_of_others_do_no_harm(tmp_path, capsys):
    capture = run(1, 1, False)
    hostile = dataclasses.replace(capture.compilations[0], breaks=tuple(
        dataclasses.replace(each, reason="a\x1b[31m`b`|\n* no \ud800", registry_id="") for each in
        capture.compilations[0].breaks))
    path = dump(tmp_path, dataclasses.replace(capture, compilations=(hostile,)))
    text = checked(capsys, path, "--max-breaks=0")[1]
    assert len(text.splitlines()) == 2 and "\x1b" not in text


#: What a command must not import to check a run: nothing of torch's, and of others Rich, which need not be installed.
WITHOUT = "import sys; sys.modules.update({'torch': None, 'rich': None, 'markdown_it': None})"


def test_neither_torch_nor_rich_is_needed(tmp_path):
    path = dump(tmp_path, run())
    for options, status in ((["--max-breaks=0"], 1), (["--max-breaks=9"], 0), (["--max-breaks=0", "--json"], 1)):
        done = subprocess.run(
            [sys.executable, "-c", f"{WITHOUT}; from depyf.cli import main; sys.exit(main({['check', path, *options]!r}))"],
            capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        assert done.returncode == status and not done.stderr


def test_the_help_imports_no_views():
    done = subprocess.run(
        [sys.executable, "-c",
         "import sys; from depyf.cli import parser; parser().parse_args(['check', 'x']); print(*sys.modules)"],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0
    imported = set(done.stdout.split())
    assert "depyf.cli.recorded" in imported
    assert not [name for name in imported if name.startswith((
        "depyf.views.budgets", "depyf.views.run_index", "depyf.records", "torch", "rich"))]
