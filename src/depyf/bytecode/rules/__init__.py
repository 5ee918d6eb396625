"""Rules that make operations of the instructions of each version: ``rules_for(version)``.

An instruction, with the stack before it, becomes operations of the one set that all versions share::

    3.10: CALL_METHOD 2;  3.11: PRECALL 2, CALL 2;  3.13: CALL 2    ->    CALL (2, ())

:mod:`.common`      what rules are made of; the table of what versions share
:mod:`.blocks`      3.10 and before: block stack, handlers of six values (3.7 and 3.8 come as 3.9: ``unfold.py``)
:mod:`.modern`      3.11 and later: NULLs, SEND loops; changes of 3.14
"""

from __future__ import annotations

from functools import cache

from ..code import table
from .blocks import OLD
from .common import EVERYWHERE, LOCALS, Rule, Rules, one
from .modern import V3_11, V3_12, V3_13, V3_14

_SINCE = {(3, 11): V3_11, (3, 12): V3_12, (3, 13): V3_13, (3, 14): V3_14}
#: Opcode numbers for what ``unfold`` makes: its instructions are those of no version.
UNFOLDED_NUMBERS: dict[str, int] = {name: number for number, name in enumerate({**EVERYWHERE, **OLD})}
#: What can load a cell, where there is none.
_WITHOUT_CELLS: Rules = dict.fromkeys(("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW"), one("LOAD_FAST", LOCALS))


@cache
def rules_for(version: tuple[int, int], has_cells: bool = True) -> list[Rule | None]:
    """For each opcode number of ``version`` its rule, or ``None`` (up to 3.8: ``UNFOLDED_NUMBERS``)."""
    rules = {**EVERYWHERE, **(OLD if version < (3, 11) else {})}
    for since, changed in _SINCE.items():
        rules |= changed if version >= since else {}
    rules |= {} if has_cells else _WITHOUT_CELLS
    numbers = UNFOLDED_NUMBERS if version < (3, 9) else table(version).opcodes
    named = {number: rules.get(name) for name, number in numbers.items()}
    return [named.get(number) for number in range(256)]
