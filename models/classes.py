"""Classes of requests from a trace: intervals of input length, each with its distribution of outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, combinations, pairwise

from .trace import Trace, TraceError

# Costs of Qwen3-8B at BF16, the default weights of what the classes must keep (only their ratios matter).
ALPHA = 2 * 6_945_767_424  # prefill FLOP per input token
BETA = 589_824 // 2  # prefill FLOP per squared input token
WEIGHT_BYTES = 15_136_194_560 // 32  # decode bytes per output token: the weights, shared by a batch of 32
KV_BYTES = 147_456  # decode bytes per output token and token of context

_MOST_OUTPUTS = 64  # a class keeps its complete distribution of outputs up to this many points ...
_OUTPUT_GROUPS = 5  # ... and beyond it at most 3 points in each of these groups, and G = 1


@dataclass(frozen=True, slots=True)
class TraceClass:
    """The requests of one interval of input lengths, which a router can see on arrival.

    ``name``: the interval, as ``in-0001-0512`` (both ends belong to it; the intervals of a trace leave no
    gap from 1 to its longest input). ``share``: its part of all requests. ``input_tokens``: the length that
    stands for all of them, in tokens. ``output_tokens``: the share of each number of output tokens (from 1);
    the shares add to exactly 1.
    """

    name: str
    share: Fraction
    input_tokens: int
    output_tokens: Mapping[int, Fraction] = field(hash=False)


# ---------------------------------------------------------------------------------------------- reading


# ---------------------------------------------------------------------------------------------- classes


def form_classes(trace: Trace, classes: int) -> tuple[TraceClass, ...]:
    """At most ``classes`` classes that stand for a trace, by rising input length; equal inputs share a class.

    The intervals minimise the sum over all requests of (L - mean L of the class)^2. This is exactly what the
    sum of L^2 loses when the classes keep the sum of L, and it bounds what the sum of (G-1)*L loses, so it is
    good for any model and card. Within a class the representative L balances the relative errors of prefill
    and decode cost at the constants of this module, and the outputs keep the exact means of G-1 and (G-1)^2.
    The order of the requests does not matter. Raises TraceError if ``classes`` is less than 1.
    """
    if classes < 1:
        raise TraceError(f"classes: {classes} is not accepted; give a whole number from 1")
    outputs_of: dict[int, Counter[int]] = {}
    for tokens, output in zip(trace.inputs, trace.outputs, strict=True):
        outputs_of.setdefault(tokens, Counter())[output] += 1
    lengths = sorted(outputs_of)
    width = max(4, len(str(lengths[-1])))
    ends = _intervals(lengths, [outputs_of[tokens].total() for tokens in lengths], classes)
    formed: list[TraceClass] = []
    low = 1
    for begin, end in pairwise([0, *ends]):
        members = lengths[begin:end]
        outputs: Counter[int] = Counter()
        for tokens in members:
            outputs.update(outputs_of[tokens])
        formed.append(
            TraceClass(
                name=f"in-{low:0{width}d}-{members[-1]:0{width}d}",
                share=Fraction(outputs.total(), trace.requests),
                input_tokens=_representative({tokens: outputs_of[tokens] for tokens in members}),
                output_tokens=_distribution(outputs),
            )
        )
        low = members[-1] + 1
    return tuple(formed)


def _intervals(values: Sequence[int], counts: Sequence[int], most: int) -> list[int]:
    """Cut rising ``values`` into at most ``most`` intervals of least squared deviation from their means.

    Returns the end index of every interval, the last being len(values). Dynamic programming over the number
    of intervals; the best last cut never moves left as the end moves right: a layer is solved by halving.
    """
    size = len(values)
    most = min(most, size)
    centre = values[size // 2]  # near 0 the floats below lose fewer digits
    pairs = [(v - centre, n) for v, n in zip(values, counts, strict=True)]
    number = [0.0, *map(float, accumulate(counts))]
    first = [0.0, *map(float, accumulate(n * v for v, n in pairs))]
    second = [0.0, *map(float, accumulate(n * v * v for v, n in pairs))]
    best = [0.0] + [second[j] - first[j] * first[j] / number[j] for j in range(1, size + 1)]
    layers: list[list[int]] = []
    for parts in range(2, most + 1):
        before, best, cuts = best, [0.0] * (size + 1), [0] * (size + 1)
        waiting = [(parts, size, parts - 1, size - 1)]
        while waiting:
            low, high, left, right = waiting.pop()
            if low > high:
                continue
            j = (low + high) // 2
            n_j, first_j, second_j = number[j], first[j], second[j]
            least, at = float("inf"), left
            for i in range(min(right, j - 1), left - 1, -1):
                step = first_j - first[i]
                spread = second_j - second[i] - step * step / (n_j - number[i])
                if spread >= least:
                    break  # a longer last interval only spreads more
                if before[i] + spread < least:
                    least, at = before[i] + spread, i
            best[j], cuts[j] = least, at
            waiting += [(low, j - 1, left, at), (j + 1, high, at, right)]
        layers.append(cuts)
    ends = [size]
    for cuts in reversed(layers):
        ends.append(cuts[ends[-1]])
    return ends[::-1]


def _representative(members: Mapping[int, Counter[int]]) -> int:
    """The whole input length whose larger relative error, of prefill or of decode cost, is least.

    ``members``: for each input length of the class, how many requests have each number of outputs.
    """
    requests = prefill = handed = context = squares = 0
    for tokens, outputs in members.items():
        count, later = outputs.total(), sum((g - 1) * n for g, n in outputs.items())
        requests += count
        prefill += count * (ALPHA * tokens + BETA * tokens**2)
        handed += later
        context += later * tokens
        squares += sum((g - 1) ** 2 * n for g, n in outputs.items())
    decode = 2 * WEIGHT_BYTES * handed + KV_BYTES * (2 * context + squares)  # doubled: whole numbers only

    def errors(tokens: int) -> tuple[int, int]:  # relative, times prefill * decode; both rise with tokens
        of_prefill = requests * (ALPHA * tokens + BETA * tokens**2) - prefill
        return of_prefill * max(decode, 1), 2 * KV_BYTES * (tokens * handed - context) * prefill

    low, high = min(members), max(members)
    while low < high:  # the errors have opposite signs between their zeros: equal sizes where they add to 0
        middle = (low + high) // 2
        low, high = (low, middle) if sum(errors(middle)) >= 0 else (middle + 1, high)
    return min((max(low - 1, min(members)), low), key=lambda tokens: max(map(abs, errors(tokens))))


def _distribution(outputs: Counter[int]) -> dict[int, Fraction]:
    """The share of each number of outputs; a long distribution on at most 16 of its own points.

    The means of G-1 and (G-1)^2 and the share of G = 1 (requests without hand-over) are exact in either case.
    """
    total = outputs.total()
    points = sorted(outputs)
    weights: dict[int, Fraction] = {g: Fraction(n) for g, n in outputs.items()}
    if len(points) > _MOST_OUTPUTS:
        weights = {1: weights[1]} if 1 in weights else {}
        points = [g for g in points if g > 1]
        for begin, end in pairwise([0, *_intervals(points, [outputs[g] for g in points], _OUTPUT_GROUPS)]):
            weights |= _three_points({g: outputs[g] for g in points[begin:end]})
    return {g: weights[g] / total for g in sorted(weights)}


def _three_points(counts: Mapping[int, int]) -> dict[int, Fraction]:
    """Weights on at most 3 of the points with the same sums of 1, x and x^2 as all of them (Carathéodory).

    Points come one by one; of any 4, 3 can carry the three sums so far with no negative weight.
    """
    nodes: tuple[int, ...] = ()
    zeroth = first = second = 0

    def weights(three: tuple[int, ...]) -> dict[int, Fraction]:
        found = {}
        for x in three:
            y, z = (other for other in three if other != x)
            found[x] = Fraction(second - (y + z) * first + y * z * zeroth, (x - y) * (x - z))
        return found

    for x, n in counts.items():
        zeroth, first, second = zeroth + n, first + n * x, second + n * x * x
        nodes = (*nodes, x)
        if len(nodes) == 4:
            nodes = next(three for three in combinations(nodes, 3) if min(weights(three).values()) >= 0)
    if len(nodes) < 3:
        return {x: Fraction(counts[x]) for x in nodes}
    return {x: weight for x, weight in weights(nodes).items() if weight}


def class_errors(
    trace: Trace,
    classes: Sequence[TraceClass],
    alpha: float = ALPHA,
    beta: float = BETA,
    w: float = WEIGHT_BYTES,
    k: float = KV_BYTES,
) -> dict[str, float]:
    """How far the totals of the classes are from those of the trace: relative, not negative (0.005 is 0.5 %).

    ``prefill``: sum of alpha*L + beta*L^2 (alpha in FLOP per input token, beta in FLOP per squared token).
    ``decode``: sum of (G-1)*(w + k*(L + (G-1)/2)) (w in bytes per output token, k in bytes per output token
    and token of context). ``requests``: their number. Of a total that is 0 in the trace: 0 or infinite.
    """

    def totals(rows: Iterable[tuple[Fraction | int, int, int]]) -> dict[str, Fraction]:
        sums: list[Fraction | int] = [0] * 6  # whole numbers of a trace stay fast ints
        for weight, tokens, output in rows:
            later = weight * (output - 1)
            terms = (weight, weight * tokens, weight * tokens**2, later, later * tokens, later * (output - 1))
            sums = [total + term for total, term in zip(sums, terms, strict=True)]
        number, first, second, handed, context, squares = map(Fraction, sums)
        return {
            "prefill": Fraction(alpha) * first + Fraction(beta) * second,
            "decode": Fraction(w) * handed + Fraction(k) * (context + squares / 2),
            "requests": number,
        }

    true = totals((1, tokens, output) for tokens, output in zip(trace.inputs, trace.outputs, strict=True))
    kept = totals(
        (trace.requests * one.share * share, one.input_tokens, output)
        for one in classes
        for output, share in one.output_tokens.items()
    )
    return {
        name: float(abs(kept[name] / total - 1)) if total else float("inf" if kept[name] else 0)
        for name, total in true.items()
    }
