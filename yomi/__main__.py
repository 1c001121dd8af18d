"""The commands `yomi` and `yomi-usi`, and `python -m yomi`."""

import sys

import yomi  # noqa: F401  (makes engine importable)


def main() -> int:
    """Run `yomi` with the arguments of the process; return the exit status."""
    from engine.cli.main import main

    return main()


def main_usi() -> int:
    """Run `yomi usi`, as graphical interfaces for shogi start it."""
    from engine.cli.main import main_usi

    return main_usi()


if __name__ == "__main__":
    sys.exit(main())
