"""The smallest programs of what random ones (benchmarks/random_programs.py) had brought to light.

A first line ``# may fall back`` marks those of which the structure is not found yet; the text of all is valid,
and none is called right that is not.
"""

from __future__ import annotations

import pathlib
import re
import sys
import warnings

import pytest

from depyf.bytecode.code import Code
from depyf.decompiler import Fidelity, decompile_code
from depyf.decompiler.proof.exact import same_program

SAMPLES = sorted((pathlib.Path(__file__).parent.parent / "samples" / "random").glob("*.py"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_sample(path: pathlib.Path) -> None:
    source = path.read_text()
    since = re.search(r"^#.*since 3\.(\d+)", source, re.MULTILINE)
    if since and sys.version_info < (3, int(since[1])):
        pytest.skip(f"the language of 3.{since[1]}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = compile(source, str(path), "exec", dont_inherit=True)
        found = decompile_code(code)
        again = compile(found.text, str(path), "exec", dont_inherit=True)
    if "may fall back" not in source:
        assert found.fidelity is Fidelity.EXACT, f"{found.note}\n{found.text}"
    if found.fidelity is Fidelity.EXACT:
        assert same_program(Code.of(code), Code.of(again))
