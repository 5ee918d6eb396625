"""The conditions that a call must satisfy to be served by a version, on one screen.

The conditions that a caller decides about stand one by one: tensors, numbers, flags, keys of the arguments, sizes that
are open, then what the function closes over, values that objects and globals must have. All others are counted. They
stand in a file of their own (:mod:`depyf.views.dump.guards.whole`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....torch_text.wrapping import comment
from ...formatting import COMPUTED
from ...line_breaks import WIDTH, broken
from ...markdown import count
from .conditions import ARGUMENTS, CLOSURE, GLOBALS, OBJECTS, STATE, Condition, is_loose
from .facts import INTERNALS, Fact, state_in_words, state_of
from .layers import Block, Item, expand, fold, one_by_one, spelled
from .sizes import symbol_names
from .versions import Version, signature
from .whole import definition, sections

#: Lines of one version in the full code.
LONGEST = 40
#: Values of objects and of globals that are shown; the others are counted.
VALUES = 8
#: Lines that are reserved for values that tell this version from all others.
RESERVED = 4
#: Lines that are reserved for values of which another version wants another one.
TO_DECIDE = 12
_INDENT = 8
#: More versions than any function has.
_ANY = 1 << 30
_ON_STACK = re.compile(r"___stack\d+")
#: A key of a dictionary at its place in the order.
_KEY_IN_ORDER = re.compile(r"list\((?P<owner>.*)\)\[(?P<at>\d+)\] == (?P<key>'[^'\\]*'|-?\d+)")


@dataclass(frozen=True)
class _Shown:
    """Something that is shown: its lines, without the ``and`` before it, and the conditions that it stands for."""

    text: str
    comment: str = ""
    covers: tuple[Condition, ...] = ()


def call_guards(
    version: Version, telling: Mapping[str, int] | None = None, decide: Collection[str] = ()
) -> list[str]:
    """Return the lines of the function: at most ``LONGEST``.

    Args:
        version: the version.
        telling: texts of conditions that tell the versions of the function apart
            (:func:`depyf.views.dump.guards.versions.of_some`).
        decide: those that want another thing of an object than another version does
            (:func:`depyf.views.dump.guards.versions.deciding`).
    """
    total = len(version.conditions)
    lines = definition(version.guards_name, signature(version.frame))
    if not total:
        return [*lines, "    # torch gave no guards", "    return True"]
    head = f'    """A call is served by version {version.label} if all of this holds.'
    if version.dead:
        head = f'    """Version {version.label} served one call, for which all of this held.'
    where = f'All {count(total, "condition")}: {version.guards_file}."""'
    lines += [f"{head} {where}"] if len(head) + len(where) < WIDTH else [head, "", f"    {where}"]
    if version.why_dead:
        lines += comment(f"dead: {version.why_dead}", 4, 2)
    lines.append("    return (")
    counted = _Counted(version, decide)
    writer = _Writer(LONGEST - len(lines) - 1)
    room = writer.room - counted.at_most()
    deciding = _deciding_values(version, telling or {}, decide)
    values = [*deciding, *_values(version, telling or {}, decide)]
    reserved = _reserved_lines(values[len(deciding) :], telling or {}, min(sum(map(_height, deciding)), TO_DECIDE))
    for title, shown in (
        ("arguments", [*_stack(version), *_arguments(version, ARGUMENTS, decide)]),
        ("sizes", list(_sizes(version))),
        ("variables of the enclosing function", list(_arguments(version, CLOSURE, decide))),
        ("values", values),
    ):
        taken = writer.section(title, shown, room if shown is values else room - reserved)
        counted.take(taken)
        room -= writer.used_by_last
    for line in counted.lines():
        writer.comment(line)
    body = writer.lines if writer.any else [*writer.lines, " " * _INDENT + "True"]
    return [*lines, *body, "    )"]


class _Writer:
    def __init__(self, room: int) -> None:
        self.lines: list[str] = []
        self.room = room
        self.any = False
        self.used_by_last = 0

    def comment(self, text: str) -> None:
        self.lines += comment(text, _INDENT, 0)

    def section(self, title: str, shown: Sequence[_Shown], room: int) -> list[Condition]:
        """Write what has room; return the conditions that are said."""
        before = len(self.lines)
        covered: list[Condition] = []
        if shown and room > 1:
            self.comment(title)
            room -= 1
            for each in shown:
                lines = self._lines(each)
                if len(lines) > room:
                    break
                room -= len(lines)
                self.lines += lines
                self.any = self.any or bool(each.text)
                covered += each.covers
            if len(self.lines) == before + 1:
                self.lines.pop()
        self.used_by_last = len(self.lines) - before
        return covered

    def _lines(self, shown: _Shown) -> list[str]:
        if not shown.text:
            return comment(shown.comment, _INDENT, 0)
        text = f"({shown.text})" if is_loose(shown.text) else shown.text
        behind = f"  # {shown.comment}" if shown.comment else ""
        lines = broken(("and " if self.any else "") + text, _INDENT)
        if len(lines[-1]) + len(behind) > WIDTH:
            return [f"{' ' * _INDENT}{behind.strip()}", *lines]
        lines[-1] += behind
        return lines


# --- what is shown ----------------------------------------------------------------------------------
def _stack(version: Version) -> Iterator[_Shown]:
    """Yield a comment on the values that lay on the stack at a graph break, where they are known."""
    named = {one.root for one in version.conditions}
    known = [f"{name}: {expression}" for number, expression in enumerate(version.frame.stack)
             if expression and (name := f"___stack{number}") in named]
    if known:
        yield _Shown("", f"{COMPUTED}: {', '.join(known)}")


def _arguments(version: Version, section: str, decide: Collection[str]) -> Iterator[_Shown]:
    """Yield the conditions on arguments (or variables of the enclosing function), one object after another."""
    mine = [one for one in version.conditions
            if one.section == section and (one.text in decide or not INTERNALS.search(one.subject))]
    known = version.facts
    items: list[Item[tuple[Condition, ...]]] = []
    keys = _Keys(mine, version)
    symbols = symbol_names(version.compilation)
    for one in mine:
        if _is_about_sizes(one):
            continue
        if one.text in version.sizes.implied or one in keys.covered:
            if one in keys.first:
                text, owner = keys.first[one]
                items.append(Item(text, owner, keys.covers[owner]))
            continue
        shown = _shown_of(one, known, version) or (one.text if one.text in decide else None)
        if shown is not None:
            items.append(Item(shown, one.subject, (one,)))
    for each in fold(_without_repetition(items)):
        if isinstance(each, Item):
            symbol = symbols.get(each.subject) if each.text.startswith("check_type(") else None
            yield _Shown(each.text, f"open (torch: {symbol})" if symbol else "", each.payload)
        else:
            yield _Shown(_all_of(each), covers=tuple(_in_block(each, items)))


def _shown_of(one: Condition, known: dict[str, Fact], version: Version) -> str | None:
    """Return the condition as it is shown; ``None`` if it is counted."""
    if one.tensor is not None:
        return version.sizes.check(one)
    read = version.fact_of(one)
    if read is None:
        if one.text.startswith(("has_no_marks", "check_dict_unchanged(", "not hasattr(")) or ".__dict__" in one.text:
            return None
        if one.text.startswith("check_no_aliasing("):
            return one.text if one.text.count("(") == 1 and "self" not in one.text and len(one.text) < 100 else None
        return one.text if one.section == ARGUMENTS or one.subject in known or one.section == CLOSURE else None
    subject, fact = read
    if fact.kind == "value":
        return one.text
    if fact.kind == "type":
        # What has a value needs no type, and what is looked into has one that its parts show.
        if known[subject].kind != "type" or f"len({subject})" in known or subject in ("args", "kwargs"):
            return None
        return one.text
    if fact.kind == "object" and _ON_STACK.fullmatch(subject):
        return one.text
    if fact.kind == "object" and not one.text.endswith(("'builtin_function_or_method')", "'function')", "'method')",
                                                        "'code')", "'module')", "'type')")):
        return one.text
    return None


class _Keys:
    """The keys of a dictionary, where the guards name all of them: ``set(kwargs) == {'input_ids'}``.

    And where they name them in their order: ``list(weights)[:2] == ['a', 'b']``.
    """

    def __init__(self, mine: Sequence[Condition], version: Version) -> None:
        self.covered: set[Condition] = set()
        self.first: dict[Condition, tuple[str, str]] = {}
        self.covers: dict[str, tuple[Condition, ...]] = {}
        absent: dict[str, list[Condition]] = {}
        lengths: dict[str, tuple[int, Condition]] = {}
        keys: dict[str, dict[str, None]] = {}
        for one in mine:
            outside = re.fullmatch(r"'[^']*' not in (.*)", one.text)
            if outside:
                absent.setdefault(outside[1], []).append(one)
            length = re.fullmatch(r"len\((.*)\) == (\d+)", one.text)
            if length:
                lengths[length[1]] = int(length[2]), one
            for match in re.finditer(r"\['[^'\\]*'\]", one.subject):
                keys.setdefault(one.subject[: match.start()], {})[match[0][1:-1]] = None
        self._name_in_order(mine)
        for owner in dict.fromkeys([*absent, *lengths]):
            size, length_condition = lengths.get(owner, (0, None))
            group = list(absent.get(owner, ()))
            if length_condition is not None and size == len(keys.get(owner, ())):
                group.append(length_condition)
                text = f"set({owner}) == {{{', '.join(keys[owner])}}}"
            elif len(group) > 1:
                names = ", ".join(one.text.partition(" not in ")[0] for one in group)
                text = f"not {{{names}}} & set({owner})"
            else:
                continue
            self.covered |= set(group)
            first = min(group, key=mine.index)
            self.first[first] = text, owner
            self.covers[owner] = tuple(group)


    def _name_in_order(self, mine: Sequence[Condition]) -> None:
        ordered: dict[str, list[tuple[Condition, str]]] = {}
        for one in mine:
            key = _KEY_IN_ORDER.fullmatch(one.text)
            if key and int(key["at"]) == len(ordered.setdefault(key["owner"], [])):
                ordered[key["owner"]].append((one, key["key"]))
        for owner, known in ordered.items():
            if len(known) > 1:
                group = tuple(one for one, _ in known)
                self.covered |= set(group)
                text = f"list({owner})[:{len(known)}]"
                self.first[group[0]] = f"{text} == [{', '.join(key for _, key in known)}]", text
                self.covers[text] = group


def _without_repetition(items: Iterable[Item[tuple[Condition, ...]]]) -> list[Item[tuple[Condition, ...]]]:
    result: dict[str, Item[tuple[Condition, ...]]] = {}
    for item in items:
        known = result.get(item.text)
        result[item.text] = item if known is None else Item(item.text, item.subject, known.payload + item.payload)
    return list(result.values())


def _all_of(block: Block[Any]) -> str:
    parts = [each.text if isinstance(each, Item) else _all_of(each) for each in block.body]
    parts = [f"({part})" if is_loose(part) else part for part in parts]
    return f"all({' and '.join(parts)} {block.loop()})"


def _in_block(block: Block[tuple[Condition, ...]], items: Iterable[Item[tuple[Condition, ...]]]) -> Iterator[Condition]:
    """Yield the conditions of all members of a block."""
    beginnings = tuple(f"{block.container}[{number}]" for number in block.numbers)
    if any(letter in block.container for letter in ("[i]", "[j]")):
        return
    for item in items:
        if item.subject.startswith(beginnings):
            yield from item.payload


def _sizes(version: Version) -> Iterator[_Shown]:
    """Yield the open sizes with their ranges, and the conditions on them that are not said by their names."""
    for size in version.sizes.open.values():
        behind = f"{size.name}: {size.range_in_words()}" + (f" (torch: {size.symbol})" if size.symbol else "")
        mine = tuple(one for one in version.conditions if one.text in version.sizes.implied
                     and re.fullmatch(rf"(-?\d+ <= )?{re.escape(size.expression)}( <= \d+)?", one.text))
        if size.low is None and size.high is None:
            yield _Shown("", f"{size.expression} is {behind}", mine)
        else:
            low = f"{size.low} <= " if size.low is not None else ""
            high = f" <= {size.high}" if size.high is not None else ""
            yield _Shown(f"{low}{size.expression}{high}", behind, mine)
    for one in version.conditions:
        if _is_about_sizes(one) and one.text not in version.sizes.implied:
            yield _Shown(one.text, covers=(one,))


def _is_about_sizes(one: Condition) -> bool:
    return one.section == ARGUMENTS and ".shape[" in one.text and one.tensor is None


def _height(shown: _Shown) -> int:
    """Return about how many lines something takes."""
    return len(broken(f"and {shown.text}", _INDENT))


def _reserved_lines(values: Sequence[_Shown], telling: Mapping[str, int], deciding: int) -> int:
    """Return the number of lines reserved for the values that tell this version from every other.

    Args:
        deciding: lines for those of which another version wants another one.
    """
    own = max(min(sum(telling.get(each.covers[0].text) == 0 for each in values), RESERVED), deciding)
    return own + bool(own)


def _deciding_values(version: Version, telling: Mapping[str, int], decide: Collection[str]) -> list[_Shown]:
    """Return the conditions on objects and globals of which another version wants another thing.

    One that holds for several layers stands once. The fewer versions want the same, the earlier it stands.
    """
    by_text: dict[str, list[Condition]] = {}
    for one in version.conditions:
        if one.section in (OBJECTS, GLOBALS) and one.text in decide:
            by_text.setdefault(version.sizes.check(one) if one.tensor is not None else one.text, []).append(one)
    folded = fold([Item(text, members[0].subject, text) for text, members in by_text.items()])
    shown = [_Shown(each.text if isinstance(each, Item) else _all_of(each), covers=tuple(
        one for _, text in expand([each]) for one in by_text.get(text, ()))) for each in one_by_one(folded)]
    return sorted(shown, key=lambda each: min((telling.get(one.text, _ANY) for one in each.covers), default=_ANY))


def _values(version: Version, telling: Mapping[str, int], decide: Collection[str]) -> list[_Shown]:
    """Return the conditions on attributes of objects and globals, the most telling first: what few versions have.

    Then those on values that are most likely to change. Those that decide are left out.
    """
    shown = [*_values_of(version, OBJECTS, telling, decide), *_values_of(version, GLOBALS, telling, decide)]
    return sorted(shown, key=lambda each: telling.get(each.covers[0].text) != 0)


def _values_of(
    version: Version, section: str, telling: Mapping[str, int], decide: Collection[str]
) -> list[_Shown]:
    groups: dict[str, list[Condition]] = {}
    for one in version.conditions:
        if one.section != section or one.text in decide:
            continue
        tells, read = one.text in telling, version.fact_of(one)
        if one.tensor is not None and (section == GLOBALS or tells):
            text = version.sizes.check(one)
        elif one.is_computed or read is not None and (tells or _is_value_of_program(one, *read)):
            text = one.text
        else:
            continue
        if tells or not INTERNALS.search(one.text) and not re.search(r"\._\w+$", one.subject):
            groups.setdefault(text, []).append(one)
    once = {each.text for each in fold([Item(text, members[0].subject, None) for text, members in groups.items()])
            if isinstance(each, Item)}
    shown = [(text, members) for text, members in groups.items() if text in once]  # (those of layers are counted)
    shown.sort(key=lambda each: (
        not each[1][0].is_computed, telling.get(each[1][0].text, _ANY), each[1][0].tensor is None,
        not each[1][0].subject.endswith(".training"),
        each[1][0].subject.count(".")))
    return [_Shown(text, covers=tuple(members)) for text, members in shown[:VALUES]]


def _is_value_of_program(one: Condition, subject: str, fact: Fact) -> bool:
    return fact.kind == "value" and subject == one.subject and "torch." not in one.subject and (
        one.text != f"{one.subject} == torch.{one.subject.rpartition('.')[2]}")


# --- what is counted --------------------------------------------------------------------------------
class _Counted:
    """The conditions that are not shown, counted by section."""

    def __init__(self, version: Version, decide: Collection[str]) -> None:
        self._version = version
        self._decide = decide
        implied = version.sizes.implied
        self._left = {id(one): one for one in version.conditions if one.text not in implied}
        self._implied = {id(one) for one in version.conditions if one.text in implied}

    def at_most(self) -> int:
        """Return the greatest number of lines that there can be."""
        return len(sections(self._version)) + 4 + bool(self._decide)

    def take(self, shown: Iterable[Condition]) -> None:
        for one in shown:
            self._left.pop(id(one), None)
            self._implied.discard(id(one))

    def lines(self) -> Iterator[str]:
        deciding = sum(one.text in self._decide for one in self._left.values())
        if deciding:
            more = "conditions that tell versions apart stand" if deciding > 1 else (
                "condition that tells versions apart stands")
            yield f"{deciding} {more} in {self._version.guards_file} only"
        if self._implied:
            yield f"{len(self._implied)} more on sizes and strides that the shapes and ranges above say"
        for title, members in sections(self._version):
            left = [one for one in members if id(one) in self._left]
            if not left:
                continue
            section = left[0].section
            if section == STATE:
                yield f"{len(left)} on torch's state" + _state(self._version)
            elif section == OBJECTS:
                yield from _of_object(title, left)
            elif section == GLOBALS:
                roots = _roots(left)
                yield f"{len(left)} on modules and globals" + (f" ({roots})" if roots else "")
            else:
                yield f"{len(left)} more on {title} ({_kinds(left)})"


def _state(version: Version) -> str:
    state = state_of(version.conditions)
    shown = [state_in_words(name, state[name]) for name in ("grad_mode", "autocast", "default_dtype") if name in state]
    return f" ({', '.join(shown)}, ...)" if shown else ""


def _of_object(root: str, left: Sequence[Condition]) -> Iterator[str]:
    """Yield lines such as ``480 conditions on self.layers: 24 a layer, the same for 0 to 19``."""
    folded = fold([Item(one.text, one.subject, one) for one in left])
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


def _roots(left: Iterable[Condition]) -> str:
    """Modules and variables that conditions are about, modules first."""
    names: dict[str, None] = {}
    for one in left:
        if one.text == f"check_same_object({one.subject}, 'module')":
            names[one.subject] = None
    for one in left:
        if not one.root.startswith(("__", "torch.")) and "." not in one.root:
            names[one.root] = None
    first = sorted(names, key=len)[-3:] if len(names) < 3 else list(names)[:3]
    return ", ".join(first) + (", ..." if len(names) > len(first) else "")


_KINDS: tuple[tuple[str, Callable[[Condition], Any]], ...] = (
    ("marks of mark_dynamic", lambda one: one.text.startswith("has_no_marks")),
    ("tensors", lambda one: one.tensor is not None),
    ("identity", lambda one: " is " in one.text or one.text.startswith("check_no_aliasing(")),
    ("absent keys and attributes", lambda one: any(part in one.text for part in (".__dict__", "hasattr(", " not in "))),
    ("functions and classes", lambda one: one.text.startswith("check_same_object(") or INTERNALS.search(one.subject)),
    ("types", lambda one: one.text.startswith("check_type(")),
    ("values", lambda one: True),
)


def _kinds(left: Iterable[Condition]) -> str:
    """Return the kinds of these conditions, the most frequent first."""
    names = Counter(next(name for name, fits in _KINDS if fits(one)) for one in left)
    first = [name for name, _ in names.most_common(4)]
    return ", ".join(first) + (", ..." if len(names) > len(first) else "")
