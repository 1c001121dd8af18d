"""The real `yomi learn`: killed in the middle, asked how it goes, and gone on with by the same command."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.go.sgf import each_sgf_game
from engine.learning.store import digest_of
from nets.data.shards import check_shard, open_dataset
from nets.features import feature_set
from tests.waiting import wait_until

pytest.importorskip("torch")

SIZE = 3
NETWORK = '[network]\nkind = "go"\nblocks = 1\nchannels = 16\npooled = 8\npooling_blocks = []\n'
SETTINGS = "--size 3 --workers 1 --rows 60 --visits 8 --cheap-visits 4 --ladder 0 --window 200 --reanalyze 0.5"


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "yomi", "learn", *words]


def games_in(folder: Path) -> int:
    """Check shards, records and networks against each other, and return how many games the shards hold."""
    dataset, games = open_dataset(folder / "rows"), 0
    for shard in dataset.shards:
        check_shard(shard, feature_set("katago-v7"), SIZE**2 + 1)
        record = folder / "games" / f"{shard.path.name.removeprefix('train-')}.sgf"
        count = len(list(each_sgf_game(record.read_bytes())))
        assert set(shard.open()["game"].tolist()) == set(range(count))
        games += count
    for network in (folder / "networks").iterdir():
        assert network.name.startswith(digest_of(network))
    return games


def test_a_run_that_is_killed_goes_on_by_the_same_command(tmp_path: Path) -> None:
    folder, net = tmp_path / "run", tmp_path / "net.toml"
    net.write_text(NETWORK)
    words = ["go", *SETTINGS.split(), "--network", str(net), "--out", str(folder)]
    first = subprocess.Popen(command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        wait_until(lambda: first.poll() is not None or list(folder.glob("rows/train-*")))
        assert first.poll() is None
        first.send_signal(signal.SIGKILL)
    finally:
        first.kill()
        first.communicate()
    before = games_in(folder)
    assert before > 0

    other = subprocess.run(command(*words, "--visits", "16"), capture_output=True, text=True, check=False)
    assert other.returncode == 2
    assert "a run with visits 8 where 16 was asked for: expected the same, or a new folder" in other.stderr

    again = subprocess.run(command(*words, "--networks", "2"), capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert again.stdout == ""
    assert "network 2 (" in again.stderr
    assert games_in(folder) > before
    state = json.loads((folder / "state.json").read_text())
    assert (state["generation"], state["planned_rows"]) == (2, 0)
    told = subprocess.run(command("status", str(folder)), capture_output=True, text=True, check=True).stdout
    assert "generation  2 after" in told
    assert (folder / "status.html").read_text().startswith("<!doctype html>")
