"""One game of SGF data, for tests."""

from yomi.engine.go.sgf import GameRecord, SgfError
from yomi.engine.go.sgf_reader import each_sgf_game


def read_sgf(data: bytes | str) -> GameRecord:
    """Return the first game. Raises SgfError."""
    found = next(each_sgf_game(data))
    if isinstance(found, SgfError):
        raise found
    return found
