"""The positions whose search is measured: openings, middle games and endgames as the engine's own play reaches."""

from engine.go.game import GoGame
from engine.go.rules import PRESETS
from engine.go.vertex import parse_vertex
from engine.shogi.game import ShogiGame
from engine.shogi.notation import parse_usi

LINES: dict[int, tuple[str, ...]] = {
    9: (
        "",
        "E5 C4 G6 E3 D3 F4 D4",
        "E5 E3 D3 F3 C4 F5 F6 G6 E6 G7 D2 E4 D5 C7 D7",
        "F5 D4 D5 E5 E4 E6 F6 E3 F4 D6 C5 C4 F3 E2 F7 B5 C6 B6 C7 B7 D7",
    ),
    13: (
        "",
        "D4 K10 K4 D10 C8 F10 C11 C10 B10 D11",
        "K10 D4 D10 K4 F3 C6 H3 J6 L8 G4 G3 F4 E3 D3 E4 E5 D2 C3",
    ),
    19: (
        "",
        "Q16 D4 Q3 D16 R5 C14 F3 D6 K4 R14 O17 S16 R17 Q10",
        "Q16 D16 Q4 D4 F17 C14 R10 C6 O3 K3 D10 F3 C17 C16 B16 B17 D17 E16 B15 C18 E17 B14 A17",
        "R16 D4 Q3 D17 D15 E15 D14 F16 E14 C16 C14 H17 C6 F3 C3 D3 C4 C5 B5 D5 B6 B4 B3 D2 B2 R6 R9 P6 O3 R12 P10",
    ),
}
"""Board size -> moves of each position of Go, Black first."""

BISHOP_EXCHANGE = (
    "7g7f 8c8d 2g2f 8d8e 8h7g 3c3d 7i8h 4a3b 6i7h 2b7g+ 8h7g 3a2b 3i3h 7a7b 4g4f 2b3c 3h4g 6c6d 5i6h 7b6c 1g1f 1c1d "
    "9g9f 9c9d 4g5f 6c5d 6h7i 5a4b 3g3f 4b3a 4i5h 6a5b 6g6f 4c4d 7i8h 3a2b"
)
FOURTH_FILE_ROOK = (
    "7g7f 3c3d 2g2f 4c4d 3i4h 8b4b 5i6h 5a6b 6h7h 6b7b 5g5f 7b8b 4i5h 7a7b 9g9f 9c9d 3g3f 3a3b 6g6f 3b4c 5h6g 4a5b "
    "2f2e 2b3c 4h5g 8b7a 4g4f 4b2b 2i3g 5b6b 4f4e 4d4e 2h4h 2b1b 7i6h 4c5d 6i7i 1b4b 1g1f 6c6d 6g7g 8c8d 7f7e 4b4a "
    "8g8f 2c2d 2e2d 3c2d 4h2h P*2c P*2e 2d5a 2h4h 5a3c 7h6i 2c2d 2e2d 3c2d"
)
FOURTH_FILE_ROOK_LATER = (
    f"{FOURTH_FILE_ROOK} 4h2h P*2c P*2e 2d5a 2h4h 3d3e 5f5e 3e3f 5e5d 3f3g+ 4h1h P*3b 5d5c+ 6b5c S*3d N*3a 2e2d 3g4g "
    "2d2c+ 4a4d 3d2e 3a2c 5g5f P*2b 5f4g 4e4f 4g3f 2a3c P*2d 3c2e 3f2e 4f4g+ 2d2c 2b2c 6i7h 2c2d"
)
SHOGI_LINES = (
    "",
    "7g7f 3c3d 2g2f 8c8d 2f2e 8d8e 6i7h 4a3b 2e2d 2c2d 2h2d",
    BISHOP_EXCHANGE,
    FOURTH_FILE_ROOK,
    FOURTH_FILE_ROOK_LATER,
    f"{BISHOP_EXCHANGE} B*7e 5b6c 8h7i 8b9b 7i6i B*2d 5h4g 2b3a 2h1h 3c2b 7e9g 9d9e 9f9e 9b9e 7h7i P*9f 9g8h 2a3c P*9g "
    "9e9b 9g9f 9b8b 2f2e 3c2e P*2f 9a9b 2f2e 2d5a N*2f 5d4c 7i7h 2c2d 2e2d 5a2d 4f4e 4d4e 5f4e 2b3c 7f7e 7c7d 7e7d "
    "6c7d 7g6h 8e8f 8g8f 8b8f P*4d 3c4d P*8g 8f8e 4e4d 4c4d 6f6e S*4c S*2e 2d3c P*7b P*8f 8i9g 8e6e 2i3g 9b9f 7b7a+ "
    "9f9g+ 8h9g N*7f",
)
"""Moves of each position of shogi: the start, two openings, a middle game, two endgames."""


def go_positions(size: int) -> list[GoGame]:
    """Return the games to search on boards of `size`; sizes without lines of their own get the empty board."""
    games = []
    for line in LINES.get(size, ("",)):
        game = GoGame(size, PRESETS["tromp-taylor"], 7.5 if size > 9 else 7.0)
        for word in line.split():
            game.play(game.side_to_move, parse_vertex(word, size))
        games.append(game)
    return games


def shogi_positions() -> list[ShogiGame]:
    """Return the games of shogi to search."""
    games = []
    for line in SHOGI_LINES:
        game = ShogiGame()
        for word in line.split():
            game.play(parse_usi(word))
        games.append(game)
    return games
