"""Hugging Face models from tiny configs, with and without the tool (``make models``).

    python benchmarks/models.py [name ...] [--write docs/models.md]

Each runs at two input lengths on the ``eager`` backend, three times: to warm up, plain, and inside
``prepare_debug``. Outputs are compared bit for bit, files are compiled, fidelities counted. The ratio is that
of one run each and so only a hint.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import logging
import os
import platform
import re
import sys
import tempfile
import time
import warnings

import torch
import transformers as T

import depyf

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
         "vocab_size": 100}


def tokens(length):
    return {"input_ids": torch.randint(3, 90, (1, length))}


def both(length):
    return {**tokens(length), "decoder_input_ids": torch.randint(3, 90, (1, length))}


def pixels(length):
    return {"pixel_values": torch.randn(1 if length == 8 else 2, 3, 32, 32)}


def speech(length):
    return {"input_features": torch.randn(1, 8, 32), "decoder_input_ids": torch.randint(3, 90, (1, length))}


MODELS = {
    "bert": (lambda: T.BertModel(T.BertConfig(**SMALL)), tokens),
    "gpt2": (lambda: T.GPT2LMHeadModel(T.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=100)), tokens),
    "llama": (lambda: T.LlamaForCausalLM(T.LlamaConfig(**SMALL)), tokens),
    "mixtral": (lambda: T.MixtralForCausalLM(T.MixtralConfig(
        **SMALL, num_key_value_heads=2, num_local_experts=4)), tokens),
    "t5": (lambda: T.T5ForConditionalGeneration(T.T5Config(
        d_model=32, d_ff=64, num_layers=2, num_heads=4, vocab_size=100, d_kv=8)), both),
    "mamba": (lambda: T.MambaForCausalLM(T.MambaConfig(
        hidden_size=32, num_hidden_layers=2, vocab_size=100, state_size=8)), tokens),
    "bloom": (lambda: T.BloomForCausalLM(T.BloomConfig(hidden_size=32, n_layer=2, n_head=4, vocab_size=100)), tokens),
    "falcon": (lambda: T.FalconForCausalLM(T.FalconConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, vocab_size=100)), tokens),
    "deberta-v2": (lambda: T.DebertaV2Model(T.DebertaV2Config(**SMALL)), tokens),
    "longformer": (lambda: T.LongformerModel(T.LongformerConfig(
        **SMALL, attention_window=4, max_position_embeddings=64, pad_token_id=0)), tokens),
    "resnet": (lambda: T.ResNetModel(T.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1])), pixels),
    "vit": (lambda: T.ViTModel(T.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32,
        patch_size=8)), pixels),
    "whisper": (lambda: T.WhisperModel(T.WhisperConfig(
        d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=32, decoder_ffn_dim=32, vocab_size=100, num_mel_bins=8, max_source_positions=16,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)), speech),
}


def tensors(output):
    if isinstance(output, torch.Tensor):
        return [output]
    if hasattr(output, "values"):
        return [t for value in output.values() for t in tensors(value)]
    if isinstance(output, (list, tuple)):
        return [t for value in output for t in tensors(value)]
    return []


def run(make, inputs):
    torch._dynamo.reset()
    torch.manual_seed(0)
    compiled = torch.compile(make().eval(), backend="eager")
    outputs = []
    begun = time.perf_counter()
    with torch.no_grad():
        for length in (8, 12):
            torch.manual_seed(length)
            outputs += tensors(compiled(**inputs(length)))
    return outputs, time.perf_counter() - begun


def measure(name):
    make, inputs = MODELS[name]
    run(make, inputs)
    plain, before = run(make, inputs)
    with tempfile.TemporaryDirectory() as folder:
        with depyf.prepare_debug(os.path.join(folder, "dump")) as on:
            watched, after = run(make, inputs)
        fidelities, invalid = collections.Counter(), 0
        for entry in os.listdir(on.path):
            if not entry.endswith(".py"):
                continue
            with open(os.path.join(on.path, entry), encoding="utf-8") as file:
                text = file.read()
            try:
                compile(text, entry, "exec")
            except SyntaxError:
                invalid += 1
            found = re.search(r"^# fidelity: (\w+)", text, re.M)
            if found and entry.startswith("__transformed_code_"):
                fidelities[found[1]] += 1
    same = len(plain) == len(watched) and all(map(torch.equal, plain, watched))
    return same, invalid, fidelities, after / before


def main():
    options = argparse.ArgumentParser()
    options.add_argument("names", nargs="*", choices=[*MODELS, []])
    options.add_argument("--write")
    chosen = options.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    rows, failed = [], 0
    for name in chosen.names or MODELS:
        same, invalid, fidelities, ratio = measure(name)
        failed += not same or invalid > 0 or set(fidelities) - {"exact", "equivalent"} != set()
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(fidelities.items()))
        rows.append(f"| {name} | {'yes' if same else 'NO'} | {invalid} | {counts} | {ratio:.2f} |")
        print(rows[-1], flush=True)
    if chosen.write:
        with open(chosen.write, "w", encoding="utf-8") as file:
            file.write(
                "# Models\n\n"
                f"{datetime.date.today()}, Python {platform.python_version()}, torch {torch.__version__}, transformers "
                f"{T.__version__}, {os.cpu_count()} cores. Command: `make models`.\n\n"
                "The last column is compile time with the tool to without, one run each: a hint, not a measurement.\n\n"
                "| model | outputs equal bit for bit | invalid files | transformed functions | ratio |\n"
                "|---|---|---|---|---|\n" + "\n".join(rows) + "\n")
    return failed


if __name__ == "__main__":
    sys.exit(main())
