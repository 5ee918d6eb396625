"""Views: in come records, out come texts for people. Pure functions, without torch.

    capture = store.read("dump")
    directory files    dump/        full code, transformed code, graphs, guards, outlines
    index.md           index/       the run in order, in Markdown
    index.html         page/        the same to click through
    depyf diff         diff/        what differs between two runs
    a terminal         terminal.py  Markdown laid out by Rich
    all ranks          ranks.py     what differs between them

What they share: ``run_index`` ties the records together (which compilation is of which function, a
``function_summary``), ``grouping`` joins what repeats, ``verdict`` says what was not compiled, ``causes`` why a graph
broke, ``changes`` what a recompile was for and ``advice`` what to do about it, as far as ``circumstances`` allow;
``markdown`` keeps names harmless.
"""
