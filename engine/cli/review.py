"""`yomi review`: files, progress and output. The games' reviewers are in the packages of the games."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yomi.engine.arguments import add_value, check_counts
from yomi.engine.cli.games import GAMES
from yomi.engine.cli.loading import (
    add_options,
    check_limited,
    collect,
    file_values,
    prepare,
    visits_without_limit,
)
from yomi.engine.cli.output import echo, plot_check, say, set_up_logs
from yomi.engine.cli.parser import CliError
from yomi.engine.cli.review_progress import ReviewJournal, count_positions, estimate
from yomi.engine.cli.signals import ended_by_a_signal
from yomi.engine.evaluators.base import EvaluatorError
from yomi.engine.go.descriptor import GAME as GO
from yomi.engine.option_row import OptionError
from yomi.engine.options import NOT_FOR_ANALYSIS
from yomi.engine.records import printable, read_record_bytes, report_notes
from yomi.engine.review import ReviewError
from yomi.nets.errors import NetworkError

if TYPE_CHECKING:
    from yomi.engine.game import Game
    from yomi.engine.options import Options
    from yomi.engine.review import Annotated, KnownPositions, Review, Reviewer

COMMAND = "analyze"
USAGE = "yomi review FILE|FOLDER... [options]"
EPILOG = """\
examples:
  yomi review game.sgf --net b18.bin.gz --visits 500
  yomi review game.csa --net model.onnx --seconds 1 --plot
  yomi review games --net b18.bin.gz --out reviewed --json reviewed.json

Go: SGF, GIB (Tygem) and NGF (Cyberoro). Shogi: CSA, KIF, KI2, JKF, BOD and lines of USI. The command prints the worst
moves of each side, and writes the annotated record as NAME.yomi.sgf, .csa, .kif or .kifu: winrates, best moves and
losses as comments, in SGF also variations, marks and Sabaki's graph. Variations of the record are kept, but not
reviewed. The default limit is 100 visits a move.

Games of Go without rules (RU) are reviewed under Chinese rules, which remove dead stones at the end. --rules changes
that; --komi replaces the komi of every record. Broken records are read as far as possible: stderr shows each fault as
FILE:LINE:COLUMN. A game is reviewed up to its first illegal move. If a record cannot be read, or does not fit the
network, stderr names it, the review continues, and the exit status is 1.

At the start stderr shows an estimate of the time; for Go --net fast is faster. Ctrl-C keeps the searched positions in a
file .yomi-analyze-*.jsonl, in --out or beside the first record. The same command continues there.
"""

MARK = ".yomi"
"""Precedes the ending of the files that a review writes."""
DEFAULT_VISITS = 100
LEFT_OUT = (*NOT_FOR_ANALYSIS, "size")
OUTPUT_OPTIONS = ("records", "out", "worst", "json", "plot", "record", "run", "command")
BROKEN = 1


@dataclass(slots=True)
class Job:
    path: Path
    folder: Path


@dataclass(slots=True)
class Outcome:
    journal: ReviewJournal
    jobs: list[Job]
    estimated: set[str] = field(default_factory=set)
    """Games for which the user has seen an estimate of the time."""
    reviewed: list[dict[str, Any]] = field(default_factory=list)
    broken: int = 0
    written: set[Path] = field(default_factory=set)


def add(parser: argparse.ArgumentParser) -> None:
    text = "review these records, or the records in folders"
    parser.add_argument("records", nargs="+", type=Path, metavar="FILE|FOLDER", help=text)
    text = "write reviews to this folder (default: beside each record)"
    parser.add_argument("--out", type=Path, metavar="FOLDER", help=text)
    add_value(parser, "--worst", 5, "N", "show this many worst moves of each side")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results as JSON")
    parser.add_argument("--plot", action="store_true", help="draw the winrate over the game (NAME.yomi.png)")
    flag, text = argparse.BooleanOptionalAction, "write the annotated record (default: yes)"
    parser.add_argument("--record", action=flag, default=True, help=text)
    add_options(parser, GO, leave_out=LEFT_OUT, defaults={"visits": DEFAULT_VISITS, **GO.defaults[COMMAND]})


def run(args: argparse.Namespace) -> int:
    check_counts(args, worst=0)
    jobs = find_jobs(args.records, args.out)
    if args.plot:
        plot_check()
    reviewers = Reviewers(args)
    folder = jobs[0].folder if args.record or args.plot else jobs[0].path.parent
    outcome = Outcome(ReviewJournal(folder, _settings(args)), jobs)
    try:
        with ended_by_a_signal():
            for number, job in enumerate(jobs, 1):
                _review_file(job, reviewers, args, outcome, f"{number}/{len(jobs)}" if len(jobs) > 1 else "")
    except BaseException as error:
        if outcome.reviewed:  # otherwise the file of an earlier run is worth more
            _write_json(args.json, outcome)
        if isinstance(error, KeyboardInterrupt | SystemExit):
            say(outcome.journal.interrupted())
        raise
    finally:
        outcome.journal.close()
        reviewers.close()
    _write_json(args.json, outcome)
    outcome.journal.remove()
    return BROKEN if outcome.broken else 0


def _settings(args: argparse.Namespace) -> str:
    given = sorted((name, str(value)) for name, value in vars(args).items() if name not in OUTPUT_OPTIONS)
    return repr([given, *(sorted(file_values(args, game).items()) for game in GAMES.values())])


def _write_json(path: Path | None, outcome: Outcome) -> None:
    if path is not None:
        text = json.dumps(outcome.reviewed, indent=1, ensure_ascii=False) + "\n"
        _write(path, text.encode("utf-8", "backslashreplace"))  # names of files need not be UTF-8


# -- records --------------------------------------------------------------------------------------------------------


def find_jobs(paths: Sequence[Path], out: Path | None) -> list[Job]:
    """Return the records in files and folders. Files that a review has written are skipped in folders."""
    jobs = []
    for path in paths:
        if path.is_dir():
            found = [file for file in sorted(path.rglob("*")) if _is_record(file)]
            if not found:
                suffixes = " ".join(_suffixes())
                raise CliError(f"{path}: no records found in this folder, expected files ending in {suffixes}")
            jobs += [Job(file, out / file.parent.relative_to(path) if out else file.parent) for file in found]
        elif path.exists():
            jobs.append(Job(path, out or path.parent))
        else:
            raise CliError(f"{path}: no such file or folder")
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
        raise ReviewError(f"cannot read {path}: {error.strerror}") from None
    found = next((game for game in GAMES.values() if game.may_be_record(content)), None)
    if found is None:
        raise ReviewError(f"{path}: no record, expected a name that ends in {' '.join(_suffixes())}")
    return found


def _suffixes() -> list[str]:
    return [suffix for game in GAMES.values() for suffix in game.suffixes]


class Reviewers:
    """The reviewer of each game, created for the first record of the game."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._made: dict[str, Reviewer] = {}
        self.options: dict[str, Options] = {}

    def get(self, game: Game[Any, Any], path: Path) -> Reviewer:
        """Return the reviewer of the game of the record `path`."""
        if game.name not in self._made:
            options = self._options(game)
            try:
                prepare(game, options)
                self._made[game.name] = game.reviewer(options, path)
            except (EvaluatorError, OptionError) as error:  # ends the review, unlike an EvaluatorError of one record
                raise CliError(str(error)) from None
            self.options[game.name] = options
        return self._made[game.name]

    def _options(self, game: Game[Any, Any]) -> Options:
        limit = visits_without_limit(self._args, DEFAULT_VISITS, game)
        options = collect(self._args, game, **game.defaults.get(COMMAND, {}), **limit)
        check_limited(options, game)
        set_up_logs(options)
        return options

    def close(self) -> None:
        for reviewer in self._made.values():
            reviewer.close()


# -- one record ----------------------------------------------------------------------------------------------------


def _review_file(job: Job, reviewers: Reviewers, args: argparse.Namespace, outcome: Outcome, count: str) -> None:
    """Review the games of a file. Errors of the file are reported, and the review continues with the next file."""
    try:
        game = game_of(job.path)
        reviewer = reviewers.get(game, job.path)
        records = reviewer.read(str(job.path))
        if records and game.name not in outcome.estimated:
            outcome.estimated.add(game.name)
            _print_estimate(game, reviewers.options[game.name], reviewer, records, job, outcome)
        for number, record in enumerate(records, 1):
            name = job.path.stem + (f"-{number}" if len(records) > 1 else "")
            known = outcome.journal.game(job.path, number)
            annotated = _search(reviewer, record, f"{count} {printable(name)}".strip(), known)
            _publish(job, name, annotated, args, outcome.written)
            outcome.reviewed.append({"file": str(job.path), "number": number, **annotated.review.to_json()})
    except (ReviewError, NetworkError, EvaluatorError) as error:
        text = str(error) if str(job.path) in str(error) else f"{job.path}: {error}"
        if isinstance(error, ReviewError) and job.path.suffix.lower() not in _suffixes():
            text += f" (known endings of records: {' '.join(_suffixes())})"
        outcome.broken += 1
        outcome.reviewed.append({"file": str(job.path), "error": text})
        say(f"error: {text}")


def _print_estimate(
    game: Game[Any, Any], options: Options, reviewer: Reviewer, records: Sequence[Any], job: Job, outcome: Outcome
) -> None:
    """Print how long the remaining records of a game will take."""
    later = outcome.jobs[outcome.jobs.index(job) + 1 :]
    paths = [job.path for job in later if job.path.suffix.lower() in game.suffixes]
    positions = sum(map(reviewer.length, records)) + count_positions(reviewer, paths)
    line = estimate(game, options, reviewer, records[0], max(1, positions - len(outcome.journal)))
    if line is not None:
        say(line)


def _search(reviewer: Reviewer, record: Any, name: str, known: KnownPositions) -> Annotated:
    from tqdm import tqdm

    with tqdm(total=reviewer.length(record), desc=name, unit="move", mininterval=0.5, file=sys.stderr) as bar:
        return reviewer.review(record, lambda: bar.update() and None, known)


def _publish(job: Job, name: str, annotated: Annotated, args: argparse.Namespace, written: set[Path]) -> None:
    """Write the files of a game, without overwriting those of another record, and print its table."""
    files = annotated.files() if args.record else {}
    if args.plot:
        from yomi.engine.review import draw

        files[".png"] = draw(annotated.review, name)
    paths = []
    for suffix, data in files.items():
        paths.append(path := _unused(job, name, suffix, written))
        written.add(path)
        _write(path, data)
    _print(job.path, name, annotated.review, args.worst, paths)


def _unused(job: Job, name: str, suffix: str, written: set[Path]) -> Path:
    """Return a path that no other record of this run uses. Records of equal names get their ending or a number."""
    with_ending = f"{name}{job.path.suffix}"
    names = itertools.chain((name, with_ending), (f"{with_ending}-{number}" for number in itertools.count(2)))
    paths = (job.folder / f"{stem}{MARK}{suffix}" for stem in names)
    return next(path for path in paths if path not in written)


def _print(path: Path, name: str, review: Review, worst: int, written: Sequence[Path]) -> None:
    from yomi.engine.review import table

    report_notes(say, path, review.notes)
    rate = review.evaluations / review.seconds if review.seconds else 0.0
    count = len(review.opinions)
    number = f" ({name})" if name != path.stem else ""
    echo(printable(f"{path}{number}: {review.heading()}"))
    echo(table(review, worst))
    echo(
        f"\n{count} position{'s' * (count != 1)} in {review.seconds:.1f} s, {review.evaluations} evaluations,"
        f" {rate:.0f}/s; {review.engine}"
    )
    echo("".join(f"written to {printable(file)}\n" for file in written))


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise CliError(f"cannot write {path}: {error.strerror}") from None
