"""`yomi review`: settings, reviewers, and one record after the other."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi import language
from yomi.engine.arguments import add_task, add_value, check_counts, type_of
from yomi.engine.cli.cluster_flags import add_cluster, asked_cluster
from yomi.engine.cli.loading import (
    add_options,
    check_limited,
    collect,
    file_values,
    is_given,
    visits_without_limit,
)
from yomi.engine.cli.output import plot_check, say, set_up_logs
from yomi.engine.cli.parser import CliError
from yomi.engine.cli.review_files import MARK, QUIZ, Bars, GameFiles, Job, Outcome, write_index, write_json
from yomi.engine.cli.review_progress import ReviewJournal, count_positions, estimate, full_time
from yomi.engine.cli.signals import ended_by_a_signal
from yomi.engine.clusters.jobs import folder_of
from yomi.engine.default_network import ask_for_alpha_beta, named_file, network_file
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.go.descriptor import GAME as GO
from yomi.engine.mistakes import BOTH, DEFAULT, WINRATE, Thresholds
from yomi.engine.options import NOT_FOR_ANALYSIS
from yomi.engine.records import read_record_bytes
from yomi.engine.registry import GAMES
from yomi.engine.review import ReviewError
from yomi.engine.review_scans import FIRST_SECONDS, KnownPositions, Plan, first_visits, parse_first_pass
from yomi.errors import fault_of, printable
from yomi.language import tr
from yomi.nets.errors import NetworkError
from yomi.nets.files import check_file, check_folder
from yomi.settings import OptionError
from yomi.time_left import TimeLeft, duration

if TYPE_CHECKING:
    from yomi.engine.clusters.actors import ClusterOptions
    from yomi.engine.game import Game
    from yomi.engine.options import Options
    from yomi.engine.review_scans import Reviewer

COMMAND = "analyze"
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
on a processor it is 100,000 nodes of alpha-beta, unless --visits, --playouts or another network is given.

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

DEFAULT_VISITS = 100
DEFAULT_NODES = 100_000  # of a position by alpha-beta: about 0.2 s
LEFT_OUT = (*NOT_FOR_ANALYSIS, "size")
OUTPUT_OPTIONS = (
    "records",
    "command_words",
    "task",
    "cluster",
    "actors",
    "cores_per_process",
    "gpus_per_process",
    "insecure",
    "out",
    "worst",
    "json",
    "html",
    "plot",
    "record",
    "run",
    "command",
    "thresholds",
    "quiz",
)
BROKEN = 1


def add(parser: argparse.ArgumentParser) -> None:
    text = "review these records, or the records in folders"
    parser.add_argument("records", nargs="+", type=Path, metavar="FILE|FOLDER", help=text)
    text = "write reviews to this folder (default: beside each record)"
    parser.add_argument("--out", type=Path, metavar="FOLDER", help=text)
    add_value(parser, "--worst", 5, "N", "show this many worst moves of each side")
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
    check_counts(args, worst=0)
    cluster = asked_cluster(args)
    if args.task is not None:
        return _run_task(args)
    if cluster is not None:
        return _run_on_cluster(args, cluster)
    jobs = find_jobs(args.records, args.out)
    check_outputs(args, jobs)
    reviewers = Reviewers(args)
    folder = jobs[0].folder if args.record or args.plot or args.html else jobs[0].path.parent
    journal = ReviewJournal(folder, _settings(args))
    outcome, time_left = Outcome(journal, jobs), TimeLeft()
    try:
        with ended_by_a_signal():
            for number, job in enumerate(jobs, 1):
                review_file(job, reviewers, args, outcome, f"{number}/{len(jobs)}" if len(jobs) > 1 else "")
                if left := time_left.measure(time.monotonic(), outcome.fresh, len(jobs) - number):
                    say(tr("{done} of {n} records: about {time} left", done=number, n=len(jobs), time=duration(left)))
    except BaseException as error:
        if outcome.reviewed:  # otherwise the file of an earlier run is worth more
            write_json(args.json, outcome)
        if isinstance(error, KeyboardInterrupt | SystemExit):
            say(journal.interrupted())
        raise
    finally:
        journal.close()
        reviewers.close()
    write_json(args.json, outcome)
    write_index(args.out, outcome)
    journal.remove()
    _ask_problems(args, outcome)
    return BROKEN if outcome.broken else 0


def _run_task(args: argparse.Namespace) -> int:
    """Review the records of a task. They are finished one by one: an interrupted record begins again."""
    from yomi.engine.cli.review_parts import ReviewShare

    if args.out is None:
        raise CliError(tr("--task {task}: expected --out FOLDER with it", task=args.task))
    folder = folder_of(args.out, args.task)
    jobs = find_jobs(args.records, folder)
    check_outputs(args, jobs)
    reviewers = Reviewers(args)
    with contextlib.closing(reviewers), ReviewShare(args, folder, jobs, reviewers.networks(jobs)) as share:
        own = [jobs[unit] for unit in share.left]
        broken, written, speeds = 0, share.written, dict[str, float]()
        with ended_by_a_signal():
            for number, unit in enumerate(share.left, 1):
                outcome = Outcome(None, own, speeds, written=written)
                review_file(jobs[unit], reviewers, args, outcome, f"{number}/{len(own)}")
                share.add(unit, outcome)
                broken += outcome.broken
    return BROKEN if broken else 0


def _run_on_cluster(args: argparse.Namespace, cluster: ClusterOptions) -> int:
    from yomi.engine.cli.review_parts import ReviewShare, collected
    from yomi.engine.cli.review_units import review_on_cluster

    if args.out is None:
        raise CliError(tr("--cluster {address}: expected --out FOLDER with it", address=args.cluster))
    if args.quiz and not args.html:
        raise CliError(tr("--quiz with --cluster: expected --html with it"))
    jobs = find_jobs(args.records, args.out)
    check_outputs(args, jobs)
    reviewers = Reviewers(args)
    with ReviewShare(args, args.out, jobs, reviewers.networks(jobs)) as share, ended_by_a_signal():
        review_on_cluster(cluster, args, reviewers.options_of(jobs), jobs, share)
    outcome = collected(args.out)
    write_json(args.json, outcome)
    write_index(args.out, outcome)
    return BROKEN if any("error" in entry for entry in outcome.reviewed) else 0


def check_outputs(args: argparse.Namespace, jobs: Sequence[Job]) -> None:
    """Check before the first search that all files can be written. Raises CliError or OSError."""
    if args.plot:
        plot_check()
    for folder in sorted({job.folder for job in jobs}) if args.record or args.plot or args.html else ():
        check_folder(folder)
    if args.json is not None:
        check_file(args.json, may_lack_folder=True)


def _ask_problems(args: argparse.Namespace, outcome: Outcome) -> None:
    from yomi.engine.cli.quiz import ask_problems

    for name, annotated in outcome.quizzes:
        if not ask_problems(name, annotated, QUIZ[args.quiz], lambda: sys.stdin.readline() or None):
            break


def _settings(args: argparse.Namespace) -> str:
    given = sorted((name, str(value)) for name, value in vars(args).items() if name not in OUTPUT_OPTIONS)
    return repr([given, *(sorted(file_values(args, game).items()) for game in GAMES.values())])


# -- records --------------------------------------------------------------------------------------------------------


def find_jobs(paths: Sequence[Path], out: Path | None) -> list[Job]:
    """Return the records in files and folders. Files that a review has written are skipped in folders."""
    jobs = []
    for path in paths:
        if path.is_dir():
            found = [file for file in sorted(path.rglob("*")) if _is_record(file)]
            if not found:
                suffixes = " ".join(_suffixes())
                raise CliError(
                    tr(
                        "{path}: no records found in this folder, expected files ending in {suffixes}",
                        path=path,
                        suffixes=suffixes,
                    )
                )
            jobs += [Job(file, out / file.parent.relative_to(path) if out else file.parent) for file in found]
        elif path.exists():
            jobs.append(Job(path, out or path.parent))
        else:
            raise CliError(tr("{path}: no such file or folder", path=path))
    return jobs


def _is_record(path: Path) -> bool:
    is_review = Path(path.stem).suffix == MARK
    return path.suffix.lower() in _suffixes() and not is_review and path.is_file()


def game_of(path: Path) -> Game[Any, Any]:
    """Return the game of a record by its name, or by its content if the ending is unknown."""
    for game in GAMES.values():
        if path.suffix.lower() in game.suffixes:
            return game
    try:
        content = read_record_bytes(path).lstrip(b"\xef\xbb\xbf \t\r\n")
    except OSError as error:
        raise ReviewError(tr("cannot read {path}: {why}", path=path, why=error.strerror)) from None
    found = next((game for game in GAMES.values() if game.may_be_record(content)), None)
    if found is None:
        known = " ".join(_suffixes())
        raise ReviewError(tr("{path}: no record, expected a name that ends in {suffixes}", path=path, suffixes=known))
    return found


def _suffixes() -> list[str]:
    return [suffix for game in GAMES.values() for suffix in game.suffixes]


class Reviewers:
    """The reviewer of each game, created for the first record of the game."""

    def __init__(self, args: argparse.Namespace, given: Mapping[str, Options] | None = None) -> None:
        """`given`: options by game, in place of the options of the command line."""
        self._args, self._given = args, given or {}
        self._made: dict[str, Reviewer] = {}
        self.options: dict[str, Options] = {}

    def get(self, game: Game[Any, Any], path: Path) -> Reviewer:
        """Return the reviewer of the game of the record `path`."""
        if game.name not in self._made:
            unit = self._args.thresholds.unit
            if unit not in (BOTH, WINRATE, game.score.unit):
                known = f"% or {game.score.unit}"
                raise CliError(
                    tr(
                        "--thresholds {thresholds}: {path} is {game}, expected {known}",
                        thresholds=self._args.thresholds,
                        path=path,
                        game=game.name,
                        known=known,
                    )
                )
            options = self._options(game)
            try:
                game.prepare(options, say)
                self._made[game.name] = game.reviewer(options, path)
            except (EvaluatorError, OptionError) as error:  # ends the review, unlike an EvaluatorError of one record
                raise CliError(str(error)) from None
            self.options[game.name] = options
        return self._made[game.name]

    def renew(self, game: Game[Any, Any], path: Path) -> Reviewer:
        """Create the reviewer of a game again, with the random numbers of a new one."""
        self._made.pop(game.name).close()
        return self.get(game, path)

    def networks(self, jobs: Sequence[Job]) -> dict[str, str | None]:
        """Return the network files that evaluate some records, by use."""
        found: dict[str, str | None] = {}
        for game, options in self.options_of(jobs).items():
            found[game] = network_file(options, game)
            if options.value_net is not None:
                found[f"{game} value"] = named_file(options.value_net, game)
        return {f"network of {use}": file for use, file in found.items()}

    def options_of(self, jobs: Sequence[Job]) -> dict[str, Options]:
        """Return the options of the games of some records."""
        found: dict[str, Options] = {}
        for job in jobs:
            with contextlib.suppress(ReviewError):  # reported when it is the record's turn
                game = game_of(job.path)
                if game.name not in found:
                    found[game.name] = self._options(game)
        return found

    def _options(self, game: Game[Any, Any]) -> Options:
        if game.name in self._given:
            return self._given[game.name].copy()
        limit = visits_without_limit(self._args, DEFAULT_VISITS, game)
        options = collect(self._args, game, **game.defaults.get(COMMAND, {}), **limit)
        is_own = is_given(self._args, game, "visits", "playouts", "level")
        if not is_own:
            ask_for_alpha_beta(options, game.name, DEFAULT_NODES)
        check_limited(options, game)
        set_up_logs(options)
        return options

    def close(self) -> None:
        for reviewer in self._made.values():
            reviewer.close()


# -- one record ----------------------------------------------------------------------------------------------------


def review_file(job: Job, reviewers: Reviewers, args: argparse.Namespace, outcome: Outcome, count: str) -> None:
    """Review the games of a file. Errors of the file are reported, and the review continues with the next file."""
    try:
        game = game_of(job.path)
        reviewer = reviewers.get(game, job.path)
        if outcome.speeds and reviewers.options[game.name].seed is not None:  # results independent of earlier records
            reviewer = reviewers.renew(game, job.path)
        try:
            with language.within(language.ENGLISH):  # notes about faults of the record: --json has them, too
                records = reviewer.read(str(job.path))
        except ReviewError:
            records = reviewer.read(str(job.path))  # the error is for the user only
        for number, record in enumerate(records, 1):
            name = job.path.stem + (f"-{number}" if len(records) > 1 else "")
            options = reviewers.options[game.name]
            is_first = game.name not in outcome.speeds
            if is_first:
                has_limit = {options.visits, options.playouts, options.seconds} != {None}  # besides depth
                outcome.speeds[game.name] = reviewer.visits_per_second(record) if has_limit else 0.0
                if options.seed is not None:  # the measurement has drawn random numbers
                    reviewer = reviewers.renew(game, job.path)
            plan = _plan(args, options, outcome.speeds[game.name], reviewer.length(record))
            if is_first:
                _print_estimate(game, options, reviewer, records, job, outcome, plan)
            files = GameFiles(job, name, args, outcome)
            with contextlib.closing(Bars(f"{count} {printable(name)}".strip(), files)) as bars:
                known = KnownPositions() if outcome.journal is None else outcome.journal.game(job.path, number)
                is_fresh = not known.found
                annotated = reviewer.review(record, bars, known, plan)
            files.publish(annotated)
            outcome.fresh += is_fresh and number == len(records)
            if args.quiz and not args.html:
                outcome.quizzes.append((name, annotated))
            outcome.reviewed.append({"file": str(job.path), "number": number, **annotated.review.to_json()})
    except (ReviewError, NetworkError, EvaluatorError) as error:
        text = fault_of(job.path, error)
        if isinstance(error, ReviewError) and job.path.suffix.lower() not in _suffixes():
            text += tr(" (known endings of records: {suffixes})", suffixes=" ".join(_suffixes()))
        outcome.broken += 1
        outcome.reviewed.append({"file": str(job.path), "error": text})
        say(tr("error: {text}", text=text))


def _plan(args: argparse.Namespace, options: Options, speed: float, positions: int) -> Plan:
    wanted: int | float | None = args.quick
    if wanted is None and options.seed is not None:
        wanted = 0  # the clock must not decide
    if isinstance(wanted, int):
        visits = wanted
    else:
        found = full_time(options, speed, positions)
        full = None if found is None else found[0]
        visits = first_visits(options, full, speed, positions, FIRST_SECONDS if wanted is None else wanted)
    limit = min((n for n in (options.visits, options.playouts) if n is not None), default=None)
    if visits == 1 or (limit is not None and visits >= limit):
        values = {"visits": visits, "most": limit or "visits"}
        raise CliError(tr("--quick {visits}: expected 0, or 2 and more, fewer than the full search's {most}", **values))
    return Plan(args.thresholds, visits)


def _print_estimate(
    game: Game[Any, Any],
    options: Options,
    reviewer: Reviewer,
    records: Sequence[Any],
    job: Job,
    outcome: Outcome,
    plan: Plan,
) -> None:
    """Print how long the remaining records of a game will take."""
    later = outcome.jobs[outcome.jobs.index(job) + 1 :]
    paths = [job.path for job in later if job.path.suffix.lower() in game.suffixes]
    positions = sum(map(reviewer.length, records)) + count_positions(reviewer, paths)
    positions = max(1, positions - (0 if outcome.journal is None else len(outcome.journal)))
    line = estimate(game, options, outcome.speeds[game.name], positions, plan.first_visits)
    if line is not None:
        say(line)
