"""Budgets: how much of a file is taken on, so that a small hostile one costs neither hours nor gigabytes.

Code that people or generators wrote stays below (the figures beside each are of 599,000 code objects: the standard
library of 3.11, torch, sympy and what else was installed). Who has more sets ``DEPYF_BUDGET``: with
``DEPYF_BUDGET=10`` ten times as much is taken on.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

VARIABLE = "DEPYF_BUDGET"


@dataclass(frozen=True)
class Budget:
    """How much of something is taken on.

    Attributes:
        what: is counted, in words.
        most: of it.
    """

    what: str
    most: int

    def exceeded(self, count: int) -> str:
        """Return the message that there is too much, with what to do; an empty text if there is not."""
        if count <= self.most or count <= self.most * _factor():
            return ""
        return (f"{self.what}: {count:,}, which is more than the budget of {self.most:,} "
                f"({VARIABLE}={-(-count // self.most)} in the environment takes it on)")


#: About 25 microseconds and 2 kilobytes each; the longest, a benchmark of sympy's, has 138,458.
INSTRUCTIONS = Budget("instructions in one code object", 200_000)
#: Parts of tuples and sets, those inside each other counted as often as the text holds them. A kilobyte each; the most,
#: in idna, are 31,000.
CONSTANTS = Budget("parts of constants in one code object", 200_000)
#: The structure of each is tried in several forms.
JUMPS = Budget("jumps in one code object", 20_000)
#: A loop over numbered parts has several lines for each, which nobody reads where there are so many.
DISPATCHED = Budget("operations of code that only a loop over its parts can say", 10_000)
#: 3.7 and 3.8: instructions after the bodies of ``finally`` were copied to where they are entered, as a percentage of
#: those before; a library needs 160.
COPIES = Budget("instructions with the copies of finally bodies, as a percentage of those in the code", 400)


def _factor() -> float:
    try:
        return max(1.0, float(os.environ.get(VARIABLE, "1")))
    except ValueError:
        return 1.0
