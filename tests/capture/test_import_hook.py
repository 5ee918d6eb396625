"""Something done after a module is imported: the import is what it would be."""

import importlib
import sys

import pytest

from depyf.capture.import_hook import when_imported


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "armed_one.py").write_text("'''its text'''\nimport sys\nLOADER = __loader__, __spec__.loader\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    yield tmp_path / "armed_one.py"
    sys.modules.pop("armed_one", None)


def test_the_import_is_as_without(module):
    plain = importlib.import_module("armed_one")
    kinds = [type(each) for each in plain.LOADER]
    sys.modules.pop("armed_one")
    finders = list(sys.meta_path)
    seen = []
    when_imported("armed_one", seen.append)
    assert sys.meta_path[1:] == finders and not seen
    imported = importlib.import_module("armed_one")
    assert seen == [imported] and sys.meta_path == finders
    assert [type(each) for each in imported.LOADER] == kinds and not vars(imported.__spec__.loader).get("exec_module")
    assert imported.__spec__.loader is imported.__loader__ and imported.__doc__ == "its text"
    importlib.reload(imported)
    assert len(seen) == 1


def test_a_module_that_is_there_already(module):
    imported = importlib.import_module("armed_one")
    seen = []
    finders = list(sys.meta_path)
    when_imported("armed_one", seen.append)
    assert seen == [imported] and sys.meta_path == finders


def test_an_import_that_fails_is_tried_again(module):
    text = module.read_text()
    module.write_text("raise OSError('no')\n")
    seen = []
    when_imported("armed_one", seen.append)
    with pytest.raises(OSError, match="no"):
        importlib.import_module("armed_one")
    assert not seen
    module.write_text(text + "# longer\n")
    assert seen == [importlib.import_module("armed_one")]


def test_a_loader_that_allows_nothing_loads_all_the_same(module):
    class Loader:
        __slots__ = ()

        def create_module(self, spec):
            return None

        def exec_module(self, module):
            module.loaded = True

    class Finder:
        def find_spec(self, name, path=None, target=None):
            return importlib.machinery.ModuleSpec(name, Loader()) if name == "armed_one" else None

    sys.meta_path.insert(0, Finder())
    when_imported("armed_one", lambda imported: pytest.fail("not possible"))
    assert importlib.import_module("armed_one").loaded


def test_a_module_that_is_nowhere(module):
    when_imported("armed_nowhere", lambda imported: pytest.fail("not there"))
    with pytest.raises(ModuleNotFoundError, match="armed_nowhere"):
        importlib.import_module("armed_nowhere")
