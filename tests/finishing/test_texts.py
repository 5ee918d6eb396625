"""Texts of transformed code, made in this process or by workers."""

import dataclasses
import itertools
import os
import signal
import subprocess
import sys

import pytest

from depyf.bytecode.code import Code
from depyf.bytecode.packed import packed
from depyf.finishing import texts
from depyf.finishing.frames import source_text
from depyf.finishing.texts import Texts, available_workers
from depyf.guarded import guarded_call
from depyf.records.model import Bytecode, CompileId, MeantFunction

SOURCE = """
def work(x):
    a = __compiled_fn_1_c9(x)
    b = [each + a[0] for each in a]
    return b
"""


def bytecode(number=0, **changes):
    namespace = {}
    exec(SOURCE, namespace)
    made = Bytecode(
        CompileId(0, number), "work", f"__transformed_code_{number}_for_work", f"{number}.py", 0,
        MeantFunction("work", 0), packed(namespace["work"].__code__),
        {"__compiled_fn_1_c9": "__compiled_fn_1"}, ("__compiled_fn_1",))
    return dataclasses.replace(made, **changes)


def maker(counted=None):
    def fail(error):
        raise error

    return Texts(sys.version_info[:2], False, lambda action, otherwise: guarded_call(action, otherwise, fail),
                 (lambda done: None) if counted is None else counted.append)


@pytest.fixture
def workers(monkeypatch):
    monkeypatch.setattr(texts, "_MANY", 0)
    monkeypatch.setattr(texts, "available_workers", lambda: 2)


def test_names_are_those_that_are_shown():
    assert "a = __compiled_fn_1(x)" in maker().of(bytecode()).source.text


def test_a_name_that_is_none_is_refused():
    with pytest.raises(ValueError, match="'no name' is no name of Python"):
        maker().of(bytecode(text_name="no name"))


def test_workers_make_the_same_texts(workers):
    counted = []
    together = maker(counted)
    wanted = [bytecode(number) for number in range(9)]
    together.make([*wanted, bytecode(9, text_name="no name")])
    assert counted == list(range(9))
    assert [together.of(each) for each in wanted] == [maker().of(each) for each in wanted]
    assert counted == list(range(9)), "none was made again"


@pytest.mark.parametrize("worker", ["import os; os._exit(3)", "print('no pickle')"])
def test_workers_that_fail_cost_nothing_but_time(workers, monkeypatch, worker):
    started = []

    class Started(subprocess.Popen):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Started)
    monkeypatch.setattr(texts, "_WORKER", worker)
    together = maker()
    together.make([bytecode(number) for number in range(3)])
    assert together.of(bytecode()).source.fidelity == "equivalent"
    assert started and all(each.returncode is not None for each in started), "a worker is left"


def test_a_worker_that_hangs_is_ended(workers, monkeypatch):
    monkeypatch.setattr(texts, "_WORKER", "import time; time.sleep(600)")
    monkeypatch.setattr(texts, "_PATIENCE", 0.5)
    together = maker()
    together.make([bytecode(number) for number in range(3)])
    assert together.of(bytecode()).source.fidelity == "equivalent"


@pytest.mark.parametrize("executable", ["", "/opt/app/server", "/opt/pythonserver", None])
def test_no_workers_of_another_program(monkeypatch, executable):
    monkeypatch.setattr(sys, "executable", executable)
    assert available_workers() == 0


def test_no_workers_in_a_frozen_application(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert available_workers() == 0


@pytest.mark.skipif(not hasattr(signal, "SIGCHLD"), reason="no such signal here")
def test_no_workers_where_the_program_would_notice_their_end():
    before = signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        assert available_workers() == 0
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_ranks_share_the_processors(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert available_workers() == 8
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert available_workers() == 2


NESTED = '''
class Net:
    def step(self, x):
        """What it does,
        in two lines."""
        def inner(z: "int") -> int:
            class Rate:
                of = """a
                text"""
            return z * self.__rate + len(Rate.of)
        return super().step(inner(x) - 1)
'''


def test_the_text_of_a_function_is_that_of_its_code(tmp_path):
    """Its file may have changed since it was imported: what is there now is not what its author had torch compile."""
    def text(changed=NESTED):
        path.write_text(changed)
        os.utime(path, (next(times),) * 2)
        return source_text(code)

    times, path = itertools.count(1), tmp_path / "net.py"
    namespace = {}
    exec(compile(NESTED, str(path), "exec"), namespace)
    code = Code.of(namespace["Net"].step.__code__)
    assert text().startswith("def step(self, x):\n    \"\"\"What it does")
    for old, new in (("- 1", "+ 1"), ("- 1", "- 2"), ("__rate", "__pace"), ("z *", "z //"), ("step(inner", "stop(inner")):
        assert text(NESTED.replace(old, new)) == "", (old, new)
    assert text(NESTED + "# more\n")
