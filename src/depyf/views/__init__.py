"""Texts for people from the records of a run. Pure functions, without torch.

    capture = store.read("dump")
    directory files    dump/        full code, transformed code, graphs, guards, outlines
    index.md           index/       the run in order, in Markdown
    index.html         page/        the same to click through
    depyf diff         diff/        what differs between two runs
    a terminal         terminal.py  Markdown laid out by Rich
    all ranks          ranks.py     what differs between them

Shared by them: ``run_index`` links the records (which compilation is of which function, a ``function_summary``),
``verdict`` says what was not compiled, ``causes`` why a graph broke (and joins what repeats), ``changes`` why
torch compiled again, and ``advice`` what to do; ``markdown`` escapes names.
"""
