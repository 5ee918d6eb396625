"""The sections of ``index.md``: each is a function of the :class:`~.context.SectionContext` that gives its lines.

    breaks(run)  ->  ["## Graph breaks", "", "At a graph break ...", "### Data-dependent branching (GB0170)", ...]

A section with nothing to say gives no lines. The context knows the records, names places and functions in the same
way for all, and notes the files that the text names.
"""
