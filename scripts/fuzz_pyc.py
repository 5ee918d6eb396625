"""Breaks real ``.pyc`` files and code objects and decompiles what is left.

    PYTHONPATH=src python scripts/fuzz_pyc.py --runs 10000 --seed 1 --seconds 600 [--files FOLDER]

What is broken is of the running interpreter; with ``--files`` the ``.pyc`` files of a folder, of any version. Each run
must end in bounded time and memory with source or with one of our errors (an exception that none of our rules declares
is a finding), must execute, import and open nothing, and must not take the process down. Runs are numbered; the number
and the seed make a run, so ``--only NUMBER`` repeats one. Everything found is printed with the command that repeats it.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import faulthandler
import importlib.util
import json
import marshal
import random
import re
import select
import subprocess
import sys
import sysconfig
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

from depyf.bytecode.code import Code, table
from depyf.bytecode.errors import Unreadable
from depyf.bytecode.pyc import load_pyc
from depyf.decompiler import decompile_code
from depyf.decompiler.pipeline import Failed

HEADER = importlib.util.MAGIC_NUMBER + bytes(12)
HOST = sys.version_info[:2]
#: What a decompiler has no business with. (``compile`` is how it proves.)
FORBIDDEN = ("exec", "import", "open", "os.", "subprocess.", "socket.", "marshal.loads", "pickle.", "shutil.")
INTERESTING = (0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 252, 253, 254, 255)
NAMES = ("", "a b", "class", "None", "__debug__", "x)\nimport os #", "\ud800", "é" * 3, "ﬁ", ".0", "a" * 5000,
         "__x", "True", "print(1)", "\0")


# --- material --------------------------------------------------------------------------------------
def material(limit: int = 120) -> list[Path]:
    """Modules of the standard library, not too large, always the same ones."""
    folder = Path(sysconfig.get_path("stdlib"))
    paths = [p for p in sorted(folder.glob("*.py")) + sorted(folder.glob("*/*.py"))
             if "site-packages" not in p.parts and 200 < p.stat().st_size < 40_000]
    random.Random(0).shuffle(paths)
    return paths[:limit]


def files(folder: str, limit: int = 300) -> list[Path]:
    """``.pyc`` files of a folder, always the same ones."""
    paths = [path for path in sorted(Path(folder).rglob("*.pyc")) if 200 < path.stat().st_size < 40_000]
    random.Random(0).shuffle(paths)
    return paths[:limit]


def within(code: Code) -> Iterator[Code]:
    yield code
    for constant in code.consts:
        if isinstance(constant, Code):
            yield from within(constant)


def nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


class Material:
    def __init__(self, folder: str = "") -> None:
        self.folder = folder
        self.paths = files(folder) if folder else material()
        self.modules: dict[Path, list[CodeType]] = {}
        self.views: dict[Path, list[Code]] = {}

    def choose(self, chance: random.Random) -> CodeType:
        path = chance.choice(self.paths)
        if path not in self.modules:
            module = compile(path.read_bytes(), path.name, "exec", dont_inherit=True)
            codes = [c for c in nested(module) if 4 < len(c.co_code) < 3000]
            self.modules[path] = codes or [compile("x = 1", path.name, "exec")]
        return chance.choice(self.modules[path])

    def choose_file(self, chance: random.Random) -> Path:
        return chance.choice(self.paths)

    def choose_view(self, chance: random.Random) -> Code:
        path = self.choose_file(chance)
        if path not in self.views:
            codes = [*within(load_pyc(path.read_bytes(), path.name))]
            self.views[path] = [code for code in codes if 4 < len(code.bytecode) < 3000] or codes[:1]
        return chance.choice(self.views[path])


# --- breaking --------------------------------------------------------------------------------------
def break_bytes(data: bytes, chance: random.Random) -> bytes:
    broken = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        size = len(broken)
        if size < 18:
            break
        at = chance.randrange(16, size)
        way = chance.randrange(8)
        if way == 0:
            broken[at] = chance.randrange(256)
        elif way == 1:
            broken[at] = chance.choice(INTERESTING)
        elif way == 2:
            broken[at] ^= 1 << chance.randrange(8)
        elif way == 3:
            del broken[at : at + chance.choice((1, 2, 4, 9, size))]
        elif way == 4:
            other = chance.randrange(16, size)
            broken[at:at] = broken[other : other + chance.randrange(1, 40)]
        elif way == 5:
            number = chance.choice((-1, 0, 1, 2**31 - 1, -(2**31), size, chance.randrange(1000)))
            broken[at : at + 4] = number.to_bytes(4, "little", signed=True)
        elif way == 6:
            broken[at] = ord(chance.choice("0NFTS.ilgyrsutaAzZ()[{<>:c")) | chance.choice((0, 128))
        else:
            other = chance.randrange(16, size)
            length = chance.randrange(1, 20)
            broken[at : at + length] = broken[other : other + length]
    return bytes(broken)


def break_bytecode(raw: bytes, chance: random.Random, version: tuple[int, int]) -> bytes:
    numbers = table(version)
    known = sorted(numbers.opcodes.values())
    broken = bytearray(raw)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        units = len(broken) // 2
        if not units:
            break
        at = 2 * chance.randrange(units)
        way = chance.randrange(7)
        if way == 0:
            broken[at] = chance.choice(known)
        elif way == 1:
            broken[at + 1] = chance.choice(INTERESTING)
        elif way == 2:
            broken[at + 1] = (broken[at + 1] + chance.choice((-2, -1, 1, 2))) & 255
        elif way == 3:
            del broken[at : at + 2 * chance.randrange(1, 4)]
        elif way == 4:
            other = 2 * chance.randrange(units)
            broken[at:at] = broken[other : other + 2 * chance.randrange(1, 8)]
        elif way == 5:
            broken[at:at] = bytes((chance.choice(known), chance.choice(INTERESTING)))
        else:
            other = 2 * chance.randrange(units)
            broken[at : at + 2], broken[other : other + 2] = broken[other : other + 2], broken[at : at + 2]
    return bytes(broken)


def break_table(data: bytes, chance: random.Random) -> bytes:
    if not data or chance.randrange(6) == 0:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(20)))
    broken = bytearray(data)
    for _ in range(chance.choice((1, 2, 5))):
        at = chance.randrange(len(broken))
        broken[at] = (broken[at] + chance.choice((-1, 1, 64, 128))) & 255
    return bytes(broken)


def odd_constant(chance: random.Random) -> Any:
    way = chance.randrange(9)
    if way == 0:
        return 1 << chance.choice((64, 20_000, 500_000))
    if way in (1, 2):
        value: Any = ()
        for _ in range(chance.choice((3, 30, 60, 1500))):
            value = (value, value) if way == 1 else (value,)
        return value
    return chance.choice((
        "x" * 200_000, b"\0" * 1000, float("nan"), -0.0, complex(-0.0, float("inf")), frozenset({1, (2, 3)}), ...,
        "\ud800", "{}'\"\\\n" * 9, True, -1, (None, True, -1.5), 10**5000, frozenset(), slice, [1], object,
    ))


def break_code(code: CodeType, chance: random.Random) -> Code:
    """A broken view of a code object; ``code.replace`` itself where it lets it through."""
    view = Code.of(code)
    changes = broken_fields(view, chance)
    if "consts" in changes:  # CPython itself takes exponential time over shared constants
        return dataclasses.replace(view, **changes, origin=None)
    try:
        spelled = {"bytecode": "co_code", "linetable": "co_linetable" if HOST >= (3, 10) else "co_lnotab"}
        return Code.of(code.replace(**{spelled.get(k, f"co_{k}"): v for k, v in changes.items()}))
    except (ValueError, TypeError, OverflowError, SystemError, AttributeError, UnicodeError):
        return dataclasses.replace(view, **changes, origin=None)


def broken_fields(view: Code, chance: random.Random) -> dict[str, Any]:
    """What is changed of a code object."""
    changes: dict[str, Any] = {}
    for _ in range(chance.choice((1, 1, 2))):
        way = chance.randrange(12)
        if way < 5:
            changes["bytecode"] = break_bytecode(view.bytecode, chance, view.version)
        elif way == 5:
            changes["exceptiontable"] = break_table(view.exceptiontable, chance)
        elif way == 6:
            changes["linetable"] = break_table(view.linetable, chance)
        elif way == 7:
            changes["flags"] = view.flags ^ 1 << chance.randrange(10)
        elif way == 8:
            field = chance.choice(("argcount", "kwonlyargcount", "posonlyargcount", "stacksize", "firstlineno"))
            changes[field] = chance.choice((-1, 0, 1, 2, 255, 2**31 - 1, getattr(view, field) + 1))
        elif way == 9:
            field = chance.choice(("names", "varnames", "cellvars", "freevars"))
            items = list(getattr(view, field))
            name = chance.choice(NAMES + tuple(items[:3]))
            if items and chance.randrange(4):
                items[chance.randrange(len(items))] = name
            else:
                items.append(name)
            changes[field] = tuple(items)
        elif way == 10:
            constants = list(view.consts)
            if constants and chance.randrange(4):
                constants[chance.randrange(len(constants))] = odd_constant(chance)
            else:
                chance.shuffle(constants)
            changes["consts"] = tuple(constants)
        else:
            changes[chance.choice(("name", "qualname", "filename"))] = chance.choice(
                (*NAMES, "<module>", "<lambda>", "<listcomp>", "<genexpr>", "/dev/stdin"))
    return changes


# --- one run ---------------------------------------------------------------------------------------
class Forbidden(BaseException):
    """Something was executed, imported or opened."""


class Guard:
    """Raises for forbidden audit events while it is on."""

    def __init__(self) -> None:
        self.on = False
        sys.addaudithook(self.hook)

    def hook(self, event: str, arguments: Any) -> None:
        if self.on and event.startswith(FORBIDDEN):
            self.on = False
            raise Forbidden(f"{event} {str(arguments)[:100]}")


def subject(seed: int, number: int, stock: Material) -> Code | bytes:
    """What run ``number`` decompiles: the contents of a file, or a code object."""
    chance = random.Random(f"{seed}:{number}")
    if stock.folder:
        if chance.randrange(4):
            view = stock.choose_view(chance)
            return dataclasses.replace(view, **broken_fields(view, chance), origin=None)
        return break_bytes(stock.choose_file(chance).read_bytes(), chance)
    code = stock.choose(chance)
    if chance.randrange(2):
        return break_code(code, chance)
    return break_bytes(HEADER + marshal.dumps(code, chance.choice((2, 4, 4))), chance)


def outcome(what: Code | bytes, guard: Guard) -> str:
    guard.on = True
    try:
        code = load_pyc(what, "fuzz.pyc") if isinstance(what, bytes) else what
        result = decompile_code(code)
        declared(result.note)
        if result.fidelity.value == "exact" and code.version == HOST:
            return "exact"
        return result.fidelity.value
    except Unreadable as error:
        if len(str(error)) > 2000 or "\n" in str(error):
            raise AssertionError("the message is no message") from error
        declared(str(error))
        return "not writable" if isinstance(error, Failed) else "refused"
    finally:
        guard.on = False


def declared(note: str) -> None:
    """Check that no form was lost to a mistake of ours, which says so and where."""
    found = re.search(r"internal error of depyf \((.*?), (\S+)\)", note)
    if found:
        raise UndeclaredError(f"{found[1][:120]} at {found[2]}")


class UndeclaredError(AssertionError):
    """A rule raised what none declares."""


def work(seed: int, first: int, last: int, memory: int, folder: str) -> None:
    """Runs in a process of its own; a line of JSON before and after each run."""
    import resource

    faulthandler.enable()
    warnings.simplefilter("ignore")
    stock = Material(folder)
    guard = Guard()
    warm_up()
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory << 20, memory << 20))
    for number in range(first, last):
        what = subject(seed, number, stock)
        print(json.dumps({"run": number}), flush=True)
        try:
            result = outcome(what, guard)
        except BaseException as error:  # noqa: BLE001  (anything at all is a finding)
            import traceback

            frames = traceback.extract_tb(error.__traceback__)
            place = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames[::-1][:4])
            result = f"! {type(error).__name__}: {str(error)[:160]!r} at {place}"
            if isinstance(error, UndeclaredError):
                result = f"! {error}"
        print(json.dumps({"done": number, "result": result}), flush=True)


def warm_up() -> None:
    """Everything that is imported on demand is imported before executing and opening are forbidden."""
    import codecs
    import traceback  # noqa: F401
    import unicodedata  # noqa: F401

    import depyf.decompiler.dynamo.simplify  # noqa: F401

    for encoding in ("unicode_escape", "latin-1", "utf-8"):
        codecs.lookup(encoding)
    for minor in range(7, 15):
        table((3, minor))
    for text in ("def f(a):\n try:\n  return a\n finally:\n  a()", "async def f(a):\n async with a as b: yield b"):
        decompile_code(compile(text, "warm", "exec"))
    for code in nested(compile("def f(a):\n for x in a:\n  yield x", "warm", "exec")):
        decompile_code(dataclasses.replace(Code.of(code), names=("a b",)))
    for code in nested(compile("def f(a, b):\n try: a()\n except b: pass", "warm", "exec")):
        broken = dataclasses.replace(Code.of(code), flags=code.co_flags ^ 2)
        try:
            decompile_code(broken)
        except Exception:  # noqa: BLE001, S110  (only to load modules)
            pass


# --- many runs -------------------------------------------------------------------------------------
def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0, help="stop after this long (0: when all runs are done)")
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    parser.add_argument("--only", type=int, help="repeat one run")
    parser.add_argument("--time-limit", type=float, default=20, help="seconds a run may take")
    parser.add_argument("--memory", type=int, default=2048, help="megabytes a process may have (0: any)")
    parser.add_argument("--files", default="", metavar="FOLDER", help="break the .pyc files in here")
    parser.add_argument("--show", action="store_true", help="with --only: print what comes out")
    parser.add_argument("--worker", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work(given.seed, *given.worker, given.memory, given.files)
        return 0
    if given.only is not None and given.show:
        what = subject(given.seed, given.only, Material(given.files))
        code = load_pyc(what, "fuzz.pyc") if isinstance(what, bytes) else what
        result = decompile_code(code)
        print(f"# {result.fidelity.value} {result.note}\n{result.text}")
        return 0
    first = given.first if given.only is None else given.only
    last = first + (given.runs if given.only is None else 1)
    counts, findings = run_all(given, first, last)
    total = sum(counts.values())
    print(f"{total} runs: " + ", ".join(f"{n} {what}" for what, n in counts.most_common())
          + f"; {sum(findings.values())} findings in {len(findings)} places")
    return 1 if findings else 0


def run_all(given: Any, first: int, last: int) -> tuple[collections.Counter[str], collections.Counter[str]]:
    counts: collections.Counter[str] = collections.Counter()
    findings: collections.Counter[str] = collections.Counter()
    ends = time.monotonic() + given.seconds if given.seconds else float("inf")
    at = first

    def report(number: int, what: str) -> None:
        counts["finding"] += 1
        key = what.partition(" at ")[2] or what
        findings[key] += 1
        if findings[key] <= 3:
            print(f"run {number}: {what}\n    repeat: python scripts/fuzz_pyc.py --seed {given.seed} --only {number}"
                  + (f" --files {given.files}" if given.files else ""),
                  flush=True)

    while at < last and time.monotonic() < ends:
        command = [sys.executable, __file__, "--seed", str(given.seed), "--memory", str(given.memory),
                   "--files", given.files,
                   "--worker", str(at), str(last)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as worker:
            assert worker.stdout is not None
            running, buffered, silent = at, b"", False
            while time.monotonic() < ends:
                ready, _, _ = select.select([worker.stdout], [], [], given.time_limit + 20 * (running == at))
                data = worker.stdout.read(65536) if ready else b""
                if not data:
                    silent = not ready
                    break
                *lines, buffered = (buffered + data).split(b"\n")
                for line in lines:
                    message = json.loads(line)
                    if "run" in message:
                        running = message["run"]
                        continue
                    at = message["done"] + 1
                    result = message["result"]
                    if result.startswith("!"):
                        report(message["done"], result[2:])
                    else:
                        counts[result] += 1
            worker.kill()
            status = worker.wait()
        if at < last and time.monotonic() < ends:
            report(running, f"takes more than {given.time_limit} seconds" if silent else
                   f"the process died with status {status}")
            at = running + 1
    return counts, findings


if __name__ == "__main__":
    sys.exit(main())
