"""Runs the part of the suite that needs no torch under other interpreters.

    python scripts/test_other_pythons.py 3.10 3.12 3.13
    python scripts/test_other_pythons.py 3.10 3.12 -- tests/cases -k countdown

What stands behind ``--`` is given to pytest instead of the suite; ``DEPYF_UPDATE_GOLDEN`` is passed on.
Interpreters are looked for on PATH and under pyenv; one that is absent is left out, and said so.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from _shared import find_interpreter

SUITES = ["tests/bytecode", "tests/cfg", "tests/decompiler", "tests/cases", "tests/foreign"]
PACKAGES = ["pytest==9.2.0", "pytest-timeout==2.4.0", "hypothesis==6.168.5"]  # the last for 3.10


def main() -> int:
    arguments = [*sys.argv[1:], "--"]
    versions, tests = arguments[: (end := arguments.index("--"))], arguments[end + 1 : -1]
    environment = {"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"}
    environment |= {name: os.environ[name] for name in ("DEPYF_UPDATE_GOLDEN",) if name in os.environ}
    failed = 0
    for version in versions:
        base = find_interpreter(version)
        if base is None:
            print(f"Python {version} is not on this machine: left out")
            continue
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([base, "-m", "venv", folder], capture_output=True, text=True)
            python = f"{folder}/bin/python"
            if done.returncode == 0:
                done = subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], capture_output=True,
                                      text=True)
            if done.returncode:
                print(f"Python {version}: no environment could be made\n{(done.stdout + done.stderr)[-2000:]}")
                failed += 1
                continue
            print(f"Python {version}:", flush=True)
            result = subprocess.run([python, "-m", "pytest", "-p", "no:cacheprovider", *(tests or SUITES)], cwd=ROOT,
                                    env=environment)
            failed += result.returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
