"""Paths of files that nobody wrote for the program: torch's own and those of the standard library."""

from __future__ import annotations

import re

_LIBRARY = (
    r"[\\/](?:site|dist)-packages[\\/]torch[\\/]|[\\/]lib[\\/]python3(?:\.\d+)?t?[\\/](?!(?:site|dist)-packages)"
    r"|[\\/]Lib[\\/](?!site-packages)|^<frozen ")


def is_library(filename: str) -> bool:
    """Return whether a path is of a file of torch's or of the standard library, on whatever machine."""
    return re.search(_LIBRARY, filename) is not None


def is_polyfill(filename: str) -> bool:
    """Return whether a path is of the functions that torch traces in the place of those of C, as ``any``."""
    return re.search(r"[\\/]torch[\\/]_dynamo[\\/]polyfills[\\/]", filename) is not None


def is_of_inductor(filename: str) -> bool:
    """Return whether a path is of a file of Inductor's, other than the one through which all its conditions go."""
    return re.search(r"[\\/]torch[\\/]_inductor[\\/](?!sizevars\.py)", filename) is not None
