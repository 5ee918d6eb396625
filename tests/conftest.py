"""What holds for all tests."""

import os
from collections.abc import Iterator

import pytest

# The width of the terminal that the tests were started in is not theirs. (pytest-xdist sets it, too.)
os.environ.pop("COLUMNS", None)


@pytest.fixture
def fresh_dynamo() -> Iterator[None]:
    """Nothing is compiled before a test, and nothing of it is left."""
    import torch  # (not where the decompiler's tests run without it)

    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
