"""The program that made the weights of yomi.native.go.priors: softmax regression of move features on a policy.

`python -m yomi.bench.prior_weights NETWORK OUTPUT [SECONDS]` lets a KataGo network play against itself on 9×9 and
19×19, for SECONDS (60) each. The fitted weights are written as the text of prior_weights.PACKED.
"""

import base64
import sys
import time
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.evaluators.load import load
from yomi.engine.go.networks import FORMATS, raw_outputs
from yomi.native.bits import U
from yomi.native.go import planes, rules
from yomi.native.go.board import KO_POSITIONAL, POSITION_DTYPE, clear
from yomi.native.go.priors import FEATURES, FEATURES_PER_MOVE, FIRST_PATTERN, NONE, OWN_EYE, UNIT, move_features
from yomi.native.go.scratch import SCRATCH_DTYPE
from yomi.native.jit import kernel
from yomi.nets.errors import NetworkError

FloatArray = npt.NDArray[np.float64]

# Concurrent games, which form one batch.
GAMES = 32
RANDOM_MOVES = 1 / 8
STEPS = 120
DECAY = 2e-5
# Set by hand. The fit gives -1.2, since it sees own eyes filled in finished games, where the network does not care.
OWN_EYE_WEIGHT = -4.0
# Before and after step 100.
LEARNING_RATES = (0.15, 0.05)


class Sample(NamedTuple):
    """N positions with M legal moves in all, concatenated, and the network's policy."""

    features: npt.NDArray[np.uint16]  # [M, FEATURES_PER_MOVE]
    policy: npt.NDArray[np.float32]  # [M], sums to 1 over each position
    counts: npt.NDArray[np.int64]  # [N] moves of each position


@kernel
def _describe(positions, histories, scratch, spatial, numbers, moves, counts, indices, features):  # type: ignore[no-untyped-def]
    """Write planes, legal moves, their policy indices and their features for every game."""
    for g in range(U(counts.size)):
        pos = positions[g]
        planes.write_planes(pos, histories[g], 0, scratch, spatial[g], numbers[g])
        counts[g] = rules.legal_moves(pos, histories[g], moves[g])
        for i in range(U(counts[g])):
            indices[g, i] = planes.policy_index(pos.size, pos.height, moves[g, i], 0)
            k = U(0)
            for feature in move_features(pos, U(moves[g, i])):
                features[g, i, k] = feature
                k += U(1)


def sample(network: Path, size: int, seconds: float, rng: np.random.Generator) -> Sample:
    """Let `network` play against itself on boards of `size` for about `seconds`; return every position.

    Moves are drawn from its policy, one in eight at random.
    """
    evaluator = load(FORMATS, network, size)
    moves_most = size * size + 1
    positions, scratch = np.zeros(GAMES, POSITION_DTYPE), np.zeros(1, SCRATCH_DTYPE)[0]
    histories = np.zeros((GAMES, rules.MAX_HISTORY), np.uint64)
    spatial = np.zeros((GAMES, planes.PLANES, size, size), np.float32)
    numbers = np.zeros((GAMES, planes.GLOBALS), np.float32)
    moves, indices = np.zeros((2, GAMES, moves_most), np.uint16)
    counts = np.zeros(GAMES, np.int64)
    features = np.zeros((GAMES, moves_most, FEATURES_PER_MOVE), np.uint16)

    def begin(game: int) -> None:
        clear(positions[game], size, size)
        positions[game]["komi"], positions[game]["ko_rule"] = 7.5, KO_POSITIONAL
        rules.begin(positions[game], histories[game])

    for game in range(GAMES):
        begin(game)
    kept: list[tuple[npt.NDArray[np.uint16], npt.NDArray[np.float32]]] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        _describe(positions, histories, scratch, spatial, numbers, moves, counts, indices, features)
        logits = raw_outputs(evaluator, spatial, numbers).policy
        for game in range(GAMES):
            n = int(counts[game])
            own = logits[game, 0, indices[game, :n]].astype(np.float64)
            policy = np.exp(own - own.max())
            policy /= policy.sum()
            kept.append((features[game, :n].copy(), policy.astype(np.float32)))
            if n > 1 and rng.random() < RANDOM_MOVES:
                choice = int(rng.integers(n - 1))
            else:
                softened = policy**0.8
                choice = int(rng.choice(n, p=softened / softened.sum()))
            rules.play(positions[game], histories[game], moves[game, choice])
            if positions[game]["passes"] >= 2 or positions[game]["ply"] > 1.5 * size * size:
                begin(game)
    counted = np.array([len(policy) for _, policy in kept], np.int64)
    return Sample(np.concatenate([f for f, _ in kept]), np.concatenate([p for _, p in kept]), counted)


def fit(data: Sample) -> FloatArray:
    """Return the weights [FEATURES] that bring the softmax over each position's moves closest to the policy (Adam)."""
    starts = np.concatenate([[0], np.cumsum(data.counts)[:-1]])
    position = np.repeat(np.arange(len(data.counts)), data.counts)
    features = data.features.astype(np.int64)
    weights, mean, square = np.zeros((3, FEATURES))
    unused = [NONE, FIRST_PATTERN]
    for step in range(1, STEPS + 1):
        logits = weights[features].sum(axis=1)
        exponential = np.exp(logits - np.maximum.reduceat(logits, starts)[position])
        guess = exponential / np.add.reduceat(exponential, starts)[position]
        error = np.repeat(guess - data.policy, FEATURES_PER_MOVE)
        gradient = np.bincount(features.ravel(), weights=error, minlength=FEATURES) / len(data.counts) + DECAY * weights
        gradient[unused] = 0.0
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.99 * square + 0.01 * gradient**2
        step_size = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.99**step)) + 1e-6)
        weights = weights - LEARNING_RATES[step >= 100] * step_size
        if step % 40 == 0:
            divergence = (data.policy * np.log((data.policy + 1e-12) / (guess + 1e-12))).sum() / len(data.counts)
            print(f"step {step}: divergence from the network's policy {divergence:.3f} nats", flush=True)
    weights[OWN_EYE] = OWN_EYE_WEIGHT
    return weights


def pack(weights: FloatArray) -> str:
    units = np.clip(np.round(weights / UNIT), -127, 127).astype(np.int8)
    return base64.b85encode(zlib.compress(units.tobytes(), 9)).decode()


def main(arguments: list[str]) -> int:
    if len(arguments) not in (2, 3):
        print("usage: python -m yomi.bench.prior_weights NETWORK OUTPUT [SECONDS]", file=sys.stderr)
        return 2
    seconds = float(arguments[2]) if len(arguments) == 3 else 60.0
    rng = np.random.default_rng(1)
    try:
        samples = [sample(Path(arguments[0]), size, seconds, rng) for size in (9, 19)]
    except (NetworkError, EvaluatorError) as error:
        print(error, file=sys.stderr)
        return 2
    print("positions:", ", ".join(str(len(s.counts)) for s in samples))
    weights = fit(Sample(*(np.concatenate(parts) for parts in zip(*samples, strict=True))))
    Path(arguments[1]).write_text(pack(weights) + "\n", encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
