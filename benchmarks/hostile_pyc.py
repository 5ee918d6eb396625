"""Hostile ``.pyc`` files: how long ``depyf decompile`` takes for each, and how much memory (``make hostile``).

    python benchmarks/hostile_pyc.py [--size 1000000] [--only NAME ...] [--write docs/measured/hostile.md]

Each file is made to cost much more than its size: copies of copies, a million constants, chains and nests that no
compiler writes. A process each, as users have it; what counts is the worst, and that it is answered: source, or one
line that names the place.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import platform
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

from _shared import dated, encode_exception_table, table

from depyf.bytecode.code import table as version_table
from depyf.bytecode.pyc import MAGIC_NUMBERS

VERSIONS = ((3, 7), (3, 8), (3, 11), (3, 13))
SECONDS, MEGABYTES = 5, 500
_MAGIC = {version: number for number, version in MAGIC_NUMBERS.items()}
Version = tuple[int, int]


# --- writing files of any version --------------------------------------------------------------------
def integer(value: int) -> bytes:
    return b"i" + struct.pack("<i", value)


def raw(value: bytes) -> bytes:
    return b"s" + struct.pack("<i", len(value)) + value


def text(value: str) -> bytes:
    encoded = value.encode("utf-8", "surrogatepass")
    return b"u" + struct.pack("<i", len(encoded)) + encoded


def several(*items: bytes) -> bytes:
    return b"(" + struct.pack("<i", len(items)) + b"".join(items)


def instruction(version: Version, name: str, arg: int = 0) -> bytes:
    """Return an instruction with its prefixes and caches."""
    known = version_table(version)
    prefixes = [instruction(version, "EXTENDED_ARG", arg >> shift & 255) for shift in (24, 16, 8) if arg >> shift]
    caches = known.caches[known.opcodes[name]]
    return b"".join(prefixes) + bytes((known.opcodes[name], arg & 255)) + bytes(2 * caches)


def code(version: Version, bytecode: bytes, consts: bytes = several(b"N"), names: bytes = several(),
         varnames: tuple[str, ...] = (), linetable: bytes = b"", exceptions: bytes = b"",
         name: str = "<module>") -> bytes:
    """Return a code object as a file holds it."""
    numbers = [0, *[0] * (version >= (3, 8)), 0, *[len(varnames)] * (version < (3, 11)), 100, 64]
    parts = [b"c" + b"".join(struct.pack("<i", number) for number in numbers), raw(bytecode), consts, names,
             several(*map(text, varnames))]
    parts += [raw(b"\x20" * len(varnames))] if version >= (3, 11) else [several(), several()]
    parts += [text("hostile.py"), text(name), *[text(name)] * (version >= (3, 11)), struct.pack("<i", 1)]
    parts += [raw(linetable)]
    parts += [raw(exceptions)] if version >= (3, 11) else []
    return b"".join(parts)


def end(version: Version) -> bytes:
    return instruction(version, "LOAD_CONST") + instruction(version, "RETURN_VALUE")


# --- what is hostile ---------------------------------------------------------------------------------
def circle_of_finally(version: Version, size: int) -> bytes | None:
    """``finally`` bodies that lead into each other in a circle."""
    if version >= (3, 9):
        return None
    count = min(size // 12, 20_000)
    body = b"".join(instruction(version, "SETUP_FINALLY", 2) + instruction(version, "POP_BLOCK") +
                    instruction(version, *(("BEGIN_FINALLY",) if version == (3, 8) else ("LOAD_CONST",)))
                    for _ in range(count))
    return code(version, body + instruction(version, "JUMP_ABSOLUTE"))


def calls_of_finally(version: Version, size: int) -> bytes | None:
    """``finally`` bodies each of which calls all before it."""
    if version != (3, 8):
        return None
    own = random.Random(1)
    body = bytearray()
    for _ in range(min(size // 8, 20_000)):
        body += instruction(version, "CALL_FINALLY", own.randrange(0, 40) * 2)
        body += instruction(version, own.choice(("BEGIN_FINALLY", "POP_TOP", "SETUP_FINALLY", "END_FINALLY")), 4)
    return code(version, bytes(body) + end(version))


def constants(version: Version, size: int) -> bytes:
    """A tuple of as many constants as fit."""
    return code(version, end(version), several(several(*[b"N"] * (size - 300))))


def small_numbers(version: Version, size: int) -> bytes:
    """A tuple of numbers."""
    return code(version, end(version), several(several(*map(integer, range(size // 5 - 100)))))


def references(version: Version, size: int) -> bytes:
    """A tuple of references to one string."""
    again = b"r" + struct.pack("<i", 0)
    first = b"\xe1" + struct.pack("<i", 2) + b"ab"
    return code(version, end(version), several(several(first, *[again] * (size // 5 - 100))))


def names(version: Version, size: int) -> bytes:
    """A hundred thousand names that nothing uses."""
    return code(version, end(version), names=several(*(text(f"n{number}") for number in range(size // 12))))


def tuples_in_tuples(version: Version, size: int) -> bytes:
    """Many small tuples, each in the next one's neighbourhood."""
    return code(version, end(version), several(several(*[several(b"N", several(b"T"))] * (size // 18))))


def a_long_string(version: Version, size: int) -> bytes:
    """Characters that need an escape each."""
    return code(version, end(version), several(text("\x1b\"'\\" * (size // 4))))


def long_strings_in_use(version: Version, size: int) -> bytes:
    """A long string, loaded and dropped as often as there is room for."""
    body = (instruction(version, "LOAD_CONST", 1) + instruction(version, "POP_TOP")) * (size // 16)
    return code(version, body + end(version), several(b"N", text("\x1b" * (size // 2))))


def a_large_number(version: Version, size: int) -> bytes:
    """A number of half a million digits."""
    return code(version, instruction(version, "LOAD_CONST", 1) + instruction(version, "RETURN_VALUE"),
                several(b"N", b"l" + struct.pack("<i", size // 2 - 200) + b"\xff\x7f" * (size // 2 - 200)))


def straight(version: Version, size: int) -> bytes:
    """Expressions one after the other."""
    body = instruction(version, "LOAD_NAME", 0) + instruction(version, "POP_TOP")
    return code(version, body * (size // len(body) - 100) + end(version), names=several(text("a")))


def stores(version: Version, size: int) -> bytes:
    """Assignments one after the other, and the names unbound again."""
    body = b"".join(instruction(version, name, 0) for name in ("LOAD_NAME", "STORE_NAME", "DELETE_NAME"))
    return code(version, body * (size // len(body) - 100) + end(version), names=several(text("a")))


def deep_expression(version: Version, size: int) -> bytes:
    """``not not not … a``."""
    body = instruction(version, "LOAD_NAME", 0) + instruction(version, "UNARY_NEGATIVE") * (size // 2 - 200)
    return code(version, body + instruction(version, "RETURN_VALUE"), names=several(text("a")))


def wide_display(version: Version, size: int) -> bytes:
    """A list of as many names as fit."""
    count = size // 2 - 200
    body = instruction(version, "LOAD_NAME", 0) * count + instruction(version, "BUILD_LIST", count)
    return code(version, body + instruction(version, "RETURN_VALUE"), names=several(text("a")))


def tests(version: Version, size: int) -> bytes:
    """Tests that jump forward, each into another place."""
    own, unit = random.Random(2), len(_test(version, 70_000))
    count = size // unit - 50
    absolute = version < (3, 11)
    body = b""
    parts = []
    for number in range(count):
        target = min(count, number + 1 + own.randrange(1, 60))
        at = target * unit
        arg = (at if version < (3, 10) else at // 2) if absolute else (target - number - 1) * unit // 2
        parts.append(_test(version, arg))
    body = b"".join(parts)
    return code(version, body + end(version), names=several(text("a")))


def _test(version: Version, arg: int) -> bytes:
    known = version_table(version).opcodes
    jump = next(name for name in ("POP_JUMP_IF_FALSE", "POP_JUMP_FORWARD_IF_FALSE") if name in known)
    wide = instruction(version, "EXTENDED_ARG", arg >> 16 & 255) + instruction(version, "EXTENDED_ARG", arg >> 8 & 255)
    return instruction(version, "LOAD_NAME", 0) + wide + instruction(version, jump, arg & 255)


def spaghetti(version: Version, size: int) -> bytes:
    """Tests that jump forward and back at random."""
    own, unit = random.Random(3), len(_test(version, 70_000))
    count = min(size // unit - 50, 60_000)
    if version >= (3, 11):
        return tests(version, size)
    scale = 1 if version < (3, 10) else 2
    body = b"".join(_test(version, own.randrange(count) * unit // scale) for _ in range(count))
    return code(version, body + end(version), names=several(text("a")))


def nested_loops(version: Version, size: int) -> bytes:
    """Loops that begin one inside the other, and all end at one place."""
    count = size // 12
    known = version_table(version).opcodes
    body = (instruction(version, "LOAD_NAME", 0) + instruction(version, "GET_ITER") +
            instruction(version, "FOR_ITER", 4) + instruction(version, "POP_TOP")) * count
    back = "JUMP_ABSOLUTE" if "JUMP_ABSOLUTE" in known else "JUMP_BACKWARD"
    return code(version, body + instruction(version, back, 4) + end(version), names=several(text("a")))


def functions(version: Version, size: int) -> bytes:
    """Functions one after the other."""
    own = code(version, end(version), name="f")
    count = size // (len(own) + 10)
    arg = [number + 2 for number in range(count)]
    older = version < (3, 11)
    body = b"".join(
        instruction(version, "LOAD_CONST", number) + (instruction(version, "LOAD_CONST", 1) if older else b"") +
        instruction(version, "MAKE_FUNCTION") + instruction(version, "STORE_NAME", 0) for number in arg)
    return code(version, body + end(version), several(b"N", text("f"), *[own] * count), several(text("f")))


def functions_in_functions(version: Version, size: int) -> bytes:
    """Functions in each other."""
    result = end(version)
    whole = code(version, result)
    for _ in range(2_000):
        if len(whole) > size:
            break
        older = version < (3, 11)
        body = instruction(version, "LOAD_CONST", 1) + (instruction(version, "LOAD_CONST", 2) if older else b"")
        body += instruction(version, "MAKE_FUNCTION") + instruction(version, "RETURN_VALUE")
        whole = code(version, body, several(b"N", whole, text("f")))
    return whole


def exception_table(version: Version, size: int) -> bytes | None:
    """An entry for each instruction, all with one handler."""
    if version < (3, 11):
        return None
    from depyf.bytecode.linetable import TableEntry

    count = size // 12
    body = instruction(version, "NOP") * count
    entries = [TableEntry(2 * n, 2 * n + 2, 2 * count, 0, False) for n in range(count)]
    return code(version, body + end(version), exceptions=encode_exception_table(entries))


def line_table(version: Version, size: int) -> bytes:
    """A line table for a million instructions, of which there are two."""
    return code(version, end(version), linetable=b"\xf0\x01" * (size // 2 - 200))


def random_bytes(version: Version, size: int) -> bytes:
    """Instructions at random."""
    own = random.Random(4)
    known = [number for number in version_table(version).opcodes.values() if number < 256]
    body = b"".join(bytes((own.choice(known), own.randrange(4))) for _ in range(size // 2 - 200))
    return code(version, body, names=several(*map(text, "abcd")), varnames=("a", "b", "c", "d"))


FAMILIES: tuple[Callable[[Version, int], bytes | None], ...] = (
    circle_of_finally, calls_of_finally, constants, small_numbers, references, names, tuples_in_tuples, a_long_string,
    long_strings_in_use, a_large_number, straight, stores, deep_expression, wide_display, tests, spaghetti,
    nested_loops, functions, functions_in_functions, exception_table, line_table, random_bytes)


# --- measuring ---------------------------------------------------------------------------------------
def measured(file: pathlib.Path, limit: int) -> tuple[float, float, str]:
    """Return seconds, megabytes and the answer of ``depyf decompile``."""
    begun = time.perf_counter()
    out = file.with_suffix(".out")
    with out.open("wb") as standard, out.with_suffix(".err").open("w+b") as errors:
        command = [sys.executable, "-m", "depyf", "decompile", str(file)]
        process = subprocess.Popen(command, stdout=standard, stderr=errors)
        _, status, usage = _wait(process, limit)
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()
    took = time.perf_counter() - begun
    if status is None:
        answer = f"no answer in {limit} s"
    elif os.waitstatus_to_exitcode(status) == 1 and not said:
        answer = f"source that is not exact and says so, {out.stat().st_size / 1e3:.0f} kB"
    elif not os.waitstatus_to_exitcode(status):
        answer = f"source, {out.stat().st_size / 1e3:.0f} kB"
    else:
        answer = said[-1][:160] if said else f"exit status {os.waitstatus_to_exitcode(status)}"
    answer = answer.replace("|", "\\|").replace(str(file), "FILE")
    return took, (usage.ru_maxrss / 1024 if usage else float("nan")), answer


def _wait(process: subprocess.Popen[bytes], limit: int) -> tuple[int, int | None, resource.struct_rusage | None]:
    until = time.monotonic() + limit
    while time.monotonic() < until:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = 0
            return pid, status, usage
        time.sleep(0.02)
    process.kill()
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = -9
    return process.pid, None, usage


def files(size: int, only: list[str]) -> Iterator[tuple[str, Version, bytes]]:
    for make in FAMILIES:
        if not only or make.__name__ in only:
            for version in VERSIONS:
                made = make(version, size)
                if made is not None:
                    yield make.__name__, version, struct.pack("<H", _MAGIC[version]) + b"\r\n" + bytes(12) + made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--write", metavar="FILE")
    given = parser.parse_args()
    worst: dict[str, tuple[float, float, str, str]] = {}
    over = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, version, data in files(given.size, given.only):
            file = pathlib.Path(folder, f"{name}.pyc")
            file.write_bytes(data)
            took, memory, answer = measured(file, given.limit)
            over += took > SECONDS or memory > MEGABYTES
            label = ".".join(map(str, version))
            print(f"{name:24} {label:5} {len(data):9} bytes {took:7.2f} s {memory:7.0f} MB  {answer[:120]}", flush=True)
            if name not in worst or took > worst[name][0]:
                worst[name] = took, memory, label, answer
    rows = [(name.replace("_", " "), label, f"{took:.1f} s", f"{memory:.0f} MB", answer[:120])
            for name, (took, memory, label, answer) in worst.items()]
    versions = ", ".join(".".join(map(str, each)) for each in VERSIONS)
    document = (f"{dated()}, Python {platform.python_version()}. Command: `make hostile`. "
                f"Files of {given.size / 1e6:g} MB for {versions}, a process each; the slowest version is shown. "
                f"Over {SECONDS} s or {MEGABYTES} MB: {over}. "
                "(Of the memory up to 120 MB may be that of the process which measures.)\n\n"
                + table(("file", "version", "time", "memory", "answer"), rows))
    print(document)
    if given.write:
        pathlib.Path(given.write).write_text(f"# Hostile .pyc files\n\n{document}")


if __name__ == "__main__":
    main()
