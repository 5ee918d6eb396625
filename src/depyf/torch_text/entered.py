"""What was entered where a graph broke, by torch's account of the values on its stack.

Stack variable source attribution:
  WithExitFunctionVariable() originated from:
  File "/home/a/model.py", line 14                ->  [14]
        with counting({}):
"""

from __future__ import annotations

import re

_EXIT = re.compile(r'WithExitFunctionVariable\(\) originated from:\n\s*File "(?P<file>[^"\n]+)", line (?P<line>\d+)')
#: Torch's heading where a context is entered that it cannot leave and enter again at a graph break.
NOT_AGAIN = "Graph break under GenericContextWrappingVariable"


def entered_contexts(account: str, filename: str) -> list[int]:
    """Return the lines of the ``with`` statements of a file that were entered at a break, the outermost first."""
    return list(dict.fromkeys(int(match["line"]) for match in _EXIT.finditer(account) if match["file"] == filename))
