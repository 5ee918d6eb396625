"""Compiles ``sources/`` with the interpreters of the old versions into ``compiled/``.

    PYTHONPATH=src python tests/foreign/regenerate.py

Needed only when a source changes; the tests read what is committed.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "benchmarks"))

from _shared import find_interpreter

VERSIONS = ("3.7", "3.8", "3.9")
COMPILE = "import py_compile, sys; py_compile.compile(sys.argv[1], sys.argv[2], sys.argv[3], doraise=True)"


def main() -> int:
    for version in VERSIONS:
        found = find_interpreter(version)
        if found is None:
            print(f"no Python {version}")
            return 1
        for source in sorted((HERE / "sources").glob("*.py")):
            target = HERE / "compiled" / f"{source.stem}.{version}.pyc"
            subprocess.run([found, "-I", "-S", "-c", COMPILE, source, target, source.name], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
