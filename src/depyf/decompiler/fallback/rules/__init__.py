"""Rules that write an operation as statements on slots, by parts of the language.

In comes an operation, with a writer that knows which slot holds what; out come lines of text. Each module has a table
``RULES`` of a function for each kind of operation (:mod:`depyf.bytecode.operations`)::

    GET_ITER, stack depth 1    ->    __s0 = iter(__s0)

They are simple on purpose: a value never stays an expression, so nothing has to be known of the order of evaluation.
"""
