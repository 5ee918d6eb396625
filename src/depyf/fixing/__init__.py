"""A patch for a program: what advice can do mechanically, tried, and kept where it helps and results stay.

    program.py  ->  run as it is: 3 graph breaks, 1 recompile, output
                ->  advice on each (depyf.advice) as edits, in memory
                ->  run with them: 0 breaks, 0 recompiles, the same output  ->  unified diff

``trial.py`` runs a program with other texts in the place of its files, which stay as they are, and records what torch
did and what the program gave. ``search.py`` decides what to keep; ``patch.py`` makes the texts with it, and takes a
change out again. ``outcome.py`` compares two runs.
"""
