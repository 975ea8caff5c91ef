"""Seconds and bytes of one request on one card, by the chapter's formulas (digest, section 0). Dense models only."""

from __future__ import annotations

from fractions import Fraction

from inferplan.models.hardware import Card
from inferplan.models.instance import Instance
from inferplan.models.llm import LLM
from inferplan.models.workload import RequestClass

Site = tuple[str, str, int]  # name, card, cards


def sites(instance: Instance) -> list[Site]:
    """Every single server; `count: 3` stands for NAME-1 to NAME-3."""
    found: list[Site] = []
    for server in instance.servers:
        names = (
            [f"{server.name}-{i}" for i in range(1, server.count + 1)] if server.count > 1 else [server.name]
        )
        found += [(name, server.card, server.cards) for name in names]
    return found


def models(instance: Instance) -> dict[str, LLM]:
    """The models by name."""
    return instance.models or ({instance.model.name: instance.model} if instance.model else {})


def model_of(instance: Instance, request: RequestClass) -> str:
    return request.model or next(iter(models(instance)))


def block_weights(llm: LLM) -> int:
    """P_lin: the matrices inside the blocks."""
    if llm.num_experts or llm.kv_lora_rank or llm.quantization_config:
        raise NotImplementedError("the oracles know dense models in two bytes only")
    q = o = llm.hidden_size * llm.num_attention_heads * llm.head_dim
    k = v = llm.hidden_size * llm.num_key_value_heads * llm.head_dim
    gate = up = down = llm.hidden_size * llm.intermediate_size
    return llm.num_hidden_layers * (q + k + v + o + gate + up + down)


def head_weights(llm: LLM) -> int:
    """P_head: the output head."""
    return llm.vocab_size * llm.hidden_size


def all_weights(llm: LLM) -> int:
    """P_all: blocks, head, embedding (once where it is tied to the head) and norms."""
    tables = 1 if llm.tie_word_embeddings else 2
    norms_of_a_layer = 2 * llm.hidden_size + (2 * llm.head_dim if llm.model_type == "qwen3" else 0)
    norms = llm.num_hidden_layers * norms_of_a_layer + llm.hidden_size
    return block_weights(llm) + tables * head_weights(llm) + norms


def kv_bytes(llm: LLM) -> int:
    """Keys and values of one token: two of them, in two bytes, for all layers."""
    return 2 * llm.num_hidden_layers * llm.num_key_value_heads * llm.head_dim * 2


def pair_flops(llm: LLM) -> int:
    """A: FLOP of one (query, visible key) pair, scores plus values."""
    return 4 * llm.num_hidden_layers * llm.num_attention_heads * llm.head_dim


def pass_bytes(llm: LLM) -> int:
    """W: weights that one pass reads; the embedding is a row look-up."""
    return 2 * (block_weights(llm) + head_weights(llm))


def speeds(card: Card) -> tuple[Fraction, Fraction]:
    """e C and e B: usable FLOP/s and bytes/s."""
    return card.efficiency.compute * card.bf16, card.efficiency.memory * card.bandwidth


def prefill_terms(card: Card, llm: LLM, request: RequestClass) -> tuple[Fraction, Fraction]:
    """Seconds of arithmetic and of traffic of one prefill."""
    hist = request.cached_tokens
    new = request.input_tokens - hist
    flops = (
        2 * block_weights(llm) * new
        + pair_flops(llm) * (hist * new + Fraction(new**2, 2))
        + 2 * head_weights(llm)
    )
    moved = pass_bytes(llm) + hist * kv_bytes(llm)
    compute, memory = speeds(card)
    return flops / compute, moved / memory


def decode_terms(card: Card, llm: LLM, request: RequestClass, batch: int) -> tuple[Fraction, Fraction]:
    """Seconds of arithmetic and of traffic of one request's share of its decode steps, the mean over its answers."""
    compute, memory = speeds(card)
    arithmetic = traffic = Fraction(0)
    for length, share in request.output_tokens.items():
        context = request.input_tokens + Fraction(length - 1, 2)
        flops = 2 * (block_weights(llm) + head_weights(llm)) + pair_flops(llm) * context
        moved = Fraction(pass_bytes(llm), batch) + context * kv_bytes(llm)
        arithmetic += share * (length - 1) * flops / compute
        traffic += share * (length - 1) * moved / memory
    return arithmetic, traffic


def steps(request: RequestClass) -> Fraction:
    """Mean number of decode steps: the prefill gives the first token."""
    return sum((share * (length - 1) for length, share in request.output_tokens.items()), Fraction(0))


def prefill(instance: Instance, card: str, request: RequestClass) -> Fraction:
    """d_P."""
    measured = instance.engines.get(card)
    if measured and measured.prefill_rate:
        return 1 / measured.prefill_rate
    return max(prefill_terms(instance.cards[card], models(instance)[model_of(instance, request)], request))


def decode(instance: Instance, card: str, request: RequestClass, batch: int) -> Fraction:
    """d_D; work that a batch does not share comes on top."""
    if not steps(request):
        return Fraction(0)
    measured = instance.engines.get(card)
    if measured and measured.decode_rate:
        return 1 / measured.decode_rate
    terms = decode_terms(instance.cards[card], models(instance)[model_of(instance, request)], request, batch)
    extra = steps(request) * instance.engine.extra_decode_flops
    return max(terms) + extra / speeds(instance.cards[card])[0]


def chunks(instance: Instance, card: str, request: RequestClass, batch: int) -> tuple[Fraction, Fraction]:
    """Arithmetic and traffic of one request under ideal chunking; every prefill pays one more pass over W."""
    llm, facts = models(instance)[model_of(instance, request)], instance.cards[card]
    compute, memory = speeds(facts)
    arithmetic, traffic = decode_terms(facts, llm, request, batch)
    extra = steps(request) * instance.engine.extra_decode_flops / compute
    return prefill_terms(facts, llm, request)[0] + arithmetic + extra, traffic + pass_bytes(llm) / memory


def state_bytes(instance: Instance, request: RequestClass) -> Fraction:
    """V: the state of one whole prompt."""
    per_token = instance.engine.handover_bytes_per_token
    return request.input_tokens * (
        kv_bytes(models(instance)[model_of(instance, request)]) if per_token is None else per_token
    )


def moved_bytes(instance: Instance, request: RequestClass) -> Fraction:
    """Mean bytes of a hand-over; an answer of one token needs none."""
    return state_bytes(instance, request) * (1 - request.output_tokens.get(1, Fraction(0)))


def needed_bytes(instance: Instance, role: str, batch: int, model: str) -> Fraction:
    """Memory that one replica must have (design, section 1)."""
    llm, engine = models(instance)[model], instance.engine
    served = [r for r in instance.workload.classes if model_of(instance, r) == model]
    total = 2 * all_weights(llm) + engine.reserve
    if role in ("prefill", "decode"):
        total += max((state_bytes(instance, r) for r in served if steps(r)), default=Fraction(0))
    if role == "prefill":
        return total + max(r.input_tokens for r in served) * kv_bytes(llm)
    return total + batch * max(
        resident(r) for r in served if steps(r) or not any(map(steps, served))
    ) * kv_bytes(llm)


def resident(request: RequestClass) -> Fraction:
    """Tokens held for one request: the final context, or, for a distribution, the mean over the time in decode."""
    if len(request.output_tokens) == 1:
        return Fraction(request.input_tokens + next(iter(request.output_tokens)) - 1)
    time = steps(request)
    return sum(
        (share * (g - 1) * (request.input_tokens + Fraction(g - 1, 2)) for g, share in request.output_tokens.items()),
        Fraction(0),
    ) / time  # fmt: skip


def batches(instance: Instance, role: str, card: str, model: str) -> list[int]:
    """Decode batches that fit the card; `auto` is the largest that does."""
    memory = instance.cards[card].memory
    found: list[int] = []
    for wanted in instance.engine.decode_batch:
        if wanted == "auto":
            one, two = (needed_bytes(instance, role, b, model) for b in (1, 2))
            batch = 1 + max(0, (memory - one) // (two - one))
        else:
            batch = int(wanted)
        if batch not in found and needed_bytes(instance, role, batch, model) <= memory:
            found.append(batch)
    return found
