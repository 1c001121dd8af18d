"""What ends a game of shogi inside a search, and what it is worth to the side to move."""

from tests.looping import looped
from tests.unit.trees import check_tree
from yomi.engine.evaluators.kernel_evaluators import UniformEvaluator
from yomi.engine.evaluators.queue import InlineQueue
from yomi.engine.search.search import Search
from yomi.engine.search.types import Limits, SearchSettings
from yomi.engine.shogi.game import ShogiGame
from yomi.engine.shogi.notation import parse_usi
from yomi.native.game import ONGOING, OVER
from yomi.native.shogi import position as layout
from yomi.native.shogi.spec import UNPROVEN_WIN, outcome, shogi_spec
from yomi.native.tree.arrays import EXPANDED
from yomi.native.tree.report import find_child

BARE_KINGS = "4k4/9/9/9/9/9/9/9/4K4 b - 1"
MATED = "4k4/4G4/4P4/9/9/9/9/9/4K4 w - 100"
CYCLE = "5i5h 5a5b 5h5i 5b5a"
ENTERED = "K2R1B3/+P+P+P+P+P+P+P+P1/9/9/9/9/9/9/8k b RB6P {}"
TRYING = "9/4K4/9/9/9/9/9/9/k8 b - 1"
PAWNS, TAKEN = "4k4/9/9/9/9/7R1/9/9/4K4 w 2p 1", "P*2e 2f2e 5a4a 2e2f 4a4b 5i5h 4b5a 5h5i"
CHECKED, CHECKS = "k8/9/9/1R7/9/9/9/9/K8 b - 1", "8d9d 9a8a 9d8d 8a9a"
MATE_IN_1, MATE_IN_3 = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1", "7nl/5+P1k1/6ppp/9/9/9/9/9/4K4 b 2G 1"
TRY = {"entering_king": layout.ENTERING_KING_TRY}
GOES_ON, WON, LOST = (ONGOING, 0.0), (OVER, 1.0), (OVER, -1.0)
ALMOST_WON, ALMOST_LOST = (OVER, UNPROVEN_WIN), (OVER, -UNPROVEN_WIN)
# Black's draws are worth 0.25, White's -0.25.
DRAWN, DRAWN_FOR_WHITE = (OVER, 0.25), (OVER, -0.25)


@looped(
    ("sfen", "moves", "line", "rules", "expected"),
    [
        (BARE_KINGS, "", "", {}, GOES_ON),
        # A mated side has lost, even on the last move.
        (MATED, "", "", {}, LOST),
        (MATED, "", "", {"max_moves": 99}, LOST),
        ("k8/9/1GP6/9/9/9/9/9/4K4 w - 1", "", "", {}, GOES_ON),
        ("k8/2G6/1G7/9/9/9/9/9/4K4 w - 1", "", "", {}, LOST),  # no move
        # Draws have the record's value, but never prove anything.
        (BARE_KINGS, "", f"{CYCLE} 5i5h", {}, DRAWN_FOR_WHITE),
        (BARE_KINGS, "5i5h", "", {"max_moves": 1}, DRAWN_FOR_WHITE),
        (BARE_KINGS, "5i5h", "", {"max_moves": 2}, GOES_ON),
        (BARE_KINGS, "", f"{CYCLE} 5i5h", {"draw_value": (1.0, -1.0)}, ALMOST_LOST),
        (BARE_KINGS, "", f"{CYCLE} 5i5h", {"draw_value": (-1.0, 1.0)}, ALMOST_WON),
        # Positions of the game, the root included, count only with the fourth occurrence.
        (BARE_KINGS, "", CYCLE, {}, GOES_ON),
        (BARE_KINGS, f"{CYCLE} 5i5h", "5a5b", {}, GOES_ON),
        (BARE_KINGS, f"{CYCLE} 5i5h", "5a5b 5h5i 5b5a 5i5h", {}, GOES_ON),
        (BARE_KINGS, f"{CYCLE} 5i5h", "5a5b 5h5i 5b5a 5i5h 5a5b", {}, DRAWN),
        (BARE_KINGS, f"{CYCLE} {CYCLE} 5i5h 5a5b 5h5i", "", {}, GOES_ON),
        (BARE_KINGS, f"{CYCLE} {CYCLE} 5i5h 5a5b 5h5i", "5b5a", {}, DRAWN),
        (BARE_KINGS, f"{CYCLE} {CYCLE} 5i5h 5a5b 5h5i", "5b6b", {}, GOES_ON),
        # More pieces in hand end a line after the root.
        (PAWNS, TAKEN, "", {}, GOES_ON),
        (PAWNS, "", TAKEN, {}, GOES_ON),
        (PAWNS, "", f"{TAKEN} P*2e", {}, ALMOST_WON),
        # A perpetual check is almost a loss.
        (CHECKED, CHECKS, "", {}, GOES_ON),
        (CHECKED, "", f"{CHECKS} 8d9d", {}, ALMOST_WON),
        (CHECKED, "", f"{CHECKS} 8d9d 9a8a", {}, ALMOST_LOST),
        (CHECKED, f"{CHECKS} {CHECKS} 8d9d 9a8a 9d8d", "8a9a", {}, ALMOST_LOST),
        # A declaration, which is too late at the limit of moves.
        (ENTERED.format(1), "", "", {}, WON),
        (ENTERED.format(1), "", "", {"entering_king": 0}, GOES_ON),
        (ENTERED.format(2), "", "", {"max_moves": 2}, WON),
        (ENTERED.format(2), "", "", {"max_moves": 1}, DRAWN),
        # A try, also on the last move; White's king starts on 5a and has not tried there.
        (TRYING, "", "", TRY, WON),
        (TRYING, "", "", {}, GOES_ON),
        (TRYING, "5b5a", "", TRY, LOST),
        (TRYING, "5b5a", "", TRY | {"max_moves": 1}, LOST),
        (TRYING, "5b5a", "", {}, GOES_ON),
        ("9/4K4/3s5/9/9/9/9/9/k8 b - 1", "5b6b", "", TRY, GOES_ON),
        (BARE_KINGS, "5i5h", "", TRY, GOES_ON),
        ("9/9/9/9/9/9/9/3k5/8K w - 1", "6h5i", "", TRY, LOST),
        # Mates that are searched, unless a try may avert the mate.
        (MATE_IN_1, "", "", {}, GOES_ON),
        (MATE_IN_1, "", "", {"mate_depth": 1}, WON),
        (MATE_IN_3, "", "", {"mate_depth": 3}, WON),
        (MATE_IN_3, "", "", {"mate_depth": 3} | TRY, GOES_ON),
    ],
)
def test_outcomes(sfen: str, moves: str, line: str, rules: dict[str, object], expected: tuple[int, float]) -> None:
    """The state and the value at the end of a searched line, after the moves of a game."""
    game = ShogiGame(sfen, entering_king="27")
    game.position["draw_value"] = 0.25, -0.25
    for name, value in rules.items():
        game.position[name] = value
    for move in moves.split():
        game.play(parse_usi(move))
    for move in line.split():
        layout.play(game.position, game.history, parse_usi(move))
    assert outcome(game.position, game.history) == (*expected, 0.0)


def test_a_repetition_is_searched_again_below_a_later_root() -> None:
    """The first root's tree contains the repetition as the end of the game."""
    search = Search(shogi_spec(), InlineQueue(UniformEvaluator()), SearchSettings(workers=1, memory=2**26, graph=False))
    game = ShogiGame(BARE_KINGS)
    search.set_position(game)
    search.run(Limits(playouts=20_000))
    for move in CYCLE.split():
        game.play(parse_usi(move))
    search.set_position(game)
    assert search.root_visits > 1  # the tree was kept
    check_tree(search, pruned=True)
    search.run(Limits(playouts=500))
    assert search.tree.nodes[find_child(search.tree, parse_usi("5i5h"))]["state"] == EXPANDED
    check_tree(search, pruned=True)
