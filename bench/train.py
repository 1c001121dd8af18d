"""`bench train`: training steps per second with data, compared with the network alone.

With data means that they are read, unpacked and transformed. Both take turns, so that other load affects both. A ratio
near 1 means that training never waits for data.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

from yomi.engine.registry import find_encoder
from yomi.nets.training.config import read_config
from yomi.nets.training.loop import Trainer

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
        spent = {"bare": 0.0, "loop": 0.0}
        steps = 0
        while min(spent.values()) < seconds:
            spent["bare"] += _bare(trainer, kept)
            spent["loop"] += _loop(trainer, steps)
            steps += TURN_STEPS
    rates = {name: steps / each for name, each in spent.items()}
    return [
        {
            "network": trainer.config.name,
            "device": str(trainer.device),
            "batch": trainer.config.training.batch,
            "bare_steps_per_second": rates["bare"],
            "loop_steps_per_second": rates["loop"],
            "ratio": rates["loop"] / rates["bare"],
        }
    ]


def _bare(trainer: Trainer, example: Any) -> float:
    begin = time.perf_counter()
    for _ in range(TURN_STEPS):
        found = trainer.train_step(example)
    float(found["total"])  # waits for the device
    return time.perf_counter() - begin


def _loop(trainer: Trainer, first: int) -> float:
    with trainer.reader(first, first + TURN_STEPS) as reader:
        begin = time.perf_counter()
        for example in reader:
            found = trainer.train_step(example)
        float(found["total"])
        return time.perf_counter() - begin
