"""Code that is moved out of a function gives the same, or is left where it is."""

import textwrap

import pytest

torch = pytest.importorskip("torch")

from depyf.advice import Sources  # noqa: E402
from depyf.advice.facts import Facts  # noqa: E402
from depyf.advice.model import edited  # noqa: E402
from depyf.advice.outlines import outlined  # noqa: E402
from depyf.records.model import CompileId, GraphBreak, NamedValue, SourceFile, SourceLocation  # noqa: E402

HEAD = "import random, torch\nK = 2\ndef lib(*given):\n    return 3\n" \
       "import contextlib\nlib_context = lambda: contextlib.nullcontext(5)\n"
X = NamedValue("x", "Tensor", ("3", "2"), "float32", "cpu", source="L['x']")
N = NamedValue("n", "int", source="L['n']")


def moved(body, decorator="@torch.compile(backend='eager')", rule="skipped", head="def f(x, n=1):"):
    """Return the text before and after the first change for the line with a question mark; ``None``: there is none."""
    text = f"{HEAD}{decorator}\n{head}\n{textwrap.indent(textwrap.dedent(body), '    ')}"
    line, *others = (number for number, each in enumerate(text.splitlines(), 1) if "?" in each)
    text = text.replace("  # ?", "")
    place = SourceLocation("m.py", line, "f", text.splitlines()[line - 1])
    broken = GraphBreak(CompileId(0, 0), "", registry_id="GB0007", stack=(place,), depth=1, values=(X, N))
    site = Sources([SourceFile("m.py", text)]).site(broken)
    advice = next(outlined(Facts(site), rule, "torch.setting = 1", others), None)
    return text, edited(text, advice.edits) if advice is not None else None


def results(text):
    """Return what ``f`` gives, and what becomes of its argument, for some calls."""
    variables = {}
    exec(compile(text.replace("@torch.compile(backend='eager')", ""), "m.py", "exec"), variables)
    found = []
    for n in (0, 1, 4):
        x = torch.arange(6.0).reshape(3, 2)
        try:
            found.append((repr(variables["f"](x, n)), repr(x)))
        except Exception as error:
            found.append((type(error), str(error), repr(x)))
    return found


@pytest.mark.parametrize(("body", "rule", "parts"), [
    ("s = lib(n)  # ?\nreturn x * s\n", "skipped", 1),
    ("y = x + 1\ns = lib(n)  # ?\n# scaled\nz = (y *\n     s)  # twice\nz += 1\nreturn z, n\n", "skipped", 2),
    ("s = lib(n)  # ?\ny = x * 2\ny += s\ns = lib(s) - s  # ?\nreturn y, s\n", "skipped", 1),
    ("s = lib(n)  # ?\nx.add_(1)\nif n > 2:\n    return [v * s for v in x]\n", "skipped", 1),
    ("y = x + 1\nz = y * 2\ns = lib(n)  # ?\nif n > 2:\n    y = x * s\nx.add_(s)\n", "skipped", 2),
    ("s = lib(n)  # ?\nfor row in x:\n    z = row * s\n    if n > 2:\n        return z\nreturn z + 1\n", "skipped", 1),
    ("s = lib(n)  # ?\nx *= s\nreturn sum(v * 2 for v in x) + n\n", "skipped", 1),
    ("with torch.no_grad() as g:  # ?\n    s = lib(g)\nx *= s\n", "context", 1),
    ("with lib_context() as g:  # ?\n    s = g + n\n    y = (x * s)\nreturn y + 1\n", "context", 2),
    ("with lib_context() as g:  # ?\n    y = x * 2\n    s = lib(n)\n    z = y * x\n    y += 1\nreturn y + z\n", "context", 3),
    ("y = x + 1\nwhile y.sum() > n + 1:  # ?\n    y = y * 0.5\nreturn y, [y for y in (1, 2)]\n", "turn", 2),
    ("steps = 0\nwhile x.sum() > 1 and steps < n:  # ?\n    x = x * 0.5\n    steps += 1\nreturn x, steps\n", "turn", 1),
    ("seen, y = [], x.sum()\nfor row in x:\n    y = y * K + row.sum()\n    if y > 5 * n:  # ?\n        continue\n"
     "    z = row - y\n    z /= 2\n    seen.append(z)\nreturn torch.stack(seen) + y\n", "turn", 4),
    ("while n > 0:\n    s = lib(x)  # ?\n    x, y = x + s, x - s\n    n -= 1\nreturn x\n", "turn", 1),
    ("for i in range(n):\n    lib(i)  # ?\n    x = x + i\n    z = x * 2\nreturn x, z\n", "turn", 1),
])
def test_what_is_moved_gives_the_same(body, rule, parts):
    before, after = moved(body, rule=rule)
    assert after.count("@torch.compile") == parts == after.count("_part") // 2
    assert "@torch.compile(backend='eager')\ndef f(" not in after
    assert results(before) == results(after)
    comments = [line for line in before.splitlines() if "#" in line]
    assert all(line.partition("#")[2] in after for line in comments)


@pytest.mark.parametrize(("body", "given"), [
    ("s = lib(n)  # ?\nreturn x * s\n", {"decorator": "@torch.compile(mode='reduce-overhead')"}),
    ("s = lib(n)  # ?\nreturn x * s\n", {"decorator": "@torch.compile(backend='cudagraphs')"}),
    ("s = lib(n)  # ?\nreturn x * s\n", {"decorator": "@torch.no_grad()\n@torch.compile"}),
    ("s = lib(n)  # ?\nreturn x * s\n", {"rule": "print"}),
    ("s = lib(n)  # ?\nreturn x * s\n", {"decorator": "@torch.compile(backend=lib())"}),
    ("s = lib(n)  # ?\nreturn x * n + sum(n for n in (1, 2)) * s\n", {}),
    ("if n > 2:\n    k = 1\ns = lib(n)  # ?\ny = x * k\nk = 2\nreturn y\n", {}),
    ("g = lambda: s\ns = lib(n)  # ?\ns = x * 2\nreturn g()\n", {}),
    ("s = lib(n)  # ?\nyield x * s\n", {}),
    ("s = lib(n)  # ?\nreturn lambda: x * s\n", {}),
    ("if n > 2:\n    k = 1\ns = lib(n)  # ?\nreturn x * s * k\n", {}),  # (`k` may not be set)
    ("if n > 2:\n    x = x * 2\ns = lib(n)  # ?\nreturn x * s\n", {}),  # (what computes would stay)
    ("if n > 2:\n    s = lib(n)  # ?\n    x = x * s\nreturn x * 2\n", {}),
    ("s = lib(n)  # ?\ny = x * s; return y\n", {}),
    ("s = lib(n)  # ?\nf_part = x * s\nreturn f_part\n", {}),
    ("s = lib(n)  # ?\nglobal K\nK = x * s\n", {}),
    ("s = lib(n)  # ?\nwarnings.warn('slow', stacklevel=2)\nreturn x * s\n", {}),
    ("s = lib(n)  # ?\nreturn n\n", {}),
])
def test_what_may_differ_is_left_where_it_is(body, given):
    assert moved(body, **given)[1] is None


def test_a_method_is_left_as_it_is():
    text = "import torch\nclass A:\n    @torch.compile\n    def f(self, x):\n        s = lib()\n        return x * s\n"
    place = SourceLocation("m.py", 5, "f", "s = lib()")
    broken = GraphBreak(CompileId(0, 0), "", registry_id="GB0007", stack=(place,), depth=1, values=(X,))
    assert not list(outlined(Facts(Sources([SourceFile("m.py", text)]).site(broken)), "skipped", ""))
