"""Guards of the records -> conditions: the only place that parses their text."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..records.model import Frame, Guard
from ..torch_text.guards import inference_of
from ..torch_text.parsed import literal, parsed_expression
from ..torch_text.user_expressions import user_expression
from . import guards
from .arithmetic import computes, number, plain, plain_sizes
from .guards import ARGUMENTS, CLOSURE, GLOBALS, OBJECTS, STATE, Condition, Tensor

_TENSOR = re.compile(
    r"check_tensor\((?P<subject>.*), dtype=torch\.(?P<dtype>\w+), device='(?P<device>[^']*)', "
    r"size=\((?P<size>[^)]*)\), stride=\((?P<stride>[^)]*)\), requires_grad=(?P<grad>True|False)"
    r"(?:, cls='(?P<cls>[^']*)')?\)", re.S)
_OF_OBJECT = re.compile(
    r"check_(?:type|(?P<same>same_object))\((?P<subject>.*?)(?:, (?P<name>'[^'\\]*'|\"[^\"\\]*\")|(?(same)|$))\)")
#: Torch's text of a condition on one certain object, with what is known of that.
_IDENTITY = re.compile(
    r"___check_obj_id\(.*, (?P<id>\d+)\)(?:, type=<class '[^']*'>)?(?:, of (?P<which>[^#\n]*?))?(?=\s*$|  # )")
_MARKS = re.compile(r"has_no_marks\((?P<subject>.*?)(?P<marks>(?:, '_dynamo_\w+')+)\)")
_SOME_MARKS = re.compile(
    r"\(\(getattr\((?P<subject>.*?), '(?P<mark>_dynamo_\w+)', set\(\)\)\.issubset\((?P<which>[^()]*)\)\) "
    r"if hasattr\(.*\) else True\)")
#: The marks that torch looks for on a tensor of which no size is marked.
_ALL_MARKS = {"_dynamo_dynamic_indices", "_dynamo_weak_dynamic_indices", "_dynamo_unbacked_indices",
              "_dynamo_strict_unbacked_indices", "_dynamo_static_indices"}
_CONTAINS = re.compile(r"(?P<not>not )?(?:___)?dict_contains\((?P<key>'[^'\\]*'|[-\w.]+|\([^()]*\)), (?P<owner>.*)\)")
_MEMBER = re.compile(r"(?P<not>not )?set\.__contains__\((?P<owner>[^(),]*), (?P<key>[^(),]*)\)")
_DEVICE = re.compile(r"(?<![\w.])device\(type='(?P<type>\w+)'(?:, index=(?P<index>\d+))?\)")
#: A number as sympy writes it, ``(-0.1)``.
_NEGATIVE = re.compile(r"(?<!\w)\(-[\d.]+\)")
_ROOT = re.compile(r"\b(?P<scope>[LG])\['(?P<name>[^'\\]*)'\]")
_OBJECT_STEP = re.compile(r"\._(?:modules|parameters|buffers)\[")
_PATH = re.compile(r"\b[A-Za-z_]\w*(?:\.\w+(?!\w*\()|\[(?:\d+|'[^'\\]*')\])*")
_NAMED_VALUE = re.compile(r"torch\.\w+|torch\.device\('[\w:]+'\)|[A-Za-z_]\w*\.[A-Z]\w*|inf|-inf|nan")
#: What is at a place; inside of it nothing that is at a place.
_ITEM = re.compile(r"list\((?P<owner>(?:(?!\blist\().)*?)\.values\(\)\)\[(?P<place>\d+)\]")
_STRING = re.compile(r"\['[^'\\]*'\]")
_SIGNS: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in"}


class Reader:
    """Makes conditions of the guards of a frame's versions, which share most of them: each is made once."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._local = {*frame.arguments, *frame.freevars}
        self._made: dict[tuple[object, ...], Condition] = {}  # by all that it is made of

    def read(self, recorded: Sequence[Guard]) -> list[Condition]:
        """Return the guards of a version in the user's words, in torch's order, without those that others imply."""
        # What has modules or parameters is a user object.
        objects = frozenset({"self"} | {root["name"] for source in {guard.source for guard in recorded}
                                        if _OBJECT_STEP.search(source) and (root := _ROOT.search(source))})
        read = [self._one(guard, objects) for guard in recorded]
        keys = Keys(read)
        result: dict[str, Condition] = {}
        for one in read:
            if keys.named(one.text) != one.text:
                one = one.renamed(keys.named)
                if isinstance(one, guards.Comparison) and (
                        one.left.startswith(f"{one.subject}[") and one.left.endswith("]")):
                    one = replace(one, subject=one.left)  # (torch names the dictionary)
            result.setdefault(one.text, one)
        implied = {text for one in result.values() for text in _implied_by(one)}
        return [one for one in result.values() if one.text not in implied]

    def _one(self, guard: Guard, objects: frozenset[str]) -> Condition:
        of_object = _IDENTITY.match(guard.raw) if "obj_id(" in guard.raw else None
        identity, which = (of_object["id"], of_object["which"] or "") if of_object is not None else ("", "")
        key = guard.expression, guard.source, guard.kind, guard.cause, identity, objects
        if key not in self._made:
            made = self._condition(guard, objects)
            if isinstance(made, guards.SameObject):
                made = replace(made, identity=identity, which=which)
            self._made[key] = made
        return self._made[key]

    def _condition(self, guard: Guard, objects: Collection[str]) -> Condition:
        # Of two variables, the one that a call can change more easily.
        found = [(OBJECTS if name in objects else GLOBALS if scope == "G" else CLOSURE if (
            name in self._frame.freevars) else ARGUMENTS, name)
            for scope, name in _ROOT.findall(guard.source or guard.expression)]
        section, root = min(found, key=lambda each: (ARGUMENTS, CLOSURE, OBJECTS, GLOBALS).index(each[0]),
                            default=(STATE, ""))
        source = self._without_clashes(guard.source)
        return typed(self._without_clashes(guard.expression), subject=words(source), section=section, root=root,
                     kind=guard.kind, source=source, cause=guard.cause)

    def _without_clashes(self, expression: str) -> str:
        """Read a global that has the name of a local variable from ``globals()``."""
        if "G['" not in expression:
            return expression
        return _ROOT.sub(lambda match: f"globals()[{match['name']!r}]" if (
            match["scope"] == "G" and match["name"] in self._local) else match[0], expression)


class Keys:
    """Keys of dictionaries whose items torch reads by their places.

    After ``list(self.stats)[0] == 'tokens'``, ``list(self.stats.values())[0]`` is ``self.stats['tokens']``.

    Args:
        conditions: in the order in which torch tests them: a dictionary before its items.
    """

    def __init__(self, conditions: Iterable[Condition]) -> None:
        self._keys: dict[tuple[str, int], str] = {}
        for one in conditions:
            if isinstance(one, guards.KeyAt):
                self._keys[self.named(one.owner), one.place] = one.key

    def named(self, text: str) -> str:
        """Return an expression with items by their keys: ``self.stats['tokens']``."""
        before = ""
        while self._keys and is_read_by_place(text) and text != before:  # (what is inside comes first)
            before, text = text, _ITEM.sub(self._item, text)
        return text

    def _item(self, match: re.Match[str]) -> str:
        key = self._keys.get((match["owner"], int(match["place"])))
        return match[0] if key is None else f"{match['owner']}[{key}]"


def is_read_by_place(text: str) -> bool:
    """Return whether an expression may read a dictionary by the place of an item."""
    return ".values())[" in text


def keys_in(path: str) -> Iterator[tuple[str, str]]:
    """Yield the dictionaries that a path reads by a string, and the string as Python: ``("kwargs", "'mask'")``."""
    for key in _STRING.finditer(path):
        yield path[: key.start()], key[0][1:-1]


def _implied_by(one: Condition) -> Iterator[str]:
    """Yield other conditions that a condition implies: where torch compares a value it compares its type."""
    if isinstance(one, guards.Comparison) and one.sign == "==":
        value = parsed_expression(one.right) if one.right.startswith("(") else None
        if isinstance(value, ast.Tuple):
            yield f"check_type({one.left}, 'tuple')"
            yield f"len({one.left}) == {len(value.elts)}"
        if one.left == one.right:
            yield one.text  # (a name of torch's that the user's words make the value itself)


@functools.lru_cache(maxsize=16384)
def words(expression: str) -> str:
    """Return an expression in the user's words, with the public names of torch's classes."""
    def device(match: re.Match[str]) -> str:
        return f"torch.device({':'.join(filter(None, (match['type'], match['index'])))!r})"

    text = user_expression(expression)
    return _DEVICE.sub(device, text) if "device(" in text else text


@functools.lru_cache(maxsize=4096)
def condition_of(guard: Guard) -> Condition:
    """Return a guard by itself, without regard to its frame; the source of one on an object is what torch tests."""
    made = typed(guard.expression, kind=guard.kind, cause=guard.cause)
    return replace(made, inference=inference_of(guard.raw)) if isinstance(made, Tensor) else made


def typed(expression: str, **about: Any) -> Condition:
    """Return a condition with these fields; a subject that is not given is the longest path in the text."""
    about = {"subject": "", **about}
    made = _helper_condition(expression, about)
    if made is not None:
        return made
    text = words(expression)
    if ".size()" in text:
        text = plain_sizes(in_shape_words(text))
    elif _NEGATIVE.search(text):
        text = plain(text, integers=False)
    if text.endswith(("True", "False", "None")):
        text = re.sub(r" == (True|False|None)$", r" is \1", text)
    if not about["subject"] and about.get("section", STATE) != STATE:
        paths = [path for path in _PATH.findall(text) if path not in ("not", "is", "and", "or", "type", "None")]
        about["subject"] = max(paths, key=lambda path: (path.count("[") + path.count("."), len(path)), default="")
    made = _text_condition(text, parsed_expression(text), about)
    return made if made is not None and made.text == text else guards.Other(**about, expression=text)


def _helper_condition(expression: str, about: dict[str, Any]) -> Condition | None:
    """Return a condition that calls a helper, which most do; ``None`` for any other one."""
    if expression.startswith("check_tensor(") and (match := _TENSOR.fullmatch(expression)):
        return Tensor(**_tested(match, about), dtype=match["dtype"], device=match["device"],
                      size=_numbers(match["size"]), stride=_numbers(match["stride"]),
                      requires_grad=match["grad"] == "True", cls=match["cls"] or "")
    if expression.startswith("check_") and (match := _OF_OBJECT.fullmatch(expression)):
        if match["subject"].startswith(about.get("source", "")):  # (or torch names the dictionary that it is in)
            about = _tested(match, about)
        kind = guards.SameObject if match["same"] else guards.Type
        return kind(**about, of=words(match["subject"]), name=(match["name"] or "")[1:-1])
    if expression.startswith("has_no_marks(") and (match := _MARKS.fullmatch(expression)):
        marks = tuple(re.findall(r"\w+", match["marks"]))
        return guards.Marks(**_tested(match, about), marks=() if {*marks} == _ALL_MARKS else marks)
    if expression.startswith("((getattr(") and (match := _SOME_MARKS.fullmatch(expression)):
        return guards.Marks(**_tested(match, about), marks=(match["mark"],), but=match["which"])
    if "_contains" in expression and (match := _CONTAINS.fullmatch(expression) or _MEMBER.fullmatch(expression)):
        owner = words(match["owner"])
        return guards.Has(**{**about, "subject": about["subject"] or owner}, key=match["key"], owner=owner,
                          present=not match["not"])
    return None


def _tested(match: re.Match[str], about: dict[str, Any]) -> dict[str, Any]:
    """Return what is known of a condition, with what it tests as its subject."""
    return {**about, "subject": words(match["subject"]), "source": match["subject"]}


def _text_condition(text: str, tree: ast.expr | None, about: dict[str, Any]) -> Condition | None:
    """Return a condition in the user's words as a value; ``None`` for one that has no form of its own."""
    match tree:
        case ast.Call(ast.Name("check_global_state"), [], settings):
            return guards.State(**about, settings=tuple((each.arg or "", _part(text, each.value)) for each in settings))
        case ast.Call(ast.Name("check_no_aliasing"), tensors, []):
            return guards.NoAliasing(**about, tensors=tuple(_part(text, each) for each in tensors))
        case ast.Call(ast.Name("check_dict_unchanged"), [owner], []):
            return guards.Unchanged(**{**about, "subject": _part(text, owner)})
        case ast.Call(ast.Name("hasattr"), [owner, key], []) | ast.UnaryOp(
                ast.Not(), ast.Call(ast.Name("hasattr"), [owner, key], [])):
            return guards.Has(**about, key=_part(text, key), owner=_part(text, owner),
                              present=isinstance(tree, ast.Call), is_attribute=True)
        case ast.UnaryOp(ast.Not(), operand) if _part(text, operand) == about["subject"]:
            return guards.Length(**about, of=about["subject"], as_truth=True)
        case ast.UnaryOp(ast.Not(), operand):
            return guards.Not(**about, expression=text.removeprefix("not "))
        case ast.Compare(low, [ast.LtE(), ast.LtE()], [_, high]) if None not in (number(low), number(high)):
            return _range(text, number(low), number(high), about)
        case ast.Compare(low, [ast.LtE()], [high]) if (number(low) is None) != (number(high) is None):
            return _range(text, number(low), number(high), about)
        case ast.Compare(left, [sign], [_]):
            return _comparison(text, left, _SIGNS[type(sign)], about)
    return None


def _range(text: str, low: int | None, high: int | None, about: dict[str, Any]) -> guards.Range:
    return guards.Range(**about, left=text.removeprefix(f"{low} <= ").removesuffix(f" <= {high}"), low=low, high=high)


def _comparison(text: str, node: ast.expr, sign: str, about: dict[str, Any]) -> Condition:
    at = text.encode().index(sign.encode(), node.end_col_offset)
    left, right = (each.decode().strip() for each in (text.encode()[:at], text.encode()[at + len(sign):]))
    match node:
        case ast.Subscript(ast.Call(ast.Name("list"), [owner], []), ast.Constant(int(place))) if sign == "==" \
                and not left.endswith(f".values())[{place}]") and isinstance(literal(right), (str, int)):
            return guards.KeyAt(**about, owner=_part(text, owner), place=place, key=right)
        case ast.Call(ast.Name("len"), [of], []) if sign == "==" and right.isdigit():
            return guards.Length(**about, of=_part(text, of), count=int(right))
        case ast.Constant() if sign in ("in", "not in"):
            return guards.Has(**about, key=left, owner=right, present=sign == "in")
    kind = guards.Equals if sign in ("==", "is") and not computes(node) and is_literal(right) else guards.Comparison
    return kind(**about, left=left, sign=sign, right=right)


def _part(text: str, node: ast.expr) -> str:
    """Return what of a text is a node of its tree."""
    return text.encode()[node.col_offset : node.end_col_offset].decode()


def is_literal(text: str) -> bool:
    """Return whether a text is a value: a literal, a dtype, a member of an enumeration."""
    return _NAMED_VALUE.fullmatch(text) is not None or literal(text) is not ...


def in_shape_words(text: str) -> str:
    """Return ``x.shape[0]`` for ``x.size()[0]``."""
    return text.replace(".size()[", ".shape[")


def _numbers(items: str) -> tuple[int | None, ...]:
    return tuple(int(item) if item.strip().lstrip("-").isdigit() else None for item in items.split(",") if item.strip())
