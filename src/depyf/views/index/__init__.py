"""``index.md``: a run as Markdown with links to its files.

    # What torch.compile did
    1 function compiled, 2 versions in all, 2 graphs, 1.50 s.
    ## Graph breaks ... ## Recompiles ... ## Not compiled ... ## Dynamic shapes ... ## Cost ... ## Notes

A section is a function of the :class:`~.overview.SectionContext` that gives its lines, none where there is nothing to
say::

    breaks(run)  ->  ["## Graph breaks", "", "At a graph break ...", "### Data-dependent branching (GB0170)", ...]

The context knows the records, names places and functions in the same way for all, and notes the files that the text
names. ``index`` puts the sections in order. ``written`` reads the file again, for ``depyf explain``.
"""
