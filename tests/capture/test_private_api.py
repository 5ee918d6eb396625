"""The table of private API: complete, and held against the torch that is installed."""

import ast
import pathlib
import types
from dataclasses import replace

import pytest

from depyf.capture.torch_private import compiled_callables, private_api
from depyf.capture.torch_private.private_api import (
    TABLE,
    MissingPrivateApi,
    PrivateApi,
    has,
    is_a,
    mentions,
    takes,
)

SOURCE = pathlib.Path(private_api.__file__).parents[2]
HERE = __name__


def sample(name, metadata_fn=None):
    return name._a_private_name


class Owner:
    def method(self):
        return getattr(self, "_another")


def private(path, check=lambda value: "", **changes):
    return replace(PrivateApi(f"{HERE}:{path}", "", "nothing", check), **changes)


def test_states():
    assert private("sample").state() == ("present", "")
    assert private("sample", takes("name", "metadata_fn")).state() == ("present", "")
    assert private("sample", takes("payload_fn")).state() == ("changed", "has no parameter payload_fn")
    assert private("Owner", has("gone")).state() == ("changed", "has no gone")
    assert private("HERE", is_a(dict)).state() == ("changed", "is of type str")
    assert private("sample", lambda value: 1 / 0).state()[0] == "changed"
    state, why = private("Owner.gone").state()
    assert state == "missing" and f"{HERE}.Owner.gone" in why
    assert private("x", places="no_such_module:x").state()[0] == "missing"


def test_names_that_code_mentions():
    assert private("sample", mentions("_a_private_name")).state()[0] == "present"
    assert private("Owner", mentions("_another")).state()[0] == "present"
    assert private("Owner", mentions("_a_private_name")).state()[0] == "changed"


def test_an_earlier_place_counts_first():
    moved = private("x", places=f"{HERE}:gone {HERE}:Owner.method")
    assert moved.get() is Owner.method and moved.owner() is Owner
    assert (moved.module, moved.attribute) == (HERE, "method")
    with pytest.raises(MissingPrivateApi, match="gone"):
        private("gone").get()


def test_every_entry_says_all():
    assert len({each.name for each in TABLE}) == len(TABLE)
    for each in TABLE:
        assert each.use and each.lost and each.since.count(".") == 1, each
        assert all(place.startswith("torch") and place.count(":") <= 1 for place in each.places.split()), each


def test_no_name_of_torch_stands_elsewhere():
    """Neither as text in the adapter, nor as an import or an attribute anywhere in the package.

    (``advice`` writes lines for the user's program, which are compiled and run by no one here.)
    """
    for path in SOURCE.rglob("*.py"):
        if path.name == "private_api.py" or path.parent.name == "advice":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            where = f"{path}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not node.value.startswith(("torch._", "_torchdynamo", "torch.compiler.")) or " " in node.value, where
            if isinstance(node, ast.ImportFrom) and not node.level:
                assert not (node.module or "").startswith("torch"), where
            if isinstance(node, ast.Import):
                assert not any(name.name.startswith("torch.") for name in node.names), where
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch":
                assert not node.attr.startswith("_") or node.attr in ("__version__", "__file__"), where


def test_every_entry_is_used():
    text = "".join(path.read_text() for path in SOURCE.rglob("*.py") if path.name != "private_api.py")
    names = [name for name, value in vars(private_api).items() if isinstance(value, PrivateApi)]
    names.remove("CACHE_ENTRY")  # a class; we only meet its objects
    names.remove("RESUME_CODE")  # its text is in torch_text, as it is read from files, too
    assert [name for name in names if f"private_api.{name}" not in text] == []


def test_the_torch_that_the_suite_is_written_for_has_all():
    torch = pytest.importorskip("torch")
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13):
        pytest.skip("a torch before 2.13 may lack some names; `depyf doctor` says which")
    assert [(each.name, *each.state()) for each in TABLE if each.state()[0] != "present"] == []


def test_the_checks_know_a_change():
    """Each check says so when it is shown something else."""
    pytest.importorskip("torch")
    checked = [each for each in TABLE if each.check is not PrivateApi.check]
    assert len(checked) > 15
    for each in checked:
        other = replace(each, places=f"{HERE}:SOMETHING_ELSE")
        assert other.state()[0] == "changed", each.name


SOMETHING_ELSE = types.SimpleNamespace(name="something else")


def test_an_option_that_was_set_back_is_at_its_default():
    """Torch lists each option that was ever set."""
    from torch._inductor import config

    with config.patch(max_autotune=True, epilogue_fusion=config.epilogue_fusion):
        told = compiled_callables.options_of_inductor()
    assert "max_autotune = True" in told and not any(each.startswith("epilogue_fusion") for each in told)
    assert not any(each.startswith("max_autotune =") for each in compiled_callables.options_of_inductor())
