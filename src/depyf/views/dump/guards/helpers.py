"""Source of the functions that guards call, as they stand in the files that use them."""

from __future__ import annotations

import re

_TENSOR = '''\
def check_tensor(t, like):
    """Return whether `t` is a tensor as described: "f32[batch, 16] on cpu". A name stands for a size, the same one
    wherever it stands; that is not tested here.
    A tensor of which no layout is named is contiguous."""
    found = re.fullmatch(r"(?:(\\w+) )?(\\w+)\\[(.*?)\\](?: strides \\((.*)\\)| (channels last)| contiguous)?"
                         r" on (\\S+?)(, requires grad)?", like)
    if not isinstance(t, torch.Tensor) or found is None:
        return False
    cls, dtype, sizes, strides, channels_last, device, grad = found.groups()
    sizes = [size.strip() for size in sizes.split(",") if size.strip()]
    short = re.sub(r"^torch\\.(b?)([fuic])[a-z]+(?=\\d)", r"\\1\\2", str(t.dtype)).removeprefix("torch.")
    if not (short == dtype and device in (str(t.device), t.device.type) and t.requires_grad == bool(grad)
            and (cls is None or type(t).__name__ == cls) and len(t.shape) == len(sizes)
            and all(not size.isdigit() or n == int(size) for n, size in zip(t.shape, sizes))):
        return False
    if strides is not None:
        wanted = [stride.strip() for stride in strides.split(",") if stride.strip()]
        return all(not stride.isdigit() or t.stride(k) == int(stride) for k, stride in enumerate(wanted))
    if channels_last:
        return t.is_contiguous(memory_format=torch.channels_last if t.dim() == 4 else torch.channels_last_3d)
    return t.is_contiguous()
'''
_MARKS = '''\
def has_no_marks(t, *marks):
    """Return whether nobody called mark_dynamic, mark_static or the like on `t`."""
    return not any(hasattr(t, mark) for mark in marks or (
        "_dynamo_dynamic_indices", "_dynamo_weak_dynamic_indices", "_dynamo_unbacked_indices",
        "_dynamo_strict_unbacked_indices", "_dynamo_static_indices"))
'''
_SOME_MARKS = '''\
def has_no_marks_but(t, dimensions, mark):
    """Return whether `t` has this mark (of mark_dynamic or the like) at none but these dimensions."""
    return getattr(t, mark, set()) <= set(dimensions)
'''
_TYPE = '''\
def check_type(x, name):
    """Return whether `x` is of the class of this name, and of no subclass."""
    return f"{type(x).__module__}.{type(x).__qualname__}".removeprefix("builtins.") == name
'''
_ALIASING = '''\
def check_no_aliasing(*tensors):
    """Return whether no two of the tensors are the same object."""
    return len(set(map(id, tensors))) == len(tensors)
'''
_STATE = '''\
def check_global_state(grad_mode, default_dtype, deterministic_algorithms=False, num_threads=None, **others):
    """Return whether torch is set as it was when compiling. (`others` can be tested by torch only.)"""
    return (torch.is_grad_enabled() == grad_mode and torch.get_default_dtype() == default_dtype
            and torch.are_deterministic_algorithms_enabled() == deterministic_algorithms
            and num_threads in (None, torch.get_num_threads()))
'''
_BY_TORCH = '''\
def _checked_by_torch(*args, **kwargs):
    """Return True for what only torch can test."""
    return True
'''
#: What each of the others means.
_MEANINGS = {
    "check_same_object": "the very object (function, class, module) that was there when compiling",
    "check_torch_function_mode_stack": "the same modes of __torch_function__ are on",
    "check_saved_tensors_hooks": "the same hooks for saved tensors are on (None: none)",
    "check_dict_unchanged": "nothing was put into the dictionary since",
    "torch_guard": "a condition that has no form in Python",
}
_NEW = '''def new(cls, contents=(), /, **attributes):
    """An object of a class, made without calling the class: with these entries in its dictionary, and with contents of
    its own if it is a dictionary or a list."""
    made = cls.__new__(cls)
    vars(made).update(attributes)
    if contents:
        (dict.update if isinstance(made, dict) else list.extend)(made, contents)
    return made
'''

_MAKES = re.compile(r"\b(new(?:_\d+)?)\(class, \.\.\.\) does not call the class")
_DEFINED = {
    "check_tensor": _TENSOR, "has_no_marks": _MARKS, "has_no_marks_but": _SOME_MARKS, "check_type": _TYPE,
    "check_no_aliasing": _ALIASING, "check_global_state": _STATE}


def helpers(text: str) -> str:
    """Return the definitions of the helpers that a text calls; empty if it calls none."""
    parts = [source for name, source in _DEFINED.items() if f"{name}(" in text and stands(f"{name}\\(", r"\w", text)]
    # (The word is another one where the program has the name itself; the notes say which.)
    parts += [_NEW.replace("new", word, 1) for word in sorted(set(_MAKES.findall(text))) if f"def {word}(" not in text]
    others = [name for name in _MEANINGS if f"{name}(" in text and stands(f"{name}\\(", r"\w", text)]
    if others:
        parts.append(_BY_TORCH + "\n\n" + "\n".join(
            f"{name} = _checked_by_torch  # {_MEANINGS[name]}" for name in others) + "\n")
    return "\n\n".join(parts)


def stands(form: str, not_before: str, text: str) -> bool:
    """Return whether a form of fixed length stands in a text, behind none of some characters.

    The look behind comes last: a pattern that begins with letters is searched for much faster.
    """
    return re.search(rf"{form}(?<![{not_before}]{form})", text) is not None


def imports(text: str) -> str:
    """Return the imports that a text with its helpers needs."""
    needed = [name for name in ("math", "re", "torch") if stands(rf"{name}\.", r"\w.", text)]
    lines = [f"import {name}" for name in needed]
    if "torch" in needed:
        lines = [*lines[:-1], *([""] if len(lines) > 1 else []), lines[-1]]
    names = [name for name, form in (("device", r"device\("), ("inf", r"inf\b(?!\()"), ("nan", r"nan\b(?!\()"))
             if stands(form, r"\w.'\"", text)]
    if "utils_device." in text:
        lines.append("import torch.utils._device as utils_device")
    if names:
        lines.append(f"from torch import {', '.join(names)}")
    return "\n".join(lines) + "\n" if lines else ""
