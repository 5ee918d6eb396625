"""How fast code is decompiled, next to depyf 0.20.0 (``make bench-decompile``).

    python -m pip install --no-deps --target .peer depyf==0.20.0 astor dill
    python benchmarks/decompile_speed.py --peer .peer [--functions 1500] [--seed 1] [--rounds 3] [--write FILE]

Both decompile the same functions of the standard library, one by one, in turn (``rounds`` times each, in processes
of their own, one core); the shortest of its times counts.  Compared are those that both manage: for the peer, that
it gives text which compiles.  Times are processor time.  The second table says how cost grows with size: functions
with 100 times the statements (``--times 1000`` needs ``DEPYF_BUDGET=10``).  The third says in which layer the time
goes.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import glob
import json
import os
import platform
import random
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from types import CodeType, FrameType

from _shared import TooLong, code_objects, dated, time_limit

SECONDS = 5  # for one function
#: Layers of the decompiler, and what the paths of their files start with.
LAYERS: dict[str, tuple[str, ...]] = {
    "limits, constants, forms": ("decompiler/constants", "decompiler/result", "decompiler/pipeline"),
    "instructions -> canonical operations": ("bytecode/canonical", "bytecode/operations", "bytecode/rules"),
    "bytes -> instructions": ("bytecode/",),
    "flow graph": ("cfg/",),
    "structure": ("decompiler/structure/",),
    "text: names checked, written, parsed (`ast`)": ("decompiler/emit", "decompiler/names"),
    "compiled again": ("decompiler/proof/recompile",),
    "proof": ("decompiler/proof",),
    "expressions, statements, scopes": ("decompiler/",),
}
BODIES = {
    "assignments and calls": "    a = f(a, b + {i})\n    b[{i}] = a.x\n",
    "branches":
        "    if a > {i} and b:\n        a = f(b)\n    elif c or a:\n        b = {i}\n    else:\n        c = g(a)\n",
    "loops": "    for i in f({i}):\n        if i:\n            continue\n        while a:\n            a = g(a, i)\n",
    "try and with":
        "    try:\n        with f(a) as c:\n            g(c, {i})\n    except ValueError as e:\n        b = e\n",
    "try, except and finally":
        "    try:\n        a = f(a, {i})\n    except ValueError:\n        b = g(a)\n    finally:\n        c = f(b)\n",
    "loops with else":
        "    for i in f({i}):\n        if i:\n            break\n    else:\n        a = g(a)\n",
    "comprehensions": "    a = [x + {i} for x in b if x]\n    b = {{k: v for k, v in f(a)}}\n",
}
SMALL = 4  # times that such a body stands in the small function
NAMES = {"no proof": "without proof", "proof": "with proof", "peer": "depyf 0.20.0", "compile": "compile() alone"}


def functions(count: int, seed: int) -> list[CodeType]:
    """Functions of the standard library, without those written as expressions or nested in others."""
    library = os.path.dirname(os.__file__)
    files = sorted(glob.glob(library + "/*.py") + glob.glob(library + "/*/*.py"))
    codes = []
    for file in files:
        if "site-packages" in file or f"{os.sep}test{os.sep}" in file:
            continue
        with open(file, "rb") as stream:
            try:
                module = compile(stream.read(), file, "exec", dont_inherit=True)
            except (SyntaxError, ValueError):
                continue
        codes += [c for c in code_objects(module) if c.co_flags & 1 and not c.co_freevars and c.co_name[0] != "<"]
    random.Random(seed).shuffle(codes)
    return codes[:count]


def decompiler(how: str) -> Callable[[CodeType], str]:
    if how == "peer":
        from depyf import decompile as peer

        return peer
    from depyf.decompiler import decompile_code

    return lambda code: decompile_code(code, verify=how == "proof").text


def work(how: str, count: int, seed: int) -> None:
    """Prints a JSON list: seconds for each function, or ``None`` where there is no text that compiles."""
    warnings.simplefilter("ignore")
    decompile = decompiler(how)
    out: list[float | None] = []
    for code in functions(count, seed):
        seconds: float | None = None
        try:
            with time_limit(SECONDS):
                begun = time.process_time()
                text = decompile(code)
                seconds = time.process_time() - begun
                compile(text, "text", "exec", dont_inherit=True)
        except (Exception, TooLong):
            seconds = None
        out.append(seconds)
    print("\n" + json.dumps(out))


def run(how: str, count: int, seed: int, path: str) -> list[float | None]:
    done = subprocess.run(
        [sys.executable, __file__, "--work", how, "--functions", str(count), "--seed", str(seed)],
        env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        check=True)
    times: list[float | None] = json.loads(done.stdout.splitlines()[-1])
    return times


def size(code: CodeType) -> int:
    """Code units (of two bytes) of a code object and all that it holds."""
    return sum(len(c.co_code) // 2 for c in code_objects(code))


def best(rows: list[list[float | None]]) -> list[float | None]:
    """For each function the shortest of its times, or ``None`` where a round gave no text."""
    return [None if None in times else min(times) for times in zip(*rows)]  # type: ignore[type-var]


def against_peer(peer: str, count: int, seed: int, rounds: int) -> str:
    source = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src")
    paths = {"no proof": source, "proof": source, "peer": peer}
    units = [size(code) for code in functions(count, seed)]
    rows: dict[str, list[list[float | None]]] = {how: [] for how in paths}
    for _ in range(rounds):
        for how, path in paths.items():
            rows[how].append(run(how, count, seed, path))
    times = {how: best(rounds) for how, rounds in rows.items()}

    def speed(how: str, chosen: list[int]) -> float:
        return sum(units[i] for i in chosen) / sum(times[how][i] or 0 for i in chosen)

    managed = {how: [i for i, seconds in enumerate(measured) if seconds is not None] for how, measured in times.items()}
    both = [i for i in managed["peer"] if all(measured[i] is not None for measured in times.values())]
    lines = [f"{sum(units):,} code units in {len(units)} functions; all manage {len(both)} of them.\n",
             "| | functions with text | code units/s on these | code units/s where all manage | times the peer |",
             "|---|---|---|---|---|"]
    for how in rows:
        common = speed(how, both)
        lines.append(f"| {NAMES[how]} | {len(managed[how])} of {len(units)} | {speed(how, managed[how]):,.0f} | "
                     f"{common:,.0f} | {common / speed('peer', both):.1f} |")
    return "\n".join(lines) + "\n"


def repeated(name: str, repeats: int) -> tuple[str, CodeType]:
    """Return a function with a body of :data:`BODIES` so many times, its text and its code."""
    text = "def h(a, b, c):\n" + "".join(BODIES[name].format(i=i) for i in range(repeats))
    (code,) = (c for c in compile(text, "h", "exec").co_consts if isinstance(c, CodeType))
    return text, code


def often(name: str, repeats: int, times: int, how: str) -> None:
    """Decompile a function several times, or compile its text: work for ``instructions.py`` to count."""
    small_text, small_code = repeated(name, SMALL)
    fastest(how, small_code, small_text, 1)  # (what is imported is not counted)
    text, code = repeated(name, repeats)
    if times:
        fastest(how, code, text, times)


def growth(rounds: int, times_larger: int) -> str:
    """How cost grows with size; beside it, how that of Python's own compiler does, which is what memory costs here."""
    lines = [f"| body, repeated | units | µs a unit | units at {times_larger:,} times | µs a unit | ratio |",
             "|---|---|---|---|---|---|"]
    for how in ("no proof", "proof", "compile"):
        for name in BODIES:
            row = []
            for repeats in (SMALL, SMALL * times_larger):
                text, code = repeated(name, repeats)
                units = size(code)
                seconds = fastest(how, code, text, rounds * (20 if repeats == SMALL else 1))
                row.append((units, seconds * 1e6 / units))
            (small, low), (large, high) = row
            lines.append(f"| {name}, {NAMES[how]} | {small:,} | {low:.2f} | {large:,} | {high:.2f} | "
                         f"{high / low:.2f} |")
            print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def fastest(how: str, code: CodeType, text: str, times: int) -> float:
    """Seconds of the fastest of several decompilations of ``code``, or compilations of its ``text``."""
    if how == "compile":
        gc.disable()  # (as a decompilation does)
        action = functools.partial(compile, text, "h", "exec")
    else:
        action = functools.partial(decompiler(how), code)
    measured = []
    for _ in range(times):
        begun = time.process_time()
        action()
        measured.append(time.process_time() - begun)
    gc.enable()
    return min(measured)


def layer(path: str) -> str:
    """The layer that a file of the package belongs to."""
    return next(name for name, places in LAYERS.items() if path.startswith(places))


def layers(count: int, seed: int) -> str:
    """Which part of the time each layer takes, by looking every few milliseconds of processor time."""
    rows: list[dict[str, int]] = []
    for how in ("no proof", "proof"):
        decompile = decompiler(how)
        counts: dict[str, int] = dict.fromkeys(LAYERS, 0)

        def look(number: int, frame: FrameType | None, counts: dict[str, int] = counts) -> None:
            while frame is not None:
                path = frame.f_code.co_filename.replace(os.sep, "/").rpartition("/depyf/")[2]
                if path.startswith(("bytecode/", "cfg/", "decompiler/")):
                    counts[layer(path)] += 1
                    return
                frame = frame.f_back

        chosen = functions(count, seed)
        before = signal.signal(signal.SIGPROF, look)
        signal.setitimer(signal.ITIMER_PROF, 0.002, 0.002)
        try:
            for code in chosen:
                with contextlib.suppress(Exception):
                    decompile(code)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)
        rows.append(counts)
    lines = ["| layer | without proof | with proof |", "|---|---|---|"]
    for name in LAYERS:
        shares = [f"{100 * counts[name] / sum(counts.values()):.0f} %" for counts in rows]
        lines.append(f"| {name} | {shares[0]} | {shares[1]} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", metavar="FOLDER", help="where depyf 0.20.0 is installed")
    parser.add_argument("--functions", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--times", type=int, default=100, help="how much larger the functions of the second table are")
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--often", nargs=4, metavar=("BODY", "REPEATS", "TIMES", "HOW"), help=argparse.SUPPRESS)
    parser.add_argument("--work", choices=("no proof", "proof", "peer"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.often:
        name, repeats, times, how = chosen.often
        often(name, int(repeats), int(times), how)
        return
    if chosen.work:
        work(chosen.work, chosen.functions, chosen.seed)
        return
    parts = [f"# Speed of the decompiler\n\n{dated()}, Python {platform.python_version()}, one core. "
             f"Command: `{' '.join(['python', *sys.argv])}` (`make bench-decompile`), which says how it is measured.\n"]
    if chosen.peer:
        parts.append(against_peer(chosen.peer, chosen.functions, chosen.seed, chosen.rounds))
        print(parts[-1])
    parts.append("Cost against size:\n\n" + growth(chosen.rounds, chosen.times))
    parts.append("Where the time goes (with proof, recompiled code whose bytes differ is read, too):\n\n"
                 + layers(chosen.functions, chosen.seed))
    if chosen.write:
        with open(chosen.write, "w", encoding="utf-8") as file:
            file.write("\n".join(parts))


if __name__ == "__main__":
    main()
