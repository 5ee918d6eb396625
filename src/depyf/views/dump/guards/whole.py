"""All conditions of a version as a Python function, in a file of its own.

They stand in sections: arguments, what the function closes over, its objects layer by layer, modules and globals,
torch's state. What repeats from layer to layer stands once. What of it matters to a call stands in the full code
(:mod:`depyf.views.dump.guards.call`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ....records.model import SourceLocation
from ....torch_text.resumes import resumed_function
from ....torch_text.wrapping import comment, prose
from ...formatting import no_version
from ...line_breaks import WIDTH, broken
from ...markdown import count
from ...short_paths import short_names
from .changes import MOST_LINES, as_comment
from .conditions import ARGUMENTS, CLOSURE, GLOBALS, OBJECTS, STATE, Condition, is_loose
from .helpers import helpers, imports
from .layers import Block, Item, fold, spelled
from .versions import Version, kept, signature

#: A line of text, and the user's line that made torch ask for the condition in it.
Line = tuple[str, SourceLocation | None]


def guards_file(version: Version, before: Version | None = None) -> str:
    """Return the file with all conditions of a version.

    Args:
        before: the version that it is compared with; the differences stand above the function. Where they take more
            than :data:`MOST_LINES` lines, what only one version looks at is counted there, and listed at the end.
    """
    above, below = _differences(version, before, "the end of this file")
    function = "".join(f"{line}\n" for line in [*above, *(line for line, _ in _function(version))])
    files = short_names(one.cause.filename for one in version.conditions if one.cause is not None)
    shortened = [f"{line}\n" for path, short in sorted(files.items(), key=lambda each: each[1])
                 if short != path for line in prose(f"{short}: {path}", "  ", "    ")]
    frame = version.frame
    resumed = resumed_function(frame.code_name)
    title = f"{frame.title or frame.name}{f' from line {resumed[1]} on' if resumed else ''}"
    head = f'"""All conditions of version {version.label} of {title}.\n\n'
    if version.failed:
        head = "\n".join([f'"""Conditions of compilation {version.label} of {title}, which failed.', "", *(
            line for text in no_version(version.compilation) for line in prose(text, "", "  ")), "", ""])
    head += "A comment after a condition says which line made torch ask for it.\n" if files else ""
    head += "Files:\n" + "".join(shortened) if shortened else ""
    body = f"{function}\n\n{helpers(function)}".rstrip() + "\n"
    body += "".join(f"{line}\n" for line in ["", "", *below]) if below else ""
    return (f'{_escaped(head.rstrip())}\n"""\n\nfrom __future__ import annotations\n\n{imports(body)}\n\n{body}')


def _escaped(text: str) -> str:
    opening, body = text[:3], text[3:]
    return opening + body.replace("\\", "\\\\").replace('"', "'")


def guard_lines(version: Version, before: Version | None = None) -> list[Line]:
    """Return the lines of the function with all conditions.

    Args:
        before: the version that it is compared with; the differences stand above the function, or where they are many
            how many there are.
    """
    above, _ = _differences(version, before)
    return [*((line, None) for line in above), *_function(version)]


def _differences(version: Version, before: Version | None, whole: str = "") -> tuple[list[str], list[str]]:
    """Return the differences that stand above the function, and all of them where those are told briefly.

    Args:
        whole: where a reader finds all of them (default: the file with the guards).
    """
    lines = as_comment(before, version) if before is not None else []
    if before is None or len(lines) <= MOST_LINES:
        return lines, []
    return as_comment(before, version, MOST_LINES, whole), lines


@kept
def _function(version: Version) -> list[Line]:
    lines: list[Line] = [(line, None) for line in definition(version.guards_name, signature(version.frame))]
    failed = [(line, None) for text in no_version(version.compilation) for line in comment(text, 4, 2)]
    if failed and not version.conditions:
        return [*lines, *failed, ("    return False", None)]
    if not version.conditions:
        return [*lines, ("    # torch gave no guards", None), ("    return True", None)]
    lines += [(f'    """{_counts(version)}"""', None), *failed]
    if version.why_dead:
        lines += [(line, None) for line in comment(f"dead: {version.why_dead}", 4, 2)]
    lines.append(("    return (", None))
    files = short_names(one.cause.filename for one in version.conditions if one.cause is not None)
    writer = _Writer(files)
    for (title, members), folded in zip(sections(version), _folded(version)):
        writer.comment(f"{title}: {count(len(members), 'condition')}", 8)
        writer.write(folded, 8)
    return [*lines, *writer.lines, ("    )", None)]


def _counts(version: Version) -> str:
    guards, conditions = len(version.entry.guards), len(version.conditions)
    more = f" (Torch has {guards} guards, of which some say the same.)" if guards != conditions else ""
    return f"{count(conditions, 'condition')}.{more}"


def definition(name: str, parameters: str) -> list[str]:
    """Return ``def name(parameters):``, on several lines where it is long."""
    line = f"def {name}({parameters}):"
    if len(line) <= WIDTH:
        return [line]
    lines, row = [f"def {name}("], ""
    for parameter in parameters.split(", "):
        if len(row) + len(parameter) + 6 > WIDTH:
            lines.append(f"    {row.rstrip()}")
            row = ""
        row += f"{parameter}, "
    return [*lines, f"    {row.rstrip()}", "):"]


@kept
def _folded(version: Version) -> list[list[Item[Condition] | Block[Condition]]]:
    """Return the conditions of each section, what repeats from layer to layer once."""
    return [fold([Item(_text(one, version), one.subject, one) for one in members]) for _, members in sections(version)]


def _text(condition: Condition, version: Version) -> str:
    return version.sizes.check(condition) if condition.tensor is not None else condition.text


@kept
def sections(version: Version) -> list[tuple[str, list[Condition]]]:
    """Return the conditions by what they are about, with a title for each."""
    groups: dict[tuple[str, str], list[Condition]] = {}
    for one in version.conditions:
        groups.setdefault((one.section, one.root if one.section == OBJECTS else ""), []).append(one)
    titles = {ARGUMENTS: "arguments", CLOSURE: "variables of the enclosing function", GLOBALS: "modules and globals",
              STATE: "torch's state"}
    ordered = sorted(groups, key=lambda key: (ARGUMENTS, CLOSURE, OBJECTS, GLOBALS, STATE).index(key[0]))
    return [(titles.get(key[0], key[1]), groups[key]) for key in ordered]


@dataclass(frozen=True)
class GuardGroup:
    """Conditions on one object, or on several that a loop runs over.

    Attributes:
        subject: the object, ``"self.layers[i].norm"``; empty for torch's state.
        members: number of objects.
        loop: over them, ``"for i in range(32)"``; empty for one object.
        conditions: with the user's lines that made torch ask.
    """

    subject: str
    members: int
    loop: str
    conditions: tuple[Line, ...]


def guard_groups(version: Version) -> list[GuardGroup]:
    """Return the conditions of a version by object."""
    groups: dict[tuple[str, int, str], list[Line]] = {}

    def add(folded: Iterable[Item[Condition] | Block[Condition]], members: int, loop: str) -> None:
        for each in folded:
            if isinstance(each, Block):
                add(each.body, members * len(each.numbers), f"{loop} {each.loop()}".strip())
            else:
                groups.setdefault((each.subject, members, loop), []).append((each.text, each.payload.cause))

    for folded in _folded(version):
        add(folded, 1, "")
    return [GuardGroup(*key, tuple(lines)) for key, lines in groups.items()]


class _Writer:
    """Writes conditions that ``and`` joins.

    Args:
        files: the short names of files.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self.lines: list[Line] = []
        self._files = files
        self._first = True

    def comment(self, text: str, indent: int) -> None:
        self.lines += [(line, None) for line in comment(text, indent, 0)]

    def write(self, folded: Sequence[Item[Condition] | Block[Condition]], indent: int) -> None:
        for each in folded:
            if isinstance(each, Item):
                self._item(each, indent)
                continue
            self.comment(f"{each.member}, {spelled(each.numbers)}: "
                         f"{count(each.count // len(each.numbers), 'condition')} each", indent)
            self.lines.append((f"{' ' * indent}{self._and()}all(", None))
            self._first = True
            self.write(each.body, indent + 4)
            self._first = False
            self.lines.append((f"{' ' * (indent + 4)}{each.loop()}", None))
            self.lines.append((f"{' ' * indent})", None))

    def _and(self) -> str:
        joint, self._first = "" if self._first else "and ", False
        return joint

    def _item(self, item: Item[Condition], indent: int) -> None:
        joint = self._and()
        text = f"{joint}({item.text})" if is_loose(item.text) else joint + item.text
        cause = item.payload.cause
        behind = f"  # {self._files.get(cause.filename, cause.filename)}:{cause.line}" if cause is not None else ""
        lines = broken(text, indent)
        if len(lines[-1]) + len(behind) > WIDTH:
            self.lines.append((f"{' ' * indent}{behind.strip()}", cause))
            behind = ""
        lines[-1] += behind
        self.lines += [(line, cause) for line in lines]
