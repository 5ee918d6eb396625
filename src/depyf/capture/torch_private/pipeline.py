"""A compilation isolated from the user's: Inductor's stages one by one, with its own caches; nothing of it remains."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import inspect
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from . import cache_entries, hooks, private_api
from .compiled_callables import inner_backend
from .hooks import SharedPatch, Undo, replaced, shared_patch

#: Settings of Inductor's while stages are compared: no caches, random numbers as eager PyTorch draws them, no process
#: pool, no precompiled header in a directory that is removed at the end.
_INDUCTOR = {
    "fx_graph_cache": False, "fx_graph_remote_cache": False, "fallback_random": True, "compile_threads": 1,
    "cpp_cache_precompile_headers": False}
_NO_CACHES = {name: value for name, value in _INDUCTOR.items() if name != "fallback_random"}
_AUTOGRAD = {"enable_autograd_cache": False, "enable_remote_autograd_cache": False}
#: Settings of Dynamo's: sizes seen are not remembered, and a function that is compiled often is compiled once more.
_DYNAMO = {"automatic_dynamic_shapes": False, "recompile_limit": 100000, "accumulated_recompile_limit": 1000000,
           "cache_size_limit": 100000, "accumulated_cache_size_limit": 1000000, "suppress_errors": False}
_SAME_RANDOM = {"use_numpy_random_stream": True}  #: Stages are compared with the same random numbers, NumPy's too.


@contextlib.contextmanager
def isolated_compile(draws_as_eager: bool = True) -> Iterator[None]:
    """Isolate what is compiled inside: it is written to a directory that is then removed.

    None of torch's caches is read or filled. Afterwards the cache entries made inside are gone from all functions;
    earlier ones remain.

    Args:
        draws_as_eager: what is compiled draws the random numbers of eager Python.
    """
    names = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
    before = {name: os.environ[name] for name in names if name in os.environ}
    compiled: dict[int, tuple[CodeType, int]] = {}  # with the number of entries before, by id

    def on_bytecode(original: CodeType, transformed: CodeType) -> None:
        if id(original) not in compiled:
            compiled[id(original)] = original, len(cache_entries.cache_entries(original))

    with tempfile.TemporaryDirectory(prefix="depyf_compare_", ignore_cleanup_errors=True) as directory, _uncounted():
        undo = hooks.on_bytecode(on_bytecode)
        try:
            for name in names:
                os.environ[name] = os.path.join(directory, name.lower())
            with _patched(private_api.DYNAMO_SETTINGS, _DYNAMO | (_SAME_RANDOM if draws_as_eager else {})), \
                    _patched(private_api.INDUCTOR_SETTINGS, _INDUCTOR if draws_as_eager else _NO_CACHES), \
                    _patched(private_api.AUTOGRAD_SETTINGS, _AUTOGRAD):
                yield
        finally:
            undo()
            for name in names:
                os.environ.pop(name, None)
            os.environ.update(before)
            for code, entries_before in compiled.values():
                _forget(code, entries_before)


@contextlib.contextmanager
def _uncounted() -> Iterator[None]:
    """Give torch's numbers and counts of compilations, and the sizes that it has seen, back at the end."""
    with contextlib.ExitStack() as undo:
        with contextlib.suppress(private_api.MissingPrivateApi, AttributeError):
            numbers = private_api.FRAME_NUMBERS.get()
            undo.callback(setattr, numbers, "FRAME_COUNTER", numbers.FRAME_COUNTER)
            undo.callback(_refill, numbers.FRAME_COMPILE_COUNTER, dict(numbers.FRAME_COMPILE_COUNTER))
        counters = private_api.COUNTERS.get_or({})
        counts = {name: dict(each) for name, each in counters.items()}
        undo.callback(lambda: [_refill(each, counts.get(name, {})) for name, each in list(counters.items())])
        with contextlib.suppress(Exception):  # (torch reads its files for it, if it has not)
            sizes = private_api.SIZES_SEEN.get()()
            undo.callback(_refill, sizes, copy.deepcopy(dict(sizes)))
        yield


def _refill(mapping: Any, items: dict[Any, Any]) -> Any:
    mapping.clear()
    mapping.update(items)


@contextlib.contextmanager
def uncached() -> Iterator[None]:
    """Compile inside without reading or filling a cache of torch's, and as often as is wanted."""
    with as_the_program(), _patched(private_api.INDUCTOR_SETTINGS, _NO_CACHES), \
            _patched(private_api.AUTOGRAD_SETTINGS, _AUTOGRAD):
        yield


@contextlib.contextmanager
def as_the_program() -> Iterator[None]:
    """Compile inside with the settings of the program, but as often as is wanted."""
    settings = {name: value for name, value in _DYNAMO.items() if name != "automatic_dynamic_shapes"}
    with _patched(private_api.DYNAMO_SETTINGS, settings):
        yield


def _patched(api: private_api.PrivateApi, wanted: dict[str, Any]) -> contextlib.AbstractContextManager[Any]:
    try:
        config = api.get()
        patched: contextlib.AbstractContextManager[Any] = config.patch(
            {name: value for name, value in wanted.items() if hasattr(config, name)})
    except (private_api.MissingPrivateApi, AttributeError):
        return contextlib.nullcontext()
    return patched


def _forget(code: CodeType, before: int) -> None:
    """Remove the cache entries that we made for a function; all of them, where there were none ``before``."""
    # (One that remains, in another torch, fits no other backend.)
    with contextlib.suppress(private_api.MissingPrivateApi, AttributeError, TypeError, RuntimeError):
        if not before:
            forget(code)
            return
        deleted = private_api.DELETED_GUARDS.get()
        for entry in cache_entries.cache_entries(code):
            if any(getattr(each, "depyf_compares", False) for each in _backends(entry)):
                entry.guard_manager.extra_state.invalidate(entry, deleted("made by depyf.compare"))


def forget(code: CodeType) -> None:
    """Remove all cache entries of a function, for good."""
    private_api.RESET_CODE.get()(code)


def _backends(entry: Any) -> Iterator[Any]:
    """Yield the backend of a cache entry, and those in it."""
    backend = getattr(entry, "backend", None)
    for _ in range(10):
        yield backend
        backend = inner_backend(backend) or getattr(backend, "compiler_fn", None)


@contextlib.contextmanager
def all_eager() -> Iterator[None]:
    """Inside, functions that were compiled run as they are written, and operators like ``torch.cond`` as usual.

    (Those compile the functions that they get also in eager Python, and have no gradients where that is switched off.)
    """
    stance = private_api.PUBLIC_STANCE.get_or(contextlib.nullcontext)

    def usual(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        with stance("default"):
            return call(*args, **kwargs)

    undo = replaced(private_api.OPERATOR_IN_EAGER, usual) if private_api.OPERATOR_IN_EAGER.present() else lambda: None
    try:
        with stance("force_eager"):
            yield
    finally:
        undo()


def inductor(gm: Any, inputs: Any, inner: Callable[..., Any] | None = None) -> Any:
    """Return the function that Inductor makes of a captured graph for examples of its inputs.

    ``inner(graph module, inputs, **options)`` compiles the forward and backward graphs in Inductor's place.

    Raises:
        MissingPrivateApi: this torch has no such function.
    """
    compile_fx = private_api.COMPILE_FX.get()
    return compile_fx(gm, inputs) if inner is None else compile_fx(gm, inputs, **{private_api.COMPILE_FX.key: inner})


def inductor_inner() -> Callable[..., Any]:
    """Return the function that compiles forward and backward graphs, unless another is given."""
    inner = inspect.signature(private_api.COMPILE_FX.get()).parameters[private_api.COMPILE_FX.key].default
    assert callable(inner)
    return inner


def plain_aot(gm: Any, inputs: Any, forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    """Return what AOTAutograd makes of a captured graph without decompositions; the functions compile its graphs."""
    return private_api.AOT_AUTOGRAD.get()(fw_compiler=forward, bw_compiler=backward)(gm, inputs)


def on_post_grad(after: Callable[[Any], None]) -> Undo:
    """``after(graph module)`` once Inductor's passes have changed a graph that it then makes kernels of."""

    def passes(original: Any, gm: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(gm, *args, **kwargs)
        caller = sys._getframe(2)
        if caller.f_code.co_name != private_api.POST_GRAD.attribute:  # an inner graph comes first
            after(gm)
        return result

    return hooks.replaced(private_api.POST_GRAD, passes)


# --- separate caches, or none ------------------------------------------------------------------------
#: Between the tag of the tool and that of the lines of a graph.
_LINES = "@"


def watch_caches(caches: str, note: Callable[[str], None]) -> Undo | None:
    """Set torch's caches to ``"separate"``, ``"bypass"`` or ``"use"``, and note what that means."""
    if caches == "separate":
        return _set(private_api.CACHE_KEY, lambda before: f"{before}depyf-1", lambda tag: tag.partition(_LINES)[0])
    if caches == "bypass":
        note('torch\'s compile caches were not used (caches="bypass")')
        return bypass_caches()
    note('torch\'s compile caches were used as they are (caches="use"): graphs that an entry made '
         "without depyf lacks are missing")
    return None


def bypass_poor_caches(note: Callable[[str], None]) -> Undo | None:
    """Use no cache where its entries lack the graph after Inductor's passes, even separate ones."""
    if private_api.POST_GRAD_KEPT.as_expected():
        note("torch's compile caches: entries made under depyf are separate from others, so that "
             'they always contain the graphs (caches="separate")')
        return None
    note("torch's compile caches were not used: those of this torch lack the graphs after "
         'Inductor\'s passes (caches="use" uses them, and such graphs are missing)')
    return bypass_caches()


def separate_caches_of_lines(gm: Any) -> None:
    """Separate entries that torch caches, until the next graph, from those of graphs that came from other lines.

    The text of a graph names its lines, and torch takes two graphs for the same that do the same: without this, the
    text could name the file of another program. (Its backward graph is compiled later.)
    """
    try:
        owner, name = private_api.CACHE_KEY.owner(), private_api.CACHE_KEY.attribute
    except private_api.MissingPrivateApi:
        return
    if not shared_patch((owner, name)).wanted:
        return  # entries are not separate: nothing would remove the lines again
    numbers: dict[str, int] = {}  # of stack traces, which nodes share
    order = [numbers.setdefault(str(getattr(node, "stack_trace", "")), len(numbers)) for node in gm.graph.nodes]
    digest = hashlib.blake2b("\0".join([*numbers, str(order)]).encode(), digest_size=8).hexdigest()
    setattr(owner, name, f"{getattr(owner, name).partition(_LINES)[0]}{_LINES}{digest}")


def bypass_caches() -> Undo:
    """Have torch read nothing from its caches, and write nothing to them.

    Torch then warns that it has no profile of shapes, either. A warning can be an error to the program, which did
    not cause this.
    """
    undo = contextlib.ExitStack()
    undo.callback(_set(private_api.NO_CACHES, lambda before: True))
    with contextlib.suppress(private_api.MissingPrivateApi):
        undo.callback(replaced(private_api.NO_CACHES_WARNING, lambda *args, **kwargs: None))
    return undo.close


def _set(
    api: private_api.PrivateApi, value_of: Callable[[Any], Any], ours_in: Callable[[Any], Any] = lambda value: value,
) -> Undo:
    """Set an option of torch's to ``value_of(the user's)``, until the end; of one set since ``ours_in`` is our part."""
    api.get()
    owner, name = api.owner(), api.attribute

    def make(_: SharedPatch[None]) -> Undo:
        before = getattr(owner, name)
        ours = value_of(before)
        setattr(owner, name, ours)

        def undo() -> None:
            if ours_in(getattr(owner, name)) == ours:
                setattr(owner, name, before)

        return undo

    return shared_patch((owner, name)).acquire(None, make)
