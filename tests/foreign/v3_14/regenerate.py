"""Compiles the sources here with CPython 3.14, and writes what they are decompiled to there, proven.

    node scripts/python314.mjs tests/foreign/v3_14/regenerate.py

Needed only when a source changes, or the way texts look; the tests read what is committed.
"""

from __future__ import annotations

import importlib.util
import marshal
import pathlib
import sys

from depyf.decompiler import Fidelity, decompile_code

HERE = pathlib.Path(__file__).resolve().parent


def main() -> int:
    assert sys.version_info[:2] == (3, 14), sys.version
    for source in sorted((HERE / "sources").glob("*.py")):
        code = compile(source.read_text(encoding="utf-8"), source.name, "exec", dont_inherit=True)
        found = decompile_code(code)
        assert found.fidelity is Fidelity.EXACT, f"{source.name}: {found.note}\n{found.text}"
        data = importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code)
        (HERE / "compiled" / f"{source.stem}.pyc").write_bytes(data)
        (HERE / "compiled" / f"{source.stem}.txt").write_text(found.text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
