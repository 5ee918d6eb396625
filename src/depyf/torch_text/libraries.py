"""Paths of files that are not part of the program: torch's own and those of the standard library."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

#: Torch's own files: where pip installs them, and packages of a checkout that no program has.
_TORCH = re.compile(r"/(?:site|dist)-packages/torch/|/torch/(?=_(?:dynamo|inductor|functorch|export)/)")
#: The standard library, without packages that pip installs below it.
_STANDARD = re.compile(r"/lib/python3(?:\.\d+)?t?/(?!(?:site|dist)-packages)|/Lib/(?!site-packages)|^<frozen ")


def is_library(filename: str) -> bool:
    """Return whether a path is of a file of torch's or of the standard library, on whatever machine."""
    path = _with_slashes(filename)
    return _is_torchs(path) or _STANDARD.search(path) is not None


_CACHES = (
    "/torch/_functorch/_aot_autograd/autograd_cache.py", "/torch/_functorch/_aot_autograd/aot_autograd_result.py",
    "/torch/_inductor/codecache.py")
#: Parts of torch, and of depyf, by what is in the paths of their files.
_PARTS = {
    "hooks": ("/depyf/capture/torch_private/",),  # that wrap functions of torch's while depyf watches
    "polyfills": ("/torch/_dynamo/polyfills/",),  # which torch traces in the place of functions of C, as `any`
    "compiled autograd": ("torch/_dynamo/compiled_autograd.py",),  # whose line each node of a backward graph has
    "export": ("/torch/export/", "/torch/_export/"),
    "caches": _CACHES,  # take compiled graphs, with their conditions on sizes
    "backend": ("/torch/_inductor/", *_CACHES)}


def is_of(part: str, filename: str) -> bool:
    """Return whether a path is of a file of one of these parts."""
    path = _with_slashes(filename)
    return any(each in path for each in _PARTS[part])


def is_generated(filename: str) -> bool:
    """Return whether a path is the name that ``torch.fx`` gives the code that it makes of a graph."""
    return filename.startswith("<eval_with_key>")


def is_public(function: str) -> bool:
    """Return whether a function of torch's has a name that a program calls; that of a decorator's wrapper is none."""
    return not function.startswith("_") and function != "wrapper"


#: Parts of paths of files of torch's that pass a condition on sizes on.
_SIZES = (
    "/torch/fx/experimental/", "/torch/_inductor/sizevars.py", "/torch/__init__.py", "/torch/_logging/",
    "/torch/utils/_traceback.py")


@functools.lru_cache(4096)
def asks_for_sizes(filename: str) -> bool:
    """Return whether a frame of a file evaluates a condition on sizes itself, and does not only pass it on.

    (Called for a dozen frames of each condition, while the program is compiled.)
    """
    path = _with_slashes(filename)
    if path == "<string>" or any(part in path for part in _SIZES):  # (a condition that torch evaluates as a text)
        return False
    return _is_torchs(path) or not is_library(path)


#: Files of classes that wrap a module of the user's.
_WRAPPERS = {
    "torch/nn/parallel/distributed.py": "DistributedDataParallel",
    "torch/nn/parallel/data_parallel.py": "DataParallel",
    "torch/distributed/fsdp/fully_sharded_data_parallel.py": "FullyShardedDataParallel",
}


def wrapper_class(filename: str) -> str:
    """Return the class that wraps a module of the user's, by its file; ``""`` for any other file."""
    path = _with_slashes(filename)
    return next((name for file, name in _WRAPPERS.items() if path.endswith(file)), "")


def is_of_dynamo(filename: str) -> bool:
    """Return whether a path is of a file of Dynamo's, which wraps functions itself."""
    return "torch/_dynamo/" in _with_slashes(filename)


#: Torch's compilers, without what runs its tests.
_COMPILERS = re.compile(r"/torch/(?:_dynamo/(?!test_case)|_inductor/|_functorch/|_export/|export/)")


def is_of_compiler(filename: str) -> bool:
    """Return whether a path is of a file of Dynamo's, AOTAutograd's, Inductor's or of ``torch.export``."""
    return _COMPILERS.search(_with_slashes(filename)) is not None


_ENTRANCE = "_dynamo/eval_frame.py"  #: The file of torch's with what calls compiled code.


def knows_callers(filenames: Iterable[str]) -> bool:
    """Return whether a stack shows how compiled code was entered (that of torch's own event mostly ends before it)."""
    return any(_with_slashes(filename).endswith(_ENTRANCE) for filename in filenames)


def enters_compiled_code(filenames: Iterable[str]) -> bool:
    """Return whether a stack, innermost file first, enters compiled code, through calls of ``nn.Module`` at most."""
    paths = map(_with_slashes, filenames)
    caller = next((path for path in paths if not path.endswith("torch/nn/modules/module.py")), "")
    return caller.endswith(_ENTRANCE)


def installed_module(filename: str) -> str:
    """Return the name of a module that pip installed, by its file: ``torchvision.ops.nms``; ``""`` for any other."""
    _, installed, path = _with_slashes(filename).rpartition("-packages/")
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return name if installed and all(part.isidentifier() for part in name.split(".")) else ""


def short_path_of_torch(filename: str) -> str:
    """Return a path of a file of torch's as torch shortens it: ``nn/modules/sparse.py``."""
    return filename[-len(_with_slashes(filename).rpartition("/torch/")[2]) :]


def _with_slashes(filename: str) -> str:
    """Return a path with slashes: a dump may be read on another machine."""
    return filename.replace("\\", "/")


def _is_torchs(path: str) -> bool:
    return _TORCH.search(path) is not None


def torch_folder(filename: str) -> str:
    """Return the folder of torch's that a path is in, with a slash at its end; ``""`` for none."""
    match = _TORCH.search(_with_slashes(filename))
    return filename[: match.end()] if match is not None else ""
