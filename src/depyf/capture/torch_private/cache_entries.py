"""Cache entries of a code object, torch's own check of their guards, and other code in their place.

A call's values are the local variables of its frame when it begins, captured ones included, by name: parameters bound
to arguments (``{'x': x, 's': 4.0}``). Nothing here runs, compiles or counts anything.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from ...values import frozen
from ..object_facts import closure_values
from . import private_api
from .compiled_callables import given_to_compile, inner_backend
from .guards import unobserved
from .hooks import Undo

COMMON_REGION = -1  #: The region of those that were compiled without ``isolate_recompiles``.


@frozen
class GuardCheck:
    """Torch's answer whether a cache entry fits a call."""

    fits: bool  # all guards hold
    failed: tuple[str, ...]  # the first guards that do not, as torch prints them, with the user's line after `#`


@dataclass(frozen=True, eq=False)
class Entry:
    """A cache entry of a code object."""

    code: CodeType  # the transformed code
    compile_id: tuple[int, int] | None  # `(frame, recompile)`; `None` where torch does not keep it
    guard_manager: Any
    backend: Any  # what torch compares with the backend of a call
    region: int  # cache entries of `isolate_recompiles=True` serve calls of their region only
    given_up: bool  # torch no longer uses it, as an object is gone that its guards compare with
    entry: Any  # torch's own object

    @property
    def name(self) -> str:
        """``[0/1]``; ``[?]`` where torch keeps no id."""
        return f"[{self.compile_id[0]}/{self.compile_id[1]}]" if self.compile_id is not None else "[?]"

    def check(self, values: Mapping[str, Any]) -> GuardCheck:
        """Evaluate the guards for the values that a call begins with.

        Torch's other check reorders guards by how often each failed; this one leaves them as they are.
        """
        try:
            with unobserved():
                answer = getattr(self.guard_manager, private_api.GUARD_CHECK.attribute)(dict(values))
        except Exception as error:  # a guard may read a user's attribute that raises
            return GuardCheck(False, (f"a guard could not be evaluated ({type(error).__name__}: {error})",))
        return GuardCheck(bool(answer.result), tuple(map(str, answer.verbose_code_parts)))


def failure_reason(entry: Entry, values: Mapping[str, Any]) -> str:
    """Return why a cache entry does not fit a call, as torch says it when it compiles again.

    (Of conditions on sizes, which torch tests together, this is the one that fails.)
    """
    if entry.given_up:
        return str(entry.guard_manager.invalidation_reason)
    try:
        return str(private_api.GUARD_REASON.get()(entry.guard_manager, dict(values), entry.entry.compile_id,
                                                  entry.backend))
    except Exception:  # (a condition may raise, as may a torch that has the function in another form)
        return "; ".join(entry.check(values).failed)


def stance() -> tuple[str, bool]:
    """Return the stance of ``torch.compiler.set_stance`` that applies, and whether it skips guards."""
    current = private_api.CURRENT_STANCE.get_or(None)
    return str(getattr(current, "stance", "default")), bool(getattr(current, "skip_guard_eval_unsafe", False))


def last_failure(code: CodeType) -> str:
    """Return the kind of error with which torch's last attempt to compile a function ended; ``""``: with none.

    After most of them torch silently skips the function from then on, also in calls that a version fits.
    """
    attempts = private_api.COMPILATION_METRICS.get_or(list)()
    where = code.co_name, code.co_filename, code.co_firstlineno
    for each in reversed(attempts):
        if tuple(getattr(each, name, None) for name in ("co_name", "co_filename", "co_firstlineno")) == where:
            return str(getattr(each, "fail_type", None) or "").rpartition(".")[2]
    return ""


def recompile_limit() -> int | None:
    """Return the number of versions at which torch stops compiling a function; ``None`` where it does not say."""
    limit = private_api.RECOMPILE_LIMIT.get_or(None)
    return int(limit) if limit is not None else None


@frozen
class CompiledWith:
    """The backend and region of what ``torch.compile`` returned: its calls use cache entries of these only."""

    backend: Any = None
    region: int = COMMON_REGION

    def uses(self, entry: Entry) -> bool:
        """Return whether calls of it look at a cache entry; any, where its backend is not known."""
        of_region = entry.region in (self.region, COMMON_REGION)  # (a common one serves every region)
        return of_region and (self.backend is None or same_backend(entry.backend, self.backend))


def entries(code: CodeType, compiled_with: CompiledWith | None = None) -> list[Entry]:
    """Return the cache entries of a code object in the order in which torch tries them.

    With ``compiled_with`` only those that its calls look at.

    Raises:
        MissingPrivateApi: this torch does not show them, or not of which backend they are.
    """
    of_one_backend = compiled_with is not None and compiled_with.backend is not None
    result = []
    for each in cache_entries(code):
        if each.code is None:
            continue  # of an object that is gone
        own_id = getattr(each, "compile_id", None)
        ids = (int(own_id.frame_id), int(own_id.frame_compile_id)) if own_id is not None else None
        backend = backend_of(each) if of_one_backend else getattr(each, "backend", None)
        manager = getattr(each, "guard_manager", None)
        # (It has a reason once an object is gone that its guards compare with; it is then the last of the entries.)
        entry = Entry(each.code, ids, manager, backend, int(getattr(each, "isolate_recompiles_id", COMMON_REGION)),
                      hasattr(manager, "invalidation_reason"), each)
        if compiled_with is None or compiled_with.uses(entry):
            result.append(entry)
    # A region's own are tried first.
    return result if compiled_with is None else sorted(result, key=lambda entry: entry.region != compiled_with.region)


def known_codes() -> list[CodeType]:
    """Return the code objects that torch was asked to compile since it was last reset, as far as they still exist."""
    references = getattr(private_api.SEEN_CODES.get_or(None), "seen", ())
    return [code for reference in references if isinstance(code := reference(), CodeType)]


def compiled_with(compiled: Any) -> CompiledWith | None:
    """Return the backend and region of what ``torch.compile`` returned; ``None`` if it did not return that."""
    wrapper = wrapper_of(compiled)
    if wrapper is None:
        return None
    backend = closure_values(wrapper).get("callback")
    for _ in range(20):  # (an entry has the innermost of torch's wrappers of a backend: ``get_backend``)
        if (inner := inner_backend(backend)) is None:
            break
        backend = inner
    return CompiledWith(backend, int(getattr(wrapper, "_isolate_recompiles_id", COMMON_REGION)))


def wrapper_of(compiled: Any) -> FunctionType | None:
    """Return torch's function that calls of what ``torch.compile`` returned go through; ``None`` for anything else.

    Of a module it is the ``forward`` of what ``torch.compile`` made of it, or where its own ``compile`` was called, the
    call of that.
    """
    own = vars(compiled) if hasattr(compiled, "__dict__") else {}
    # (A module of `torch.compile`; one whose `compile` or `forward` was.)
    candidates = [compiled, own.get("forward"), own.get(private_api.COMPILED_CALL.key)]
    return next((each for each in (getattr(each, "__func__", each) for each in candidates)
                 if isinstance(each, FunctionType) and given_to_compile(each) is not None), None)


# --- the compiled versions of a code object ----------------------------------------------------------
def cache_entries(code: CodeType) -> list[Any]:
    """Return the cache entries of a code object, in the order in which their guards are tried."""
    return list(private_api.CACHE_ENTRIES.get()(code))


def was_asked(code: CodeType) -> bool:
    """Return whether torch was asked to compile a code object; it silently skips frames without tensors."""
    return code in private_api.SEEN_CODES.get_or(())


def backend_of(entry: Any) -> Any:
    """Return the backend that a cache entry is of.

    A torch before 2.11 does not show it: there it is the only one of the process.

    Raises:
        MissingPrivateApi: this torch does not show it, and there are several.
    """
    if private_api.ENTRY_BACKEND.present():
        return entry.backend
    backends = [backend for backend in private_api.BACKENDS.get().values() if callable(backend)]
    if not backends or not all(same_backend(backends[0], other) for other in backends):
        raise private_api.MissingPrivateApi(
            f"this torch does not show which of {len(backends)} backends a compiled version is of; torch 2.11 does, "
            "and in a process with one backend it is known")
    return backends[0]


def same_backend(one: Any, other: Any) -> bool:
    """Return whether torch takes two backends for the same (``backend_match``)."""
    try:
        return one is other or type(one) is type(other) and bool(one == other)
    except Exception:
        return False


# --- other code in place of compiled versions --------------------------------------------------------
# Torch looks among its precompiled versions, with guards of their own, before its cache. A version of the cache is
# added there, with the same guards and other code, and removed afterwards. The cache is unchanged.
def can_replace() -> bool:
    """Return whether this torch has precompiled versions."""
    return all(api.present() for api in (
        private_api.ADD_VERSION, private_api.ADDED_VERSIONS, private_api.REMOVE_VERSIONS, private_api.CACHE_ENTRIES,
        private_api.CACHE_ENTRY))


def replace_versions(
    functions: Iterable[CodeType], replacement: Callable[[CodeType], CodeType | None]
) -> tuple[Undo, dict[CodeType, str]]:
    """Run other code in place of the compiled versions of functions, in the same order.

    Args:
        functions: their original code.
        replacement: returns the code to run for a version's code; ``None`` leaves that.

    Returns:
        What undoes all of it, and the functions that were left as they are, with the reason: their versions belong to
        several backends, which precompiled versions do not distinguish, or may do so.
    """
    add, remove = private_api.ADD_VERSION.get(), private_api.REMOVE_VERSIONS.get()
    left: dict[CodeType, str] = {}
    with contextlib.ExitStack() as undo:
        for function in functions:
            versions = cache_entries(function)
            codes = [replacement(version.code) for version in versions]
            if not any(codes) or private_api.ADDED_VERSIONS.get()(function):
                continue
            if why := _several_backends(versions):
                left[function] = why
                continue
            undo.callback(remove, function)
            for version, code in zip(versions, codes):
                add(function, version.guard_manager, code or version.code)
        return undo.pop_all().close, left


def _several_backends(versions: list[Any]) -> str:
    """Return why calls with one backend, or of one region, look at some of these versions only; ``""``: at all."""
    try:
        first, *others = map(backend_of, versions)
    except private_api.MissingPrivateApi:
        return "may have been compiled for several backends, which this torch does not report"
    regions = {getattr(version, "isolate_recompiles_id", None) for version in versions}
    if len(regions) > 1 or not all(same_backend(first, other) for other in others):
        return "was compiled for several backends"
    return ""
