"""Measures fidelity on several interpreters and writes the tables of ``docs/measured/fidelity.md``.

    python benchmarks/fidelity_report.py [--corpus stdlib tests ...] [--pythons 3.10 3.11 ...] [--limit N] [--jobs N]
                                         [--packages networkx ...] [--write docs/measured/fidelity.md]

An interpreter is ``python3.X`` on the path or pyenv's; one that is not there is left out, and the report says so.
Packages are measured with the running interpreter.  The tables replace what stands between the two comments
``figures`` in the file; ``benchmarks/roundtrip.py`` says what is counted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from typing import Any

from _shared import dated, find_interpreter, table

HERE = os.path.dirname(os.path.abspath(__file__))
COLUMNS = ("modules", "modules valid", "code objects", "exact %", "equivalent", "fallback", "wrong", "invalid", "crash",
           "timeout", "lines %")
CLASSES = 12


def interpreter(version: str) -> str | None:
    """An interpreter of the version that can run depyf."""
    if tuple(map(int, version.split("."))) < (3, 10):
        raise SystemExit(f"depyf runs on 3.10 and later; benchmarks/foreign.py measures code of {version}")
    path = find_interpreter(version)
    return None if path is None else str(path)


def measure(python: str, corpora: list[str], limit: int, jobs: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "figures.json")
        subprocess.run(
            [python, os.path.join(HERE, "roundtrip.py"), "--corpus", *corpora, "--limit", str(limit),
             "--jobs", str(jobs), "--json", file],
            env={**os.environ, "PYTHONPATH": os.path.join(os.path.dirname(HERE), "src")}, check=True)
        with open(file, encoding="utf-8") as stream:
            return [json.loads(line) for line in stream]


def tables(measured: list[dict[str, Any]], missing: list[str], command: str, limit: int) -> str:
    which = f"{limit} modules of each, chosen by a seed" if limit else "all modules"
    lines = [f"{dated()}, {os.cpu_count()} cores, {which}. Command: `{command}`.\n",
             table(("Python", "corpus", *COLUMNS), [[row[name] for name in ("python", "corpus", *COLUMNS)]
                                                    for row in measured])]
    if missing:
        lines.append(f"Not on the machine: {', '.join(missing)}.\n")
    classes: dict[str, tuple[int, str]] = {}
    for row in measured:
        for count, reason, place in row["classes"]:
            before = classes.get(reason, (0, place))
            place = re.sub(r"^.*?/(?:site-packages|lib/python[\d.]+)/", "", before[1])
            classes[reason] = (before[0] + count, f"{place} ({row['python']})" if "(" not in place else place)
    ranked = sorted(classes.items(), key=lambda item: -item[1][0])
    rows = [(count, reason, f"`{place}`") for reason, (count, place) in ranked[:CLASSES]]
    if len(ranked) > CLASSES:
        rows.append((sum(count for _, (count, _) in ranked[CLASSES:]), f"{len(ranked) - CLASSES} others", ""))
    lines += ["What is not exact, over all of these, the most frequent first, with a place each:\n",
              table(("code objects", "class", "place"), rows)]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pythons", nargs="*", default=["3.10", "3.11", "3.12", "3.13"])
    parser.add_argument("--corpus", nargs="+", default=["stdlib", "tests"])
    parser.add_argument("--packages", nargs="*", default=[])
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--write", metavar="FILE")
    chosen = parser.parse_args()
    measured: list[dict[str, Any]] = []
    missing = []
    for version in chosen.pythons:
        python = interpreter(version)
        if python is None:
            missing.append(version)
        else:
            measured += measure(python, chosen.corpus, chosen.limit, chosen.jobs)
    if chosen.packages:
        measured += measure(sys.executable, chosen.packages, chosen.limit, chosen.jobs)
    text = tables(measured, missing, " ".join(["python", *sys.argv]), chosen.limit)
    if not chosen.write:
        print(text)
        return
    with open(chosen.write, encoding="utf-8") as file:
        before, _, rest = file.read().partition("<!-- figures -->\n")
    _, end, after = rest.partition("<!-- /figures -->")
    if not end:
        raise SystemExit(f"{chosen.write} has no <!-- figures --> ... <!-- /figures -->")
    with open(chosen.write, "w", encoding="utf-8") as file:
        file.write(f"{before}<!-- figures -->\n{text}<!-- /figures -->{after}")


if __name__ == "__main__":
    main()
