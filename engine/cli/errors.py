"""The error that the command line shows."""


class CliError(Exception):
    """Something the user has to put right; one line that says what was expected. Exit status 2."""
