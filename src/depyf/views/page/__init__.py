"""``index.html``: one HTML text made of records, which needs no network and no torch.

    data.py      {"runs": [{"units": [...], "breaks": [...], "graphs": [...], "docs": [...]}]}: terms of the page's data
    run.py       numbers for documents, files and lines, which all parts share; the status of lines
    functions.py the parts for functions, graphs and kernels
    assemble.py the data, packed, with the script and the style, under a strict policy

``static/`` has the script and the style, built from ``frontend/`` by ``make page-assets``.
"""

from .assemble import FILE, build, is_large, unpacked, write, write_text

__all__ = ["FILE", "build", "is_large", "unpacked", "write", "write_text"]
