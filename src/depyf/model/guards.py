"""Guards as values, in the user's words.

A record has the text of a guard, over the frame as torch reads it. Here it becomes what it says::

    check_tensor(L['x'], dtype=torch.float32, size=(None, 4), ...)       Tensor: check_tensor(x, 'f32[any, 4] on cpu')
    not dict_contains('forward', L['self']._modules['norm'].__dict__)    Has: 'forward' not in self.norm.__dict__
    2 <= L['x'].size()[0] <= 64                                          Range: 2 <= x.shape[0] <= 64

A condition that has no form of its own is a :class:`Comparison`, or :class:`Other`.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from ..records.model import SourceLocation
from ..torch_text.parsed import parsed_expression
from ..values import frozen
from .arithmetic import computes

#: Sections of guards: what the conditions of each are about.
ARGUMENTS, CLOSURE, OBJECTS, GLOBALS, STATE = "arguments", "closure", "objects", "globals", "state"


@frozen
class Condition:
    """A guard in the user's words."""

    subject: str = ""  # the object that it is about, "self.layers[0].norm.weight"; "" for torch's state
    section: str = STATE  # the part of a call that it concerns
    root: str = ""  # the variable that the subject begins with
    kind: str = ""  # torch's guard type
    source: str = ""  # the object as torch reads it, "L['self']._modules['layers']..."
    cause: SourceLocation | None = None  # the user line that made torch ask
    form: ClassVar[str] = ""  #: Its Python, with the names of fields.

    @functools.cached_property
    def text(self) -> str:
        """The condition as Python."""
        return self._python()

    def _python(self) -> str:
        return self.form.format(**vars(self))

    @functools.cached_property
    def is_computed(self) -> bool:
        """Whether it compares what is computed of a number or size: ``(self.step % 2) != 0``."""
        tree = parsed_expression(self.text) if isinstance(self, Comparison | Range | Other) else None
        return isinstance(tree, ast.Compare) and computes(tree)

    @property
    def is_on_sizes(self) -> bool:
        """Whether it is about sizes of tensors, and not about all of a tensor."""
        return ".shape[" in self.text and not isinstance(self, Tensor)

    @functools.cached_property
    def is_of_internal(self) -> bool:
        """Whether it is about a part of an object that says how that was made, not what it is."""
        return is_internal(self.subject)

    def renamed(self, rename: Callable[[str], str]) -> Condition:
        """Return the condition with other names for objects."""
        changed: dict[str, Any] = {name: rename(text) for name, text in vars(self).items() if name in _EXPRESSIONS}
        return replace(self, **changed)


_EXPRESSIONS = ("subject", "of", "owner", "left", "right", "expression")  #: Fields with expressions of the user's.


@frozen
class Tensor(Condition):
    """The properties that a tensor must have; a size or stride is ``None`` where any will do."""

    dtype: str = ""
    device: str = ""
    size: tuple[int | None, ...] = ()
    stride: tuple[int | None, ...] = ()
    requires_grad: bool = False
    cls: str = ""
    inference: int = 0  # made in inference mode, and called in it: 0 for neither, 1 for one of these, 2 for both

    def _python(self) -> str:
        return self.described_as(self.described())

    def described_as(self, description: str) -> str:
        """Return the condition that the tensor has this description."""
        return f"check_tensor({self.subject}, {description!r})"

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
            wanted: int | None = 1
            # (The stride of a single item is never used.)
            for size, stride in ((self.size[k], self.stride[k]) for k in order):
                if size == 1 and stride is not None:
                    continue
                if stride is None or stride != wanted:
                    break
                wanted = None if size is None else wanted * size
            else:
                return layout if layout != "contiguous" else ""
        strides = ", ".join("any" if each is None else str(each) for each in self.stride)
        return f"strides ({strides}{',' * (len(self.stride) == 1)})"


def orders_of_dimensions(count: int) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield the layouts that have a name, with the order of dimensions in which strides grow, the innermost first."""
    yield "contiguous", range(count - 1, -1, -1)
    if count in (4, 5):
        yield "channels last", [1, *range(count - 1, 1, -1), 0]


def is_layout(text: str) -> bool:
    """Return whether a text is :meth:`Tensor.layout` of a tensor, or ``"contiguous"``."""
    return text == "contiguous" or text.startswith(("channels last", "strides ("))


_SHORT = (("bfloat", "bf"), ("complex", "c"), ("float", "f"), ("uint", "u"), ("int", "i"))


def short_dtype(name: str) -> str:
    """Return ``f32`` for ``float32``."""
    return next((short + name.removeprefix(long) for long, short in _SHORT if name.startswith(long)), name)


@frozen
class Type(Condition):
    """An object, the subject or a key of it, is of this class, and of no subclass."""

    of: str = ""
    name: str = ""
    form = "check_type({of}, {name!r})"


@frozen
class SameObject(Condition):
    """An object, the subject or a key of it, is a certain one."""

    of: str = ""
    name: str = ""  # its class; where versions want different objects, which one
    identity: str = ""  # its id
    which: str = ""  # the object in words, where it is known

    def _python(self) -> str:
        return f"check_same_object({self.of}{f', {self.name!r}' if self.name else ''})"


@frozen
class Comparison(Condition):
    """Two expressions compare like this: an equation of sizes, a bound on what they come to, two objects."""

    left: str = ""
    sign: str = ""
    right: str = ""
    form = "{left} {sign} {right}"


@frozen
class Equals(Comparison):
    """An object has this value: a literal, a dtype, a member of an enumeration."""


@frozen
class Range(Condition):
    """A size or a number is in a range; ``None`` where there is no bound."""

    left: str = ""
    low: int | None = None
    high: int | None = None

    def _python(self) -> str:
        low = f"{self.low} <= " if self.low is not None else ""
        return f"{low}{self.left}{f' <= {self.high}' if self.high is not None else ''}"


@frozen
class Length(Condition):
    """A container has so many items."""

    of: str = ""
    count: int = 0
    as_truth: bool = False  # torch tests ``not x``

    def _python(self) -> str:
        return f"not {self.of}" if self.as_truth else f"len({self.of}) == {self.count}"


@frozen
class Has(Condition):
    """A container has a key, or an object has an attribute; or not."""

    key: str = ""  # as Python, ``"'forward'"``
    owner: str = ""
    present: bool = True
    is_attribute: bool = False

    def _python(self) -> str:
        if self.is_attribute:
            return f"{'' if self.present else 'not '}hasattr({self.owner}, {self.key})"
        return f"{self.key} {'' if self.present else 'not '}in {self.owner}"


@frozen
class KeyAt(Condition):
    """A dictionary has this key, as Python, at a place in its order."""

    owner: str = ""
    place: int = 0
    key: str = ""
    form = "list({owner})[{place}] == {key}"


@frozen
class State(Condition):
    """Torch is set like this: ``("grad_mode", "True")``."""

    settings: tuple[tuple[str, str], ...] = ()

    def _python(self) -> str:
        return f"check_global_state({', '.join(f'{name}={value}' for name, value in self.settings)})"


@frozen
class Marks(Condition):
    """A tensor has no marks of ``mark_dynamic`` and its like."""

    marks: tuple[str, ...] = ()  # none for all that there are
    but: str = ""  # dimensions that may have the mark, as Python

    def _python(self) -> str:
        marks = ", ".join(map(repr, self.marks))
        if self.but:
            return f"has_no_marks_but({self.subject}, {self.but}, {marks})"
        return f"has_no_marks({self.subject}{f', {marks}' if marks else ''})"


@frozen
class NoAliasing(Condition):
    """No two of these tensors are the same object."""

    tensors: tuple[str, ...] = ()

    def _python(self) -> str:
        return f"check_no_aliasing({', '.join(self.tensors)})"

    def renamed(self, rename: Callable[[str], str]) -> Condition:
        """Return the condition with other names for objects."""
        return replace(self, subject=rename(self.subject), tensors=tuple(map(rename, self.tensors)))


@frozen
class Unchanged(Condition):
    """Nothing was put into a dictionary."""
    form = "check_dict_unchanged({subject})"


@frozen
class Not(Condition):
    """An expression is not true."""

    expression: str = ""
    form = "not {expression}"


@frozen
class Other(Condition):
    """Any other condition, as Python; what torch prints in no Python is an argument of ``torch_guard``."""

    expression: str = ""
    form = "{expression}"


#: An attribute of a class of the program, or a variable of a closure, which are not how an object was made.
_CLASS_ATTRIBUTE = re.compile(r"\btype\([\w.\[\]'\"]+\)(?=\.[a-z])|\.__closure__\[\d+\]\.cell_contents\b")
_INTERNALS = re.compile(r"\.__(?:code|defaults|kwdefaults|closure|dict|mro|wrapped)__|\btype\(|\.cell_contents\b")


def is_internal(expression: str) -> bool:
    """Return whether an expression is a part of an object that says how that was made: ``f.__code__``."""
    return _INTERNALS.search(expression) is not None


def is_internal_of_object(expression: str) -> bool:
    """Return the same, but values of a class or closure do not count: not ``type(self).scale``."""
    return is_internal(_CLASS_ATTRIBUTE.sub("", expression))


def is_loose(text: str) -> bool:
    """Return whether ``and`` beside a condition would be read another way."""
    if not text.startswith("lambda") and not _LOOSE.search(text):
        return False
    tree = parsed_expression(text)
    return tree is None or isinstance(tree, ast.BoolOp | ast.IfExp | ast.Lambda | ast.NamedExpr)


#: (It begins with what few letters are: such a pattern is searched for much faster than one that begins with ``\b``.)
_LOOSE = re.compile(r"[\s()\[\]{}'\"](?:or|if|else|lambda|for)\b|:=")


def distinguished(versions: Sequence[Sequence[Condition]]) -> list[list[Condition]]:
    """Return the conditions of all versions, with which object is meant where they want different ones.

    ``check_same_object(f.__code__, 'code')`` of two versions is ``'code of rhs at app.py:5'`` in one of them and
    ``'code of <lambda> at app.py:9'`` in the other. Objects that nothing names are numbered, like those of one name.
    """
    objects: dict[str, dict[str, str]] = {}
    for one in (each for version in versions for each in version):
        if isinstance(one, SameObject) and one.identity:
            objects.setdefault(one.text, {})[one.identity] = one.which
    names: dict[str, dict[str, str]] = {}
    for text, which in objects.items():
        if (taken := list(which.values())) and len(taken) > 1:
            names[text] = {identity: name if name and taken.count(name) == 1 else f"{name} (no. {number})".lstrip()
                           for number, (identity, name) in enumerate(which.items(), 1)}
    return [[replace(one, name=f"{one.name or 'object'}{' of' if one.name == 'code' else ''} {known[one.identity]}")
             if isinstance(one, SameObject) and one.identity and (known := names.get(one.text)) else one
             for one in version] for version in versions]
