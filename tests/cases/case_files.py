"""Cases as data: a text file says what goes in and what must come out.

    [case while_else]
    # A search that says when it found nothing.
    # not as written: the condition of the loop stands twice
    [python 3.11+]
    [in]
    def find(items):
        ...
    [out]
    def find(items):
        ...
    [out 3.12 3.13]
    def find(items):
        ...

A case begins with its name, which is unique in its file, and a comment that says why it is there. Parts follow, each
under a line ``[kind]`` or ``[kind argument]``; which kinds there are is up to the test that reads the file, except for
these:

* ``[python 3.11+]`` or ``[python 3.10 3.11]``: the versions of Python for which the case is. All, if it is not there.
* ``[in]``: the input.
* ``[out]``: the expected text. If it is not there, the text of ``[in]`` is expected.
* ``[out 3.12 3.13]``: the expected text under these versions, where it differs.

What stands above the first case is a comment on the file. To add a case, write it without ``[out]`` and run its test with
``DEPYF_UPDATE_GOLDEN=1``, first under Python 3.11 (which writes ``[out]``), then under the other versions (which write a
part of their own where their text differs). Read what was written before you commit it.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
#: The version whose text is ``[out]``.
REFERENCE = (3, 11)
VERSION = sys.version_info[:2]
_HEADING = re.compile(r"\[([a-z]+)(?: ([^\]]+))?\]$")


class BadCase(Exception):
    """A file of cases is not in the format."""


@dataclasses.dataclass
class Part:
    """``[kind argument]`` and the text below it."""

    kind: str
    argument: str = ""
    text: str = ""

    def versions(self) -> list[tuple[int, ...]]:
        """Return the versions of Python that the argument lists."""
        return [_version(each) for each in self.argument.split()]

    def __str__(self) -> str:
        heading = f"[{self.kind} {self.argument}]" if self.argument else f"[{self.kind}]"
        return "\n".join(filter(None, [heading, self.text]))


@dataclasses.dataclass
class Case:
    """A case, and where it stands."""

    path: pathlib.Path
    line: int
    name: str
    comment: str
    parts: list[Part]

    def id(self) -> str:
        """Return the name of the case among those of all files."""
        return f"{self.path.stem}-{self.name}"

    def __getitem__(self, kind: str) -> str:
        """Return the text of the part of a kind; empty where there is none."""
        return next((part.text for part in self.parts if part.kind == kind), "")

    def argument(self, kind: str) -> str:
        """Return the argument of the part of a kind; empty where there is none."""
        return next((part.argument for part in self.parts if part.kind == kind), "")

    def since(self) -> tuple[int, ...]:
        """Return the first version of Python for which the case is."""
        condition = self.argument("python")
        return min(map(_version, condition.replace("+", "").split())) if condition else (0, 0)

    def is_for(self, version: tuple[int, int]) -> bool:
        """Return whether the case is for a version of Python."""
        condition = self.argument("python")
        return version >= self.since() if condition.endswith("+") or not condition else version in map(
            _version, condition.split())

    def reference(self) -> tuple[int, ...]:
        """Return the version whose text is ``[out]``."""
        return max(REFERENCE, self.since())

    def outputs(self) -> list[Part]:
        """Return the parts that hold expected text."""
        return [part for part in self.parts if part.kind == "out"]

    def expected(self) -> str:
        """Return the text expected under this Python."""
        outputs = self.outputs()
        own = [part.text for part in outputs if VERSION in part.versions()]
        return (own or [part.text for part in outputs if not part.argument] or [self["in"]])[0]

    def accept(self, text: str) -> None:
        """Make ``text`` what is expected under this Python."""
        outputs = [Part("out", " ".join(each for each in part.argument.split() if _version(each) != VERSION), part.text)
                   for part in self.outputs() if part.argument != "%d.%d" % VERSION]
        common = next((part.text for part in outputs if not part.argument), self["in"])
        if VERSION == self.reference():
            common = text
        elif text != common:
            same = next((part for part in outputs if part.argument and part.text == text), None)
            if same is None:
                outputs.append(same := Part("out", text=text))
            same.argument = " ".join(sorted([*same.argument.split(), "%d.%d" % VERSION], key=_version))
        own = [part for part in outputs if part.argument and part.text != common]
        own.sort(key=lambda part: part.versions())
        self.parts = [part for part in self.parts if part.kind != "out"]
        self.parts += [Part("out", text=common)] * (common != self["in"]) + own

    def __str__(self) -> str:
        return "\n".join(filter(None, [f"[case {self.name}]", self.comment, *map(str, self.parts)])) + "\n"


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def read(path: pathlib.Path) -> tuple[str, list[Case]]:
    """Return the comment on a file and its cases.

    Raises:
        BadCase: the file is not in the format; the message says where.
    """
    head: list[str] = []
    cases: list[Case] = []
    lines = head
    found: list[tuple[Case | Part, list[str]]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        heading = _HEADING.match(line)
        if heading is None:
            lines.append(line)
            continue
        kind, argument = heading[1], heading[2] or ""
        lines = []
        if kind == "case":
            if not argument or argument in (case.name for case in cases):
                raise BadCase(f"{path}:{number}: a case needs a name that no other case of the file has")
            cases.append(Case(path, number, argument, "", []))
            found.append((cases[-1], lines))
        elif not cases:
            raise BadCase(f"{path}:{number}: [{kind}] stands before the first [case name]")
        else:
            cases[-1].parts.append(Part(kind, argument))
            found.append((cases[-1].parts[-1], lines))
    for each, lines in found:
        text = "\n".join(lines).strip("\n")
        if isinstance(each, Part):
            each.text = text
        elif not text or not all(line.startswith("#") for line in text.splitlines()):
            raise BadCase(f"{path}:{each.line}: below [case {each.name}] comes a comment that says why it is there")
        else:
            each.comment = text
    return "\n".join(head).strip("\n"), cases


def written(head: str, cases: list[Case]) -> str:
    """Return the text of a file of cases."""
    return "\n".join(([f"{head}\n"] if head else []) + list(map(str, cases)))


def cases_of(folder: str) -> list[Case]:
    """Return the cases of a folder's files that are for this Python."""
    return [case for path in sorted((HERE / folder).glob("*.test")) for case in read(path)[1] if case.is_for(VERSION)]


def check(case: Case, text: str) -> None:
    """Compare a text to the expected one of a case, or make it that (``DEPYF_UPDATE_GOLDEN=1``).

    Raises:
        AssertionError: it is another text; the message names the case and shows the difference.
    """
    __tracebackhide__ = True
    text = text.strip("\n")
    if os.environ.get("DEPYF_UPDATE_GOLDEN"):
        head, cases = read(case.path)
        next(each for each in cases if each.name == case.name).accept(text)
        case.accept(text)
        case.path.write_text(written(head, cases), encoding="utf-8")
    if text != case.expected():
        difference = difflib.unified_diff(
            case.expected().splitlines(), text.splitlines(), "expected", "found", lineterm="")
        raise AssertionError("\n".join([f"{case.path}:{case.line}: case {case.name}", *difference,
                                        "(DEPYF_UPDATE_GOLDEN=1 makes what was found the expected text.)"]))
