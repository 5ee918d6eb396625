"""A whole program that does not use depyf itself: ``depyf run`` and the variable ``DEPYF_DUMP_DIR``.

    DEPYF_DUMP_DIR=dump python train.py
    start.begin()              the interpreter runs it before the program (docs/command_line.md says how)
    Watch.arm()                waits until torch's first compilation (capture/import_hook)
    Recording.__enter__()      prepare_debug, with a choice of what is written (options)
    Watch.end()                at exit, at SIGTERM: writes the dump
    summary(...)               five lines on standard error

Until the first compilation no part of torch is touched or imported.
"""
