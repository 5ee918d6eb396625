"""Texts that were proven before, kept on disk: ranks, and a program that is run again, have the same code.

The folder can be deleted at any time: an entry that is missing or damaged is made again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import stat
import sys
import tempfile
from functools import cache
from typing import Any, NamedTuple

from .. import budgets
from ..bytecode.code import Code
from ..reading import json_value
from ..reading import text as text_of
from ..records.model import Bytecode, CodeText

#: Names the folder; ``off``: nothing is kept.
VARIABLE = "DEPYF_CACHE"
#: Bytes of all entries. The ones that were used least recently go.
MOST = 64 << 20
#: Bytes of bytecode. What is shorter is decompiled about as fast as a file of another machine is read.
SHORTEST = 500
#: The packages of depyf that a text depends on.
_MAKERS = ("bytecode", "cfg", "decompiler", "finishing", "torch_text")
_PROVEN = ("exact", "equivalent")


class Written(NamedTuple):
    """The text of transformed code.

    Attributes:
        source, exact, arguments: as of :class:`~depyf.records.model.TransformedCode`.
    """

    source: CodeText
    exact: CodeText | None
    arguments: tuple[str, ...]

    def is_proven(self) -> bool:
        """Return whether it is shown to be the same program."""
        return all(text is None or text.fidelity in _PROVEN for text in (self.source, self.exact))


def key_of(bytecode: Bytecode, code: Code, unsimplified: bool) -> str:
    """Return a key. Where keys are equal, so are texts.

    Torch's names that differ from run to run count as the names that texts show for them.

    Args:
        bytecode: the record.
        code: its transformed code.
        unsimplified: a text with nothing simplified is wanted, too.
    """
    facts = bytecode.facts
    for name, shown in bytecode.shown.items():
        facts = facts.replace(name, f"<{shown}>")
    parts = (
        bytecode.text_name, facts, tuple(bytecode.shown.values()), unsimplified, _parts(code, bytecode.shown),
        tuple((bytecode.shown.get(each.name, each.name), each.parameters) for each in bytecode.resumes),
        os.environ.get(budgets.VARIABLE, ""))
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _parts(value: Any, shown: dict[str, str]) -> Any:
    """Return a code object or a constant as values whose ``repr`` says all of it, the same in each process."""
    if isinstance(value, Code):
        parts: list[Any] = []
        for field in dataclasses.fields(value):
            held = getattr(value, field.name)
            if field.name == "names":
                held = tuple((shown[name],) if name in shown else name for name in held)
            if field.name != "origin":
                parts.append(_parts(held, shown))
        return parts
    if type(value) is tuple:
        return tuple(_parts(each, shown) for each in value)
    if type(value) is frozenset:
        return "frozenset", sorted(repr(_parts(each, shown)) for each in value)
    return value


@cache
def _makers() -> str:
    """Return what tells this depyf and this Python from others: a text is that of the program that made it.

    Empty where the source cannot be read: then nothing is kept.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    seen = hashlib.sha256(sys.version.encode())
    found = False
    try:
        for maker in _MAKERS:
            for folder, folders, files in os.walk(os.path.join(package, maker)):
                folders.sort()
                for name in sorted(each for each in files if each.endswith(".py")):
                    with open(os.path.join(folder, name), "rb") as file:
                        seen.update(f"\0{name}\0".encode() + file.read())
                    found = True
    except OSError:
        return ""
    return seen.hexdigest() if found else ""


def default_folder() -> str:
    """Return the folder that the environment names; ``""`` where nothing is to be kept."""
    given = os.environ.get(VARIABLE, "")
    if given == "off":
        return ""
    if given:
        return given
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        home = os.path.expanduser("~/Library/Caches")
    else:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(home, "depyf") if os.path.isabs(home) else ""


class KeptTexts:
    """A folder of texts. Whatever happens to it costs time and nothing else.

    Args:
        folder: where they are; ``""``: nothing is kept.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._usable: bool | None = None
        self._added = False

    def get(self, key: str) -> Written | None:
        """Return a text, if it is there."""
        if not self._folder or not _makers():
            return None
        path = self._path(key)
        try:
            digest, _, content = text_of(path, budgets.WRITTEN, "surrogatepass").partition("\n")
            if not self._is_ours() or digest != _digest(key, content):
                return None
            source, exact, arguments = json_value(content)
            written = Written(CodeText(*source), CodeText(*exact) if exact else None, tuple(arguments))
        except (OSError, ValueError, TypeError):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return written if written.is_proven() else None

    def put(self, key: str, written: Written) -> None:
        """Keep a text, if it is proven."""
        if not self._folder or not written.is_proven() or not _makers() or not self._is_ours(make=True):
            return
        content = json.dumps([
            [text.text, text.fidelity, text.note] if text is not None else None
            for text in (written.source, written.exact)] + [written.arguments])
        path = self._path(key)
        with contextlib.suppress(OSError, ValueError):
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            number, temporary = tempfile.mkstemp(dir=os.path.dirname(path))
            try:
                with open(number, "w", encoding="utf-8", errors="surrogatepass") as file:
                    file.write(f"{_digest(key, content)}\n{content}")
                os.replace(temporary, path)
            except BaseException:
                os.unlink(temporary)
                raise
            self._added = True

    def close(self) -> None:
        """Remove what is too much, where something was added."""
        if not self._added:
            return
        entries = []
        with contextlib.suppress(OSError):
            for folder, _, files in os.walk(self._folder):
                for name in files:
                    path = os.path.join(folder, name)
                    status = os.stat(path)
                    entries.append((status.st_mtime, status.st_size, path))
        too_much = sum(size for _, size, _ in entries) - MOST
        for _, size, path in sorted(entries):
            if too_much <= 0:
                return
            with contextlib.suppress(OSError):
                os.unlink(path)
            too_much -= size

    def _path(self, key: str) -> str:
        return os.path.join(self._folder, key[:2], f"{key[2:]}.{_makers()[:16]}")

    def _is_ours(self, make: bool = False) -> bool:
        """Return whether nobody else can write into the folder: a text of theirs would be shown as proven."""
        if self._usable is None or make and not self._usable:
            self._usable = False
            with contextlib.suppress(OSError):
                if make:
                    os.makedirs(self._folder, mode=0o700, exist_ok=True)
                status = os.stat(self._folder)
                mine = not hasattr(os, "getuid") or status.st_uid == os.getuid()
                others = stat.S_IWGRP | stat.S_IWOTH if hasattr(os, "getuid") else 0
                self._usable = mine and not status.st_mode & others
        return self._usable


def _digest(key: str, content: str) -> str:
    return hashlib.sha256(f"{key}\n{content}".encode("utf-8", "surrogatepass")).hexdigest()
