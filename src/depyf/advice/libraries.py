"""Lines of installed libraries: nobody rewrites them, but what they do can be done before, or kept out of graphs."""

from __future__ import annotations

import ast
import re

from .model import Advice
from .source import Site, is_own

#: Name of the rule for what a library does at its first call only.
SET_UP = "set up"
#: Lines of libraries that make modules, parameters and hooks.
_SETS_UP = re.compile(r"RemovableHandle\.|Parameter\(|super\(\).__init__\(|_hook_installation_lock|recordable_keys")
_MODULE = re.compile(r"[\\/](?:site|dist)-packages[\\/](?P<path>.+?)(?:[\\/]__init__)?\.py$")


def on_set_up(site: Site) -> Advice | None:
    """Return the advice on lines of a library that make modules or install hooks, which it does once."""
    places = [place.text for place in site.broken.stack[-1:]]
    if site.where is None or is_own(site.where.filename) or not any(map(_SETS_UP.search, places)):
        return None
    return Advice(SET_UP, "call the model once in plain Python before `torch.compile` sees a call: `model(*inputs)`",
                  "here the library makes modules or hooks, which it does at the first call only", "one more call",
                  elsewhere=True)


def on_given_up(site: Site) -> Advice | None:
    """Return the advice on a method of a library that torch gives up: leave it out, so that its caller is compiled."""
    module = _MODULE.search(site.where.filename) if site.where is not None else None
    method = _method(site)
    if not site.broken.skips_function or site.broken.depth != 1 or module is None or not method:
        return None  # (a function that the given-up one calls would still break it)
    place = re.sub(r"[\\/]", ".", module["path"])
    return Advice(
        "keep out", f"leave it out of graphs: `{method} = torch.compiler.disable({method})` before the first call "
        f"(`from {place} import {method.partition('.')[0]}`)",
        "torch gives the function up anyway, after a graph for each piece of it; left out, it costs its caller one "
        "break", "nothing in it is compiled", elsewhere=True)


def _method(site: Site) -> str:
    """Return the class and name of the method that the line is in, ``"ViltEmbeddings.visual_embed"``."""
    for node in ast.walk(site.module) if site.module is not None else ():
        if isinstance(node, ast.ClassDef) and site.function in node.body and site.function is not None:
            return f"{node.name}.{site.function.name}"
    return ""
