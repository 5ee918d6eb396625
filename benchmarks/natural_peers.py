"""How far the texts of other decompilers are what the author wrote, on the modules of ``natural.py``.

    python benchmarks/natural_peers.py [--pycdc FILE] [--depyf FOLDER] [--modules 60] [--seed 1] [--write FILE]

``--pycdc`` is a program that was built from https://github.com/zrax/pycdc, ``--depyf`` a folder into which ``pip
install --no-deps --target FOLDER depyf==0.20.0 astor dill`` put the last release of the old depyf. Each reads the
modules of the running Python's standard library that ``natural.py`` chooses by the seed, a function counts as it does
there, and

* of a text that is no Python as a whole, each ``def`` that is counts;
* the old depyf, which reads functions one by one, is asked for each, and decorators, defaults and annotations, of which
  it cannot know, count neither here nor there;
* a function without a text, or after ``SECONDS``, is not as written, and like no line.

*With a text*: there is a text, and it is Python. It may be another program: nothing is proven here.
"""

from __future__ import annotations

import argparse
import ast
import copy
import dataclasses
import difflib
import importlib.util
import json
import marshal
import os
import pathlib
import platform
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from types import CodeType

MARK = "peers"
SECONDS = 10
Place = tuple[str, int]


# --- in a process of the old depyf (which has the name of this one) -------------------------------
def with_old_depyf(files: list[str]) -> dict[str, list[tuple[str, int, str]]]:
    """The texts of all functions of some files: ``{file: [(qualified name, first line, text)]}``."""
    import signal

    from depyf import decompile

    def ring(number, frame):
        raise TimeoutError

    signal.signal(signal.SIGALRM, ring)
    found = {}
    for file in files:
        found[file] = []
        for code in code_objects(compile(pathlib.Path(file).read_bytes(), file, "exec", dont_inherit=True)):
            signal.alarm(SECONDS)
            try:
                text = decompile(code)
            except BaseException:
                text = ""
            finally:
                signal.alarm(0)
            found[file].append((code.co_qualname, code.co_firstlineno, text or ""))
    return found


def code_objects(code: CodeType) -> Iterator[CodeType]:
    """The functions in a code object that are in no other function."""
    for const in code.co_consts:
        if isinstance(const, CodeType):
            if const.co_flags & 2 and not const.co_name.startswith("<"):
                yield const
            elif not const.co_flags & 2:
                yield from code_objects(const)


# --- texts of peers -------------------------------------------------------------------------------
@dataclasses.dataclass
class Result:
    """What is counted of one peer."""

    name: str
    functions: int = 0
    with_text: int = 0
    as_written: int = 0
    like: float = 0.0

    def add(self, source: ast.AST, ours: ast.AST | None) -> None:
        from as_written.classes import difference
        from as_written.measure import lines
        from as_written.normalise import normalise
        self.functions += 1
        if ours is None:
            return
        self.with_text += 1
        one, two = (normalise(copy.deepcopy(each), sys.version_info[:2]) for each in (source, ours))
        same = not difference(one, two)
        self.as_written += same
        self.like += 1.0 if same else difflib.SequenceMatcher(None, lines(one), lines(two), autojunk=False).ratio()

    def row(self) -> tuple[object, ...]:
        share = lambda number: f"{100 * number / max(1, self.functions):.2f} %"
        return self.name, self.functions, share(self.with_text), share(self.as_written), share(self.like)


def pycdc_text(program: str, code: CodeType) -> str:
    """What pycdc writes of a module."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "module.pyc")
        with open(path, "wb") as file:
            file.write(importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code))
        try:
            done = subprocess.run([program, path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return ""
        return done.stdout.decode(errors="replace")


def trees(text: str) -> list[ast.Module]:
    """The tree of a text; of a text that is no Python, those of its definitions that are."""
    try:
        return [ast.parse(text)]
    except (SyntaxError, ValueError, RecursionError):
        return list(_parts(text.splitlines()))


def _parts(lines: list[str]) -> Iterator[ast.Module]:
    """The definitions of a text that is no Python, methods inside a class of one method each."""
    around: list[tuple[int, str]] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        word = line.lstrip()
        indentation = len(line) - len(word)
        end = at + 1
        if word.startswith(("class ", "def ", "async def ")):
            around = [each for each in around if each[0] < indentation]
            if word.startswith("class "):
                around.append((indentation, word.split("(")[0].split(":")[0].split()[1]))
            else:
                while end < len(lines) and (not lines[end].strip()
                                            or len(lines[end]) - len(lines[end].lstrip()) > indentation):
                    end += 1
                try:
                    body = ast.parse("\n".join(each[indentation:] for each in lines[at:end])).body
                except (SyntaxError, ValueError):
                    body = []
                for _, name in reversed(around):
                    body = [ast.ClassDef(name, [], [], body, [], **_TYPES)] if body else []
                if body:
                    yield ast.Module(body, [])
        at = end


_TYPES = {"type_params": []} if sys.version_info >= (3, 12) else {}


def bare(function: ast.AST) -> ast.AST:
    """A function without what its code object does not hold."""
    function = copy.deepcopy(function)
    for node in ast.walk(function):
        if node is function and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.decorator_list, node.returns = [], None
            node.args.defaults, node.args.kw_defaults = [], [None] * len(node.args.kwonlyargs)
            for argument in ast.walk(node.args):
                if isinstance(argument, ast.arg):
                    argument.annotation = None
    return function


def measured(files: list[str], pycdc: str, old: dict[str, list[tuple[str, int, str]]]) -> list[Result]:
    from as_written.functions import first_line, functions

    from depyf.decompiler import decompile_code
    ours, theirs, before = Result("depyf"), Result("pycdc"), Result("depyf 0.20.0")
    for file in files:
        source = pathlib.Path(file).read_bytes()
        code = compile(source, file, "exec", dont_inherit=True)
        compiled = {(each.co_qualname, each.co_firstlineno) for each in code_objects(code)}
        wanted = [(name, function) for name, function in functions(ast.parse(source))
                  if (name, first_line(function)) in compiled]
        for result, found in ((ours, [ast.parse(decompile_code(code).text)]),
                              *([(theirs, trees(pycdc_text(pycdc, code)))] if pycdc else [])):
            known: dict[str, list[ast.AST]] = {}
            for tree in found:
                for name, function in functions(tree):
                    known.setdefault(name, []).append(function)
            for name, function in wanted:
                result.add(function, known[name].pop(0) if known.get(name) else None)
        texts = {(name, line): text for name, line, text in old.get(file, [])}
        for name, function in wanted if old else []:
            made = [each for tree in trees(texts.get((name, first_line(function)), "")) for _, each in functions(tree)]
            before.add(bare(function), bare(made[0]) if made else None)
    return [result for result in (ours, theirs, before) if result.functions]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pycdc", default="")
    parser.add_argument("--depyf", default="")
    parser.add_argument("--modules", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", metavar="FILE")
    parser.add_argument("--old", nargs="+", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.old:
        pathlib.Path(chosen.old[0]).write_text(json.dumps(with_old_depyf(chosen.old[1:])), encoding="utf-8")
        return
    from _shared import dated, table, write_between
    from roundtrip import corpus_files
    files = corpus_files("stdlib")
    files = random.Random(chosen.seed).sample(files, min(chosen.modules, len(files)))
    files = [file for file in files if _compiles(file)]
    old = {}
    if chosen.depyf:
        with tempfile.TemporaryDirectory() as folder:
            found = os.path.join(folder, "texts.json")
            subprocess.run([sys.executable, __file__, "--old", found, *files], check=True,
                           env={**os.environ, "PYTHONPATH": chosen.depyf}, stdout=subprocess.DEVNULL)
            old = json.loads(pathlib.Path(found).read_text(encoding="utf-8"))
    rows = [result.row() for result in measured(files, chosen.pycdc, old)]
    text = f"{dated()}, Python {platform.python_version()}, {len(files)} modules of its standard library. Command: " \
        f"`{' '.join(['python', *sys.argv])}`.\n\n" + table(
        ("decompiler", "functions", "with a text", "as written", "like lines"), rows)
    print(text)
    if chosen.write:
        write_between(pathlib.Path(chosen.write), MARK, text)


def _compiles(file: str) -> bool:
    try:
        compile(pathlib.Path(file).read_bytes(), file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


if __name__ == "__main__":
    main()
