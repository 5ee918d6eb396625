"""What torch is set to."""

from __future__ import annotations

from . import private_api


def draws_numpy_from_torch() -> bool:
    """Return whether compiled code takes torch's random numbers where the program asks NumPy for some."""
    try:
        return not private_api.NUMPY_RANDOM.get()
    except private_api.MissingPrivateApi:
        return False


def draws_as_eager() -> bool:
    """Return whether Inductor's code draws the random numbers that eager Python draws."""
    try:
        return bool(private_api.INDUCTOR_SETTINGS.get().fallback_random)
    except (private_api.MissingPrivateApi, AttributeError):
        return False


def options_of_inductor() -> list[str]:
    """Return the options of ``torch._inductor.config`` that are not at their default: ``["max_autotune = True"]``.

    (Torch lists each that was ever set, also those that it set back.)
    """
    try:
        text = private_api.CHANGED_OPTIONS.get()()
    except private_api.MissingPrivateApi:
        return []
    options = [line.removeprefix(private_api.CHANGED_OPTIONS.module + ".") for line in text.splitlines()]
    return [option for option in options if not _is_default(*option.partition(" = ")[::2])]


def _is_default(name: str, value: str) -> bool:
    """Return whether an option has its default value; false where torch does not tell."""
    try:
        return repr(private_api.INDUCTOR_OPTIONS.get()[name].default) == value
    except (private_api.MissingPrivateApi, AttributeError, LookupError, TypeError):
        return False
