"""The catalogue: entries load, name their sources and equal a config.json; bad config files are refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from inferplan.models import catalog
from inferplan.models.documents import InputError
from inferplan.models.hardware import Card
from inferplan.models.llm import LLM
from inferplan.models.quantities import BANDWIDTH, COMPUTE, SIZE
from pydantic import ValidationError

FOLDER = Path(catalog.__file__).parent
CARDS, LLMS = catalog.names("cards"), catalog.names("llms")


def stored(kind: str, name: str) -> dict[str, Any]:
    """An entry as plain YAML, read apart from the product."""
    tree: dict[str, Any] = yaml.safe_load((FOLDER / kind / f"{name}.yaml").read_text("utf-8"))
    return tree


def test_names_that_others_rely_on() -> None:
    assert set(CARDS) >= {
        "a100-80gb-sxm", "a100-40gb-pcie", "h20-96gb-sxm5", "h100-80gb-sxm", "h200-141gb-sxm",
        "b200-180gb-sxm", "l40s-48gb", "l4-24gb", "rtx-5090-32gb", "mi300x-192gb",
    }  # fmt: skip
    assert set(LLMS) >= {
        "qwen3-8b", "qwen3-32b", "qwen3-235b-a22b", "deepseek-v3", "llama-3.1-8b", "llama-3.1-70b"
    }  # fmt: skip


def test_every_file_is_an_entry() -> None:
    for kind, names in (("cards", CARDS), ("llms", LLMS)):
        assert sorted(path.name for path in (FOLDER / kind).iterdir()) == [f"{name}.yaml" for name in names]
    with pytest.raises(KeyError):
        catalog.entry("cards", "a100")


# ------------------------------------------------------------------------------------------------- cards


@pytest.mark.parametrize("name", CARDS)
def test_card(name: str) -> None:
    entry = stored("cards", name)
    facts, card = entry["facts"], Card.model_validate({"catalog": name})
    assert card.guessed
    assert card.bf16 == COMPUTE.read(facts["bf16"])
    assert card.fp8 == (COMPUTE.read(facts["fp8"]) if "fp8" in facts else None)
    assert card.memory == SIZE.read(facts["memory"])
    assert card.bandwidth == BANDWIDTH.read(facts["bandwidth"])
    for field in ("scale_up", "pcie"):
        assert getattr(card, field) == (BANDWIDTH.read(facts[field]) if field in facts else None)
    for part in ("compute", "memory"):
        assert getattr(card.efficiency, part) == Fraction(str(facts["efficiency"][part]))
    assert entry["title"].strip() and entry["memory_figure"] in ("nominal", "usable")


@pytest.mark.parametrize("name", CARDS)
def test_every_fact_of_a_card_has_a_source(name: str) -> None:
    entry = stored("cards", name)
    assert entry["facts"].keys() == entry["sources"].keys()
    assert all(len(source) > 10 for source in entry["sources"].values())


@pytest.mark.parametrize("name", CARDS)
def test_figures_of_a_card_are_of_a_likely_size(name: str) -> None:
    """Catches a slip of a power of ten, sparse figures, or bits for bytes."""
    card = Card.model_validate({"catalog": name})
    gb, tflop = SIZE.factors["GB"], COMPUTE.factors["TFLOP/s"]
    assert 16 * gb <= card.memory <= 300 * gb
    assert f"-{card.memory / gb}gb" in name
    assert 100 * tflop <= card.bf16 <= 2500 * tflop
    assert 200 * gb <= card.bandwidth <= 10_000 * gb
    assert 30 <= card.bf16 / card.bandwidth <= 450  # FLOP/byte where the peaks meet
    assert card.fp8 is None or Fraction("1.99") <= card.fp8 / card.bf16 <= Fraction("2.03")
    assert card.scale_up is None or card.pcie is None or card.pcie < card.scale_up < card.bandwidth


def test_an_efficiency_of_ones_own_is_no_guess() -> None:
    card = Card.model_validate({"catalog": "h20-96gb-sxm5", "efficiency": "0.4", "memory": "141 GB"})
    assert not card.guessed
    assert (card.efficiency.compute, card.memory) == (Fraction("0.4"), SIZE.read("141 GB"))
    assert Card.model_validate({"catalog": "h20-96gb-sxm5", "memory": "141 GB"}).guessed


@pytest.mark.parametrize("name", CARDS)
def test_a_card_reads_back_from_its_dump(name: str) -> None:
    card = Card.model_validate({"catalog": name})
    assert Card.model_validate(card.model_dump(mode="json", exclude_none=True)) == card


def test_an_unknown_card_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ValidationError, match="is no card of the catalogue, did you mean 'a100-80gb-sxm'"):
        Card.model_validate({"catalog": "a100-80gb-sxm4"})


# ---------------------------------------------------------------------------------------------------- LLMs


@pytest.mark.parametrize("name", LLMS)
def test_llm(name: str) -> None:
    entry, llm = stored("llms", name), LLM.model_validate(name)
    assert llm.name == name
    assert llm.parameters.total == entry["parameters"]
    assert entry["title"].strip()
    assert "huggingface.co" in entry["source"]


@pytest.mark.parametrize("name", LLMS)
def test_an_llm_is_what_its_config_json_says(name: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(stored("llms", name)["config"]), "utf-8")
    llm, other = LLM.model_validate(name), LLM.model_validate(str(path))
    assert other.name == tmp_path.name
    assert other.model_copy(update={"name": name}) == llm
    assert other.parameters == llm.parameters
    assert other.weight_bytes == llm.weight_bytes
    assert other.kv_bytes_per_token == llm.kv_bytes_per_token
    assert [other.streamed_bytes(n) for n in (1, 32, 8192)] == [llm.streamed_bytes(n) for n in (1, 32, 8192)]


@pytest.mark.parametrize("name", LLMS)
def test_an_llm_reads_back_from_its_dump(name: str) -> None:
    llm = LLM.model_validate(name)
    assert LLM.model_validate(llm.model_dump(mode="json", exclude_none=True)) == llm


@pytest.mark.parametrize("name", LLMS)
def test_weights_fit_together(name: str) -> None:
    """What a pass streams lies between the active weights and all; a long pass reads every expert."""
    llm = LLM.model_validate(name)
    table = 2 * llm.parameters.embedding
    assert llm.streamed_bytes(1) <= llm.streamed_bytes(32) <= llm.streamed_bytes(10**6)
    untied = table if llm.parameters.head else 0  # a tied head is the embedding, which is streamed
    assert llm.streamed_bytes(10**6) == llm.weight_bytes - untied - 2 * llm.parameters.small
    per_weight = llm.block_bytes_per_weight
    assert llm.streamed_bytes(1) == per_weight * llm.active_block_parameters + 2 * llm.head_parameters


def test_a_config_json_is_found_beside_the_instance(tmp_path: Path) -> None:
    folder = tmp_path / "some-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(stored("llms", "qwen3-8b")["config"]), "utf-8")
    llm = LLM.model_validate("some-model/config.json", context={"folder": str(tmp_path)})
    assert (llm.name, llm.weight_bytes) == ("some-model", LLM.model_validate("qwen3-8b").weight_bytes)


def test_fields_of_a_config_json_that_do_not_matter_are_let_pass(tmp_path: Path) -> None:
    config = stored("llms", "qwen3-8b")["config"]
    more = {
        "rope_theta": 1e6,
        "rope_scaling": None,
        "max_position_embeddings": 40960,
        "sliding_window": None,
        "use_sliding_window": False,
        "eos_token_id": [1, 2],
        "initializer_range": 0.02,
        "transformers_version": "4.51.0",
    }
    path = tmp_path / "qwen.json"
    path.write_text(json.dumps({**config, **more}), "utf-8")
    assert LLM.model_validate(str(path)).parameters == LLM.model_validate("qwen3-8b").parameters


QWEN2: dict[str, Any] = {"model_type": "qwen2", "num_key_value_heads": 4, "vocab_size": 152064}


@pytest.mark.parametrize(
    ("config", "biases", "total"),
    [
        # Qwen2.5-7B and Qwen2.5-0.5B as published
        (
            {"num_hidden_layers": 28, "hidden_size": 3584, "intermediate_size": 18944}
            | {"num_attention_heads": 28, "tie_word_embeddings": False},
            3584 + 2 * 512,
            7_615_616_512,
        ),
        (
            {"num_hidden_layers": 24, "hidden_size": 896, "intermediate_size": 4864, "vocab_size": 151936}
            | {"num_attention_heads": 14, "num_key_value_heads": 2, "tie_word_embeddings": True},
            896 + 2 * 128,
            494_032_768,
        ),
    ],
)
def test_qwen2_has_biases_on_q_k_and_v(config: dict[str, Any], biases: int, total: int) -> None:
    """Whatever `attention_bias` says; the projection behind the heads has none."""
    llm = LLM.model_validate({**QWEN2, **config})
    layers, hidden = llm.num_hidden_layers, llm.hidden_size
    assert llm.parameters.small == layers * (2 * hidden + biases) + hidden
    assert llm.parameters.total == total
    said = LLM.model_validate({**QWEN2, **config, "attention_bias": True})
    assert said.parameters == llm.parameters


def test_a_bias_that_the_config_declares_is_on_all_four_matrices() -> None:
    config = stored("llms", "llama-3.1-8b")["config"]
    plain, biased = (LLM.model_validate({**config, "attention_bias": it}) for it in (False, True))
    per_layer = 2 * plain.hidden_size + 2 * plain.num_key_value_heads * plain.head_dim
    assert biased.parameters.small - plain.parameters.small == plain.num_hidden_layers * per_layer


def test_an_unknown_model_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ValidationError, match="is no model of the catalogue, did you mean 'qwen3-8b'"):
        LLM.model_validate("qwen-8b")


# --------------------------------------------------------------------------------------- bad config files


def refusal(path: Path) -> str:
    """All that the refusal of a config.json says: the fields it points at, and its words."""
    with pytest.raises((ValidationError, InputError)) as caught:
        LLM.model_validate(str(path))
    error = caught.value
    if not isinstance(error, ValidationError):
        return str(error)
    return " ".join(
        " ".join(map(str, (*fault["loc"], *fault.get("ctx", {}).get("at", ()), fault["msg"])))
        for fault in error.errors()
    )


NEEDED = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "vocab_size")


@pytest.mark.parametrize("field", NEEDED)
def test_a_missing_field_is_named(field: str, tmp_path: Path) -> None:
    config = stored("llms", "qwen3-8b")["config"]
    del config[field]
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), "utf-8")
    assert field in refusal(path)


@pytest.mark.parametrize(
    ("base", "change", "named"),
    [
        ("qwen3-8b", {"quantization_config": {"quant_method": "awq", "bits": 4}}, "quant_method"),
        ("qwen3-8b", {"quantization_config": {"bits": 4}}, "quant_method"),
        ("qwen3-8b", {"quantization_config": {"quant_method": None}}, "quant_method"),
        ("qwen3-8b", {"quantization_config": {}}, "quant_method"),
        ("qwen3-8b", {"torch_dtype": "float32"}, "torch_dtype"),
        ("qwen3-8b", {"dtype": "float8_e4m3fn", "torch_dtype": None}, "torch_dtype"),
        ("qwen3-8b", {"sliding_window": 4096}, "sliding_window"),
        ("qwen3-8b", {"sliding_window": 4096, "use_sliding_window": True}, "sliding_window"),
        ("qwen3-8b", {"layer_types": ["full_attention", "sliding_attention"] * 18}, "layer_types"),
        ("qwen3-8b", {"text_config": {"hidden_size": 4096}}, "text_config"),
        ("qwen3-8b", {"full_attention_interval": 4}, "full_attention_interval"),
        ("qwen3-235b-a22b", {"shared_expert_intermediate_size": 2560}, "shared_expert_intermediate_size"),
        ("qwen3-8b", {"hidden_size": -4096}, "hidden_size"),
        ("qwen3-8b", {"hidden_size": "wide"}, "hidden_size"),
        ("qwen3-8b", {"num_hidden_layers": 36.5}, "num_hidden_layers"),
        ("qwen3-8b", {"num_key_value_heads": 5}, "num_key_value_heads"),
        ("qwen3-8b", {"tie_word_embeddings": "perhaps"}, "tie_word_embeddings"),
        ("qwen3-235b-a22b", {"moe_intermediate_size": None}, "num_experts"),
        ("qwen3-235b-a22b", {"num_experts_per_tok": 129}, "num_experts_per_tok"),
        ("deepseek-v3", {"v_head_dim": None}, "kv_lora_rank"),
    ],
)
def test_what_cannot_be_sized_is_named(base: str, change: dict[str, Any], named: str, tmp_path: Path) -> None:
    config = {**stored("llms", base)["config"], **change}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({k: v for k, v in config.items() if v is not None}), "utf-8")
    assert named in refusal(path)


@pytest.mark.parametrize("family", ["gpt2", "gpt_neox", "gptj", "opt", "falcon", "phi", "starcoder2", "t5"])
def test_families_with_other_blocks_are_refused(family: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**stored("llms", "qwen3-8b")["config"], "model_type": family}), "utf-8")
    words = refusal(path)
    assert "model_type" in words and "is not sized yet" in words


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hidden_size: 4096", "is not valid JSON"),
        ('{"hidden_size": 4096,}', "is not valid JSON"),
        ('{"hidden_size": 4096', "is not valid JSON"),
        ("", "is not valid JSON"),
        ("[4096]", "no JSON object"),
        ('{"hidden_size": 4096, "hidden_size": 2048}', "'hidden_size' stands twice"),
        ('{"a": {"hidden_size": 4096, "hidden_size": 2048}}', "'hidden_size' stands twice"),
        ('{"rope_theta": NaN}', "NaN is not a number"),
    ],
)
def test_a_file_that_is_no_good_json_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(text, "utf-8")
    words = refusal(path)
    assert said in words
    assert str(path) in words


def test_a_model_inside_text_config_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"text_config": stored("llms", "qwen3-8b")["config"]}), "utf-8")
    assert "text_config" in refusal(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "none.json" in refusal(tmp_path / "none.json")
