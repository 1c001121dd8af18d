"""The learning loop: self-play, training, gate, ladder, and again. Start reading at `Loop.run`.

`workers` play the games. The `store` keeps them, whatever happens to this process. A `Learner` trains the next network,
on a thread of its own if games are played in other processes. `duel` plays the matches of gate and ladder.
"""

import functools
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from yomi import __version__
from yomi.engine.clients.spec import EngineSpec
from yomi.engine.color import BLACK, WHITE
from yomi.engine.game import Game, Say
from yomi.engine.learning.journal import EARLIER, Figures, GenerationFigures, newest_shares
from yomi.engine.learning.opponents import FailureLimit
from yomi.engine.learning.page import LATEST, PAGE, write_page
from yomi.engine.learning.settings import LearnSettings
from yomi.engine.learning.store import NETWORK_INTERVAL, NOTHING_PLANNED, Store
from yomi.engine.learning.workers import Delivery, Task, Workers
from yomi.engine.machine import start_facts
from yomi.engine.matches.duel import LearningMatch, Matches, play_match
from yomi.engine.matches.rating import Sprt, color_note
from yomi.engine.options import Options
from yomi.nets.data.shards import Dataset
from yomi.nets.files import write_atomically

UNIFORM = "uniform"
MAX_AHEAD = 2.0  # self-play waits for training when it is this many generations ahead
TAKE_SECONDS = 0.5
PAGE_GAMES = 12  # games on the page
PAGE_SECONDS = 60.0  # between two updates of the page
SHARDS = 2  # shards per generation, about


@dataclass(frozen=True)
class Goal:
    """Conditions that end a run. A field that is None is no condition."""

    hours: float | None = None  # of this start
    generations: int | None = None  # networks of the whole run
    # An anchor, and the share of the points that the newest network must win in a match against it
    share: tuple[str, float] | None = None


def default_anchors(game: Game[Any, Any]) -> tuple[str, str]:
    """Return the evaluators without a network, as values of the option `evaluator`."""
    return UNIFORM, game.default_evaluator


class Learner(Protocol):
    """Trains networks: `yomi.nets.training.generations`, or a class of yours."""

    def first(self) -> Path:
        """Write the untrained network, and return its file."""

    def run(
        self,
        dataset: Dataset,
        generation: int,
        rows: int,
        before: int,
        steps: int,
        progress: Callable[[int, dict[str, float]], None],
    ) -> tuple[Path, int]:
        """Train from step `before` to `steps` on a window of the newest of `rows` rows.

        Returns:
            The network's file, which the caller moves away, and the number of rows in the window.
        """


class Loop:
    """A run between one start of the command and its end."""

    def __init__(
        self,
        game: Game[Any, Any],
        options: Options,
        settings: LearnSettings,
        store: Store,
        workers: Workers,
        make_learner: Callable[[], Learner],
        say: Say,
        *,
        beside: bool,
        engines: Sequence[EngineSpec] = (),
        matches: Matches = play_match,
        adapt: Callable[[Options], Options] = lambda options: options,
        on_generation: Callable[[Figures], None] = lambda figures: None,
    ) -> None:
        """Store the parts of the loop.

        Args:
            game: the descriptor.
            options: board, rules and device.
            settings: settings of the run.
            store: the folder of the run.
            workers: players of the games.
            make_learner: makes the learner; slow.
            say: prints a line of progress.
            beside: train while games are played. Otherwise self-play and training take turns.
            engines: further anchors of the ladder.
            matches: plays the matches of gate and ladder.
            adapt: completes the options of players with a network.
            on_generation: called with the figures of each generation after its training, gate and ladder, on the thread
                that trains. Its exceptions end the run.
        """
        self.game, self.options, self.settings, self.store = game, options, settings, store
        self.workers, self._make_learner, self.say, self._concurrent = workers, make_learner, say, beside
        self.anchors: dict[str, Options | EngineSpec] = {
            **{name: replace(options, net=None, evaluator=name) for name in default_anchors(game)},
            **{spec.name: spec for spec in engines},
        }
        self._figures, self._on_generation = GenerationFigures(), on_generation
        store.journal.listeners.append(self._figures.add)
        events = store.journal.read()
        self._shares = newest_shares(events)
        self._failure_limit = FailureLimit()
        self._matches, self._adapt = matches, adapt
        self._training: threading.Thread | None = None
        self._failure: Exception | None = None
        self._tally = Tally()
        self._idle_since = time.monotonic()
        self._phase = ""  # current work of the training thread: training, gate or ladder of a network
        self._sent_generation = -1  # generation that the workers play with
        # In which the workers compute the networks, from the journal
        self._precision = next((event["precision"] for event in reversed(events) if event["event"] == "precision"), "")
        self._page_games: deque[dict[str, Any]] = deque(maxlen=PAGE_GAMES)
        self._page_written = time.monotonic()
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End soon and keep all results. Signal handlers may call this."""
        self._stopped.set()

    def run(self, goal: Goal) -> None:
        """Learn until the goal is reached.

        Raises:
            LearningError, NetworkError, EvaluatorError, OSError: the run cannot continue. Nothing is lost.
        """
        begin, before = time.monotonic(), self.store.state.seconds
        self.store.journal.append("start", version=__version__, settings=self.store.asked, machine=start_facts())
        why = "interrupted"
        try:
            self._begin()
            self._write_page(0.0)
            self.say(f"{self._progress()}; {self.store.folder / PAGE} shows the run")
            while not self._stopped.is_set() and not self._has_reached(goal, time.monotonic() - begin):
                self._collect()
                # The ladder of a new network may still be played.
                if self._sent_generation != self.store.state.generation:
                    self._send_network()
                if self._training is not None and not self._training.is_alive():
                    self._end_training()
                elif self._training is None and self._has_enough():
                    self._plan()
                    self._start_training()
                self.store.pass_time(before + time.monotonic() - begin)
            if self._training is not None:
                self._wait_for_training()
                self._end_training()
            why = "asked to" if self._stopped.is_set() else "the goal is reached"
        except Exception as error:
            why = str(error)
            if self._training is not None:  # PyTorch aborts a process that ends while it trains
                self._wait_for_training()
            raise
        finally:
            self.workers.close()
            self.store.update(seconds=before + time.monotonic() - begin)
            self.store.journal.append("stop", why=why)
            self._write_page(0.0)
            self.store.close()

    def _wait_for_training(self) -> None:
        assert self._training is not None
        phase = ""
        while self._training.is_alive():
            if phase != self._phase:
                phase = self._phase
                self.say(f"waiting for {phase} before the end")
            self._training.join(TAKE_SECONDS)

    # -- self-play -------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        state = self.store.state
        if not state.network and state.generation >= self.settings.without_network:
            name = self.store.keep_network(self._learner.first())
            self.store.update(network=name)
            self.store.journal.append("promotion", generation=0, network=name)
        self._send_network()
        if state.planned_rows:  # a kill came while it was trained
            self._start_training()

    def _send_network(self) -> None:
        state = self.store.state
        self._sent_generation = state.generation
        plays = state.network if state.generation >= self.settings.without_network else self.game.default_evaluator
        if plays == state.network:
            options = self._options(plays)
            if options.precision != self._precision:
                self._precision = options.precision
                self.store.journal.append("precision", precision=options.precision)
        else:
            options = replace(self.options, net=None, evaluator=plays)
        self.workers.use(Task(options, plays, self.store.leads))

    def _options(self, network: str) -> Options:
        return self._adapt(replace(self.options, net=str(self.store.network(network)), evaluator="onnx"))

    def _collect(self) -> None:
        """Store the finished games. If self-play is MAX_AHEAD generations ahead of training, wait for the training."""
        state, settings = self.store.state, self.settings
        ahead = self.store.rows - (state.planned_rows or state.trained_rows)
        if self._training is not None and ahead > MAX_AHEAD * settings.rows:
            self._pause_self_play(self._training)
            return
        for delivery in self.workers.take(TAKE_SECONDS):
            for played in delivery.games:
                self.store.add(played)
            if delivery.shown is not None:
                self._page_games.append(delivery.shown)
            self._tally.add(delivery)
            self._report_faults(delivery.faults)
            self._failure_limit.note(delivery.faults, len(delivery.points))
        if sum(len(game.rows["value"]) for game in self.store.games) * SHARDS >= settings.rows:
            self.store.close_shards()
            self._tally.write(self.store)
            self.say(self._progress())
            self._write_page(PAGE_SECONDS)

    def _pause_self_play(self, training: threading.Thread) -> None:
        """Wait for the training thread. Write the time to the journal, by phase."""
        while training.is_alive() and not self._stopped.is_set():
            begin, phase = time.monotonic(), self._phase
            self.say(f"self-play is {MAX_AHEAD:g} generations ahead and waits for {phase}")
            while training.is_alive() and self._phase == phase and not self._stopped.is_set():
                training.join(TAKE_SECONDS)
            seconds = time.monotonic() - begin
            self.store.journal.append("wait", part="selfplay", seconds=seconds, **{"for": phase})

    def _has_enough(self) -> bool:
        return self.store.rows - self.store.state.trained_rows >= self.settings.rows

    # -- training --------------------------------------------------------------------------------------------------

    def _plan(self) -> None:
        # Stored before training starts: a run that is killed then trains on the same rows.
        self.store.close_shards()
        state, settings, rows = self.store.state, self.settings, self.store.rows
        steps = max(1, round((rows - state.trained_rows) * settings.passes / settings.batch))
        self.store.update(planned_rows=rows, planned_shard=self.store.newest_shard, planned_steps=state.steps + steps)

    def _start_training(self) -> None:
        waited = time.monotonic() - self._idle_since
        self.store.journal.append("wait", part="training", seconds=waited, **{"for": "rows"})
        if not self._concurrent:
            begin = time.monotonic()
            self._train_next()
            self._end_training()
            self._tally.leave_out(time.monotonic() - begin)
            return
        self._training = threading.Thread(target=self._train_or_fail, name="training", daemon=True)
        self._training.start()

    def _train_or_fail(self) -> None:
        try:
            self._train_next()
        except Exception as error:  # raised again by _end_training
            self._failure = error

    def _end_training(self) -> None:
        self._training, self._idle_since = None, time.monotonic()
        if self._failure is not None:
            raise self._failure
        self._send_network()

    def _train_next(self) -> None:
        """Train the next network. Promote it if it passes the gate."""
        state, settings, journal = self.store.state, self.settings, self.store.journal
        generation = state.generation + 1
        begin = time.monotonic()
        self._phase = f"the training of network {generation}"
        latest: dict[str, float] = {}
        rows, steps = state.planned_rows, state.planned_steps
        path, window = self._learner.run(
            self.store.planned(), generation, rows, state.steps, steps, lambda _, values: latest.update(values)
        )
        name = self.store.keep_network(path)
        seconds = time.monotonic() - begin
        losses = {key: round(value, 5) for key, value in latest.items() if key not in SPEEDS}
        event = {"generation": generation, "steps": steps - state.steps, "seconds": seconds}
        journal.append("training", **event, window=window, losses=losses)
        promoted = self._passes_gate(name, generation)
        if promoted:
            journal.append("promotion", generation=generation, network=name)
        best = name if promoted else state.network
        self.store.update(generation=generation, network=best, trained_rows=rows, steps=steps, **NOTHING_PLANNED)
        self.say(f"network {generation} ({name[:8]}), {steps} steps, {'promoted' if promoted else 'refused'}")
        if settings.ladder and generation % settings.ladder_every == 0:
            self._play_ladder(name, generation)
        self.store.tidy(settings.keep * 2**30, window)
        self._on_generation(self._figures.take(generation))

    def _passes_gate(self, name: str, generation: int) -> bool:
        best, games = self.store.state.network, self.settings.gate
        if not best or not games:
            return True
        self._phase = f"the gate of network {generation}"
        return self._match("gate", generation, name, best, games, GATE)

    def _play_ladder(self, name: str, generation: int) -> None:
        """Play a network against the anchors, and against the network from NETWORK_INTERVAL generations before."""
        earlier = [other for number, other in self.store.networks().items() if number <= generation - NETWORK_INTERVAL]
        for other in (*self.anchors, *earlier[-1:]):
            self._phase = f"the ladder of network {generation} against {self._short_name(other)}"
            self._match("match", generation, name, other, self.settings.ladder)
        self._shares = newest_shares(self.store.journal.read())

    def _match(self, event: str, generation: int, name: str, other: str, games: int, sprt: Sprt | None = None) -> bool:
        """Play a match of a network and write its event. Return whether the network won half the points."""
        begin, settings = time.monotonic(), self.settings
        players = self._options(name), self.anchors[other] if other in self.anchors else self._options(other)
        lead = self.store.leads.get(self.game.board_size(self.options), 0.0)
        match = LearningMatch(players, games, settings.match_visits, settings.seed + generation, lead, sprt)
        score = self._matches(self.game, match)
        against = other if event == "gate" or other in self.anchors else f"{EARLIER}{other}"
        counts = {"wins": score.wins, "draws": score.draws, "losses": score.losses}
        fields = {"generation": generation, "network": name, "against": against, **counts}
        promoted = score.share >= 0.5
        more = {"promoted": promoted} if event == "gate" else {}
        self.store.journal.append(event, **fields, seconds=time.monotonic() - begin, **more)
        note = color_note(sum(score.pairs), score.colors)
        self.say(f"network {generation} against {self._short_name(other)}: {score}" + (f"; {note}" if note else ""))
        self._report_faults(score.faults)
        return promoted

    def _short_name(self, player: str) -> str:
        return player if player in self.anchors else player[:8]

    def _report_faults(self, faults: Sequence[str]) -> None:
        for why in faults:
            self.store.journal.append("lost", part="engine", why=why)
            self.say(f"engine {why}; its game is dropped, and the engine is started again")

    @functools.cached_property
    def _learner(self) -> Learner:
        return self._make_learner()

    # -- reports -----------------------------------------------------------------------------------------------------

    def _write_page(self, seconds: float) -> None:
        """Write the page, unless it was written in the last `seconds`."""
        if time.monotonic() - self._page_written >= seconds:
            if self._page_games:
                games = {"games": list(reversed(self._page_games))}
                write_atomically(self.store.folder / LATEST, json.dumps(games).encode(), sync=True)
            write_page(self.store.folder)
            self._page_written = time.monotonic()

    def _progress(self) -> str:
        state, settings = self.store.state, self.settings
        missing = max(0, settings.rows - (self.store.rows - state.trained_rows))
        rate = self._tally.rows_per_second
        wait = f"{missing:,} more rows, about {missing / rate:.0f} s" if rate and missing else f"{missing:,} more rows"
        return f"{self.store.rows:,} rows; network {state.generation + 1} begins in {wait}"

    def _has_reached(self, goal: Goal, seconds: float) -> bool:
        return (
            (goal.hours is not None and seconds >= 3600.0 * goal.hours)
            or (goal.generations is not None and self.store.state.generation >= goal.generations)
            or (goal.share is not None and self._shares.get(goal.share[0], -1.0) >= goal.share[1])
        )


GATE = Sprt(-20.0, 20.0)  # ends the match of a gate as soon as the difference is clear, in Elo
# Values besides the losses that yomi.nets.training.loop reports
SPEEDS = ("learning_rate", "positions_per_second", "seconds")


class Tally:
    """Statistics of self-play since the last shard, for the journal."""

    def __init__(self) -> None:
        self.rows_per_second = 0.0
        self._clear()

    def _clear(self) -> None:
        self._deliveries: list[Delivery] = []
        self._start = time.monotonic()

    def add(self, delivery: Delivery) -> None:
        self._deliveries.append(delivery)

    def leave_out(self, seconds: float) -> None:
        """Do not count a time in which nobody played."""
        self._start += seconds

    def write(self, store: Store) -> None:
        delivered = [game for delivery in self._deliveries for game in delivery.games]
        games = [game for game in delivered if not game.reanalyzed]
        seconds = time.monotonic() - self._start
        points = [point for delivery in self._deliveries for point in delivery.points]
        rows = sum(len(game.rows["value"]) for game in delivered)
        self.rows_per_second = rows / max(seconds, 1e-9)
        store.journal.append(
            "selfplay",
            generation=store.state.generation,
            network=delivered[-1].network if delivered else "",
            games=len(games),
            rows=rows,
            moves=sum(game.moves for game in games),
            evaluations=sum(delivery.evaluations for delivery in self._deliveries),
            seconds=seconds,
            black=sum(game.winner == BLACK for game in games),
            white=sum(game.winner == WHITE for game in games),
            drawn=sum(game.winner not in (BLACK, WHITE) for game in games),
            played_out=sum(len(delivery.resigned_wrongly) for delivery in self._deliveries),
            resigned_wrongly=sum(sum(delivery.resigned_wrongly) for delivery in self._deliveries),
            **({"engine_games": len(points), "engine_points": sum(points)} if points else {}),
            **({"reanalyzed": len(delivered) - len(games)} if len(delivered) > len(games) else {}),
            lead=sum(store.leads.values()) / max(1, len(store.leads)),
        )
        self._clear()
