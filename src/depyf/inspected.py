"""The files of this package's modules, told to ``inspect`` before torch makes it look for them.

At the first compilation torch imports more of itself, and has ``inspect.getmodule`` find out which module a function is
of. That looks at each module of the process once and follows the links in its path: 4 ms for 75 of ours, of which no
function of the program is.
"""

from __future__ import annotations

import os
import sys
from typing import Any


def tell_inspect() -> None:
    """Put what ``inspect.getmodule`` would find out about this package's modules into its tables.

    Nothing is put there where ``inspect`` is not imported or has other tables, or where files may be links.
    """
    inspect: Any = sys.modules.get("inspect")
    files, modules = getattr(inspect, "_filesbymodname", None), getattr(inspect, "modulesbyfile", None)
    if type(files) is not dict or type(modules) is not dict or os.path.islink(__file__):
        return
    package = __name__.rpartition(".")[0]
    folder = os.path.dirname(__file__)  # (of this package)
    if os.path.abspath(folder) != folder:
        return
    real = os.path.realpath(folder)
    for name, module in sys.modules.copy().items():
        file = getattr(module, "__file__", None) if name == package or name.startswith(package + ".") else None
        if isinstance(file, str) and file.startswith(folder + os.sep) and file.endswith(".py"):
            files[name] = file
            path = os.path.normcase(file)
            modules[path] = modules[real + path[len(folder):]] = name
