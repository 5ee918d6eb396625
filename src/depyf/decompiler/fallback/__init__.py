"""The total fallback: any graph as a loop over block numbers.

``dispatch`` needs no structure.  Every block becomes a numbered case of a ``while True`` loop, every
stack slot a local variable, every canonical operation one statement on those variables; a jump sets
the number and goes round.  What it writes is ugly and right by construction::

    __block = 0
    while True:
        if __block == 0:
            __s0 = a
            if __s0:
                __block = 1
            else:
                __block = 2
            continue
        ...

Exceptions need one idea more.  While a handler runs (between ``PUSH_EXC_INFO`` and ``POP_EXCEPT``)
``sys.exc_info()``, bare ``raise`` and implicit exception chaining must see the exception that is being
handled, so that code has to stand inside an ``except`` suite.  Blocks are therefore sorted by *level*,
the number of exceptions being handled while they run, and the loop of level ``n + 1`` stands inside the
``except`` suite of level ``n``::

    while True:
        try:
            while True:                       # level 0
                ...
        except BaseException as __exception:
            if __block in (3, 4):             # the blocks under the handler that starts at block 7
                __s1 = __exception; __block = 7
            else:
                raise
            while True:                       # level 1: block 7 and what follows, up to POP_EXCEPT
                ...

Known differences to the original: tracebacks gain entries where an exception is raised again or comes from a
helper; values live until their slot is written again; code that looks at frames by itself
(``sys._getframe``) sees the loop's variables, and what ``exec`` puts into the locals of a function is gone
after it.
"""

from .driver import Nested, dispatch

__all__ = ["Nested", "dispatch"]
