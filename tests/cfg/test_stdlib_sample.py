"""A sample of what ``scripts/check_canonical.py`` does over the whole standard library."""

import importlib.util
from pathlib import Path
from types import CodeType

import pytest
from graph_invariants import check

from depyf.bytecode.canonical import canonicalise
from depyf.bytecode.code import Code
from depyf.cfg.graph import build

MODULES = [
    "asyncio.base_events", "asyncio.tasks", "ast", "argparse", "contextlib", "dataclasses", "decimal", "enum",
    "http.client", "inspect", "pathlib", "pickletools", "subprocess", "tarfile", "threading", "traceback", "typing",
]


@pytest.mark.parametrize("name", MODULES)
def test_graphs_are_sound(name):
    origin = importlib.util.find_spec(name).origin
    pending = [compile(Path(origin).read_bytes(), origin, "exec", dont_inherit=True)]
    count = 0
    while pending:
        code = pending.pop()
        check(build(canonicalise(Code.of(code))))
        pending += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        count += 1
    assert count > 0
