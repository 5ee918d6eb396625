"""The program of the five tasks: an HF decoder that generates, with breaks and a recompile, on Inductor."""

import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        config = LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                             num_key_value_heads=2, vocab_size=100, max_position_embeddings=64)
        self.model = LlamaForCausalLM(config).eval()
        self.scale = SCALE

    def forward(self, tokens):
        logits = self.model(tokens, use_cache=False).logits[:, -1] * self.scale
        if logits.max() > 100:
            logits = logits / 2
        token = logits.argmax(-1)
        if token.item() == 2:  # the end of the text
            return tokens
        return torch.cat([tokens, token[:, None]], dim=1)


SCALE = 1.0
if __name__ == "__main__":
    generator = torch.compile(Generator())
    with torch.no_grad():
        tokens = torch.randint(3, 100, (1, 8))
        for _ in range(4):
            tokens = generator(tokens)
