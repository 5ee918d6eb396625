"""Functions and their texts, made of what a session recorded: after the program's work, or elsewhere.

While a program runs, a session writes down what only the running program knows (:mod:`depyf.capture`): the bytecode
that Dynamo made, what is known of the objects it was compiled for, torch's printed guards. Here the rest is made of
that, by decompiling, proving and reading: :class:`~depyf.records.model.CompiledFunction` records. Needs no torch::

    store.read("dump")       Capture(unwritten=Unwritten(bytecodes=...), graphs=..., compilations=...)
    finished(that)           Capture(functions=(CompiledFunction("toy_example", ...),), ...)

:func:`depyf.finishing.frames.read_records` does both.
"""
