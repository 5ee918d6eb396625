"""The page in a notebook: :class:`View` is what a cell shows, ``%%depyf`` (:mod:`.magic`) shows what a cell compiled.

Only :mod:`.magic` needs IPython (``pip install depyf[notebook]``).
"""

from .view import HEIGHT, INLINE, View

__all__ = ["HEIGHT", "INLINE", "View"]
