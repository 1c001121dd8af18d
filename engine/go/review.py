"""Reviews games of Go: searches every position of a record, and annotates the record."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from yomi.engine.color import BLACK, WHITE, opponent
from yomi.engine.default_network import network_file
from yomi.engine.go.descriptor import GAME
from yomi.engine.go.game import GoGame, score_text
from yomi.engine.go.players.analyst import make_analysts
from yomi.engine.go.players.decisions import board_symmetries
from yomi.engine.go.players.player import GoPlayer
from yomi.engine.go.record_files import load_records, load_size
from yomi.engine.go.rules import Rules
from yomi.engine.go.scoring import dead_stones
from yomi.engine.go.sgf import GameRecord, Node, SgfError
from yomi.engine.go.vertex import format_color, format_vertex
from yomi.engine.options import Options
from yomi.engine.players.request import Request
from yomi.engine.records import Note
from yomi.engine.review import (
    MARK,
    Judgement,
    KnownPositions,
    Opinion,
    Review,
    ReviewedMove,
    ReviewError,
    Tick,
    limit_text,
    reviewed_moves,
    speed_of,
)
from yomi.native.go.board import NO_POINT, PASS

MISTAKE, BLUNDER = 0.05, 0.15  # losses of winrate from which a move is marked as doubtful (DO) or bad (BM)
PV_MOVES = 12  # maximum moves of an added variation
VERDICTS = ("BM", "DO", "IT", "TE")  # SGF's verdicts on a move. A node may have one.
SABAKI = ("SBKV", "SBKS")  # Sabaki's properties for its graphs: Black's winrate in percent and lead in points


@dataclass(slots=True)
class AnnotatedGo:
    review: Review
    record: GameRecord

    def files(self) -> dict[str, bytes]:
        annotate(self.record, self.review)
        try:
            return {".sgf": self.record.to_sgf().encode("utf-8")}
        except SgfError as error:
            raise ReviewError(str(error)) from None


def open_reviewer(options: Options, path: Path) -> GoReviewer:
    """Return a reviewer for the network's only board size, or else the record's.

    Raises:
        LoadingError: the analysts cannot be made.
        ReviewError: the record cannot be read.
    """
    try:
        options.size = only_size(network_file(options, GAME.name)) or load_size(path)
    except SgfError as error:
        raise ReviewError(str(error)) from None
    # Seconds are those of the whole machine.
    return GoReviewer(make_analysts(options, None if options.seconds is None else 1, prompt=False), options)


def only_size(net: str | None) -> int:
    """Return the only board size of a network, or 0 if it takes all sizes or cannot be read."""
    from yomi.nets.metadata import METADATA_KEY, NetworkInfo
    from yomi.nets.onnx_header import read_onnx_header

    try:
        header = None if net is None else read_onnx_header(Path(net))
    except OSError:  # loading it reports the error
        return 0
    if header is None or METADATA_KEY not in header.metadata:
        return 0
    return NetworkInfo.from_props(header.metadata).board_size


class GoReviewer:
    """Reviews games with several analysts, which search parts of a game at the same time."""

    def __init__(self, analysts: Sequence[GoPlayer], options: Options) -> None:
        self.analysts = analysts
        self.options = options

    def read(self, path: str) -> list[LoadedGame]:
        return load(path, Rules.parse(self.options.rules), self.options.komi)

    def length(self, loaded: LoadedGame) -> int:
        return loaded.positions

    def visits_per_second(self, loaded: LoadedGame) -> float:
        """Return the visits/s of all analysts together, in the middle of a game."""
        game = next(itertools.islice(self._replay(loaded.record), loaded.positions // 2, None)).copy()

        def search(options: Options) -> int:
            def decide(analyst: GoPlayer) -> int:
                found = analyst.decide(Request(game.copy(), options)).report.visits
                analyst.clear()
                return found

            with ThreadPoolExecutor(len(self.analysts)) as pool:
                return sum(pool.map(decide, self.analysts))

        return speed_of(search, self.options)

    def review(self, loaded: LoadedGame, tick: Tick, known: KnownPositions | None = None) -> AnnotatedGo:
        """Search every position of a game, up to a fault of its record."""
        begin = time.monotonic()
        record = loaded.record
        games = [game.copy() for game in itertools.islice(self._replay(record), loaded.positions)]
        played = [node.move for node in record.line() if node.move is not None][: len(games) - 1]
        for game, (color, _) in zip(games[:-1], played, strict=True):
            game.turn_to(color)  # a side may have played twice
        found = self._evaluate_all(games, tick, known or KnownPositions())
        opinions = [opinion for opinion, _ in found if opinion is not None]
        review = Review(
            game=GAME.name,
            score=GAME.score,
            engine=self.analysts[0].description,
            moves=reviewed_moves(
                [move for _, move in played],
                opinions,
                lambda move: format_vertex(move, record.size),
                PV_MOVES,
                lambda index, move, best: are_mirrored(games[index], move, best),
            ),
            opinions=opinions,
            names={BLACK: record.black, WHITE: record.white},
            result=record.result,
            evaluations=sum(count for _, count in found),
            seconds=time.monotonic() - begin,
            info={"size": record.size, "rules": str(games[-1].rules), "komi": games[-1].komi},
            notes=list(record.notes),
            limit=limit_text(self.options),
        )
        if record.rules_text:
            review.notes.append(Note(f"unknown rules '{record.rules_text}': reviewed under {games[-1].rules}"))
        if loaded.fault:
            review.notes.append(loaded.fault)
        return AnnotatedGo(review, record)

    def _replay(self, record: GameRecord) -> Iterator[GoGame]:
        rules = Rules.parse(self.options.rules)
        return record.replay(rules=rules, override_rules=record.rules is None, komi=self.options.komi)

    def close(self) -> None:
        for analyst in self.analysts:
            analyst.close()

    def _evaluate_all(self, games: Sequence[GoGame], tick: Tick, known: KnownPositions) -> list[Judgement]:
        """Return the result for each position. An error of an analyst, or KeyboardInterrupt, stops all analysts."""
        parts = Parts(len(games), len(self.analysts))
        stopped, ticking = threading.Event(), threading.Lock()

        def go_through(number: int) -> None:
            # Forwards: the tree below the played move is kept, which saves 40% of the evaluations.
            while not stopped.is_set() and (index := parts.take(number)) is not None:
                judgement = known.found.get(index) or self._evaluate(self.analysts[number], games[index], stopped)
                with ticking:
                    if stopped.is_set():
                        return  # the search was cut short
                    if index not in known.found:
                        known.add(index, judgement)
                    tick()

        with ThreadPoolExecutor(len(self.analysts)) as pool:
            futures = [pool.submit(go_through, number) for number in range(len(self.analysts))]
            try:
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                stopped.set()
                for analyst in self.analysts:
                    analyst.interrupt()
                raise
        return [known.found[index] for index in range(len(games))]

    def _evaluate(self, player: GoPlayer, game: GoGame, stopped: threading.Event) -> Judgement:
        """Return the opinion of a position, and the number of evaluations."""
        options, color = self.options, game.side_to_move
        if game.is_over:
            if game.is_no_result:
                return Opinion(color, 0.5, 0.0), 0
            dead = dead_stones(game, player.final_ownership(game)) if game.rules.has_agreement else ()
            score = game.final_score(dead)
            score = score if color == BLACK else -score
            return Opinion(color, 0.5 if score == 0 else float(score > 0), score), 0
        request = Request(game, options, hide_history=options.ignore_pre_root_history)
        if stopped.is_set():
            request.stop()
        report = player.decide(request).report
        if not report.moves:  # a single visit
            return Opinion(color, report.winrate, report.score_lead, visits=report.visits), report.evaluations
        best = report.moves[0]
        opinion = Opinion(color, best.winrate, best.score_lead, best.move, best.pv, visits=report.visits)
        return opinion, report.evaluations


class Parts:
    """Runs of positions, one for each analyst, which searches its run forwards. An idle analyst takes half of the
    longest run.
    """

    def __init__(self, count: int, analysts: int) -> None:
        self._parts = [[count * part // analysts, count * (part + 1) // analysts] for part in range(analysts)]
        self._lock = threading.Lock()

    def take(self, number: int) -> int | None:
        """Return the next position for an analyst; None at the end."""
        with self._lock:
            part = self._parts[number]
            if part[0] == part[1]:
                longest = max(self._parts, key=lambda part: part[1] - part[0])
                if longest[0] == longest[1]:
                    return None
                middle = sum(longest) // 2
                part[:], longest[1] = (middle, longest[1]), middle
            part[0] += 1
            return part[0] - 1


@dataclass(frozen=True, slots=True)
class LoadedGame:
    record: GameRecord
    positions: int  # positions of the main line, before and after its playable moves
    fault: Note | None  # why the line ends early; None if all of it can be played


def load(path: str, rules: Rules, komi: float | None = None) -> list[LoadedGame]:
    """Read the games of a file, and find how far their main lines can be played.

    A game whose first move cannot be played is left out, with a note in another game.

    Raises:
        ReviewError: the file cannot be read, or no game can be played.
    """
    try:
        records = load_records(path)
    except SgfError as error:
        raise ReviewError(str(error)) from None
    games: list[LoadedGame] = []
    left_out: list[SgfError] = []
    for record in records:
        positions, fault = 0, None
        try:
            for _ in record.replay(rules=rules, override_rules=record.rules is None, komi=komi):
                positions += 1
        except SgfError as error:
            fault = error.note.extended("reviewed up to there")
            if positions < 2:
                left_out.append(error)
                continue
        games.append(LoadedGame(record, positions, fault))
    if not games:
        raise ReviewError(str(left_out[0]))
    games[0].record.notes += [error.note.extended("this game is left out") for error in left_out]
    return games


def are_mirrored(game: GoGame, one: int, other: int) -> bool:
    """Whether a symmetry of the board, with its stones and no simple ko, maps one move to another."""
    if PASS in (one, other) or one == other or int(game.position["simple_ko"]) != NO_POINT:
        return False
    colors = {point: color for color, point in game.stones()}
    return any(
        image[one] == other and all(colors.get(image[point]) == color for point, color in colors.items())
        for image in board_symmetries(game.size)
    )


# -- the annotated record ------------------------------------------------------------------------------------------


def annotate(record: GameRecord, review: Review) -> None:
    """Write a review into the main line of its record; an earlier review is replaced.

    Each node gets a comment, V (Black's lead) and Sabaki's properties. A mistake gets DO or BM, and the better line as
    a variation, unless the move is in the root.
    """
    nodes = list(record.line())
    for node in record.nodes():
        _clean(node)
    _set_values(record.root, review.opinions[0])
    _add_comment(record.root, f"reviewed by {review.engine}")
    komi = review.info.get("komi")
    if komi is not None and record.komi is not None and komi != record.komi:
        _add_comment(record.root, f"reviewed with komi {komi:g}")
    reviewed = iter(review.moves)
    for parent, node in zip((None, *nodes[:-1]), nodes, strict=True):
        if node.move is None:
            continue
        move = next(reviewed, None)
        if move is None:
            _add_comment(node, "this move cannot be played: the review ends here")
            break
        _add_comment(node, describe(move, record.size))
        _set_values(node, move.after)
        if move.winrate_loss >= MISTAKE:
            if parent is not None:
                _add_variation(parent, move, record.size)
            if not any(name in node.other for name in VERDICTS):
                bad = move.winrate_loss >= BLUNDER
                node.other["BM" if bad else "DO"] = ["1" if bad else ""]


def _add_comment(node: Node, text: str) -> None:
    node.comment = "\n".join(filter(None, (node.comment, MARK + text)))


def _clean(node: Node) -> None:
    """Remove the annotations of an earlier review."""
    lines = node.comment.split("\n")
    kept = [line for line in lines if not line.startswith(MARK)]
    if len(kept) < len(lines):
        for name in ("V", *SABAKI, "BM", "DO"):
            node.other.pop(name, None)
    node.comment = "\n".join(kept)
    node.children = [child for child in node.children if not child.comment.startswith(f"{MARK}better")]


def _set_values(node: Node, opinion: Opinion) -> None:
    node.other["SBKV"] = [f"{100 * opinion.winrate_for(BLACK):.2f}"]
    score = opinion.score_for(BLACK)
    if score is not None:
        node.other["V"] = node.other["SBKS"] = [f"{score:.2f}"]


def describe(move: ReviewedMove, size: int) -> str:
    """Return a review's comment on a move, on one line."""
    color = move.color
    parts = [f"{format_color(color)} {100 * move.winrate_after:.1f}%"]
    score = move.after.score_for(BLACK)
    if score is not None:
        parts.append(score_text(round(score, 1)))
    if move.is_best:
        parts.append("the best move")
    elif move.best_text:
        parts.append(f"best {move.best_text} {100 * move.before.winrate_for(color):.1f}%: {' '.join(move.pv_text)}")
        loss = f"loss {100 * move.winrate_loss:.1f}%"
        parts.append(loss if move.score_loss is None else f"{loss}, {move.score_loss:.1f} points")
    return "; ".join(parts) + f" ({move.after.visits} visits)"


def _add_variation(parent: Node, move: ReviewedMove, size: int) -> None:
    """Add the better line beside the played move."""
    color, node = move.color, parent
    for point in move.before.pv[:PV_MOVES]:
        text = f"{MARK}better, {format_color(color)} {100 * move.before.winrate:.1f}%" if node is parent else ""
        node = node.add(color, point, text)
        color = opponent(color)
