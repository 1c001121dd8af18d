"""The errors of yomi. Every error that yomi raises on purpose is an `Error`."""


class Error(Exception):
    """Base class of yomi's errors. The message says what was found, what was expected and what to do."""


class ClosedError(Error):
    """A closed engine was used."""
