"""The real `yomi learn`: killed in the middle, asked how it goes, and gone on with by the same command."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_until
from yomi.engine.cli.main import main
from yomi.engine.go.sgf_reader import each_sgf_game
from yomi.engine.learning.store import digest_of
from yomi.nets.data.shards import check_shard, open_dataset
from yomi.nets.katago.file import read_network
from yomi.nets.metadata import feature_set

pytestmark = pytest.mark.slow

pytest.importorskip("torch")

from tests.unit.test_definitions import OWN  # noqa: E402

SIZE = 3
NETWORK = '[network]\nkind = "go"\nblocks = 1\nchannels = 16\npooled = 8\npooling_blocks = []\n'
SETTINGS = "--size 3 --processes 1 --rows 60 --visits 8 --cheap-visits 4 --ladder 0 --window 200 --reanalyze 0.5"


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


def test_a_run_that_is_killed_or_damaged_goes_on_by_the_same_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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

    assert main(["learn", *words, "--visits", "16"]) == 2
    assert "a run with visits 8 (now 16) found: use the same settings, or a new folder" in capsys.readouterr().err

    again = subprocess.run(command(*words, "--networks", "2"), capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert again.stdout == ""
    assert "network 2 (" in again.stderr
    assert games_in(folder) > before
    state = json.loads((folder / "state.json").read_text())
    assert (state["generation"], state["planned_rows"]) == (2, 0)
    assert main(["learn", "status", str(folder)]) == 0
    assert "generation  2 after" in capsys.readouterr().out
    assert (folder / "status.html").read_text().startswith("<!doctype html>")

    (path,) = (folder / "networks").glob(f"{state['network']}.*")  # and files of the ended run are damaged
    path.write_bytes(path.read_bytes()[:1000])
    with (folder / "train/train.csv").open("ab") as table, (folder / "journal.jsonl").open("ab") as journal:
        table.write(bytes(3000))
        journal.write(bytes(30) + b"\n")
    last = subprocess.run(command(*words, "--networks", "3"), capture_output=True, text=True, check=False)
    assert last.returncode == 0, last.stderr
    assert f"no network {state['network']} found, which state.json names: network" in last.stderr
    assert "network 3 (" in last.stderr
    assert "Traceback" not in last.stderr


def test_a_run_that_is_killed_when_its_network_grows_goes_on_by_the_same_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, net = tmp_path / "run", tmp_path / "net.toml"
    net.write_text(NETWORK)
    # The first network may have more than a hundred rows, when games are quick and its start is slow.
    words = ["go", *SETTINGS.split(), "--grow", "300:2", "--network", str(net), "--out", str(folder)]
    first = subprocess.Popen(command(*words), stderr=subprocess.PIPE, text=True)
    assert first.stderr is not None
    said = []
    try:
        for line in first.stderr:
            said.append(line)
            if "grows to 2 blocks" in line or "network 20 (" in line:
                break
        first.send_signal(signal.SIGKILL)
    finally:
        first.kill()
        first.communicate()
    found = re.search(r"network (\d+) grows to 2 blocks", said[-1])
    assert found, "".join(said)
    grown = int(found[1])
    again = subprocess.run(command(*words, "--networks", str(grown + 1)), capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert f"network {grown + 1} (" in again.stderr
    assert "grows" not in again.stderr
    events = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    names = [event["network"] for event in events if event["event"] == "promotion"]
    blocks = [len(read_network(folder / f"networks/{name}.bin.gz").trunk.blocks) for name in names]
    assert blocks == [*[1] * grown, 2, 2]

    words = ["learn", "go", *SETTINGS.split(), "--grow", "100:1", "--network", str(net)]
    assert main([*words, "--out", str(tmp_path / "other")]) == 2
    refused = capsys.readouterr().err.splitlines()[-1]
    assert "grow: blocks = 1 found, expected more than the 1 of [network]" in refused
    assert not (tmp_path / "other").exists()


def test_a_network_of_ones_own_plays_on_a_processor(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="needs onnxscript (extra train)")
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "net.toml").write_text('[network]\nkind = "mine.py:Tower"\nwidth = 16\n')
    files = ["--network", str(tmp_path / "net.toml"), "--out", str(tmp_path / "run")]
    words = [*SETTINGS.split(), "--device", "cpu", "--networks", "1", *files]
    ended = subprocess.run(command("go", *words), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "network 1 (" in ended.stderr
    assert "is lost" not in ended.stderr
    assert "/mine.py:Tower: onnxruntime computes it, in fp32. yomi's kernels cannot: it is an ONNX file" in ended.stderr
    assert len(list((tmp_path / "run/networks").glob("*.onnx"))) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("policy = policy", "onnx: policy (1, 1, 9) found, expected 10 numbers a row"),
        ("return policy", "yomi-learn: outputs of type Tensor found, expected a dict of tensors by name"),
    ],
)
def test_a_network_of_ones_own_is_checked_before_the_games(line: str, message: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="needs onnxscript (extra train)")
    (tmp_path / "mine.py").write_text(re.sub("policy = torch.cat.*", line, OWN))
    words = [*SETTINGS.split(), "--set", f"network.kind={tmp_path}/mine.py:Tower", "--out", str(tmp_path / "run")]
    ended = subprocess.run(command("go", *words), capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert message in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr


def test_a_search_losses_and_targets_of_ones_own_are_used_as_documented(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/how-to/learning.md").read_text(encoding="utf-8")
    (search,) = re.findall(r"```python\n(# cautious\.py: .*?)```", text, re.DOTALL)
    (heads,) = re.findall(r"```python\n(# heads\.py: .*?)```", text, re.DOTALL)
    noted = f"    open({str(tmp_path / 'called')!r}, 'w').close()\n    return (yield"
    (tmp_path / "cautious.py").write_text(search.replace("    return (yield", noted))
    (tmp_path / "heads.py").write_text(heads)
    own = ["--search", "cautious.py:cautious", "--targets", "heads.py:reply", "--set", "loss.reply=0.3"]
    own += ["--set", "network.kind=heads.py:Heads", "--set", "network.blocks=1", "--set", "network.channels=24"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    run = functools.partial(subprocess.run, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
    ended = run(command("go", *SETTINGS.split(), "--networks", "1", *own, "--out", "run"))
    assert ended.returncode == 0, ended.stderr
    assert "network 1 (" in ended.stderr
    assert (tmp_path / "called").exists()
    settings = json.loads((tmp_path / "run/settings.json").read_text())
    assert settings["search"] == f"{tmp_path / 'cautious.py'}:cautious"
    assert settings["network"]["channels"] == 24
    assert settings["network"]["kind"] == f"{tmp_path / 'heads.py'}:Heads"
    events = [json.loads(line) for line in (tmp_path / "run/journal.jsonl").read_text().splitlines()]
    (found,) = [event["losses"] for event in events if event["event"] == "training"]
    assert {"policy", "reply", "soft_policy", "total"} <= set(found)
    assert found["soft_policy"] > found["policy"] / 2
    assert games_in(tmp_path / "run") > 0
    columns = open_dataset(tmp_path / "run/rows").shards[0].open()
    assert (columns["own_reply_weights"].astype(float).sum(1) > 0.9).any()

    config = tmp_path / "later.toml"
    config.write_text(
        '[network]\nkind = "heads.py:Heads"\nname = "later"\nblocks = 1\nchannels = 16\n'
        '[data]\nfolders = ["run/rows"]\n[training]\nsteps = 3\nbatch = 16\n[loss]\nsoft_policy = 4\n'
    )
    trained = run([sys.executable, "-m", "yomi", "train", str(config), "--set", "loss.reply=1", "--out", "later"])
    assert trained.returncode == 0, trained.stderr
    assert (tmp_path / "later/later.bin.gz").exists()
    assert "reply" in (tmp_path / "later/train.csv").read_text().splitlines()[0]
