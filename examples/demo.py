"""``make demo``: a real model (a small Llama with random weights) with a graph break and a recompile."""

import logging
import pathlib
import shutil

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
        if token.item() == 2:  # the value of a tensor decides: torch must break the graph here
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
    print(f"{DIRECTORY}/")
    for path in sorted(DIRECTORY.iterdir()):
        if not path.name.startswith("."):
            print(f"  {path.name}  ({path.read_text().count(chr(10))} lines)")
    print(f"\nStart reading at {DIRECTORY / 'index.md'}: what was compiled, what broke the graph, what was compiled "
          "again and why, with links into the files.")


if __name__ == "__main__":
    main()
