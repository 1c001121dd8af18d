"""A tiny engine for tests of matches: `python scripted_engine.py gtp|usi CONDUCT [SECONDS]`.

It plays harmless moves (Go: points that do not touch, then passes; shogi: its king to and fro) and, by its conduct,
goes wrong at its third move. It imports next to nothing, so that it starts at once.
"""

import os
import signal
import sys
import time

protocol, conduct = sys.argv[1], sys.argv[2]
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
FAILS_AT = 3
GO_MOVES = 8
"""Moves before it passes."""
COMMANDS = "name version list_commands boardsize komi play genmove time_settings final_score kata-analyze quit".replace(
    " ", "\n"
)
COLUMNS = "ABCDEFGHJKLMNOPQRST"
KINGS = {0: ("5i5h", "5h5i"), 1: ("5a5b", "5b5a")}
FLOOD = b"x" * 99 + b"\n"


def say(text: str) -> None:
    """Write an answer."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def misbehave(move: str, number: int) -> str:
    """Return the move, or do what the conduct says."""
    if conduct == "flood":
        for _ in range(100):
            os.write(2, FLOOD * 100)  # 1 MB a move
    if conduct == "late" and number == FAILS_AT:
        time.sleep(1.5)
    if number < FAILS_AT:
        return move
    match conduct:
        case "crash":
            sys.stderr.write("Traceback: out of luck\n")
            sys.stderr.flush()
            os._exit(3)
        case "killed":
            os.kill(os.getpid(), signal.SIGTERM)
        case "hang":
            time.sleep(3600)
        case "illegal":
            return "A1" if protocol == "gtp" else "5e5d"
        case "nonsense":
            return "Z99"
        case "resign":
            return "resign"
        case "declare":
            return "win"
    return move


def answer_after(line: str) -> str:
    """Return the answer to the command that ended an analysis."""
    return f"= {line.strip()}\n"


def serve_gtp() -> None:
    """Speak GTP."""
    taken: set[str] = set()
    number, size = 0, 9
    for line in sys.stdin:
        words = line.split()
        if not words:
            continue
        if words[0] == "name":
            say(f"= scripted {conduct}\n")
        elif words[0] == "list_commands":
            say(f"= {COMMANDS}\n")
        elif words[0] == "boardsize":
            size = int(words[1])
            say("=\n")
        elif words[0] == "clear_board":
            taken.clear()
            number = 0
            say("=\n")
        elif words[0] == "play":
            taken.add(words[2].upper())
            say("=\n")
        elif words[0] == "genmove":
            number += 1
            time.sleep(seconds)
            points = (f"{column}{row}" for row in range(1, size + 1, 2) for column in COLUMNS[:size:2])
            move = next(point for point in points if point not in taken) if number <= GO_MOVES else "pass"
            move = misbehave(move, number)
            taken.add(move)
            say(f"= {move}\n")
        elif words[0] == "kata-analyze":  # reports at once, and ends with the next line
            say("=")
            for visits in (10, 1000):
                say(f"info move A1 visits 7 winrate 0.5 info move B2 visits 9 rootInfo visits {visits}")
            say("\n" + answer_after(sys.stdin.readline()))
        elif words[0] == "final_score":
            say("? cannot score\n" if conduct == "unscored" else "= W+7.5\n")
        elif words[0] == "komi" and conduct == "refuse":
            say("? no komi here\n")
        else:
            say("=\n")
            if words[0] == "quit":
                return


def serve_usi() -> None:
    """Speak USI."""
    plies = number = 0
    for line in sys.stdin:
        words = line.split()
        match words[0] if words else "":
            case "usi":
                say(f"id name scripted {conduct}\noption name Level type spin default 1 min 1 max 9\nusiok")
            case "isready":
                say("readyok")
            case "usinewgame":
                number = 0
            case "position":
                plies = len(words) - words.index("moves") - 1 if "moves" in words else 0
            case "go" if words[1:] == ["infinite"]:
                say("info depth 1 nodes 500 pv 5i5h")
                assert sys.stdin.readline().strip() == "stop"
                say("info depth 2 nodes 1000 pv 5i5h\nbestmove 5i5h")
            case "go":
                number += 1
                time.sleep(seconds)
                move = misbehave(KINGS[plies % 2][plies // 2 % 2], number)
                say(f"info depth 1 nodes 7 score cp {50 if plies % 2 == 0 else -50} pv {move}\nbestmove {move}")
            case "quit":
                return


if conduct == "mute":
    time.sleep(3600)
if conduct == "dead":
    sys.exit("no such network")
(serve_gtp if protocol == "gtp" else serve_usi)()
