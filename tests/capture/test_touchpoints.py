"""The table of touchpoints: complete, and held against the torch that is installed."""

import ast
import pathlib
import types
from dataclasses import replace

import pytest

from depyf.capture.torch_private import touchpoints
from depyf.capture.torch_private.touchpoints import (
    TABLE,
    MissingTouchpoint,
    Touchpoint,
    has,
    is_a,
    mentions,
    takes,
)

SOURCE = pathlib.Path(touchpoints.__file__).parents[2]
HERE = __name__


def sample(name, metadata_fn=None):
    return name._a_private_name


class Owner:
    def method(self):
        return getattr(self, "_another")


def point(path, check=lambda found: "", **changes):
    return replace(Touchpoint((f"{HERE}:{path}",), "", "2.0", "nothing", check), **changes)


def test_states():
    assert point("sample").state() == ("present", "")
    assert point("sample", takes("name", "metadata_fn")).state() == ("present", "")
    assert point("sample", takes("payload_fn")).state() == ("changed", "has no parameter payload_fn")
    assert point("Owner", has("gone")).state() == ("changed", "has no gone")
    assert point("HERE", is_a(dict)).state() == ("changed", "is of type str")
    assert point("sample", lambda found: 1 / 0).state()[0] == "changed"
    state, why = point("Owner.gone").state()
    assert state == "missing" and f"{HERE}.Owner.gone" in why
    assert point("x", places=("no_such_module:x",)).state()[0] == "missing"


def test_names_that_code_mentions():
    assert point("sample", mentions("_a_private_name")).state()[0] == "present"
    assert point("Owner", mentions("_another")).state()[0] == "present"
    assert point("Owner", mentions("_a_private_name")).state()[0] == "changed"


def test_an_earlier_place_counts_first():
    moved = point("x", places=(f"{HERE}:gone", f"{HERE}:Owner.method"))
    assert moved.get() is Owner.method and moved.owner() is Owner
    assert (moved.module, moved.attribute) == (HERE, "method")
    with pytest.raises(MissingTouchpoint, match="gone"):
        point("gone").get()


def test_every_entry_says_all():
    assert len({each.name for each in TABLE}) == len(TABLE)
    for each in TABLE:
        assert each.use and each.lost and each.since.count(".") == 1, each
        assert all(place.startswith("torch") and place.count(":") == 1 for place in each.places), each


def test_no_name_of_torch_stands_elsewhere():
    """Neither as text in the adapter, nor as an import or an attribute anywhere in the package."""
    for path in SOURCE.rglob("*.py"):
        if path.name == "touchpoints.py":
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
                assert not node.attr.startswith("_") or node.attr == "__version__", where


def test_every_entry_is_used():
    text = "".join(path.read_text() for path in SOURCE.rglob("*.py") if path.name != "touchpoints.py")
    names = [name for name, value in vars(touchpoints).items() if isinstance(value, Touchpoint)]
    names.remove("CACHE_ENTRY")  # a class; we only meet its objects
    assert [name for name in names if f"touchpoints.{name}" not in text] == []


def test_the_torch_that_the_suite_is_written_for_has_all():
    torch = pytest.importorskip("torch")
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13):
        pytest.skip("a torch before 2.13 may lack some names; `depyf doctor` says which")
    assert [(each.name, *each.state()) for each in TABLE if each.state()[0] != "present"] == []


def test_the_checks_know_a_change():
    """Each check says so when it is shown something else."""
    pytest.importorskip("torch")
    checked = [each for each in TABLE if each.check is not touchpoints._nothing]
    assert len(checked) > 15
    for each in checked:
        other = replace(each, places=(f"{HERE}:SOMETHING_ELSE",))
        assert other.state()[0] == "changed", each.name


SOMETHING_ELSE = types.SimpleNamespace(name="something else")
