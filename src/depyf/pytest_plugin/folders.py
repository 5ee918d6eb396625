"""Folders of tests: names that every file system takes, and that tell the tests apart."""

from __future__ import annotations

import hashlib
import itertools
import os
import re

#: Longer names are cut: some file systems take 255 bytes, and files within have names, too.
_LONGEST = 100
#: What depyf itself calls folders in a dump.
_OURS = re.compile(r"(run|rank)_\d+", re.IGNORECASE)


def folder_name(nodeid: str) -> str:
    """Return the name of a test's folder: ``tests.test_model.py.TestNet.test_forward-8-3f2a91c4``.

    Names that were changed by more than their separators end in a hash of the whole, so that no two are the same.
    """
    parts = re.sub(r"::|/|\\", ".", nodeid).strip(".")
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", parts)[:_LONGEST].strip(".-")
    if safe and safe == parts and not _OURS.fullmatch(safe):
        return safe
    return f"{safe or 'test'}-{hashlib.sha256(nodeid.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def session_directory(wanted: str) -> str:
    """Return where a session writes: the directory, or a folder in it where that holds an earlier session.

    It is made when a test compiles something.
    """
    path = os.path.abspath(wanted)
    return next(each for number in itertools.count(1)
                if not _holds_something(each := path if number == 1 else os.path.join(path, f"run_{number}")))


def _holds_something(path: str) -> bool:
    return os.path.isdir(path) and bool(os.listdir(path))
