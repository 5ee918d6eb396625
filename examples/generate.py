"""A small Llama that generates text, or is trained a little. It knows nothing of depyf: `depyf run generate.py`."""

import argparse

import torch
from transformers import LlamaConfig, LlamaForCausalLM


class Generator(torch.nn.Module):
    """Picks the next token, and stops for one that ends the text."""

    def __init__(self, layers):
        super().__init__()
        config = LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=layers, num_attention_heads=4,
                             num_key_value_heads=2, vocab_size=100, max_position_embeddings=64)
        self.model = LlamaForCausalLM(config).eval()

    def forward(self, tokens):
        logits = self.model(tokens, use_cache=False).logits[:, -1]
        token = logits.argmax(-1)
        if token.item() == 2:
            return tokens
        return torch.cat([tokens, token[:, None]], dim=1)


def train(model, tokens):
    loss = model(tokens, labels=tokens, use_cache=False).loss
    loss.backward()
    return loss.detach()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--train", action="store_true")
    given = parser.parse_args()
    torch.manual_seed(0)
    generator = Generator(given.layers)
    tokens = torch.randint(3, 100, (1, 8))
    if given.train:
        step = torch.compile(train, backend=given.backend)
        for _ in range(2):
            print(f"loss {step(generator.model, tokens).item():.3f}")
    else:
        compiled = torch.compile(generator, backend=given.backend)
        with torch.no_grad():
            for _ in range(3):
                tokens = compiled(tokens)
        print(f"tokens: {tokens.tolist()[0]}")
