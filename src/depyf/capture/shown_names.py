"""Names of torch's own globals as texts show them."""

from __future__ import annotations

import re
from types import CodeType

#: Torch puts an object into the user's globals under a name with its id and the compile id
#: (torch/_dynamo/output_graph.py, ``install_global_by_id``).
_NAME_WITH_ID = re.compile(r"(?P<name>.*[^\W\d_])_\d{9,}_c\w+")


def names_without_ids(code: CodeType) -> dict[str, str]:
    """``{global name with an id that differs from run to run: the name without it}``."""
    taken = {*code.co_names, *code.co_varnames, *code.co_cellvars, *code.co_freevars}
    shown = {}
    for name in code.co_names:
        match = _NAME_WITH_ID.fullmatch(name) if "_c" in name else None
        if match is not None and match["name"] not in taken:
            shown[name] = match["name"]
            taken.add(match["name"])
    return shown
