"""Call compiled code directly, past torch's guards.

torch.compile tests guards at each call to find the compiled version that fits. A program that knows which one fits
can go there directly: :class:`TorchCompileWrapperWithCustomDispatcher`.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from .capture.torch_private import current_compilation, hooks


class TorchCompileWrapperWithCustomDispatcher:
    """A compiled method with a dispatcher of your own.

    A subclass implements ``forward``, passes what ``torch.compile`` made of it to ``__init__``, and decides in
    ``__call__``: ``self.compiled_codes`` are the compiled versions in the order in which they were made, and inside
    ``with self.dispatch_to_code(index):`` a call of ``self.forward`` runs that version, without guards::

        class Model(TorchCompileWrapperWithCustomDispatcher):
            def __init__(self):
                super().__init__(torch.compile(self.forward))

            def forward(self, x):
                return x + 1

            def __call__(self, x):
                if not self.compiled_codes:
                    return self.compiled_callable(x)
                with self.dispatch_to_code(0):
                    return self.forward(x)

    Nothing tests whether the version fits the arguments: that is the caller's business.

    Args:
        compiled_callable: what ``torch.compile`` returned for ``self.forward``.
        use_custom_dispatcher: stored for the subclass to read.

    Attributes:
        compiled_callable: as given.
        compiled_codes: the compiled versions of ``forward`` for this object.
        original_code_object: the code of ``forward``, before anything was compiled.
        use_custom_dispatcher: as given.
    """

    def __init__(self, compiled_callable: Callable[..., Any], use_custom_dispatcher: bool = True) -> None:
        self.compiled_callable = compiled_callable
        self.use_custom_dispatcher = use_custom_dispatcher
        self.original_code_object: CodeType = type(self).forward.__code__
        self.compiled_codes: list[CodeType] = []
        owner = weakref.ref(self)  # Torch keeps its hooks forever, which must not keep the object alive.

        def hook(old_code: CodeType, new_code: CodeType) -> None:
            wrapper = owner()
            if wrapper is not None:
                wrapper.bytecode_hook(old_code, new_code)

        self._forget_hook = weakref.finalize(self, hooks.on_bytecode(hook))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the compiled version to be used; this one leaves the choice to torch.

        It may take other arguments than ``forward``.
        """
        return self.compiled_callable(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute what is compiled; a subclass defines it.

        Raises:
            NotImplementedError: the subclass has none.
        """
        raise NotImplementedError(f"{type(self).__name__} has no forward method")

    def bytecode_hook(self, old_code: CodeType, new_code: CodeType) -> None:
        """Add a version that torch compiled of ``forward`` for this object; torch calls this for each function."""
        frame = current_compilation.compiled_frame() if old_code is self.original_code_object else None
        if frame is not None and frame.values.get("self") is self:
            self.compiled_codes.append(new_code)

    @contextlib.contextmanager
    def dispatch_to_code(self, index: int) -> Iterator[None]:
        """Inside, ``self.forward`` runs the compiled version ``index``, without guards.

        Dynamo gives compiled code the same arguments, cell and free variables as the original, so the function can
        take it. It is the function of the class: other objects and threads that call ``forward`` meanwhile would run
        it too, so blocks of several threads take turns.

        Raises:
            IndexError: there is no such version (yet).
        """
        if not -len(self.compiled_codes) <= index < len(self.compiled_codes):
            raise IndexError(
                f"{type(self).__name__} has {len(self.compiled_codes)} compiled versions, none with index {index}; "
                "call compiled_callable first, with arguments of each kind")
        with _switching:
            forward = type(self).forward
            before = forward.__code__
            forward.__code__ = self.compiled_codes[index]
            try:
                yield
            finally:
                forward.__code__ = before


TorchCompileWrapperWithCustomDispacther = TorchCompileWrapperWithCustomDispatcher  #: As depyf up to 0.18 spelled it.

#: The code of a function is switched by one thread at a time (again by the same one, where blocks are nested).
_switching = threading.RLock()
