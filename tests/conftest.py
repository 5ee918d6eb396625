"""What holds for all tests."""

import importlib.metadata
import os
from collections.abc import Iterator

import pytest

# The width of the terminal that the tests were started in is not theirs. (pytest-xdist sets it, too.)
os.environ.pop("COLUMNS", None)

#: Files that take a worker longest (`--dist loadfile`): they are begun first, so that none is left alone at the end.
LONG = ("test_warm_cache.py", "test_pdb.py", "test_faults.py", "test_files_at_the_end.py", "test_run.py",
        "test_judged_values.py", "test_rules.py", "test_page_data.py", "test_plugin.py", "test_debugging.py",
        "test_report.py", "test_zoo.py", "test_hostile_records.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name not in LONG)
    for item in items:
        for mark in item.iter_markers("torch_since"):
            version, why = mark.args
            installed = tuple(map(int, importlib.metadata.version("torch").split(".")[:2]))
            item.add_marker(pytest.mark.skipif(installed < version, reason=f"torch {installed[0]}.{installed[1]}: {why}"))


@pytest.fixture
def fresh_dynamo() -> Iterator[None]:
    """Nothing is compiled before a test, and nothing of it is left."""
    import torch  # (not where the decompiler's tests run without it)

    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
