"""What a dump says of how the program was started, and what it keeps to itself."""

import os
import subprocess

import pytest

from depyf.records.run_directory import without_secrets
from torch_forks import torch_python


@pytest.mark.parametrize("given, kept", [
    ("train.py --steps 3", "train.py --steps 3"),
    ("train.py --hf-token abc --steps 3", "train.py --hf-token REDACTED --steps 3"),
    ("train.py --api_key=abc", "train.py --api_key=REDACTED"),
    ("train.py WANDB_API_KEY=abc", "train.py WANDB_API_KEY=REDACTED"),
    ("train.py --password --steps 3", "train.py --password --steps 3"),
    ("train.py hf_abcdefghijklmnopqrstuvwxyz", "train.py REDACTED"),
    ("train.py --store s3://me:mine@host/path", "train.py --store s3://REDACTED@host/path"),
    ("train.py --author me --authority you", "train.py --author me --authority you"),
    ("train.py " + "0123456789abcdef" * 2 + "01234567", "train.py REDACTED"),
    ("tokens.py --max-new-tokens 3", "tokens.py --max-new-tokens 3"),
])
def test_secrets_of_a_command(given, kept):
    assert " ".join(without_secrets(given.split())) == kept


PROGRAM = """
import torch, depyf

with depyf.prepare_debug("dump"):
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
"""


def test_no_secret_of_the_environment_or_of_the_arguments_is_in_a_dump(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "program.py").write_text(PROGRAM)
    secret = "correcthorsebatterystaple"
    environment = {**os.environ, "HF_TOKEN": secret, "AWS_SECRET_ACCESS_KEY": secret, "ANYTHING": secret}
    subprocess.run([*torch_python(), "program.py", "--token", secret, f"--password={secret}"], cwd=tmp_path,
                   env=environment, check=True, capture_output=True)
    files = [path for path in (tmp_path / "dump").rglob("*") if path.is_file()]
    assert len(files) > 4
    assert [path.name for path in files if secret.encode() in path.read_bytes()] == []
    assert b"--token REDACTED" in (tmp_path / "dump" / "records.jsonl").read_bytes()
