"""In what a run took place."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

#: Names of options and variables whose values are nobody's business.
_SECRET_NAME = re.compile(
    r"token(?!s|i[sz])|secret|passw|credential|(?:api|access|private).?key|(?:^|[-_])auth(?:$|[-_])", re.I)
#: Parts of such names: few commands have one, and the expression is compiled for those only.
_IN_SECRET_NAMES = ("token", "secret", "passw", "credential", "key", "auth")
#: What is one by its form: tokens of Hugging Face, GitHub, GitLab, OpenAI, Slack, Weights & Biases; keys of AWS.
_SECRET = re.compile(
    r"\b(?:hf_\w{16,}|gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|xox\w-[\w-]{8,}"
    r"|AKIA[A-Z0-9]{12,}|(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f]))")
#: Parts of such words, where they are shorter than the keys of Weights & Biases.
_IN_SECRETS = ("hf_", "gh", "glpat-", "sk-", "xox", "AKIA")
_KEY_LENGTH = 40
_IN_ADDRESS = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_MASK = "REDACTED"


def environment() -> dict[str, str]:
    """Versions, the command and the date; ``rank`` and ``world_size`` where there are several ranks."""
    torch = sys.modules.get("torch")
    facts = {"python": sys.version.split()[0], "torch": str(getattr(torch, "__version__", "none")),
             "command": command(), "date": time.strftime("%Y-%m-%d %H:%M")}
    ranks = rank_and_world()
    if ranks is not None:
        facts["rank"], facts["world_size"] = map(str, ranks)
    return facts


def versions_and_rank(environment: Mapping[str, str]) -> str:
    """Return what a run took place in, as one phrase: versions, and the rank where there are several."""
    names = {"torch": "torch", "python": "Python"}
    known = [f"{name} {environment[key]}" for key, name in names.items() if environment.get(key)]
    if "world_size" in environment:
        known.append(f"rank {environment.get('rank', '?')} of {environment['world_size']}")
    return ", ".join(known)


def command() -> str:
    """Return the command that started the program: ``python train.py --steps 3``; of ``-c`` without the text.

    What looks like a secret is left out: ``--hf-token REDACTED``.
    """
    given = sys.orig_argv[1:]
    if sys.argv[:1] == ["-c"] and "-c" in given:
        given = given[: given.index("-c") + 1]
    return shlex.join(["python", *without_secrets(given)])


def without_secrets(words: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command, with a mask for what is a secret by the name before it or by its form."""
    follows = False
    for word in words:
        name, equals, value = word.partition("=")
        if follows and not word.startswith("-"):
            yield _MASK
            follows = False
            continue
        secret = _names_a_secret(name) and (name.startswith("-") or bool(equals))
        follows = secret and not equals
        yield f"{name}={_MASK}" if secret and equals else _masked(word)


def _names_a_secret(name: str) -> bool:
    folded = name.casefold()  # (as the expression ignores case: the long s, too, is an s)
    return any(part in folded for part in _IN_SECRET_NAMES) and _SECRET_NAME.search(name) is not None


def _masked(word: str) -> str:
    """Return a word with a mask for what is a secret by its form, and for a password in an address."""
    if len(word) >= _KEY_LENGTH or any(part in word for part in _IN_SECRETS):
        word = _SECRET.sub(_MASK, word)
    return _IN_ADDRESS.sub(_MASK, word) if "://" in word else word


def rank_and_world() -> tuple[int, int] | None:
    """``(rank, number of ranks)`` of this process; ``None`` if it runs alone.

    ``torch.distributed`` knows once it is initialised; before that, what ``torchrun`` and other launchers put into the
    environment says it (torch/distributed/rendezvous.py, ``env://``).
    """
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            rank, world = int(distributed.get_rank()), int(distributed.get_world_size())
        else:
            rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError, RuntimeError):
        return None
    return (rank, world) if world > 1 and 0 <= rank < world else None


def launch() -> str:
    """Return a text that all ranks of one launch share and two launches do not, as far as the environment tells.

    ``torchrun`` starts its workers again under another restart count. Its folder of logs is new for each launch, but
    each machine has its own, so it counts only where all ranks are on one machine.
    """
    names = ["TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID",
             "SLURM_STEP_ID", "OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"]
    parts = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    if os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE"):
        error_file = os.environ.get("TORCHELASTIC_ERROR_FILE", "")  # .../<launch>/attempt_0/<rank>/error.json
        if error_file:
            parts.append("logs=" + os.path.dirname(os.path.dirname(os.path.dirname(error_file))))
    return " ".join(parts)
