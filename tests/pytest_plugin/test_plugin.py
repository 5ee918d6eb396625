"""The plugin for pytest: a dump for each test that compiles, budgets by a marker, and nothing where neither is used."""

import dataclasses
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import re
import sys

import pytest

from depyf.pytest_plugin.recorder import MOST, Account, folder_name, session_directory, summary
from depyf.records import store
from torch_forks import torch_python

pytest_plugins = "pytester"

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: The plugin is loaded by its entry point where depyf is installed with it, and by its name otherwise.
INSTALLED = any(each.value == "depyf.pytest_plugin" for each in importlib.metadata.entry_points(group="pytest11"))
LOAD = () if INSTALLED else ("-p", "depyf.pytest_plugin")

#: Not imported here: pytester makes the process forget what a test imported, and torch cannot be imported twice.
HERE = {name for name in ("torch", "xdist") if importlib.util.find_spec(name)}
with_torch = pytest.mark.skipif("torch" not in HERE, reason="torch is not installed")

TESTS = '''
import pytest, torch

@torch.compile(backend="eager")
def broken(x):
    y = x * 2
    print("side")
    return y + 1

@torch.compile(backend="eager")
def whole(x):
    return x + 1

whole(torch.ones(9))  # while the file is imported

@pytest.fixture(scope="module")
def warm():
    return whole(torch.ones(2))

@pytest.mark.compiles(breaks=0, recompiles=1)
def test_beyond():
    broken(torch.ones(3))

@pytest.mark.compiles(breaks=1, recompiles=0, skipped="broken:0")
def test_kept():
    broken(torch.ones(3))

@pytest.mark.compiles(breaks=0)
def test_own_failure():
    broken(torch.ones(3))
    assert 1 == 2, "its own"

@pytest.mark.compiles(breaks=0)
def test_fails_before():
    assert 1 == 2, "before"

@pytest.mark.compiles(breaks=0)
def test_nothing():
    pass

@pytest.mark.compiles(brakes=0)
def test_misspelt():
    pass

@pytest.mark.compiles(breaks=0)
@pytest.mark.xfail(strict=True)
def test_expected():
    broken(torch.ones(3))

@pytest.mark.compiles(breaks=0)
@pytest.mark.skip
def test_skipped():
    raise AssertionError

@pytest.mark.compiles(breaks=0)
class TestClass:
    def test_of_class(self):
        broken(torch.ones(3))

    @pytest.mark.compiles(breaks=1)
    def test_nearer(self):
        broken(torch.ones(3))

@pytest.mark.compiles(versions=1)
def test_fixtures_count(warm):
    pass

@pytest.mark.compiles(recompiles=0)
@pytest.mark.parametrize("n", [4, 5])
def test_order_does_not_matter(n):
    whole(torch.ones(n))

@pytest.mark.compiles(recompiles=0, reset=False)
def test_goes_on():
    whole(torch.ones(6))

def test_unmarked():
    broken(torch.ones(7))

def test_quiet():
    assert not torch.ones(1).sum() > 3
'''
#: Outcomes of the tests above, whether or not dumps are kept.
OUTCOMES = {"passed": 7, "failed": 6, "errors": 1, "skipped": 1, "xfailed": 1}


def run(pytester, *arguments, python=None):
    return pytester.run(*(python or torch_python()), "-m", "pytest", f"--basetemp={pytester.path / 'basetemp'}", *LOAD, "-p",
                        "no:cacheprovider", "-p", "no:pytester", *arguments)


@pytest.fixture(autouse=True)
def path(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


def folders(directory):
    return sorted(each.name for each in pathlib.Path(directory).iterdir())


@pytest.fixture
def tests(pytester):
    (pytester.path / "tests").mkdir()
    (pytester.path / "tests" / "conftest.py").write_text(
        "def pytest_addoption(parser): parser.addoption('--of-this-folder', action='store_true')\n")
    (pytester.path / "tests" / "test_it.py").write_text(TESTS)
    return pytester


@with_torch
@pytest.mark.slow
def test_each_test_that_compiles_has_a_dump(tests):
    # (what follows --depyf is a path to be tested, whose conftest is loaded before the options are read)
    result = run(tests, "--strict-markers", "--depyf", "tests", "--of-this-folder")
    result.assert_outcomes(**OUTCOMES)
    names = [re.sub(r"-[0-9a-f]{8}$", "", name) for name in folders("depyf_output")]
    # (the fixture is of the first test that wants it)
    assert names == ["tests.test_it.py." + name for name in (
        "TestClass.test_nearer", "TestClass.test_of_class", "collected", "test_beyond", "test_expected",
        "test_fixtures_count", "test_goes_on", "test_kept", "test_order_does_not_matter-4",
        "test_order_does_not_matter-5", "test_own_failure", "test_unmarked")]
    dump = tests.path / "depyf_output" / "tests.test_it.py.test_kept"
    assert len(store.read(str(dump)).compilations) == 2 and (dump / "index.md").exists()
    assert not (dump / "index.html").exists()
    text = result.stdout.str()
    assert "    broken(torch.ones(3))\n" not in text.partition("test_beyond ___")[2].partition("____")[0]
    result.stdout.fnmatch_lines([
        "*_ test_beyond _*", "1 graph break, beyond the budget of 0:",
        "  test_it.py:7 `broken` (`print(\"side\")`): a graph cannot `print`",
        "*_ test_own_failure _*", "E   *AssertionError: its own", "*- beyond the budgets of depyf -*",
        "1 graph break, beyond the budget of 0:",
        "*_ test_nothing _*", "Nothing was compiled while this test ran*",
        "*= depyf =*", "12 tests compiled something: *",
        "  tests/test_it.py::test_unmarked: * 1 graph break* (test_it.py:7: a graph cannot `print`)",
        "written to depyf_output, a folder for each test: depyf explain depyf_output/tests.test_it.py.test_beyond"])
    result.stdout.no_fnmatch_line("*internal error*")
    assert text.count("beyond the budgets of depyf") == 1  # (a test that fails before it compiles is not blamed for that)
    assert "there is no budget 'brakes'; there are breaks, recompiles" in text


@with_torch
@pytest.mark.slow
def test_the_marker_needs_no_option_and_leaves_nothing(tests, monkeypatch):
    temporary = tests.path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    result = run(tests, "tests", "--basetemp", str(tests.path / "base"))
    result.assert_outcomes(**OUTCOMES)
    assert not (tests.path / "depyf_output").exists()
    assert not [name for name in folders(temporary) if name.startswith("depyf-")]
    result.stdout.no_fnmatch_line("*= depyf =*")


@pytest.mark.skipif("xdist" not in HERE, reason="pytest-xdist is not installed")
@with_torch
@pytest.mark.slow
def test_workers_of_xdist(tests):
    # (what `test_goes_on` finds compiled depends on the tests that its worker happens to get before it)
    result = run(tests, "-n", "2", "--depyf=out", "tests", "-k", "not goes_on")
    result.assert_outcomes(**{**OUTCOMES, "failed": OUTCOMES["failed"] - 1})
    assert len(folders("out")) == 11 and not [name for name in folders("out") if name.startswith("run_")]
    result.stdout.fnmatch_lines(["*= depyf =*", "11 tests compiled something: *", "written to out, *"])


@with_torch
@pytest.mark.slow
def test_a_test_may_use_depyf_itself(pytester):
    pytester.makepyfile('''
        import depyf, pytest, torch

        @pytest.mark.compiles(graphs=1)
        def test_own(tmp_path):
            with depyf.prepare_debug(str(tmp_path / "own")):
                assert torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2)).tolist() == [2, 2]
            assert (tmp_path / "own" / "records.jsonl").exists()
    ''')
    pytester.mkdir("out")
    (pytester.path / "out" / "earlier").write_text("")
    result = run(pytester, "--depyf=out")
    result.assert_outcomes(passed=1)
    assert folders("out") == ["earlier", "run_2"] and len(folders("out/run_2")) == 1


@with_torch
@pytest.mark.slow
def test_trouble_of_ours_is_no_failure_of_a_test(pytester):
    """Unless it is marked: then nobody knows whether its budgets were kept. Warnings that are errors are the test's own."""
    pytester.makepyfile('''
        import pytest, torch

        compiled = torch.compile(lambda x: x + 1, backend="eager")

        def test_unmarked():
            compiled(torch.ones(2))

        @pytest.mark.compiles(breaks=0)
        def test_marked():
            compiled(torch.ones(2))

        def test_error_of_ours(monkeypatch):
            import depyf.pytest_plugin.recorder
            monkeypatch.setattr(depyf.pytest_plugin.recorder.Account, "of", None)
            compiled(torch.ones(3))
    ''')
    (pytester.path / "file").write_text("")
    result = run(pytester, "-W", "error", "--depyf=file/no")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["What this test compiled cannot be judged: depyf cannot write to *",
                                 "*= depyf =*", "not recorded: depyf cannot write to *"])
    result = run(pytester, "-W", "error", "--depyf=out")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["not recorded: internal error: TypeError: *", "2 tests compiled something: *"])


WITHOUT_USE = '''
import sys

def test_nothing_is_imported():
    # (Old names of modules are entered, and are empty until one is used.)
    ours = sorted(name for name, module in sys.modules.items() if name.startswith("depyf")
                  and type(module).__name__ != "_OldModule")
    assert ours == ["depyf", "depyf.old_names", "depyf.pytest_plugin"] and "torch" not in sys.modules
    assert not [each for each in sys.meta_path if type(each).__module__.startswith("depyf")]
'''


def test_without_use_it_costs_nothing(pytester):
    pytester.makepyfile(WITHOUT_USE)
    run(pytester, python=[sys.executable]).assert_outcomes(passed=1)


def test_tests_without_torch(pytester):
    """Nothing of torch's is imported, and nothing is written."""
    pytester.makepyfile("import sys\ndef test_it():\n    assert 'torch' not in sys.modules\n")
    result = run(pytester, "--depyf", python=[sys.executable])
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*= depyf =*", "no test compiled anything, so nothing was written"])
    assert not (pytester.path / "depyf_output").exists()


def test_bad_directory(pytester):
    pytester.makepyfile("def test_it(): pass")
    (pytester.path / "file").write_text("")
    result = run(pytester, "--depyf=file")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--depyf=file: that is a file; give the name of a directory"])


def test_the_marker_is_explained(pytester):
    run(pytester, "--markers").stdout.fnmatch_lines(["@pytest.mark.compiles(breaks=N, recompiles=N, *"])
    run(pytester, "--help").stdout.fnmatch_lines(["*--depyf=[[]DIR]*"])


def test_the_entry_point():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '[project.entry-points.pytest11]\ndepyf = "depyf.pytest_plugin"\n' in text


def test_pytest_may_have_imported_depyf_before():
    """Pytest warns of plugins that it can no longer rewrite, unless they say that there is nothing to rewrite."""
    import depyf

    assert "PYTEST_DONT_REWRITE" in depyf.__doc__


# --- folders ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("nodeid", "name"), [
    ("tests/test_a.py::test_b", "tests.test_a.py.test_b"),
    ("tests/test_a.py::TestC::test_b[x-1]", "tests.test_a.py.TestC.test_b-x-1-*"),
    ("../a.py::t", "a.py.t"), ("run_2", "run_2-*"), ("RANK_0", "RANK_0-*"), ("[\ud800]", "test-*"), ("", "test-*"),
    ("t[" + "x" * 300 + "]", "t-" + "x" * 98 + "-*")])
def test_names_of_folders(nodeid, name):
    found = folder_name(nodeid)
    assert re.fullmatch(re.escape(name).replace(r"\*", "[0-9a-f]{8}"), found)
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,120}", found) and found not in (".", "..")


def test_names_of_different_tests_differ():
    ids = ["t[a/b]", "t[a.b]", "t[a b]", "t[a-b]", "t[a::b]", "t.a-b", "t[" + "x" * 300 + "]", "t[" + "x" * 301 + "]"]
    assert len({folder_name(each) for each in ids}) == len(ids)


def test_an_earlier_session_is_kept(tmp_path):
    wanted = tmp_path / "out"
    assert session_directory(str(wanted)) == str(wanted)
    wanted.mkdir()
    assert session_directory(str(wanted)) == str(wanted)
    (wanted / "a").write_text("")
    assert session_directory(str(wanted)) == str(wanted / "run_2") and not (wanted / "run_2").exists()


# --- the summary ------------------------------------------------------------------------------------
def account(name="t", breaks=0, **more):
    return Account(name, f"/out/{name}", 2, breaks, more.pop("recompiles", 0), more.pop("skipped", 0), 1.25, **more)


def test_the_summary():
    assert summary([], "/out", []) == ["no test compiled anything, so nothing was written"]
    assert summary([account()], "/out", ["no", "no"]) == [
        "not recorded: no", "1 test compiled something: 2 graphs, 1.2 s of compiling",
        "written to /out, a folder for each test: depyf explain /out/t"]
    lines = summary([account(), *(account(f"t{n}", 1, recompiles=2, skipped=3, first="why") for n in range(MOST + 2))],
                    "/out", [])
    assert lines[1] == "  t0: 2 graphs, 1 graph break, 2 recompiles, 3 skipped (why)"
    assert lines[-2] == "  ... and 2 more" and len(lines) == MOST + 3
    assert Account(**json.loads(json.dumps(dataclasses.asdict(account())))) == account()


@with_torch
@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--log-level=DEBUG", "-o", "log_cli=true", "--depyf")])
def test_a_failed_test_shows_its_own_log_alone(pytester, options):
    pytester.makepyfile(test_log="""
        import logging, pytest, torch

        @pytest.mark.compiles(breaks=0)
        def test_broken():
            logging.getLogger("mine").warning("my warning")
            logging.getLogger("torch.__trace").warning("mine to torch")
            torch.compile(lambda x: x + 1 if x.sum() > 0 else x, backend="eager")(torch.ones(3))
        """)
    result = run(pytester, *options)
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    captured = text[text.index("Captured log call"):].splitlines()[1:3]
    assert [line.split()[-2:] for line in captured] == [["my", "warning"], ["to", "torch"]]
    assert not re.search(r"torch\.__trace:\w+\.py:\d+ *$", text, re.MULTILINE), text
