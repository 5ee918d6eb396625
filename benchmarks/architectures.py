"""Tiny Hugging Face models of many architectures, built from configs: nothing is downloaded.

``ARCHITECTURES`` maps a name to an :class:`Architecture`. ``TRAINED`` names those that also run backward.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import transformers as T

VOCABULARY = 100
FIRST_WORD = 3  # smaller ids are padding and the like
IMAGE_WORD = 99
IMAGE = 32
PATCH = 8
SHORT, LONG = LENGTHS = (8, 12)

Inputs = dict[str, torch.Tensor]

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
TEXT = {**SMALL, "vocab_size": VOCABULARY, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
GROUPED = {**TEXT, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64}
BART = {
    "d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "vocab_size": VOCABULARY,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
T5 = {
    "d_model": 32, "d_ff": 64, "d_kv": 8, "num_layers": 2, "num_heads": 4, "vocab_size": VOCABULARY,
    "pad_token_id": 0, "decoder_start_token_id": 0}
GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2}
VIT = {**SMALL, "image_size": IMAGE, "patch_size": PATCH}
SPEECH = {
    **SMALL, "vocab_size": 32, "conv_dim": (16, 16), "conv_stride": (5, 2), "conv_kernel": (10, 3),
    "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2}
STATES = {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": VOCABULARY, "state_size": 8,
          "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


class Architecture(NamedTuple):
    kind: str
    make: Callable[[], torch.nn.Module]
    inputs: Callable[[int], Inputs]  # of one of LENGTHS; for pictures that decides the batch size


def words(length: int) -> torch.Tensor:
    return torch.randint(FIRST_WORD, IMAGE_WORD, (1, length))


def pictures(length: int) -> torch.Tensor:
    return torch.randn(1 if length == SHORT else 2, 3, IMAGE, IMAGE)


def text(length: int) -> Inputs:
    return {"input_ids": words(length)}


def two_texts(length: int) -> Inputs:
    return {"input_ids": words(length), "decoder_input_ids": words(length)}


def text_with_boxes(length: int) -> Inputs:
    corners = torch.randint(0, 30, (1, length, 2))
    return {"input_ids": words(length), "bbox": torch.cat([corners, corners + 20], dim=2)}


def image(length: int) -> Inputs:
    return {"pixel_values": pictures(length)}


def image_and_text(length: int) -> Inputs:
    pixels = pictures(length)
    return {"pixel_values": pixels, "input_ids": words(length).repeat(len(pixels), 1)}


def image_and_full_text(length: int) -> Inputs:
    given = image_and_text(length)
    return {**given, "attention_mask": torch.ones_like(given["input_ids"])}


def image_inside_text(length: int) -> Inputs:
    """A text in which one word stands for each patch of the one picture."""
    patches = torch.full((1, (IMAGE // PATCH) ** 2), IMAGE_WORD)
    return {"pixel_values": pictures(SHORT), "input_ids": torch.cat([words(2), patches, words(length)], dim=1)}


def wave(length: int) -> Inputs:
    return {"input_values": torch.randn(1, 40 * length)}


def spectrum_and_text(length: int) -> Inputs:
    return {"input_features": torch.randn(1, 8, 32), "decoder_input_ids": words(length)}


def spectrum(length: int) -> Inputs:
    return {"input_values": torch.randn(1 if length == SHORT else 2, 32, 16)}


def regions_and_text(length: int) -> Inputs:
    return {"input_ids": words(length), "visual_feats": torch.randn(1, 4, 16), "visual_pos": torch.rand(1, 4, 4)}


def model(of: str, config: str, **settings: Any) -> Callable[[], torch.nn.Module]:
    """What makes the model class ``of`` with the config class ``config``; both are names in transformers."""
    return lambda: getattr(T, of)(getattr(T, config)(**settings))


def sparse(of: str, config: str, **settings: Any) -> Architecture:
    return Architecture("mixture of experts", model(of, config, **settings), text)


def encoder(of: str, config: str, **settings: Any) -> Architecture:
    return Architecture("encoder", model(of, config, **settings), text)


def decoder(of: str, config: str, **settings: Any) -> Architecture:
    return Architecture("decoder", model(of, config, **settings), text)


def both(of: str, config: str, **settings: Any) -> Architecture:
    return Architecture("encoder-decoder", model(of, config, **settings), two_texts)


def states(of: str, config: str, **settings: Any) -> Architecture:
    return Architecture("state space", model(of, config, **settings), text)


def vision(of: str, config: str, **settings: Any) -> Architecture:
    return Architecture("vision", model(of, config, **settings), image)


def audio(inputs: Callable[[int], Inputs], of: str, config: str, **settings: Any) -> Architecture:
    return Architecture("audio", model(of, config, **settings), inputs)


def multimodal(inputs: Callable[[int], Inputs], of: str, config: str, **settings: Any) -> Architecture:
    return Architecture("multimodal", model(of, config, **settings), inputs)


ARCHITECTURES = {
    "bert": encoder("BertModel", "BertConfig", **TEXT),
    "roberta": encoder("RobertaForMaskedLM", "RobertaConfig", **TEXT),
    "distilbert": encoder("DistilBertForMaskedLM", "DistilBertConfig", dim=32, n_layers=2, n_heads=4, hidden_dim=64,
                          vocab_size=VOCABULARY),
    "electra": encoder("ElectraForPreTraining", "ElectraConfig", **TEXT, embedding_size=16),
    "albert": encoder("AlbertForMaskedLM", "AlbertConfig", **TEXT, embedding_size=16),
    "deberta": encoder("DebertaModel", "DebertaConfig", **TEXT, relative_attention=True,
                       pos_att_type=["p2c", "c2p"]),
    "deberta-v2": encoder("DebertaV2Model", "DebertaV2Config", **TEXT, relative_attention=True,
                          pos_att_type=["p2c", "c2p"]),
    "mpnet": encoder("MPNetForMaskedLM", "MPNetConfig", **TEXT),
    "xlnet": encoder("XLNetLMHeadModel", "XLNetConfig", d_model=32, n_layer=2, n_head=4, d_inner=64,
                     vocab_size=VOCABULARY),
    "longformer": encoder("LongformerModel", "LongformerConfig", **TEXT, attention_window=4,
                          max_position_embeddings=64),
    "bigbird": encoder("BigBirdModel", "BigBirdConfig", **TEXT, attention_type="block_sparse", block_size=2,
                       num_random_blocks=1, max_position_embeddings=64),
    "modernbert": encoder("ModernBertForMaskedLM", "ModernBertConfig", **TEXT, cls_token_id=1, sep_token_id=2,
                          local_attention=8),
    "fnet": encoder("FNetForMaskedLM", "FNetConfig", hidden_size=32, num_hidden_layers=2, intermediate_size=64,
                    vocab_size=VOCABULARY),
    "roformer": encoder("RoFormerForMaskedLM", "RoFormerConfig", **TEXT, max_position_embeddings=64),
    "convbert": encoder("ConvBertModel", "ConvBertConfig", **TEXT, embedding_size=32, conv_kernel_size=3,
                        head_ratio=2),
    "reformer": encoder("ReformerModel", "ReformerConfig", hidden_size=32, num_attention_heads=2,
                        attention_head_size=16, feed_forward_size=64, attn_layers=["local", "lsh"],
                        axial_pos_shape=[8, 8], axial_pos_embds_dim=[16, 16], max_position_embeddings=64,
                        vocab_size=VOCABULARY, num_buckets=2, hash_seed=0, is_decoder=False),

    "gpt2": decoder("GPT2LMHeadModel", "GPT2Config", **GPT),
    "gpt-neo": decoder("GPTNeoForCausalLM", "GPTNeoConfig", hidden_size=32, num_layers=2, num_heads=4,
                       attention_types=[[["global", "local"], 1]], window_size=4, vocab_size=VOCABULARY,
                       max_position_embeddings=64),
    "gpt-neox": decoder("GPTNeoXForCausalLM", "GPTNeoXConfig", **TEXT),
    "gptj": decoder("GPTJForCausalLM", "GPTJConfig", **GPT, rotary_dim=4, n_positions=64),
    "opt": decoder("OPTForCausalLM", "OPTConfig", hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                   ffn_dim=64, vocab_size=VOCABULARY, word_embed_proj_dim=32, max_position_embeddings=64),
    "llama": decoder("LlamaForCausalLM", "LlamaConfig", **TEXT),
    "mistral": decoder("MistralForCausalLM", "MistralConfig", **GROUPED, sliding_window=4),
    "qwen2": decoder("Qwen2ForCausalLM", "Qwen2Config", **{**GROUPED, "head_dim": 8}),
    "qwen3": decoder("Qwen3ForCausalLM", "Qwen3Config", **GROUPED),
    "gemma": decoder("GemmaForCausalLM", "GemmaConfig", **GROUPED),
    "gemma2": decoder("Gemma2ForCausalLM", "Gemma2Config", **GROUPED, sliding_window=4),
    "phi": decoder("PhiForCausalLM", "PhiConfig", **TEXT),
    "phi3": decoder("Phi3ForCausalLM", "Phi3Config", **TEXT),
    "bloom": decoder("BloomForCausalLM", "BloomConfig", hidden_size=32, n_layer=2, n_head=4, vocab_size=VOCABULARY),
    "falcon": decoder("FalconForCausalLM", "FalconConfig", hidden_size=32, num_hidden_layers=2,
                      num_attention_heads=4, vocab_size=VOCABULARY),

    "mixtral": sparse("MixtralForCausalLM", "MixtralConfig", **TEXT, num_key_value_heads=2, num_local_experts=4),
    "olmoe": sparse("OlmoeForCausalLM", "OlmoeConfig", **TEXT, num_experts=4, num_experts_per_tok=2),
    "qwen2-moe": sparse("Qwen2MoeForCausalLM", "Qwen2MoeConfig", **TEXT, num_key_value_heads=2, num_experts=4,
                        num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=32),
    "deepseek-v3": sparse("DeepseekV3ForCausalLM", "DeepseekV3Config", **TEXT, num_key_value_heads=4,
                          moe_intermediate_size=16, n_routed_experts=4, n_group=2, topk_group=1,
                          num_experts_per_tok=2, first_k_dense_replace=1, kv_lora_rank=8, q_lora_rank=8,
                          qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=8, max_position_embeddings=64),
    "switch-transformers": Architecture("mixture of experts", model(
        "SwitchTransformersForConditionalGeneration", "SwitchTransformersConfig", **T5, num_decoder_layers=2,
        num_experts=2, num_sparse_encoder_layers=1, num_sparse_decoder_layers=1, expert_capacity=8), two_texts),

    "mamba": states("MambaForCausalLM", "MambaConfig", **STATES),
    "mamba2": states("Mamba2ForCausalLM", "Mamba2Config", **STATES, num_heads=8, head_dim=8, n_groups=1,
                     chunk_size=8),
    "falcon-mamba": states("FalconMambaForCausalLM", "FalconMambaConfig", **STATES),
    "rwkv": states("RwkvForCausalLM", "RwkvConfig", hidden_size=32, num_hidden_layers=2, vocab_size=VOCABULARY,
                   context_length=64),
    "recurrent-gemma": states("RecurrentGemmaForCausalLM", "RecurrentGemmaConfig", hidden_size=32,
                              num_hidden_layers=3, num_attention_heads=4, intermediate_size=64, lru_width=32,
                              attention_window_size=8, vocab_size=VOCABULARY),

    "t5": both("T5ForConditionalGeneration", "T5Config", **T5),
    "bart": both("BartForConditionalGeneration", "BartConfig", **BART, max_position_embeddings=64),
    "mbart": both("MBartForConditionalGeneration", "MBartConfig", **BART, max_position_embeddings=64),
    "pegasus": both("PegasusForConditionalGeneration", "PegasusConfig", **BART, max_position_embeddings=64),
    "marian": both("MarianMTModel", "MarianConfig", **BART, max_position_embeddings=64),

    "vit": vision("ViTModel", "ViTConfig", **VIT),
    "beit": vision("BeitForImageClassification", "BeitConfig", **VIT),
    "dinov2": vision("Dinov2Model", "Dinov2Config", hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                     mlp_ratio=2, image_size=IMAGE, patch_size=PATCH),
    "resnet": vision("ResNetModel", "ResNetConfig", embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1]),
    "convnext": vision("ConvNextForImageClassification", "ConvNextConfig", hidden_sizes=[8, 16], depths=[1, 1],
                       num_stages=2),
    "swin": vision("SwinForImageClassification", "SwinConfig", image_size=IMAGE, patch_size=2, embed_dim=8,
                   depths=[2, 2], num_heads=[2, 2], window_size=4),
    "segformer": vision("SegformerForSemanticSegmentation", "SegformerConfig", num_encoder_blocks=2, depths=[1, 1],
                        sr_ratios=[2, 1], hidden_sizes=[8, 16], patch_sizes=[7, 3], strides=[4, 2],
                        num_attention_heads=[1, 2], mlp_ratios=[2, 2], decoder_hidden_size=16),
    "mobilenet-v2": vision("MobileNetV2ForImageClassification", "MobileNetV2Config", depth_multiplier=0.25,
                           image_size=IMAGE),
    "yolos": vision("YolosForObjectDetection", "YolosConfig", **{**VIT, "image_size": [IMAGE, IMAGE]},
                    num_detection_tokens=4),

    "whisper": audio(spectrum_and_text, "WhisperModel", "WhisperConfig", **BART, num_mel_bins=8,
                     max_source_positions=16),
    "wav2vec2": audio(wave, "Wav2Vec2ForCTC", "Wav2Vec2Config", **SPEECH),
    "hubert": audio(wave, "HubertForCTC", "HubertConfig", **SPEECH),
    "wavlm": audio(wave, "WavLMForCTC", "WavLMConfig", **SPEECH),
    "ast": audio(spectrum, "ASTForAudioClassification", "ASTConfig", **SMALL, patch_size=8, max_length=32,
                 num_mel_bins=16, frequency_stride=8, time_stride=8),

    "clip": multimodal(image_and_text, "CLIPModel", "CLIPConfig", projection_dim=16, text_config=TEXT,
                       vision_config=VIT),
    "siglip": multimodal(image_and_text, "SiglipModel", "SiglipConfig", text_config=TEXT, vision_config=VIT),
    "blip": multimodal(image_and_full_text, "BlipForImageTextRetrieval", "BlipConfig", projection_dim=16,
                       text_config={**TEXT, "encoder_hidden_size": 32}, vision_config=VIT,
                       image_text_hidden_size=16),
    "llava": multimodal(image_inside_text, "LlavaForConditionalGeneration", "LlavaConfig",
                        text_config={"model_type": "llama", **TEXT},
                        vision_config={"model_type": "clip_vision_model", **VIT}, image_token_id=IMAGE_WORD,
                        vision_feature_layer=-1),
    "vilt": multimodal(image_and_text, "ViltModel", "ViltConfig", **{**VIT, "vocab_size": VOCABULARY}),
    "lxmert": multimodal(regions_and_text, "LxmertModel", "LxmertConfig", hidden_size=32, num_attention_heads=4,
                         intermediate_size=64, vocab_size=VOCABULARY, l_layers=1, x_layers=1, r_layers=1,
                         visual_feat_dim=16),
    "layoutlm": multimodal(text_with_boxes, "LayoutLMModel", "LayoutLMConfig", **TEXT, max_2d_position_embeddings=64),
}

TRAINED = ("bert", "distilbert", "gpt2", "llama", "mixtral", "t5", "resnet", "vit", "wav2vec2", "clip",
           "deberta-v2")
