"""Every code object written as a dispatch loop: modules, classes and comprehensions too."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from types import CodeType

import pytest
from dispatched import as_loops

from depyf.bytecode.errors import Unreadable
from depyf.decompiler import decompile_code
from depyf.decompiler.errors import CannotDecompile

PROGRAMS = {
    "constant_sets": """
        frozenset = None
        a = 2
        result = a in {1, 2, 3}, a in {(1, 2), 2}, (3, (1, 2)), a in ((1, 2), 2), a not in {"x"}
    """,
    "module": """
        try:
            import no_such_module
        except ImportError:
            found = False
        else:
            found = True
        for number in range(3):
            last = number
        del number
        exec("made = last + 1")
        names = sorted(n for n in locals() if not n.startswith("_"))
        result = found, last, made, names
    """,
    "class": """
        def around(base):
            class C(base):
                '''What it is.'''
                total = 0
                for step in range(4):
                    total += step
                squares = [step * step for step in range(total)]
                seen = sorted(n for n in vars() if not n.startswith("_"))
                def get(self):
                    return super().get() + [self.total, base.__name__, __class__.__name__]
                def __private(self):
                    return 5
                def use(self):
                    return self.__private()
            return C
        class Base:
            def get(self):
                return [1]
        C = around(Base)
        names = [n for n in vars(C) if n not in ("__static_attributes__", "__firstlineno__")]
        result = C.__doc__, C.__qualname__, C.get.__name__, C.squares, C.seen, C().get(), C().use(), names
    """,
    "comprehensions": """
        import asyncio
        async def numbers():
            for number in range(4):
                yield number
        async def main():
            listed = [n * 2 async for n in numbers() if n]
            made = {n: m async for n in numbers() for m in range(n)}
            lazy = (n async for n in numbers())
            return listed, made, [n async for n in lazy], {n for n in range(3)}, list(x for x in 'ab')
        result = asyncio.run(main())
    """,
}


def run(code: CodeType) -> object:
    namespace: dict[str, object] = {"__name__": "program"}
    exec(code, namespace)
    return namespace["result"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_all_as_loops(program: str) -> None:
    original = compile(textwrap.dedent(PROGRAMS[program]), "<program>", "exec", dont_inherit=True)
    assert run(as_loops(original)) == run(original)


@pytest.mark.skipif(not (3, 12) <= sys.version_info < (3, 14), reason="type parameters, and what a compiler leaves of them")
def test_type_parameters_are_made_in_no_loop():
    code = compile("class A[T](0 if a and () else 0): pass", "<program>", "exec", dont_inherit=True)
    with pytest.raises(Unreadable, match="type parameters made in another way"):
        decompile_code(code)


@pytest.mark.parametrize("text", [
    "class C: found = [lambda: n for n in range(3)]", "def f(n): return [lambda: n for n in range(3)], n",
    "def f():\n    n = 1\n    return [lambda: n for n in range(3)], n"])
def test_a_variable_of_a_comprehension_that_is_another_one_around_it_is_not_shared(text):
    """Up to 3.11 the comprehension is a function of its own."""
    code = compile(text, "<program>", "exec", dont_inherit=True)
    if sys.version_info < (3, 12):
        as_loops(code)
    else:
        with pytest.raises(CannotDecompile, match="a function shares a variable of a comprehension"):
            as_loops(code)


def test_sets_are_written_in_one_order():
    """Whatever the process's hash seed; two dumps of one program are to be the same."""
    program = textwrap.dedent("""
        from dispatched import text_as_loops
        print(text_as_loops(compile("def f(a): return a in {'x', 'y', 'z', 'u', 'v', 'w'}", "f", "exec")))
    """)
    texts = {
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env={
            **os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": seed}).stdout
        for seed in ("0", "1", "2")}
    assert len(texts) == 1 and "'u', 'v', 'w', 'x'" in texts.pop()
