"""An LLM as its config.json describes it: parameters, bytes and attention work, all exact integers.

Sources: digest section 0 (conventions that the chapter's digits force) and the published model code
(grouped-query attention, multi-head latent attention, gated feed-forward blocks, routed experts).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pydantic import Field, ModelWrapValidatorHandler, ValidationInfo, field_validator, model_validator

from . import catalog
from .documents import InputError, read_document
from .quantities import CachedTokens, PositiveCount
from .schema import Schema, fault
from .suggest import did_you_mean

_TRUE, _FALSE = ("true", "True", True), ("false", "False", False)
_NOT_SIZED = {
    "text_config": "nested text_config",
    "hybrid_override_pattern": "hybrid layers",
    "full_attention_interval": "hybrid layers",
    "linear_num_value_heads": "linear attention",
    "mamba_d_state": "state-space layers",
    "shared_expert_intermediate_size": "a shared expert of its own width",
}


@dataclass(frozen=True, slots=True)
class Parameters:
    """How many weights stand where. `experts` holds all routed experts of all layers."""

    attention: int
    dense: int  # feed-forward blocks, shared experts and routers, read by every token
    experts: int
    embedding: int
    head: int  # 0 where tied to the embedding
    small: int  # norms, biases

    @property
    def blocks(self) -> int:
        """Matrices inside the blocks."""
        return self.attention + self.dense + self.experts

    @property
    def total(self) -> int:
        return self.blocks + self.embedding + self.head + self.small


class LLM(Schema):
    """The fields of a Hugging Face config.json that sizing needs, under their own names."""

    name: str = Field("model", description="how plans call it")
    architectures: tuple[str, ...] = ()
    model_type: str = ""
    num_hidden_layers: PositiveCount
    hidden_size: PositiveCount
    intermediate_size: PositiveCount
    num_attention_heads: PositiveCount
    num_key_value_heads: PositiveCount
    head_dim: PositiveCount
    vocab_size: PositiveCount
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    torch_dtype: str = "bfloat16"
    quantization_config: dict[str, Any] | None = None
    # routed experts
    num_experts: CachedTokens = 0
    num_experts_per_tok: CachedTokens = 0
    moe_intermediate_size: CachedTokens = 0
    n_shared_experts: CachedTokens = 0
    first_k_dense_replace: CachedTokens = 0
    decoder_sparse_step: PositiveCount = 1
    mlp_only_layers: tuple[CachedTokens, ...] = ()
    # multi-head latent attention
    kv_lora_rank: CachedTokens = 0
    q_lora_rank: CachedTokens = 0
    qk_nope_head_dim: CachedTokens = 0
    qk_rope_head_dim: CachedTokens = 0
    v_head_dim: CachedTokens = 0

    @model_validator(mode="wrap")
    @classmethod
    def _from_name_or_file(
        cls, data: Any, handler: ModelWrapValidatorHandler[LLM], info: ValidationInfo
    ) -> LLM:
        """A catalogue name, the path of a config.json, or the fields themselves."""
        if isinstance(data, str):
            if data in catalog.names("llms"):
                return _from_catalog(data)
            if not data.endswith(".json"):
                known = catalog.names("llms")
                raise fault(
                    f"is no model of the catalogue{did_you_mean(data, known)} and no config.json; "
                    "`inferplan catalog` lists them"
                )
            path = Path((info.context or {}).get("folder", ".")) / data
            try:
                tree = read_document(path).tree
            except InputError as error:
                raise fault(str(error)) from None
            if not isinstance(tree, dict):
                raise fault(f"{path} holds no JSON object; give a Hugging Face config.json")
            name = path.parent.name if path.name == "config.json" and path.parent.name else path.stem
            known_fields = {k: v for k, v in _read_config(tree).items() if k in cls.model_fields}
            return handler({"name": name, **known_fields})
        return handler(_read_config(data) if isinstance(data, dict) else data)

    @field_validator("tie_word_embeddings", "attention_bias", "mlp_bias", mode="before")
    @classmethod
    def _truth(cls, value: Any) -> bool:
        if value in _TRUE or value in _FALSE:
            return value in _TRUE
        raise fault("is no truth value; give true or false", value=value)

    @model_validator(mode="after")
    def _sound(self) -> LLM:
        if self.torch_dtype not in ("bfloat16", "float16"):
            raise fault("cannot be sized; bfloat16 and float16 can", ("torch_dtype",), self.torch_dtype)
        method = (self.quantization_config or {}).get("quant_method")
        if self.quantization_config is not None and method != "fp8":
            raise fault(
                "is not sized yet; fp8 or no quantisation is", ("quantization_config", "quant_method"), method
            )
        if self.num_attention_heads % self.num_key_value_heads and not self.kv_lora_rank:
            raise fault("must divide num_attention_heads", ("num_key_value_heads",), self.num_key_value_heads)
        if self.num_experts and not (self.num_experts_per_tok and self.moe_intermediate_size):
            raise fault(
                "needs num_experts_per_tok and moe_intermediate_size beside it",
                ("num_experts",),
                self.num_experts,
            )
        if self.num_experts_per_tok > self.num_experts:
            raise fault("is more than there are experts", ("num_experts_per_tok",), self.num_experts_per_tok)
        if self.kv_lora_rank and not (self.qk_nope_head_dim and self.qk_rope_head_dim and self.v_head_dim):
            raise fault(
                "needs qk_nope_head_dim, qk_rope_head_dim and v_head_dim beside it",
                ("kv_lora_rank",),
                self.kv_lora_rank,
            )
        return self

    @property
    def latent(self) -> bool:
        """Whether attention keeps one compact latent a token (MLA) instead of heads."""
        return self.kv_lora_rank > 0

    @property
    def fp8(self) -> bool:
        """Whether the matrices inside the blocks are held in one byte a weight."""
        return (self.quantization_config or {}).get("quant_method") == "fp8"

    @cached_property
    def expert_layers(self) -> int:
        """How many layers hold routed experts."""
        if not self.num_experts:
            return 0
        return sum(
            layer >= self.first_k_dense_replace
            and layer not in self.mlp_only_layers
            and (layer + 1) % self.decoder_sparse_step == 0
            for layer in range(self.num_hidden_layers)
        )

    @property
    def expert_parameters(self) -> int:
        """Weights of one routed expert of one layer (gate, up, down)."""
        return 3 * self.hidden_size * self.moe_intermediate_size

    @cached_property
    def parameters(self) -> Parameters:
        """The parameter budget, counted matrix by matrix."""
        h, heads, layers = self.hidden_size, self.num_attention_heads, self.num_hidden_layers
        experts, dense = self.expert_layers, layers - self.expert_layers
        if self.latent:
            query = self.qk_nope_head_dim + self.qk_rope_head_dim
            q = self.q_lora_rank * (h + heads * query) if self.q_lora_rank else h * heads * query
            down = h * (self.kv_lora_rank + self.qk_rope_head_dim)
            up = self.kv_lora_rank * heads * (self.qk_nope_head_dim + self.v_head_dim)
            attention = q + down + up + heads * self.v_head_dim * h
            norms, biases = self.q_lora_rank + self.kv_lora_rank, 0
        else:
            wide, narrow = heads * self.head_dim, self.num_key_value_heads * self.head_dim
            attention = h * (2 * wide + 2 * narrow)
            norms = 2 * self.head_dim if self.model_type.startswith("qwen3") else 0
            qwen2 = self.model_type.startswith("qwen2")  # biases on q, k and v whatever the config says
            biases = wide + 2 * narrow + (0 if qwen2 else h) if self.attention_bias or qwen2 else 0
        router = experts * h * self.num_experts
        shared = experts * self.n_shared_experts * self.expert_parameters
        correction = experts * self.num_experts if self.model_type == "deepseek_v3" else 0
        mlp_biases = dense * (2 * self.intermediate_size + h) if self.mlp_bias else 0
        table = self.vocab_size * h
        return Parameters(
            attention=layers * attention,
            dense=dense * 3 * h * self.intermediate_size + shared + router,
            experts=experts * self.num_experts * self.expert_parameters,
            embedding=table,
            head=0 if self.tie_word_embeddings else table,
            small=layers * (2 * h + norms + biases) + h + correction + mlp_biases,
        )

    @property
    def head_parameters(self) -> int:
        """The output head as a matrix that is multiplied, tied or not."""
        return self.vocab_size * self.hidden_size

    @property
    def block_bytes_per_weight(self) -> int:
        return 1 if self.fp8 else 2

    @cached_property
    def weight_bytes(self) -> int:
        """Resident bytes of all weights."""
        p = self.parameters
        return self.block_bytes_per_weight * p.blocks + 2 * (p.embedding + p.head + p.small)

    @cached_property
    def kv_bytes_per_token(self) -> int:
        """Bytes of attention state that one token keeps, in 2-byte elements."""
        if self.latent:
            return 2 * self.num_hidden_layers * (self.kv_lora_rank + self.qk_rope_head_dim)
        return 4 * self.num_hidden_layers * self.num_key_value_heads * self.head_dim

    @property
    def active_block_parameters(self) -> int:
        """Weights inside the blocks that one token multiplies."""
        p = self.parameters
        return p.attention + p.dense + self.expert_layers * self.num_experts_per_tok * self.expert_parameters

    def touched_experts(self, tokens: int) -> Fraction:
        """Distinct experts of one layer that a batch reads: E(1-(1-K/E)^M), digest section 6.

        Rounded up to a millionth, which keeps numerators short.
        """
        e, k = self.num_experts, self.num_experts_per_tok
        if not e:
            return Fraction(0)
        if tokens * k >= 64 * e:
            return Fraction(e)
        exact = e * (1 - Fraction(e - k, e) ** tokens)
        return Fraction(-(-exact.numerator * 10**6 // exact.denominator), 10**6)

    def streamed_bytes(self, tokens: int) -> Fraction:
        """Bytes of weights that a pass over `tokens` tokens reads: blocks and head, not the embedding."""
        p = self.parameters
        experts = self.expert_layers * self.touched_experts(tokens) * self.expert_parameters
        return self.block_bytes_per_weight * (p.attention + p.dense + experts) + 2 * self.head_parameters

    @property
    def prefill_pair_flops(self) -> int:
        """FLOP of one (query, visible key) pair over all layers and heads, in prefill."""
        if self.latent:
            wide = self.qk_nope_head_dim + self.qk_rope_head_dim + self.v_head_dim
            return 2 * self.num_hidden_layers * self.num_attention_heads * wide
        return 4 * self.num_hidden_layers * self.num_attention_heads * self.head_dim

    @property
    def decode_pair_flops(self) -> int:
        """The same in decode, where MLA works on the latent itself."""
        if self.latent:
            wide = 2 * self.kv_lora_rank + self.qk_rope_head_dim
            return 2 * self.num_hidden_layers * self.num_attention_heads * wide
        return self.prefill_pair_flops

    @property
    def query_absorption_flops(self) -> int:
        """MLA: FLOP per token that move the up-projections to the query side (digest section 4)."""
        per_head = self.qk_nope_head_dim * self.kv_lora_rank + self.kv_lora_rank * self.v_head_dim
        return 2 * self.num_hidden_layers * self.num_attention_heads * per_head

    @property
    def expanded_kv_bytes_per_token(self) -> int:
        """MLA: bytes a token would keep if keys and values of all heads were stored."""
        wide = self.qk_nope_head_dim + self.qk_rope_head_dim + self.v_head_dim
        return 2 * self.num_hidden_layers * self.num_attention_heads * wide


@cache
def _from_catalog(name: str) -> LLM:
    return LLM.model_validate({"name": name, **catalog.entry("llms", name)["config"]})


def _read_config(config: dict[str, Any]) -> dict[str, Any]:
    """Bring the spellings of published configs under one name each; refuse what is not sized."""
    for field, what in _NOT_SIZED.items():
        if config.get(field) not in (None, "null", ""):
            raise fault(f"is not sized yet ({what})", (field,))
    if config.get("model_type") in _OTHER_SHAPES:
        raise fault("is not sized yet (other feed-forward blocks)", ("model_type",), config["model_type"])
    kinds = set(config.get("layer_types") or ()) - {"full_attention"}
    window = config.get("sliding_window") not in (None, "null", "", "0")
    if kinds or (window and config.get("use_sliding_window") not in _FALSE):
        raise fault(
            "is not sized yet (sliding-window or mixed layers)",
            ("layer_types" if kinds else "sliding_window",),
        )
    out = {key: value for key, value in config.items() if value is not None and value != "null"}
    for wanted, spellings in _SPELLINGS.items():
        for spelling in spellings:
            if spelling in out:
                out.setdefault(wanted, out.pop(spelling))
    for ignored in ("layer_types", "sliding_window", "use_sliding_window"):
        out.pop(ignored, None)
    if "num_attention_heads" in out:
        out.setdefault("num_key_value_heads", out["num_attention_heads"])
        with suppress(KeyError, ValueError, TypeError, ZeroDivisionError):
            width = Fraction(int(out["hidden_size"]), int(out["num_attention_heads"]))
            out.setdefault("head_dim", str(width))
    return out


# feed-forward blocks of two matrices, learned positions or other shapes that the count here does not know
_OTHER_SHAPES = (
    "gpt2",
    "gpt_neox",
    "gptj",
    "opt",
    "bloom",
    "falcon",
    "phi",
    "starcoder2",
    "mpt",
    "t5",
    "bert",
    "nemotron",
)
_SPELLINGS = {"num_experts": ("n_routed_experts", "num_local_experts"), "torch_dtype": ("dtype",)}
