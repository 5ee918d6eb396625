"""Writes ``src/depyf/bytecode/opcodes.py`` from what each interpreter says about itself.

Usage: ``python scripts/generate_opcode_tables.py python3.7 python3.8 ...`` (any interpreters, oldest first;
the versions of others stay as they are).
An argument is a command line: ``"node scripts/python314.mjs"`` is CPython 3.14 where none is installed.

The tables are part of depyf, because code of one version is read on a host of another. They are made once
per new Python; this script is the record of how.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from depyf.bytecode.code import jump_of
from depyf.bytecode.opcodes import TABLES, OpcodeTable

PROBE = """
import json, opcode, sys
caches = getattr(opcode, "_inline_cache_entries", None)
real = {n: c for n, c in opcode.opmap.items() if c < 256 and not n.startswith("INSTRUMENTED")}
count = (lambda n, c: 0) if caches is None else (
    (lambda n, c: caches.get(n, 0)) if isinstance(caches, dict) else (lambda n, c: caches[c]))
print(json.dumps({
    "version": sys.version_info[:2],
    "opcodes": real,
    "caches": {n: count(n, c) for n, c in real.items() if count(n, c)},
    # 3.14 calls it a jump: its argument tells monitoring where the loop's await was. Control never goes there.
    "relative": [n for n, c in real.items() if c in opcode.hasjrel and n != "END_ASYNC_FOR"],
    "absolute": [n for n, c in real.items() if c in opcode.hasjabs],
}))
"""

OUT = Path(__file__).parents[1] / "src" / "depyf" / "bytecode" / "opcodes.py"
#: The line of that file after which its rows begin.
ROWS = "TABLES: dict[tuple[int, int], OpcodeTable] = {\n"


def wrapped(items: list[str], brackets: str, width: int = 118) -> str:
    """Return items as a display of several lines."""
    if not items:
        return brackets
    lines, line = [], "           "
    for item in items:
        if len(line) + len(item) + 2 > width:
            lines.append(line)
            line = "           "
        line += f" {item},"
    return "\n".join([brackets[0], *lines, line, f"        {brackets[1]}"])


def mapping(values: dict[str, int]) -> str:
    return wrapped([f'"{n}": {c}' for n, c in sorted(values.items(), key=lambda p: (p[1], p[0]))], "{}")


def names(values: tuple[str, ...]) -> str:
    return wrapped([f'"{n}"' for n in sorted(values)], "()")


def rendered(version: tuple[int, int], table: OpcodeTable) -> str:
    fields = {
        "opcodes": mapping(table.opcodes), "caches": mapping(table.caches), "base": repr(table.base),
        "removed": names(table.removed)}
    lines = "".join(f"        {name}={text},\n" for name, text in fields.items() if text not in ("()", "{}", "None"))
    return f"    {version}: OpcodeTable(\n{lines}    ),\n"


def table(now: dict[str, Any], before: dict[str, Any] | None) -> OpcodeTable:
    """Return the row of a version, as the difference to another one where that is short."""
    opcodes, base = now["opcodes"], None
    jumps = dict.fromkeys(now["relative"], 1) | dict.fromkeys(now["absolute"], 2)
    if wrong := [n for n in opcodes if abs(jump_of(n, tuple(now["version"]))) != jumps.get(n, 0)]:
        raise SystemExit(f"depyf.bytecode.code.jump_of says otherwise of {wrong}")
    removed: list[str] = []
    if before is not None:
        old = before["opcodes"]
        difference = {n: c for n, c in opcodes.items() if old.get(n) != c}
        if len(difference) < len(opcodes) / 2:
            removed = [n for n in old if n not in opcodes]
            opcodes, base = difference, tuple(before["version"])
    return OpcodeTable(opcodes, now["caches"], base, tuple(removed))


def main() -> None:
    before = None
    tables = dict(TABLES)
    for python in sys.argv[1:]:
        now = json.loads(subprocess.run([*shlex.split(python), "-c", PROBE], check=True, capture_output=True).stdout)
        tables[tuple(now["version"])] = table(now, before)
        before = now
    head, rows, _ = OUT.read_text().partition(ROWS)
    OUT.write_text(head + rows + "".join(rendered(*row) for row in sorted(tables.items())) + "}\n")


if __name__ == "__main__":
    main()
