"""Canonicalises every code object below some folders (default: the standard library) and checks the result.

Usage: ``PYTHONPATH=src python scripts/check_canonical.py [folder ...]``. Exit status 1 if anything is wrong.
"""

from __future__ import annotations

import collections
import sys
import sysconfig
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))

from _shared import code_objects
from graph_invariants import check

from depyf.bytecode.canonical import canonicalise
from depyf.bytecode.code import Code
from depyf.cfg.graph import build


def main() -> int:
    warnings.simplefilter("ignore")
    folders = [Path(p) for p in sys.argv[1:]] or [Path(sysconfig.get_path("stdlib"))]
    modules = codes = units = 0
    spent = 0.0
    wrong: collections.Counter[str] = collections.Counter()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            if "site-packages" in path.parts and "site-packages" not in folder.parts:
                continue
            try:
                module = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
            except (SyntaxError, ValueError):
                continue
            modules += 1
            for original in code_objects(module):
                code = Code.of(original)
                codes += 1
                units += len(code.bytecode) // 2
                start = time.perf_counter()
                try:
                    graph = build(canonicalise(code))
                    spent += time.perf_counter() - start
                    check(graph)
                except Exception as error:  # noqa: BLE001  (whatever goes wrong is counted)
                    wrong[type(error).__name__] += 1
                    if sum(wrong.values()) <= 20:
                        print(f"{path}:{code.firstlineno}: {type(error).__name__}: {error}")
    version = ".".join(map(str, sys.version_info[:2]))
    print(f"Python {version}: {modules} modules, {codes} code objects, {sum(wrong.values())} wrong, "
          f"{1e6 * spent / max(units, 1):.2f} us per code unit")
    return bool(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
