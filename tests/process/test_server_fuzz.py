"""Four thousand lines of hostile servers; `python -m tests.process.server_fuzz` sends as many as one likes."""

import pytest

from tests.process.server_fuzz import run_clients

pytestmark = pytest.mark.slow


def test_clients_of_servers() -> None:
    run_clients(4_000, seed=30)
