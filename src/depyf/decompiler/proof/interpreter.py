"""Text compiled by another interpreter: what the proof needs for code of another Python version.

``compile`` of the running interpreter says nothing about what Python 3.8 makes of a text. An
:class:`Interpreter` hands texts to an interpreter of that version, which compiles them and writes them as a
``.pyc`` to its standard output; nothing that is compiled is ever executed, and our own reader turns the
answer into :class:`~depyf.bytecode.code.Code`.
"""

from __future__ import annotations

import ast
import os
import struct
import subprocess
from collections.abc import Iterable

from ...bytecode.code import Code
from ...bytecode.pyc import HEADER_SIZE, PycError, load_pyc

#: Runs in the other interpreter (any version from 3.7 on): requests on standard input are file name and text,
#: each behind its length; an answer is one byte ("C" for code, "E" for an error) and a string behind its length.
_SERVER = """
import marshal, struct, sys
from importlib.util import MAGIC_NUMBER
source, sink = sys.stdin.buffer, sys.stdout.buffer
def take():
    return source.read(struct.unpack("<I", source.read(4))[0])
optimize, count = struct.unpack("<iI", source.read(8))
for _ in range(count):
    name, text = take().decode("utf-8", "surrogateescape"), take()
    try:
        code = compile(text, name, "exec", dont_inherit=True, optimize=optimize)
        kind, answer = b"C", MAGIC_NUMBER + bytes(12) + marshal.dumps(code)
    except Exception as error:
        kind, answer = b"E", ("%s: %s" % (type(error).__name__, error)).encode("utf-8", "backslashreplace")
    sink.write(kind + struct.pack("<I", len(answer)) + answer)
sink.flush()
"""

#: Without site packages, environment variables, the user's folder or warnings.
_OPTIONS = ("-I", "-S", "-E", "-W", "ignore")


class ForeignError(ValueError):
    """The other interpreter could not be run, or does not accept the text."""


class Interpreter:
    """An interpreter, by the path of its executable. It is started anew for every call.

    Args:
        path: the executable.
        timeout: seconds a call may take for each text.
    """

    def __init__(self, path: str | os.PathLike[str], timeout: float = 60.0) -> None:
        self.path = os.fspath(path)
        self.timeout = timeout
        self._version: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return f"Interpreter({self.path!r})"

    @property
    def version(self) -> tuple[int, int]:
        """``(major, minor)``, as the code objects it writes say."""
        if self._version is None:
            self._version = self.compile("").version
        return self._version

    def compile(self, text: str | bytes, filename: str = "<depyf>", optimize: int = 0) -> Code:
        """Return the module code of a text.

        Raises:
            ForeignError: says why there is none.
        """
        answer = self.compile_all([(filename, text)], optimize)[0]
        if isinstance(answer, ForeignError):
            raise answer
        return answer

    def compile_tree(self, tree: ast.Module, filename: str) -> Code:
        """Return the code that the text of a syntax tree compiles to."""
        return self.compile(ast.unparse(tree), filename)

    def compile_all(
        self, texts: Iterable[tuple[str, str | bytes]], optimize: int = 0
    ) -> list[Code | ForeignError]:
        """Return the module code of each ``(file name, text)``, or why there is none, in order; one process for all.

        Args:
            texts: what to compile. Bytes are taken as the contents of a file (with its encoding comment).
            optimize: as for :func:`compile` (1 drops assertions, 2 docstrings too).
        """
        wanted = [(name, _encoded(text)) for name, text in texts]
        request = [struct.pack("<iI", optimize, len(wanted))]
        for name, text in wanted:
            for part in (name.encode("utf-8", "surrogateescape"), text):
                request += [struct.pack("<I", len(part)), part]
        try:
            done = subprocess.run(
                [self.path, *_OPTIONS, "-c", _SERVER], input=b"".join(request), capture_output=True,
                timeout=self.timeout * max(1, len(wanted)), check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise ForeignError(f"{self.path}: {error}") from error
        if done.returncode:
            last_line = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise ForeignError(f"{self.path} ended with {done.returncode} {' '.join(last_line)}".rstrip())
        return self._answers(done.stdout, [name for name, _ in wanted])

    def _answers(self, data: bytes, names: list[str]) -> list[Code | ForeignError]:
        result: list[Code | ForeignError] = []
        at = 0
        for name in names:
            if len(data) < at + 5:
                raise ForeignError(f"{self.path} gave too few answers")
            size = struct.unpack_from("<I", data, at + 1)[0]
            kind, answer = data[at : at + 1], data[at + 5 : at + 5 + size]
            at += 5 + size
            if kind != b"C" or len(answer) < HEADER_SIZE:
                result.append(ForeignError(answer.decode("utf-8", "replace")))
                continue
            try:
                result.append(load_pyc(answer, name))
            except PycError as error:
                result.append(ForeignError(str(error)))
        return result


def _encoded(text: str | bytes) -> bytes:
    # a lone surrogate cannot stand in a source file: the compiler is left to say so
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")


def compile_text(interpreter: str | os.PathLike[str], text: str | bytes, filename: str = "<depyf>") -> Code:
    """Return the code that the interpreter at a path makes of a text; :class:`ForeignError` says why there is none."""
    return Interpreter(interpreter).compile(text, filename)
