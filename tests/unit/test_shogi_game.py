"""A game: playing, undo, its end, long games, the diagrams. cshogi is the oracle."""

import cshogi
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.shogi_boards import placement_of, random_moves, walk
from yomi.engine import screen
from yomi.engine.color import BLACK, DRAW, WHITE
from yomi.engine.play import MATE, MAX_MOVES, PERPETUAL_CHECK, REPETITION, TRY, Ended
from yomi.engine.shogi.diagram import draw, japanese_hand
from yomi.engine.shogi.game import SETTINGS, ShogiGame, csa_ending, describe
from yomi.engine.shogi.notation import parse_usi
from yomi.engine.shogi.placement import STARTPOS, SfenError
from yomi.errors import IllegalMove
from yomi.settings import OptionError

PACE = "5i5h 5a5b 5h5i 5b5a"
"""Four moves after which everything is as before."""


def play_all(game: ShogiGame, moves: str) -> ShogiGame:
    for word in moves.split():
        game.play(parse_usi(word))
    return game


def assert_equal_games(one: ShogiGame, other: ShogiGame) -> None:
    """Two games are equal in every bit of the position and in the history that belongs to it."""
    assert one.moves == other.moves
    assert one.search_key == other.search_key
    for name in one.position.dtype.names:
        np.testing.assert_array_equal(one.position[name], other.position[name], err_msg=name)
    length = int(one.position["history_length"])
    np.testing.assert_array_equal(one.history[:length], other.history[:length])


def test_random_games_are_those_of_cshogi() -> None:
    for seed in range(6):
        game = ShogiGame()
        boards = walk(seed, 200)
        for number, board in enumerate(boards):
            if number:
                game.play(cshogi.move16(board.peek()))
            assert game.sfen() == board.sfen()
            assert game.placement == placement_of(board)
            legal = sorted(game.legal_moves())
            assert legal == sorted(cshogi.move16(move) for move in board.legal_moves)
            assert game.in_check == board.is_check()
            if number == 150 and seed < 2:
                assert [move for move in range(1 << 15) if game.is_legal(move)] == legal
        assert game.ply == number
        assert len(game.moves) == number


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 50), st.lists(st.booleans(), max_size=40))
def test_undo_equals_replay_from_scratch(seed: int, undos: list[bool]) -> None:
    moves = random_moves(seed, 40)
    game = ShogiGame()
    for undo in undos:
        if undo and game.moves:
            game.undo()
        elif len(game.moves) < len(moves):
            game.play(parse_usi(moves[len(game.moves)]))
    assert_equal_games(game, play_all(ShogiGame(), " ".join(moves[: len(game.moves)])))


def test_copies_are_independent() -> None:
    game = play_all(ShogiGame(), "7g7f 3c3d")
    twin = game.copy()
    assert_equal_games(game, twin)
    game.play(parse_usi("8h2b+"))
    assert twin.sfen().endswith("b - 3")
    twin.undo()
    twin.undo()
    assert twin.sfen() == STARTPOS
    assert len(game.moves) == 3


def test_the_position_stays_the_same_object() -> None:
    game = ShogiGame()
    position, history = game.position, game.history
    play_all(game, "7g7f 3c3d")
    game.undo()
    game.set_rules(entering_king="24", max_moves=300)
    assert game.position is position
    assert game.history is history


def test_rules_and_the_search_s_settings_outlive_undo() -> None:
    game = play_all(ShogiGame(entering_king="none"), "7g7f 3c3d")
    game.set_rules(entering_king="24", max_moves=256)
    game.position["mate_depth"], game.position["draw_value"] = 3, (0.25, -0.5)
    game.position["form"] = game.position["all_moves"] = 1
    game.undo()
    assert [game.position[name].tolist() for name in SETTINGS] == [256, 1, 3, 1, [0.25, -0.5], 1]
    assert game.search_key == (STARTPOS, "24", 256)


@pytest.mark.parametrize(
    ("move", "words"),
    [
        ("7g7e", "illegal move 7g7e: the piece on 7g does not move there"),
        ("3c3d", "illegal move 3c3d: Black has no piece on 3c"),
        ("P*5e", r"illegal move P\*5e: Black has no pawn in hand"),
        ("P*1b", "a pawn may not be dropped to mate"),
    ],
)
def test_an_illegal_move_says_why_and_changes_nothing(move: str, words: str) -> None:
    sfen = "7nk/9/7G1/9/9/9/9/9/4K4 b GP 1" if move == "P*1b" else STARTPOS
    game, before = ShogiGame(sfen), ShogiGame(sfen)
    with pytest.raises(IllegalMove, match=words):
        game.play(parse_usi(move))
    for number in (0, 127, 1 << 15, -1):
        with pytest.raises(IllegalMove, match=f"illegal move {number}"):
            game.play(number)
    with pytest.raises(IllegalMove, match="cannot undo"):
        game.undo()
    assert_equal_games(game, before)


def test_bad_setups() -> None:
    with pytest.raises(SfenError):
        ShogiGame("nonsense")
    with pytest.raises(OptionError, match="expected none, 24, 24h, 27, 27h"):
        ShogiGame(entering_king="25")
    with pytest.raises(OptionError, match="limit of -1 moves"):
        ShogiGame(max_moves=-1)


def test_a_game_goes_on_from_the_one_before() -> None:
    game = ShogiGame(max_moves=9).continued("startpos", ["7g7f", "3c3d"])
    longer = game.continued("startpos", ["7g7f", "3c3d", "2g2f"])
    assert_equal_games(longer, play_all(ShogiGame(max_moves=9), "7g7f 3c3d 2g2f"))
    for sfen, moves, told in (
        ("startpos", ["7g7e"], "move 1: illegal move 7g7e"),
        (STARTPOS, ["7g7f", "3c3d", "huh"], "move 3: "),
        ("nonsense b - 1", [], "expected 9"),
    ):
        with pytest.raises(ValueError, match=told):
            game.continued(sfen, moves)
    assert len(game.moves) == 2
    assert_equal_games(longer.continued("startpos", ["2g2f"]), play_all(ShogiGame(max_moves=9), "2g2f"))
    other = longer.continued("4k4/9/9/9/9/9/9/9/4K4 b G 1", [])
    assert (other.moves, other.max_moves) == ([], 9)


def test_mate() -> None:
    game = ShogiGame("4k4/9/4P4/9/9/9/9/9/4K4 b G 1")
    assert game.outcome() is None
    play_all(game, "G*5b")
    outcome = game.outcome()
    assert outcome == Ended(BLACK, MATE)
    assert describe(outcome) == "Black wins: White is mated"
    game.undo()
    assert not game.is_over


def test_a_repetition_is_a_draw_the_fourth_time() -> None:
    game = ShogiGame()
    for _ in range(2):
        play_all(game, PACE)
        assert game.outcome() is None
    play_all(game, "5i5h 5a5b 5h5i")
    assert game.repetitions == 3
    game.play(parse_usi("5b5a"))
    assert game.repetitions == 4
    assert game.outcome() == Ended(DRAW, REPETITION)
    game.undo()
    assert game.outcome() is None
    game = play_all(ShogiGame(), f"7g7f 3c3d 8h2b+ 3a2b {PACE} {PACE}")
    assert game.repetitions == 3, "the first position with these hands"


@pytest.mark.parametrize("turned", [False, True])
def test_perpetual_check_loses(turned: bool) -> None:
    sfen, moves = "4k4/9/4+R4/9/9/9/9/9/K8 w - 1", "5a4a 5c4c 4a5a 4c5c"
    if turned:
        sfen, moves = "8k/9/9/9/9/9/4+r4/9/4K4 b - 1", "5i6i 5g6g 6i5i 6g5g"
    game = ShogiGame(sfen)
    for _ in range(3):
        assert game.outcome() is None
        play_all(game, moves)
    guilty = WHITE if turned else BLACK
    outcome = game.outcome()
    assert outcome == Ended(3 - guilty, PERPETUAL_CHECK)
    assert "gave perpetual check" in describe(outcome)
    assert csa_ending(outcome, game) == ("-ILLEGAL_ACTION" if turned else "+ILLEGAL_ACTION")
    if not turned:  # a quiet move in the cycle makes it a draw
        game = play_all(ShogiGame(sfen), "5a4a 5c4c 4a5a 4c3c 5a4a 3c4c 4a5a 4c5c " * 3)
        assert game.outcome() == Ended(DRAW, REPETITION)


def test_the_limit_of_moves() -> None:
    game = play_all(ShogiGame(max_moves=2), "7g7f")
    assert game.outcome() is None
    outcome = play_all(game, "3c3d").outcome()
    assert outcome == Ended(DRAW, MAX_MOVES)
    assert describe(outcome) == "draw: the limit of moves is reached"
    later = ShogiGame(STARTPOS[:-1] + "320", max_moves=320)
    play_all(later, "7g7f")
    assert later.outcome() == Ended(DRAW, MAX_MOVES)
    mate = ShogiGame("4k4/9/4P4/9/9/9/9/9/4K4 b G 1", max_moves=1)
    assert play_all(mate, "G*5b").outcome() == Ended(BLACK, MATE)


def test_declarations_by_the_names_of_rules() -> None:
    sfen = "KGGGGSSSS/9/NNNN5/9/9/9/9/9/4k4 b {}P 1"
    assert ShogiGame(sfen.format("2R2B8")).can_declare
    assert not ShogiGame(sfen.format("2R2B8"), entering_king="none").can_declare
    for pawns, wins, draws in ((9, True, False), (8, False, True), (2, False, True), (1, False, False)):
        game = ShogiGame(sfen.format(f"RB{pawns}"), entering_king="24")
        assert (game.can_declare, game.can_declare_draw) == (wins, draws)
        game.set_rules(entering_king="27")
        assert not game.can_declare_draw


@pytest.mark.parametrize(("rule", "pawns"), [("27", 7), ("24", 11)])
def test_declaration_in_a_handicap_game(rule: str, pawns: int) -> None:
    """White has given rook and bishop, 10 points of the 27 (or 31) that it would need: 17 (21) are enough."""
    sfen = "9/9/9/9/4K4/9/9/gsgs+p+p+p2/k+p+p+p5 w RB2G2S4N4L{}P{}p 1"
    for count in (pawns - 1, pawns):
        game = ShogiGame(sfen.format(12 - count, count).replace("L1P", "LP"), entering_king=f"{rule}h")
        assert game.can_declare == (count == pawns)
        game.set_rules(entering_king=rule)
        assert not game.can_declare


def test_a_try() -> None:
    game = ShogiGame("9/4K4/9/9/9/9/9/9/k8 b - 1", entering_king="try")
    assert game.can_declare
    assert game.try_move == parse_usi("5b5a")
    assert game.outcome() is None
    game.play(parse_usi("5b5a"))
    ended = game.outcome()
    assert ended == Ended(BLACK, TRY)
    assert (csa_ending(ended, game), describe(ended)) == (
        "TORYO", "Black wins: the king has reached the start of the other king"
    )  # fmt: skip
    game.undo()
    game.set_rules(entering_king="27")
    assert (game.can_declare, game.try_move) == (False, None)


def test_a_long_game_keeps_the_later_part_of_its_history() -> None:
    game = ShogiGame("4k4/9/9/9/9/9/9/9/R3K3R b - 1")
    rng = np.random.default_rng(1)
    lengths = []
    for _ in range(1500):
        legal = game.legal_moves()
        game.play(legal[int(rng.integers(len(legal)))])
        lengths.append(int(game.position["history_length"]))
        if game.outcome() is not None and game.outcome().ending == MATE:  # type: ignore[union-attr]
            game.undo()
    assert max(lengths) <= 2 * 1024
    assert len(game.moves) > 1100
    # the repetition that began long ago is still found, and undo leads all the way back
    start = len(game.moves)
    positions = [game.sfen()]
    for _ in range(60):
        legal = game.legal_moves()
        game.play(legal[int(rng.integers(len(legal)))])
        positions.append(game.sfen())
    while len(game.moves) > start:
        assert game.sfen() == positions.pop()
        game.undo()
    for _ in range(start - 700):
        game.undo()
    fresh = ShogiGame("4k4/9/9/9/9/9/9/9/R3K3R b - 1")
    for _, move in game.moves:
        fresh.play(move)
    assert_equal_games(game, fresh)


def test_diagrams() -> None:
    game = play_all(ShogiGame(), "7g7f 3c3d 8h2b+")
    assert str(game) == (
        "White's hand: -\n"
        "   9  8  7  6  5  4  3  2  1\n"
        "   l  n  s  g  k  g  s  n  l a\n"
        "   .  r  .  .  .  .  .(+B) . b\n"
        "   p  p  p  p  p  p  .  p  p c\n"
        "   .  .  .  .  .  .  p  .  . d\n"
        "   .  .  .  .  .  .  .  .  . e\n"
        "   .  .  P  .  .  .  .  .  . f\n"
        "   P  P  .  P  P  P  P  P  P g\n"
        "   .  .  .  .  .  .  .  R  . h\n"
        "   L  N  S  G  K  G  S  N  L i\n"
        "Black's hand: B\n"
        "White to move, move 4, last move 8h2b+"
    )
    text = draw(game, japanese=True)
    assert "|v香v桂v銀v金v玉v金v銀v桂v香|一\n| ・v飛 ・ ・ ・ ・ ・*馬 ・|二" in text
    assert text.endswith("手数＝3　後手番　▲２二角成まで")
    assert "\x1b" not in text
    colored = draw(game, japanese=True, colored=True)
    assert f"{screen.WOOD}{screen.WHITE_INK}v香" in colored
    assert f"{screen.WOOD}{screen.BLACK_INK} 香" in colored
    assert f"{screen.LAST}{screen.PROMOTED_INK} 馬{screen.WOOD}" in colored
    assert f"{screen.LAST}{screen.PROMOTED_INK} +B{screen.WOOD}" in draw(game, colored=True)


def test_hands_in_japanese() -> None:
    assert japanese_hand((18, 0, 1, 0, 0, 2, 1)) == "飛　角二　桂　歩十八"
    assert japanese_hand((10, 0, 0, 0, 0, 0, 0)) == "歩十"


def test_plies_never_wrap() -> None:
    """The kernels count plies in 16 bits, also in a search below the position."""
    game = ShogiGame(STARTPOS[:-1] + "60000")
    line = ["7i6h", "3a4b", "6h7i", "4b3a"] * 1000
    game = game.continued(game.initial_sfen, line)
    assert (game.ply, game.placement.number) == (63999, 64000)
    game.play(parse_usi("7i6h"))
    with pytest.raises(IllegalMove, match="move 64001: expected at most 64000 moves in a game"):
        game.play(parse_usi("3a4b"))
    with pytest.raises(ValueError, match="10004 moves: expected at most 10000"):
        ShogiGame().continued("startpos", line * 2 + line[:2004])
