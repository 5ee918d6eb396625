"""What the documentation of depyf 0.20.0 shows works here, with the same arguments (docs/migration.md)."""

import importlib
import pkgutil
import sys
import types

import pytest

import depyf


def test_names():
    for name in ("decompile", "install", "uninstall", "prepare_debug", "debug"):
        assert callable(getattr(depyf, name)), name
    assert isinstance(depyf.__version__, str)


def test_no_module_of_ours_takes_the_place_of_a_name():
    """Importing a module sets its name in the package; a function of the same name would be gone."""
    for module in pkgutil.iter_modules(depyf.__path__):
        assert module.name not in depyf.__all__ or isinstance(getattr(depyf, module.name), types.ModuleType), module.name
    importlib.import_module("depyf.explain")
    assert "x" in depyf.decompile(lambda x: x)
    assert depyf.decompile_full(types.resolve_bases).fidelity.value == "exact"


def test_decompile_takes_a_function_or_its_code():
    def f(x):
        return x + 1

    assert depyf.decompile(f) == depyf.decompile(f.__code__) == depyf.decompile(code=f)
    from dataclasses import dataclass

    @dataclass
    class Data:
        x: int
        y: float

    assert "self.x = x" in depyf.decompile(Data.__init__)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A module with a compiled function, as a user's file would be."""
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()
    (tmp_path / "toy_module.py").write_text(
        "def toy(a):\n    a = a + 1\n    print(end='')\n    return a * 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("toy_module")
    module.original = module.toy
    module.toy = torch.compile(module.toy, backend="eager")
    yield module
    del sys.modules["toy_module"]
    torch._dynamo.reset()


def test_prepare_debug_by_keyword(tmp_path, toy):
    torch = pytest.importorskip("torch")
    with depyf.prepare_debug(dump_src_dir=str(tmp_path / "dump"), clean_wild_fx_code=True, log_bytecode=True):
        toy.toy(torch.ones(2))
    names = {path.name for path in (tmp_path / "dump").iterdir()}
    assert "full_code_for_toy_0.py" in names and "__transformed_code_0_for_toy.py" in names
    assert any(name.endswith(".transformed.bin") for name in names)
    with depyf.debug(pause=False):
        toy.toy(torch.ones(2))


def test_prepare_debug_with_the_function_first(tmp_path, toy):
    torch = pytest.importorskip("torch")
    with depyf.prepare_debug(toy.toy, str(tmp_path / "dump")):
        toy.toy(torch.ones(2))
    assert (tmp_path / "dump" / "full_code_for_toy_0.py").exists()


def test_dump_src_of_a_code_object_and_its_module(tmp_path, toy):
    torch = pytest.importorskip("torch")
    with depyf.prepare_debug(str(tmp_path / "dump")):
        toy.toy(torch.ones(2))
        text = depyf.explain.dump_src(toy.original.__code__, toy)
    assert text == depyf.explain.dump_src(toy.toy)
    assert "def __resume_at_" in text and "def compiled_toy(" in text
    compile(text, "<dump>", "exec")


def test_two_directories():
    with pytest.raises(TypeError, match="prepare_debug"):
        depyf.prepare_debug("a", dump_src_dir="b")
