"""`yomi review`: flags, progress bars and printed texts. yomi.engine.reviews does the work."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.cli.flags import (
    add_cluster,
    add_options,
    add_task,
    add_value,
    asked_cluster,
    check_limited,
    collect,
    file_values,
    known_options,
    type_of,
    visits_without_limit,
)
from yomi.engine.cli.output import echo, plot_check, say, set_up_logs
from yomi.engine.cli.parser import CliError
from yomi.engine.clusters.jobs import folder_of
from yomi.engine.color import BLACK, WHITE
from yomi.engine.default_network import limit_for_review
from yomi.engine.go.descriptor import GAME as GO
from yomi.engine.mistakes import DEFAULT, Thresholds, shown_class
from yomi.engine.options import NOT_FOR_ANALYSIS
from yomi.engine.records import report_notes
from yomi.engine.registry import GAMES
from yomi.engine.reviews.run import (
    COMMAND,
    DEFAULT_NODES,
    DEFAULT_VISITS,
    RECORD_ERRORS,
    Job,
    Output,
    ReviewedGame,
    Reviewers,
    ReviewSettings,
    find_jobs,
)
from yomi.engine.reviews.scans import FIRST, FULL, KnownPositions, Progress, ReviewJournal, parse_first_pass
from yomi.engine.signals import ended_by_a_signal
from yomi.errors import printable
from yomi.language import is_japanese, tr
from yomi.nets.files import check_file, check_folder
from yomi.time_left import TimeLeft, duration

if TYPE_CHECKING:
    from yomi.engine.clusters.actors import ClusterOptions
    from yomi.engine.game import Game
    from yomi.engine.options import Options
    from yomi.engine.reviews.review import Review, ReviewedMove

USAGE = "yomi review FILE|FOLDER... [options]"
EPILOG = """\
examples:
  yomi review game.sgf --net b18.bin.gz --visits 500
  yomi review game.csa --net model.onnx --seconds 1 --plot
  yomi review game.sgf --html
  yomi review game.kif --quiz black
  yomi review games --net b18.bin.gz --out reviewed --json reviewed.json

Go: SGF, GIB (Tygem), NGF (Cyberoro) and UGF (Pandanet). Shogi: CSA, KIF, KI2, JKF, BOD and lines of USI. The command
prints the worst moves of each side, and writes the annotated record as NAME.yomi.sgf, .csa, .kif or .kifu: winrates,
best moves and losses as comments, in SGF also variations, marks and the analyses of Sabaki, KaTrain and LizzieYzy. With
--html it also writes NAME.yomi.html: a page with the board for a browser, and index.yomi.html with links if there are
several games. Variations of the record are kept, but not reviewed. The default limit is 100 visits a position. In shogi
on a processor it is 100,000 nodes of alpha-beta, unless --visits or another network is given.

--quiz makes next-move problems of the mistakes of black, white or both. With --html the page begins with them,
otherwise the command asks after the review. You enter moves as in yomi play.

An inaccuracy, a mistake and a blunder lose 5, 10 and 20% of winrate. In Go 1.5, 3 and 6 points have the same effect, so
that decided games have mistakes too. --thresholds sets one kind of limits: winrate (5,10,20%), points (2,5,10points) or
centipawns of shogi (200,400,800cp). Opening, middle game and endgame begin at fixed moves.

If a record of Go names no rules (RU), yomi guesses them from the result, the server and the komi, with a note. --rules
sets them; --komi replaces the komi of every record. Broken records are read as far as possible: stderr shows each fault
as FILE:LINE:COLUMN. A game is reviewed up to its first illegal move. If a record cannot be read, or does not fit the
network, stderr names it, the review continues, and the exit status is 1.

At the start stderr shows an estimate of the time; for Go --net fast is faster. A long review begins with a first pass
over the game, of as many visits a position as fit in 40 s (--quick 20s or --quick 8), and writes record and page. Then
moves that change the value by half an inaccuracy are searched again, with a third of the limit and with all of it.
--quick 0 and --seed search all positions with the full limit. Ctrl-C keeps the searched positions in a file
.yomi-analyze-*.jsonl, in --out or beside the first record. The same command continues there.
"""

LEFT_OUT = (*NOT_FOR_ANALYSIS, "size")
QUIZ = {"black": (BLACK,), "white": (WHITE,), "both": (BLACK, WHITE)}
# Arguments that change neither the results nor the files of a record, or that have a place of their own in a share
CLUSTER = ("cluster", "actors", "cores_per_process", "gpus_per_process", "insecure")
FRAME = ("records", "command_words", "out", "task", "json", "worst", "run", "command", *CLUSTER)
# Arguments that do not change a search
OUTPUT_OPTIONS = (*FRAME, "html", "plot", "record", "thresholds", "quiz")
LEFT_OUT_OF_SHARES = ("net", "value_net", "human_net", "log_file", "log_level")  # networks count by their content
BROKEN = 1
SHOW, LEAVE = ("?", "？", "show"), ("q", "quit", "終了")  # answers to a problem that are no moves
CORRECT, CORRECT_POINTS = 0.01, 0.5  # an answer that loses no more winrate and points is as good as the best move


def add(parser: argparse.ArgumentParser) -> None:
    text = "review these records, or the records in folders"
    parser.add_argument("records", nargs="+", type=Path, metavar="FILE|FOLDER", help=text)
    text = "write reviews to this folder (default: beside each record)"
    parser.add_argument("--out", type=Path, metavar="FOLDER", help=text)
    add_value(parser, "--worst", 5, "N", "show this many worst moves of each side", low=0)
    text = "set what an inaccuracy, a mistake and a blunder lose, such as 2,5,10points"
    text += f" (default: {DEFAULT}, in Go also {DEFAULT.text(GO.score).partition(' ')[0]})"
    read = type_of(Thresholds.parse)
    parser.add_argument("--thresholds", type=read, default=DEFAULT, metavar="LIST", help=text.replace("%", "%%"))
    text = "set visits of each position in a first pass, or its seconds (20s); 0: none (default: 40s)"
    parser.add_argument("--quick", type=type_of(parse_first_pass), metavar="N", help=text)
    add_task(parser, "records")
    add_cluster(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results as JSON")
    parser.add_argument(
        "--html", action="store_true", help="write a page with the board for a browser (NAME.yomi.html)"
    )
    text = "ask for better moves than the mistakes of a side, in the page or here (default side: both)"
    parser.add_argument("--quiz", nargs="?", const="both", choices=tuple(QUIZ), metavar="SIDE", help=text)
    parser.add_argument("--plot", action="store_true", help="draw the winrate over the game (NAME.yomi.png)")
    flag, text = argparse.BooleanOptionalAction, "write the annotated record (default: yes)"
    parser.add_argument("--record", action=flag, default=True, help=text)
    add_options(parser, GO, leave_out=LEFT_OUT, defaults={"visits": DEFAULT_VISITS, **GO.defaults[COMMAND]})


def run(args: argparse.Namespace) -> int:
    quiz = QUIZ.get(args.quiz, ())
    settings = ReviewSettings(
        args.thresholds, args.quick, args.worst, args.record, args.html, args.plot, quiz if args.html else ()
    )
    reviewers = Reviewers(GAMES, lambda game: _options(args, game), settings, say)
    cluster = asked_cluster(args)
    with contextlib.closing(reviewers):
        if args.task is not None or cluster is not None:
            return _run_share(args, reviewers, cluster)
        return _run_here(args, reviewers, () if args.html else quiz)


def _run_here(args: argparse.Namespace, reviewers: Reviewers, quiz: Sequence[int]) -> int:
    jobs = find_jobs(GAMES, args.records, args.out)
    _check_outputs(args, jobs)
    folder = jobs[0].folder if args.record or args.plot or args.html else jobs[0].path.parent
    journal = ReviewJournal(folder, search_settings(args), say)
    output, time_left, fresh = Output(), TimeLeft(), 0
    problems: list[tuple[str, Review]] | None = [] if quiz else None
    try:
        with ended_by_a_signal():
            for number, job in enumerate(jobs, 1):
                count = f"{number}/{len(jobs)}" if len(jobs) > 1 else ""
                fresh += Printer(reviewers, output, job, count).review(jobs[number:], journal, problems)
                if left := time_left.measure(time.monotonic(), fresh, len(jobs) - number):
                    say(tr("{done} of {n} records: about {time} left", done=number, n=len(jobs), time=duration(left)))
    except BaseException as error:
        if output.reviewed:  # otherwise the file of an earlier run is worth more
            output.write_json(args.json)
        if isinstance(error, KeyboardInterrupt | SystemExit):
            say(journal.interrupted())
        raise
    finally:
        journal.close()
    _finish(args, output)
    journal.remove()
    for name, review in problems or ():
        if not ask_problems(name, review, quiz, lambda: sys.stdin.readline() or None):
            break
    return BROKEN if output.has_errors else 0


def search_settings(args: argparse.Namespace) -> str:
    """Return all arguments that change a search, as text."""
    given = sorted((name, str(value)) for name, value in vars(args).items() if name not in OUTPUT_OPTIONS)
    return repr([given, *(sorted(file_values(args, game).items()) for game in GAMES.values())])


def _run_share(args: argparse.Namespace, reviewers: Reviewers, cluster: ClusterOptions | None) -> int:
    """Review the records of a task, or all records on a cluster. An unfinished record is not continued."""
    from yomi.engine.reviews.shares import ReviewShare, collected, review_on_cluster

    if args.out is None and cluster is None:
        raise CliError(tr("--task {task}: expected --out FOLDER with it", task=args.task))
    if args.out is None:
        raise CliError(tr("--cluster {address}: expected --out FOLDER with it", address=args.cluster))
    if cluster is not None and args.quiz and not args.html:
        raise CliError(tr("--quiz with --cluster: expected --html with it"))
    folder = folder_of(args.out, args.task)
    jobs = find_jobs(GAMES, args.records, folder)
    _check_outputs(args, jobs)
    networks = reviewers.networks([job.path for job in jobs])
    with ReviewShare(folder, jobs, args.command_words, args.task, _share_settings(args), networks) as share:

        def publish(job: Job, games: Sequence[ReviewedGame], error: str) -> Output:
            printer = Printer(reviewers, Output(share.written), job)
            for game in games:
                printer.publish(game)
            if error:
                printer.report(error)
            return printer.output

        with ended_by_a_signal():
            if cluster is not None:
                review_on_cluster(cluster, reviewers, share, publish, say)
            else:
                for number, unit in enumerate(share.left, 1):
                    printer = Printer(reviewers, Output(share.written), jobs[unit], f"{number}/{len(share.left)}")
                    printer.review([jobs[left] for left in share.left[number:]])
                    share.add(unit, printer.output)
    output = collected(folder)
    if cluster is not None:
        _finish(args, output)
    return BROKEN if output.has_errors else 0


def _share_settings(args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments that decide the results and files of a record, as JSON."""

    def texts(values: dict[str, Any], *leave_out: str) -> dict[str, str]:
        hidden = (*LEFT_OUT_OF_SHARES, *leave_out)
        return {name: str(value) for name, value in sorted(values.items()) if name not in hidden}

    from_files = {game.name: texts(file_values(args, game)) for game in GAMES.values()}
    name = None if args.json is None else args.json.name
    return {**texts(vars(args), *FRAME, "config"), "config": from_files, "json": name}


def _check_outputs(args: argparse.Namespace, jobs: Sequence[Job]) -> None:
    """Check before the first search that all files can be written. Raises CliError or OSError."""
    if args.plot:
        plot_check()
    for folder in sorted({job.folder for job in jobs}) if args.record or args.plot or args.html else ():
        check_folder(folder)
    if args.json is not None:
        check_file(args.json, may_lack_folder=True)


def _finish(args: argparse.Namespace, output: Output) -> None:
    output.write_json(args.json)
    if (index := output.write_index(args.out)) is not None:
        echo(tr("list of all pages: {path}", path=printable(index)))


def _options(args: argparse.Namespace, game: Game[Any, Any]) -> Options:
    limit = visits_without_limit(args, DEFAULT_VISITS, game)
    options = collect(args, game, **game.defaults.get(COMMAND, {}), **limit)
    if "visits" not in known_options(args, game):
        limit_for_review(options, game.name, DEFAULT_NODES)
    check_limited(options, game)
    set_up_logs(options)
    return options


# -- one record ----------------------------------------------------------------------------------------------------


class Printer(Progress):
    """Reviews one record: writes its files, prints its tables, and shows a bar with the time left for each scan."""

    def __init__(self, reviewers: Reviewers, output: Output, job: Job, count: str = "") -> None:
        """Prepare for one record. `count` is its number as text, such as 2/7."""
        self._reviewers, self.output, self._job, self._count = reviewers, output, job, count
        self._name = ""  # of the current game
        self._bar: Any = None
        self._is_fresh = False  # whether no position of the game was known

    def review(
        self,
        later: Sequence[Job],
        journal: ReviewJournal | None = None,
        problems: list[tuple[str, Review]] | None = None,
    ) -> bool:
        """Review the record. Return whether its last game was searched without results of an interrupted review.

        An error of the record is reported. `later` are the records after it. `problems` receives the names and reviews
        of its games.
        """
        try:
            with contextlib.closing(self):
                found = self._reviewers.review(self._job.path, self, [job.path for job in later], journal)
                for number, (name, review) in enumerate(found, 1):
                    self.close()
                    self.publish(self._reviewers.settings.finish(name, number, review))
                    if problems is not None:
                        problems.append((name, review))
            return self._is_fresh
        except RECORD_ERRORS as error:
            self.report(self._reviewers.fault(self._job.path, error))
            return False

    def publish(self, game: ReviewedGame) -> None:
        """Write the files of a reviewed game, and print its table."""
        is_new = game.engine != self.output.engine
        paths = self.output.add(self._job, game)
        report_notes(say, self._job.path, game.notes)
        number = f" ({game.name})" if game.name != self._job.path.stem else ""
        echo(printable(f"{self._job.path}{number}: {game.heading}"))
        echo(f"{game.table}\n\n{game.figures}" + (f"; {game.engine}" if is_new else ""))
        echo("".join(tr("written to {path}", path=printable(path)) + "\n" for path in paths.values()))

    def report(self, error: str) -> None:
        self.output.reviewed.append({"file": str(self._job.path), "error": error})
        say(tr("error: {text}", text=error))

    def estimated(self, line: str) -> None:
        say(line)

    def game(self, name: str, known: KnownPositions) -> None:
        self._name, self._is_fresh = name, not known.found

    def begin(self, scan: int, positions: int, known: int) -> None:
        from yomi.engine.cli.bars import Bar

        self.close()
        name = f"{self._count} {printable(self._name)}".strip()
        first, later = tr("{name}, first pass", name=name), tr("{name}, unclear positions", name=name)
        text = {FIRST: first, FULL: name}.get(scan, later)
        unit = "手" if is_japanese() else "move"
        self._bar = Bar(total=positions, initial=known, desc=text, unit=unit, mininterval=0.5, file=sys.stderr)

    def tick(self) -> None:
        self._bar.update()

    def first_pass(self, review: Review) -> None:
        """Write the results of the first pass, and print its winrates."""
        from yomi.engine.reviews.text import curve

        self.close()
        name, side, bars = self._name, review.side(BLACK), curve(review)
        paths = self.output.write(self._job, name, self._reviewers.settings.files(review, name))
        say(tr("{name}: {side}'s winrate after the first pass: {curve}", name=name, side=side, curve=bars))
        for path in paths.values():
            say(tr("first results in {path}", path=path))

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


# -- problems ------------------------------------------------------------------------------------------------------


def problems(review: Review, sides: Sequence[int]) -> list[ReviewedMove]:
    """Return the mistakes of some sides, in the order of the game, for which the search knows a better move."""
    return [move for move in review.moves if move.color in sides and review.class_of(move) and move.before.candidates]


def ask_problems(name: str, review: Review, sides: Sequence[int], read: Callable[[], str | None]) -> bool:
    """Ask the user for a better move instead of each mistake. Return False if the user leaves.

    `read` returns a line of the user, or None at the end of the input.
    """
    found = problems(review, sides)
    right = 0
    for number, move in enumerate(found, 1):
        echo(f"\n{review.board(move.number - 1)}")
        head = tr("{name}, problem {number} of {count}", name=printable(name), number=number, count=len(found))
        side = review.side(move.color)
        echo(tr("{problem}: {side} to move, move {number}", problem=head, side=side, number=move.number))
        while True:
            echo(tr("your move (? shows the answer, q leaves):"))
            line = read()
            if line is None or line.strip().lower() in LEAVE:
                return False
            if line.strip().lower() in SHOW:
                break
            try:
                answer = review.parse(move.number - 1, line.strip())
            except ValueError as error:
                echo(str(error))
                continue
            text, is_right = judge(review, move, answer)
            right += is_right
            echo(text)
            break
        echo(_answer(move, review))
    if found:
        echo("\n" + tr("{right} of {count} problems solved", right=right, count=len(found)))
    return True


def judge(review: Review, move: ReviewedMove, answer: int) -> tuple[str, bool]:
    """Return a sentence about the user's answer, a move, and whether it is as good as the best move."""
    before = move.before
    if answer == before.best:
        return tr("Right: the best move."), True
    if answer == move.move:
        text = _loss(review, move.winrate_loss, move.score_loss)
        return tr("That is the move of the game: it loses {loss}.", loss=text), False
    known = next((each for each in before.candidates if each.move == answer), None)
    if known is None:
        return tr("The search did not consider this move."), False
    loss = max(0.0, before.winrate - known.winrate)
    points = None if before.score is None or known.score is None else max(0.0, before.score - known.score)
    text = _loss(review, loss, points)
    if loss <= CORRECT and not (review.has_points and (points or 0.0) > CORRECT_POINTS):
        return tr("Right: it loses {loss} only.", loss=text), True
    return tr("It loses {loss}.", loss=text), False


def _loss(review: Review, winrate: float, points: float | None) -> str:
    return tr(", ").join(review.losses(winrate, points if review.has_points else None))


def _answer(move: ReviewedMove, review: Review) -> str:
    line = review.better_line(move)
    return tr(
        "Best is {best}, {winrate}%: {line}. Played was {move}: {kind}, {loss}.",
        best=line[0] if line else move.best_text,
        winrate=f"{100 * move.before.winrate:.1f}",
        line=" ".join(line),
        move=review.played_text(move),
        kind=shown_class(review.class_of(move)),
        loss=_loss(review, move.winrate_loss, move.score_loss),
    )
