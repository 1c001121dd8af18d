"""Messages to the user, and the log file."""

import logging
import sys

from yomi.engine.cli.errors import CliError
from yomi.engine.options import Options
from yomi.engine.records import printable

LINE_ENDS = "\n\t"


def say(line: str) -> None:
    """Print a line on stderr. Control characters in it are escaped."""
    print(f"yomi: {printable(line, keep=LINE_ENDS)}", file=sys.stderr, flush=True)


def echo(text: str) -> None:
    """Print text on stdout. Control characters in it are escaped."""
    print(printable(text, keep=LINE_ENDS), flush=True)


class _TerminalFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record), keep=LINE_ENDS)


class LogFile(logging.FileHandler):
    """The log file. The first failed write is reported; later records are still tried."""

    has_failed = False

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  (logging's name)
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
        elif not self.has_failed:
            self.has_failed = True
            say(f"warning: cannot write {self.baseFilename}: {error.strerror}; yomi continues without it")


def set_up(options: Options) -> None:
    """Send warnings and errors to stderr, and records of the chosen level to the log file.

    Raises:
        CliError: the log file cannot be written.
    """
    root = logging.getLogger("yomi")
    root.handlers.clear()
    root.setLevel(logging.DEBUG)
    console = logging.StreamHandler(sys.stderr)
    console.setLevel(logging.WARNING)
    console.setFormatter(_TerminalFormatter("yomi: %(levelname)s: %(message)s"))
    root.addHandler(console)
    if options.log_file is not None:
        try:
            file = LogFile(options.log_file, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise CliError(f"--log-file {options.log_file}: {error.strerror}") from None
        file.setLevel(options.log_level.upper())
        file.setFormatter(
            logging.Formatter("%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s", "%Y-%m-%d %H:%M:%S")
        )
        root.addHandler(file)
    else:
        root.setLevel(logging.WARNING)
