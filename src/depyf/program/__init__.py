"""Watching a whole program that knows nothing of depyf: ``depyf run`` and the variable ``DEPYF_DUMP_DIR``.

The program is started as it always is. What starts with it is :mod:`depyf.program.start`, which the interpreter runs
before the program (docs/command_line.md says how); it waits for the first compilation, and only then is anything of
torch's touched.
"""
