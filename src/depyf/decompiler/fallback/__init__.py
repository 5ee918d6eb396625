"""The dispatch loop: any graph as a loop over block numbers, right by construction.

Every block becomes a case of ``while True``, every place on the stack a variable; between two statements all that
waits on the stack is in these (:mod:`.rules`). A jump sets the number::

    __block = 0
    while True:
        if __block < 1:
            __s0 = f(a)
            __block = 1 if b else 2
        ...

Code under exception handlers is in nested loops (:mod:`.driver`). Known differences to the original: tracebacks
gain entries where an exception is raised again or comes from a helper; values live until their variable is written
again; code that looks at frames by itself (``sys._getframe``, ``eval``) sees the loop's variables, and so does what
looks at the namespace of a module or class while its body runs. Not written are a class whose stars come before a jump
in its bases, and code in which a function shares a variable of an inlined comprehension (3.12) that is another one
around it.
"""

from .driver import dispatch_loop

__all__ = ["dispatch_loop"]
