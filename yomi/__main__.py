"""The commands `yomi` and `yomi-usi`, and `python -m yomi`."""

import sys

from yomi.engine.cli.main import main, main_usi

__all__ = ["main", "main_usi"]

if __name__ == "__main__":
    sys.exit(main())
