"""The environment of a run: versions, command, date and rank."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

#: Names of options and variables with secret values.
_SECRET_NAME = re.compile(
    r"token(?!s|i[sz])|secret|passw|credential|(?:api|access|private).?key|(?:^|[-_])auth(?:$|[-_])", re.I)
#: What is secret by its form: user and password in an address; tokens of Hugging Face, GitHub, GitLab, OpenAI, Slack,
#: Weights & Biases; keys of AWS.
_SECRET = re.compile(
    r"(?<=://)[^/@\s]+(?=@)|\b(?:hf_\w{16,}|gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|sk-[\w-]{16,}"
    r"|xox\w-[\w-]{8,}|AKIA[A-Z0-9]{12,}|(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f]))")
_MASK = "REDACTED"


def environment() -> dict[str, str]:
    """Return versions, the command and the date; ``rank`` and ``world_size`` where there are several ranks."""
    torch = sys.modules.get("torch")
    facts = {"python": sys.version.split()[0], "torch": str(getattr(torch, "__version__", "none")),
             "command": command(), "date": time.strftime("%Y-%m-%d %H:%M")}
    ranks = rank_and_world()
    if ranks is not None:
        facts["rank"], facts["world_size"] = map(str, ranks)
    return facts


def versions_and_rank(environment: Mapping[str, str]) -> str:
    """Return an environment as one phrase: versions, and the rank where there are several."""
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
        secret = _SECRET_NAME.search(name) is not None and (name.startswith("-") or bool(equals))
        follows = secret and not equals
        yield f"{name}={_MASK}" if secret and equals else _SECRET.sub(_MASK, word)


def rank_and_world() -> tuple[int, int] | None:
    """Return ``(rank, number of ranks)`` of this process; ``None`` if it runs alone.

    ``torch.distributed`` knows them once it is initialised; before that, ``torchrun`` and other launchers put them into
    the environment (torch/distributed/rendezvous.py, ``env://``).
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
    """Return a text that is the same in all ranks of a launch, and differs between launches as far as that is known.

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
