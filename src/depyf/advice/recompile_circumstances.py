"""The circumstances of a recompile that advice on it depends on.

They are divided by what they are about. The first four are the same for each recompile of a function::

    x.shape[1] is fixed at m.py:8        FixedSizes(places={"x.shape[1]": "`m.py:8`"})
    x.shape[0]: 4 -> 6, then open        OpenSizes(ranges={"x.shape[0]": "all sizes from 2 on"})
    if self.n > 3:   (line 9)            VariableUses(tests={"self.n": "`m.py:9`"})
    its caller Net.forward is compiled   Arguments(made_in="Net.forward")
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import field

from ..frozen import frozen


@frozen
class FixedSizes:
    """Sizes and numbers that a version of the function holds for one value of.

    Attributes:
        places: the place of the line that fixed each of them, as Markdown: ``{"x.shape[1]": "`conv.py:560`"}``.
        open_elsewhere: those that another version leaves open, with other sizes that are the same number where it is
            fixed: ``{"x.shape[1]": ("mask.shape[1]",)}``.
        same_as: sizes that a version holds for one value of since they had that of another size, which each version
            holds for the same value: ``{"x.shape[0]": "x.shape[1]"}``.
        by_tests: those that a test of the program's fixes, at that place.
        keys: numbers by which the line that fixes them looks an item up, and uses them for nothing else.
    """

    places: Mapping[str, str] = field(default_factory=dict)
    open_elsewhere: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    same_as: Mapping[str, str] = field(default_factory=dict)
    by_tests: Set[str] = frozenset()
    keys: Set[str] = frozenset()


@frozen
class OpenSizes:
    """Sizes and numbers that a version of the function leaves open, and what is asked of them.

    Attributes:
        ranges: each of them, in words: ``{"x.shape[0]": "all sizes from 2 to 256"}``; ``""`` where nothing bounds them.
            The range is one that the value of the first call is in.
        equated: an expression that a version holds for one number, with the place that asks for that, as Markdown:
            ``{"x.shape[2]": ("x.shape[2] // 4", "`net.py:5`")}``.
        tested: sizes on which torch tested a condition.
        told_apart: sizes and numbers that branches of the program tell apart by more than what ``ranges`` says.
        excepted: numbers that tests of the program's tell from all others: ``{"t": (0.0,)}``, of ``if t != 0``.
        bounded_by_torch: sizes of which torch's own operations, and no line of the program's, ask whether they are in a
            range, with the place of the line that calls one: ``{"x.shape[0]": "`net.py:5`"}``.
        tied: sizes that torch compared with numbers that are no sizes.
    """

    ranges: Mapping[str, str] = field(default_factory=dict)
    equated: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    tested: Set[str] = frozenset()
    told_apart: Set[str] = frozenset()
    excepted: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    bounded_by_torch: Mapping[str, str] = field(default_factory=dict)
    tied: Set[str] = frozenset()


@frozen
class VariableUses:
    """What the lines of the function, and of its file, do with variables and attributes.

    Attributes:
        own_variables: parameters and variables of the function, which no call leaves to the next.
        given: parameters that the function's own lines add nothing to: a list among them is as long as it is passed.
        filled: variables and attributes whose items the file sets by key, and to which it adds nothing otherwise.
        tests: what tests of the program's read, with the place: variables and attributes in the function, and
            attributes and items of other objects in its file by their last part: ``{".top_p": "`serve.py:135`"}``.
        calls_in_two_steps: lines that call a bound method with what breaks the graph among their arguments, in two
            steps (the method as ``ast`` writes it):
            ``{"self.log.append": "first `value = x.item()`, then `self.log.append(value)`"}``.
    """

    own_variables: Set[str] = frozenset()
    given: Set[str] = frozenset()
    filled: Set[str] = frozenset()
    tests: Mapping[str, str] = field(default_factory=dict)
    calls_in_two_steps: Mapping[str, str] = field(default_factory=dict)


@frozen
class Arguments:
    """What the function takes, and where that is made.

    Attributes:
        packed: parameters that take all other arguments of a call, with the kind of these:
            ``{"args": "positional", "kwargs": "keyword"}``.
        made_in: the compiled function in which the arguments may be made; ``""``: they are made outside.
        made_outside: parameters that have the same name in that function, so that they may be what it was given.
        divided: a graph break divides the function, so that parts of it get other tensors.
    """

    packed: Mapping[str, str] = field(default_factory=dict)
    made_in: str = ""
    made_outside: Set[str] = frozenset()
    divided: bool = False


@frozen
class FailedGuards:
    """What is known of the guards that failed, and of what they look at.

    Attributes:
        expected: what each version wants, in their order, of what changed, and of lengths: ``{"len(x)": ("0", "1")}``.
        taken_for_one: what torch tests since sizes had the same value, and no line asks for it ("duck sizing").
        generated_apart: sizes that Inductor told apart when a version did not fit this call, and no
            line of the program's, with its condition: ``{"x.shape[0]": "x.shape[0] <= 4096"}``.
        set_once: attributes of ``self`` that changed, and that only the ``__init__`` of a class of the program sets.
    """

    expected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    taken_for_one: Set[str] = frozenset()
    generated_apart: Mapping[str, str] = field(default_factory=dict)
    set_once: Set[str] = frozenset()


@frozen
class NewVersion:
    """What the version that was compiled then differs in from the earlier ones.

    Attributes:
        differs: it differs from them in more than what torch names first.
        along: sizes of other tensors that changed along with the one that torch names first, or are the same.
        fixed_along: sizes that changed along, too, and of which each version holds for one value, with the place of the
            line that fixed them.
        modules: fixed sizes that came with other sizes of the module's own tensors, with the number of such modules.
        breaks_at: the place of a graph break in it, where the earlier ones have none: ``"`attention.py:193`"``; ``""``
            for none.
    """

    differs: bool = False
    along: tuple[str, ...] = ()
    fixed_along: Mapping[str, str] = field(default_factory=dict)
    modules: Mapping[str, int] = field(default_factory=dict)
    breaks_at: str = ""


@frozen
class Circumstances:
    """The circumstances that advice on a change depends on.

    Attributes:
        fixed, open, uses, arguments: of the function, over all its versions.
        failed, version: of this recompile.
        all_static: ``torch.compile`` was told ``dynamic=False``.
        in_library: the function is called from a file that is not the user's.
    """

    fixed: FixedSizes = field(default_factory=FixedSizes)
    open: OpenSizes = field(default_factory=OpenSizes)
    uses: VariableUses = field(default_factory=VariableUses)
    arguments: Arguments = field(default_factory=Arguments)
    failed: FailedGuards = field(default_factory=FailedGuards)
    version: NewVersion = field(default_factory=NewVersion)
    all_static: bool = False
    in_library: bool = False
