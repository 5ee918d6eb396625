"""Torch cuts paths in its guards and reasons; they are made whole again."""

import os

from depyf.capture.torch_private import private_api, trace_events


def test_a_path_that_torch_cut_in_the_middle_of_a_name_is_whole_again():
    files = ["/no_such_root/model.py", "/no_such_root/other/layers.py", None]
    full = trace_events.full_paths(lambda: files)
    shorten = private_api.SHORT_PATHS.get()
    assert shorten("/no_such_root/model.py") == "o_such_root/model.py"  # what is mended here
    for path in files[:2]:
        assert full(shorten(path)) == path
        assert full(path) == path
    files.append("/no_such_root/later.py")
    assert full(shorten("/no_such_root/later.py")) == "/no_such_root/later.py"


def test_a_path_that_was_cut_at_a_border_or_that_nobody_knows_stays():
    full = trace_events.full_paths(lambda: ["/no_such_root/model.py"])
    assert full("model.py") == "model.py"
    assert full("unknown/model.py") == "unknown/model.py"
    assert full("<string>") == "<string>"


def test_files_of_pythons_library_are_told_whole_too(monkeypatch):
    monkeypatch.setattr(os, "__file__", "/no_such_root/lib/os.py")
    path = "/no_such_root/lib/inspect.py"
    assert trace_events.cut_paths([path]) == {"o_such_root/lib/inspect.py": path}
