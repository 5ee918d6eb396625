"""Budgets: how much of a file is read and decompiled, so that a hostile one costs neither hours nor gigabytes.

Real files are below (the figures for code are of 599,000 code objects: the standard library of 3.11, torch, sympy and
what else was installed). ``DEPYF_BUDGET=10`` makes all budgets ten times as large.
"""

from __future__ import annotations

import os
import sys

from .values import frozen

VARIABLE = "DEPYF_BUDGET"


@frozen
class Budget:
    """A limit on something that is counted, in words."""

    what: str
    most: int

    @property
    def allowed(self) -> int:
        """The limit in this environment."""
        try:
            factor = max(1.0, float(os.environ.get(VARIABLE, "1")))
        except ValueError:
            factor = 1.0
        return int(min(self.most * factor, sys.maxsize - 1))

    def exceeded(self, count: int) -> str:
        """Return the message that there is too much, with what to do; an empty text if there is not."""
        if count <= self.most or count <= self.allowed:
            return ""
        return (f"{self.what}: {count:,}, which is more than the budget of {self.most:,} "
                f"({VARIABLE}={-(-count // self.most)} in the environment takes it on)")


# --- files (depyf.reading) ---
#: Records of a run and logs of ``TORCH_TRACE``; the largest log that was seen has 212 MB.
RUN = Budget("bytes in the file", 2_000_000_000)
#: One line of these: the text of a graph, of a generated module or of a source file.
LINE = Budget("bytes in one line", 32_000_000)
TEXT = Budget("characters", 100_000)  #: A name, a condition or a message in records. What is longer is cut.
#: The largest that is installed here has 4.9 MB, the largest source file 6.1 MB.
CODE = Budget("bytes in the file", 32_000_000)
#: Objects in a ``.pyc``, about 2 microseconds each; the largest that was seen has 200,000.
OBJECTS = Budget("objects in the file", 1_000_000)
WRITTEN = Budget("bytes in the file", 64_000_000)  #: Files that depyf wrote: ``index.md``, marks.

# --- code ---
#: About 25 microseconds and 2 kilobytes each; the longest, a benchmark of sympy's, has 138,458.
INSTRUCTIONS = Budget("instructions in one code object", 200_000)
#: Parts of tuples and sets, nested ones counted as often as they occur in the text. A kilobyte each; the most,
#: in idna, are 31,000.
CONSTANTS = Budget("parts of constants in one code object", 200_000)
JUMPS = Budget("jumps in one code object", 20_000)  #: The structure of each is tried in several forms.
#: A loop over numbered parts has several lines for each, which no one reads where there are so many.
DISPATCHED = Budget("operations of code that only a loop over its parts can say", 10_000)
#: 3.7 and 3.8: instructions after the bodies of ``finally`` were copied to where they are entered, as a percentage of
#: those before; a library needs 160.
COPIES = Budget("instructions with the copies of finally bodies, as a percentage of those in the code", 400)


def seconds_for(size: int) -> Budget:
    """Return the budget of processor time for a command that has opened files of this many bytes.

    Records of 58 MB take 0.6 s to read. Texts of a run that was killed, which are decompiled first, take most.
    """
    return Budget("seconds of processor time for this input", 20 + 5 * size // 1_000_000)
