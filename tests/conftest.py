"""What holds for all tests."""

import os
from collections.abc import Iterator

import pytest

# Tests look at files right after the block that they are made of; what makes them beside the program has its own tests.
os.environ["DEPYF_FILES"] = "now"
# Texts of an earlier run would hide what the decompiler does now.
os.environ["DEPYF_CACHE"] = "off"
# The width of the terminal that the tests were started in is not theirs. (pytest-xdist sets it, too.)
os.environ.pop("COLUMNS", None)


@pytest.fixture
def fresh_dynamo() -> Iterator[None]:
    """Nothing is compiled before a test, and nothing of it is left."""
    import torch  # (not where the decompiler's tests run without it)

    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
