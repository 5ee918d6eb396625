"""Functions of a dump by the names that people call them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..records.model import Capture, CompiledFunction, Frame


class NoSuchFunction(ValueError):
    """A dump holds no function of a name; the message says which it holds."""


def frame_of(capture: Capture, name: str) -> Frame:
    """Return the function (or resume function) of a name.

    Args:
        capture: the dump.
        name: ``"Decoder.forward"``, ``"forward"``, ``"__resume_at_10_2"``; or the id of a version, ``"0/1"``.

    Raises:
        NoSuchFunction: there is none, or several; the message names those that there are.
    """
    frames = [(frame, first) for function in capture.functions
              for first, frame in zip((True, *(False for _ in function.frames)), _that_serve(function, capture.lost))
              if frame.entries]
    ids = name.removeprefix("[").removesuffix("]").split("/")
    if len(ids) == 2 and all(each.isdecimal() for each in ids):
        found = [frame for frame, _ in frames for entry in frame.entries
                 if [entry.compile_id.frame, entry.compile_id.recompile] == list(map(int, ids))]
    else:
        found = [frame for frame, first in frames if name in _names(frame, first)]
    if len(found) == 1:
        return found[0]
    there = ", ".join(f"{_called(frame, first)} ({', '.join(_ids(frame))})" for frame, first in frames)
    if not found:
        raise NoSuchFunction(f"there is no compiled {name}; there is {there or 'no compiled function'}")
    raise NoSuchFunction(f"{len(found)} functions are called {name}; give the id of one of their versions: {there}")


def _that_serve(function: CompiledFunction, lost: frozenset[tuple[int, int, int]]) -> Iterator[Frame]:
    """Yield the frames of a function without what torch had made of compilations that failed."""
    for frame in function.frames:
        yield replace(frame, entries=tuple(each for each in frame.entries if each.compile_id.key not in lost))


def _names(frame: Frame, first: bool) -> set[str]:
    names = {frame.name}
    return names | {frame.title, frame.title.rpartition(".")[2]} if first else names


def _called(frame: Frame, first: bool) -> str:
    return frame.title or frame.name if first else frame.name


def _ids(frame: Frame) -> Iterator[str]:
    return (f"{entry.compile_id.frame}/{entry.compile_id.recompile}" for entry in frame.entries[:4])
