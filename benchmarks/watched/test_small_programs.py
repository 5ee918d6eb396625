"""The small programs of tests/zoo, as tests of their own."""

import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "zoo"))

from programs import PROGRAMS  # noqa: E402
from test_zoo import equal, run  # noqa: E402


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_does_the_same(name):
    with torch.compiler.set_stance("force_eager"):
        wanted = run(PROGRAMS[name], "eager")
    assert equal(run(PROGRAMS[name], "eager"), wanted)
