"""A real engine whose evaluator goes wrong: `python -m tests.process.faulty_engine gtp|usi inline|workers FAULT FIRST`.

The fault begins at the FIRST evaluation after loading and lasts for ever, but for a hang, of 600 s, which comes once.
"""

import sys
from typing import Any

from yomi.engine.options import Options


def main(protocol: str, place: str, fault: str, first: str) -> int:
    """Serve the protocol."""
    from tests.fakes.evaluators import FaultyEvaluator
    from yomi.engine.evaluators import workers
    from yomi.engine.evaluators.queue import EvaluationQueue, InlineQueue
    from yomi.engine.evaluators.workers import EvaluationWorkers
    from yomi.engine.go.networks import RolloutEvaluator

    made: list[FaultyEvaluator] = []
    queues: list[EvaluationQueue] = []
    workers.LOOKS = 600  # looks at once when the engine is armed

    def make() -> FaultyEvaluator:
        from yomi.engine.shogi.networks import MaterialEvaluator

        inner: Any = RolloutEvaluator(1, 4, seed=1) if protocol == "gtp" else MaterialEvaluator(4)
        # With workers only the first evaluator is faulty: the device that fails in mid-game.
        made.append(FaultyEvaluator(inner, "none" if made and place == "workers" else fault, range(0), seconds=600.0))
        return made[-1]

    def make_queue(*_: object) -> EvaluationQueue:
        # While kernels are compiled or loaded, nothing hangs.
        queues.append(InlineQueue(make()) if place == "inline" else EvaluationWorkers([make, make], hang=60.0))
        return queues[-1]

    def arm() -> None:
        begin = made[0].calls + int(first)
        made[0].faulty_calls = range(begin, begin + 1 if fault == "hang" else 10**9)
        if isinstance(queues[-1], EvaluationWorkers):
            workers.LOOKS, queues[-1]._hang = 10, 0.5

    options = Options.for_game("go" if protocol == "gtp" else "shogi")
    options.evaluator = "uniform"  # a fake one takes its place
    options.workers, options.memory, options.seconds, options.playouts = 1, 2**25, 1.0, 300
    if protocol == "gtp":
        from yomi.engine.go.gtp.session import serve as serve_gtp
        from yomi.engine.go.players import player as go

        options.size = 9
        go.make_queue = make_queue

        def load() -> Any:
            player = go.GoPlayer(options)
            arm()
            return player

        return serve_gtp(options, load)
    from yomi.engine.shogi.players import player as shogi
    from yomi.engine.shogi.usi.session import serve as serve_usi

    options.root_mate_search = 0
    shogi.make_queue = make_queue

    def load_shogi(_: Any) -> Any:
        player = shogi.ShogiPlayer(options)
        arm()
        return player

    return serve_usi(options, load_shogi)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
