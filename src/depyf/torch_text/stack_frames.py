"""A frame of a stack, as a traceback prints it: torch quotes such stacks."""

from __future__ import annotations

import re

FRAME = re.compile(
    r'^ *File "(?P<file>[^"\n]*)", line (?P<line>\d+), in (?P<function>[^\n]*)\n(?: {4,}(?P<text>[^\n]*))?', re.M)
