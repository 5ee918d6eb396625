"""A small decoder with the structure of a llama: the same lines in each layer, modules within modules."""

import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        variance = x.pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(variance + 1e-6))


def half_turned(x):
    left, right = x.chunk(2, dim=-1)
    return torch.cat((-right, left), dim=-1)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, width, bias=False)
        self.v_proj = nn.Linear(width, width, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x, cos, sin):
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        q = self.q_proj(x).view(shape).transpose(1, 2)
        k = self.k_proj(x).view(shape).transpose(1, 2)
        v = self.v_proj(x).view(shape).transpose(1, 2)
        q = q * cos + half_turned(q) * sin
        k = k * cos + half_turned(k) * sin
        scores = (q @ k.transpose(2, 3)).softmax(-1)
        return self.o_proj((scores @ v).transpose(1, 2).reshape(batch, length, width))


class Feed(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate_proj = nn.Linear(width, 2 * width, bias=False)
        self.up_proj = nn.Linear(width, 2 * width, bias=False)
        self.down_proj = nn.Linear(2 * width, width, bias=False)

    def forward(self, x):
        return self.down_proj(nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.input_norm = Norm(width)
        self.self_attn = Attention(width, heads)
        self.post_norm = Norm(width)
        self.mlp = Feed(width)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_norm(x), cos, sin)
        return x + self.mlp(self.post_norm(x))


class Decoder(nn.Module):
    """``layers`` layers; returns the loss against the next word."""

    def __init__(self, layers, width=16, heads=2, words=24):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = Norm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.turns = width // heads

    def forward(self, ids):
        x = self.embed(ids)
        angles = torch.outer(torch.arange(ids.shape[1]).float(), torch.ones(self.turns))
        cos, sin = angles.cos(), angles.sin()
        for layer in self.layers:
            x = layer(x, cos, sin)
        logits = self.head(self.norm(x))
        return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
