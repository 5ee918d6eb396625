"""Share of the running interpreter's standard library that decompiles to the same program, quickly.

    PYTHONPATH=src python scripts/roundtrip_quick.py -n 300 -t 30

Structured form only (no fallback), one function at a time; failures by class, largest first.
"""

from __future__ import annotations

import argparse
import collections
import glob
import os
import random
import time
import warnings
from collections.abc import Iterator
from types import CodeType

from depyf.bytecode.code import Code
from depyf.decompiler import scopes
from depyf.decompiler.emit import emit
from depyf.decompiler.forms import Forms
from depyf.decompiler.recompile import compile_function
from depyf.decompiler.verify import same_program


def walk(code: CodeType) -> Iterator[CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from walk(const)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=300, help="how many modules")
    parser.add_argument("-s", type=int, default=1, help="seed of their choice")
    parser.add_argument("-v", type=int, default=15, help="how many classes of failure to print")
    parser.add_argument("-t", type=float, default=60, help="seconds")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    base = os.path.dirname(os.__file__)
    files = sorted(glob.glob(base + "/*.py") + glob.glob(base + "/*/*.py"))
    files = [f for f in files if "/site-packages/" not in f and "/test/" not in f]
    random.Random(given.s).shuffle(files)
    count: collections.Counter[str] = collections.Counter()
    classes: dict[str, list[str]] = {}
    started = time.perf_counter()
    spent = 0.0
    units = 0
    for file in files[: given.n]:
        if time.perf_counter() - started > given.t:
            break
        try:
            with open(file, encoding="utf8") as stream:
                module = compile(stream.read(), file, "exec", dont_inherit=True)
        except (SyntaxError, UnicodeDecodeError, ValueError):
            continue
        for code in walk(module):
            if code.co_name.startswith("<") or not code.co_flags & 1:
                continue
            source = Code.of(code)
            count["total"] += 1
            units += len(code.co_code) // 2
            before = time.perf_counter()
            try:
                tree = scopes.top_level(source, scopes.Options(Forms(source)))
                spent += time.perf_counter() - before
                tree = emit(tree)[1]
                verdict = same_program(source, compile_function(tree, source))
                why = "" if verdict else "different: " + " ".join(verdict.where.split()[1:2])
            except Exception as error:  # everything is counted
                why = f"{type(error).__name__}: {str(error)[:60]}"
            if why:
                classes.setdefault(why, []).append(f"{os.path.relpath(file, base)}:{code.co_firstlineno}")
            else:
                count["exact"] += 1
    total = max(1, count["total"])
    print(f"{count['exact']} of {count['total']} exact ({100 * count['exact'] / total:.2f} %),",
          f"{units / max(spent, 1e-9):,.0f} code units/s without emit and proof")
    for why, places in sorted(classes.items(), key=lambda item: -len(item[1]))[: given.v]:
        print(f"{len(places):5} {why}   {', '.join(places[:3])}")


if __name__ == "__main__":
    main()
