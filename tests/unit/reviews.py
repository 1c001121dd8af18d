"""Records, opinions and reviewers for tests of reviews."""

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fakes.player import FakePlayer
from tests.fakes.shogi_player import FakeShogiPlayer
from yomi.engine.color import BLACK, WHITE
from yomi.engine.default_network import alpha_beta_file
from yomi.engine.game import Game
from yomi.engine.go.game import GoGame
from yomi.engine.go.review import GoReview, GoReviewer
from yomi.engine.options import Options
from yomi.engine.players.request import Decision, Request
from yomi.engine.reviews.review import Candidate, Opinion, ReviewedMove, reviewed_moves
from yomi.engine.reviews.scans import Progress, Reviewer
from yomi.engine.shogi.review import ShogiReviewer

SGF = "(;GM[1]FF[4]SZ[5]KM[6.5]RU[Chinese]PB[Ann]PW[Bob]EV[Cup];B[cc]C[center];W[bb](;B[dd])(;B[ee]C[mine]))"
CSA = "V2.2\nN+Ann\nN-Bob\nPI\n+\n+7776FU\n'** 42 -3334FU\n-3334FU\n+8822UM\n%TORYO\n"


class SteadyPlayer(FakePlayer):
    """A fake player that takes Black for 1.5 points ahead."""

    def decide(self, request: Request[GoGame]) -> Decision:
        found = super().decide(request)
        shift = 0.0 if request.game.side_to_move == BLACK else -3.0
        moves = tuple(dataclasses.replace(move, score_lead=move.score_lead + shift) for move in found.report.moves)
        return dataclasses.replace(found, report=dataclasses.replace(found.report, moves=moves))


class ShogiPlayerWithSearch(FakeShogiPlayer):
    """A fake player that counts evaluations."""

    @property
    def search(self) -> SimpleNamespace:
        unit = "visits" if alpha_beta_file(self.options, "shogi") is None else "nodes"
        return SimpleNamespace(evaluations=16, unit=unit)


class Ticks(Progress):
    count = 0

    def tick(self) -> None:
        self.count += 1


def opinion(color: int, winrate: float, score: float | None = None, best: int | None = None) -> Opinion:
    return Opinion(color, winrate, score, best)


def reviewed(before: Opinion, after: Opinion, move: int = 1) -> ReviewedMove:
    return ReviewedMove(1, before.color, move, "a", "b", ("b", "c"), before, after)


def go_review(text: str, tmp_path: Path) -> GoReview:
    path = tmp_path / "game.sgf"
    path.write_text(text)
    reviewer = GoReviewer([SteadyPlayer(), SteadyPlayer()], Options(size=5, visits=16))
    (record,) = reviewer.read(str(path))
    ticks = Ticks()
    annotated = reviewer.review(record, ticks)
    assert ticks.count == record.positions
    return annotated


def shogi_reviewer() -> ShogiReviewer:
    return ShogiReviewer(ShogiPlayerWithSearch(Options.for_game("shogi")))  # type: ignore[arg-type]


def shogi_review(path: Path, content: str | bytes = b"") -> Any:
    """Return the review of the first game of a file, which gets the content, if any."""
    if content:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    reviewer = shogi_reviewer()
    loaded = reviewer.read(str(path))[0]
    return reviewer.review(loaded, Progress())


def judged_game(tmp_path: Path) -> GoReview:
    """Return a game whose second move is a mistake; White had two good moves, and Black did not punish it."""
    annotated = go_review("(;GM[1]SZ[5]KM[6.5];B[cc];W[bb];B[dd]TE[2];W[aa])", tmp_path)
    board, review = annotated.record.board, annotated
    c4, d4, b4, e5, a5 = (board.parse_vertex(text) for text in ("C4", "D4", "B4", "E5", "A5"))
    candidates = (
        Candidate(c4, 60, 0.4, 0.5, 0.0, (c4, d4)),
        Candidate(d4, 20, 0.2, 0.48, -0.5, (d4,)),
        Candidate(e5, 20, 0.1, 0.2, -9.0, (e5,)),
    )
    before = Opinion(WHITE, 0.5, 0.0, c4, (c4, d4), visits=100, candidates=candidates, ownership="A]z" + 22 * "]")
    answer = (Candidate(e5, 90, 0.02, 0.7, 4.0, (e5, a5)), Candidate(a5, 9, 0.5, 0.4, -3.0, (a5,)))
    after = Opinion(BLACK, 0.7, 4.0, e5, (e5, a5), visits=99, candidates=answer)
    last = Opinion(WHITE, 0.5, 0.0, best=a5, pv=(a5,))
    review.opinions[1:4] = [before, after, last]
    moves = [recorded.move for recorded in review.moves]
    review.moves[:] = reviewed_moves(moves, review.opinions, board.vertex, 12)
    assert b4 == moves[1]
    return annotated


# -- files and folders ---------------------------------------------------------------------------------------------


def fake_reviewers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Game, "prepare", lambda *_: None)
    monkeypatch.setattr(
        "yomi.engine.go.review.make_analysts", lambda options, count, prompt: [SteadyPlayer(), SteadyPlayer()]
    )
    monkeypatch.setattr("yomi.engine.shogi.review.ShogiPlayer", ShogiPlayerWithSearch)
    # On a busy machine a measured speed would call for a first pass.
    monkeypatch.setattr(Reviewer, "visits_per_second", lambda *_: 1e6)


def make_folder(folder: Path) -> Path:
    (folder / "sub").mkdir(parents=True)
    (folder / "a.sgf").write_text(SGF)
    (folder / "b.sgf").write_text("(;SZ[25];B[cc])")
    (folder / "sub" / "two.csa").write_text(CSA + "/\n" + CSA)
    (folder / "sub" / "two-1.usi").write_text("startpos moves 7g7f 3c3d\n")
    (folder / "a.yomi.sgf").write_text("broken, but written by a review")
    (folder / "notes.doc").write_text("no record")
    return folder
