"""``index.html``: a run to look at, in one file that needs no network and no torch.

:func:`build` makes its text of records, :func:`write` a file::

    from depyf import page
    from depyf.records import store

    page.write("dump/index.html", store.read("dump"), title="my run")

The page is made in :mod:`depyf.views.page`.
"""

from .views.page import FILE, build, is_large, unpacked, write

__all__ = ["FILE", "build", "is_large", "unpacked", "write"]
