#!/usr/bin/env python3
"""model.py DIR: a model small enough for any CPU, made on the spot: nothing is downloaded.

Two layers of the Qwen3 architecture with random weights (vLLM's --load-format dummy makes them) and a
byte-level BPE tokenizer of 4,000 entries, trained on the sources of Python's standard library. It speaks
noise; everything around it is the real server.
"""
import json
import pathlib
import sys
import sysconfig

from tokenizers import ByteLevelBPETokenizer

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"]
# Turns as ChatML; tool definitions go into a system turn, so that tool calls can be asked for.
TEMPLATE = (
    "{%- if tools -%}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif -%}"
    "{%- for message in messages -%}"
    "<|im_start|>{{ message.role }}\n"
    "{% if message.content is string %}{{ message.content }}{% else %}{{ message.content | tojson }}{% endif %}<|im_end|>\n"
    "{% endfor -%}"
    "{%- if add_generation_prompt -%}<|im_start|>assistant\n{% endif -%}"
)


def main(out: pathlib.Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    corpus = sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:120]
    bpe = ByteLevelBPETokenizer()
    bpe.train([str(p) for p in corpus], vocab_size=4000, special_tokens=SPECIAL, show_progress=False)
    bpe.save(str(out / "tokenizer.json"))
    end = bpe.token_to_id("<|im_end|>")

    files = {
        "config.json": {
            "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "torch_dtype": "float32",
            "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "head_dim": 32,
            "num_attention_heads": 2, "num_key_value_heads": 1, "vocab_size": bpe.get_vocab_size(),
            "max_position_embeddings": 8192, "rope_theta": 10000.0, "rms_norm_eps": 1e-6, "hidden_act": "silu",
            "tie_word_embeddings": False, "attention_bias": False,
            "bos_token_id": bpe.token_to_id("<|endoftext|>"), "eos_token_id": end,
        },
        "generation_config.json": {"eos_token_id": end},
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 8192, "clean_up_tokenization_spaces": False,
            "bos_token": None, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "chat_template": TEMPLATE,
            "added_tokens_decoder": {
                str(bpe.token_to_id(text)): {
                    "content": text, "special": text.startswith("<|"),
                    "lstrip": False, "rstrip": False, "normalized": False, "single_word": False,
                }
                for text in SPECIAL
            },
        },
    }
    for name, value in files.items():
        (out / name).write_text(json.dumps(value, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
