"""Reviews games of Go: searches every position of a record, and annotates the record."""

import itertools
import math
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from yomi.engine.color import BLACK, WHITE
from yomi.engine.default_network import network_file
from yomi.engine.go.descriptor import GAME
from yomi.engine.go.game import GoGame
from yomi.engine.go.players.analyst import make_analysts
from yomi.engine.go.players.player import GoPlayer, board_symmetries
from yomi.engine.go.points import SetupError
from yomi.engine.go.record_files import load_board, load_records
from yomi.engine.go.reviewed_record import PV_MOVES, annotate
from yomi.engine.go.rules import GUESS, Rules
from yomi.engine.go.scoring import final_score, removed_stones
from yomi.engine.go.sgf import GameRecord, SgfError
from yomi.engine.options import Options
from yomi.engine.players.request import Request
from yomi.engine.records import Note
from yomi.engine.reviews.review import (
    LETTERS,
    Opinion,
    Review,
    ReviewError,
    candidates_of,
    ownership_letters,
    reviewed_moves,
    with_answers,
    with_noise,
)
from yomi.engine.reviews.scans import Add, Judgement, Reviewer, Scan
from yomi.errors import reraised
from yomi.native.go.board import NO_POINT, PASS

PLAIN_RULES = "chinese"  # which the analysts load before the first record


@dataclass(slots=True, kw_only=True)
class GoReview(Review):
    record: GameRecord
    games: Sequence[GoGame]  # before each move, and after the last one

    def files(self) -> dict[str, bytes]:
        annotate(self.record, self)
        with reraised(SgfError, ReviewError):
            return {".sgf": self.record.to_sgf().encode("utf-8")}

    def board(self, turn: int) -> str:
        return str(self.games[turn])

    def parse(self, turn: int, text: str) -> int:
        game = self.games[turn]
        move = game.board.parse_vertex(text)
        if not game.is_legal(game.side_to_move, move):
            raise ValueError(f"{text} is illegal here, expected a legal move such as D4")
        return move


def open_reviewer(options: Options, path: Path) -> "GoReviewer":
    """Return a reviewer for the only board size of the network, or if it has several, for the record's.

    Raises:
        LoadingError: the analysts cannot be made.
        ReviewError: the record cannot be read.
    """
    with reraised((SgfError, SetupError), ReviewError):
        size, board = only_size(network_file(options, GAME.name)), load_board(path)
        options.size, options.height = (size, None) if size else (board.width, board.height)
    # Seconds are those of the whole machine.
    plain = options.with_values({"rules": PLAIN_RULES}) if options.rules == GUESS else options
    return GoReviewer(make_analysts(plain, None if options.seconds is None else 1, prompt=False), options)


def only_size(net: str | None) -> int:
    """Return the only board size of a network, or 0 if it takes all sizes or cannot be read."""
    from yomi.nets.metadata import METADATA_KEY, NetworkInfo
    from yomi.nets.onnx_file import read_onnx_header

    try:
        header = None if net is None else read_onnx_header(Path(net))
    except OSError:  # loading it reports the error
        return 0
    if header is None or METADATA_KEY not in header.metadata:
        return 0
    return NetworkInfo.from_props(header.metadata).board_size


@dataclass(slots=True)
class LoadedGame:
    """A record, and the part of its main line that can be reviewed. Implements yomi.engine.reviews.scans.LoadedGame."""

    record: GameRecord
    rules: Rules | None  # for a record without rules; None: they are guessed
    komi: float | None  # in place of the record's
    positions: int = 0  # of the main line, before and after its playable moves
    fault: Note | None = None  # why the line ends early; None if all of it can be played

    def replay(self) -> Iterator[GoGame]:
        return self.record.replay(rules=self.rules, override_rules=self.record.rules is None, komi=self.komi)

    @property
    def line(self) -> list[int]:
        return [move for _, move in self._played()]

    def _played(self) -> list[tuple[int, int]]:
        moves = (node.move for node in self.record.line() if node.move is not None)
        return list(itertools.islice(moves, self.positions - 1))

    def games(self) -> list[GoGame]:
        """Return the game before each move, and after the last one."""
        games = [game.copy() for game in itertools.islice(self.replay(), self.positions)]
        for game, (color, _) in zip(games[:-1], self._played(), strict=True):
            game.turn_to(color)  # a side may have played twice
        return games


class GoReviewer(Reviewer[LoadedGame]):
    """Reviews games with several analysts, which search different parts of a game at the same time."""

    def __init__(self, analysts: Sequence[GoPlayer], options: Options) -> None:
        super().__init__(options)
        self.analysts = analysts
        # For records without rules; None to guess them.
        self._rules = None if options.rules == GUESS else Rules.parse(options.rules)

    def read(self, path: str) -> list[LoadedGame]:
        return load(path, self._rules, self.options.komi)

    def try_search(self, loaded: LoadedGame, options: Options) -> int:
        """Search a game's middle position with all analysts at the same time. Return the total number of visits."""
        game = next(itertools.islice(loaded.replay(), loaded.positions // 2, None))

        def search(analyst: GoPlayer) -> int:
            found = analyst.decide(Request(game.copy(), options)).report.visits
            analyst.clear()
            return found

        with ThreadPoolExecutor(len(self.analysts)) as pool:
            return sum(pool.map(search, self.analysts))

    def annotate(self, loaded: LoadedGame, opinions: list[Opinion]) -> GoReview:
        record, board, games = loaded.record, loaded.record.board, loaded.games()
        size = board.side if board.is_square else str(board)
        # A lead ends with the last stone.
        score = replace(GAME.score, mean_limit=board.area + abs(games[-1].komi))
        notes = list(record.notes)
        if record.rules_text and self._rules is not None:
            notes.append(Note(f"unknown rules '{record.rules_text}': reviewed under {self._rules}"))
        if loaded.fault:
            notes.append(loaded.fault)
        moves = reviewed_moves(
            loaded.line,
            opinions,
            board.vertex,
            PV_MOVES,
            lambda index, move, best: are_mirrored(games[index], move, best),
        )
        moves = with_noise(with_answers(moves), score.mean_limit)
        if games[-1].is_over and moves:
            # The rules count the last position, perhaps with dead stones: no search gave its score.
            moves[-1] = replace(moves[-1], noise=math.inf)
        return GoReview(
            game=GAME.name,
            score=score,
            engine=self.analysts[0].description,
            moves=moves,
            opinions=opinions,
            names={BLACK: record.black, WHITE: record.white},
            result=record.result,
            date=record.date,
            info={"size": size, "rules": str(games[-1].rules), "komi": games[-1].komi},
            notes=notes,
            first_position={
                "width": board.width,
                "height": board.height,
                "stones": [(LETTERS[color], board.vertex(point)) for color, point in games[0].stones()],
            },
            phases=phases(board.area),
            format_move=board.vertex,
            record=record,
            games=games,
        )

    def close(self) -> None:
        for analyst in self.analysts:
            analyst.close()

    def search(self, loaded: LoadedGame, scan: Scan, add: Add) -> None:
        """Search some positions of a game. An error of an analyst, or KeyboardInterrupt, stops all analysts."""
        games = loaded.games()
        parts = Parts(len(scan.positions), len(self.analysts))
        stopped, adding = threading.Event(), threading.Lock()

        def go_through(number: int) -> None:
            # Forwards: the tree below the played move is kept, which saves 40% of the evaluations.
            while not stopped.is_set() and (place := parts.take(number)) is not None:
                index = scan.positions[place]
                analyst, is_last = self.analysts[number], index + 1 == len(games)
                judgement = self._evaluate(analyst, games[index], scan.options, stopped, is_last=is_last)
                with adding:
                    if stopped.is_set():
                        return  # the search was cut short
                    add(index, judgement)

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

    def _evaluate(
        self, player: GoPlayer, game: GoGame, options: Options, stopped: threading.Event, *, is_last: bool
    ) -> Judgement:
        """Search a position. Return the opinion on it and the number of evaluations."""
        color = game.side_to_move
        if is_last and game.is_over:  # after two passes a record may go on: then the position is searched
            if game.is_no_result:
                return Opinion(color, 0.5, 0.0), 0
            score = final_score(game, removed_stones(game, lambda: player.final_ownership(game)))
            score = score if color == BLACK else -score
            return Opinion(color, 0.5 if score == 0 else float(score > 0), score), 0
        request = Request(game, options, hide_history=options.ignore_pre_root_history)
        if stopped.is_set():
            request.stop()
        report = player.decide(request).report
        if not report.moves:  # a single visit
            return Opinion(color, report.winrate, report.score_lead, visits=report.visits), report.evaluations
        best = report.moves[0]
        opinion = Opinion(
            color,
            best.winrate,
            best.score_lead,
            best.move,
            best.pv,
            visits=report.visits,
            candidates=candidates_of(report, lambda move: round(move.score_lead, 2)),
            ownership=ownership_letters(None if report.ownership is None else report.ownership * (3 - 2 * color)),
        )
        return opinion, report.evaluations


def phases(area: int) -> tuple[int, int]:
    """Return the numbers of the first moves of middle game and endgame: 50 and 150 on 19x19, less on small boards."""
    return round(50 * area / 361), round(150 * area / 361)


class Parts:
    """The part of a game that each analyst still has to search. An idle analyst takes half of the largest part."""

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


def load(path: str, rules: Rules | None, komi: float | None = None) -> list[LoadedGame]:
    """Read the games of a file, and find how far their main lines can be played.

    A game whose first move cannot be played is left out, with a note in another game.

    Raises:
        ReviewError: the file cannot be read, or no game can be played.
    """
    with reraised(SgfError, ReviewError):
        records = load_records(path)
    games: list[LoadedGame] = []
    left_out: list[SgfError] = []
    for record in records:
        game, faults = LoadedGame(record, rules, komi), list(record.notes)  # replaying adds notes of assumed rules
        try:
            for _ in game.replay():
                game.positions += 1
        except SgfError as error:
            game.fault = error.note.extended("reviewed up to there")
            if game.positions < 2:
                left_out.append(error)
                continue
        if game.positions < 2 and faults and not record.root.setup:
            left_out.append(SgfError(f"no move was understood: {faults[0]}"))
            continue
        games.append(game)
    if not games:
        raise ReviewError(str(left_out[0]))
    games[0].record.notes += [error.note.extended("this game is left out") for error in left_out]
    return games


def are_mirrored(game: GoGame, one: int, other: int) -> bool:
    """Return whether a symmetry of the board, with its stones, maps one move to another. False during a simple ko."""
    if PASS in (one, other) or one == other or int(game.position["simple_ko"]) != NO_POINT:
        return False
    colors = {point: color for color, point in game.stones()}
    return any(
        image[one] == other and all(colors.get(image[point]) == color for point, color in colors.items())
        for image in board_symmetries(game.board)
    )
