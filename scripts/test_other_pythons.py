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
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from _shared import find_interpreter

SUITES = ["tests/bytecode", "tests/cfg", "tests/decompiler", "tests/cases", "tests/foreign"]
PACKAGES = ["pytest==9.2.0", "pytest-timeout==2.4.0", "hypothesis==6.168.5"]  # the last for 3.10


def tested(version: str, tests: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Return the exit status and the output of the tests under one interpreter, in an environment of its own."""
    base = find_interpreter(version)
    if base is None:
        return 0, f"Python {version} is not on this machine: left out\n"
    with tempfile.TemporaryDirectory() as folder:
        python = f"{folder}/bin/python"
        for command, title in (
                ([base, "-m", "venv", folder], "no environment could be made"),
                ([python, "-m", "pip", "install", "-q", *PACKAGES], "no environment could be made"),
                ([python, "-m", "pytest", "-p", "no:cacheprovider", *tests], "")):
            done = subprocess.run(command, cwd=ROOT, env=None if title else environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            if done.returncode:
                break
        return done.returncode, f"Python {version}: {title * bool(done.returncode)}\n{done.stdout}"


def main() -> int:
    arguments = [*sys.argv[1:], "--"]
    versions, tests = arguments[: (end := arguments.index("--"))], arguments[end + 1 : -1]
    environment = {"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"}
    environment |= {name: os.environ[name] for name in ("DEPYF_UPDATE_GOLDEN",) if name in os.environ}
    at_once = 1 if "DEPYF_UPDATE_GOLDEN" in environment else os.cpu_count()  # (all of them write the same files)
    failed = 0
    with ThreadPoolExecutor(at_once) as pool:
        for status, output in pool.map(lambda version: tested(version, tests or SUITES, environment), versions):
            print(output, end="", flush=True)
            failed += status != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
