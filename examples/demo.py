"""``make demo``: a real model (a small Llama with random weights) with a graph break and a recompile."""

import json
import logging
import os
import pathlib
import shutil
import subprocess
import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

import depyf

DIRECTORY = pathlib.Path("depyf_demo")


class Generator(torch.nn.Module):
    """Picks the next token, and stops for one that ends the text: a graph break."""

    def __init__(self):
        super().__init__()
        config = LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                             num_key_value_heads=2, vocab_size=100, max_position_embeddings=64)
        self.model = LlamaForCausalLM(config).eval()

    def forward(self, tokens):
        logits = self.model(tokens, use_cache=False).logits[:, -1]
        token = logits.argmax(-1)
        # The value of a tensor decides: torch must break the graph here.
        if token.item() == 2:
            return tokens
        return torch.cat([tokens, token[:, None]], dim=1)


def main():
    torch._logging.set_logs(all=logging.ERROR)  # torch would tell of the graph break at length
    torch.manual_seed(0)
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    generator = torch.compile(Generator(), backend="eager")
    with torch.no_grad(), depyf.prepare_debug(str(DIRECTORY), files="now"):
        tokens = torch.randint(3, 100, (1, 8))
        for _ in range(3):  # the length grows: a recompile, then dynamic shapes
            tokens = generator(tokens)
    print(f"tokens: {tokens.tolist()[0]}\n")
    # `depyf`, as it can be called from here
    script = pathlib.Path(sys.executable).with_name("depyf")
    command = os.path.relpath(script) if script.exists() else f"{sys.executable} -m depyf"
    for line in first_finding():
        print(line)
    print(f"\nThe page:  {command} open {DIRECTORY}\n"
          f"The index: {DIRECTORY / 'index.md'}, in the terminal: {command} explain {DIRECTORY}")


def first_finding():
    """Say in two sentences what `depyf explain` finds first in the dump."""
    explain = [sys.executable, "-m", "depyf", "explain", "--json", str(DIRECTORY)]
    run = json.loads(subprocess.run(explain, check=True, capture_output=True).stdout)["runs"][0]
    if not run["breaks"]:
        return [f"Found: no graph breaks in {run['totals']['graphs']} graphs."]
    first = run["breaks"][0]
    place = first["place"]
    times = sum(each["place"] == place for each in run["breaks"])
    return [f"Found: the graph of {first['function']} breaks at {os.path.relpath(place['file'])}:{place['line']} "
            f"(`{place['text'].rstrip(':')}`), in {times} of {run['totals']['versions']} compiled versions.",
            f"Why: {first['cause']}."]


if __name__ == "__main__":
    main()
