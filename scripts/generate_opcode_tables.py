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
import textwrap
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


def text(words: list[str]) -> str:
    """Return words as a string, of several lines if need be."""
    lines = textwrap.wrap(" ".join(words), width=107)
    if len(lines) < 2 and len("".join(lines)) < 98:
        return '"' + "".join(lines) + '"'
    return '"""\n' + "".join(f"            {line}\n" for line in lines) + '        """'


def words(values: dict[str, int], step: int) -> list[str]:
    """Return names by their numbers; a number comes before a name that has not that of the one before plus ``step``."""
    result: list[str] = []
    following = 0
    for name, value in sorted(values.items(), key=lambda pair: (pair[1], pair[0])):
        result += [name] if value == following else [str(value), name]
        following = value + step
    return result


def rendered(version: tuple[int, int], table: OpcodeTable) -> str:
    fields = {"opcodes": text(table.opcodes.split()), "caches": text(table.caches.split()), "base": repr(table.base),
              "removed": text(table.removed.split())}
    lines = "".join(f"        {name}={value},\n" for name, value in fields.items() if value not in ("None", '""'))
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
    return OpcodeTable(*map(" ".join, (words(opcodes, 1), words(now["caches"], 0))), base, " ".join(sorted(removed)))


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
