"""`bench train`: training steps per second with data, beside the network alone and the data alone.

With data means that they are read, unpacked and transformed. All take turns, so that other load affects all. A ratio
near 1 means that training never waits for data.
"""

import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from yomi.engine.registry import find_encoder
from yomi.nets.training.config import read_config
from yomi.nets.training.loop import Trainer
from yomi.nets.training.tensors import Example

TURN_STEPS = 10
WARM_STEPS = 3


def run(path: Path, seconds: float) -> list[dict[str, Any]]:
    """Measure the training of a configuration with and without data, `seconds` each. Nothing of it is saved.

    Raises:
        NetworkError: the configuration or its data cannot be used.
    """
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(read_config(path), Path(folder), find_encoder=find_encoder)
        trainer.network.train()
        kept = trainer.decoder.example(trainer.source.batch(0))
        for _ in range(WARM_STEPS):
            trainer.train_step(kept)
        spent = {"bare": 0.0, "loop": 0.0, "loader": 0.0}
        steps = 0
        while min(spent["bare"], spent["loop"]) < seconds:  # loaders alone may be a hundred times as fast
            spent["bare"] += _timed([kept] * TURN_STEPS, trainer.train_step)
            with trainer.reader(steps, steps + TURN_STEPS) as reader:
                spent["loop"] += _timed(reader, trainer.train_step)
            with trainer.reader(steps, steps + TURN_STEPS) as reader:  # examples that are used without training
                spent["loader"] += _timed(reader, lambda example: {"total": example.labels["value"].sum()})
            steps += TURN_STEPS
    rates = {name: steps / each for name, each in spent.items()}
    batch = trainer.config.training.batch
    return [
        {
            "network": trainer.config.name,
            "device": str(trainer.device),
            "batch": batch,
            "bare_steps_per_second": rates["bare"],
            "loop_steps_per_second": rates["loop"],
            "ratio": rates["loop"] / rates["bare"],
            "positions_per_second": rates["loop"] * batch,
            "loader_positions_per_second": rates["loader"] * batch,
        }
    ]


def _timed(examples: Iterable[Example], work: Callable[[Example], dict[str, Any]]) -> float:
    begin = time.perf_counter()
    for example in examples:
        found = work(example)
    float(found["total"])  # waits for the device
    return time.perf_counter() - begin
