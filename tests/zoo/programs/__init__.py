"""The programs, by name; each takes ``compiled`` (see ``registry``) and returns all that can be observed."""

from . import (
    autograd,
    breaks,
    classes,
    containers,
    contexts,
    control_flow,
    data,
    directives,
    errors,
    functions,
    generators,
    modules,
    mutation,
    nesting,
    shapes,
)
from .registry import PROGRAMS, Compiled

__all__ = [
    "PROGRAMS",
    "Compiled",
    "autograd",
    "breaks",
    "classes",
    "containers",
    "contexts",
    "control_flow",
    "data",
    "directives",
    "errors",
    "functions",
    "generators",
    "modules",
    "mutation",
    "nesting",
    "shapes",
]
