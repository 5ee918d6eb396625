"""The samples of ``docs/measured/fidelity.md``: what is said there not to be exact is not, and is right all the same."""

from __future__ import annotations

import pathlib
import re
import sys
from types import CodeType

import pytest

from depyf.decompiler import Fidelity, decompile_code

DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "measured" / "fidelity.md"
#: ``# 3.10-3.12, fallback`` and the lines below it
SAMPLE = re.compile(r"```python\n# (3\.\d+)-(3\.\d+), (\w+)\n(.*?)```", re.DOTALL)


def version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


SAMPLES = [
    (int(text.count("\n", 0, found.start())) + 1, *found.groups())
    for text in [DOCUMENT.read_text(encoding="utf-8")] for found in SAMPLE.finditer(text)
]


def test_there_are_samples() -> None:
    assert len(SAMPLES) >= 5


@pytest.mark.parametrize(("line", "first", "last", "fidelity", "source"), SAMPLES, ids=[str(s[0]) for s in SAMPLES])
def test_the_class_is_as_described(line: int, first: str, last: str, fidelity: str, source: str) -> None:
    if not version(first) <= sys.version_info[:2] <= version(last):
        pytest.skip(f"of {first} to {last}")
    module = compile(source, "sample", "exec", dont_inherit=True)
    code = next(const for const in module.co_consts if isinstance(const, CodeType))
    found = decompile_code(code)
    assert found.fidelity is Fidelity(fidelity), f"docs/measured/fidelity.md:{line}: {found.fidelity} {found.note}\n{found.text}"
    compile(found.text, "text", "exec", dont_inherit=True)
