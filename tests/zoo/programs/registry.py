"""What all programs share: the decorator that registers them, and ``compiled``."""

import functools

import torch

PROGRAMS = {}


class Compiled:
    """``torch.compile`` with the backend under test: ``@compiled`` or ``@compiled(dynamic=True)``."""

    def __init__(self, backend):
        self.backend = backend

    def __call__(self, function=None, **options):
        if function is None:
            return functools.partial(self, **options)
        return torch.compile(function, backend=self.backend, **options)


def program(function=None, *, skipped_by_torch=False):
    """``skipped_by_torch``: torch compiles no frame of it, so there is no transformed code to show."""
    if function is None:
        return functools.partial(program, skipped_by_torch=skipped_by_torch)
    assert function.__name__ not in PROGRAMS, f"two programs are called {function.__name__}"
    function.skipped_by_torch = skipped_by_torch
    PROGRAMS[function.__name__] = function
    return function


def outcome(function, *args, **kwargs):
    """The result, or the exception as something that can be compared."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, error.args
