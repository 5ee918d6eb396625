"""The symbolic stack: operations of a block become ``ast`` expressions and statements.

In comes a :class:`State`, a stack of syntax nodes, and the operations of a block; :class:`SymbolicExecutor` runs them.
Out come its statements, and the nodes that are left on the stack. ``a.x = b + 1``, operation by operation::

    LOAD_FAST b      stack b
    CONST 1          stack b, 1
    BINARY +         stack b + 1
    LOAD_FAST a      stack b + 1, a
    STORE_ATTR x     stack empty; statement a.x = b + 1

Code must be as CPython compiles it: a value remains on the stack across a statement only in the few forms that the
compiler has (chained assignment, swap of tuples). Anything else raises :class:`CannotDecompile`, and the code object
takes another form.

:mod:`.executor` has what all operations share, :mod:`.stack` the possible entries of the stack, and when two are
copies of one; each of the other modules has a table ``RULES`` of the operations of one part of the language.
"""
