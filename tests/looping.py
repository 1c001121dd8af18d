"""Cases of a test that are one item: thousands of items cost seconds before the first test runs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def looped(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test with every case, as `pytest.mark.parametrize` does. A failure names its case; later ones do not run.

    For tests that leave nothing behind: fixtures are those of the one item.
    """
    wanted = tuple(name.strip() for name in names.split(",")) if isinstance(names, str) else names
    kept = list(cases)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            for case in kept:
                values = dict(zip(wanted, (case,) if len(wanted) == 1 else case, strict=True))
                try:
                    test(**fixtures, **values)
                except BaseException as error:
                    error.add_note(f"case: {values}")
                    raise

        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in wanted]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]  # which fixtures pytest gives
        return run

    return decorate
