"""The page in a notebook: a :class:`View` of records, which is the value of a cell.

    %%depyf                    magic.py: watches what the cell compiles, and shows it below (needs IPython)
    model(x)

    depyf.explain.interactive("dump")    view.py: HTML with a text beside it, for front ends that show none

(``pip install depyf[notebook]``)
"""

from .view import HEIGHT, INLINE, View

__all__ = ["HEIGHT", "INLINE", "View"]
