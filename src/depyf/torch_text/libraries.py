"""Paths of files that nobody wrote for the program: torch's own and those of the standard library."""

from __future__ import annotations

import functools
import re

_LIBRARY = (
    r"[\\/](?:site|dist)-packages[\\/]torch[\\/]|[\\/]lib[\\/]python3(?:\.\d+)?t?[\\/](?!(?:site|dist)-packages)"
    r"|[\\/]Lib[\\/](?!site-packages)|^<frozen ")
_TORCH = re.compile(r"[\\/](?:site|dist)-packages[\\/]torch[\\/]")


def is_library(filename: str) -> bool:
    """Return whether a path is of a file of torch's or of the standard library, on whatever machine."""
    return re.search(_LIBRARY, filename) is not None


def is_polyfill(filename: str) -> bool:
    """Return whether a path is of the functions that torch traces in the place of those of C, as ``any``."""
    return re.search(r"[\\/]torch[\\/]_dynamo[\\/]polyfills[\\/]", filename) is not None


#: Files through which a condition on sizes goes, whoever asks for it: torch's own, ours that watch its trace, and the
#: text of a condition that torch evaluates.
_SIZES = re.compile(
    r"[\\/]torch[\\/](?:fx[\\/]experimental[\\/]|_inductor[\\/]sizevars\.py|__init__\.py|_logging[\\/]|utils[\\/]_traceback\.py)"
    r"|[\\/]depyf[\\/]capture[\\/]torch_private[\\/]|^<string>$")
_CACHED = re.compile(
    r"[\\/]torch[\\/](?:_functorch[\\/]_aot_autograd[\\/](?:autograd_cache|aot_autograd_result)\.py"
    r"|_inductor[\\/]codecache\.py)$")
_BACKEND = re.compile(r"[\\/]torch[\\/]_inductor[\\/]")


@functools.lru_cache(4096)
def asks_for_sizes(filename: str) -> bool:
    """Return whether a frame of a file asks for a condition on sizes itself: it is none that only hands it on.

    (Asked of a dozen frames for each condition, while the program is compiled.)
    """
    return _SIZES.search(filename) is None and (_TORCH.search(filename) is not None or not is_library(filename))


def is_from_cache(filename: str) -> bool:
    """Return whether a path is of a file of torch's that takes compiled graphs, with their conditions, from a cache."""
    return _CACHED.search(filename) is not None


def is_of_backend(filename: str) -> bool:
    """Return whether a path is of a file of Inductor's, or of one that takes what Inductor compiled from a cache."""
    return _BACKEND.search(filename) is not None or is_from_cache(filename)
