from __future__ import annotations

import time
from typing import TYPE_CHECKING

from yomi.engine.color import BLACK, WHITE

if TYPE_CHECKING:
    from yomi.engine.learning.store import Store
    from yomi.engine.learning.workers import Delivery


class Tally:
    """Statistics of self-play since the last shard, for the journal."""

    def __init__(self) -> None:
        self.rows_a_second = 0.0
        self._clear()

    def _clear(self) -> None:
        self._deliveries: list[Delivery] = []
        self._start = time.monotonic()

    def add(self, delivery: Delivery) -> None:
        self._deliveries.append(delivery)

    def write(self, store: Store) -> None:
        delivered = [game for delivery in self._deliveries for game in delivery.games]
        games = [game for game in delivered if not game.reanalyzed]
        seconds = time.monotonic() - self._start
        points = [each for delivery in self._deliveries for each in delivery.points]
        rows = sum(len(game.rows["value"]) for game in delivered)
        self.rows_a_second = rows / max(seconds, 1e-9)
        store.journal.append(
            "selfplay",
            generation=store.state.generation,
            network=delivered[-1].network if delivered else "",
            games=len(games),
            rows=rows,
            moves=sum(game.moves for game in games),
            evaluations=sum(each.evaluations for each in self._deliveries),
            seconds=seconds,
            black=sum(game.winner == BLACK for game in games),
            white=sum(game.winner == WHITE for game in games),
            drawn=sum(game.winner not in (BLACK, WHITE) for game in games),
            played_out=sum(len(each.resigned_wrongly) for each in self._deliveries),
            resigned_wrongly=sum(sum(each.resigned_wrongly) for each in self._deliveries),
            **({"engine_games": len(points), "engine_points": sum(points)} if points else {}),
            **({"reanalyzed": len(delivered) - len(games)} if len(delivered) > len(games) else {}),
            lead=sum(store.leads.values()) / max(1, len(store.leads)),
        )
        self._clear()
