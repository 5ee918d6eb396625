"""What decides an undecided call, in one sentence with the words of the command line.

    If what was not given is as it was when each version was compiled (--same), version [0/1] serves this call.
    Versions differ in what was not given; say it, as here for [0/0]: --args "x=f32[8, 4]" n=2.0 --state grad_mode=True.

The values are those that a version asks for.
"""

from __future__ import annotations

import ast
import shlex

from ..torch_text.guards import is_of_inference
from .conditions import Finding, state_of
from .given import parsed, words
from .oracle import Fit, VersionFit
from .values import TensorValue, contiguous, shown

#: So many values are named.
_MOST = 6
#: What stands for a size or value that a version leaves open.
_OPEN_SIZE = 2


def advice(answer: Fit, likely: Fit) -> str:
    """Return what decides an undecided call; ``""`` where nothing is to be decided.

    Args:
        answer: the answer.
        likely: the answer if what was not given is as it was when each version was compiled.
    """
    if _decided(answer):
        return ""
    if _decided(likely):
        verdict = f"version [{likely.version}] serves this call" if likely.version else "no version serves this call"
        return f"If what was not given is as it was when each version was compiled (--same), {verdict}."
    return _to_give(likely, "" if likely is answer else "--same ")


def _decided(answer: Fit) -> bool:
    return answer.version is not None or answer.served is False


def _to_give(answer: Fit, before: str) -> str:
    """Return what to say beside the values that all versions agree on."""
    version = next(each for each in answer.versions if each.fits is None)
    args, state, objects = _needs(version)
    words_ = [*(["--args", *args[:_MOST]] if args else []), *(["--state", *state[:_MOST]] if state else [])]
    if not words_:
        return (f"Only the running program can tell, as it is on which object {_listed(objects)} is: "
                "depyf.fits(compiled, ...).")
    more = f" (and {len(args) - _MOST} more)" if len(args) > _MOST else ""
    cannot = f"; which object {_listed(objects)} is, only depyf.fits in the running program can tell" if objects else ""
    return (f"Versions differ in what was not given; say it, as here for [{version.name}]: "
            f"{before}{' '.join(words_)}{more}{cannot}.")


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "") or "something"


def _needs(version: VersionFit) -> tuple[list[str], list[str], list[str]]:
    """Return arguments and settings that are missing, as they are written, and objects that cannot be written."""
    args: dict[str, str] = {}
    state: dict[str, str] = {}
    objects: dict[str, str] = {}
    for finding in version.open:
        settings = state_of(finding.guard) if finding.guard.kind == "GLOBAL_STATE" else {}
        missing = finding.missing.partition("(")[2].rstrip(")").split(", ")
        state.update((name, _word(name, shown(value))) for name, value in settings.items() if name in missing)
        if settings:
            continue
        name, value = _needed(finding)
        if value:
            args[name] = _word(name, value)
        else:
            objects.setdefault(name, name)
    return list(args.values()), list(state.values()), [name for name in objects if name not in args]


def _needed(finding: Finding) -> tuple[str, str]:
    """Return what a condition is on, and a value that meets it; ``""`` where none can be written."""
    name = finding.missing.partition(" (")[0]
    match parsed(finding.guard.expression):
        case ast.Call(ast.Name("check_tensor"), [subject], options):
            return words(subject), str(_tensor({each.arg or "": each.value for each in options},
                                                is_of_inference(finding.guard.raw)))
        case ast.Compare(left, [ast.Eq()], [right]) if words(left) == name:
            return name, _literal(right)
        case ast.Compare(left, [ast.Is()], [ast.Constant(None)]) if words(left) == name:
            return name, "None"
    return name, ""


def _literal(node: ast.expr) -> str:
    try:
        return shown(ast.literal_eval(node), 200)
    except ValueError:
        return ""


def _tensor(options: dict[str, ast.expr], inference: bool) -> TensorValue:
    """Return a tensor that a condition allows.

    Args:
        options: of ``check_tensor``.
        inference: it is made in inference mode.
    """
    def literal(name: str, otherwise: object) -> object:
        try:
            return ast.literal_eval(options[name])
        except (KeyError, ValueError):
            return otherwise

    sizes = literal("size", ())
    shape = tuple(_OPEN_SIZE if size is None else size for size in sizes) if isinstance(sizes, tuple | list) else ()
    dtype = ast.unparse(options["dtype"]).removeprefix("torch.") if "dtype" in options else "float32"
    device, cls = literal("device", "cpu"), literal("cls", "Tensor")
    return TensorValue(shape, contiguous(shape), dtype, str(device), literal("requires_grad", False) is True,
                       str(cls or "Tensor"), inference)


def _word(name: str, value: str) -> str:
    """Return ``NAME=VALUE`` as it is typed in a shell."""
    word = f"{name}={value}"
    if not any(sign in word for sign in "(){}<>|&;*?!~#' \"\\$`"):
        return word
    return shlex.quote(word) if any(sign in word for sign in '"\\$`!') else f'"{word}"'

