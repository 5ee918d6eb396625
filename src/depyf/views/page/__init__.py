"""``index.html``: a run to look at, in one file that needs no network and no torch.

:func:`build` makes its text of records, :func:`write` a file. The script and the style in it are built from
``frontend/`` by ``make page-assets`` and are part of the package (``static/``).
"""

from .assemble import FILE, build, is_large, unpacked, write, write_text

__all__ = ["FILE", "build", "is_large", "unpacked", "write", "write_text"]
