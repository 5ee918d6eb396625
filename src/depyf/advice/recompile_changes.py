"""What changed at a recompile, the circumstances that advice on it depends on, and the advice."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Set
from dataclasses import field

from ..frozen import frozen
from ..torch_text.parsed import parsed_expression

LIMIT = "`torch._dynamo.config.recompile_limit`"
#: What a version expects of an argument whose ``_base``, the tensor that it is a view of, it looks at.
A_VIEW = "a view of another tensor"
#: A number as text.
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
WHOLE_NUMBER = re.compile(r"-?\d+")
#: A variable, or an attribute of one.
DOTTED = re.compile(r"[A-Za-z_][\w.]*")


@frozen
class ValueChange:
    """What changed at a recompile.

    Attributes:
        subject: in the user's words, ``"x.shape[0]"``.
        was, now: what the versions expected, and what the call had.
        lasts: another call can have the value that a version expects; no bound method can.
        keywords: names of keyword arguments that were given or left out.
        hint: torch's own.
        cause: the user's line because of which torch guards it.
        of_global: it is reached from a global name.
    """

    subject: str
    was: tuple[str, ...]
    now: str
    lasts: bool = True
    keywords: tuple[str, ...] = ()
    hint: str = ""
    cause: str = ""
    of_global: bool = False


@frozen
class RecompileAdvice:
    """What keeps torch from compiling again.

    Attributes:
        text: a clause, code in backticks.
        comes_first: no version serves the next call as long as this is not done, whatever else is.
        is_remedy: it says what to do, and not only that there have to be so many versions.
    """

    text: str
    comes_first: bool = False
    is_remedy: bool = True


@frozen
class Circumstances:
    """The circumstances that advice on a change depends on.

    Attributes:
        fixed: sizes that a version holds for one value of, with the place of the line that fixed them:
            ``{"x.shape[1]": "`conv.py:560`"}``.
        fixed_with: of these sizes, those that another version leaves open, with other sizes that are the same number
            where it is fixed: ``{"x.shape[1]": ("mask.shape[1]",)}``.
        fixed_by_tests: of these, those that a test of the program's fixes, at that place.
        keys: of these, numbers by which the line that fixes them looks an item up, and uses them for nothing else.
        modules: of these sizes, those that came with other sizes of the module's own tensors, with their number.
        ranges: sizes and numbers that a version leaves open, in words: ``{"x.shape[0]": "all sizes from 2 to 256"}``;
            ``""`` where nothing bounds them. The range is one that the value of the first call is in.
        along: sizes of other tensors that changed along with the one that torch names first, or are the same.
        fixed_along: sizes that changed along, too, and of which each version holds for one value, with the place of the
            line that fixed them.
        tied: sizes that torch compared with numbers that are no sizes.
        all_static: ``torch.compile`` was told ``dynamic=False``.
        differs: the version that was compiled then differs from the earlier ones in more.
        tested: sizes on which torch tested a condition in a version that leaves them open.
        told_apart: sizes and numbers that branches of the program tell apart by more than what ``ranges`` says.
        bounded_by_torch: sizes of which torch's own operations, and no line of the program's, ask whether they are in a
            range, with the place of the line that calls one: ``{"x.shape[0]": "`net.py:5`"}``.
        equated: of sizes that a version leaves open, an expression that it holds for one number, with the place that
            asks for that, as Markdown: ``{"x.shape[2]": ("x.shape[2] // 4", "`net.py:5`")}``.
        same_as_fixed: sizes that a version holds for one value of since they had that of another size, which each
            version holds for the same value: ``{"x.shape[0]": "x.shape[1]"}``.
        taken_for_one: what torch tests since sizes had the same value, and no line asks for it ("duck sizing").
        excepted: numbers that tests of the program's tell from all others: ``{"t": (0.0,)}``, of ``if t != 0``.
        expected: what each version wants, in their order, of what changed, and of lengths: ``{"len(x)": ("0", "1")}``.
        generated_apart: sizes that Inductor told apart when a version did not fit this call, and no
            line of the program's, with its condition: ``{"x.shape[0]": "x.shape[0] <= 4096"}``.
        calls: lines that call a bound method with what breaks the graph among their arguments, in two steps (the method
            as ``ast`` writes it): ``{"self.log.append": "first `value = x.item()`, then `self.log.append(value)`"}``.
        packed: parameters that take all other arguments of a call, with the kind of these:
            ``{"args": "positional", "kwargs": "keyword"}``.
        own_variables: parameters and variables of the function, which no call leaves to the next.
        given: parameters that the function's own lines add nothing to: a list among them is as long as it is passed.
        filled: variables and attributes whose items the file sets by key, and to which it adds nothing otherwise.
        set_once: attributes that only the ``__init__`` of a class of the program sets.
        python_tests: what tests of the program's read, with the place: variables and attributes in the function, and
            attributes and items of other objects in its file by their last part: ``{".top_p": "`serve.py:135`"}``.
        breaks_when_open: the place of a graph break in this version, where the earlier ones have none:
            ``"`attention.py:193`"``; ``""`` for none.
        breaks: a graph break divides the function, so that parts of it get other tensors.
        in_library: the function is called from a file that is not the user's.
        made_in: the compiled function in which its arguments may be made; ``""``: they are made outside.
        made_outside: parameters that have the same name in that function, so that they may be what it was given.
    """

    fixed: Mapping[str, str] = field(default_factory=dict)
    fixed_with: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fixed_by_tests: Set[str] = frozenset()
    keys: Set[str] = frozenset()
    modules: Mapping[str, int] = field(default_factory=dict)
    ranges: Mapping[str, str] = field(default_factory=dict)
    along: tuple[str, ...] = ()
    fixed_along: Mapping[str, str] = field(default_factory=dict)
    tied: Set[str] = frozenset()
    all_static: bool = False
    differs: bool = False
    tested: Set[str] = frozenset()
    told_apart: Set[str] = frozenset()
    bounded_by_torch: Mapping[str, str] = field(default_factory=dict)
    equated: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    same_as_fixed: Mapping[str, str] = field(default_factory=dict)
    taken_for_one: Set[str] = frozenset()
    excepted: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    expected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    generated_apart: Mapping[str, str] = field(default_factory=dict)
    calls: Mapping[str, str] = field(default_factory=dict)
    packed: Mapping[str, str] = field(default_factory=dict)
    own_variables: Set[str] = frozenset()
    given: Set[str] = frozenset()
    filled: Set[str] = frozenset()
    set_once: Set[str] = frozenset()
    python_tests: Mapping[str, str] = field(default_factory=dict)
    breaks_when_open: str = ""
    breaks: bool = False
    in_library: bool = False
    made_in: str = ""
    made_outside: Set[str] = frozenset()


Rule = Callable[[ValueChange, Circumstances], "RecompileAdvice | str | None"]


def last_part(expression: str) -> str:
    """Return ``['calls']`` of ``self.stats['calls']``, ``.calls`` of ``self.calls``; ``""`` of a variable."""
    match parsed_expression(expression):
        case ast.Attribute(_, name):
            return f".{name}"
        case ast.Subscript(_, key):
            return f"[{ast.unparse(key)}]"
    return ""
