"""The one exception of this package."""


class NetworkError(ValueError):
    """A network file that cannot be used: broken, truncated, foreign, or not made for this game or board.

    The message is one line that says what was found and what was expected.
    """
