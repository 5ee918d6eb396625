"""The conditions of a version as Python functions: those that a call must satisfy, on one screen, and all of them.

All conditions are in a separate file, in sections: arguments, variables of the enclosing function, its objects layer by
layer, modules and globals, torch's state. What repeats from layer to layer is written once.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ....model import guards
from ....model.folding import Block, Item, fold_layers, spelled, unfolded
from ....model.guards import ARGUMENTS, CLOSURE, GLOBALS, OBJECTS, STATE, Condition, Tensor, is_loose
from ....model.reading import keys_in
from ....reading import own_text
from ....records.model import SourceLocation
from ....torch_text.global_names import resumed_function
from ....torch_text.user_expressions import known_on_stack, stack_value
from ....torch_text.wrapping import WIDTH, broken, comment, prose
from ....values import frozen, once
from ...formatting import COMPUTED, no_version, short_names
from ...markdown import count
from .sizes import symbol_names
from .versions import MOST_LINES, Fact, Version, as_comment, fact_of, signature, state_in_words

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
    """Return the lines of a condition that ``and`` joins to others; a remark that does not fit is above it."""
    lines = broken(f"{'' if is_first else 'and '}{f'({text})' if is_loose(text) else text}", indent)
    if len(lines[-1]) + len(remark) > WIDTH:
        return [f"{' ' * indent}{remark.strip()}", *lines]
    return [*lines[:-1], lines[-1] + remark]


# --- Source of the functions that guards call, as the files that use them have it ------------------
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
    *defined, by_torch, new = (
        f"{each.strip()}\n" for each in own_text("views/dump/guards/helpers.py.txt").split("\n\n\n"))
    names = [source[len("def ") : source.index("(")] for source in defined]
    called = {name for name in (*names, *_MEANINGS) if f"{name}(" in text and occurs(f"{name}\\(", r"\w", text)}
    parts = [source for name, source in zip(names, defined) if name in called]
    # (The word is another one where the program has the name itself; the notes say which.)
    parts += [new.replace("new", word, 1) for word in sorted(set(_MAKES.findall(text))) if f"def {word}(" not in text]
    if others := [name for name in _MEANINGS if name in called]:
        parts.append(by_torch + "\n\n" + "\n".join(
            f"{name} = _checked_by_torch  # {_MEANINGS[name]}" for name in others) + "\n")
    return "\n\n".join(parts)


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


# --- The conditions that a call must satisfy to be served by a version, on one screen ----------------
# Those that a caller decides about are listed: tensors, numbers, flags, keys of the arguments, open sizes, then
# variables of the enclosing function, values of objects and globals. All others are counted, and are in the file.
#: Lines of one version in the full code.
LONGEST = 40
VALUES = 8  #: Values of objects and of globals that are shown; the others are counted.
RESERVED = 4  #: Lines that are reserved for values by which this version differs from all others.
#: Lines that are reserved for values of which another version wants another one.
TO_DECIDE = 12
_INDENT = 8
_ANY = 1 << 30  #: More versions than any function has.
#: Classes of objects that say how an object was made: which of them it is, is not shown.
_CODE = ("builtin_function_or_method", "function", "method", "code", "module", "type")


@frozen
class _Shown:
    """A condition, or only a comment, and the conditions of the version that it expresses."""

    text: str
    comment: str = ""
    covers: tuple[Condition, ...] = ()


def call_guards(version: Version, telling: Mapping[str, int] | None = None, decide: Collection[str] = ()) -> list[str]:
    """Return the lines of the function: at most ``LONGEST``.

    Args:
        telling: texts of conditions in which the versions of the function differ, with how many others have them
            (:func:`.versions.not_in_all`).
        decide: those that want another thing of an object than another version does (:func:`.versions.deciding`).
    """
    if not version.conditions:
        return [line for line, _ in function_lines(version)]
    lines, telling = definition(version.guards_name, signature(version.frame)), telling or {}
    head = f'    """A call is served by version {version.label} if all of this holds.'
    if version.dead:
        head = f'    """Version {version.label} served one call, for which all of this held.'
    where = f'All {count(len(version.conditions), "condition")}: {version.guards_file}."""'
    lines += [f"{head} {where}"] if len(head) + len(where) < WIDTH else [head, "", f"    {where}"]
    if version.why_dead:
        lines += comment(f"dead: {version.why_dead}", 4, 2)
    lines.append("    return (")
    room = LONGEST - len(lines) - 1 - len(version.sections) - 4 - bool(decide)  # (lines for what is counted)
    deciding = _deciding_values(version, telling, decide)
    values = [*deciding, *_values(version, telling, decide)]
    unique = sum(telling.get(each.covers[0].text) == 0 for each in values[len(deciding) :])
    height = sum(len(broken(f"and {each.text}", _INDENT)) for each in deciding)
    reserved = max(min(unique, RESERVED), min(height, TO_DECIDE))
    reserved += bool(reserved)  # (the title)
    left = {id(one): one for one in version.conditions}
    body: list[str] = []
    is_first = True
    named = {one.root for one in version.conditions}
    known = [f"{name}: {text}" for name, text in known_on_stack(version.frame.stack).items() if name in named]
    on_stack = [_Shown("", f"{COMPUTED}: {', '.join(known)}")] if known else []
    for title, shown in (
        ("arguments", [*on_stack, *_arguments(version, ARGUMENTS, decide)]),
        ("sizes", list(_sizes(version))),
        ("variables of the enclosing function", list(_arguments(version, CLOSURE, decide))),
        ("values", values),
    ):
        section = comment(title, _INDENT, 0)
        empty = len(section)
        for each in shown:
            added = joined(each.text, f"  # {each.comment}" if each.comment else "", is_first, _INDENT) \
                if each.text else comment(each.comment, _INDENT, 0)
            if len(body) + len(section) + len(added) + (0 if shown is values else reserved) > room:
                break
            section += added
            is_first = is_first and not each.text
            for one in each.covers:
                left.pop(id(one), None)
        body += section if len(section) > empty else []
    body += [line for text in _counted(version, left, decide) for line in comment(text, _INDENT, 0)]
    return [*lines, *body, *([f"{' ' * _INDENT}True"] if is_first else []), "    )"]


# --- what is shown ----------------------------------------------------------------------------------
def _arguments(version: Version, section: str, decide: Collection[str]) -> Iterator[_Shown]:
    """Yield the conditions on arguments (or variables of the enclosing function), one object after another."""
    mine = [one for one in version.conditions
            if one.section == section and (one.text in decide or not one.is_of_internal)]
    known = version.facts
    items: list[Item[Condition]] = []
    keys = _joined_keys(mine)
    symbols = symbol_names(version.compilation)
    for one in mine:
        if one in keys:
            items += filter(None, [keys[one]])
        elif not (one.is_on_sizes and section == ARGUMENTS) and one.text not in version.sizes.implied:
            shown = _shown_of(one, known, version) or (one.text if one.text in decide else None)
            items += [Item(shown, one.subject, (one,))] if shown is not None else []
    for each in _folded(items):
        is_type = isinstance(each, Item) and isinstance(each.payloads[0], guards.Type)
        symbol = symbols.get(each.payloads[0].subject) if isinstance(each, Item) and is_type else None
        yield _shown(each, f"open (torch: {symbol})" if symbol else "")


def _shown_of(one: Condition, known: dict[str, Fact], version: Version) -> str | None:
    """Return the condition as it is shown; ``None`` if it is only counted."""
    if isinstance(one, Tensor):
        return version.sizes.text(one)
    decides = fact_of(one, version.sizes) is not None
    match one:
        case guards.Type() if decides:
            # What has a value needs no type, and what is looked into has one that its parts show.
            shown = known[one.of].kind == "type" and f"len({one.of})" not in known and one.of not in ("args", "kwargs")
        case guards.SameObject() if decides:
            shown = one.name not in _CODE or bool(stack_value(one.of))
        case guards.Marks() | guards.Unchanged() | guards.Has(present=False, is_attribute=True):
            shown = False
        case guards.NoAliasing():
            shown = "(" not in "".join(one.tensors) and "self" not in one.text and len(one.text) < 100
        case _:
            shown = decides or ".__dict__" not in one.subject
    return one.text if shown else None


def _joined_keys(mine: Sequence[Condition]) -> dict[Condition, Item[Condition] | None]:
    """Return the conditions on keys of dictionaries that are shown as one; the first of them has its text.

    Where the guards name all keys, ``set(kwargs) == {'input_ids'}``; where they name them in order,
    ``list(weights)[:2] == ['a', 'b']``; else ``not {'mask', 'labels'} & set(kwargs)``.
    """
    absent: dict[str, list[guards.Has]] = {}
    ordered: dict[str, list[guards.KeyAt]] = {}
    lengths: dict[str, guards.Length] = {}
    keys: dict[str, dict[str, None]] = {}
    for one in mine:
        match one:
            case guards.Has(present=False, is_attribute=False) if one.key[0] == "'":
                absent.setdefault(one.owner, []).append(one)
            case guards.Length(as_truth=False):
                lengths[one.of] = one
            case guards.KeyAt() if one.place == len(ordered.setdefault(one.owner, [])):
                ordered[one.owner].append(one)
        for owner, key in keys_in(one.subject):
            keys.setdefault(owner, {})[key] = None
    result: dict[Condition, Item[Condition] | None] = {}

    def join(text: str, subject: str, group: Sequence[Condition]) -> None:
        result.update(dict.fromkeys(group))
        result[min(group, key=mine.index)] = Item(text, subject, tuple(group))

    for owner, in_order in ordered.items():
        if len(in_order) > 1:
            first = f"list({owner})[:{len(in_order)}]"
            join(f"{first} == [{', '.join(one.key for one in in_order)}]", first, in_order)
    for owner in dict.fromkeys([*absent, *lengths]):
        group, length = absent.get(owner, []), lengths.get(owner)
        if length is not None and length.count == len(keys.get(owner, ())):
            join(f"set({owner}) == {{{', '.join(keys[owner])}}}", owner, [*group, length])
        elif len(group) > 1:
            join(f"not {{{', '.join(one.key for one in group)}}} & set({owner})", owner, group)
    return result


def _folded(items: Iterable[Item[Condition]]) -> list[Item[Condition] | Block[Condition]]:
    """Return the items folded by layer, each text once."""
    by_text: dict[str, Item[Condition]] = {}
    for item in items:
        payloads = by_text[item.text].payloads if item.text in by_text else ()
        by_text[item.text] = Item(item.text, item.subject, payloads + item.payloads)
    return fold_layers(list(by_text.values()))


def _shown(each: Item[Condition] | Block[Condition], remark: str = "") -> _Shown:
    if isinstance(each, Item):
        return _Shown(each.text, remark, each.payloads)
    return _Shown(_all_of(each), remark, tuple(one for item, _ in unfolded([each]) for one in item.payloads))


def _all_of(block: Block[Condition]) -> str:
    parts = [each.text if isinstance(each, Item) else _all_of(each) for each in block.body]
    parts = [f"({part})" if is_loose(part) else part for part in parts]
    return f"all({' and '.join(parts)} {block.loop()})"


def _sizes(version: Version) -> Iterator[_Shown]:
    """Yield the open sizes with their ranges, and the conditions on them that their names do not express."""
    for size in version.sizes.open.values():
        name = f"{size.name}: {size.range.in_words()}" + (f" (torch: {size.symbol})" if size.symbol else "")
        mine = tuple(one for one in version.conditions if isinstance(one, guards.Range) and one.left == size.expression
                     and one.text in version.sizes.implied)
        shown = guards.Range(left=size.expression, low=size.range.low, high=size.range.high).text
        yield _Shown(shown, name, mine) if shown != size.expression else _Shown("", f"{shown} is {name}", mine)
    for one in version.conditions:
        if one.is_on_sizes and one.section == ARGUMENTS and one.text not in version.sizes.implied:
            yield _Shown(one.text, covers=(one,))


def _deciding_values(version: Version, telling: Mapping[str, int], decide: Collection[str]) -> list[_Shown]:
    """Return the conditions on objects and globals, of layers once, in which versions differ, the rarest first."""
    folded = _folded(Item(version.sizes.text(one), one.subject, (one,)) for one in version.conditions
                     if one.section in (OBJECTS, GLOBALS) and one.text in decide)
    shown = (_Shown(f"all({item.text} {loops})" if loops else item.text, "", item.payloads)
             for item, loops in unfolded(folded))
    return sorted(shown, key=lambda each: min((telling.get(one.text, _ANY) for one in each.covers), default=_ANY))


def _values(version: Version, telling: Mapping[str, int], decide: Collection[str]) -> list[_Shown]:
    """Return the other conditions on objects and globals: those of no other version, then what changes most likely."""
    result: list[_Shown] = []
    for section in (OBJECTS, GLOBALS):
        folded = _folded(Item(version.sizes.text(one), one.subject, (one,)) for one in version.conditions
                         if one.section == section and one.text not in decide
                         and one.text not in version.sizes.implied and _is_shown(one, one.text in telling, version))
        # (Those of layers are counted. What a call is most likely to change comes first.)
        shown = sorted((each for each in folded if isinstance(each, Item)), key=lambda each: (
            not (one := each.payloads[0]).is_computed, telling.get(one.text, _ANY), not isinstance(one, Tensor),
            not one.subject.endswith(".training"), one.subject.count(".")))
        result += map(_shown, shown[:VALUES])
    return sorted(result, key=lambda each: telling.get(each.covers[0].text) != 0)


def _is_shown(one: Condition, differs: bool, version: Version) -> bool:
    """Return whether a condition on an object or a global is shown; ``differs``: another version does not have it."""
    if differs:
        return isinstance(one, Tensor) or one.is_computed or fact_of(one, version.sizes) is not None
    owner, _, name = one.subject.rpartition(".")
    if one.is_of_internal or owner and name.startswith("_") and name.isidentifier():
        return False
    return one.is_computed or isinstance(one, Tensor) and one.section == GLOBALS or (
        isinstance(one, guards.Equals) and one.left == one.subject and "torch." not in one.subject
        and (one.sign, one.right) != ("==", f"torch.{name}"))


# --- what is counted --------------------------------------------------------------------------------
def _counted(version: Version, left: Mapping[int, Condition], decide: Collection[str]) -> Iterator[str]:
    """Yield how many conditions are not shown, by section; ``left`` are these, by the ids of the objects."""
    implied = version.sizes.implied
    deciding = sum(one.text in decide and one.text not in implied for one in left.values())
    if deciding:
        verb = "is" if deciding == 1 else "are"
        yield f"{count(deciding, 'condition')} in which versions differ {verb} in {version.guards_file} only"
    said = sum(one.text in implied for one in left.values())
    if said:
        yield f"{said} more on sizes and strides that the shapes and ranges above say"
    for title, members in version.sections:
        rest = [one for one in members if id(one) in left and one.text not in implied]
        if not rest:
            continue
        section = rest[0].section
        if section == STATE:
            shown = [state_in_words(name, version.state[name]) for name in ("grad_mode", "autocast", "default_dtype")
                     if name in version.state]
            yield f"{len(rest)} on torch's state" + (f" ({', '.join(shown)}, ...)" if shown else "")
        elif section == OBJECTS:
            yield from _object_lines(title, rest)
        elif section == GLOBALS:
            names = list(dict.fromkeys([  # (modules first)
                *(one.subject for one in rest if isinstance(one, guards.SameObject) and one.name == "module"),
                *(one.root for one in rest if not one.root.startswith(("__", "torch.")) and "." not in one.root)]))
            roots = ", ".join(names[:3]) + ", ..." * (len(names) > 3)
            yield f"{len(rest)} on modules and globals" + (f" ({roots})" if roots else "")
        else:
            yield f"{len(rest)} more on {title} ({_kinds(rest)})"


def _object_lines(root: str, left: Sequence[Condition]) -> Iterator[str]:
    """Yield lines such as ``480 on self.layers, by layer: 24 a layer, the same for layers 0 to 19``."""
    folded = fold_layers([Item(one.text, one.subject, (one,)) for one in left])
    blocks: dict[str, list[Block[Condition]]] = {}
    for each in folded:
        if isinstance(each, Block):
            blocks.setdefault(each.container, []).append(each)
    in_layers = 0
    largest = [each for each in sorted(blocks.items(), key=lambda each: -sum(block.count for block in each[1]))
               if "(" not in each[0] and max(block.count for block in each[1]) >= len(each[1][0].numbers) * 4]
    for container, group in largest[:2]:
        number = sum(block.count for block in group)
        in_layers += number
        best = max(group, key=lambda block: block.count)
        more = number - best.count
        yield (f"{number} on {container}, by layer: {best.count // len(best.numbers)} a layer, the same for layers "
               f"{spelled(best.numbers)}" + (f"; {more} on some" if more else ""))
    rest = len(left) - in_layers
    if rest:
        yield f"{rest} more on {root} ({_kinds(left)})"


def _kinds(left: Iterable[Condition]) -> str:
    """Return the kinds of conditions, the most frequent first."""
    names = Counter(map(_kind, left))
    return ", ".join(name for name, _ in names.most_common(4)) + ", ..." * (len(names) > 4)


def _kind(one: Condition) -> str:
    match one:
        case guards.Marks():
            return "marks of mark_dynamic"
        case Tensor():
            return "tensors"
        case guards.NoAliasing() | guards.Comparison(sign="is" | "is not"):
            return "identity"
        case guards.Has(present=False):
            return "absent keys and attributes"
    if ".__dict__" in one.subject:
        return "absent keys and attributes"
    if isinstance(one, guards.SameObject) or one.is_of_internal:
        return "functions and classes"
    return "types" if isinstance(one, guards.Type) else "values"
