"""All conditions of a version as a Python function, in a separate file.

In sections: arguments, variables of the enclosing function, its objects layer by layer, modules and globals, torch's
state. What repeats from layer to layer is written once.
"""

from __future__ import annotations

import functools
import os
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping

from ....model.folding import Block, Item, spelled, unfolded
from ....model.guards import Condition, is_loose
from ....records.model import SourceLocation
from ....torch_text.global_names import resumed_function
from ....torch_text.wrapping import WIDTH, broken, comment, prose
from ....values import once
from ...formatting import no_version, short_names
from ...markdown import count
from .versions import MOST_LINES, Version, as_comment, signature

#: A line of text, and the user's line that made torch add the condition in it.
Line = tuple[str, SourceLocation | None]


def guards_file(version: Version, before: Version | None = None) -> str:
    """Return the file with all conditions of a version.

    Args:
        before: the version that it is compared with; the differences are above the function. Where they take more
            than :data:`MOST_LINES` lines, what only one version looks at is counted there, and listed at the end.
    """
    above, below = _differences(version, before, "the end of this file")
    function = "\n".join([*above, *[line for line, _ in function_lines(version)], ""])
    files = short_names(one.cause.filename for one in version.conditions if one.cause is not None)
    shortened = [f"{line}\n" for path, short in sorted(files.items(), key=lambda each: each[1])
                 if short != path for line in prose(f"{short}: {path}", "  ", "    ")]
    frame = version.frame
    resumed = resumed_function(frame.code_name)
    title = f"{frame.title or frame.name}{f' from line {resumed[1]} on' if resumed else ''}"
    head = f"All conditions of version {version.label} of {title}.\n\n"
    if version.failed:
        head = "\n".join([f"Conditions of compilation {version.label} of {title}, which failed.", "", *(
            line for text in no_version(version.compilation) for line in prose(text, "", "  ")), "", ""])
    head += "A comment after a condition says which line made torch ask for it.\n" if files else ""
    head += "Files:\n" + "".join(shortened) if shortened else ""
    body = f"{function}\n\n{helpers(function)}".rstrip() + "\n"
    body += "".join(f"{line}\n" for line in ["", "", *below]) if below else ""
    head = head.rstrip().replace("\\", "\\\\").replace('"', "'")
    return (f'"""{head}\n"""\n\nfrom __future__ import annotations\n\n{imports(body)}\n\n{body}')


def guard_lines(version: Version, before: Version | None = None) -> list[Line]:
    """Return the lines of the function with all conditions, under the differences from ``before`` in brief."""
    above, _ = _differences(version, before)
    return [*((line, None) for line in above), *function_lines(version)]


def _differences(version: Version, before: Version | None, whole: str = "") -> tuple[list[str], list[str]]:
    """Return the differences above the function, and all of them (which are in ``whole``) where those are in brief."""
    lines = as_comment(before, version) if before is not None else []
    if before is None or len(lines) <= MOST_LINES:
        return lines, []
    return as_comment(before, version, MOST_LINES, whole), lines


def function_lines(version: Version) -> list[Line]:
    """Return the lines of the function with all conditions. Several views need them."""
    return once(("guards", version), lambda: _function_lines(version))


def _function_lines(version: Version) -> list[Line]:
    lines: list[Line] = [(line, None) for line in definition(version.guards_name, signature(version.frame))]
    failed = [(line, None) for text in no_version(version.compilation) for line in comment(text, 4, 2)]
    if failed and not version.conditions:
        return [*lines, *failed, ("    return False", None)]
    if not version.conditions:
        return [*lines, ("    # torch gave no guards", None), ("    return True", None)]
    number, conditions = len(version.entry.guards), len(version.conditions)
    more = f" (Torch has {number} guards, of which some say the same.)" if number != conditions else ""
    lines += [(f'    """{count(conditions, "condition")}.{more}"""', None), *failed]
    if version.why_dead:
        lines += [(line, None) for line in comment(f"dead: {version.why_dead}", 4, 2)]
    lines.append(("    return (", None))
    files = short_names(one.cause.filename for one in version.conditions if one.cause is not None)
    for at, ((title, members), folded) in enumerate(zip(version.sections, version.folded)):
        lines += [(line, None) for line in comment(f"{title}: {count(len(members), 'condition')}", 8, 0)]
        lines += _conditions(folded, files, 8, at == 0)
    return [*lines, ("    )", None)]


def definition(name: str, parameters: str) -> list[str]:
    """Return ``def name(parameters):``, on several lines where it is long."""
    line = f"def {name}({parameters}):"
    if len(line) <= WIDTH:
        return [line]
    rows = textwrap.wrap(f"{parameters},", WIDTH, initial_indent="    ", subsequent_indent="    ",
                         break_long_words=False, break_on_hyphens=False)
    return [f"def {name}(", *rows, "):"]


def guard_groups(version: Version) -> dict[tuple[str, int, str], list[Line]]:
    """Return the conditions of a version, with the user's lines that made torch ask.

    They are by object (``"self.layers[i].norm"``, empty for torch's state), their number, and the loop over them
    (``"for i in range(32)"``, empty for one object).
    """
    groups: dict[tuple[str, int, str], list[Line]] = {}
    for item, loop in (each for folded in version.folded for each in unfolded(folded)):
        key = item.subject, len(item.payloads), loop
        groups.setdefault(key, []).append((item.text, item.payloads[0].cause))
    return groups


def _conditions(
    folded: Iterable[Item[Condition] | Block[Condition]], files: Mapping[str, str], indent: int, is_first: bool
) -> Iterator[Line]:
    """Yield the lines of conditions that ``and`` joins; ``files`` has the short names of files."""
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
        remark: a comment, on a separate line above the condition where there is no room.
    """
    lines = broken(f"{'' if is_first else 'and '}{f'({text})' if is_loose(text) else text}", indent)
    if len(lines[-1]) + len(remark) > WIDTH:
        return [f"{' ' * indent}{remark.strip()}", *lines]
    return [*lines[:-1], lines[-1] + remark]


# --- Source of the functions that guards call, as the files that use them have it ------------------
#: A file of these, separated by two empty lines.
_HELPERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "helpers.py.txt")
#: What each of the others means.
_MEANINGS = {
    "check_same_object": "the very object (function, class, module) that was there when compiling",
    "check_torch_function_mode_stack": "the same modes of __torch_function__ are on",
    "check_saved_tensors_hooks": "the same hooks for saved tensors are on (None: none)",
    "check_dict_unchanged": "nothing was put into the dictionary since",
    "torch_guard": "a condition that has no form in Python",
}
_MAKES = re.compile(r"\b(new(?:_\d+)?)\(class, \.\.\.\) does not call the class")


def helpers(text: str) -> str:
    """Return the definitions of the helpers that a text calls; empty if it calls none."""
    *defined, by_torch, new = _definitions()
    names = [source[len("def ") : source.index("(")] for source in defined]
    called = {name for name in (*names, *_MEANINGS) if f"{name}(" in text and occurs(f"{name}\\(", r"\w", text)}
    parts = [source for name, source in zip(names, defined) if name in called]
    # (The word is another one where the program has the name itself; the notes say which.)
    parts += [new.replace("new", word, 1) for word in sorted(set(_MAKES.findall(text))) if f"def {word}(" not in text]
    if others := [name for name in _MEANINGS if name in called]:
        parts.append(by_torch + "\n\n" + "\n".join(
            f"{name} = _checked_by_torch  # {_MEANINGS[name]}" for name in others) + "\n")
    return "\n\n".join(parts)


@functools.cache
def _definitions() -> list[str]:
    with open(_HELPERS, encoding="utf-8") as file:
        return [f"{text.strip()}\n" for text in file.read().split("\n\n\n")]


def occurs(form: str, not_before: str, text: str) -> bool:
    """Return whether a form of fixed length is in a text, after none of some characters.

    The look-behind comes last: a pattern that begins with letters is searched for much faster.
    """
    return re.search(rf"{form}(?<![{not_before}]{form})", text) is not None


def imports(text: str) -> str:
    """Return the imports that a text with its helpers needs."""
    needed = [name for name in ("math", "re", "torch") if occurs(rf"{name}\.", r"\w.", text)]
    lines = [f"import {name}" for name in needed]
    if "torch" in needed:
        lines = [*lines[:-1], *([""] if len(lines) > 1 else []), lines[-1]]
    names = [name for name, form in (("device", r"device\("), ("inf", r"inf\b(?!\()"), ("nan", r"nan\b(?!\()"))
             if occurs(form, r"\w.'\"", text)]
    if "utils_device." in text:
        lines.append("import torch.utils._device as utils_device")
    if names:
        lines.append(f"from torch import {', '.join(names)}")
    return "\n".join(lines) + "\n" if lines else ""
