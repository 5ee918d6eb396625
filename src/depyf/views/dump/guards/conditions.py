"""Guards in the user's words, and what each is about.

A guard of the records reads a frame as torch does; a condition says the same as the user would::

    check_tensor(L['x'], dtype=torch.float32, device='cpu', size=(None, 4), stride=(4, 1), requires_grad=False)
    check_tensor(x, 'f32[batch, 4] on cpu')

    not dict_contains('forward', L['self']._modules['norm'].__dict__)
    'forward' not in self.norm.__dict__
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ....records.model import Frame, Guard, SourceLocation
from ....torch_text.parsed import parsed_expression
from ....torch_text.user_expressions import FROM_NUMPY, user_expression
from .arithmetic import plain_signs, plain_sums
from .keys import Keys

#: Sections of guards: what the conditions of each are about.
ARGUMENTS, CLOSURE, OBJECTS, GLOBALS, STATE = "arguments", "closure", "objects", "globals", "state"
_TENSOR = re.compile(
    r"check_tensor\((?P<subject>.*), dtype=torch\.(?P<dtype>\w+), device='(?P<device>[^']*)', "
    r"size=\((?P<size>[^)]*)\), stride=\((?P<stride>[^)]*)\), requires_grad=(?P<grad>True|False)"
    r"(?:, cls='(?P<cls>[^']*)')?\)", re.S)
_OF_OBJECT = re.compile(r"check_(?:type|same_object)\((?P<subject>.*?)(?:, (?:'[^']*'|\"[^\"]*\"))?\)")
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
_CONTAINS = re.compile(r"(?P<not>not )?(?:___)?dict_contains\((?P<key>'[^'\\]*'), (?P<owner>.*)\)")
_MEMBER = re.compile(r"(?P<not>not )?set\.__contains__\((?P<owner>[^(),]*), (?P<item>[^(),]*)\)")
_DEVICE = re.compile(r"(?<![\w.])device\(type='(?P<type>\w+)'(?:, index=(?P<index>\d+))?\)")
#: A number as sympy writes it, ``(-0.1)``.
_NEGATIVE = re.compile(r"(?<!\w)\(-[\d.]+\)")
_ROOT = re.compile(r"\b(?P<scope>[LG])\['(?P<name>[^'\\]*)'\]")
_OBJECT_STEP = re.compile(r"\._(?:modules|parameters|buffers)\[")
_PATH = re.compile(r"\b[A-Za-z_]\w*(?:\.\w+(?!\w*\()|\[(?:\d+|'[^'\\]*')\])*")
_SHORT = (("bfloat", "bf"), ("complex", "c"), ("float", "f"), ("uint", "u"), ("int", "i"))


@dataclass(frozen=True)
class Tensor:
    """The properties that a guard wants of a tensor. A size or stride is ``None`` where any will do."""

    dtype: str
    device: str
    size: tuple[int | None, ...]
    stride: tuple[int | None, ...]
    requires_grad: bool
    cls: str

    def described(self, names: Sequence[str] = (), layout: str | None = None) -> str:
        """Return ``"f32[batch, 4] on cpu"``, with names for open sizes.

        Args:
            names: for each dimension; those of known sizes do not matter.
            layout: known better than from sizes and strides alone.
        """
        sizes = [str(size) if size is not None else (names[k] if k < len(names) and names[k] else "any")
                 for k, size in enumerate(self.size)]
        layout = self.layout() if layout is None else layout
        return "".join((f"{self.cls} " if self.cls else "", f"{short_dtype(self.dtype)}[{', '.join(sizes)}]",
                        f" {layout}" if layout else "", f" on {self.device}",
                        ", requires grad" if self.requires_grad else ""))

    def layout(self) -> str:
        """Empty for a contiguous tensor; ``"channels last"``; otherwise its strides."""
        for layout, order in orders_of_dimensions(len(self.size)):
            if self._like(order):
                return layout if layout != "contiguous" else ""
        strides = ", ".join("any" if each is None else str(each) for each in self.stride)
        return f"strides ({strides}{',' * (len(self.stride) == 1)})"

    def _like(self, order: Iterable[int]) -> bool:
        """Return whether strides grow in this order of dimensions, the innermost first."""
        wanted: int | None = 1
        for k in order:
            if self.size[k] == 1 and self.stride[k] is not None:
                continue  # its stride is never used
            if self.stride[k] is None or self.stride[k] != wanted:
                return False
            size = self.size[k]
            wanted = None if wanted is None or size is None else wanted * size
        return True


def orders_of_dimensions(count: int) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield the layouts that have a name, with the order of dimensions in which strides grow, the innermost first."""
    yield "contiguous", range(count - 1, -1, -1)
    if count in (4, 5):
        yield "channels last", [1, *range(count - 1, 1, -1), 0]


#: Stands in what :attr:`Condition.is_computed` looks for, and in little else.
_ARITHMETIC = re.compile(r" (?:%|//|\*\*?|/|\+|-) ")


@dataclass(frozen=True)
class Condition:
    """A guard in the user's words.

    Attributes:
        text: valid Python.
        subject: the object that it is about, ``"self.layers[0].norm.weight"``; ``""`` for torch's state.
        section: which part of a call it concerns.
        root: the variable that the subject begins with.
        kind: torch's guard type.
        cause: the user line that made torch ask.
        tensor: what it says of a tensor.
        identity: where the subject has to be one certain object, its id.
        which: which object that is, in words, where that is known.
    """

    text: str
    subject: str
    section: str
    root: str
    kind: str
    cause: SourceLocation | None = None
    tensor: Tensor | None = None
    identity: str = ""
    which: str = ""

    @property
    def is_identity(self) -> bool:
        """Return whether the subject has to be one certain object."""
        return self.text.startswith(f"check_same_object({self.subject}")

    @property
    def is_computed(self) -> bool:
        """Return whether it compares what is computed of a number or size: ``(self.step % 2) != 0``."""
        if self.tensor is not None or not _ARITHMETIC.search(self.text):
            return False
        node = parsed_expression(self.text)
        return isinstance(node, ast.Compare) and any(
            isinstance(part, ast.BinOp) for side in (node.left, *node.comparators) for part in ast.walk(side))


def short_dtype(name: str) -> str:
    """Return ``f32`` for ``float32``."""
    for long, short in _SHORT:
        if name.startswith(long):
            return short + name.removeprefix(long)
    return name


class Conditions:
    """Puts the guards of a frame's versions into the user's words.

    Versions share most of their guards, which are put into words once.

    Args:
        frame: whose versions they are.
    """

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._local = {*frame.arguments, *frame.freevars}
        #: By what counts as an object of the user's.
        self._words: dict[frozenset[str], _Words] = {}

    def of(self, guards: Iterable[Guard]) -> list[Condition]:
        """Return the guards of a version in the user's words, in torch's order.

        Each stands once, without those that others say too.
        """
        guards = list(guards)
        objects = {"self"}
        for source in {guard.source for guard in guards}:
            if _OBJECT_STEP.search(source):
                match = _ROOT.search(source)
                objects |= {match["name"]} if match else set()
        words = self._words.setdefault(frozenset(objects), _Words(self._frame, self._local, objects))
        conditions = [words.of(guard) for guard in guards]
        keys = Keys(condition.text for condition in conditions)
        result: dict[str, Condition] = {}
        for condition in conditions:
            condition = _by_key(condition, keys)
            result.setdefault(condition.text, condition)
        implied = {text for one in result.values() for text in _implied_by(one)}
        return [one for one in result.values() if one.text not in implied]


def _by_key(condition: Condition, keys: Keys) -> Condition:
    """Return a condition with items of dictionaries by their keys."""
    text = keys.named(condition.text)
    if text == condition.text:
        return condition
    subject, value = keys.named(condition.subject), text.partition(" == ")[0]
    if value.startswith(f"{subject}[") and value.endswith("]"):
        subject = value  # (torch names the dictionary)
    return replace(condition, text=text, subject=subject)


class _Words:
    """Guards in the user's words, each put into words once.

    Args:
        frame: which they guard.
        local: its variables.
        objects: those that are objects of the user's.
    """

    def __init__(self, frame: Frame, local: Collection[str], objects: Collection[str]) -> None:
        self._frame, self._local, self._objects = frame, local, objects
        self._known: dict[tuple[object, ...], Condition] = {}  # by what they are made of: versions share most guards
        self._owners: dict[str, tuple[str, str, str]] = {}

    def of(self, guard: Guard) -> Condition:
        of_object = _IDENTITY.match(guard.raw) if guard.expression.startswith("check_same_object(") else None
        identity, which = (of_object["id"], of_object["which"] or "") if of_object is not None else ("", "")
        key = guard.expression, guard.source, guard.kind, guard.cause, identity
        known = self._known.get(key)
        if known is None:
            known = self._condition(guard)
            known = self._known[key] = replace(known, identity=identity, which=which) if identity else known
        return known

    def _condition(self, guard: Guard) -> Condition:
        expression = _without_clashes(guard.expression, self._local)
        subject, section, root = self._owner(guard.source) if guard.source else ("", *self._section(expression))
        tensor = _TENSOR.fullmatch(expression) if guard.expression.startswith("check_tensor(") else None
        if tensor is not None:
            facts = Tensor(tensor["dtype"], tensor["device"], _numbers(tensor["size"]), _numbers(tensor["stride"]),
                           tensor["grad"] == "True", tensor["cls"] or "")
            subject = with_torchs_helpers(user_expression(tensor["subject"]))
            return Condition(tensor_check(subject, facts.described()), subject, section, root, guard.kind, guard.cause,
                             facts)
        # (Of what lies in a dictionary torch prints no source: that of the dictionary stands above it.)
        typed = _OF_OBJECT.fullmatch(expression)
        if typed is not None and typed["subject"] != guard.source and typed["subject"].startswith(guard.source):
            subject, section, root = self._owner(typed["subject"])
        text = in_words(expression)
        if not subject and section != STATE:
            subject = _subject(text)
        return Condition(text, subject, section, root, guard.kind, guard.cause)

    def _owner(self, source: str) -> tuple[str, str, str]:
        """Return the object that a guard is about, its section and the variable that it is read from."""
        if source not in self._owners:
            subject = with_torchs_helpers(user_expression(_without_clashes(source, self._local)))
            self._owners[source] = subject, *self._section(source)
        return self._owners[source]

    def _section(self, text: str) -> tuple[str, str]:
        roots = [(match["scope"], match["name"]) for match in _ROOT.finditer(text)]
        return _section(roots, self._frame, self._objects)


_TUPLE = re.compile(r"(?P<subject>.+) == (?P<value>\(.*\))")


def _implied_by(condition: Condition) -> Iterator[str]:
    """Return other conditions that a condition says too: where torch compares a value it compares its type."""
    match = _TUPLE.fullmatch(condition.text) if " == (" in condition.text and condition.text.endswith(")") else None
    value = parsed_expression(match["value"]) if match is not None else None
    if match is not None and isinstance(value, ast.Tuple):
        yield f"check_type({match['subject']}, 'tuple')"
        yield f"len({match['subject']}) == {len(value.elts)}"
    left, compared, right = condition.text.partition(" == ")
    if compared and left == right:
        yield condition.text  # (a name of torch's that the user's words make the value itself)


def conditions(guards: Iterable[Guard], frame: Frame) -> list[Condition]:
    """Return the guards of a version of a frame in the user's words, in torch's order."""
    return Conditions(frame).of(guards)


def told_apart(versions: Sequence[Sequence[Condition]]) -> list[list[Condition]]:
    """Return the conditions of all versions, with which object is meant where they want different ones.

    ``check_same_object(f.__code__, 'code')`` of two versions is ``'code of rhs at app.py:5'`` in one of them and
    ``'code of <lambda> at app.py:9'`` in the other. Objects that nothing names are numbered.
    """
    objects: dict[str, dict[str, str]] = {}
    for one in (each for version in versions for each in version if each.identity):
        objects.setdefault(one.text, {})[one.identity] = one.which
    names = {text: _distinct(which) for text, which in objects.items() if len(which) > 1}
    return [[_named(one, names[one.text][one.identity]) if one.identity and one.text in names else one
             for one in version] for version in versions]


def _distinct(which: Mapping[str, str]) -> dict[str, str]:
    """Return a name for each object by its id; what has none, or that of another, has a number."""
    taken = list(which.values())
    return {identity: name if name and taken.count(name) == 1 else f"{name} (no. {number})".lstrip()
            for number, (identity, name) in enumerate(which.items(), 1)}


def _named(one: Condition, name: str) -> Condition:
    match = _KIND_OF_OBJECT.fullmatch(one.text)
    if match is None:
        return one
    kind = match["kind"] or "object"
    return replace(one, text=f"{match['head']}, {f'{kind} of {name}' if kind == 'code' else f'{kind} {name}'!r})")


_KIND_OF_OBJECT = re.compile(r"(?P<head>check_same_object\(.*?)(?:, '(?P<kind>[^',]*)')?\)")


def tensor_check(subject: str, description: str) -> str:
    """Return the condition that a tensor is as it is described: ``check_tensor(x, 'f32[4] on cpu')``."""
    return f"check_tensor({subject}, {description!r})"


def in_words(expression: str) -> str:
    """Return a condition in the user's words."""
    marks = _MARKS.fullmatch(expression) if expression.startswith("has_no_marks(") else None
    if marks is not None:
        names = re.findall(r"'(_dynamo_\w+)'", marks["marks"])
        subject = user_expression(marks["subject"])
        if set(names) == _ALL_MARKS:
            return f"has_no_marks({subject})"
        return f"has_no_marks({subject}, {', '.join(map(repr, names))})"
    some = _SOME_MARKS.fullmatch(expression) if expression.startswith("((getattr(") else None
    if some is not None:
        return f"has_no_marks_but({user_expression(some['subject'])}, {some['which']}, {some['mark']!r})"
    contains = _CONTAINS.fullmatch(expression) if "dict_contains(" in expression else None
    if contains is not None:
        return f"{contains['key']} {'not ' if contains['not'] else ''}in {user_expression(contains['owner'])}"
    text = with_torchs_helpers(user_expression(expression))
    member = _MEMBER.fullmatch(text) if "set.__contains__(" in text else None
    if member is not None:
        return f"{member['item']} {'not ' if member['not'] else ''}in {member['owner']}"
    if ".size()" in text:
        text = re.sub(r"\.size\(\)(?=\[)", ".shape", text)
        text = plain_sums(text) if "(-" in text else text
    elif _NEGATIVE.search(text):
        text = plain_signs(text)
    return re.sub(r" == (True|False|None)$", r" is \1", text) if text.endswith(("True", "False", "None")) else text


def with_torchs_helpers(text: str) -> str:
    """Return a condition with the names of the field for torch's helpers and classes."""
    def device(match: re.Match[str]) -> str:
        return f"torch.device({':'.join(filter(None, (match['type'], match['index'])))!r})"

    text = text.replace(FROM_NUMPY, "torch.as_tensor(")
    return _DEVICE.sub(device, text) if "device(" in text else text


def _without_clashes(expression: str, local: Collection[str]) -> str:
    """Read a global that has the name of a local variable from ``globals()``."""
    if "G['" not in expression:
        return expression
    return _ROOT.sub(lambda match: f"globals()[{match['name']!r}]" if match["scope"] == "G" and match["name"] in local
                     else match[0], expression)


def _numbers(items: str) -> tuple[int | None, ...]:
    return tuple(int(item) if item.strip().lstrip("-").isdigit() else None for item in items.split(",") if item.strip())


def _section(roots: Sequence[tuple[str, str]], frame: Frame, objects: Collection[str]) -> tuple[str, str]:
    """Return the section of a condition and the variable that it is about.

    (A condition on two objects is where a call can break it.)
    """
    match = [(_section_of(scope, name, frame, objects), name) for scope, name in roots]
    for wanted in (ARGUMENTS, CLOSURE, OBJECTS, GLOBALS):
        for section, name in match:
            if section == wanted:
                return section, name
    return STATE, ""


def _section_of(scope: str, name: str, frame: Frame, objects: Collection[str]) -> str:
    if name in objects:
        return OBJECTS
    if scope == "G":
        return GLOBALS
    return CLOSURE if name in frame.freevars else ARGUMENTS


def _subject(text: str) -> str:
    """Return the longest path in a text: what a condition without an owner is about."""
    paths = [path for path in _PATH.findall(text) if path not in ("not", "is", "and", "or", "type", "None")]
    return max(paths, key=lambda path: (path.count("[") + path.count("."), len(path)), default="")


#: (It begins with what few letters are: such a pattern is searched for much faster than one that begins with ``\b``.)
_LOOSE = re.compile(r"[\s()\[\]{}'\"](?:or|if|else|lambda|for)\b|:=")


def is_loose(text: str) -> bool:
    """Return whether ``and`` beside a text would be read another way."""
    if not text.startswith("lambda") and not _LOOSE.search(text):
        return False
    tree = parsed_expression(text)
    if tree is None:
        return True
    return isinstance(tree, ast.BoolOp | ast.IfExp | ast.Lambda | ast.NamedExpr)
