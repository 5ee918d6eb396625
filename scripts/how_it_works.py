"""Writes the outputs in ``docs/how_it_works.md``: the example of that page, carried through every stage.

    python scripts/how_it_works.py [--check]

Each output stands in a block behind ``<!-- output: NAME -->``. Ids that torch draws anew in each run are cut. Run it
with Python 3.11 and torch 2.13, whose bytecode the page shows.
"""

from __future__ import annotations

import argparse
import dis
import json
import marshal
import pathlib
import re
import subprocess
import sys
import tempfile
from types import CodeType

from depyf.bytecode.canonical import canonicalise
from depyf.bytecode.code import Code
from depyf.decompiler import decompile_code
from depyf.decompiler.dynamo.facts import Facts
from depyf.decompiler.stages import _Printer as Printer

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "how_it_works.md"
OUTPUT = re.compile(r"(?<=<!-- output: )(\w+)( -->\n+```\w*\n).*?(?=\n```\n)", re.DOTALL)
PROGRAM = re.compile(r"<!-- program: toy\.py -->\n+```python\n(.*?)```", re.DOTALL)
CODE = "__transformed_code_0_for_toy_example"


def head(lines: list[str], count: int, what: str) -> str:
    """The first lines, and how many there are in all."""
    return "\n".join([*lines[:count], f"... ({len(lines)} {what})"])


def of_records(dump: pathlib.Path) -> dict[str, str]:
    """The graph break as a record and in two views of it."""
    lines = [json.loads(line) for line in (dump / "records.jsonl").read_text(encoding="utf-8").splitlines()]
    compilation = next(line for line in lines if line["record"] == "compilation")
    broken = compilation["breaks"][0]
    shown = {"compile_id": broken["compile_id"], "reason": broken["reason"], "context": broken["context"],
             "registry_id": broken["registry_id"], "stack": "STACK"}
    index = (dump / "index.md").read_text(encoding="utf-8").split("### Data-dependent branching")[1].splitlines()
    return {
        "record": "\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in shown.items()).replace(
            '"STACK"', f"[..., {json.dumps(broken['stack'][-1])}]"),
        "index": "\n".join(line for line in index[2:6]),
        "file": (dump / f"{CODE}.py").read_text(encoding="utf-8").rstrip(),
    }


def of_code(code: CodeType) -> dict[str, str]:
    """What each stage makes of Dynamo's code."""
    instructions = [f"{i.offset:5} {i.opname:<16} {i.argrepr}".rstrip() for i in dis.get_instructions(code)]
    program = canonicalise(Code.of(code))
    stages: dict[str, str] = {}
    printer = Printer()
    rename = {name: re.sub(r"_[0-9a-f]{8}_.*", "", name) for name in code.co_names}
    parameters = {name: ("__nested_resume_fns", "__nested_frame_values", "b", "x") for name in code.co_names
                  if name.startswith("__resume")}
    result = decompile_code(code, name=CODE, simplify=True, facts=Facts(), rename=rename,
                            parameter_names=parameters, trace=printer)
    for part in "\n".join(printer.out).split("\n== ")[1:]:
        name, _, text = part.partition("\n")
        stages[re.split(r"[ :]", name)[0]] = re.sub(r"\n\(nothing to do for.*", "", text).rstrip()
    lines = sorted({line: min(at for at, to in result.line_map.items() if to == line)
                    for line in result.line_map.values()}.items())
    at = {i.offset: i.opname for i in dis.get_instructions(code)}
    text = result.text.splitlines()
    return {
        "instructions": head(instructions, 14, "instructions"),
        "operations": head([f"{number:4} {op!r}" for number, op in enumerate(program.ops)], 10, "operations"),
        "evaluate": stages["evaluate"], "structure": stages["structure"],
        "proof": f"{result.fidelity.value}: {result.note}",
        "lines": "\n".join(f"{offset:5} {at[offset]:<16} -> line {line}: {text[line - 1].strip()}"
                           for line, offset in lines),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 where the page is behind")
    given = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    program = PROGRAM.search(page)
    assert program is not None, "the page has no program"
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "toy.py"
        script.write_text(program[1].replace('("dump")', '("dump", log_bytecode=True)'), encoding="utf-8")
        subprocess.run([sys.executable, script], cwd=folder, check=True)
        dump = script.parent / "dump"
        with open(dump / f"{CODE}.transformed.bin", "rb") as file:
            examples = {**of_records(dump), **of_code(marshal.load(file))}
        examples = {name: re.sub(r"_[0-9a-f]{8}_[0-9a-f_]{20,}", "", text).replace(f"{folder}/", "")
                    for name, text in examples.items()}
    written = OUTPUT.sub(lambda block: f"{block[1]}{block[2]}{examples[block[1]]}", page)
    if given.check:
        return int(written != page)
    PAGE.write_text(written, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
