"""A patch for a program: changes that advice proposes, tried, and taken where they help and the results stay.

    program.py  ->  run as it is: 3 graph breaks, 1 recompile, output
                ->  advice on each (depyf.advice) as edits, in memory
                ->  run with them: 0 breaks, 0 recompiles, the same output  ->  unified diff

``trial.py`` runs a program with other texts in the place of its files, which stay as they are. ``search.py`` decides
which changes to take; ``patch.py`` makes the texts; ``outcome.py`` compares two runs, ``generated.py`` calls with
generated inputs (``variations.py``) and forced conditions.
"""
