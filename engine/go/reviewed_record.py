"""Annotated SGF of a review: comments, marks, variations, and evaluations for Sabaki, KaTrain and LizzieYzy."""

import base64
import gzip
import json
from collections.abc import Iterable

import numpy as np

from yomi.engine.color import BLACK, WHITE, opponent
from yomi.engine.go.game import score_text
from yomi.engine.go.points import Board, format_color
from yomi.engine.go.sgf import GameRecord, Node
from yomi.engine.reviews.review import (
    MARK,
    ONLY,
    SURPRISING,
    Candidate,
    Opinion,
    Review,
    ReviewedMove,
    ownership_values,
    reviewed_by,
)

PV_MOVES = 12  # maximum moves of a line, also of an added variation
VERDICTS = ("BM", "DO", "IT", "TE")  # SGF's verdicts on a move. A node may have one.
# SGF's marks: doubtful, bad, very bad; good, interesting
MARKS = {"inaccuracy": ("DO", ""), "mistake": ("BM", "1"), "blunder": ("BM", "2")}
MARKS |= {ONLY: ("TE", "1"), SURPRISING: ("IT", "")}
SABAKI = ("SBKV", "SBKS")  # Sabaki's properties for its graphs: Black's winrate in percent and lead in points
LIZZIE = ("LZOP", "LZ")  # LizzieYzy's properties: of the root, and of other nodes
KATRAIN = "KT"
CANDIDATES, LINE_MOVES = 8, 10  # in the properties of KaTrain and LizzieYzy: moves of a position, and of each line
ENGINE = "yomi"  # LizzieYzy takes one word
VARIATIONS = tuple(f"{MARK}{word}" for word in ("better", "also", "refutation"))  # begin the comments of variations


def annotate(record: GameRecord, review: Review) -> None:
    """Write a review into the main line of its record, replacing an earlier review.

    Each node gets a comment, V (Black's lead) and the properties of other programs. Mistakes, only moves and surprising
    moves get SGF's marks. A mistake gets better moves and its refutation as variations, unless the move is in the root.
    """
    board = record.board
    nodes = list(record.line())
    for node in record.nodes():
        _clean(node)
    _set_values(record.root, review.opinions[0])
    _set_analysis(record.root, review.opinions[0], board, is_root=True)
    _add_comment(record.root, reviewed_by(review))
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
        _add_comment(node, describe(move, review.verdict_of(move)))
        _set_values(node, move.after)
        _set_analysis(node, move.after, board, is_root=node is record.root)
        _set_mark(node, review.verdict_of(move))
        if review.class_of(move):
            if parent is not None:
                _add_better(parent, move, review)
            _add_refutation(node, move)


def _add_comment(node: Node, text: str) -> None:
    node.comment = "\n".join(filter(None, (node.comment, MARK + text)))


def _clean(node: Node) -> None:
    """Remove the annotations of an earlier review."""
    lines = node.comment.split("\n")
    kept = [line for line in lines if not line.startswith(MARK)]
    if len(kept) < len(lines):
        for name in ("V", *SABAKI, *LIZZIE, KATRAIN):
            node.other.pop(name, None)
        written = "".join(line for line in lines if line.startswith(MARK))
        for verdict, (name, value) in MARKS.items():
            # a mark that the review did not write is the user's
            if verdict in written and node.other.get(name) == [value]:
                del node.other[name]
    node.comment = "\n".join(kept)
    node.children = [child for child in node.children if not child.comment.startswith(VARIATIONS)]


def _set_values(node: Node, opinion: Opinion | Candidate, color: int = BLACK) -> None:
    """Write winrate and score of a position into a node. `color` is the point of view of a candidate's values."""
    winrate, score = _values_for(BLACK, opinion, color)
    node.other["SBKV"] = [f"{100 * winrate:.2f}"]
    if score is not None:
        node.other["V"] = node.other["SBKS"] = [f"{score:.2f}"]


def _values_for(side: int, opinion: Opinion | Candidate, color: int) -> tuple[float, float | None]:
    """Return winrate and score for `side`. `color` is the point of view of a candidate's values."""
    if side == (opinion.color if isinstance(opinion, Opinion) else color):
        return opinion.winrate, opinion.score
    return 1.0 - opinion.winrate, None if opinion.score is None else -opinion.score


def _set_analysis(node: Node, opinion: Opinion, board: Board, *, is_root: bool) -> None:
    if opinion.candidates and opinion.score is not None:
        node.other[LIZZIE[0] if is_root else LIZZIE[1]] = [lizzie_analysis(opinion, board)]
        node.other[KATRAIN] = katrain_analysis(opinion, board)


def _set_mark(node: Node, verdict: str) -> None:
    if verdict and not any(name in node.other for name in VERDICTS):
        name, value = MARKS[verdict]
        node.other[name] = [value]


def describe(move: ReviewedMove, verdict: str) -> str:
    """Return the comment of a review on a move, on one line."""
    color = move.color
    parts = [verdict] if verdict else []
    parts.append(_value(move.settled, color))
    if move.is_best:
        parts.append("the best move")
    elif move.best_text:
        parts.append(f"best {move.best_text} ({_value(move.before, color)}): {' '.join(move.pv_text)}")
        points = "" if move.score_loss is None else f"{move.score_loss:.1f} points, "
        parts.append(f"loss {points}{100 * move.winrate_loss:.1f}%")
    return "; ".join(parts) + f" ({move.after.visits} visits)"


def _value(opinion: Opinion | Candidate, color: int) -> str:
    """Return lead and winrate of `color` as text: `W+2.5, W 61.3%`. A candidate's values are for `color`, too."""
    _, score = _values_for(BLACK, opinion, color)
    lead = "" if score is None else f"{score_text(round(score, 1))}, "
    return f"{lead}{format_color(color)} {100 * _values_for(color, opinion, color)[0]:.1f}%"


def _add_better(parent: Node, move: ReviewedMove, review: Review) -> None:
    """Add the better line and other good moves as variations beside the played move."""
    before, color = move.before, move.color
    text = f"{MARK}better, {_value(before, color)}"
    first = _add_line(parent, color, before.pv, text)
    if first is not None:
        _set_values(first, before)
        if review.is_only_move(before):
            _set_mark(first, ONLY)
    for candidate in review.alternatives(move):
        text = f"{MARK}also, {_value(candidate, color)} ({candidate.visits} visits)"
        node = _add_line(parent, color, candidate.pv, text)
        if node is not None:
            _set_values(node, candidate, color)


def _add_refutation(node: Node, move: ReviewedMove) -> None:
    """Add the best answer to a mistake as a variation, unless it was played in the game."""
    if node.children:
        side = move.after.color
        text = f"{MARK}refutation, {_value(move.after, side)}"
        first = _add_line(node, side, move.after.pv, text)
        if first is not None:
            _set_values(first, move.after)


def _add_line(parent: Node, color: int, moves: Iterable[int], text: str) -> Node | None:
    """Add a line as a variation and return its first node; None if the record already contains its first move."""
    points = list(moves)[:PV_MOVES]
    if not points or any(child.move == (color, points[0]) for child in parent.children):
        return None
    nodes = [parent, parent.add(color, points[0], text)]
    for point in points[1:]:
        color = opponent(color)
        nodes.append(nodes[-1].add(color, point))
    return nodes[1]


# -- analyses for KaTrain and LizzieYzy ------------------------------------------------------------------------------


def lizzie_analysis(opinion: Opinion, board: Board) -> str:
    """Return the value of Lizzie's property LZ for a position: two lines of text.

    The first line contains the winrate of the side that moved last, the visits and the lead. The second line contains
    the best moves from the point of view of the side to move. Their winrates and priors are in hundredths of a percent.
    """
    assert opinion.score is not None
    moves = " info ".join(
        f"move {board.vertex(each.move)} visits {each.visits} winrate {round(10_000 * each.winrate)}"
        f" prior {round(10_000 * each.prior)} scoreMean {each.score or 0.0:.2f} pv {' '.join(_line(each, board))}"
        for each in opinion.candidates[:CANDIDATES]
    )
    return f"{ENGINE} {100 * (1.0 - opinion.winrate):.1f} {opinion.visits} {opinion.score:.1f} 0.0\n{moves}"


def katrain_analysis(opinion: Opinion, board: Board) -> list[str]:
    """Return the three values of KaTrain's property KT: ownership, policy, and the remaining analysis.

    Ownership and policy are half floats, the rest is JSON. Each value is compressed and written in base64. Winrates,
    scores and ownership are from Black's point of view. The policy of a move without visits is 0.
    """
    policy = np.zeros(board.area + 1, np.float16)
    for each in opinion.candidates:
        policy[board.index(each.move)] = each.prior
    assert opinion.score is not None
    moves = {
        board.vertex(each.move): {
            "move": board.vertex(each.move),
            "order": order,
            "visits": each.visits,
            "prior": each.prior,
            "winrate": _black(each.winrate, opinion, 1.0),
            "scoreLead": _black(each.score or 0.0, opinion, 0.0),
            "pv": _line(each, board),
        }
        for order, each in enumerate(opinion.candidates[:CANDIDATES])
    }
    root = {"visits": opinion.visits, "winrate": _black(opinion.winrate, opinion, 1.0)}
    root["scoreLead"] = _black(opinion.score, opinion, 0.0)
    data = json.dumps({"moves": moves, "root": root, "completed": True}, separators=(",", ":"))
    ownership = ownership_values(opinion.ownership).astype(np.float16)
    # no time stamp: equal analyses give equal files
    parts = (gzip.compress(part, mtime=0) for part in (ownership.tobytes(), policy.tobytes(), data.encode()))
    return [base64.standard_b64encode(part).decode() for part in parts]


def _black(value: float, opinion: Opinion, total: float) -> float:
    return round(total - value if opinion.color == WHITE else value, 4) + 0.0  # never -0.0


def _line(candidate: Candidate, board: Board) -> list[str]:
    # KaTrain's pass is "pass", as in GTP
    return [board.vertex(move) for move in candidate.pv[:LINE_MOVES]]
