"""The cells of the running notebook, as files."""

from __future__ import annotations

import sys
from collections.abc import Iterable


def cell_names(paths: Iterable[str]) -> dict[str, str]:
    """Return those of the paths that are cells -> the cell's number, as IPython's tracebacks have it: ``In[3]``.

    Empty where no IPython runs.
    """
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    if name_of is None:
        return {}
    result = {}
    for path in dict.fromkeys(paths):
        named = name_of(path)  # ("Cell", "In[3]"), or None
        if named:
            result[path] = str(named[1])
    return result
