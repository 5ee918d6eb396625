"""Functions are pointed at the text that shows them, and stay what they were."""

import gc
import linecache
import traceback
import types

import pytest

from depyf.link.functions import link_function, link_module
from depyf.link.linker import Linker

GENERATED = """
import os

def helper(x):
    return x + 1

def twin(x):
    return x + 1

class Runner:
    def __init__(self, parts):
        self.parts = parts

    def call(self, args):
        x, = args
        args.clear()
        return [(lambda y: helper(y) / self.parts)(x)]

runner = Runner(0)
call = runner.call
"""
DUMPED = "# written by a test\n# -------\n" + GENERATED.replace("args.clear()", "args.clear()  # (3,)")


@pytest.fixture
def module():
    result = types.ModuleType("generated")
    exec(compile(GENERATED, "/tmp/somewhere.py", "exec", dont_inherit=True), result.__dict__)
    return result


def line_of(text, part):
    return next(n for n, line in enumerate(text.splitlines(), 1) if part in line)


def test_module_functions_land_in_the_dump(module, tmp_path):
    path = str(tmp_path / "k.py")  # never written: the lines must be known all the same
    before = module.helper
    assert link_module(module, DUMPED, path) == (4, 4)
    assert module.helper is before
    assert module.call.__code__.co_filename == path
    assert module.call.__code__.co_firstlineno == line_of(DUMPED, "def call")
    with pytest.raises(ZeroDivisionError) as caught:
        module.call([1])
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.filename, last.lineno) == (path, line_of(DUMPED, "lambda"))
    assert "lambda y" in last.line
    linecache.checkcache(path)
    assert linecache.getline(path, 1) == "# written by a test\n"


def test_functions_with_one_body_keep_their_own_lines(module, tmp_path):
    link_module(module, DUMPED, str(tmp_path / "k.py"))
    assert module.helper.__code__.co_firstlineno == line_of(DUMPED, "def helper")
    assert module.twin.__code__.co_firstlineno == line_of(DUMPED, "def twin")


def test_a_text_that_says_something_else_links_nothing(module, tmp_path):
    text = DUMPED.replace("x + 1", "x + 2")
    code = module.helper.__code__
    assert link_module(module, text, str(tmp_path / "k.py")) == (2, 4)
    assert module.helper.__code__ is code
    assert link_module(module, "def broken(:", "p") == (0, 4)


def test_imported_functions_are_left_alone(module, tmp_path):
    module.join = module.os.path.join
    code = module.join.__code__
    link_module(module, DUMPED, str(tmp_path / "k.py"))
    assert module.join.__code__ is code


def test_function_under_another_name(tmp_path):
    space = {}
    exec("def forward(self, x):\n    y = x * 2;  x = None\n    return (y,)\n", space)
    text = "# shape\ndef __compiled_fn_1(self, x):\n    y = x * 2;  x = None  # (3,)\n    return (y,)\n"
    assert link_function(space["forward"], text, "dump.py")
    assert space["forward"].__code__.co_name == "forward"
    assert space["forward"].__code__.co_firstlineno == 2
    assert space["forward"](None, 4) == (8,)


def test_things_without_code_are_refused():
    assert not link_function(len, "def f(x): return x", "p")
    linker = Linker(at_once=True)
    linker.link_graph("g", "s", object(), "p")
    assert not linker.files and "not linked" in linker.notes[0]


def test_lines_are_forgotten_with_what_runs_them():
    path = "/nowhere/forgotten.py"
    space = {}
    exec(compile("def f():\n    return 1\n", "<generated>", "exec"), space)
    function = space.pop("f")
    assert link_function(function, "# shown\n\ndef f():\n    return 1\n", path)
    assert linecache.getline(path, 1) == "# shown\n"
    del function, space
    gc.collect()
    assert path not in linecache.cache
