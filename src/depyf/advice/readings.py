"""Calls that read what changes while the program runs: a clock, or what a process uses.

    y = model(x)                                             t0 = time.perf_counter()
    self.spent.append(time.perf_counter() - t0)    ->        y = step(x)
    (both inside of `step`, which is compiled)               spent.append(time.perf_counter() - t0)

Called before the compiled function, as other calls that torch does not trace can be, they would tell nothing of it.
"""

from __future__ import annotations

import ast
import re

from .branches import unparsed
from .model import Advice
from .source import Site, called

#: Torch's words for a call that reads a clock, of C or of a class, and for one that reads what is in use.
_CLOCK, _USE = (
    re.compile(
        r"module: time, qualname: (?P<name>(?:time|perf_counter|monotonic|process_time|thread_time)(?:_ns)?),"
        r"|<class 'datetime\.\w+'>\) (?P<method>now|utcnow|today) "),
    re.compile(
        r"module: (?:resource|_tracemalloc|posix|gc), qualname: (?P<name>getrusage|get_traced_memory|times|get_count),"
        r"|target: <function (?P<method>(?:max_)?memory_(?:allocated|reserved)) "),
)


def on_reading(site: Site) -> Advice | None:
    """Return the advice on a call that reads a clock, or what is in use: to read it around the compiled function."""
    for pattern in (_CLOCK, _USE):
        match = pattern.search(site.broken.context)
        call = _call(site, match["name"] or match["method"]) if match is not None else None
        if call is not None:
            text, function = unparsed(call), site.function.name if site.function is not None else "the function"
            read = "read the clock" if pattern is _CLOCK else f"call `{text}`"
            return Advice(
                "reading", f"{read} before and after the call of `{function}`, not in it",
                f"torch does not trace `{text}`, which tells something of what ran before it: passed to `{function}` "
                f"as an argument, it would tell nothing of `{function}`",
                f"what is measured is all of `{function}`, not a part of it")
    return None


def _call(site: Site, name: str) -> ast.Call | None:
    """Return the first call of this name in the user's statement."""
    inside = ast.walk(site.statement) if site.statement is not None else ()
    return next((each for each in inside if isinstance(each, ast.Call) and called(each) == name), None)
