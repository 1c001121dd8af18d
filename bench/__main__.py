"""`python -m yomi.bench`."""

import sys

from yomi.bench.cli import main

if __name__ == "__main__":
    sys.exit(main())
