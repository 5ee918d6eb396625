"""The dispatch loop: any graph as a loop over block numbers, right by construction.

Every block becomes a case of ``while True``, every stack slot a local, every operation a statement on those
(:mod:`.rules`); a jump sets the number::

    __block = 0
    while True:
        if __block == 0:
            __s0 = a
            if __s0:
                __block = 1
            else:
                __block = 2
        ...

Code under exception handlers is in nested loops (:mod:`.driver`). Known differences to the original: tracebacks
gain entries where an exception is raised again or comes from a helper; values live until their slot is written again;
code that looks at frames by itself (``sys._getframe``) sees the loop's variables, and what ``exec`` puts into the
locals of a function is gone after it.
"""
