"""The commands `yomi` and `yomi-usi`, and `python -m yomi`."""

import sys

from yomi.children import leave_current_folder

leave_current_folder(is_module=__name__ == "__main__")

from yomi.engine.cli.main import main, main_usi  # noqa: E402  (their imports must not find the current folder)

__all__ = ["main", "main_usi"]

if __name__ == "__main__":
    sys.exit(main())
