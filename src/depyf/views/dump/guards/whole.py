"""All conditions of a version as a Python function, in a file of its own.

They are in sections: arguments, what the function closes over, its objects layer by layer, modules and globals, torch's
state. What repeats from layer to layer is written once. What of it matters to a call is in the full code
(:mod:`depyf.views.dump.guards.call`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ....model.guards import ARGUMENTS, CLOSURE, GLOBALS, OBJECTS, STATE, Condition, is_loose
from ....records.model import SourceLocation
from ....torch_text.resumes import resumed_function
from ....torch_text.wrapping import comment, prose
from ...formatting import no_version
from ...line_breaks import WIDTH, broken
from ...markdown import count
from ...short_paths import short_names
from .changes import MOST_LINES, as_comment
from .helpers import helpers, imports
from .layers import Block, Item, fold, spelled, unfolded
from .versions import Version, cached, signature

#: A line of text, and the user's line that made torch ask for the condition in it.
Line = tuple[str, SourceLocation | None]


def guards_file(version: Version, before: Version | None = None) -> str:
    """Return the file with all conditions of a version.

    Args:
        before: the version that it is compared with; the differences are above the function. Where they take more
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
        before: the version that it is compared with; the differences are above the function, or where they are many
            how many there are.
    """
    above, _ = _differences(version, before)
    return [*((line, None) for line in above), *_function(version)]


def _differences(version: Version, before: Version | None, whole: str = "") -> tuple[list[str], list[str]]:
    """Return the differences above the function, and all of them where those are in brief.

    Args:
        whole: where a reader finds all of them (default: the file with the guards).
    """
    lines = as_comment(before, version) if before is not None else []
    if before is None or len(lines) <= MOST_LINES:
        return lines, []
    return as_comment(before, version, MOST_LINES, whole), lines


@cached
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
    for at, ((title, members), folded) in enumerate(zip(sections(version), _folded(version))):
        lines += [(line, None) for line in comment(f"{title}: {count(len(members), 'condition')}", 8, 0)]
        lines += _conditions(folded, files, 8, at == 0)
    return [*lines, ("    )", None)]


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


@cached
def _folded(version: Version) -> list[list[Item[Condition] | Block[Condition]]]:
    """Return the conditions of each section, what repeats from layer to layer once."""
    return [fold([Item(version.sizes.text(one), one.subject, (one,)) for one in members])
            for _, members in sections(version)]


@cached
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
    for item, loop in (each for folded in _folded(version) for each in unfolded(folded)):
        key = item.subject, len(item.payloads), loop
        groups.setdefault(key, []).append((item.text, item.payloads[0].cause))
    return [GuardGroup(*key, tuple(lines)) for key, lines in groups.items()]


def _conditions(
    folded: Iterable[Item[Condition] | Block[Condition]], files: Mapping[str, str], indent: int, is_first: bool
) -> Iterator[Line]:
    """Yield the lines of conditions that ``and`` joins.

    Args:
        files: short names of files.
        is_first: no condition is before them.
    """
    for each in folded:
        if isinstance(each, Item):
            cause = each.payloads[0].cause
            place = f"  # {files.get(cause.filename, cause.filename)}:{cause.line}" if cause is not None else ""
            yield from ((line, cause) for line in joined(each.text, place, is_first, indent))
        else:
            head = (f"{each.member}, {spelled(each.numbers)}: "
                    f"{count(each.count // len(each.numbers), 'condition')} each")
            yield from ((line, None) for line in comment(head, indent, 0))
            yield f"{' ' * indent}{'' if is_first else 'and '}all(", None
            yield from _conditions(each.body, files, indent + 4, True)
            yield f"{' ' * (indent + 4)}{each.loop()}", None
            yield f"{' ' * indent})", None
        is_first = False


def joined(text: str, remark: str, is_first: bool, indent: int) -> list[str]:
    """Return the lines of a condition that ``and`` joins to those before it.

    Args:
        remark: a comment, which has a line of its own above the condition where there is no room.
    """
    lines = broken(f"{'' if is_first else 'and '}{f'({text})' if is_loose(text) else text}", indent)
    if len(lines[-1]) + len(remark) > WIDTH:
        return [f"{' ' * indent}{remark.strip()}", *lines]
    return [*lines[:-1], lines[-1] + remark]
