"""What can go wrong in a run of the learning loop."""


class LearningError(Exception):
    """A run cannot begin or go on; the message is one line that says what was expected."""
