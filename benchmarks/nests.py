"""Statements in nests of loops, branches, ``try``, ``with`` and ``match``: is each text as it was written?

    python benchmarks/nests.py [--count 1200] [--seed 1] [--show 10]

Each function is one of the exits and assignments of ``_INNER`` in one to three of the statements of ``_nests``, with
statements before and after. What says the same without a jump, dead code, and loops that never come to a second turn
are left out. Of some that differ the bytecode has lost the form (a ``return`` of a constant in a ``try`` protects
nothing); the others show rules that are missing.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import random
import sys
import textwrap
from collections.abc import Callable, Iterator

from depyf.bytecode.code import Code
from depyf.decompiler import Fidelity, decompile_code
from depyf.decompiler.proof.exact import same_program

_INNER = ("return 1", "return None", "return", "return g(x)", "raise F(x)", "break", "continue", "g(2)", "v = g(2)",
          "pass")
_HANDLERS = ("return False", "continue", "pass", "g(0)", "raise F", "return None", "return h(e)")
_FOLLOWING = ("", "g(1)", "return 2", "return None")
_IN_LOOP = ("break", "continue")
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def _in(body: str) -> str:
    return textwrap.indent(body, "    ")


def _nests(in_loop: bool) -> Iterator[tuple[str, Callable[[str], str]]]:
    """Yield the name of a compound statement, and a function that writes it around a suite."""
    for handler in _HANDLERS:
        if in_loop or handler not in _IN_LOOP:
            yield "try", lambda body, last=handler: f"try:\n{_in(body)}\nexcept E:\n{_in(last)}"
    yield "try as", lambda body: f"try:\n{_in(body)}\nexcept E as e:\n    g(e)"
    yield "finally", lambda body: f"try:\n{_in(body)}\nfinally:\n    g(9)"
    yield "except finally", lambda body: f"try:\n{_in(body)}\nexcept E:\n    g(8)\nfinally:\n    g(9)"
    yield "try else", lambda body: f"try:\n    y = k(x)\nexcept E:\n    g(8)\nelse:\n{_in(body)}"
    yield "for", lambda body: f"for x in xs:\n{_in(body)}"
    yield "while", lambda body: f"while w:\n{_in(body)}"
    yield "endless", lambda body: f"while True:\n{_in(body)}"
    yield "with", lambda body: f"with m:\n{_in(body)}"
    yield "with as", lambda body: f"with m(1) as n:\n{_in(body)}"
    yield "if", lambda body: f"if a:\n{_in(body)}"
    yield "if else", lambda body: f"if a:\n{_in(body)}\nelse:\n    g(7)"
    yield "else", lambda body: f"if a:\n    g(7)\nelse:\n{_in(body)}"
    yield "elif", lambda body: f"if a:\n    g(7)\nelif b:\n{_in(body)}"
    yield "case", lambda body: f"match q:\n    case A():\n{_in(_in(body))}"
    yield "cases", lambda body: f"match q:\n    case A():\n{_in(_in(body))}\n    case _:\n        g(6)"


def _inner(in_loop: bool) -> Iterator[tuple[str, str]]:
    for last in _INNER:
        if in_loop or last not in _IN_LOOP:
            yield last, last
            if last != "pass":
                yield f"if {last}", f"if c:\n{_in(last)}"
                yield f"if and {last}", f"if c and d:\n{_in(last)}"
                yield f"if more {last}", f"if c:\n    g(3)\n{_in(last)}"
                yield f"guard {last}", f"if not c:\n{_in(last)}\ng(4)"
                yield f"else {last}", f"if c:\n    g(5)\nelse:\n{_in(last)}"


def _made(chosen: random.Random) -> tuple[str, str]:
    """Return the names of the statements of a function, and its text."""
    names: list[str] = []
    around: list[Callable[[str], str]] = []
    in_loop = False
    for _ in range(chosen.choice((1, 2, 2, 2, 3, 3))):
        name, write = chosen.choice(list(_nests(in_loop)))
        names.append(name)
        around.append(write)
        in_loop = in_loop or name in ("for", "while", "endless")
    name, body = chosen.choice(list(_inner(in_loop)))
    for write in reversed(around):
        body = write(chosen.choice(("", "", "p = g()\n")) + body)
        following = chosen.choice(_FOLLOWING)
        body += f"\n{following}" if following else ""
    return " / ".join([*names, name]), f"def f(a, b, c, d, m, q, w, xs):\n{_in(body)}\n"


def _suites(stmt: ast.AST) -> list[list[ast.stmt]]:
    parts = [stmt, *getattr(stmt, "handlers", []), *getattr(stmt, "cases", [])]
    fields = ("body", "orelse", "finalbody")
    return [suite for part in parts for field in fields if (suite := getattr(part, field, None))]


def _breaks(stmts: list[ast.stmt]) -> bool:
    return any(isinstance(stmt, ast.Break)
               or not isinstance(stmt, (ast.For, ast.While)) and any(map(_breaks, _suites(stmt))) for stmt in stmts)


def _never_falls(stmts: list[ast.stmt]) -> bool:
    last = stmts[-1] if stmts else None
    if isinstance(last, ast.If):
        return _never_falls(last.body) and _never_falls(last.orelse)
    if isinstance(last, ast.While):
        return isinstance(last.test, ast.Constant) and not _breaks(last.body)
    if isinstance(last, ast.Try):
        return _never_falls(last.finalbody) or _never_falls(last.orelse or last.body) and all(
            _never_falls(handler.body) for handler in last.handlers)
    return isinstance(last, _LEAVES)


def _is_strange(tree: ast.Module) -> bool:
    """Return whether there is dead code, a loop without a second turn, or several loops that never end."""
    nodes = list(ast.walk(tree))
    suites = [suite for node in nodes if not isinstance(node, ast.expr) for suite in _suites(node)]
    loops = [node for node in nodes if isinstance(node, (ast.For, ast.While))]
    return (any(_never_falls(suite[:at]) for suite in suites for at in range(1, len(suite)))
            or any(_never_falls(loop.body) and not isinstance(loop.body[-1], ast.Continue) for loop in loops)
            or sum(isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) for loop in loops) > 1)


def _code(text: str) -> Code:
    return Code.of(next(const for const in compile(text, "nest", "exec").co_consts if hasattr(const, "co_code")))


def _says_nothing(text: str) -> bool:
    """Return whether one of the jumps can be left out."""
    lines = text.split("\n")
    without = [[*lines[:at], line.replace(line.strip(), "pass"), *lines[at + 1:]] for at, line in enumerate(lines)
               if line.strip() in ("continue", "break", "return", "return None")]
    return any(same_program(_code(text), _code("\n".join(each))) for each in without)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=10, metavar="N", help="print the N shortest that differ")
    given = parser.parse_args()
    chosen = random.Random(given.seed)
    texts: dict[str, str] = {}
    while len(texts) < given.count:
        name, text = _made(chosen)
        if text not in texts and not _is_strange(ast.parse(text)) and not _says_nothing(text):
            texts[text] = name
    different: list[tuple[int, str, str]] = []
    inexact = 0
    for text, name in texts.items():
        found = decompile_code(_code(text))
        inexact += found.fidelity is not Fidelity.EXACT
        source, ours = (ast.unparse(ast.parse(each)).split("\n") for each in (text, found.text))
        if source != ours:
            shown = "\n".join(list(difflib.unified_diff(source, ours, lineterm="", n=20))[3:])
            different.append((len(source), name, shown))
    for _, name, shown in sorted(different)[:given.show]:
        print(f"--- {name}\n{shown}")
    share = 100 * (1 - len(different) / len(texts))
    print(f"Python {sys.version.split()[0]}, seed {given.seed}, {len(texts)} functions: {share:.1f} % are as written; "
          f"{inexact} are not exact")


if __name__ == "__main__":
    main()
