"""Dumps of real programs (programs.py), each made once, and their pages.

``DEPYF_PAGE_DUMPS`` names a directory where they are kept between runs of the tests.
"""

import os
import pathlib
import subprocess
import sys

import pytest

from depyf import page
from depyf.records import store
from torch_forks import torch_python

PROGRAMS = pathlib.Path(__file__).with_name("programs.py")


def run_program(name, target):
    """Runs a program under ``prepare_debug``."""
    target.parent.mkdir(parents=True, exist_ok=True)
    ranks = (0, 1) if name == "ranks" else (None,)
    for rank in ranks:
        environment = {**os.environ,
                       # Entries of torch's caches name the files from which they were first compiled.
                       "TORCHINDUCTOR_CACHE_DIR": str(target.parent / "cache"),
                       "PYTHONPATH": os.pathsep.join(sys.path)}
        if rank is not None:
            environment |= {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_PORT": "29511"}
        done = subprocess.run([*torch_python(), str(PROGRAMS), name, str(target)], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="session")
def dump(tmp_path_factory):
    """``dump("toy")``: the directory of that program's dump."""
    pytest.importorskip("torch")
    kept = os.environ.get("DEPYF_PAGE_DUMPS")
    base = pathlib.Path(kept) if kept else tmp_path_factory.mktemp("dumps")
    large = os.environ.get("DEPYF_PAGE_LARGE")

    def of(name):
        if name == "large":
            if not large:
                pytest.skip("DEPYF_PAGE_LARGE names no dump of the 48-layer model (make page)")
            return pathlib.Path(large)
        if name == "decoder":
            pytest.importorskip("transformers")
        target = base / name
        if not (target / "index.md").exists():
            run_program(name, target)
        return target

    return of


@pytest.fixture(scope="session")
def captures(dump):
    """``captures("ranks")``: the records, by rank (``""``: the only process)."""
    known = {}

    def of(name):
        if name not in known:
            path = dump(name)
            known[name] = {f"rank {n}": store.read(str(path / f"rank_{n}")) for n in (0, 1)} if name == "ranks" else {
                "": store.read(str(path))}
        return known[name]

    return of


@pytest.fixture(scope="session")
def page_of(captures, tmp_path_factory):
    """``page_of("toy")``: the file of that dump's page."""
    known = {}

    def of(name):
        if name not in known:
            captured = captures(name)
            path = tmp_path_factory.mktemp(name) / "index.html"
            known[name] = pathlib.Path(page.write(str(path), captured.get("") or captured))
        return known[name]

    return of
