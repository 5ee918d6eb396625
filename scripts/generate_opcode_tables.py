"""Writes ``src/depyf/bytecode/versions/v3_X.py`` from what each interpreter says about itself.

Usage: ``python scripts/generate_opcode_tables.py python3.7 python3.8 ...`` (any interpreters, oldest first).
An argument is a command line: ``"node scripts/python314.mjs"`` is CPython 3.14 where none is installed.

The tables are data of ours, because code of one version is read on a host of another. They are made once
per new Python and then kept; this script is the record of how.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

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
    "have_argument": opcode.HAVE_ARGUMENT,
}))
"""

OUT = Path(__file__).parents[1] / "src" / "depyf" / "bytecode" / "versions"


def wrapped(items: list[str], width: int = 106) -> str:
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) + 2 > width:
            lines.append(line)
            line = "   "
        line += f" {item},"
    return "\n".join([*lines, line])


def mapping(name: str, values: dict[str, int]) -> str:
    if not values:
        return f"{name}: dict[str, int] = {{}}\n"
    body = wrapped([f'"{n}": {c}' for n, c in sorted(values.items(), key=lambda p: (p[1], p[0]))])
    return f"{name} = {{\n{body}\n}}\n"


def names(name: str, values: list[str]) -> str:
    if not values:
        return f"{name}: tuple[str, ...] = ()\n"
    body = wrapped([f'"{n}"' for n in sorted(values)])
    return f"{name} = (\n{body}\n)\n"


def render(now: dict[str, Any], before: dict[str, Any] | None) -> str:
    major, minor = now["version"]
    opcodes = now["opcodes"]
    removed: list[str] = []
    changed = opcodes
    base = "None"
    if before is not None:
        old = before["opcodes"]
        difference = {n: c for n, c in opcodes.items() if old.get(n) != c}
        if len(difference) < len(opcodes) / 2:
            changed, base = difference, f'"v{before["version"][0]}_{before["version"][1]}"'
            removed = [n for n in old if n not in opcodes]
    extent = "all of them" if base == "None" else "what differs from the version before"
    return (
        f'"""Opcodes of CPython {major}.{minor}: {extent} (scripts/generate_opcode_tables.py)."""\n\n'
        f"BASE: str | None = {base}\nHAVE_ARGUMENT = {now['have_argument']}\n"
        + names("REMOVED", removed)
        + mapping("OPCODES", changed)
        + mapping("CACHES", now["caches"])
        + names("RELATIVE_JUMPS", now["relative"])
        + names("ABSOLUTE_JUMPS", now["absolute"])
    )


def main() -> None:
    before = None
    for python in sys.argv[1:]:
        now = json.loads(subprocess.run([*shlex.split(python), "-c", PROBE], check=True, capture_output=True).stdout)
        major, minor = now["version"]
        text = render(now, before).replace('"""\n\n', '"""\n\nfrom __future__ import annotations\n\n', 1)
        (OUT / f"v{major}_{minor}.py").write_text(text)
        before = now


if __name__ == "__main__":
    main()
