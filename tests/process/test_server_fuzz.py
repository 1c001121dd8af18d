"""Four thousand lines of hostile servers; `python -m tests.process.server_fuzz` sends as many as one likes."""

from tests.process.server_fuzz import run_clients


def test_clients_of_servers() -> None:
    run_clients(4_000, seed=30)
