"""``index.md``: a run as Markdown with links to its files.

    # What torch.compile did
    1 function compiled, 2 versions in all, 2 graphs, 1.50 s.
    ## Graph breaks ... ## Recompiles ... ## Not compiled ... ## Dynamic shapes ... ## Cost ... ## Notes

``index`` puts the ``sections`` in order; ``totals`` counts. ``written`` reads the file again, for ``depyf explain``.
"""
